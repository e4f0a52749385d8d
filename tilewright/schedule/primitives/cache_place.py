"""Where a copy of a buffer stands: before all that reads it, or behind the block that writes it."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.analysis.dataflow import (
    children_of,
    positions,
    readers_of,
    writers_of,
)
from tilewright.schedule.analysis.ordering import BEFORE, order
from tilewright.schedule.analysis.starts import require_start_copied
from tilewright.schedule.primitives.caching import other_buffers
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import legal, require
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import walk
from tilewright.tir.stmt import BlockRealize, For, Stmt, seq


def before_consumers(sch: Schedule, buffer: Buffer,
                      consumers: Sequence[BlockRealize]) -> tuple[list[For], list[Stmt], int]:
    """(loops around the place, the statements there, position): before the first consumer and, in the outermost
    loop where that is so, after the writers of buffer that come before it, in earlier iterations too."""
    names = list(sch.index.realizes)
    first = min(names.index(c.block.name) for c in consumers)
    writers = [w for w in writers_of(sch, buffer) if names.index(w.block.name) < first
               or any(BEFORE in order(sch, sch.index, w, c, other_buffers(c.block, buffer)) for c in consumers)]
    loops: list[For] = []
    children = children_of(sch.root.block)
    while True:
        uses, made = positions(children, consumers), positions(children, writers)
        if loops:                           # a writer behind the consumers comes before them in earlier iterations
            made = [p for p in made if p <= min(uses)]
        if not made or max(made) < min(uses):
            return loops, children, min(uses)
        child = children[min(uses)]
        require(len(uses) == 1 and isinstance(child, For) and max(made) == min(uses),
                f"{buffer.name} is not complete before its first consumer", *consumers, *writers,
                hint="name the consumers that share a loop with the producer in consumer_blocks")
        assert isinstance(child, For)
        loops.append(child)
        children = children_of(child)


def apart(sch: Schedule, realize: BlockRealize, buffer: Buffer) -> tuple[list[For], list[Stmt], int]:
    """(loops around the place, the statements there, position of the one with the block): the outermost place where
    that statement holds no other block that uses the buffer. What the block starts is there too."""
    others = [r for r in (*readers_of(sch, buffer), *writers_of(sch, buffer)) if r is not realize]
    loops: list[For] = []
    children = children_of(sch.root.block)
    while True:
        here = positions(children, [realize])[0]
        child = children[here]
        if here not in positions(children, others):
            require_start_copied(sch, realize, buffer, loops)
            return loops, children, here
        require(isinstance(child, For), f"block {realize.block.name} shares a branch with other blocks that use "
                f"{buffer.name}", realize)
        assert isinstance(child, For)
        loops.append(child)
        children = children_of(child)


def after_writer(sch: Schedule, realize: BlockRealize, buffer: Buffer) -> tuple[list[For], list[Stmt], int]:
    """(loops around the place, the statements there, position): after the writer, before all other users of buffer.

    Another writer may come between two steps of a reduction only where these are in one iteration of the place.
    """
    loops, children, here = apart(sch, realize, buffer)
    writers = [w for w in writers_of(sch, buffer) if w is not realize]
    split = {n for iv, value in realize.bound
             if iv.iter_type == COMM_REDUCE for n in walk(value)} & {loop.loop_var for loop in loops}
    legal(not writers or not split, f"{buffer.name} is written by block {realize.block.name} and by block "
          f"{', '.join(w.block.name for w in writers)}, which may come between two steps of its reduction",
          realize, *writers)
    _require_run(sch, realize, loops, buffer)
    return loops, children, here + 1


def _require_run(sch: Schedule, realize: BlockRealize, loops: Sequence[For], buffer: Buffer) -> None:
    """Refuse where a loop between the place and the block, which drives none of its axes, may have no iterations."""
    used = {n for value in realize.iter_values for n in walk(value)}
    analyzer = sch.analyzer_at(None)
    for loop in sch.index.loops_above(realize):
        if loop.loop_var not in used and not any(loop is outer for outer in loops):
            legal(analyzer.prove(binary("gt", loop.extent, 0)), f"{buffer.name} would be copied where loop "
                  f"{loop.loop_var.name} has no iterations and block {realize.block.name} wrote nothing", loop, realize)


def insert(sch: Schedule, loops: Sequence[For], children: Sequence[Stmt], at: int, new: Stmt) -> None:
    """Put new among the statements of the innermost of loops, or of the root block."""
    body = seq([*children[:at], new, *children[at:]])
    if loops:
        sch.replace(loops[-1], loops[-1].replace(body=body))
    else:
        sch.replace(sch.root.block, sch.root.block.replace(body=body))
