"""Plans as modules: one function that is called with inputs and results, and carries its constants.

Such a module is exported, loaded and called like any other: by `load_module`, by tvm-ffi, by programs of C.
"""
from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright import driver
from tilewright.driver import Target
from tilewright.graph.ir.callees import Hosted, Native
from tilewright.graph.ir.types import TensorType
from tilewright.graph.ir.values import exported_name
from tilewright.graph.memory import ALIGNMENT, aligned
from tilewright.graph.plan.counted import names_of_results
from tilewright.graph.plan.parts import address, nbytes_of, region_statement
from tilewright.graph.plan.plan import ARENA, CONSTANT, PARAMETER, RESULT, Plan, Step
from tilewright.runtime import Module, export, llvm
from tilewright.runtime.loader import Image
from tilewright.runtime.signature_table import signatures_in
from tilewright.support.errors import GraphError
from tilewright.support.names import NameSupply, identifier
from tilewright.tir import (
    Allocate,
    Buffer,
    Call,
    Evaluate,
    Expr,
    IntImm,
    LetStmt,
    Load,
    PrimFunc,
    Stmt,
    Store,
    StringImm,
    Var,
    seq,
)
from tilewright.tir.arithmetic import binary
from tilewright.tir.assertion import assertion
from tilewright.tir.conversion import convert

_NOMINAL = 64                     # what a size is taken to be where places are chosen in an order of size


def module_of(plan: Plan, objects: Mapping[str, bytes], target: Target, name: str) -> Module:
    """The module of the function `name(inputs..., results...)`, which writes into the inputs that it updates.

    Raises GraphError where a plan calls Python, or holds parameters.
    """
    if plan.held:
        raise GraphError(f"{plan.name} cannot be exported: it holds {plan.held[0][0]}, which is memory of this process")
    symbol = exported_name(name)
    made = _Exported(target, symbol)
    function, entry = made.add(plan, objects, symbol)
    with export.workplace() as folder:
        path = Path(folder, "constants")
        with open(path, "wb") as file:
            for part in made.constant_bytes():
                file.write(part)
        data = llvm.data_object(symbol, str(path), target.triple)
    signature, = signatures_in(entry)
    images = [Image("object", entry, (symbol,)), *(Image("object", o, ()) for o in dict.fromkeys(made.objects.values())
                                                   if o is not entry), Image("object", data, ())]
    files = driver.files_of_graph(function, made.functions[:-1], [*made.kernels.values()], target,
                                  lambda: b"".join(made.constant_bytes()))
    return Module(images, {symbol: signature}, symbol, target.triple, aliases={name: symbol} if name != symbol else {},
                  files=files)


class _Exported:
    """What a file has: the functions of a plan and of the choices and loops that it runs, kernels, constants."""

    def __init__(self, target: Target, symbol: str) -> None:
        self.target, self.symbol = target, symbol
        self.functions: list[PrimFunc] = []
        self.objects: dict[str, bytes] = {}                 # by the name of the function in it
        self.kernels: dict[str, tuple[PrimFunc, Collection[int]]] = {}
        self.constants: list[np.ndarray] = []

    def constant_bytes(self) -> Iterator[bytes]:
        """The bytes of the constants, each filled up to the alignment."""
        for array in self.constants:
            yield np.ascontiguousarray(array).tobytes()
            yield bytes(-array.nbytes % ALIGNMENT)

    def add(self, plan: Plan, objects: Mapping[str, bytes], name: str) -> tuple[PrimFunc, bytes]:
        """(the function of a plan, its object), behind those that it calls."""
        begin = sum(aligned(a.nbytes) for a in self.constants)
        self.constants += plan.constants
        for kernel, data in objects.items():
            self._add_object(plan, kernel, data)
        parts: dict[Step, list[str]] = {}
        for k, s in enumerate(plan.steps):
            if isinstance(s.callee, Native):
                if s.callee.definition is not None:
                    self.kernels[s.callee.name] = s.callee.definition, s.callee.constant
                continue
            _require_region(plan, s)
            parts[s] = [f"{name}__{k}_{n}" for n in range(len(s.callee.built))]  # type: ignore[attr-defined]
            for part, built in zip(parts[s], s.callee.built):  # type: ignore[attr-defined]
                self.add(built.plan, built.objects, part)
        function = _Writer(plan, name, f"{self.symbol}__constant", begin, parts).function()
        self.functions.append(function)
        self._add_object(plan, name, driver.compile_flat(function, self.target))
        return function, self.objects[name]

    def _add_object(self, plan: Plan, name: str, data: bytes) -> None:
        if self.objects.setdefault(name, data) != data:
            raise GraphError(f"{plan.name} cannot be exported as {self.symbol}: it calls a kernel of that name"
                             if name == self.symbol else f"{plan.name} cannot be exported: two kernels have the name "
                             f"{name}", "give it another name")


def _require_region(plan: Plan, step: Step) -> None:
    """Raises GraphError for a step that only Python runs."""
    callee: Any = step.callee
    if not isinstance(callee, Hosted) or callee.region is None:
        what = f"{callee.name} ({callee.kind})" if isinstance(callee, Hosted) else repr(callee)
        source = f", from {step.source}," if step.source else ""
        raise GraphError(f"{plan.name} cannot be exported: {what}{source} runs in Python, between its kernels",
                         "export the functions that it calls by themselves")


