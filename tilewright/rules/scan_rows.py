"""The schedule of a recurrence along rows, such as a running sum along the last axis: a few rows side by side.

A step waits for the one before it, so one row takes the latency of a step for each element; other rows fill that time.
"""
from __future__ import annotations

from tilewright.rules.attempt import attempt
from tilewright.rules.elementwise import parallelize, vectorize_last
from tilewright.rules.facts import BlockFacts, is_local, is_step, uses
from tilewright.rules.reduction import rows_in_flight
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target


def runs_along_rows(step: BlockFacts) -> bool:
    """True when the elements that the steps take follow each other in memory, and those of one step lie apart."""
    if len(step.spatial) < 2 or step.spatial[-1] == 1 or step.runs_along_last_axis or step.is_costly:
        return False
    time, last = step.spatial_axes[0], step.spatial_axes[-1]
    return any(uses(x, last) and uses(x.replace(indices=x.indices[-1:]), time) for x in step.operands)


def _matches(work: Work) -> Match | None:
    """The start of a recurrence, its only step, and the only block that reads it."""
    if len(work.blocks) < 3 or work.kind != "elementwise":
        return None
    sch, (start, step, reader) = work.schedule, work.blocks[:3]
    alone = is_step(sch, step.rv) and not is_step(sch, reader.rv)
    plain = not any(b.is_opaque or b.is_reduction for b in (step, reader))
    if not alone or not plain or start.written is not step.written or not is_local(sch, step):
        return None
    readers = {c.name for c in sch.get_consumers(step.rv)} - {step.rv.name}
    fits = readers == {reader.rv.name} and len(reader.spatial) == len(step.spatial) and runs_along_rows(step)
    return work.match(3) if fits else None


@rule("scan_rows", priority=15, targets=CPU, matches=_matches)
def schedule_scan_rows(sch: Schedule, match: Match, target: Target) -> None:
    """Take the steps of a few rows side by side, to their ends, then compute the block that reads them; each row in
    the order of the program, groups of rows on all threads."""
    start, step, reader = match.blocks
    sch.transform_layout(step.rv, ("write", 0), lambda *v: (*v[1:], v[0]))
    time, *rest, last = sch.get_loops(step.rv)
    groups, rows = sch.split(last, [None, rows_in_flight(step.spatial[-1], (None,))])
    sch.reorder(*rest, groups, time, rows)
    sch.unroll(rows)
    moved = attempt(sch, lambda: sch.reverse_compute_at(reader.rv, groups))
    sch.compute_at(start.rv, groups)
    if not moved:                # it reads the start, too, which has to be in the loop before
        sch.reverse_compute_at(reader.rv, groups)
    vectorize_last(sch, sch.get_loops(reader.rv)[-1], reader.lanes(target))
    parallelize(sch, [*rest, groups], step.points, target)
