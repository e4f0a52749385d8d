"""Places of largest and smallest elements along memory: each lane of a few vectors looks at a part of the elements.

    y[i] = the first k with the best x[i, k]
->
    at[i, l], best[i, l] = the first step s with the best x[i, s * lanes + l]
    y[i] = the least at[i, l] * lanes + l of those with the best best[i, l]

A lane takes its steps in order, so that a later element has to be better than the one before: one comparison, and no
index but the number of the step. What is found is the same: the first of equals, and NaN before all others.
"""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright import tir
from tilewright.arith.linear import linear
from tilewright.rules.elementwise import VECTORS_IN_FLIGHT, parallelize
from tilewright.rules.facts import BlockFacts, names_of
from tilewright.rules.lanes import UNKNOWN, Lanes, combine_lanes, line_of_terms
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.schedule.analysis.covering import with_reads
from tilewright.schedule.analysis.reducers import Reduction, reduction_of
from tilewright.support.target import Target
from tilewright.te.arg_reducers import arg_reducer
from tilewright.te.extents import digits, simplified
from tilewright.te.reduction import CommReducer, Reducer, comm_reducer
from tilewright.tir import Expr, IntImm, binary, cast, const, dtype, rewrite, select, seq, substitute
from tilewright.tir.arithmetic import ceildiv, if_then_else, intrinsic, logical_not
from tilewright.tir.buffer import element_region
from tilewright.tir.conversion import max_value, min_value

SHORTEST = 4                     # vectors of elements from which on comparing the lanes costs less than it saves


@dataclass(frozen=True)
class Places:
    """reduction: of pairs (place, element), to the one with the largest or smallest element; extent: of how many;
    lanes: that look for it."""
    reduction: Reduction
    largest: bool
    extent: Expr
    lanes: int


