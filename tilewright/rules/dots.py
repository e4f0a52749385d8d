"""The schedule of few rows times a transposed matrix: each result is the product of two lines of memory.

A matrix that is read once is not worth a copy in which columns would lie together. So terms are summed in the lanes of
vectors (lanes.py), for all rows and a few columns side by side, and each line of the matrix passes by once.
"""
from __future__ import annotations

from tilewright.rules.blocking import registers
from tilewright.rules.contraction import is_product
from tilewright.rules.elementwise import parallelize
from tilewright.rules.facts import BlockFacts
from tilewright.rules.lanes import combine_lanes, is_reorderable, line_of_terms, split_into_lanes
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target

MOST_ROWS = 8                    # with more, a copy of the matrix pays
SHORTEST = 4                     # vectors of terms: with fewer, combining lanes takes longer than the sums


def few_axis(facts: BlockFacts, target: Target) -> int | None:
    """Which of the last two spatial axes has few elements, -2 or -1, where the block is a product of lines of memory
    whose terms may be added in any order; None for all others."""
    extents = [e for e in (*facts.spatial[-2:], *facts.reduced) if e is not None]
    if not is_product(facts) or len(extents) < 3 or not is_reorderable(facts):
        return None
    rows, columns, depth = extents
    if min(rows, columns) > MOST_ROWS or depth < SHORTEST * facts.lanes(target) or line_of_terms(facts) != 1:
        return None
    return -2 if rows <= columns else -1


def _matches(work: Work) -> Match | None:
    few = few_axis(work.first, work.target) if work.kind == "reduction" else None
    return None if few is None else work.match(plan=few)


@rule("dots", priority=32, with_epilogue=72, targets=CPU, matches=_matches)
def schedule_dots(sch: Schedule, match: Match, target: Target) -> None:
    """Sum the products of lines of memory in the lanes of vectors, for all rows and a few columns side by side."""
    facts, epilogue, few = match.first, match.epilogue, match.plan
    lanes, reader = split_into_lanes(sch, facts, target, facts.lanes(target)), facts.rv
    if epilogue is not None:
        sch.set_scope(facts.rv, 0, "local")
        reader = epilogue
    *batch, first, second = sch.get_loops(reader)[:len(facts.spatial)]
    rows, columns = (first, second) if few == -2 else (second, first)
    columns, column = sch.split(columns, [None, max(1, registers(target) // 2 // facts.spatial[few])])
    sch.reorder(columns, rows, column)
    if epilogue is not None:
        sch.compute_at(facts.rv, columns, preserve_unit_loops=True)
    combine_lanes(sch, lanes, columns, results=2)
    parallelize(sch, [*batch, columns], facts.points, target)
