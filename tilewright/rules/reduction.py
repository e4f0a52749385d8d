"""Schedules of plain reductions, several results at a time, each in a register; of chains such as softmax, by rows."""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence

from tilewright.rules.attempt import attempt
from tilewright.rules.elementwise import constant_extent, parallelize, vectorize_last
from tilewright.rules.facts import BlockFacts
from tilewright.rules.lanes import UNKNOWN, combine_lanes, in_vectors, split_into_lanes
from tilewright.rules.table import CPU, Match, Work, every, rule
from tilewright.schedule import LoopRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import dtype

ROWS_IN_FLIGHT = 8               # sums in scalars that hide the latency of each other's additions
LONG_ROW = 32                    # elements from which on a sum is bound by that latency
LINES_PER_THREAD = 4             # of results, from which on threads take whole lines


@rule("reduction", priority=20, with_epilogue=60, targets=CPU, matches=every("reduction"))
def schedule_reduction(sch: Schedule, match: Match, target: Target) -> None:
    """Accumulate a tile of results in registers, then run the elementwise block that reads it.

    Where neighbours in memory go to neighbouring results the tile is a few vectors; where each result is the sum of
    a row it is a few rows, whose sums run side by side. Every result is summed in the order of the program.
    """
    facts, epilogue = match.first, match.epilogue
    if not facts.spatial:
        schedule_plain_reduction(sch, match, target)
        return
    if facts.runs_along_last_axis:
        rows = 0
    else:
        rows = rows_in_flight(facts.spatial[-1], facts.reduced)
    if epilogue is None:
        epilogue = sch.cache_write(facts.rv, 0, "local")
    else:
        sch.set_scope(facts.rv, 0, "local")
    *outer, last = sch.get_loops(epilogue)
    if not rows:
        outer += vectorize_last(sch, last, facts.lanes(target))
    elif rows == 1:
        outer.append(last)
    else:
        outside, inside = sch.split(last, [None, rows])
        sch.unroll(inside)
        outer.append(outside)
    sch.compute_at(facts.rv, outer[-1], preserve_unit_loops=True)
    inner = sch.get_loops(facts.rv)[len(outer):]
    axes, reduced = inner[:len(facts.spatial)], inner[len(facts.spatial):]
    sch.reorder(*reduced, *axes)
    if constant_extent(sch, axes[-1]) != 1:
        (sch.unroll if rows else sch.vectorize)(axes[-1])
    sch.decompose_reduction(facts.rv, reduced[0])
    lines = math.prod(e if e is not None else UNKNOWN for e in facts.spatial[:-1])
    if rows == 1 and lines >= LINES_PER_THREAD * target.num_cores:
        outer.pop()              # what follows each other in memory stays together, for LLVM's vectorizer
    parallelize(sch, outer, facts.points, target)


