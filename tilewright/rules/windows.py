"""The schedule of windows that slide along the rows of a plane: pooling, and convolutions of each channel by itself.

    y[b, c, i, j] = the largest of x[b, c, i * stride + h, j * stride + w] over h, w
    y[b, c, i, j] = sum of x[b, c, i * stride + h, j * stride + w] * k[c, h, w] over h, w

Neighbours of a row are the lanes of a few vectors, which every element of the window meets in turn; where windows are
apart, what lies between is loaded too. A tile has several rows, whose windows share most of what they read: while a
column of the window passes, a vector that one row has loaded is in a register for the others.

The border is written for a tile just before it, or for a plane where that is small. A vector that begins elsewhere than
those that were stored waits until these have reached the cache; so a few planes are written together where a plane is
smaller still and has several tiles.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.arith.linear import linear
from tilewright.rules.blocking import even, registers
from tilewright.rules.elementwise import VECTORS_IN_FLIGHT, constant_extent, parallelize, vectorize_last
from tilewright.rules.facts import BlockFacts, is_local, uses
from tilewright.rules.lanes import is_reorderable
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import LoopRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import Call, IntImm, Load, Select, Var, dtype, walk

MOST_TERMS = 16                  # of a window that is written out
LONGEST_STRIDE = 4               # of windows whose elements are chosen out of whole vectors
LEAST = 6                        # neighbours from which on vectors are worth it
MOST_ROWS = 7                    # of a tile
SHORTER = 2                      # vectors that take the place of a last one at most
MASKED_BYTES = 32                # of vectors, from which on machines load some of their lanes
PLANE_BYTES = 4096               # of a plane and its border: up to it they are written whole
FEW_BYTES = 1536                 # up to it, planes of several tiles are written together
TOGETHER = 4                     # planes that are


@dataclass(frozen=True)
class Windows:
    """Windows of an image.

    - border: blocks before the reduction, which write the image: 0 or 1.
    - outer: how many spatial axes come before those along which windows slide, the last one among them.
    - has_rows: they slide along the axis before the last, too.
    - stride: of windows along the last axis.
    """
    border: int
    image: Load
    outer: int
    has_rows: bool
    stride: int


def image_of(facts: BlockFacts) -> Load | None:
    """The one operand that varies with the last spatial axis; None where there is none, or for products whose operands
    are all read often, which other rules are for."""
    found = [x for x in facts.operands if facts.spatial and uses(x, facts.spatial_axes[-1])]
    return found[0] if len(found) == 1 and not facts.is_contraction else None


def windows_of(facts: BlockFacts, border: int = 0) -> Windows | None:
    """The windows of a reduction, which slide along the last spatial axis in steps of a few elements; None where there
    are none, none overlap along that axis, or another operand varies along with them."""
    known, x = (*facts.spatial[-1:], *facts.reduced), image_of(facts)
    if x is None or None in known or 0 in (*facts.spatial, *known):
        return None
    if facts.is_costly or any(isinstance(n, Select) or isinstance(n, Call) and n.op == "if_then_else"
                              for n in walk(facts.block.body)):
        return None
    axes, last = facts.spatial_axes, facts.spatial_axes[-1]
    along: dict[Var, Var] = {}                                # reduced axis -> the spatial axis of its window
    for i in x.indices:
        moving, inside = ([v for v in group if any(n is v for n in walk(i))] for group in (axes, facts.reduced_axes))
        if len(inside) > 1 or inside and (len(moving) != 1 or inside[0] in along):
            return None
        along |= {k: v for k in inside for v in moving}
    slides = len(along) == len(facts.reduced) and any(v is last for v in along.values())
    if not slides or uses(x.replace(indices=x.indices[:-1]), last):
        return None
    if any(uses(o, v) for o in facts.operands if o is not x for v in along.values()):
        return None
    stride = linear(x.indices[-1])[0].get(last, 0)
    length = max(e or 0 for e, k in zip(facts.reduced, facts.reduced_axes) if along[k] is last)
    if not 1 <= stride <= min(length - 1, LONGEST_STRIDE):
        return None
    has_rows = len(axes) > 1 and any(v is axes[-2] for v in along.values())
    return Windows(border, x, min(axes.index(v) for v in along.values()), has_rows, stride)


def _matches(work: Work) -> Match | None:
    """The border, if there is one, the reduction, and the elementwise block that reads it, if there is one."""
    border = int(work.kind == "elementwise")
    rest = Work(work.schedule, work.target, work.outside_steps[border:])
    if not rest.blocks or rest.kind != "reduction" or (rest.first.spatial or (0,))[-1] in (None, *range(LEAST)):
        return None
    if border and (work.first.is_costly or not is_local(work.schedule, work.first) or [
            c.name for c in work.schedule.get_consumers(work.first.rv)] != [rest.first.rv.name]):
        return None
    found = windows_of(rest.first, border)
    return None if found is None else work.match(border + 1 + (rest.epilogue is not None), found)


@rule("windows", priority=74, targets=CPU, matches=_matches)
def schedule_windows(sch: Schedule, match: Match, target: Target) -> None:
    """Reduce the windows of neighbours in some rows side by side, in vectors, and write the border of what they read
    before; planes on all threads."""
    plan: Windows = match.plan
    facts = match.blocks[plan.border]
    if len(match.blocks) > plan.border + 1:
        epilogue = match.blocks[plan.border + 1].rv
        sch.set_scope(facts.rv, 0, "local")
    else:
        epilogue = sch.cache_write(facts.rv, 0, "local")
    loops = sch.get_loops(epilogue)
    rows, width = choose_tile(facts, plan, target)
    loops[-1], lanes = sch.split(loops[-1], [None, width])
    sch.vectorize(lanes)
    place = loops[-1]
    if rows > 1:
        loops[-2], row = sch.split(loops[-2], [None, rows])
        sch.reorder(*loops, row, lanes)
        sch.unroll(row)
    sch.compute_at(facts.rv, place, preserve_unit_loops=True)
    schedule_terms(sch, facts, len(loops), rows, width)
    if plan.border:
        tiles = constant_extent(sch, loops[-2]) or 1 if plan.has_rows else 1
        write_border(sch, match.first, plan, loops, tiles, target)
    parallelize(sch, loops[:plan.outer] or loops[:1], facts.points, target)


def choose_tile(facts: BlockFacts, plan: Windows, target: Target) -> tuple[int, int]:
    """(rows, neighbours in each) that are reduced side by side.

    Neighbours are all of a row, or as many as divide it, where that fills vectors. A last vector that would be several
    shorter ones has empty lanes instead, where the machine can leave lanes out; not for windows that are apart, since
    the lanes that are loaded are others then. Rows take half of the registers with them, a quarter where elements are
    chosen out of other vectors.
    """
    length, lanes = facts.spatial[-1] or 1, facts.lanes(target)
    most = lanes * VECTORS_IN_FLIGHT
    parts = math.ceil(length / most)
    width = next((length // n for n in range(parts, 2 * parts + 1) if length % n == 0), most)
    rest = width % lanes
    if plan.stride == 1 and rest.bit_count() > SHORTER and target.vector_bytes >= MASKED_BYTES:
        width += (1 << rest.bit_length()) - rest
    if not plan.has_rows:
        return 1, width
    budget = registers(target) // (2 if plan.stride == 1 else 4)
    rows = max(1, min(MOST_ROWS, budget // math.ceil(width / lanes)))
    return rows if facts.spatial[-2] is None else even(facts.spatial[-2], rows), width


def schedule_terms(sch: Schedule, facts: BlockFacts, outside: int, rows: int, width: int) -> None:
    """The terms of a tile, below its `outside` outermost loops: column by column of the window, where rows share what
    they read and terms may come in any order."""
    inner = sch.get_loops(facts.rv)[outside:]
    axes, window = inner[:len(facts.spatial)], inner[len(facts.spatial):]
    if rows > 1 and is_reorderable(facts):
        window = [window[-1], *window[:-1]]
    sch.reorder(*window, *axes)
    if rows > 1:
        sch.unroll(axes[-2])
    _, lanes = sch.split(axes[-1], [None, width])
    sch.vectorize(lanes)
    sch.decompose_reduction(facts.rv, window[0])
    terms = 1
    for loop in reversed(window):
        terms *= constant_extent(sch, loop) or 1
        if terms <= MOST_TERMS:
            sch.unroll(loop)


def write_border(sch: Schedule, border: BlockFacts, plan: Windows, loops: list[LoopRV], tiles: int,
                 target: Target) -> None:
    """Write what a tile reads, a plane, or a few planes, before they are read; `loops` are those outside of tiles, of
    which a plane has some number."""
    size = plane_bytes(plan)
    if plan.has_rows and size > PLANE_BYTES:
        sch.compute_at(border.rv, loops[-2])
    elif plan.outer:
        last = plan.outer - 1
        if size <= FEW_BYTES and tiles > 1 and (constant_extent(sch, loops[last]) or 1) % TOGETHER == 0:
            loops[last], _ = sch.split(loops[last], [None, TOGETHER])
        sch.compute_at(border.rv, loops[last])
    vectorize_last(sch, sch.get_loops(border.rv)[-1], border.lanes(target))


def plane_bytes(plan: Windows) -> float:
    """Bytes of a plane of the image, where they are known; else infinite."""
    image = plan.image.buffer
    return math.prod(e.value if isinstance(e, IntImm) else math.inf for e in image.shape[plan.outer:]) * (
        dtype.bytes_of(image.dtype))
