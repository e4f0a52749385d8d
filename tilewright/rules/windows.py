"""The schedule of pooling: reductions of windows that slide along rows of an image, some neighbours at a time.

    y[b, c, i, j] = the largest of x[b, c, i * stride + h, j * stride + w] over h, w

Neighbours of a row are the lanes of a few vectors, which every element of the window meets in turn; where windows are
apart, what lies between is loaded too. The border is written plane by plane, into memory that stays in the cache.
"""
from __future__ import annotations

import math

from tilewright.arith.linear import linear
from tilewright.rules.elementwise import VECTORS_IN_FLIGHT, parallelize, vectorize_last
from tilewright.rules.facts import BlockFacts, facts_of, is_local, uses
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target
from tilewright.tir import Call, Select, Var, walk

MOST_TERMS = 32                  # of a window that is written out
LONGEST_STRIDE = 4               # of windows whose elements are chosen out of whole vectors
LEAST = 8                        # neighbours from which on vectors are worth it


def planes(facts: BlockFacts) -> int | None:
    """How many spatial axes come before those along which windows of one operand slide, the last one among them, in
    steps of a few elements; None where there are no such windows, or none overlap along that axis."""
    known = (*facts.spatial[-1:], *facts.reduced)
    if len(facts.operands) != 1 or None in known or 0 in (*facts.spatial, *known):
        return None
    x, axes = facts.operands[0], facts.spatial_axes
    if facts.is_costly or any(isinstance(n, Select) or isinstance(n, Call) and n.op == "if_then_else"
                              for n in walk(facts.block.body)):
        return None
    along: dict[Var, Var] = {}                                # reduced axis -> the spatial axis of its window
    for i in x.indices:
        moving, inside = ([v for v in group if any(n is v for n in walk(i))] for group in (axes, facts.reduced_axes))
        if len(inside) > 1 or inside and (len(moving) != 1 or inside[0] in along):
            return None
        along |= {k: v for k in inside for v in moving}
    last = axes[-1] if axes else None
    slides = len(along) == len(facts.reduced) and any(v is last for v in along.values())
    if not slides or any(uses(x.replace(indices=x.indices[:-1]), v) for v in along.values() if v is last):
        return None
    stride = linear(x.indices[-1])[0].get(axes[-1], 0)
    length = max(e or 0 for e, k in zip(facts.reduced, facts.reduced_axes) if along[k] is last)
    return min(axes.index(v) for v in along.values()) if 1 <= stride <= min(length - 1, LONGEST_STRIDE) else None


def _matches(work: Work) -> Match | None:
    """The border, if there is one, the reduction, and the elementwise block that reads it, if there is one; plan: the
    number of them that is the reduction, and the number of its axes for planes."""
    border = int(work.kind == "elementwise")
    rest = Work(work.schedule, work.target, work.outside_steps[border:])
    if not rest.blocks or rest.kind != "reduction" or (rest.first.spatial or (0,))[-1] in (None, *range(LEAST)):
        return None
    if border and (work.first.is_costly or not is_local(work.schedule, work.first) or [
            c.name for c in work.schedule.get_consumers(work.first.rv)] != [rest.first.rv.name]):
        return None
    outer = planes(rest.first)
    return None if outer is None else work.match(border + 1 + (rest.epilogue is not None), (border, outer))


@rule("windows", priority=74, targets=CPU, matches=_matches)
def schedule_windows(sch: Schedule, match: Match, target: Target) -> None:
    """Reduce the windows of neighbours in a row side by side, in vectors, plane by plane, and write the border of a
    plane before; planes on all threads."""
    border, outer = match.plan
    facts = match.blocks[border]
    if len(match.blocks) > border + 1:
        epilogue = match.blocks[border + 1].rv
        sch.set_scope(facts.rv, 0, "local")
    else:
        epilogue = sch.cache_write(facts.rv, 0, "local")
    *loops, last = sch.get_loops(epilogue)
    outside, lanes = sch.split(last, [None, choose_width(facts, target)])
    sch.vectorize(lanes)
    loops.append(outside)
    sch.compute_at(facts.rv, outside, preserve_unit_loops=True)
    inner = sch.get_loops(facts.rv)[len(loops):]
    axes, window = inner[:len(facts.spatial)], inner[len(facts.spatial):]
    sch.reorder(*window, *axes)
    sch.vectorize(axes[-1])
    sch.decompose_reduction(facts.rv, window[0])
    terms = 1
    for loop, extent in zip(reversed(window), reversed(facts.reduced)):
        terms *= extent or 1
        if terms <= MOST_TERMS:
            sch.unroll(loop)
    if border:
        pad = match.first.rv
        if outer:
            sch.compute_at(pad, loops[outer - 1])
        vectorize_last(sch, sch.get_loops(pad)[-1], facts_of(sch, pad).lanes(target))
    parallelize(sch, loops[:outer] or loops[:1], facts.points, target)


def choose_width(facts: BlockFacts, target: Target) -> int:
    """Neighbours that are reduced side by side: all of a row, or as many as divide it, where that fills vectors."""
    length, most = facts.spatial[-1] or 1, facts.lanes(target) * VECTORS_IN_FLIGHT
    parts = math.ceil(length / most)
    return next((length // n for n in range(parts, 2 * parts + 1) if length % n == 0), most)
