"""Schedules of blocks without reductions: wide vectors along the last axis, threads over the rest."""
from __future__ import annotations

from tilewright.rules.attempt import attempt
from tilewright.rules.kinds import BlockFacts
from tilewright.schedule import LoopRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import For, IntImm, structural_equal

PARALLEL_POINTS = 1 << 15        # below it, waking a thread costs more than it saves
VECTORS_IN_FLIGHT = 4            # vectors a loop body works on, to hide the latency of loads


def schedule_elementwise(sch: Schedule, facts: BlockFacts, target: Target) -> None:
    """Vectorise the last spatial axis and run the others on all threads.

    Axes whose elements lie one after the other in every buffer are fused first, so that a short last axis
    does not leave vectors half empty.
    """
    loops = sch.get_loops(facts.rv)
    if not loops:
        return
    if len(loops) > 1 and same_layout(facts):
        loops = [sch.fuse(*loops)]
    *outer, last = loops
    outer += vectorize_last(sch, last, facts.lanes(target))
    parallelize(sch, outer, facts.points, target)


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
    shape = [v.dom.extent for v in facts.block.iter_vars if v.dom is not None]
    accesses = [(facts.written, [r.min for r in facts.block.writes[0].region]),
                *((x.buffer, list(x.indices)) for x in facts.loads)]
    for buffer, indices in accesses:
        if buffer.strides or len(indices) != len(axes) or any(i is not v for i, v in zip(indices, axes)):
            return False
        if not all(structural_equal(d, e) for d, e in zip(buffer.shape, shape)):
            return False
    return True
