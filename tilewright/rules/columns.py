"""The schedule of reductions along the lines of an array, such as the sums of the columns of a matrix."""
from __future__ import annotations

import math

from tilewright.rules.elementwise import parallelize, vectorize_last
from tilewright.rules.facts import BlockFacts, uses
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target

COLUMNS = 2048                   # results at once: a line of memory that long is read without a break
ROWS_AT_ONCE = 8                 # lines that are added to a vector of results while it is in a register
MANY_ROWS = 4 * ROWS_AT_ONCE     # with fewer, results in registers for all of them take no longer


def _matches(work: Work) -> Match | None:
    """Reductions along the lines of an array, many of them and long; with several results, too."""
    first = work.first
    if work.kind != "reduction" and not work.reduces_tuples:
        return None
    if not first.runs_along_last_axis or len({x.buffer for x in first.operands}) != 1:
        return None
    last, rows = first.spatial[-1], math.prod(e or 0 for e in first.reduced)
    plain = all(uses(x, v) for x in first.operands for v in first.spatial_axes)
    return work.match() if plain and rows >= MANY_ROWS and (last or 0) >= 2 * vector_of(first, work.target) else None


@rule("columns", priority=21, with_epilogue=61, targets=CPU, matches=_matches)
def schedule_columns(sch: Schedule, match: Match, target: Target) -> None:
    """Add a few lines of memory at a time to a line of results, which stays in the nearest cache, then run the
    elementwise block that reads it.

    Results in registers would take the lines apart: of each a piece is read, and the next piece when all lines have
    passed by. Every result is summed in the order of the program.
    """
    facts, epilogue = match.first, match.epilogue
    if epilogue is not None:
        sch.set_scope(facts.rv, 0, "local")
    *outer, last = sch.get_loops(epilogue or facts.rv)[:len(facts.spatial)]
    length = facts.spatial[-1] or COLUMNS
    tasks = math.prod(e or 1 for e in facts.spatial[:-1])
    vector = vector_of(facts, target)
    share = length if tasks >= target.num_cores else -(-length // target.num_cores)
    if min(COLUMNS, share) < length:
        last, inside = sch.split(last, [None, -(-min(COLUMNS, share) // vector) * vector])
        outer.append(last)
    else:
        inside = last
    if epilogue is not None:
        if outer:
            sch.compute_at(facts.rv, outer[-1], preserve_unit_loops=True)
        vectorize_last(sch, inside, facts.lanes(target))
    column = sch.get_loops(facts.rv)[-1 - len(facts.reduced)]
    *slow, row = sch.get_loops(facts.rv)[-len(facts.reduced):]
    column, lanes = sch.split(column, [None, vector])
    known = facts.reduced[-1] or 0
    most = max(1, ROWS_AT_ONCE // len(facts.block.writes))
    row, rows = sch.split(row, [None, next((n for n in range(most, most // 2, -1) if known % n == 0), most)])
    sch.reorder(*slow, row, column, rows, lanes)
    sch.unroll(rows)
    start = sch.decompose_reduction(facts.rv, (*slow, row)[0])
    sch.vectorize(sch.get_loops(start)[-1])
    sch.vectorize(lanes)
    parallelize(sch, outer, facts.points, target)


def vector_of(facts: BlockFacts, target: Target) -> int:
    """The results that are added to at once: a few registers."""
    return 4 * facts.lanes(target)
