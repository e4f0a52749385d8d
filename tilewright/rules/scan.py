"""The schedule of one block of a scan's steps: inside the step, vectors along the last axis, threads over the rest."""
from __future__ import annotations

import math

from tilewright.rules.elementwise import constant_extent, parallelize, vectorize_last
from tilewright.rules.table import CPU, Match, every, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target


@rule("step", priority=10, targets=CPU, matches=every("step"))
def schedule_step(sch: Schedule, match: Match, target: Target) -> None:
    """Vectorise and parallelise the axes of a block other than that of the steps; a reduction accumulates vectors
    where neighbours in memory go to neighbouring results."""
    facts = match.first
    loops = sch.get_loops(facts.rv)[1:]
    axes, reduced = loops[:len(facts.spatial) - 1], loops[len(facts.spatial) - 1:]
    points = math.prod(1024 if e is None else e for e in (*facts.spatial[1:], *facts.reduced))
    if reduced and axes and facts.runs_along_last_axis and constant_extent(sch, axes[-1]) != 1:
        outside, inside = sch.split(axes[-1], [None, facts.lanes(target)])
        sch.reorder(outside, *reduced, inside)
        sch.vectorize(inside)
        axes[-1] = outside
    elif axes and not reduced:
        axes[-1:] = vectorize_last(sch, axes[-1], facts.lanes(target))
    if reduced:
        sch.decompose_reduction(facts.rv, reduced[0])
    parallelize(sch, axes, points, target)
