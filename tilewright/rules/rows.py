"""The schedule of a chain of blocks over common rows, such as softmax."""
from __future__ import annotations

from tilewright.rules.elementwise import parallelize, vectorize_last
from tilewright.rules.reduction import rows_in_flight
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target

FUNCTION_POINTS = 8              # elements of a sum that cost as much as one of a function such as exp


def shares_rows(work: Work) -> int:
    """How many of the first blocks make a chain: over the rows of one matrix or vector of results, with a reduction
    among them, and nothing in between that is seen from outside."""
    outputs, blocks, count = {b.name for b in work.schedule.func.buffers}, work.outside_steps, 0
    for b in blocks:
        if b.is_opaque or b.is_contraction or len(b.spatial) not in (1, 2) or b.spatial[0] != blocks[0].spatial[0]:
            break
        count += 1
        if b.written.name in outputs:
            break
    return count if any(b.is_reduction for b in blocks[:count]) else 0


def _matches(work: Work) -> Match | None:
    count = shares_rows(work)
    return work.match(count) if count > 1 else None


@rule("rows", priority=50, targets=CPU, matches=_matches)
def schedule_rows(sch: Schedule, match: Match, target: Target) -> None:
    """Compute all blocks for the rows at hand, before the next rows; rows on all threads, columns in vectors.

    The last block gives the rows (its first axis). Where rows are long, several are summed side by side.
    """
    blocks = match.blocks
    out = blocks[-1]
    count = max(rows_in_flight(b.spatial[0], b.reduced) if b.is_reduction else 1 for b in blocks)
    row = sch.get_loops(out.rv)[0]
    if count > 1:
        row, _ = sch.split(row, [None, count])
    for b in reversed(blocks[:-1]):
        sch.compute_at(b.rv, row, preserve_unit_loops=True)
    for b in blocks:
        inner = sch.get_loops(b.rv)[1:]
        if not b.is_reduction:
            if inner:
                vectorize_last(sch, inner[-1], b.lanes(target))
        elif count > 1:
            axes, reduced = inner[:len(b.spatial)], inner[len(b.spatial):]
            if len(axes) == 1:
                sch.reorder(*reduced, *axes)
                sch.unroll(axes[0])
            elif b.runs_along_last_axis:
                sch.reorder(*reduced, *axes)
                sch.vectorize(axes[-1])
    parallelize(sch, [row], sum(b.points for b in blocks) * FUNCTION_POINTS, target)