def rows_in_flight(rows: int | None, reduced: tuple[int | None, ...]) -> int:
    """How many of `rows` results are summed side by side: a number that divides them where one near it does."""
    length = math.prod(LONG_ROW if e is None else e for e in reduced)
    if length < LONG_ROW or rows is not None and rows < 2:
        return 1
    if rows is None or rows >= ROWS_IN_FLIGHT:
        return next((n for n in range(ROWS_IN_FLIGHT, ROWS_IN_FLIGHT // 2, -1) if (rows or 0) % n == 0), ROWS_IN_FLIGHT)
    return rows


@rule("plain_reduction", priority=10, targets=CPU, matches=every("reduction"))
def schedule_plain_reduction(sch: Schedule, match: Match, target: Target) -> None:
    """Start each result before its sum, and run the results on all threads: legal for every reduction."""
    facts = match.first
    loops = sch.get_loops(facts.rv)
    sch.decompose_reduction(facts.rv, loops[len(facts.spatial)])
    parallelize(sch, loops[:len(facts.spatial)], facts.points, target)


FUNCTION_POINTS = 8              # elements of a sum that cost as much as one of a function such as exp
STREAMED_BYTES = 1 << 20         # from which on rows are taken to come from memory
SHORTEST_ROW, LONGEST_ROW = 1 << 10, 1 << 14     # bytes of those that are asked for while one is computed


def shares_rows(work: Work) -> int:
    """How many of the first blocks make a chain: over the rows of one array of results, with a reduction among them,
    and nothing in between that is seen from outside."""
    return max(_length(work, axes) for axes in range(len(work.first.spatial) + 1))


def _length(work: Work, axes: int) -> int:
    """How many blocks of a chain have the same `axes` for rows, and at most one more."""
    outputs, blocks, count = {b.name for b in work.schedule.func.buffers}, work.outside_steps, 0
    for b in blocks if axes else ():
        if b.is_opaque or b.is_contraction or len(b.spatial) not in (axes, axes + 1):
            break
        if b.spatial[:axes] != blocks[0].spatial[:axes]:
            break
        count += 1
        if b.written.name in outputs:
            break
    return count if any(b.is_reduction for b in blocks[:count]) else 0


def match_rows(work: Work) -> Match | None:
    """The longest chain; plan: how many axes its rows have, as few as there may be."""
    count = shares_rows(work)
    return work.match(count, next(n for n in itertools.count() if _length(work, n) == count)) if count > 1 else None


@rule("rows", priority=50, targets=CPU, matches=match_rows)
def schedule_rows(sch: Schedule, match: Match, target: Target) -> None:
    """Compute all blocks for the rows at hand, before the next rows; rows on all threads, columns in vectors.

    The last block gives the rows (its axes but the columns). Reductions along memory run in the lanes of vectors; where
    there are others and rows are long, several are summed side by side.
    """
    blocks, axes = match.blocks, match.plan
    in_lanes = {b.rv: split_into_lanes(sch, b, target) for b in blocks if b.is_reduction and in_vectors(b, target)}
    count = max(rows_in_flight(b.spatial[axes - 1], b.reduced) if b.is_reduction and b.rv not in in_lanes else 1
                for b in blocks)
    rows = sch.get_loops(blocks[-1].rv)[:axes]
    if count > 1:
        rows[-1], _ = sch.split(rows[-1], [None, count])
    sums: list[tuple[BlockFacts, LoopRV]] = []
    for b in reversed(blocks):
        if any(compute_in_vectors(sch, b, *s) for s in sums):
            continue
        if b is not blocks[-1]:
            sch.compute_at(b.rv, rows[-1], preserve_unit_loops=True)
        if b.rv in in_lanes:
            sums.append((b, combine_lanes(sch, in_lanes[b.rv], rows[-1])))
        else:
            schedule_columns(sch, b, axes, count, target)
    first = blocks[0]
    if count == 1 and rows_are_streamed(first, axes):
        if target.num_cores > 1:
            rows[-1], row = sch.split(rows[-1], [None, ROWS_IN_FLIGHT])
        else:
            row = rows.pop()
        reader = in_lanes[first.rv].shares if first.rv in in_lanes else first.rv
        sch.prefetch(reader, first.operands[0].buffer.name, row, spread=True)
    compute_in_place(sch, blocks)
    parallelize(sch, rows, sum(b.points for b in blocks) * FUNCTION_POINTS, target)


def compute_in_place(sch: Schedule, blocks: Sequence[BlockFacts]) -> None:
    """Keep the rows that the last block computes its own from, element by element, where it writes these: less memory
    takes part. A caller may let results be written over arguments of which an element is read before: so none is read
    behind the block that writes the rows."""
    last, written = blocks[-1], {b.written: n for n, b in enumerate(blocks)}
    for n in sorted({written[x.buffer] for x in last.operands if x.buffer in written}):
        behind = [x.buffer for b in blocks[n + 1:] for x in b.operands]
        if not any(b in sch.func.buffers for b in behind):
            attempt(sch, functools.partial(sch.compute_in_place, last.rv, blocks[n].written.name))


def rows_are_streamed(first: BlockFacts, axes: int) -> bool:
    """True where the rows that the first block reads are larger than the caches all together, and a few fit into the
    nearest: the next one may come while one is computed."""
    known = (*first.spatial, *first.reduced)
    if len({x.buffer for x in first.operands}) != 1 or None in known or (first.spatial[axes - 1] or 0) % ROWS_IN_FLIGHT:
        return False
    nbytes = dtype.bytes_of(first.operands[0].buffer.dtype) * first.points
    row = nbytes // math.prod(e or 1 for e in first.spatial[:axes])
    return SHORTEST_ROW <= row <= LONGEST_ROW and nbytes >= STREAMED_BYTES


def compute_in_vectors(sch: Schedule, b: BlockFacts, reduction: BlockFacts, vectors: LoopRV) -> bool:
    """Compute the columns of an elementwise block where a reduction of rows takes them, vector by vector; False where
    it does not, or that is not legal."""
    if b.is_reduction or len(reduction.reduced) > 1 or not any(x.buffer is b.written for x in reduction.operands):
        return False

    def move() -> None:
        sch.compute_at(b.rv, vectors)
        sch.vectorize(sch.get_loops(b.rv)[-1])
    return attempt(sch, move)


def schedule_columns(sch: Schedule, b: BlockFacts, rows: int, count: int, target: Target) -> None:
    """The loops of a block below those of the `rows` outer axes, of which the last takes `count` steps: columns in
    vectors, or the sums of the rows side by side."""
    inner = sch.get_loops(b.rv)[rows:]
    if not b.is_reduction:
        if inner:
            vectorize_last(sch, inner[-1], b.lanes(target))
    elif count > 1:
        axes, reduced = inner[:len(b.spatial)], inner[len(b.spatial):]
        if len(axes) == rows:
            sch.reorder(*reduced, *axes)
            sch.unroll(axes[-1])
        elif b.runs_along_last_axis:
            sch.reorder(*reduced, *axes)
            sch.vectorize(axes[-1])
