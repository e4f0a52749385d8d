"""Where blocks are computed: a block is dissolved into its consumers."""
from __future__ import annotations

import functools
from collections.abc import Callable

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis.covering import with_reads
from tilewright.schedule.analysis.dataflow import inputs_of, is_output, readers_of, reads, writers_of
from tilewright.schedule.analysis.ordering import BEFORE, feeds, order, require_no_race, runs_between, vectors
from tilewright.schedule.analysis.parts import meeting, parts_read, parts_written
from tilewright.schedule.analysis.region import first_sign
from tilewright.schedule.outside import outside_of
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.dissolving import (
    inside_of,
    inverse_of,
    only_store,
    require_plain_loads,
    require_same_indices,
    require_scalar,
    settled,
)
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.scoped import in_scope
from tilewright.schedule.state import BlockRV, Index
from tilewright.support.errors import legal, require
from tilewright.te.limits import MAX_DEPTH, expression_size
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.conversion import cast, const
from tilewright.tir.dtype import integer_range
from tilewright.tir.expr import Expr, Var
from tilewright.tir.low_bit import saturate_cast
from tilewright.tir.node import Node, map_children, rewrite, substitute
from tilewright.tir.stmt import BlockRealize, Stmt, map_sub_statements

MAX_INLINED = 20_000        # operations of a block into which expressions were put, each use of one counted


@primitive
@in_scope
def compute_inline(sch: Schedule, block: BlockRV) -> None:
    """Put the expression of a block into every place that reads its buffer; block and buffer vanish.

        for i in range(n): B[i] = A[i] * 2
        for i in range(n): C[i] = B[i + 1] + 1     ->     for i in range(n): C[i] = A[i + 1]*2 + 1

    Legal when
    - the block stores one value per iteration, no reduction, to one buffer that is not an output and that no other
      block writes;
    - its indices determine its iter vars (distinct iter vars, or an invertible affine map);
    - nothing writes what it reads between it and its consumers;
    - an index that a consumer makes of the value does not wrap around (made of axes alone, it would not).
    """
    realize = sch.realize(block)
    store = only_store(sch, realize)
    buffer, name = store.buffer, realize.block.name
    legal(not is_output(sch, buffer), f"block {name} writes {buffer.name}, an output of the function", realize,
          hint="an output cannot vanish; reverse_compute_inline dissolves its block into the producer")
    points = [Var(f"x{n}", e.dtype) for n, e in enumerate(store.indices)]
    inverse = inverse_of(realize, store.indices, points, sch.analyzer_at(None))
    consumers = readers_of(sch, buffer)
    before = sch.index

    def expand(known: Analyzer, node: Node) -> Node | None:
        if not isinstance(node, Load) or node.buffer is not buffer:
            return None
        at = {p: _coordinate(p, e, known) for p, e in zip(points, node.indices, strict=True)}
        return substitute(store.value, {v: settled(e, at, known) for v, e in inverse.items()})

    for consumer in consumers:
        places: list[tuple[Analyzer, Node]] = [(inside_of(sch, consumer.block), consumer.block)]
        places += [(sch.analyzer_at(read.place), read.place) for read in outside_of(before).of(consumer, buffer)]
        for known, place in places:
            require_same_indices(known, consumer, place, buffer, functools.partial(expand, known))
    for consumer in consumers:
        outside = outside_of(before).of(consumer, buffer)
        if not outside or reads(consumer.block, buffer):
            require_plain_loads(consumer, buffer)
            _rewrite(sch, consumer, functools.partial(expand, inside_of(sch, consumer.block)))
        for read in outside:
            require_scalar(consumer, read.use.node, buffer)
    if any(read.region.buffer is buffer for found in outside_of(before).reads.values() for read in found):
        _rewrite_outside(sch, buffer, expand)
    sch.remove_stmt(sch.realize(name))
    sch.remove_alloc(buffer)
    for consumer in consumers:
        _require_inputs_kept(sch, before, realize, sch.realize(consumer.block.name))
        require_no_race(sch, consumer.block.name)


