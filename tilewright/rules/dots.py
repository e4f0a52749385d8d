"""The schedule of few rows times a transposed matrix: each result is the product of two lines of memory.

A matrix that is read once is not worth a copy in which columns would lie together. So terms are summed in the lanes of
vectors (lanes.py), for all rows and a few columns side by side, and each line of the matrix passes by once. A matrix
may be the product of several, such as numbers and the scales of their blocks. Of low-bit elements a dot product
instruction adds a group to each lane, where lines are whole numbers of vectors.
"""
from __future__ import annotations

import math

from tilewright.rules.blocking import registers
from tilewright.rules.dot_product import allowed_dots, dot_product
from tilewright.rules.elementwise import parallelize
from tilewright.rules.facts import BlockFacts, uses
from tilewright.rules.lanes import combine_lanes, is_reorderable, length_of_line, split_into_lanes
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.schedule.intrinsics import DotIntrin
from tilewright.support.target import Target
from tilewright.tir import dtype

MOST_ROWS = 8                    # with more, a copy of the matrix pays
WAY_BYTES, WAYS = 4096, 8        # of the first cache: lines of it that lie a way apart share a set
SHORTEST = 4                     # vectors of terms: with fewer, combining lanes takes longer than the sums


def few_axis(facts: BlockFacts, target: Target) -> int | None:
    """Which of the last two spatial axes has few elements, -2 or -1, where the block is a product of lines of memory
    whose terms may be added in any order; None for all others."""
    known = [e for e in (*facts.spatial[-2:], *facts.reduced) if e is not None]
    if not is_product_of_lines(facts) or len(known) < 2 + len(facts.reduced) or not is_reorderable(facts):
        return None
    rows, columns, *depth = known
    if min(rows, columns) > MOST_ROWS or math.prod(depth) < SHORTEST * facts.lanes(target):
        return None
    return (-2 if rows <= columns else -1) if length_of_line(facts) >= facts.lanes(target) else None


def is_product_of_lines(facts: BlockFacts) -> bool:
    """True for a reduction whose operands vary with the rows or with the columns of the result, or with neither, and
    with either of them at least one."""
    if not facts.is_reduction or facts.is_opaque or len(facts.spatial) < 2 or 0 in (*facts.spatial, *facts.reduced):
        return False
    rows, columns = ([uses(x, axis) for x in facts.operands] for axis in facts.spatial_axes[-2:])
    return any(rows) and any(columns) and not any(a and b for a, b in zip(rows, columns))


def dot_of_lines(facts: BlockFacts, target: Target) -> DotIntrin | None:
    """The dot product instruction for few rows times a transposed matrix of low-bit elements, both read in place; None
    where there is none, or lines are no whole number of its vectors."""
    product = dot_product(facts)
    if product is None or few_axis(facts, target) is None or not (product.a.runs_along_k and product.b.runs_along_k):
        return None
    depth = product.extents[2]
    return next((row for row in allowed_dots(product, target) if depth % (row.lanes * row.group) == 0), None)


def _matches(work: Work) -> Match | None:
    few = few_axis(work.first, work.target) if work.kind == "reduction" else None
    return None if few is None else work.match(plan=(few, None))


def _matches_dot(work: Work) -> Match | None:
    row = dot_of_lines(work.first, work.target) if work.kind == "reduction" else None
    return None if row is None else work.match(plan=(few_axis(work.first, work.target), row))


def side_by_side(facts: BlockFacts, few: int, target: Target) -> int:
    """How many columns are summed at once: their sums fit into half of the registers, and their lines into half of the
    first cache, of which those that lie multiples of a way apart share a set."""
    axis = facts.spatial_axes[-3 - few]
    element = max((dtype.bytes_of(x.buffer.dtype) for x in facts.operands if uses(x, axis)), default=1)
    sets = WAY_BYTES // math.gcd(math.prod(e or 1 for e in facts.reduced) * element, WAY_BYTES)
    return max(1, min(registers(target) // 2 // (facts.spatial[few] or 1), WAYS * sets // 2))


@rule("dots_of_groups", priority=42, with_epilogue=82, targets=("llvm",), matches=_matches_dot)
def schedule_dots_of_groups(sch: Schedule, match: Match, target: Target) -> None:
    """Sum the products of lines of memory in the lanes of vectors, a few neighbouring terms a lane by one instruction,
    for all rows and a few columns side by side."""
    schedule_dots(sch, match, target)


@rule("dots", priority=32, with_epilogue=72, targets=CPU, matches=_matches)
def schedule_dots(sch: Schedule, match: Match, target: Target) -> None:
    """Sum the products of lines of memory in the lanes of vectors, for all rows and a few columns side by side."""
    facts, epilogue, (few, dot) = match.first, match.epilogue, match.plan
    width = dot.lanes if dot else facts.lanes(target)
    lanes, reader = split_into_lanes(sch, facts, target, width, dot), facts.rv
    if epilogue is not None:
        sch.set_scope(facts.rv, 0, "local")
        reader = epilogue
    *batch, first, second = sch.get_loops(reader)[:len(facts.spatial)]
    rows, columns = (first, second) if few == -2 else (second, first)
    columns, column = sch.split(columns, [None, side_by_side(facts, few, target)])
    sch.reorder(columns, rows, column)
    if epilogue is not None:
        sch.compute_at(facts.rv, columns, preserve_unit_loops=True)
    combine_lanes(sch, lanes, columns, results=2)
    parallelize(sch, [*batch, columns], facts.points, target)
