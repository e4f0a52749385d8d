"""Functions of the graph by the interpreter, call by call: the reference for all that is compiled."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright import runtime, te
from tilewright.graph.ir.callees import Extern, Kernel, Operator
from tilewright.graph.ir.deferred import loaded
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.types import TensorType, extents, size_variables
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.graph.plan.plan import bindings
from tilewright.runtime.dtypes import numpy_dtype
from tilewright.support.errors import GraphError
from tilewright.tir import IRModule, PrimFunc, Var
from tilewright.tir.interp import run as interpret

Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class RegionCall:
    """A branch that was taken, or a turn of a loop."""
    function: Function
    inputs: Arrays
    results: Arrays


class Evaluation:
    """A function on arrays. values: those of its parameters and results of calls; sizes: of its size variables;
    regions: the branches and bodies that were run, in order."""

    def __init__(self, function: Function, inputs: Arrays) -> None:
        for p, x in zip(function.params, inputs, strict=True):
            if x.ndim != p.ndim or str(x.dtype) != p.dtype:
                raise GraphError(f"{function.name}: {p.name} is {p.type}, and {x.dtype}{list(x.shape)} is given")
        self.function = function
        self.sizes: dict[Var, int] = {b.variable: inputs[b.parameter].shape[b.axis] for b in bindings(function)}
        self.values: dict[Value, np.ndarray] = dict(zip(function.params, inputs))
        self.regions: list[RegionCall] = []
        for c in function.calls:
            self.values.update(zip(c.results, self._results(c, [self.array(v) for v in c.inputs]), strict=True))

    def array(self, v: Value) -> np.ndarray:
        return self.values[v] if v.held is None else loaded(v.held)

    def results(self) -> list[np.ndarray]:
        return [self.array(v) for v in self.function.results]

    def ends(self, updated: Iterable[Value]) -> list[np.ndarray]:
        """The results, and what these parameters are behind a run."""
        return [*self.results(), *(self.array(self.function.updates.get(p, p)) for p in updated)]

    def _results(self, c: Call, inputs: Arrays) -> list[np.ndarray]:
        callee, types = c.callee, [v.type for v in c.results]
        if isinstance(callee, Operator):
            return self._operator(c, inputs)
        if isinstance(callee, Kernel):
            return interpreted(callee.func, inputs, types, callee.sizes, self.sizes)
        if isinstance(callee, Function):
            return self._region(callee, inputs)
        if isinstance(callee, If):
            return self._region(callee.then if inputs[0].item() else callee.orelse, inputs[1:])
        if isinstance(callee, Loop):
            return self._loop(callee, inputs, types)
        if isinstance(callee, Extern):
            return self._packed(callee.name, inputs, empty(types, self.sizes))
        raise GraphError(f"{self.function.name}: {c!r} cannot be run by the interpreter")

    def _operator(self, c: Call, inputs: Arrays) -> list[np.ndarray]:
        """The results of the rule of an operator, on tensors of its own: nothing of fusion has a part in it."""
        tensors = [te.placeholder(v.type.shape, v.type.dtype, name=f"x{k}") for k, v in enumerate(c.inputs)]
        made = c.callee.apply(tensors)
        own: list[te.Tensor] = []
        for t in made:                                       # a rule may give an input back, or a result twice
            own.append(t if t not in (*tensors, *own) else te.compute(t.shape, lambda *i, t=t: t(*i)))  # type: ignore[misc]
        sizes = sorted(size_variables(d for t in (*tensors, *own) for d in t.shape), key=lambda v: v.name)
        func, _ = te.lower_ops([*tensors, *own, *sizes], name="operator", partial=True)
        given = tuple(p for p in func.params if p not in func.buffer_map)
        return interpreted(func, inputs, [v.type for v in c.results], given, self.sizes)

    def _packed(self, name: str, inputs: Arrays, results: list[np.ndarray]) -> list[np.ndarray]:
        function = runtime.get_global_func(name, allow_missing=True)
        if function is None:
            raise GraphError(f"{self.function.name} calls the packed function {name!r}, which is not registered",
                             f'register it: @tilewright.register_func("{name}")')
        function(*(runtime.array(x) for x in inputs), *(runtime.from_dlpack(x) for x in results))
        return results

    def _region(self, function: Function, inputs: Arrays) -> list[np.ndarray]:
        inner = Evaluation(function, inputs)
        made = inner.results()
        self.regions += [*inner.regions, RegionCall(function, tuple(inputs), made)]
        return made

    def _loop(self, loop: Loop, inputs: Arrays, types: Sequence[TensorType]) -> list[np.ndarray]:
        count, proceed = int(inputs[0].item()), bool(inputs[1].item())
        carried, read = list(inputs[2:2 + loop.carried]), inputs[2 + loop.carried:]
        rows: list[list[np.ndarray]] = []
        while len(rows) < count and proceed:
            made = self._region(loop.body, [np.array(len(rows), "int64"), *carried, *read])
            proceed, carried = bool(made[0].item()), made[1:1 + loop.carried]
            rows.append(made[1 + loop.carried:])
        stacks = empty(types[loop.carried:], self.sizes)
        for k, stack in enumerate(stacks):
            if stack.shape[0] != len(rows):
                raise GraphError(f"{loop.name} ends after {len(rows)} steps, and the result has {stack.shape[0]}")
            for at, row in enumerate(rows):
                stack[at] = row[k]
        return [*carried, *stacks]


def interpreted(func: PrimFunc | IRModule, inputs: Arrays, results: Sequence[TensorType], given: Sequence[Var],
                sizes: dict[Var, int], races: bool = False) -> list[np.ndarray]:
    """What func writes to its results, by the interpreter. given: the sizes that it takes behind them.

    Tensors of which axes are merged in func are seen with its shapes. races: raise InterpreterError where iterations
    that may run side by side touch the same element.
    """
    outs, numbers = empty(results, sizes), [sizes[v] for v in given]
    main = func if isinstance(func, PrimFunc) else next(iter(func.functions.values()))
    arrays = [*(np.array(x, order="C") for x in inputs), *outs]
    interpret(func, *_shaped(main, arrays, numbers), *numbers, check=races)
    return outs


def _shaped(func: PrimFunc, arrays: Arrays, numbers: Sequence[int]) -> Arrays:
    """Views of arrays with the shapes of the buffers of func."""
    own = dict(zip([p for p in func.params if p not in func.buffer_map], numbers))
    buffers = [func.buffer_map[p] for p in func.params if p in func.buffer_map]
    return [a if a.ndim == len(b.shape) else a.reshape(extents(b.shape, own))
            for a, b in zip(arrays, buffers, strict=True)]


def empty(types: Sequence[TensorType], sizes: dict[Var, int]) -> list[np.ndarray]:
    """Arrays of zeros of these types."""
    return [np.zeros(extents(t.shape, sizes), numpy_dtype(t.dtype)) for t in types]
