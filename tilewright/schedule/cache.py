"""Primitives that stage a buffer through another one: cache_read, cache_write."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.regions import union
from tilewright.schedule.dataflow import (
    block_statements,
    children_of,
    is_output,
    loads_of,
    positions,
    readers_of,
    require_leaf,
    require_stage,
    same_indices,
    spatial,
    stores_of,
    writers_of,
    writes,
)
from tilewright.schedule.digits import Interval, domains_of
from tilewright.schedule.iteration import beyond_domain, cut, reading_domain, require_whole_iteration
from tilewright.schedule.nest import nest
from tilewright.schedule.ordering import order, place_in
from tilewright.schedule.primitive import primitive
from tilewright.schedule.required import Place, inside, is_dense, ranges_of, relaxed, touched
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.scopes import require_scope
from tilewright.schedule.state import BlockRV, Index
from tilewright.support.errors import require
from tilewright.support.names import identifier
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.expr import DATA_PARALLEL, Expr, IntImm, IterVar, Range, Var, binary
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, Stmt, Store, seq


@primitive
def cache_read(sch: Schedule, block: BlockRV, read_buffer_index: int | str, storage_scope: str,
               consumer_blocks: Sequence[BlockRV] | None = None) -> BlockRV:
    """Copy what consumers read of a buffer into a new buffer in storage_scope, and let them read that.

        for i in range(n): C[i] = A[i] + 1
    ->
        for i in range(n): A_shared[i] = A[i]
        for i in range(n): C[i] = A_shared[i] + 1

    read_buffer_index: the position among the buffers that block reads, or a name. consumer_blocks: the readers that
    use the copy; all that do not write the buffer, if None. The copy stands before the first of them, and covers the
    box that they read. Returns the copying block, named like the new buffer: the old one's name, `_`, scope.

    Legal when no consumer writes the buffer, and all writers have finished before the copy or start after the last
    consumer.
    """
    realize = sch.realize(block)
    require_leaf(sch, realize)
    require_scope(storage_scope, realize)
    region = _chosen(realize, realize.block.reads, read_buffer_index, "reads")
    source = region.buffer
    consumers = [r for r in readers_of(sch, source) if r is realize or not writes(r.block, source)]
    if consumer_blocks is not None:
        named = [sch.realize(c) for c in consumer_blocks]
        for c in named:
            require(any(c is r for r in consumers), f"block {c.block.name} does not read {source.name}", c)
        consumers = [r for r in consumers if any(c is r for c in named)] or [realize]
    for c in consumers:
        require(not writes(c.block, source), f"block {c.block.name} writes {source.name} as well as reading it", c)
        _require_visible(c, source)
    loops, children, at = _before_consumers(sch, source, consumers)
    place = place_in(sch, loops)
    box = touched(consumers, "reads", _inner(sch, place), place)[source]
    _require_written(sch, source, box, consumers, place)
    name = sch.fresh_block(_cache_name(source, storage_scope))
    copy = Buffer(name, source.shape, source.dtype, scope=storage_scope)
    old = sch.index
    new = _copy_box(sch, name, source, copy, box, consumers, place)
    _insert(sch, loops, children, at, new)
    for c in consumers:
        _redirect(sch, c, source, copy)
    sch.add_alloc(copy)
    _require_fresh(sch, old, name, source, consumers)
    return sch.block_rv(name)


@primitive
def cache_write(sch: Schedule, block: BlockRV, write_buffer_index: int | str, storage_scope: str) -> BlockRV:
    """Let a block, with its reduction, write a new buffer in storage_scope, and copy that to the old one afterwards.

        for i, k in grid(n, m): C[i] = C[i] + A[i, k]
    ->
        for i, k in grid(n, m): C_local[i] = C_local[i] + A[i, k]
        for i in range(n): C[i] = C_local[i]

    write_buffer_index: the position among the buffers that block writes, or a name. `block` goes on to name the
    computation; the copy is returned, named like the new buffer: the old one's name, `_`, scope.

    Legal when no other block writes the buffer, and the block stores to it at one place and reads it only as its own
    partial sum.
    """
    realize = sch.realize(block)
    require_stage(sch, realize)
    require_scope(storage_scope, realize)
    region = _chosen(realize, realize.block.writes, write_buffer_index, "writes")
    source, name = region.buffer, realize.block.name
    stores = stores_of(block_statements(realize.block), source)
    inner = {n.loop_var for s in block_statements(realize.block) for n in walk(s) if isinstance(n, For)}
    single = bool(stores) and all(same_indices(s.indices, stores[0].indices) for s in stores)
    require(single and not any(n in inner for i in stores[0].indices for n in walk(i)),
            f"block {name} does not store to {source.name} at one place in each iteration", realize)
    loops, children, at = _after_writer(sch, realize, source)
    place = place_in(sch, loops)
    require_whole_iteration(sch, realize)
    new_name = sch.fresh_block(_cache_name(source, storage_scope))
    copy = Buffer(new_name, source.shape, source.dtype, scope=storage_scope)
    new = _copy_points(new_name, realize, stores[0].indices, source, copy, sch, place)
    _insert(sch, loops, children, at, new)
    _redirect(sch, realize, source, copy)
    sch.add_alloc(copy)
    return sch.block_rv(new_name)


def _chosen(realize: BlockRealize, regions: Sequence[BufferRegion], which: int | str | Buffer,
            verb: str) -> BufferRegion:
    """The region of a block that is meant by a position, a name or the buffer."""
    name, names = realize.block.name, [r.buffer.name for r in regions]
    hint = f"it {verb} {', '.join(names) or 'nothing'}"
    if isinstance(which, int) and not isinstance(which, bool):
        require(0 <= which < len(regions), f"block {name} {verb} {len(regions)} buffer(s), there is no number {which}",
                realize, hint=hint)
        return regions[which]
    found = [r for r in regions if r.buffer is which or r.buffer.name == which]
    require(len(found) > 0, f"block {name} {verb} no buffer {which!r}", realize, hint=hint)
    return found[0]


def _cache_name(buffer: Buffer, scope: str) -> str:
    """Of the copy and its block: `C_local`, `A_shared_dyn`."""
    require(isinstance(scope, str) and bool(scope), f"the scope is {scope!r}, not a name such as 'local'")
    return identifier(f"{buffer.name}_{scope}")


def _require_visible(realize: BlockRealize, buffer: Buffer) -> None:
    """All uses of buffer in the block are loads and stores of elements."""
    for top in block_statements(realize.block):
        for node in walk(top):
            require(node is not buffer.data, f"block {realize.block.name} uses the address of {buffer.name}", realize)
    require(not any(m.source.buffer is buffer for m in realize.block.match_buffers),
            f"block {realize.block.name} views {buffer.name} as another buffer", realize)
    require(bool(loads_of(block_statements(realize.block), buffer)),
            f"block {realize.block.name} reads {buffer.name} in a way that cannot be seen", realize)


# ---- where the copy stands

def _before_consumers(sch: Schedule, buffer: Buffer,
                      consumers: Sequence[BlockRealize]) -> tuple[list[For], list[Stmt], int]:
    """(loops around the place, the statements there, position): before the first consumer and, in the innermost
    loop where that is so, after the writers of buffer that come before it."""
    names = list(sch.index.realizes)
    first = min(names.index(c.block.name) for c in consumers)
    writers = [w for w in writers_of(sch, buffer) if names.index(w.block.name) < first]
    loops: list[For] = []
    children = children_of(sch.root.block)
    while True:
        uses, made = positions(children, consumers), positions(children, writers)
        if not made or max(made) < min(uses):
            return loops, children, min(uses)
        child = children[min(uses)]
        require(len(uses) == 1 and isinstance(child, For) and max(made) == min(uses),
                f"{buffer.name} is not complete before its first consumer", *consumers, *writers,
                hint="name the consumers that share a loop with the producer in consumer_blocks")
        assert isinstance(child, For)
        loops.append(child)
        children = children_of(child)


def _after_writer(sch: Schedule, realize: BlockRealize, buffer: Buffer) -> tuple[list[For], list[Stmt], int]:
    """(loops around the place, the statements there, position): after the writer, before its consumers."""
    readers = [r for r in readers_of(sch, buffer) if r is not realize]
    loops: list[For] = []
    children = children_of(sch.root.block)
    while True:
        here = positions(children, [realize])[0]
        child = children[here]
        if here not in positions(children, readers):
            return loops, children, here + 1
        assert isinstance(child, For)
        loops.append(child)
        children = children_of(child)


def _inner(sch: Schedule, place: Place) -> Callable[[BlockRealize], dict[Var, Interval]]:
    def inner_of(realize: BlockRealize) -> dict[Var, Interval]:
        return {v: d for v, d in domains_of(sch.index.loops_above(realize)).items() if v not in place.loop_vars}
    return inner_of


def _insert(sch: Schedule, loops: Sequence[For], children: Sequence[Stmt], at: int, new: Stmt) -> None:
    """Put new among the statements of the innermost of loops, or of the root block."""
    body = seq([*children[:at], new, *children[at:]])
    if loops:
        sch.replace(loops[-1], loops[-1].replace(body=body))
    else:
        sch.replace(sch.root.block, sch.root.block.replace(body=body))


# ---- the copy

def _copy_box(sch: Schedule, name: str, source: Buffer, copy: Buffer, box: Sequence[Interval],
              consumers: Sequence[BlockRealize], place: Place) -> Stmt:
    """Loops that copy a box of source, as far as it is inside the buffer and consumers ever read it."""
    used = [reading_domain(sch, c, r) for c in consumers for r in c.block.reads if r.buffer is source]
    iter_vars = []
    for n, dim in enumerate(source.shape):
        iv = IterVar(Range(IntImm(0, dim.dtype), dim), Var(f"v{n}", dim.dtype), DATA_PARALLEL)
        known = [interval for u in used if (interval := u[n]) is not None]
        if len(known) == len(used):
            (low, extent), = union([[interval] for interval in known], place.analyzer)
            iv = cut(iv, [("ge", low), ("lt", binary("add", low, extent))], place.loop_vars, place.analyzer)
        iter_vars.append(iv)
    block = _copy_block(name, tuple(iter_vars), tuple(iv.var for iv in iter_vars), source, copy)
    return nest(block, {iv.var: interval for iv, interval in zip(iter_vars, box, strict=True)}, place.analyzer, True,
                names=[f"ax{n}" for n in range(len(iter_vars))])


def _copy_points(name: str, realize: BlockRealize, indices: Sequence[Expr], source: Buffer, copy: Buffer, sch: Schedule,
                 place: Place) -> Stmt:
    """Loops over the iter vars of a writer's indices that copy, element for element, what it has written."""
    used = [iv for iv in spatial(realize.block) if any(n is iv.var for i in indices for n in walk(i))]
    box = ranges_of(realize, [iv.var for iv in used], _inner(sch, place)(realize), place)
    require(box is not None, f"the elements of {source.name} that block {realize.block.name} writes there are no box",
            realize, hint="cache_write before the loops are split or the block is moved")
    fresh = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in used}
    block = _copy_block(name, tuple(iv.replace(var=fresh[iv.var]) for iv in used),
                        tuple(substitute(i, fresh) for i in indices), copy, source)
    return nest(block, {fresh[v]: interval for v, interval in (box or {}).items()}, place.analyzer, True)