def _coordinate(point: Var, index: Expr, known: Analyzer) -> Expr:
    """An index as a coordinate, whose type may be narrower: one that is out of its range stays out of range."""
    (least, most), (low, high) = integer_range(index.dtype), integer_range(point.dtype)
    fits = (low <= least or known.prove(binary("ge", index, const(low, index.dtype)))) and (
        most <= high or known.prove(binary("le", index, const(high, index.dtype))))
    return cast(point.dtype, index) if fits else saturate_cast(point.dtype, index)


def _rewrite(sch: Schedule, realize: BlockRealize, fn: Callable[[Node], Node | None]) -> None:
    """Put the block of realize with its expressions rewritten in its place; its read regions follow.

    Where each stage uses the one before it twice, the expression doubles with every stage: so its size is limited.
    """
    now = sch.realize(realize.block.name)
    block = now.block
    changed = block.replace(body=rewrite(block.body, fn), init=None if block.init is None else rewrite(block.init, fn))
    depth, nodes = expression_size([changed.body])
    require(depth <= MAX_DEPTH and nodes <= MAX_INLINED,
            f"block {block.name} would have {nodes} operations, {depth} inside one another; "
            f"it may have {MAX_INLINED}, {MAX_DEPTH} inside one another", now,
            hint="an expression that is used twice stands there twice; use compute_at, which keeps the values")
    sch.replace(now, now.replace(block=with_reads(changed)))


def _rewrite_outside(sch: Schedule, buffer: Buffer, expand: Callable[[Analyzer, Node], Node | None]) -> None:
    """Rewrite the expressions outside of the bodies of blocks that read buffer."""
    outside, index = outside_of(sch.index), sch.index
    known = {id(r.place): sch.analyzer_at(r.place)
             for realize in index.realizes.values() for r in outside.of(realize, buffer)}

    def visit(stmt: Stmt) -> Stmt:
        new = map_sub_statements(stmt, visit)
        if id(stmt) not in known:
            return new
        fn = functools.partial(expand, known[id(stmt)])
        new = map_children(new, lambda c: c if isinstance(c, Stmt) else rewrite(c, fn))
        if isinstance(new, BlockRealize):
            new = new.replace(block=new.block.replace(iter_vars=tuple(rewrite(iv, fn) for iv in new.block.iter_vars)))
        return new
    if known:
        sch.set_body(visit(sch.func.body))


def _require_inputs_kept(sch: Schedule, old: Index, gone: BlockRealize, consumer: BlockRealize) -> None:
    """What the vanished block read has the same values where consumer reads it now."""
    name = gone.block.name
    touched = [*inputs_of(sch, consumer), *(w.buffer for w in consumer.block.writes)]
    for region in gone.block.reads:
        legal(not any(w.buffer is region.buffer for w in consumer.block.writes)
              or _reads_earlier_iterations(sch, old, gone, consumer, region.buffer),
              f"block {consumer.block.name} writes {region.buffer.name}, which block {name} reads", gone, consumer)
        others = [b for b in touched if b is not region.buffer]
        for writer in (w for w in writers_of(sch, region.buffer) if w is not consumer):
            was = order(sch, old, old.realizes[writer.block.name], gone)
            now = order(sch, sch.index, writer, consumer, others)
            there, here = (old.realizes[r.block.name] for r in (writer, consumer))
            legal(not was or (len(was) == 1 and now <= was)
                  or feeds(sch, old, gone, here) and not runs_between(old, there, gone, here),
                  f"block {writer.block.name} writes {region.buffer.name} between block {name}, which reads it, "
                  f"and block {consumer.block.name}", gone, old.realizes[writer.block.name])


def _reads_earlier_iterations(sch: Schedule, old: Index, gone: BlockRealize, consumer: BlockRealize,
                              buffer: Buffer) -> bool:
    """True when, of the buffer, the vanished block read and consumer reads what earlier iterations of consumer wrote:
    the states of a scan."""
    writer = old.realizes[consumer.block.name]
    written = [r.buffer for block in (writer.block, gone.block) for r in block.writes]
    if not order(sch, old, writer, gone, ignore=[b for b in written if b is not buffer]) <= {BEFORE}:
        return False
    index = sch.index
    mine = [[p for p in parts if p.region.buffer is buffer] for parts in (
        parts_written(consumer), parts_read(index, consumer))]
    distances = vectors(sch, index, index.loops_above(consumer), meeting(*mine))
    return all(first_sign(v) > 0 for v in distances)
