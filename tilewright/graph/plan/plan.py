"""The plan of a function of kernels, as data: which kernel works on which places, and how large these are."""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.graph.ir.callees import Native
from tilewright.graph.ir.types import TensorType, same, size_variables
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.graph.memory import Lifetime, MemoryPlan, plan_memory
from tilewright.graph.passes.conditions import conditions_of_types
from tilewright.graph.passes.own_results import memory_of
from tilewright.graph.passes.views import is_view_call
from tilewright.graph.plan.counted import Counted
from tilewright.graph.plan.interface import Binding, Interface, bindings_of
from tilewright.support.errors import GraphError
from tilewright.tir import Var

_SMALL = 1 << 20                # bytes
PARAMETER, HELD, RESULT, CONSTANT, ARENA = "parameter", "held", "result", "constant", "arena"


@dataclass(frozen=True)
class Slot:
    """A place in memory. kind: of a parameter, a held parameter or a constant (number `data`), a result, or the arena.

    The address of a parameter comes with each call, that of a held one is known when the plan is loaded. A slot of the
    arena lives from step `first`, which writes it, to step `last`; reuses: the slot whose place it takes.
    """
    kind: str
    type: TensorType
    data: int = -1
    first: int = 0
    last: int = 0
    reuses: int | None = None


@dataclass(frozen=True)
class Step:
    """A call of `callee` on the addresses of slots and the values of sizes.

    types: of what it reads and writes, each the type of the slot or of a view of it.
    """
    callee: object
    slots: tuple[int, ...]
    sizes: tuple[Var, ...]
    source: str
    types: tuple[TensorType, ...]


@dataclass(frozen=True)
class Plan(Interface):
    """What a run does: bind the sizes, find a place for each slot, run the steps, hand out the results.

    params: those that each call gives, held: the others, into all of which steps may write. param_slots and results:
    the slot of each, and for results the type, which may be a view of the slot; counted: those of which elements say
    how much counts.
    """
    held: tuple[tuple[str, TensorType], ...]
    slots: tuple[Slot, ...]
    steps: tuple[Step, ...]
    param_slots: tuple[int | None, ...]
    results: tuple[tuple[int, TensorType], ...]
    constants: tuple[np.ndarray, ...]
    counted: tuple[Counted, ...] = ()

    def memory(self, sizes: Mapping[Var, int]) -> MemoryPlan[int]:
        """Where in one arena the slots lie, for values of the size variables."""
        return plan_memory([Lifetime(k, s.type.nbytes(sizes), s.first, s.last, s.reuses)
                            for k, s in enumerate(self.slots) if s.kind == ARENA])


def plan(function: Function, held: Collection[Value] = ()) -> Plan:
    """The plan of a function whose calls are of kernels, externs, and views. held: parameters that no call gives.

    What parameters are updated to is written over them by the calls that make it: `order_updates` sees to that.
    """
    return _Planner(function, held).plan()


