"""The schedule of a full reduction, to one element or a few: parts of it side by side, in vectors and on all threads.

The parts are rfactored (Suriana, Adams and Kamil, Parallel associative reductions in Halide, CGO 2017). How many there
are depends on the extents and the vector length only, so a result does not depend on the number of threads.
"""
from __future__ import annotations

import math

from tilewright.rules.elementwise import PARALLEL_POINTS, VECTORS_IN_FLIGHT
from tilewright.rules.facts import BlockFacts
from tilewright.rules.lanes import is_reorderable
from tilewright.rules.reduction import shares_rows
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target

MOST_RESULTS = 8                 # results from which on their number gives enough to do side by side
SHORTEST = 256                   # terms below which splitting them costs more than it saves
MOST_CHUNKS = 64                 # of the terms, for threads


def is_full_reduction(facts: BlockFacts) -> bool:
    """True for a reduction of many terms to few results whose terms may be combined in any order."""
    results = _results(facts)
    if facts.is_opaque or not 0 < results <= MOST_RESULTS or facts.points < SHORTEST * results:
        return False
    return 0 not in facts.reduced and (results == 1 or _terms_lie_together(facts)) and is_reorderable(facts)


def _results(facts: BlockFacts) -> int:
    """How many elements are written; 0 where that is not known."""
    return math.prod(0 if e is None else e for e in facts.spatial)


def _terms_lie_together(facts: BlockFacts) -> bool:
    """True when the last indices of every operand are the reduction axes in order: the terms of a result follow each
    other in memory."""
    axes = facts.reduced_axes
    return all(len(x.indices) >= len(axes) and all(i is v for i, v in zip(x.indices[-len(axes):], axes))
               for x in facts.operands)


def _matches(work: Work) -> Match | None:
    fits = work.kind == "reduction" and is_full_reduction(work.first) and shares_rows(work) < 2
    return work.match() if fits else None


@rule("full_reduction", priority=90, targets=CPU, matches=_matches)
def schedule_full_reduction(sch: Schedule, match: Match, target: Target) -> None:
    """Reduce vectors of parts in each chunk of the terms, then the chunks, then the lanes.

    Several loops become one, unless a product of symbolic extents would lie in the indices: then the first is cut into
    chunks, the last into vectors.
    """
    facts = match.first
    loops = sch.get_loops(facts.rv)
    reduced = loops[len(facts.spatial):]
    if len(reduced) > 1 and None not in facts.reduced[1:]:
        reduced = [sch.fuse(*reduced)]
    lanes = facts.lanes(target) * VECTORS_IN_FLIGHT
    chunks = min(MOST_CHUNKS, facts.points // PARALLEL_POINTS)
    if len(reduced) == 1:
        lane = sch.split(reduced[0], [chunks, None, lanes] if chunks > 1 else [None, lanes])[-1]
    else:
        if chunks > 1:
            sch.split(reduced[0], [chunks, None])
        lane = sch.split(reduced[-1], [None, lanes])[-1]
    partial = sch.rfactor(lane, -1)
    if chunks > 1:
        by_lane, partial = partial, sch.rfactor(sch.get_loops(partial)[len(facts.spatial)], 0)
        *_, chunk, lane = sch.get_loops(by_lane)
        sch.vectorize(lane)
        sch.decompose_reduction(by_lane, chunk)
    copy = sch.cache_write(partial, 0, "local")
    *outer, lane = sch.get_loops(copy)
    sch.vectorize(lane)
    if outer:
        sch.compute_at(partial, outer[-1], preserve_unit_loops=True)
        own = sch.get_loops(partial)
        lane, steps = own[-len(reduced) - 1], own[-len(reduced):]
        sch.reorder(*steps, lane)
    else:
        *steps, lane = sch.get_loops(partial)
    sch.vectorize(lane)
    sch.decompose_reduction(partial, steps[0])
    last = sch.get_loops(facts.rv)
    sch.decompose_reduction(facts.rv, last[len(facts.spatial)])
    if chunks > 1 and target.num_cores > 1:
        sch.parallel(outer[0])
