"""The primitive that dissolves a block into its consumers: compute_inline."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis.dataflow import is_output, readers_of, writers_of
from tilewright.schedule.analysis.ordering import BEFORE, order, require_no_race, vectors
from tilewright.schedule.analysis.reads import with_reads
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.dissolving import inside_of, inverse_of, only_store, require_plain_loads, settled
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.scoped import in_scope
from tilewright.schedule.state import BlockRV, Index
from tilewright.support.errors import legal
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Var
from tilewright.tir.node import Node, rewrite, substitute
from tilewright.tir.stmt import BlockRealize


@primitive
@in_scope
def compute_inline(sch: Schedule, block: BlockRV) -> None:
    """Put the expression of a block into every place that reads its buffer; block and buffer vanish.

        for i in range(n): B[i] = A[i] * 2
        for i in range(n): C[i] = B[i + 1] + 1     ->     for i in range(n): C[i] = A[i + 1]*2 + 1

    Legal when the block stores one value per iteration, no reduction, to one buffer that is not an output and that
    no other block writes, its indices determine its iter vars (distinct iter vars, or an invertible affine map), and
    nothing writes what it reads between it and its consumers.
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
    for consumer in consumers:
        require_plain_loads(consumer, buffer)
        bound = inside_of(sch, consumer.block)

        def expand(node: Node, bound: Analyzer = bound) -> Node | None:
            if not isinstance(node, Load) or node.buffer is not buffer:
                return None
            at = {p: cast(p.dtype, e) for p, e in zip(points, node.indices, strict=True)}
            return substitute(store.value, {v: settled(e, at, bound) for v, e in inverse.items()})
        _rewrite(sch, consumer, expand)
    sch.remove_stmt(sch.realize(name))
    sch.remove_alloc(buffer)
    for consumer in consumers:
        _require_inputs_kept(sch, before, realize, sch.realize(consumer.block.name))
        require_no_race(sch, consumer.block.name)


def _rewrite(sch: Schedule, realize: BlockRealize, fn: Callable[[Node], Node | None]) -> None:
    """Put the block of realize with its expressions rewritten in its place; its read regions follow."""
    now = sch.realize(realize.block.name)
    block = now.block
    changed = block.replace(body=rewrite(block.body, fn), init=None if block.init is None else rewrite(block.init, fn))
    sch.replace(now, now.replace(block=with_reads(changed)))


def _require_inputs_kept(sch: Schedule, old: Index, gone: BlockRealize, consumer: BlockRealize) -> None:
    """What the vanished block read has the same values where consumer reads it now."""
    name = gone.block.name
    for region in gone.block.reads:
        legal(not any(w.buffer is region.buffer for w in consumer.block.writes)
              or _reads_earlier_iterations(sch, old, gone, consumer, region.buffer),
              f"block {consumer.block.name} writes {region.buffer.name}, which block {name} reads", gone, consumer)
        others = [b.buffer for b in consumer.block.reads + consumer.block.writes if b.buffer is not region.buffer]
        for writer in (w for w in writers_of(sch, region.buffer) if w is not consumer):
            was = order(sch, old, old.realizes[writer.block.name], gone)
            now = order(sch, sch.index, writer, consumer, others)
            legal(not was or (len(was) == 1 and now <= was),
                  f"block {writer.block.name} writes {region.buffer.name} between block {name}, which reads it, "
                  f"and block {consumer.block.name}", gone, old.realizes[writer.block.name])


def _reads_earlier_iterations(sch: Schedule, old: Index, gone: BlockRealize, consumer: BlockRealize,
                              buffer: Buffer) -> bool:
    """True when, of the buffer, the vanished block read and consumer reads what earlier iterations of consumer wrote:
    the states of a scan."""
    writer = old.realizes[consumer.block.name]
    touched = [r.buffer for block in (writer.block, gone.block) for r in (*block.reads, *block.writes)]
    if not order(sch, old, writer, gone, ignore=[b for b in touched if b is not buffer]) <= {BEFORE}:
        return False
    pairs = [(w, r) for w in consumer.block.writes for r in consumer.block.reads if w.buffer is r.buffer is buffer]
    distances = vectors(sch, sch.index, consumer, consumer, sch.index.loops_above(consumer), pairs)
    return all(next((x for x in v if x), 0) > 0 for v in distances)
