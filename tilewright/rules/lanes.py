"""Reductions in the lanes of vectors: each lane reduces a part of the terms, then lanes are combined, four into one.

The parts are rfactored (Suriana, Adams and Kamil, Parallel associative reductions in Halide, CGO 2017). How many there
are depends on extents and the vector length alone.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.rules.elementwise import VECTORS_IN_FLIGHT, constant_extent
from tilewright.rules.facts import BlockFacts, facts_of, steps_by_one, uses
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.schedule.analysis.reducers import reduction_of
from tilewright.schedule.intrinsics import DotIntrin
from tilewright.support import config
from tilewright.support.target import Target
from tilewright.tir import Expr, Load, Var, dtype, is_const, structural_equal, walk

EXACT = ("max", "min", "bitand", "bitor", "bitxor", "and", "or")
WAYS = 4                         # lanes that are combined into one at a time
UNKNOWN = 1024                   # what an extent that is not known is taken for


def is_reorderable(facts: BlockFacts) -> bool:
    """True for a reduction whose terms may be combined in any order: integers and extrema always, floating-point sums
    and products unless TILEWRIGHT_STRICT_MATH is set."""
    found = reduction_of(facts.block)
    if found is None:
        return False
    exact = all(op in EXACT for op in found.operators) or not any(dtype.is_float(b.dtype) for b in found.targets)
    return exact or not config.get("STRICT_MATH")


def line_of_terms(facts: BlockFacts) -> int:
    """How many of the last reduced axes the terms of a result follow in memory; 0 where they do not.

    Every operand that varies with the last axis does so in steps of one element. Axes before it count too where every
    operand that varies with one of them has all as its last indices, each along a whole dimension.
    """
    axes = facts.reduced_axes
    varying = [x for x in facts.operands if uses(x, axes[-1])]
    if not varying or not all(_runs_along(x, axes[-1]) for x in varying):
        return 0
    count = 1
    while count < len(axes) and None not in facts.reduced[-count:] and _end_with(facts, axes[-count - 1:]):
        count += 1
    return count


def _runs_along(x: Load, axis: Var) -> bool:
    *others, last = _up_to(x, axis)
    return steps_by_one(last, axis) and not any(n is axis for i in others for n in walk(i))


def _up_to(x: Load, axis: Var) -> tuple[Expr, ...]:
    """The indices of x, but for those of dimensions of one element behind the axis."""
    end = len(x.indices)
    while end > 1 and is_const(x.buffer.shape[end - 1], 1) and x.indices[end - 1] is not axis and not x.buffer.strides:
        end -= 1
    return x.indices[:end]


def _end_with(facts: BlockFacts, axes: Sequence[Var]) -> bool:
    extents = [v.domain.extent for v in facts.block.iter_vars if any(v.var is a for a in axes)]
    n = len(axes)
    return all(len(x.indices) >= n and not x.buffer.strides and all(i is v for i, v in zip(x.indices[-n:], axes))
               and all(structural_equal(d, e) for d, e in zip(x.buffer.shape[-n:], extents))
               for x in facts.operands if any(uses(x, v) for v in axes))


def length_of_line(facts: BlockFacts) -> int:
    """The terms that follow each other in memory."""
    count = line_of_terms(facts)
    return math.prod(UNKNOWN if e is None else e for e in facts.reduced[-count:]) if count else 0


def in_vectors(facts: BlockFacts, target: Target) -> bool:
    """True for a reduction whose terms lie together, a vector of them at least, and may be combined in any order."""
    if 0 in (*facts.spatial, *facts.reduced) or facts.is_opaque or facts.runs_along_last_axis:
        return False
    return length_of_line(facts) >= facts.lanes(target) and is_reorderable(facts)


def lanes_of(facts: BlockFacts, target: Target) -> int:
    """Lanes for a line of terms: of several vectors, to hide the latency of each other's operations; a power of 2."""
    lanes, length = facts.lanes(target), length_of_line(facts)
    while 2 * lanes < length and lanes < facts.lanes(target) * VECTORS_IN_FLIGHT:
        lanes *= 2
    return lanes


@dataclass(frozen=True)
class Lanes:
    """A reduction in two blocks: `shares` reduces the share of each lane, `block` combines them. dot: the instruction
    that adds a few neighbouring terms to each lane, if there is one."""
    block: BlockRV
    shares: BlockRV
    dot: DotIntrin | None = None


def split_into_lanes(sch: Schedule, facts: BlockFacts, target: Target, lanes: int | None = None,
                     dot: DotIntrin | None = None) -> Lanes:
    """Let each of `lanes` reduce its share of every line of terms, so that the block itself has them to combine.

    dot: an instruction with as many lanes, each of which takes a group of neighbouring terms.
    """
    *_, last = reduced = sch.get_loops(facts.rv)[len(facts.spatial):]
    count = line_of_terms(facts)
    if count > 1:
        last = sch.fuse(*reduced[-count:])
    groups = [dot.group] if dot else []
    _, lane, *_ = sch.split(last, [None, lanes or lanes_of(facts, target), *groups])
    return Lanes(facts.rv, sch.rfactor(lane, -1, "global" if dot else "local"), dot)


def combine_lanes(sch: Schedule, lanes: Lanes, place: LoopRV | None, results: int = 0) -> LoopRV:
    """Reduce the shares in vectors, at a place that gives a result (None: there is one), and combine them there; the
    loop over the vectors of a share.

    A quarter of the lanes each time: registers are added whole, then parts of one. results: the number of loops below
    the place that give a few results, whose shares are reduced side by side.
    """
    if place is None:
        *steps, lane = sch.get_loops(lanes.shares)
    else:
        sch.compute_at(lanes.shares, place, preserve_unit_loops=True)
        steps_of_lane = len(facts_of(sch, lanes.shares).reduced)
        lane, *steps = sch.get_loops(lanes.shares)[-steps_of_lane - 1:]
        side_by_side = sch.get_loops(lanes.shares)[-steps_of_lane - 1 - results:-steps_of_lane - 1]
        group = [steps.pop()] if lanes.dot else []
        sch.reorder(*steps, *side_by_side, lane, *group)
        short = [s for s in steps[1:] if (constant_extent(sch, s) or WAYS) < WAYS]
        for loop in (*short, *side_by_side):
            sch.unroll(loop)
    if lanes.dot is None:
        sch.vectorize(lane)
        sch.decompose_reduction(lanes.shares, steps[0])
    else:
        start = sch.decompose_reduction(lanes.shares, steps[0])
        sch.vectorize(sch.get_loops(start)[-1])
        sch.tensorize(lane, lanes.dot.of_lines)
        sch.set_scope(start, 0, "local")
    width = constant_extent(sch, sch.get_loops(lanes.block)[-1]) or 1
    while width > WAYS:
        width //= WAYS
        _, lane = sch.split(sch.get_loops(lanes.block)[-1], [None, width])
        quarter = sch.rfactor(lane, -1, "local")
        ways, lane = sch.get_loops(quarter)[-2:]
        sch.vectorize(lane)
        sch.decompose_reduction(quarter, ways)
        sch.unroll(ways)
    *_, lane = sch.get_loops(lanes.block)
    sch.decompose_reduction(lanes.block, lane)
    sch.unroll(lane)
    return steps[-1]
