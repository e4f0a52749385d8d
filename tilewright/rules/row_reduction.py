"""The schedule of reductions along memory: a row of terms at a time, in the lanes of vectors."""
from __future__ import annotations

from tilewright.rules.elementwise import parallelize
from tilewright.rules.lanes import combine_lanes, in_vectors, split_into_lanes
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target


def _matches(work: Work) -> Match | None:
    return work.match() if work.kind == "reduction" and in_vectors(work.first, work.target) else None


@rule("row_reduction", priority=22, with_epilogue=62, targets=CPU, matches=_matches)
def schedule_row_reduction(sch: Schedule, match: Match, target: Target) -> None:
    """Reduce each row in the lanes of a few vectors, combine them, and run the elementwise block that reads the result;
    rows on all threads."""
    facts, epilogue = match.first, match.epilogue
    lanes = split_into_lanes(sch, facts, target)
    if epilogue is None:
        rows = sch.get_loops(facts.rv)[:-1]
    else:
        sch.set_scope(facts.rv, 0, "local")
        rows = sch.get_loops(epilogue)
        if rows:
            sch.compute_at(facts.rv, rows[-1])
    combine_lanes(sch, lanes, rows[-1] if rows else None)
    parallelize(sch, rows, facts.points, target)
