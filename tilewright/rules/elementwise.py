"""Schedules of blocks without reductions: wide vectors along the last axis, threads over the rest."""
from __future__ import annotations

from tilewright.rules.attempt import attempt
from tilewright.rules.facts import BlockFacts, steps_by_one, uses
from tilewright.rules.table import CPU, Match, every, rule
from tilewright.schedule import LoopRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import For, IntImm, dtype, structural_equal, walk

PARALLEL_POINTS = 1 << 15        # below it, waking a thread costs more than it saves
LINE = 64                        # bytes of a cache line
VECTORS_IN_FLIGHT = 4            # vectors a loop body works on, to hide the latency of loads


@rule("elementwise", priority=10, targets=CPU, matches=every("elementwise"))
def schedule_elementwise(sch: Schedule, match: Match, target: Target) -> None:
    """Vectorise the last spatial axis and run the others on all threads.

    Axes whose elements lie one after the other in every buffer are fused first, so that a short last axis
    does not leave vectors half empty. Where an operand lies along another axis, as in a transposition, tiles of as
    many steps of that axis as a cache line has elements use each line whole.
    """
    facts = match.first
    loops = sch.get_loops(facts.rv)
    if not loops:
        return
    if len(loops) > 1 and same_layout(facts):
        loops = [sch.fuse(*loops)]
    *outer, last = loops
    across = axis_across(facts)
    if across is not None:
        outer = tile_lines(sch, loops, *across, facts.lanes(target))
    else:
        outer += vectorize_last(sch, last, facts.lanes(target))
    parallelize(sch, outer, facts.points, target)


def axis_across(facts: BlockFacts) -> tuple[int, int] | None:
    """(position, steps) of an axis but the last along which an operand lies in memory, while the last one jumps from
    line to line of it; steps of the axis stay in one line. None where there is none, or tiles would not be full."""
    axes, extents = facts.spatial_axes, facts.spatial
    for x in facts.operands:
        if not x.indices or not uses(x, axes[-1]) or any(n is axes[-1] for n in walk(x.indices[-1])):
            continue
        steps = max(2, LINE // dtype.bytes_of(x.buffer.dtype))
        for place, axis in enumerate(axes[:-1]):
            full = all(e is None or e >= steps for e in (extents[place], extents[-1]))
            if full and steps_by_one(x.indices[-1], axis):
                return place, steps
    return None


def tile_lines(sch: Schedule, loops: list[LoopRV], place: int, steps: int, lanes: int) -> list[LoopRV]:
    """Innermost `steps` of the loop at `place`, and in them a vector of the last; the loops left outside.

    The steps are unrolled: vectors that lie across memory are then read as lines, and transposed in registers.
    """
    outside, inside = sch.split(loops[place], [None, steps])
    vectors, lane = sch.split(loops[-1], [None, lanes])
    outer = [*loops[:place], outside, *loops[place + 1:-1], vectors]
    sch.reorder(*outer, inside, lane)
    sch.unroll(inside)
    sch.vectorize(lane)
    return outer


def vectorize_last(sch: Schedule, last: LoopRV, lanes: int) -> list[LoopRV]:
    """Vectorise a loop by several registers' worth of lanes; the loops left outside of it."""
    extent = constant_extent(sch, last)
    width = lanes * VECTORS_IN_FLIGHT
    if extent is not None:
        if extent <= 1:
            return [last]
        while width > lanes and width > extent:
            width //= 2
        width = min(width, extent)
    outside, inner = sch.split(last, [None, width])
    sch.vectorize(inner)
    return [outside]


def constant_extent(sch: Schedule, loop: LoopRV) -> int | None:
    """The extent of a loop, None where it is symbolic."""
    node = sch.get(loop)
    assert isinstance(node, For)
    return node.extent.value if isinstance(node.extent, IntImm) else None


def parallelize(sch: Schedule, loops: list[LoopRV], points: int, target: Target) -> None:
    """Run the loops on all threads, fused where that is legal, when there is enough work."""
    if not loops or points < PARALLEL_POINTS or target.num_cores == 1:
        return
    if not attempt(sch, lambda: sch.parallel(sch.fuse(*loops) if len(loops) > 1 else loops[0])):
        attempt(sch, lambda: sch.parallel(loops[0]))


def same_layout(facts: BlockFacts) -> bool:
    """True when every access is a whole compact buffer of the block's shape, indexed by its axes in order."""
    axes = facts.spatial_axes
    shape = [v.domain.extent for v in facts.block.iter_vars]
    accesses = [(facts.written, [r.min for r in facts.block.writes[0].region]),
                *((x.buffer, list(x.indices)) for x in facts.loads)]
    for buffer, indices in accesses:
        if buffer.strides or len(indices) != len(axes) or any(i is not v for i, v in zip(indices, axes)):
            return False
        if not all(structural_equal(d, e) for d, e in zip(buffer.shape, shape)):
            return False
    return True
