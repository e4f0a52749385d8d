"""Where blocks are computed: a block is dissolved into its producer."""
from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import covers, intervals_of
from tilewright.schedule.analysis.box_run import box_run
from tilewright.schedule.analysis.covering import with_reads
from tilewright.schedule.analysis.dataflow import (
    blocks_of,
    inputs_of,
    is_output,
    loads_of,
    readers_of,
    same_indices,
    writers_of,
)
from tilewright.schedule.analysis.density import domain_box, filled_box, is_dense
from tilewright.schedule.analysis.domains import axis_domains, domain_of, domains_of
from tilewright.schedule.analysis.iteration import beyond_domain, branches_of_its_own, require_whole_iteration
from tilewright.schedule.analysis.mixed_radix import bindings
from tilewright.schedule.analysis.ordering import order, order_of, place_in, require_no_race
from tilewright.schedule.analysis.parts import meeting, parts_read, parts_written
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.dissolving import (
    inside_of,
    inverse_of,
    only_store,
    require_plain_loads,
    require_same_indices,
    settled,
)
from tilewright.schedule.primitives.nest import bounds_to_check
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.scoped import in_scope
from tilewright.schedule.state import BlockRV, Index
from tilewright.support.errors import Illegal, legal, require
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Buffer, Load, element_region
from tilewright.tir.conversion import cast, is_const
from tilewright.tir.expr import Call, Expr, Var
from tilewright.tir.node import Node, children, rewrite, same, substitute, walk
from tilewright.tir.stmt import BlockRealize, Store


@primitive
@in_scope
def reverse_compute_inline(sch: Schedule, block: BlockRV) -> None:
    """Apply an elementwise consumer where its producer stores; the block and the buffer between them vanish.

        for i in range(n): B[i] = A[i] * 2
        for i in range(n): C[i] = B[i] + 1     ->     for i in range(n): C[i] = A[i]*2 + 1

    The producer runs under a predicate where the consumer uses only a part of what it makes.

    Legal when
    - the block stores one value per iteration, no reduction;
    - it reads one element, which determines its iter vars, of one buffer that nothing else reads;
    - it runs for a box of its domain, or like the producer;
    - that buffer is not an output, and one block writes it that stores one value per iteration, no reduction;
    - no block between the two touches what the block writes or writes what it reads.
    """
    realize = sch.realize(block)
    store = only_store(sch, realize, alone=False)      # what others write there keeps its place in the order
    require_whole_iteration(sch, realize)
    producer, buffer = _only_producer(sch, realize)
    source = only_store(sch, producer)
    require_plain_loads(realize, buffer)
    loads = loads_of([store], buffer)
    require(all(same_indices(loads[0].indices, load.indices) for load in loads),
            f"block {realize.block.name} reads more than one element of {buffer.name}", realize)
    legal(not any(isinstance(n, Load) for i in loads[0].indices for n in walk(i)),
          f"which element of {buffer.name} block {realize.block.name} reads depends on data", realize)
    legal(_always_loads(store.value, buffer) or _makes_all(sch, producer, realize, loads[0]),
          f"block {realize.block.name} reads {buffer.name} only where a condition holds, and block "
          f"{producer.block.name} is not shown to run for all its elements", realize, producer)
    points = [Var(f"x{n}", e.dtype) for n, e in enumerate(loads[0].indices)]
    inverse = inverse_of(realize, loads[0].indices, points, sch.analyzer_at(None))
    inside = inside_of(sch, producer.block)
    at = {p: cast(p.dtype, e) for p, e in zip(points, source.indices, strict=True)}
    table = {v: settled(e, at, inside) for v, e in inverse.items()}

    def expand(node: Node) -> Node | None:
        return source.value if isinstance(node, Load) and node.buffer is buffer else None

    consumed = substitute(store.value, table)
    require_same_indices(inside, realize, consumed, buffer, expand)
    value = rewrite(consumed, expand)
    indices = tuple(substitute(i, table) for i in store.indices)
    merged = producer.block.replace(body=Store(store.buffer, value, indices),
                                    writes=(element_region(store.buffer, indices),))
    missed = [c for iv in realize.block.iter_vars for c in bounds_to_check(iv, table[iv.var], inside)]
    missed += _other_elements(loads[0], source, table, inside)
    predicate = [substitute(c, bindings(producer)) for c in missed]
    predicate += _points_left_out(sch, producer, realize, table)
    before = sch.index
    sch.replace(producer, producer.replace(predicate=all_of(producer.predicate, *predicate), block=with_reads(merged)))
    sch.remove_stmt(sch.realize(realize.block.name))
    sch.remove_alloc(buffer)
    _require_consumer_order(sch, before, realize, producer)
    require_no_race(sch, producer.block.name)


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
    raise Illegal(f"block {name} has no producer that it can be dissolved into{why}", (realize,))


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
    if not is_dense(producer, written, loops, place) or beyond_domain(producer, place.analyzer) \
            or branches_of_its_own(sch.index, producer, consumer):
        return False
    wanted = intervals_of(load.indices, axis_domains(consumer.block.iter_vars), place.analyzer)
    box = [w for w in wanted if w is not None]
    made = (domain_box(producer, written, place), filled_box(producer, written, loops, place))
    return len(box) == len(wanted) and all(given is not None and covers(given, box, place.analyzer) for given in made)