def places(facts: BlockFacts, target: Target) -> Places | None:
    """facts as what `topi.argmax` and `topi.argmin` compute along memory; None for anything else."""
    axes = [v for v in facts.block.iter_vars if v.iter_type == tir.COMM_REDUCE]
    if not axes:
        return None
    found = reduction_of(facts.block)
    if found is None or line_of_terms(facts) != len(axes) or len(axes) > 1 and None in facts.reduced:
        return None
    kinds = tuple(e.dtype for e in found.terms)
    sides = [side for side in (True, False) if _text(arg_reducer(side).combiner(kinds, True)) == _text(found.combiner)]
    if not sides or not _counts(found.terms[0], axes):
        return None
    length = math.prod(UNKNOWN if e is None else e for e in facts.reduced)
    lanes = vector = max(1, target.vector_bytes // max(4, dtype.bytes_of(kinds[1])))
    if 0 in facts.spatial or length < SHORTEST * lanes:
        return None
    while 2 * lanes < length and lanes < vector * VECTORS_IN_FLIGHT:
        lanes *= 2
    extent = axes[0].domain.extent if len(axes) == 1 else IntImm(length, axes[0].dtype)
    return Places(found, sides[0], extent, lanes)


@functools.cache
def _reducer(largest: bool) -> Reducer:
    """`arg_reducer` without conditions on what is read: all operands are in registers, and selects cost less."""
    def combine(a: Sequence[Expr], b: Sequence[Expr]) -> tuple[Expr, Expr]:
        (i, x), (j, y) = a, b
        ahead, (no, yes) = binary("lt", i, j), (const(b, "bool") for b in (False, True))
        first = select(binary("gt" if largest else "lt", x, y), yes, select(binary("eq", x, y), ahead, no))
        if dtype.is_float(x.dtype):
            first = select(intrinsic("isnan", x), select(intrinsic("isnan", y), ahead, yes), first)
        return select(first, i, j), select(first, x, y)
    return comm_reducer(combine, lambda i, x: (max_value(i), (min_value if largest else max_value)(x)),
                        name="argmax" if largest else "argmin")


def _text(combiner: CommReducer) -> str:
    return ", ".join(map(str, (*combiner.result, *combiner.identity)))


def _counts(place: Expr, axes: Sequence[tir.IterVar]) -> bool:
    """True when place is the number of an element, counted row by row."""
    atoms, offset = linear(place)
    strides, step = {}, 1
    for v in reversed(axes):
        strides[v.var] = step
        step *= v.domain.extent.value if isinstance(v.domain.extent, IntImm) else 0
    return offset == 0 and {k: n for k, n in atoms.items() if n} == strides


def _matches(work: Work) -> Match | None:
    if len(work.first.block.writes) != 2 or not work.may_be_replaced:
        return None
    found = places(work.first, work.target)
    return None if found is None else work.match(plan=found)


@rule("lanes_of_places", phase="rewrite", priority=20, targets=CPU, matches=_matches)
def look_in_lanes(sch: Schedule, match: Match, target: Target) -> tir.PrimFunc:
    """Let each lane of a few vectors find its best element, and compare what the lanes found."""
    func, nest = sch.func, sch.get(sch.get_loops(match.first.rv)[0])
    root = func.body
    assert isinstance(root, tir.BlockRealize)
    work = _Rewriting(match.first.block, match.plan, names_of(func))
    new = seq([work.shares(), work.final()])
    block = root.block.replace(body=rewrite(root.block.body, lambda s: new if s is nest else None),
                               alloc_buffers=(*root.block.alloc_buffers, *work.buffers))
    return func.with_body(root.replace(block=block))


class _Rewriting:
    """The two nests that take the place of block."""

    def __init__(self, block: tir.Block, plan: Places, taken: set[str]) -> None:
        self.block, self.plan, self.taken = block, plan, taken
        self.spatial = [v for v in block.iter_vars if v.iter_type != tir.COMM_REDUCE]
        self.reduced = [v for v in block.iter_vars if v.iter_type == tir.COMM_REDUCE]
        shape = (*(v.domain.extent for v in self.spatial), IntImm(plan.lanes, self.kind))
        kinds = self.kind, plan.reduction.terms[1].dtype
        self.buffers = tuple(tir.Buffer(self._name(f"{block.name}_{name}"), shape, kind, scope="local")
                             for name, kind in zip(("at", "best"), kinds))

    @property
    def kind(self) -> str:
        """The type of the numbers of steps and lanes."""
        return self.plan.extent.dtype

    def _name(self, base: str) -> str:
        numbered = (f"{base}_{n}" for n in itertools.count(1))
        name = next(x for x in itertools.chain([base], numbered) if x not in self.taken)
        self.taken.add(name)
        return name

    def shares(self) -> tir.Stmt:
        """The best element of each lane, and its step."""
        plan, low = self.plan, self.plan.reduction.combiner.identity[1]
        axes = [tir.IterVar.over(v.domain.extent, v.var.name) for v in self.spatial]
        lane = tir.IterVar.over(IntImm(plan.lanes, self.kind), "lane")
        steps = simplified(ceildiv(plan.extent, const(plan.lanes, self.kind)))
        step = tir.IterVar.over(cast(self.kind, steps), "step", tir.COMM_REDUCE)
        at = binary("add", binary("mul", step.var, plan.lanes), lane.var)
        table: dict[tir.Var, tir.Node] = {old.var: new.var for old, new in zip(self.spatial, axes)}
        value = substitute(plan.reduction.terms[1], {**table, **self._indices(at)})
        if not isinstance(plan.extent, IntImm) or plan.extent.value % plan.lanes:
            value = if_then_else(intrinsic("likely", binary("lt", at, plan.extent)), value, low)
        point = (*(v.var for v in axes), lane.var)
        name = self._name(f"{self.block.name}_lanes")
        body, init = self._step(point, step.var, value), self._stores(point, (const(0, self.kind), low))
        return _nest(name, [*axes, lane, step], body, init, [element_region(b, point) for b in self.buffers])

    def _step(self, point: tuple[Expr, ...], step: Expr, value: Expr) -> tir.Stmt:
        """A later element takes the place of one that is worse, or of any number if it is NaN."""
        at, best = (tir.Load(b, point) for b in self.buffers)
        better = logical_not(binary("ge" if self.plan.largest else "le", best, value))
        if dtype.is_float(value.dtype):
            better = select(intrinsic("isnan", best), const(False, "bool"), better)
        return self._stores(point, (select(better, step, at), select(better, value, best)))

    def _stores(self, point: tuple[Expr, ...], values: Sequence[Expr]) -> tir.Stmt:
        return seq(tir.Store(b, e, point) for b, e in zip(self.buffers, values))

    def _indices(self, at: Expr) -> Mapping[tir.Var, tir.Node]:
        """The reduction axes at an element, counted row by row."""
        found = digits(at, [v.domain.extent for v in self.reduced]) if len(self.reduced) > 1 else (at,)
        return {v.var: e for v, e in zip(self.reduced, found, strict=True)}

    def final(self) -> tir.Stmt:
        """The best of the lanes."""
        plan, found = self.plan, self.plan.reduction
        lane = tir.IterVar.over(IntImm(plan.lanes, self.kind), "lane", tir.COMM_REDUCE)
        point = (*(v.var for v in self.spatial), lane.var)
        at, best = (tir.Load(b, point) for b in self.buffers)
        place = cast(found.terms[0].dtype, binary("add", binary("mul", at, plan.lanes), lane.var))
        if not isinstance(plan.extent, IntImm):
            place = select(binary("lt", lane.var, plan.extent), place, max_value(place.dtype))
        pair = Reduction(_reducer(plan.largest).combiner((place.dtype, best.dtype), True), found.targets, found.point,
                         (place, best))
        body = pair.step(pair.targets, pair.point, pair.terms)
        return _nest(self.block.name, [*self.spatial, lane], body, self.block.init, self.block.writes)


def _nest(name: str, axes: Sequence[tir.IterVar], body: tir.Stmt, init: tir.Stmt | None,
          writes: Sequence[tir.BufferRegion]) -> tir.Stmt:
    """Loops around a block over its own axes."""
    block = with_reads(tir.Block(name, tuple(axes), (), tuple(writes), body, init))
    loops = [tir.Var(f"{v.var.name}_{name}", v.dtype) for v in axes]
    stmt: tir.Stmt = tir.BlockRealize(tuple(loops), const(1, "bool"), block)
    for var, v in reversed(list(zip(loops, axes, strict=True))):
        stmt = tir.loop(var, v.domain.extent, stmt)
    return stmt


def _are_lanes(work: Work) -> Match | None:
    """What `look_in_lanes` makes: pairs of lanes, and their reduction."""
    if len(work.blocks) < 2:
        return None
    shares, block = work.blocks[:2]
    pairs = all(len(b.block.writes) == 2 and len(b.reduced) == 1 for b in (shares, block))
    if not pairs or shares.spatial != (*block.spatial, *block.reduced) or reduction_of(block.block) is None:
        return None
    written = {r.buffer for r in shares.block.writes}
    return work.match(2) if written <= {x.buffer for x in block.loads} else None


@rule("places", priority=28, targets=CPU, matches=_are_lanes)
def schedule_places(sch: Schedule, match: Match, target: Target) -> None:
    """Look through a row in the lanes of vectors, then compare the lanes, four with each other at a time; rows on all
    threads."""
    shares, block = match.blocks
    *rows, _ = sch.get_loops(block.rv)
    if not rows:
        lane, step = sch.get_loops(shares.rv)
        sch.reorder(step, lane)
    combine_lanes(sch, Lanes(block.rv, shares.rv), rows[-1] if rows else None)
    parallelize(sch, rows, shares.points, target)
