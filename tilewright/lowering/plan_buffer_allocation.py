"""Moves every allocation to the innermost place that holds all accesses to it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright import tir
from tilewright.lowering.scopes import reads_memory
from tilewright.tir.buffer import DIM_ALIGN
from tilewright.tir.node import Node, children, map_children, walk
from tilewright.tir.shared_work import filled_together, is_shared
from tilewright.tir.stmt import is_thread_axis
from tilewright.tir.symbols import free_vars

Path = tuple[Node, ...]                       # the loops and blocks around a statement, outermost first


@dataclass
class _Survey:
    """What one walk over the function found out about its allocated buffers."""
    home: dict[tir.Buffer, Path] = field(default_factory=dict)        # the path down to the block that allocates it
    path: dict[tir.Buffer, Path] = field(default_factory=dict)        # the common path of its accesses
    carrying: dict[tir.Buffer, set[int]] = field(default_factory=dict)       # the depths of loops that may carry values
    driving: dict[tir.Var, frozenset[int]] = field(default_factory=dict)     # the depths of loops that drive a variable
    by_data: dict[tir.Var, tir.Buffer] = field(default_factory=dict)


def plan_buffer_allocation(func: tir.PrimFunc) -> tir.PrimFunc:
    """Every buffer allocated in a block is allocated at the lowest common ancestor of its accesses.

    The place is a block, or the body of a loop, which then holds an Allocate. It stays inside of every loop around all
    accesses that runs its iterations at once: each has a buffer of its own. From there inwards it stays outside of
    every loop that carries values of the buffer: a serial loop that drives a reduction (or ordered) axis of a block
    that writes it. Shared memory stays outside of the threads that share it, unless they fill it together: then
    barriers part its uses, and it may be allocated (for all threads, once) where they are. Buffers whose extents read
    memory stay, since it may change; those without an access vanish.
    """
    survey = _Survey()
    _visit(func.body, (), survey)
    if not survey.home:
        return func
    places: dict[int, list[tir.Buffer]] = {}
    together = filled_together(func)
    for buffer in survey.home:
        if buffer in survey.path:
            path = survey.home[buffer] if reads_memory(buffer.shape) else _outside_of_carrying(buffer, survey)
            places.setdefault(id(_shared_place(buffer, path, buffer in together)), []).append(buffer)
    return func.replace(body=_place(func.body, places))


def _outside_of_carrying(buffer: tir.Buffer, survey: _Survey) -> Path:
    """The common path of the accesses of buffer, down to the first loop that carries values of it from one iteration
    to the next: of those inside of its block, and of the loops around all accesses that run their iterations at once.
    """
    path, start = survey.path[buffer], len(survey.home[buffer])
    for depth in range(start, len(path)):
        if is_shared(buffer) and _is_thread_loop(path[depth]):
            break                                      # its threads share the buffer
        if _runs_at_once(path[depth]):
            start = depth + 1
    return path[:min((d for d in survey.carrying.get(buffer, ()) if d >= start), default=len(path))]


def _shared_place(buffer: tir.Buffer, path: Path, together: bool) -> Node:
    """The last of path, but for shared memory what stands around the loops over the threads of a block.

    together: they fill it together, and what stands around the loops that spread this over them will do.
    """
    if is_shared(buffer):
        seen: set[str] = set()
        for k, node in enumerate(path):
            if isinstance(node, tir.For) and is_thread_axis(node.thread_tag):
                if not together or node.thread_tag in seen and node.thread_tag.startswith("threadIdx"):
                    return path[k - 1]
                seen.add(node.thread_tag)
    return path[-1]


def _visit(node: Node, path: Path, survey: _Survey) -> None:
    match node:
        case tir.For(var):
            survey.driving[var] = frozenset((len(path),))
            _visit(node.min, path, survey)
            _visit(node.extent, path, survey)
            _visit(node.body, (*path, node), survey)
        case tir.BlockRealize(values, predicate, block):
            for e in (*values, predicate):
                _visit(e, path, survey)
            _enter(block, values, path, survey)
        case tir.Store(buffer) | tir.Load(buffer):
            _meet(buffer, path, survey)
            for child in children(node):
                _visit(child, path, survey)
        case tir.Var():
            if node in survey.by_data:
                _meet(survey.by_data[node], path, survey)
        case _:
            for child in children(node):
                _visit(child, path, survey)


def _enter(block: tir.Block, values: Sequence[tir.Expr], path: Path, survey: _Survey) -> None:
    carrying = set()
    for axis, value in zip(block.iter_vars, values, strict=True):
        depths = survey.driving[axis.var] = frozenset(d for v in free_vars(value) for d in survey.driving.get(v, ()))
        if axis.iter_type != tir.DATA_PARALLEL:
            carrying |= {d for d in depths if not _runs_at_once(path[d])}
    inside = (*path, block)
    for buffer in block.alloc_buffers:
        survey.home[buffer] = inside
        survey.by_data[buffer.data] = buffer
    for region in (*block.reads, *block.writes):
        _meet(region.buffer, inside, survey)
    for view in block.match_buffers:
        survey.by_data[view.buffer.data] = view.source.buffer
        _meet(view.source.buffer, inside, survey)
    for part in (block.init, block.body):
        if part is not None:
            _visit(part, inside, survey)
    stores = [stmt.buffer for stmt in walk(block.body) if isinstance(stmt, tir.Store)] if carrying else []
    for buffer in (*(region.buffer for region in block.writes), *stores):
        survey.carrying.setdefault(buffer, set()).update(carrying)


def _runs_at_once(node: Node) -> bool:
    """True for a loop whose iterations carry nothing to each other."""
    return isinstance(node, tir.For) and node.kind not in (tir.SERIAL, tir.UNROLLED)


def _is_thread_loop(node: Node) -> bool:
    return isinstance(node, tir.For) and is_thread_axis(node.thread_tag)


def _meet(buffer: tir.Buffer, path: Path, survey: _Survey) -> None:
    """Shorten the buffer's path to what it shares with this access; it stays in the block that allocates it, whose
    instances have memory of their own."""
    home = survey.home.get(buffer)
    if home is None:
        return
    if len(path) < len(home):
        path = home
    before = survey.path.get(buffer)
    if before is None:
        survey.path[buffer] = path
        return
    shared = 0
    for a, b in zip(before, path, strict=False):
        if a is not b:
            break
        shared += 1
    survey.path[buffer] = before[:shared]


def _place(node: Node, places: dict[int, list[tir.Buffer]]) -> Node:
    if isinstance(node, tir.Expr):
        return node
    new = map_children(node, lambda child: _place(child, places))
    here = tuple(places.get(id(node), ()))
    if isinstance(new, tir.Block):
        if not here and not new.alloc_buffers:
            return new
        # what a block allocates is no part of what it reads or writes
        reads, writes = ([r for r in regions if r.buffer not in here] for regions in (new.reads, new.writes))
        notes = _aligned(new, [*(r.buffer for r in writes), *here])
        return new.replace(alloc_buffers=here, reads=tuple(reads), writes=tuple(writes), annotations=notes)
    if isinstance(new, tir.For) and here:
        body = new.body
        for buffer in reversed(here):
            body = tir.Allocate(buffer, body)
        return new.replace(body=body)
    return new


def _aligned(block: tir.Block, buffers: Sequence[tir.Buffer]) -> Mapping[str, Any]:
    """The annotations of block, with the buffers to align counted in `buffers`: what it writes, then what it
    allocates."""
    rows = block.annotations.get(DIM_ALIGN)
    if rows is None:
        return block.annotations
    return {**block.annotations,
            DIM_ALIGN: [[buffers.index(block.writes[position].buffer), *row] for position, *row in rows]}
