"""Primitives that dissolve a block into its consumers or its producer: compute_inline, reverse_compute_inline."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.itermap import detect_iter_map
from tilewright.arith.regions import covers, intervals_of
from tilewright.schedule.analysis.dataflow import (
    block_statements,
    blocks_of,
    is_output,
    is_reduction,
    loads_of,
    readers_of,
    require_stage,
    same_indices,
    writers_of,
)
from tilewright.schedule.analysis.density import domain_box, filled_box, is_dense
from tilewright.schedule.analysis.digits import bindings
from tilewright.schedule.analysis.domains import axis_domains, bind_axes, domains_of
from tilewright.schedule.analysis.iteration import beyond_domain, require_whole_iteration
from tilewright.schedule.analysis.ordering import BEFORE, order, place_in, require_no_race, vectors
from tilewright.schedule.analysis.reads import with_reads
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.caching import require_visible
from tilewright.schedule.primitives.nest import bounds_to_check
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, Index
from tilewright.support.errors import legal, require
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.iter_var import Range
from tilewright.tir.node import Node, children, rewrite, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, Store


@primitive
def compute_inline(sch: Schedule, block: BlockRV) -> None:
    """Put the expression of a block into every place that reads its buffer; block and buffer vanish.

        for i in range(n): B[i] = A[i] * 2
        for i in range(n): C[i] = B[i + 1] + 1     ->     for i in range(n): C[i] = A[i + 1]*2 + 1

    Legal when the block stores one value per iteration, no reduction, to one buffer that is not an output and that
    no other block writes, its indices determine its iter vars (distinct iter vars, or an invertible affine map), and
    nothing writes what it reads between it and its consumers.
    """
    realize = sch.realize(block)
    store = _only_store(sch, realize)
    buffer, name = store.buffer, realize.block.name
    legal(not is_output(sch, buffer), f"block {name} writes {buffer.name}, an output of the function", realize,
          hint="an output cannot vanish; reverse_compute_inline dissolves its block into the producer")
    points = [Var(f"x{n}", e.dtype) for n, e in enumerate(store.indices)]
    inverse = _inverse(realize, store.indices, points, sch.analyzer_at(None))
    consumers = readers_of(sch, buffer)
    before = sch.index
    for consumer in consumers:
        _require_plain_loads(consumer, buffer)
        bound = _inside(sch, consumer.block)

        def expand(node: Node, bound: Analyzer = bound) -> Node | None:
            if not isinstance(node, Load) or node.buffer is not buffer:
                return None
            at = {p: cast(p.dtype, e) for p, e in zip(points, node.indices, strict=True)}
            return substitute(store.value, {v: _settled(e, at, bound) for v, e in inverse.items()})
        _rewrite(sch, consumer, expand)
    sch.remove_stmt(sch.realize(name))
    sch.remove_alloc(buffer)
    for consumer in consumers:
        _require_inputs_kept(sch, before, realize, sch.realize(consumer.block.name))
        require_no_race(sch, consumer.block.name)


@primitive
def reverse_compute_inline(sch: Schedule, block: BlockRV) -> None:
    """Apply an elementwise consumer where its producer stores; the block and the buffer between them vanish.

        for i in range(n): B[i] = A[i] * 2
        for i in range(n): C[i] = B[i] + 1     ->     for i in range(n): C[i] = A[i]*2 + 1

    The producer runs under a predicate where the consumer uses only a part of what it makes.

    Legal when the block stores one value per iteration, no reduction; reads, of one buffer that nothing else reads,
    one element that determines its iter vars; that buffer is not an output and is written by one block that stores
    one value per iteration, no reduction; and no block between the two touches what the block writes or writes what
    it reads.
    """
    realize = sch.realize(block)
    store = _only_store(sch, realize)
    require_whole_iteration(sch, realize)
    producer, buffer = _only_producer(sch, realize)
    source = _only_store(sch, producer)
    _require_plain_loads(realize, buffer)
    loads = loads_of([store], buffer)
    require(all(same_indices(loads[0].indices, load.indices) for load in loads),
            f"block {realize.block.name} reads more than one element of {buffer.name}", realize)
    legal(not any(isinstance(n, Load) for i in loads[0].indices for n in walk(i)),
          f"which element of {buffer.name} block {realize.block.name} reads depends on data", realize)
    legal(_always_loads(store.value, buffer) or _makes_all(sch, producer, realize, loads[0]),
          f"block {realize.block.name} reads {buffer.name} only where a condition holds, and block "
          f"{producer.block.name} is not shown to run for all its elements", realize, producer)
    points = [Var(f"x{n}", e.dtype) for n, e in enumerate(loads[0].indices)]
    inverse = _inverse(realize, loads[0].indices, points, sch.analyzer_at(None), onto=True)
    inside = _inside(sch, producer.block)
    at = {p: cast(p.dtype, e) for p, e in zip(points, source.indices, strict=True)}
    table = {v: _settled(e, at, inside) for v, e in inverse.items()}
    value = rewrite(substitute(store.value, table), lambda node: (
        source.value if isinstance(node, Load) and node.buffer is buffer else None))
    indices = tuple(substitute(i, table) for i in store.indices)
    merged = producer.block.replace(
        body=Store(store.buffer, value, indices),
        writes=(BufferRegion(store.buffer, tuple(Range(i, IntImm(1, i.dtype)) for i in indices)),))
    missed = [c for iv in realize.block.iter_vars for c in bounds_to_check(iv, table[iv.var], inside)]
    missed += _other_elements(loads[0], source, table, inside)
    predicate = [substitute(c, bindings(producer)) for c in missed]
    before = sch.index
    sch.replace(producer, producer.replace(predicate=all_of(producer.predicate, *predicate), block=with_reads(merged)))
    sch.remove_stmt(sch.realize(realize.block.name))
    sch.remove_alloc(buffer)
    _require_consumer_order(sch, before, realize, producer)
    require_no_race(sch, producer.block.name)


def _only_store(sch: Schedule, realize: BlockRealize) -> Store:
    """The one statement of a block that computes each element by itself."""
    require_stage(sch, realize)
    block = realize.block
    require(not is_reduction(block) and block.init is None,
            f"block {block.name} is a reduction: its buffer holds partial sums until the last step", realize,
            hint="compute_at or reverse_compute_at can move it")
    store = block.body
    if isinstance(store, Store) and store.predicate is None and not block.match_buffers:
        return store
    require(False, f"block {block.name} is more than one store of one value", realize)
    raise AssertionError


def _only_producer(sch: Schedule, realize: BlockRealize) -> tuple[BlockRealize, Buffer]:
    """The block that a consumer can be dissolved into, and the buffer between them."""
    name, refused = realize.block.name, ""
    for buffer in [r.buffer for r in realize.block.reads]:
        writers = writers_of(sch, buffer)
        if not writers:
            continue
        others = [r for r in readers_of(sch, buffer) if r is not realize]
        if is_output(sch, buffer):
            refused = f"{buffer.name} is an output of the function"
        elif len(writers) > 1:
            refused = f"{buffer.name} is written by blocks {', '.join(w.block.name for w in writers)}"
        elif others:
            refused = f"{buffer.name} is read by block {others[0].block.name} as well"
        else:
            return writers[0], buffer
    why = f": {refused}" if refused else ""
    require(False, f"block {name} has no producer that it can be dissolved into{why}", realize)
    raise AssertionError


def _require_plain_loads(realize: BlockRealize, buffer: Buffer) -> None:
    """The block uses buffer in scalar loads only."""
    name = realize.block.name
    for top in block_statements(realize.block):
        for node in walk(top):
            if isinstance(node, Load) and node.buffer is buffer:
                require(node.predicate is None and node.dtype == buffer.dtype,
                        f"block {name} reads vectors of {buffer.name}", realize)
            else:
                require(node is not buffer.data and getattr(node, "buffer", None) is not buffer,
                        f"block {name} uses {buffer.name} otherwise than by reading elements", realize)
    require_visible(realize, buffer)


def _inverse(realize: BlockRealize, indices: Sequence[Expr], points: Sequence[Var], analyzer: Analyzer,
             onto: bool = False) -> dict[Var, Expr]:
    """The iter vars of the block in terms of the values `points` of the indices.

    onto: every point of a box must be an image of the map. Raises Illegal where the map cannot be inverted.
    """
    block = realize.block
    domains = axis_domains(block.iter_vars)
    inverse: dict[Var, Expr] = {}
    left = []
    for p, e in zip(points, indices, strict=True):
        if isinstance(e, Var) and e in domains and e not in inverse:
            inverse[e] = p
        else:
            left.append((p, e))
    for v, (low, extent) in domains.items():
        if v not in inverse and analyzer.equal(extent, 1):
            inverse[v] = low
    domains = {v: d for v, d in domains.items() if v not in inverse}
    if not domains:
        return inverse
    left = [(p, e) for p, e in left if any(n in domains for n in walk(e))]
    plain = [e for _, e in left]
    mapping = detect_iter_map([substitute(e, inverse) for e in plain], domains, IntImm(1, "bool"), analyzer)
    text = ", ".join(map(str, indices))
    require(mapping is not None and (mapping.is_bijective or not onto and mapping.is_injective),
            f"the indices ({text}) of block {block.name} do not determine its iter vars", realize,
            hint="distinct iter vars, or an invertible affine map of them, do")
    assert mapping is not None
    return inverse | mapping.invert([p for p, _ in left])


def _always_loads(value: Expr, buffer: Buffer) -> bool:
    """True when evaluating value loads from buffer, whatever the conditions in it give."""
    stack: list[Node] = [value]
    while stack:
        top = stack.pop()
        if isinstance(top, Load) and top.buffer is buffer:
            return True
        stack += [top.args[0]] if isinstance(top, Call) and top.op == "if_then_else" else children(top)
    return False


def _makes_all(sch: Schedule, producer: BlockRealize, consumer: BlockRealize, load: Load) -> bool:
    """True when producer runs for every element that load names while consumer runs over its domain."""
    place = place_in(sch, [])
    loops = domains_of(sch.index.loops_above(producer))
    written = producer.block.writes[0]
    if not is_dense(producer, written, loops, place) or beyond_domain(producer, place.analyzer):
        return False
    wanted = intervals_of(load.indices, axis_domains(consumer.block.iter_vars), place.analyzer)
    box = [w for w in wanted if w is not None]
    made = (domain_box(producer, written, place), filled_box(producer, written, loops, place))
    return len(box) == len(wanted) and all(given is not None and covers(given, box, place.analyzer) for given in made)


def _settled(e: Expr, at: Mapping[Var, Expr], analyzer: Analyzer) -> Expr:
    """e at a point; simplified unless it is a coordinate itself."""
    if isinstance(e, Var):
        return at.get(e, e)
    return analyzer.simplify(substitute(e, at))


def _inside(sch: Schedule, block: Block) -> Analyzer:
    """What is known in the body of block."""
    analyzer = sch.analyzer_at(None)
    bind_axes(analyzer, block.iter_vars)
    return analyzer


def _other_elements(load: Load, store: Store, table: Mapping[Var, Expr], analyzer: Analyzer) -> list[Expr]:
    """The conditions under which the element that is stored is the one that load names, less those that always hold."""
    pairs = [(substitute(e, table), at) for e, at in zip(load.indices, store.indices, strict=True)]
    return [binary("eq", at, analyzer.simplify(e)) for e, at in pairs if not analyzer.equal(at, e)]


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


def _require_consumer_order(sch: Schedule, old: Index, gone: BlockRealize, producer: BlockRealize) -> None:
    """What the vanished consumer touched is touched in the same order by the producer that does its work now."""
    merged = sch.realize(producer.block.name)
    mine = {id(r.buffer) for r in (*gone.block.reads, *gone.block.writes)}
    others = [r.buffer for r in (*merged.block.reads, *merged.block.writes) if id(r.buffer) not in mine]
    for partner in blocks_of(old):
        if partner is gone or partner is producer:
            continue
        was = order(sch, old, partner, gone)
        now = order(sch, sch.index, sch.realize(partner.block.name), merged, others)
        legal(not was or (len(was) == 1 and now <= was),
              f"block {partner.block.name} stands between block {producer.block.name} and block {gone.block.name} "
              "and touches the same buffer", partner, gone)
