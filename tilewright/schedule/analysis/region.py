"""What the blocks below a nest of loops touch, and how the iterations meet in it."""
from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.dependence import Access, direction_vectors
from tilewright.arith.itermap import detect_iter_map
from tilewright.schedule.analysis.accesses import TRUE, Collector, Instance, Touch
from tilewright.schedule.analysis.elements import shared_element
from tilewright.schedule.schedule import Schedule
from tilewright.tir.arithmetic import all_of, conjuncts
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import walk
from tilewright.tir.stmt import For, Stmt

_SIGNS = list(itertools.product((-1, 0, 1), repeat=2))


@dataclass(frozen=True)
class Clash:
    """Two accesses, one of them a write, that an execution order must keep apart."""
    a: Touch
    b: Touch

    @property
    def at(self) -> tuple[Stmt, ...]:
        return (self.a.stmt,) if self.a.stmt is self.b.stmt else (self.a.stmt, self.b.stmt)

    @property
    def who(self) -> str:
        """The blocks that make the accesses."""
        instances = [t.instance for t in (self.a, self.b) if t.instance is not None]
        names = dict.fromkeys(i.realize.block.name for i in instances)
        return f"block{'s' if len(names) > 1 else ''} {' and '.join(names)}"


class Region:
    """The accesses below a perfect nest of loops, with what is known about the loops around them."""

    def __init__(self, sch: Schedule, nest: Sequence[For]) -> None:
        self.sch, self.nest = sch, nest
        self.vars = [loop.loop_var for loop in nest]
        self.analyzer: Analyzer = sch.analyzer_at(nest[-1].body)
        around = [s for s in sch.path_to(nest[-1]) if isinstance(s, For)]
        self.domains = {loop.loop_var: (loop.min, loop.extent) for loop in around}
        bounds = nest if len(nest) > 1 else ()                  # those of a loop alone are read before it
        found = Collector(nest[-1].body, bounds, self.analyzer)
        self.touches, self.instances = found.touches, found.instances

    def by_buffer(self) -> Iterable[list[Touch]]:
        """The touches of each buffer that is written, in program order."""
        groups: dict[int, list[Touch]] = {}
        for t in self.touches:
            groups.setdefault(id(t.buffer), []).append(t)
        return (g for g in groups.values() if any(t.writes for t in g))

    def directions(self, a: Access, b: Access) -> set[tuple[int, ...]]:
        """Signs of (iteration of b - iteration of a) over the nest where a and b may touch one element.

        Of loops that have no part in which element it is, no more than two differ at once: that shows as well which
        ones differ first in any order of the loops.
        """
        fixed = self._determined_by(a) if a is b else None
        if fixed is not None:
            free = [n for n, v in enumerate(self.vars) if v not in fixed and not self._runs_once_at_most(v)]
            some = ({p: s, q: t} for p, q in itertools.product(free, repeat=2) for s, t in _SIGNS)
            return {tuple(at.get(n, 0) for n in range(len(self.vars))) for at in ({}, *some)}
        return direction_vectors(a, b, self.vars, self.domains, self.analyzer)

    def _runs_once_at_most(self, loop: Var) -> bool:
        extent = self.domains[loop][1]
        return isinstance(extent, IntImm) and extent.value <= 1

    def _determined_by(self, a: Access) -> set[Var] | None:
        """The loops whose variables follow from the element that a touches, if its index map shows all it uses.

        The map from the loops that occur in the indices to the indices is one to one: then equal elements mean
        equal variables, and the other loops have no part in which element it is.
        """
        ranges = {**a.domains, **{v: self.domains[v] for v in self.vars}}
        used = {n for i in a.indices for n in walk(i) if isinstance(n, Var) and n in ranges}
        conditions = conjuncts(TRUE if a.predicate is None else a.predicate)
        guard = [c for c in conditions if all(n in used for n in walk(c) if n in ranges)]
        found = detect_iter_map(list(a.indices), {v: ranges[v] for v in used}, all_of(*guard), self.analyzer)
        return used if found is not None and found.is_injective else None

    def commutes(self, a: Touch, b: Touch) -> bool:
        """True for two accesses by the steps of one reduction, which may run in any order, to what it sums up in."""
        if a.instance is None or a.instance is not b.instance or not (a is b or a.same_element(b)):
            return False
        block = a.instance.realize.block
        if not any(iv.iter_type == COMM_REDUCE for iv in block.iter_vars):
            return False
        if not any(w.buffer is a.buffer for w in block.writes) or not self.runs_once(a.instance):
            return False
        return block.init is None or self._is_apart(a.instance)

    def _is_apart(self, instance: Instance) -> bool:
        """True when each reduction of the block has elements to itself."""
        if instance.apart is None:
            instance.apart = shared_element(instance.realize.block, self.sch.analyzer_at) is None
        return instance.apart

    def runs_once(self, instance: Instance) -> bool:
        """True when no two iterations run the same instance of the block."""
        key = tuple(self.vars)
        if key not in instance.injective:
            access = Access(tuple(instance.values.values()), instance.guard, instance.free)
            instance.injective[key] = self.directions(access, access) <= {(0,) * len(key)}
        return instance.injective[key]


def first_sign(vector: Sequence[int]) -> int:
    """The sign of the first nonzero component; 0 when there is none."""
    return next((s for s in vector if s), 0)
