"""Schedules of plain reductions and of row-wise chains such as softmax."""
from __future__ import annotations

from tilewright.rules.elementwise import parallelize, vectorize_last
from tilewright.rules.kinds import BlockFacts, facts_of
from tilewright.schedule import BlockRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import COMM_REDUCE, Var, dtype, walk


def schedule_reduction(sch: Schedule, facts: BlockFacts, epilogue: BlockRV | None, target: Target) -> None:
    """Accumulate in registers; a spatial last axis that the input is contiguous along becomes the vector."""
    loops = sch.get_loops(facts.rv)
    spatial = loops[:len(facts.spatial)]
    last = facts.block.iter_vars[len(facts.spatial) - 1].var if facts.spatial else None
    if last is None or not _contiguous_along(facts, last):
        if epilogue is not None and facts.spatial:
            sch.compute_at(facts.rv, sch.get_loops(epilogue)[-1], preserve_unit_loops=True)
            parallelize(sch, sch.get_loops(epilogue)[:len(facts.spatial)], facts.points, target)
        else:
            sch.decompose_reduction(facts.rv, loops[len(facts.spatial)])
            parallelize(sch, spatial, facts.points, target)
        return
    lanes = target.vector_bytes // dtype.bytes_of(facts.block.writes[0].buffer.dtype)
    if epilogue is None:
        epilogue = sch.cache_write(facts.rv, 0, "local")
    else:
        sch.set_scope(facts.rv, 0, "local")
    *outer, column = sch.get_loops(epilogue)
    outer += vectorize_last(sch, column, lanes)
    sch.compute_at(facts.rv, outer[-1], preserve_unit_loops=True)
    inner = sch.get_loops(facts.rv)[len(outer):]
    axes, reduced = inner[:len(facts.spatial)], inner[len(facts.spatial):]
    sch.reorder(*reduced, *axes)
    sch.vectorize(axes[-1])
    sch.decompose_reduction(facts.rv, reduced[0])
    parallelize(sch, outer, facts.points, target)


def _contiguous_along(facts: BlockFacts, v: Var) -> bool:
    """True when v is the last index of some input, and no reduction axis is."""
    reduced = {i.var for i in facts.block.iter_vars if i.iter_type == COMM_REDUCE}
    lasts = [x.indices[-1] for x in facts.loads if x.buffer is not facts.block.writes[0].buffer and x.indices]
    return any(i is v for i in lasts) and not any(n in reduced for i in lasts for n in walk(i))


def schedule_rows(sch: Schedule, blocks: list[BlockFacts], target: Target) -> None:
    """Compute a chain of blocks over the same rows one row at a time, rows on all threads, columns in vectors.

    The last block gives the rows (its first axis); every other block is computed for the row at hand.
    """
    out = blocks[-1]
    row = sch.get_loops(out.rv)[0]
    work = sum(b.points for b in blocks)
    for b in reversed(blocks[:-1]):
        sch.compute_at(b.rv, row, preserve_unit_loops=True)
    for b in blocks:
        inner = sch.get_loops(b.rv)[1:]
        lanes = target.vector_bytes // dtype.bytes_of(b.block.writes[0].buffer.dtype)
        spatial = facts_of(sch, b.rv)
        if not spatial.is_reduction and inner:
            vectorize_last(sch, inner[-1], lanes)
    parallelize(sch, [row], work * 8, target)