def _other_elements(load: Load, store: Store, table: Mapping[Var, Expr], analyzer: Analyzer) -> list[Expr]:
    """The conditions under which the element that is stored is the one that load names, less those that always hold."""
    pairs = [(substitute(e, table), at) for e, at in zip(load.indices, store.indices, strict=True)]
    return [binary("eq", at, analyzer.simplify(e)) for e, at in pairs if not analyzer.equal(at, e)]


def _points_left_out(sch: Schedule, producer: BlockRealize, consumer: BlockRealize,
                     table: Mapping[Var, Expr]) -> list[Expr]:
    """The conditions, in the producer's loops, under which consumer runs for a point of its domain, less those that
    always hold. table: the consumer's iter vars in terms of the producer's."""
    values, known = bindings(producer), sch.analyzer_at(producer)
    points = {v: substitute(e, values) for v, e in table.items()}
    if _runs_alike(sch, producer, consumer, points, known):
        return []
    run, own = box_run(sch, consumer), {iv.var: domain_of(iv) for iv in consumer.block.iter_vars}
    known.assume(all_of(*[binary("gt", loop.extent, 0) for loop in sch.index.loops_above(producer)]))
    needed = [binary("gt", extent, 0) for extent in run.idle.values()] if run else []
    for v, (low, extent) in run.box.items() if run else ():
        if (low, extent) != own[v]:
            needed += [binary("ge", points[v], low), binary("lt", points[v], binary("add", low, extent))]
    left = [c for c in needed if not known.prove(c)]
    loops = sch.index.loops.keys() - {loop.loop_var for loop in sch.index.loops_above(producer)}
    legal(run is not None and not any(isinstance(n, Load) or n in loops for c in left for n in walk(c)),
          f"the loops around block {consumer.block.name} are not shown to run a box of its domain, and dissolved it "
          "might run more", consumer, producer)
    return left


def _runs_alike(sch: Schedule, producer: BlockRealize, consumer: BlockRealize, points: Mapping[Var, Expr],
                known: Analyzer) -> bool:
    """True when both blocks are below loops alike that give the consumer these points, and the consumer runs under no
    condition: then it runs for each of them that the producer makes."""
    above, around = sch.index.loops_above(consumer), sch.index.loops_above(producer)
    if len(above) != len(around) or not is_const(consumer.predicate, 1):
        return False
    names: dict[Var, Expr] = {}
    for a, b in zip(above, around, strict=True):
        if not all(same(substitute(e, names), f) for e, f in ((a.min, b.min), (a.extent, b.extent))):
            return False
        names[a.loop_var] = b.loop_var
    return all(known.equal(points[iv.var], substitute(value, names)) for iv, value in consumer.bound)


def _require_consumer_order(sch: Schedule, old: Index, gone: BlockRealize, producer: BlockRealize) -> None:
    """What the vanished consumer touched is touched in the same order by the producer that does its work now."""
    merged = sch.realize(producer.block.name)
    mine = {id(b) for b in (*inputs_of(sch, gone), *(w.buffer for w in gone.block.writes))}
    touched = [*inputs_of(sch, merged), *(w.buffer for w in merged.block.writes)]
    others = [b for b in touched if id(b) not in mine]
    for partner in blocks_of(old):
        if partner is gone or partner is producer:
            continue
        was = order(sch, old, partner, gone)
        now = order(sch, sch.index, sch.realize(partner.block.name), merged, others)
        legal(not was or (len(was) == 1 and now <= was),
              f"block {partner.block.name} stands between block {producer.block.name} and block {gone.block.name} "
              "and touches the same buffer", partner, gone)
    was = order_of(sch, old, meeting(parts_read(old, producer), parts_written(gone)))
    now = order_of(sch, sch.index, meeting(parts_read(sch.index, merged), parts_written(merged)))
    legal(not was or (len(was) == 1 and now <= was), f"block {gone.block.name} writes what block {producer.block.name} "
          "reads at other elements, and would write it before it is read, or the other way round", producer, gone)