class _Planner:
    def __init__(self, function: Function, held: Collection[Value]) -> None:
        self.function = function
        self.held = [p for p in function.params if p in held]
        self.given = [p for p in function.params if p not in held]
        self.writes = {memory_of(v): p for p, v in function.updates.items()}
        self.calls = [c for c in function.calls if not is_view_call(c)]
        self.slots: list[Slot] = []
        self.slot_of: dict[Value, int] = {}
        self.constants: list[np.ndarray] = []
        self.results = {memory_of(v) for v in function.results}
        self.last = self._last_reads()

    def _last_reads(self) -> dict[Value, int]:
        return {memory_of(v): t for t, c in enumerate(self.calls) for v in c.inputs}

    def plan(self) -> Plan:
        function = self.function
        for v in self.given:
            if v in self.last or v in self.results or v in function.updates:
                self._add(v, Slot(PARAMETER, v.type))
        for k, v in enumerate(self.held):
            self._add(v, Slot(HELD, v.type, k))
        steps = [self._step(t, c) for t, c in enumerate(self.calls)]
        written = tuple(k for k, p in enumerate(self.given) if p in function.updates)
        sizes = bindings(function, self.given)
        made = [(c.callee, [v.type for v in c.results]) for c in self.calls if isinstance(c.callee, Native)]
        types = [v.type for v in (*self.given, *(v for c in function.calls for v in c.results))]
        conditions = conditions_of_types(types, made, [b.variable for b in sizes])
        return Plan(function.name, _signature(self.given), written, sizes,
                    _signature(self.held), tuple(self.slots), tuple(steps),
                    tuple(self.slot_of.get(p) for p in self.given),
                    tuple((self._slot(v), v.type) for v in function.results), tuple(self.constants),
                    tuple(Counted(*c) for c in function.attrs.get("counted", ())),
                    conditions=(*function.attrs.get("conditions", ()), *conditions))

    def _add(self, value: Value, slot: Slot) -> int:
        self.slot_of[value] = len(self.slots)
        self.slots.append(slot)
        return self.slot_of[value]

    def _slot(self, value: Value) -> int:
        root = memory_of(value)
        if root in self.slot_of:
            return self.slot_of[root]
        if root.data is None:
            raise GraphError(f"{self.function.name}: {root!r} has no place: nothing before its use binds it")
        self.constants.append(_apart(root.data))
        return self._add(root, Slot(CONSTANT, root.type, len(self.constants) - 1))

    def _step(self, t: int, c: Call) -> Step:
        read = [self._slot(v) for v in c.inputs]
        made = []
        for k, v in enumerate(c.results):
            if v in self.writes:
                made.append(self.slot_of.setdefault(v, self.slot_of[self.writes[v]]))
                continue
            if v in self.results:
                made.append(self._add(v, Slot(RESULT, v.type)))
                continue
            made.append(self._add(v, Slot(ARENA, v.type, first=t, last=self.last.get(v, t),
                                          reuses=self._overwritten(c, t) if k == 0 else None)))
        sizes = c.callee.sizes if isinstance(c.callee, Native) else ()
        return Step(c.callee, (*read, *made), sizes, c.source, tuple(v.type for v in (*c.inputs, *c.results)))

    def _overwritten(self, c: Call, t: int) -> int | None:
        """The slot of an input that is not needed any more and that the first result may take the place of."""
        for k in c.callee.over if isinstance(c.callee, Native) else ():
            root = memory_of(c.inputs[k])
            slot = self.slots[self.slot_of[root]]
            alone = sum(memory_of(v) is root for v in c.inputs) == 1
            fits = same(slot.type.elements, c.results[0].type.elements)
            if slot.kind == ARENA and self.last[root] == t and alone and fits:
                return self.slot_of[root]
        return None


def _apart(array: np.ndarray) -> np.ndarray:
    """The array, or a copy of a small one: it may be a part of a file that is in memory as a whole."""
    return array.copy() if array.base is not None and array.nbytes <= _SMALL else array


def _signature(params: Sequence[Value]) -> tuple[tuple[str, TensorType], ...]:
    return tuple((p.name, p.type) for p in params)


def bindings(function: Function, given: Sequence[Value] | None = None) -> tuple[Binding, ...]:
    """Where the values of the size variables come from: extents of the parameters that calls give (default: all).

    Raises GraphError for one that no extent is.
    """
    found = {b.variable: b for b in bindings_of([p.type for p in (function.params if given is None else given)])}
    used = size_variables(d for c in function.calls for v in c.results for d in v.shape)
    own = (v for c in function.calls for v in getattr(c.callee, "sizes", ()))
    missing = [v.name for v in (*function.sizes, *used, *own) if v not in found]
    if missing:
        raise GraphError(f"{function.name}: the size {missing[0]} is an extent of no parameter by itself")
    return tuple(found.values())
