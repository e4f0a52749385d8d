"""Reductions of several results at once, such as the places and the values of the largest elements of columns."""
from __future__ import annotations

from tilewright.rules.elementwise import parallelize, vectorize_last
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target


def _matches(work: Work) -> Match | None:
    """One whose neighbours in memory go to neighbouring results, of which there are more than one."""
    first = work.first
    fits = work.reduces_tuples and first.runs_along_last_axis and first.spatial[-1] != 1
    return work.match() if fits else None


@rule("several_results", priority=12, targets=CPU, matches=_matches)
def schedule_several_results(sch: Schedule, match: Match, target: Target) -> None:
    """Keep the results of a few vectors of columns in registers, while the reduction runs; columns on all threads."""
    facts = match.first
    copies = [sch.cache_write(facts.rv, n, "local") for n in range(len(facts.block.writes))]
    loops = sch.get_loops(facts.rv)
    spatial, reduced = loops[:len(facts.spatial)], loops[len(facts.spatial):]
    outer = [*spatial[:-1], *vectorize_last(sch, spatial[-1], facts.lanes(target))]
    *_, lane = sch.get_loops(facts.rv)[:len(outer) + 1]
    sch.reorder(*outer, *reduced, lane)
    for copy in copies:
        sch.reverse_compute_at(copy, outer[-1], preserve_unit_loops=True)
        sch.vectorize(sch.get_loops(copy)[-1])
    sch.decompose_reduction(facts.rv, reduced[0])
    parallelize(sch, outer, facts.points, target)