def _copy_block(name: str, iter_vars: tuple[IterVar, ...], indices: tuple[Expr, ...], source: Buffer,
                target: Buffer) -> Block:
    """target[indices] = source[indices]"""
    point = tuple(Range(i, IntImm(1, i.dtype)) for i in indices)
    return Block(name, iter_vars, (BufferRegion(source, point),), (BufferRegion(target, point),),
                 Store(target, Load(source, indices), indices))


def _redirect(sch: Schedule, realize: BlockRealize, old: Buffer, new: Buffer) -> None:
    """Let the block use new wherever it uses old."""
    def swap(node: Node) -> Node | None:
        uses = isinstance(node, (Load, Store, BufferRegion)) and node.buffer is old
        return node.replace(buffer=new) if uses else None
    now = sch.realize(realize.block.name)
    sch.replace(now, now.replace(block=rewrite(now.block, swap)))


# ---- what the copy may rely on

def _require_written(sch: Schedule, buffer: Buffer, box: Sequence[Interval], consumers: Sequence[BlockRealize],
                     place: Place) -> None:
    """The copy reads no element of an intermediate buffer that nothing has written."""
    if is_output(sch, buffer):
        return
    inner_of = _inner(sch, place)
    for writer in writers_of(sch, buffer):
        for region in writer.block.writes:
            inner = inner_of(writer)
            if region.buffer is buffer and is_dense(writer, region, inner, place) and not beyond_domain(
                    writer, place.analyzer) and inside(box, relaxed(writer, region, inner, place), buffer, place):
                return
    require(False, f"the copy would read elements of {buffer.name} that may not be written by then", *consumers)


def _require_fresh(sch: Schedule, old: Index, name: str, buffer: Buffer, consumers: Sequence[BlockRealize]) -> None:
    """Every writer of buffer comes before (or after) the copy `name` as it came before (or after) each consumer."""
    for writer in writers_of(sch, buffer):
        now = order(sch, sch.index, writer, sch.realize(name))
        for consumer in consumers:
            others = [r.buffer for r in (*consumer.block.reads, *consumer.block.writes) if r.buffer is not buffer]
            was = order(sch, old, old.realizes[writer.block.name], consumer, others)
            require(not was or (len(was) == 1 and now <= was),
                    f"block {writer.block.name} writes {buffer.name} between the copy and block {consumer.block.name}",
                    old.realizes[writer.block.name], consumer, hint="name the consumers before it in consumer_blocks")
