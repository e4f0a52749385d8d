"""Kernels become code, and what they make of constants alone is computed while the model is compiled."""
from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright import driver, runtime
from tilewright.driver import KernelCode, Target
from tilewright.graph.ir.callees import Kernel, Native
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.values import Call, Function, Value, calls_of, constant, exported_name, symbol_name
from tilewright.runtime.loader import load_objects
from tilewright.runtime.tensor import as_numpy
from tilewright.tir import PrimFunc
from tilewright.tir.equal import structural_equal


@dataclass(frozen=True)
class Compiled:
    """A function whose calls are of native kernels (and of what Python calls), and the objects that these are in."""
    function: Function
    objects: dict[str, bytes]


def as_written(function: Function) -> Function:
    """function whose kernels are compiled with the loops that they have: no rule schedules them."""
    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        if not isinstance(c.callee, Kernel):
            return None
        kernel = replace(c.callee, func=c.callee.func.with_attr("tir.is_scheduled", True))
        return new.emit_all(kernel, inputs, [v.name for v in c.results])
    return rebuilt(function, step)


def compile_kernels(function: Function, target: Target) -> Compiled:
    """The kernels of a function compiled, each of them once for each choice of constant inputs."""
    symbols = _Symbols(exported_name(function.name))
    wanted = {symbols.of(c): c for c in calls_of(function, Kernel)}
    jobs = [(_named(c.callee, name), constant_inputs(c)) for name, c in wanted.items()]
    with driver.progress_bar("compiling kernels", len(jobs)) as progress:
        codes = dict(zip(wanted, driver.compile_graph_kernels(jobs, target, progress)))
    prepared: dict[tuple[object, ...], list[Value]] = {}

    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        if not isinstance(c.callee, Kernel):
            return None
        code = codes[symbols.of(c)]
        key = (code.name, *(inputs[k] for k in code.read))
        if key not in prepared:
            prepared[key] = _prepare(code, [inputs[k] for k in code.read])
        callee, given = _native(c, code, inputs, prepared[key])
        return new.emit_all(callee, given, [v.name for v in c.results])

    return Compiled(rebuilt(function, step), {name: code.data for name, code in codes.items()})


def constant_inputs(c: Call) -> tuple[int, ...]:
    """The positions of inputs that are the same in every call."""
    return tuple(k for k, v in enumerate(c.inputs) if v.is_constant)


class _Symbols:
    """The names of the code of kernels: code that knows which inputs are constant is code of its own, and functions of
    one name that differ have code of different names. reserved: the name of the function that calls them."""

    def __init__(self, reserved: str) -> None:
        self._known: dict[tuple[int, tuple[int, ...]], str] = {}
        self._taken: dict[str, tuple[PrimFunc, tuple[int, ...]] | None] = {reserved: None}

    def of(self, c: Call) -> str:
        func, constant = c.callee.func, constant_inputs(c)
        key = id(func), constant                             # the calls keep the functions alive
        if key not in self._known:
            self._known[key] = self._name("_c".join([symbol_name(c.callee.name), *map(str, constant)]), func, constant)
        return self._known[key]

    def _name(self, base: str, func: PrimFunc, constant: tuple[int, ...]) -> str:
        for k in itertools.count():
            name = f"{base}_{k}" if k else base
            other = self._taken.setdefault(name, (func, constant))
            if other is not None and other[1] == constant and structural_equal(_nameless(other[0]), _nameless(func)):
                self._taken[f"{name}_prepare"] = None        # of what prepares constants for it
                return name
        raise AssertionError


def _nameless(func: PrimFunc) -> PrimFunc:
    return func.with_attr("global_symbol", "kernel")


def _named(kernel: Kernel, name: str) -> PrimFunc:
    return kernel.func if kernel.name == name else kernel.func.with_attr("global_symbol", name)


def _native(c: Call, code: KernelCode, inputs: Sequence[Value],
            prepared: Sequence[Value]) -> tuple[Native, list[Value]]:
    """(the code of the kernel that c calls as a callee, what it is called with)."""
    kernel, count = c.callee, len(inputs)
    taken = [a for a in code.arguments if a < count]
    sizes = tuple(kernel.sizes[a - count - len(kernel.results)] for a in code.arguments
                  if a >= count + len(kernel.results))
    over = tuple(taken.index(k) for k in kernel.over if k in taken)
    callee = Native(code.name, kernel.results, sizes, over, kernel.operators, _named(kernel, code.name),
                    constant_inputs(c))
    return callee, [inputs[a] if a >= 0 else prepared[-1 - a] for a in taken]


def _prepare(code: KernelCode, inputs: Sequence[Value]) -> list[Value]:
    """The constants that a kernel wants in the place of some that it would have to rearrange at each call."""
    if not code.prepare:
        return []
    library = load_objects([code.prepare])
    results = [runtime.empty(shape, dtype) for shape, dtype in code.prepared]
    arrays = [runtime.view(np.ascontiguousarray(v.data)) for v in inputs]
    entry = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(arrays) + len(results)))
    entry(library.address(f"{code.name}_prepare__kernel"))(*(t.data_ptr for t in (*arrays, *results)))
    return [constant(as_numpy(t), f"{inputs[0].name}_packed") for t in results]
