"""Copies of buffers: a buffer is staged through one with other indices."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.arith.itermap import detect_iter_map
from tilewright.schedule.analysis.dataflow import require_leaf, require_stage, writes
from tilewright.schedule.analysis.domains import axis_domains
from tilewright.schedule.analysis.iteration import require_whole_iteration
from tilewright.schedule.analysis.legality import check_annotated_loops
from tilewright.schedule.analysis.ordering import place_in
from tilewright.schedule.analysis.parts import body_reads, loops_within
from tilewright.schedule.analysis.required import touched
from tilewright.schedule.index_map import IndexMap, new_shape
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives import caching
from tilewright.schedule.primitives.block_layout import map_as_text
from tilewright.schedule.primitives.cache_place import after_writer, before_consumers, insert
from tilewright.schedule.primitives.layout import buffer_as_position, chosen_buffer
from tilewright.schedule.primitives.storage import allocate, require_scope
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import legal, require
from tilewright.support.names import identifier
from tilewright.tir.buffer import Buffer, BufferRegion, Load, element_region
from tilewright.tir.expr import Call, Expr
from tilewright.tir.iter_var import DATA_PARALLEL, IterVar
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.stmt import BlockRealize, Store


@primitive(as_text=map_as_text)
def reindex_cache_read(sch: Schedule, block: BlockRV, read_buffer_index: int | str, storage_scope: str,
                       index_map: Callable[..., Any] | str) -> BlockRV:
    """Copy the elements that a block reads of a buffer into a new buffer, at indices of the caller's choice, and let it
    read these.

        for i, j in grid(n, m): C[i, j] = A[j, i + 1] * 2
    ->                                                         # index_map: lambda i, j: (i, j)
        for i, j in grid(n, m): A_local[i, j] = A[j, i + 1]
        for i, j in grid(n, m): C[i, j] = A_local[i, j] * 2

    read_buffer_index: the position among the buffers that block reads, or a name. index_map takes all iteration
    variables of the block and gives the indices in the new buffer, whose extents are the least that hold them. Other
    readers go on reading the old buffer. Returns the copying block, named like the new buffer: the old one's name, `_`,
    scope. It runs over the iteration variables that the element or its new place depends on.

    Legal when
    - the block reads one element of the buffer in each iteration and does not write the buffer;
    - index_map gives different elements different places;
    - all writers have finished before the copy, or start after the block.
    """
    realize = sch.realize(block)
    require_leaf(sch, realize)
    require_scope(storage_scope, realize)
    source = caching.chosen(realize, realize.block.reads, read_buffer_index, "reads").buffer
    name = caching.cache_name(source, storage_scope)
    return _read(sch, realize, source, name, storage_scope, _mapped(realize, index_map))


@primitive(as_text=map_as_text)
def reindex_cache_write(sch: Schedule, block: BlockRV, write_buffer_index: int | str, storage_scope: str,
                        index_map: Callable[..., Any] | str) -> BlockRV:
    """Let a block, with its reduction, write a new buffer, at indices of the caller's choice, and copy the elements to
    the old one afterwards.

        for i, j, k in grid(n, m, 8): C[i, j] = C[i, j] + A[i, k] * B[k, j]
    ->                                                         # index_map: lambda i, j, k: (j // 4, i, j % 4)
        for i, j, k in grid(n, m, 8):
            C_local[j // 4, i, j % 4] = C_local[j // 4, i, j % 4] + A[i, k] * B[k, j]
        for i, j in grid(n, m): C[i, j] = C_local[j // 4, i, j % 4]

    write_buffer_index: the position among the buffers that block writes, or a name. index_map takes all iteration
    variables of the block and gives the indices in the new buffer, whose extents are the least that hold them. `block`
    goes on to name the computation; the copy is returned, named like the new buffer: the old one's name, `_`, scope.

    Legal when
    - the block stores to the buffer at one place, in every iteration, and reads it only as its own partial sum;
    - no block that writes the buffer comes between two steps of a reduction;
    - a reduction that may have no elements ends before the copy's place;
    - the iterations of a loop inside of the copy's place that run at once share no element of the new buffer;
    - index_map gives different elements different places, which no reduction changes.
    """
    realize = sch.realize(block)
    require_stage(sch, realize, alone=False)
    require_scope(storage_scope, realize)
    source = caching.chosen(realize, realize.block.writes, write_buffer_index, "writes").buffer
    name = caching.cache_name(source, storage_scope)
    return _write(sch, realize, source, name, storage_scope, _mapped(realize, index_map))


@primitive(as_text=buffer_as_position)
def reindex(sch: Schedule, block: BlockRV, buffer: tuple[str, int] | str | Buffer) -> BlockRV:
    """Stage a buffer that a block uses through one whose indices are the block's iteration variables.

        for i, j, k in grid(n, m, 3): C[i, j] = C[i, j] + A[i + k] * W[k, j]
    ->                                                         # buffer: ("read", 0)
        for i, k in grid(n, 3): A_reindex[i, k] = A[i + k]
        for i, j, k in grid(n, m, 3): C[i, j] = C[i, j] + A_reindex[i, k] * W[k, j]

    buffer: ("read", n) or ("write", n) among the regions of block, a name, or the buffer. The new buffer has an axis
    for each iteration variable that the indices in the old one depend on, in the order of the block, and is called
    NAME_reindex, as is the copying block, which is returned. With its plain indices the block fits tensorize.

    Legal when the block uses one element of the buffer in each iteration, and under the conditions of
    reindex_cache_read for a buffer that is read, of reindex_cache_write for one that is written.
    """
    realize = sch.realize(block)
    source = chosen_buffer(realize, buffer)
    name = identifier(f"{source.name}_reindex")
    if writes(realize.block, source):
        require_stage(sch, realize, alone=False)
        point = caching.single_store(realize, source)
    else:
        require_leaf(sch, realize)
        point = caching.single_load(realize, source)
    new = tuple(caching.from_zero(iv) for iv in caching.axes_in(realize, point))
    if writes(realize.block, source):
        return _write(sch, realize, source, name, source.scope, new)
    return _read(sch, realize, source, name, source.scope, new)


def _mapped(realize: BlockRealize, index_map: Callable[..., Any] | str) -> tuple[Expr, ...]:
    """The new indices in the iter vars of the block."""
    iter_vars = [iv.var for iv in realize.block.iter_vars]
    mapped = IndexMap.of(index_map, len(iter_vars))
    require(not mapped.axis_separators, "index_map has a separator", realize,
            hint="set_axis_separator comes afterwards")
    return mapped.apply(iter_vars)


def _read(sch: Schedule, realize: BlockRealize, source: Buffer, name: str, scope: str,
          new: tuple[Expr, ...]) -> BlockRV:
    require(not writes(realize.block, source), f"block {realize.block.name} writes {source.name} as well as reading it",
            realize)
    caching.require_visible(realize, source)
    point = caching.single_load(realize, source)
    axes = caching.axes_in(realize, (*point, *new))
    name = sch.fresh_block(name)
    copy = _new_buffer(sch, realize, source, name, scope, axes, point, new)
    loops, children, at = before_consumers(sch, source, [realize])
    place = place_in(sch, loops)
    box = touched(sch.index, body_reads(realize), place)[source]
    caching.require_written(sch, source, box, [realize], place, children[at])
    stmt = caching.copy_points(sch, name, realize, axes, (source, point), (copy, new), place)
    old = sch.index
    insert(sch, loops, children, at, stmt)
    _redirect(sch, realize, source, copy, new)
    allocate(sch, copy)
    caching.require_fresh(sch, old, name, source, [realize])
    return sch.block_rv(name)


def _write(sch: Schedule, realize: BlockRealize, source: Buffer, name: str, scope: str,
           new: tuple[Expr, ...]) -> BlockRV:
    point = caching.single_store(realize, source)
    axes = caching.axes_in(realize, (*point, *new))
    for iv in axes:
        require(iv.iter_type == DATA_PARALLEL, f"the new indices depend on the reduction {iv.var.name}", realize,
                hint="leave it out of what index_map gives")
    require_whole_iteration(sch, realize)
    name = sch.fresh_block(name)
    copy = _new_buffer(sch, realize, source, name, scope, axes, point, new)
    loops, children, at = after_writer(sch, realize, source)
    place = place_in(sch, loops)
    stmt = caching.copy_points(sch, name, realize, axes, (copy, new), (source, point), place)
    insert(sch, loops, children, at, stmt)
    _redirect(sch, realize, source, copy, new)
    allocate(sch, copy)
    check_annotated_loops(sch, loops_within(sch.index, sch.realize(realize.block.name), place.loop_vars))
    return sch.block_rv(name)


def _new_buffer(sch: Schedule, realize: BlockRealize, source: Buffer, name: str, scope: str, axes: Sequence[IterVar],
                point: tuple[Expr, ...], new: tuple[Expr, ...]) -> Buffer:
    """The buffer that holds each element of source[point] at `new`."""
    require(not any(isinstance(n, Load) for e in point for n in walk(e)),
            f"which element of {source.name} block {realize.block.name} uses depends on data", realize)
    legal(not any(isinstance(n, Call) and n.op == "checked_index" for e in point for n in walk(e)),
          f"whether the element of {source.name} that block {realize.block.name} uses exists is checked when it is "
          "used, and the copy uses all", realize)
    for e in new:
        caching.require_index(e, realize)
    domains = axis_domains(axes)
    analyzer = sch.analyzer_at(None)
    found = detect_iter_map(new, domains, None, analyzer)
    shown = ", ".join(map(str, new))
    legal(found is not None and found.is_injective, f"the new indices ({shown}) are not known to be a place of its own "
          f"for every element of {source.name}", realize,
          hint=f"build them from {', '.join(iv.var.name for iv in axes)} by sums of multiples, // and % by constants")
    return Buffer(name, new_shape(analyzer, new, domains), source.dtype, scope=scope)


def _redirect(sch: Schedule, realize: BlockRealize, old: Buffer, copy: Buffer, new: tuple[Expr, ...]) -> None:
    """Let the block use copy[new] wherever it uses old."""
    def swap(node: Node) -> Node | None:
        if isinstance(node, (Load, Store)) and node.buffer is old:
            return node.replace(buffer=copy, indices=new)
        if isinstance(node, BufferRegion) and node.buffer is old:
            return element_region(copy, new)
        return None
    now = sch.realize(realize.block.name)
    sch.replace(now, now.replace(block=rewrite(now.block, swap)))
