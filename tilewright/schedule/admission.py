"""Which functions a schedule takes: in block form, of no block axis that certainly leaves its domain, whose blocks
compute from their axes."""
from __future__ import annotations

from collections.abc import Iterator

from tilewright.arith.axis_domains import departures
from tilewright.schedule.state import block_root
from tilewright.support.errors import ScheduleError
from tilewright.tir.accesses import Use, reads_memory, uses, uses_below
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Var
from tilewright.tir.node import Node, statements, walk
from tilewright.tir.printer import show
from tilewright.tir.stmt import Block, BlockRealize, LetStmt, PrimFunc


def admit(func: PrimFunc) -> None:
    """Raises ScheduleError, with the place marked, for a function of which primitives could change the meaning.

    They take the domain of an axis for all that its block computes, what a block computes for told by its axes, buffers
    of different names for different memory in a block that holds others, and what annotations and the extents, strides
    and offsets of buffers say for the same wherever these stand.
    """
    block_root(func)
    for left in departures(func):
        raise ScheduleError(f"{func.name}: {left}\n\n{show(func, [left.realize.block])}", left.hint)
    for let, block in _lets_in_blocks(func):
        raise ScheduleError(f"{func.name}: block {block.name} uses {let.var.name}, which is bound outside of it, and "
                            f"would mean something else where it is moved\n\n{show(func, [let, block])}",
                            f"bind {let.var.name} in the block, or give the block an axis for it")
    for block, several in _shared_views(func):
        names = " and ".join(b.name for b in several)
        raise ScheduleError(f"{func.name}: in block {block.name} {names} are the same memory, which is "
                            f"written\n\n{show(func, [block])}", "use one name for it: the view alone")
    said = list(_said(func))
    written = {use.buffer for use in uses_below(func.body) if use.writes} if said else set()
    for use, stmt, what in said:
        if use.buffer is not None and use.buffer in written:
            raise ScheduleError(f"{func.name}: {what} reads {use.buffer.name}, which the function writes"
                                f"\n\n{show(func, [stmt])}", "read what no statement writes there")


def _lets_in_blocks(func: PrimFunc) -> Iterator[tuple[LetStmt, Block]]:
    """The lets around blocks that these use other than for the values of their axes and their predicates, and that do
    not bind the same value in a whole call."""
    fixed = {n for b in func.buffers for e in b.shape for n in walk(e)} | set(func.params)
    for let in (s for s in statements(func.body) if isinstance(s, LetStmt)):
        if not reads_memory(let.value) and all(n in fixed for n in walk(let.value) if isinstance(n, Var)):
            fixed.add(let.var)
            continue
        for block in (s for s in statements(let.body) if isinstance(s, Block)):
            if any(n is let.var for n in walk(block)):
                yield let, block


def _shared_views(func: PrimFunc) -> Iterator[tuple[Block, list[Buffer]]]:
    """The blocks around others that use memory by several names, a view and its source or two views, and write it.

    Blocks that hold no other are not meant: their regions, which name sources, speak for them.
    """
    blocks = [s.block for s in statements(func.body) if isinstance(s, BlockRealize)]
    source = {m.buffer: m.source.buffer for block in blocks for m in block.match_buffers}
    for block in (b for b in blocks if b.match_buffers):
        inner = [s.block for s in statements(block.body) if isinstance(s, BlockRealize)]
        below = {m.buffer for b in inner for m in b.match_buffers}
        names: dict[Buffer, set[Buffer]] = {}               # memory -> its names in block
        written = set()
        for use in uses_below(block.body) if inner else ():
            name = use.buffer
            while name in below:
                name = source[name]
            memory = name
            while memory in source:
                memory = source[memory]
            if name is not None and memory is not None:
                names.setdefault(memory, set()).add(name)
                written |= {memory} if use.writes else set()
        several = [sorted(names[m], key=lambda b: b.name) for m in names if m in written]
        yield from ((block, found) for found in several if len(found) > 1)


def _said(func: PrimFunc) -> Iterator[tuple[Use, Node, str]]:
    """The reads in annotations and in the declarations of buffers, with what they stand in."""
    declared: list[tuple[Node, Node]] = [(b, func) for b in func.buffer_map.values()]
    for stmt in statements(func.body):
        declared += [(b, stmt) for b in getattr(stmt, "alloc_buffers", ())]
        declared += [(m.buffer, stmt) for m in getattr(stmt, "match_buffers", ())]
        if getattr(stmt, "annotations", None):
            yield from ((use, stmt, "an annotation") for use in uses(stmt) if use.field == "annotations")
    for buffer, at in declared:
        yield from ((use, at, "the declaration of a buffer") for use in uses(buffer))
    yield from ((use, func, "an attribute") for use in uses(func) if use.field == "attrs")
