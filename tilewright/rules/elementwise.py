"""Schedules of blocks without reductions: wide vectors along the last axis, threads over the rest."""
from __future__ import annotations

from tilewright.rules.kinds import BlockFacts
from tilewright.schedule import LoopRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import IntImm, Load, dtype, walk

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
    lanes = target.vector_bytes // max(dtype.bytes_of(facts.block.writes[0].buffer.dtype), 1)
    outer += vectorize_last(sch, last, lanes)
    parallelize(sch, outer, facts.points, target)


def vectorize_last(sch: Schedule, last: LoopRV, lanes: int) -> list[LoopRV]:
    """Vectorise a loop by several registers' worth of lanes; the loops left outside of it."""
    extent = sch.get(last).extent
    width = lanes * VECTORS_IN_FLIGHT
    if isinstance(extent, IntImm):
        if extent.value <= 1:
            return [last]
        while width > lanes and width > extent.value:
            width //= 2
        width = min(width, extent.value) if extent.value < lanes else width
    outside, inner = sch.split(last, [None, width])
    sch.vectorize(inner)
    return [outside]


def parallelize(sch: Schedule, loops: list[LoopRV], points: int, target: Target) -> None:
    """Run the fused loops on all threads when there is enough work."""
    if not loops or points < PARALLEL_POINTS or target.num_cores == 1:
        return
    sch.parallel(sch.fuse(*loops) if len(loops) > 1 else loops[0])


def same_layout(facts: BlockFacts) -> bool:
    """True when every access is a whole compact buffer of the block's shape, indexed by its axes in order."""
    axes = [v.var for v in facts.block.iter_vars]
    shape = [v.dom.extent for v in facts.block.iter_vars]
    for region in facts.block.writes:
        if region.buffer.strides or len(region.buffer.shape) != len(axes):
            return False
    if any(r.min is not v for w in facts.block.writes for r, v in zip(w.region, axes)):
        return False
    for access in (n for n in walk(facts.block.body) if isinstance(n, Load)):
        buffer = access.buffer
        if buffer.strides or len(access.indices) != len(axes):
            return False
        if any(i is not v for i, v in zip(access.indices, axes)):
            return False
        if any(bool(d != e) for d, e in zip(buffer.shape, shape)):
            return False
    return True