class _Writer:
    """Writes the function that binds places to slots and calls the kernels."""

    def __init__(self, plan: Plan, name: str, constant: str, begin: int, parts: Mapping[Step, Sequence[str]]) -> None:
        """constant: the function that gives the address of constants, of which those of the plan begin there; parts:
        the functions of choices and loops."""
        self.plan, self.name, self.constant, self.parts = plan, name, constant, parts
        names = names_of_results(len(plan.results), plan.counted)
        supply = NameSupply(names)
        self.inputs = [_buffer(supply.fresh(identifier(n)), t) for n, t in plan.params]
        self.results = [_buffer(n, t) for n, (_, t) in zip(names, plan.results)]
        self.own = {slot: b for b, slot in [*zip(self.inputs, plan.param_slots),
                                            *zip(self.results, (s for s, _ in plan.results))] if slot is not None}
        self.constant_offsets = [begin + n for n in _running(a.nbytes for a in plan.constants)]
        self.places = [k for k, s in enumerate(plan.slots) if s.kind == ARENA]
        self.fixed = all(plan.slots[k].type.is_constant for k in self.places)
        self.offsets = Buffer("offsets", (IntImm(len(plan.slots) + 1),), "int64")
        self.total = Var("total", "int64")
        self.memory = plan.memory({}) if self.fixed else None
        planned = self.total if self.memory is None else IntImm(max(self.memory.planned, 1), "int64")
        self.arena = Buffer("arena", (planned,), "uint8")

    def function(self) -> PrimFunc:
        buffers = [*self.inputs, *self.results]
        params = [Var(b.name, "handle") for b in buffers]
        updated = tuple(self.inputs[k].name for k in self.plan.written)
        only_read = tuple(b.name for b in self.inputs if b.name not in updated)
        return PrimFunc(tuple(params), self._body(), dict(zip(params, buffers)),
                        {"global_symbol": self.name, "tir.noalias": True, "only_read": only_read, "updated": updated})

    def _body(self) -> Stmt:
        calls: list[Stmt] = [assertion(c.holds, c.text) for c in self.plan.conditions]
        calls += [self._call(s) for s in self.plan.steps]
        calls.append(assertion(Call("no_fault", (), "bool")))            # kernels leave their messages to this call
        if not self.places:
            return seq(calls)
        if self.fixed:
            return Allocate(self.arena, seq(calls))
        return Allocate(self.offsets, seq([*self._placed(), LetStmt(
            self.total, Load(self.offsets, (IntImm(len(self.plan.slots)),)), Allocate(self.arena, seq(calls)))]))

    def _placed(self) -> list[Stmt]:
        """Offsets in the arena, computed from the sizes: behind all that is placed before and alive at one time.

        The order, larger ones first, is that of some sizes; those that are written in place of others share a place.
        The last entry is the number of bytes of the arena.
        """
        slots, stores = self.plan.slots, list[Stmt]()
        placed: list[tuple[int, int, int]] = []
        head = {k: k for k in self.places}
        for k in self.places:
            reused = slots[k].reuses
            head[k] = k if reused is None else head[reused]
        chains = [[k for k in self.places if head[k] == h] for h in dict.fromkeys(head.values())]
        nominal = {b.variable: _NOMINAL for b in self.plan.sizes}
        total: Expr = IntImm(0, "int64")
        for chain in sorted(chains, key=lambda c: -slots[c[0]].type.nbytes(nominal)):
            first, last = min(slots[k].first for k in chain), max(slots[k].last for k in chain)
            offset: Expr = IntImm(0, "int64")
            for other, a, b in placed:
                if a <= last and first <= b:
                    offset = binary("max", offset, self._end(other))
            stores += [Store(self.offsets, offset if k == chain[0] else self._offset(chain[0]), (IntImm(k),))
                       for k in chain]
            placed.append((chain[0], first, last))
        for k, _, _ in placed:
            stores.append(Store(self.offsets, binary("max", total, self._end(k)), (IntImm(len(slots)),)))
            total = Load(self.offsets, (IntImm(len(slots)),))
        return stores

    def _offset(self, slot: int) -> Expr:
        return Load(self.offsets, (IntImm(slot),))

    def _end(self, slot: int) -> Expr:
        """Where what is in a slot ends, rounded up."""
        size = nbytes_of(self.plan.slots[slot].type)
        lines = binary("floordiv", binary("add", size, IntImm(ALIGNMENT - 1, "int64")), IntImm(ALIGNMENT, "int64"))
        return binary("add", self._offset(slot), binary("mul", lines, IntImm(ALIGNMENT, "int64")))

    def _call(self, step: Step) -> Stmt:
        pointers = [self._pointer(k) for k in step.slots]
        if isinstance(step.callee, Hosted):
            return region_statement(step.callee, self.parts[step], pointers)
        assert isinstance(step.callee, Native)
        return Evaluate(Call("call_extern", (_text(f"{step.callee.name}__kernel"), *pointers, *step.sizes), "int32"))

    def _pointer(self, slot: int) -> Expr:
        s = self.plan.slots[slot]
        if s.kind in (PARAMETER, RESULT):
            return self.own[slot].data
        if s.kind == CONSTANT:
            offset = IntImm(self.constant_offsets[s.data], "int64")
            return Call("call_extern", (_text(self.constant), offset), "handle")
        if self.memory is not None:
            return address(self.arena, IntImm(self.memory.offset[slot], "int64"))
        return address(self.arena, self._offset(slot))


def _buffer(name: str, t: TensorType) -> Buffer:
    return Buffer(name, tuple(convert(d) for d in t.shape), t.dtype)


def _text(name: str) -> StringImm:
    return StringImm(name)


def _running(sizes: Iterable[int]) -> list[int]:
    """Where each of several arrays begins that lie one behind the other, aligned."""
    return list(itertools.accumulate((aligned(n) for n in sizes), initial=0))[:-1]
