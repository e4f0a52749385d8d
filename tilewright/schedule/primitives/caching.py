"""What primitives that stage a buffer through another share: the block of a copy, and what it relies on."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import union
from tilewright.schedule.analysis.dataflow import (
    block_statements,
    loads_of,
    same_indices,
    stores_of,
    writers_of,
)
from tilewright.schedule.analysis.density import fills, ranges_of
from tilewright.schedule.analysis.domains import Domains, Interval
from tilewright.schedule.analysis.iteration import beyond_domain, branches_of_its_own, cut, reading_domain
from tilewright.schedule.analysis.mixed_radix import bindings, reach
from tilewright.schedule.analysis.ordering import order, runs_between
from tilewright.schedule.analysis.parts import loops_within, precedes
from tilewright.schedule.analysis.required import Place
from tilewright.schedule.primitives.nest import nest
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, Index
from tilewright.support.errors import described, legal, require
from tilewright.support.names import identifier
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Buffer, BufferRegion, Load, element_region
from tilewright.tir.conversion import is_const
from tilewright.tir.dtype import lanes_of
from tilewright.tir.expr import Call, Expr, IntImm, Let, Select, Var
from tilewright.tir.iter_var import DATA_PARALLEL, IterVar
from tilewright.tir.node import rewrite_top_down, statements, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, IfThenElse, LetStmt, Seq, Stmt, Store, While, seq
from tilewright.tir.symbols import replace_buffers

Element = tuple[Buffer, tuple[Expr, ...]]                 # one of a buffer, by its indices


def chosen(realize: BlockRealize, regions: Sequence[BufferRegion], which: int | str | Buffer,
           verb: str) -> BufferRegion:
    """The region of a block that is meant by a position, a name or the buffer."""
    name, names = realize.block.name, [r.buffer.name for r in regions]
    hint = f"it {verb} {', '.join(names) or 'nothing'}"
    if type(which) is int:
        require(0 <= which < len(regions), f"block {name} {verb} {len(regions)} buffer(s), there is no number {which}",
                realize, hint=hint)
        return regions[which]
    require(isinstance(which, (str, Buffer)), f"the buffer is {described(which)}, not a position, a name or a Buffer",
            realize, hint=hint)
    wanted = which.name if isinstance(which, Buffer) else which
    found = [r for r in regions if r.buffer is which or r.buffer.name == which]
    require(len(found) > 0, f"block {name} {verb} no buffer {wanted!r}", realize, hint=hint)
    return found[0]


def cache_name(buffer: Buffer, scope: str) -> str:
    """Of the copy and its block: `C_local`, `A_shared_dyn`."""
    return identifier(f"{buffer.name}_{scope}")


def require_visible(realize: BlockRealize, buffer: Buffer) -> None:
    """All uses of buffer in the block are loads and stores of elements."""
    nodes = [n for top in block_statements(realize.block) for n in walk(top)]
    require(not any(n is buffer.data for n in nodes), f"block {realize.block.name} uses the address of {buffer.name}",
            realize)
    blocks = [realize.block, *(n for n in nodes if isinstance(n, Block))]
    require(not any(m.source.buffer is buffer for block in blocks for m in block.match_buffers),
            f"block {realize.block.name} views {buffer.name} as another buffer", realize)
    require(bool(loads_of(block_statements(realize.block), buffer)),
            f"block {realize.block.name} reads {buffer.name} in a way that cannot be seen", realize)


def same_scope(sch: Schedule, realize: BlockRealize, blocks: Sequence[BlockRV] | None) -> list[BlockRealize]:
    """The consumer_blocks. None may lie in another block beside `realize`: the regions of that one would not hold the
    copy."""
    given = [] if blocks is None else blocks
    require(isinstance(given, (list, tuple)), f"consumer_blocks is {described(given)}, not a list of blocks", realize)
    found = [sch.realize(b) for b in given]
    for other in found:
        require(other is sch.root or sch.index.scope_of(other) is sch.root, f"block {other.block.name} and block "
                f"{realize.block.name} are not inside the same block", other, realize, hint="name the block around it")
    return found


def single_load(realize: BlockRealize, buffer: Buffer) -> tuple[Expr, ...]:
    """The indices of the one element of buffer that each iteration of the block reads."""
    return _single(realize, loads_of(block_statements(realize.block), buffer), f"read {buffer.name}")


def single_store(realize: BlockRealize, buffer: Buffer) -> tuple[Expr, ...]:
    """The indices of the one element of buffer that each iteration of the block stores to."""
    block = realize.block
    point = _single(realize, stores_of(block_statements(block), buffer), f"store to {buffer.name}")
    legal(any(_always_stores(s, buffer) for s in block_statements(block)),
          f"block {block.name} stores to {buffer.name} in some iterations only; the copy would take elements that it "
          "has not written", realize, hint="store in every iteration: choose the value by T.if_then_else")
    return point


def _always_stores(s: Stmt, buffer: Buffer) -> bool:
    """True when a statement of a block surely stores to buffer."""
    match s:
        case Store():
            return s.buffer is buffer
        case Seq():
            return any(_always_stores(part, buffer) for part in s.stmts)
        case LetStmt():
            return _always_stores(s.body, buffer)
        case For():
            return isinstance(s.extent, IntImm) and s.extent.value > 0 and _always_stores(s.body, buffer)
        case IfThenElse():
            return s.else_case is not None and all(_always_stores(c, buffer) for c in (s.then_case, s.else_case))
    return False


def _single(realize: BlockRealize, accesses: Sequence[Load | Store], verb: str) -> tuple[Expr, ...]:
    name = realize.block.name
    own = {n.loop_var if isinstance(n, For) else n.var for s in block_statements(realize.block) for n in walk(s)
           if isinstance(n, (For, LetStmt, Let))}
    single = bool(accesses) and all(same_indices(x.indices, accesses[0].indices) for x in accesses)
    require(single and all(lanes_of(i.dtype) == 1 and not any(n in own for n in walk(i)) for i in accesses[0].indices),
            f"block {name} does not {verb} at one place in each iteration", realize)
    return accesses[0].indices


# ---- the copy

def copy_box(name: str, source: Buffer, copy: Buffer, box: Sequence[Interval],
             used: Sequence[Sequence[Interval | None]], place: Place) -> Stmt:
    """Loops that copy a box of source, as far as it is inside the buffer and inside some box of used."""
    iter_vars = []
    for n, dim in enumerate(source.shape):
        iv = IterVar.over(dim, f"v{n}")
        known = [interval for u in used if (interval := u[n]) is not None]
        if len(known) == len(used):
            (low, extent), = union([[interval] for interval in known], place.analyzer)
            iv = cut(iv, [("ge", low), ("lt", binary("add", low, extent))], place.loop_vars, place.analyzer)
        iter_vars.append(iv)
    point = tuple(iv.var for iv in iter_vars)
    block = copy_block(name, tuple(iter_vars), Load(source, point), Load(copy, point))
    return nest(block, {iv.var: interval for iv, interval in zip(iter_vars, box, strict=True)}, place.analyzer, True,
                names=[f"ax{n}" for n in range(len(iter_vars))])


def boxes_used(sch: Schedule, consumers: Iterable[BlockRealize], buffer: Buffer,
               writes_too: bool = False) -> list[list[Interval | None]]:
    """What consumers ever read of buffer (or read and write), one box for each of their regions."""
    regions = [(c, r) for c in consumers for r in (*c.block.reads, *(c.block.writes if writes_too else ()))]
    return [reading_domain(sch, c, r) for c, r in regions if r.buffer is buffer]


def axes_in(realize: BlockRealize, indices: Iterable[Expr], among: Iterable[IterVar] | None = None) -> list[IterVar]:
    """The iter vars of a block (or those of among) that occur in indices."""
    used = {n for i in indices for n in walk(i)}
    return [iv for iv in (realize.block.iter_vars if among is None else among) if iv.var in used]


def from_zero(iv: IterVar) -> Expr:
    """The place of the value of iv in its domain."""
    return iv.var if is_const(iv.domain.min, 0) else binary("sub", iv.var, iv.domain.min)


def require_index(e: Expr, realize: BlockRealize) -> None:
    """An index of a new buffer has a type that holds any extent."""
    require(e.dtype in ("int32", "int64"), f"the new index {e} of block {realize.block.name} is {e.dtype}", realize,
            hint="let the block's axes be int32 or int64, which hold any extent")


def copy_points(sch: Schedule, name: str, realize: BlockRealize, axes: Sequence[IterVar], read: Element, write: Element,
                place: Place) -> Stmt:
    """Loops over some iter vars of a block, as far as its loops run them, that copy one element for each point.

    Points for which `read` or `write` is not inside its buffer are left out.
    """
    box = ranges_of(realize, [iv.var for iv in axes], loops_within(sch.index, realize, place.loop_vars), place)
    require(box is not None, f"the points at which block {realize.block.name} uses {read[0].name} or {write[0].name} "
            "there are no box", realize, hint="do this before the loops are split or the block is moved")
    fresh = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in axes}
    source, target = (Load(b, tuple(substitute(i, fresh) for i in indices)) for b, indices in (read, write))
    iter_vars = tuple(iv.replace(var=fresh[iv.var], iter_type=DATA_PARALLEL) for iv in axes)
    block = copy_block(name, iter_vars, source, target)
    stmt = nest(block, {fresh[v]: interval for v, interval in (box or {}).items()}, place.analyzer, True)
    return _within_buffers(stmt, (source, target), place.analyzer)


def _within_buffers(stmt: Stmt, elements: Sequence[Load], analyzer: Analyzer) -> Stmt:
    """stmt, loops around one block, with the block running only where the elements are inside their buffers."""
    realize = next(s for s in statements(stmt) if isinstance(s, BlockRealize))
    values = bindings(realize)
    bounds = [substitute(c, values) for e in elements for i, dim in zip(e.indices, e.buffer.shape, strict=True)
              for c in (binary("ge", i, 0), binary("lt", i, dim))]
    with analyzer.constraint(realize.predicate):
        needed = [c for c in bounds if not analyzer.prove(c)]
    if not needed:
        return stmt
    guarded = realize.replace(predicate=all_of(realize.predicate, *needed))
    return rewrite_top_down(stmt, lambda n: guarded if n is realize else None)


def copy_block(name: str, iter_vars: tuple[IterVar, ...], source: Load, target: Load) -> Block:
    """target = source"""
    read, write = (element_region(e.buffer, e.indices) for e in (source, target))
    return Block(name, iter_vars, (read,), (write,), Store(target.buffer, source, target.indices))


def also_copied(stmt: Stmt, more: Sequence[tuple[Buffer, Buffer]]) -> Stmt:
    """stmt, loops around a block of copy_block, which copies the same elements of other buffers (from, to) too."""
    realize = next(s for s in statements(stmt) if isinstance(s, BlockRealize))
    block = realize.block
    assert isinstance(block.body, Store)
    at = block.body.indices
    whole = block.replace(
        reads=(*block.reads, *(BufferRegion(b, block.reads[0].region) for b, _ in more)),
        writes=(*block.writes, *(BufferRegion(b, block.writes[0].region) for _, b in more)),
        body=seq([block.body, *(Store(b, Load(a, at), at) for a, b in more)]))
    return rewrite_top_down(stmt, lambda n: whole if n is block else None) if more else stmt


def redirect(sch: Schedule, realize: BlockRealize, table: Mapping[Buffer, Buffer]) -> None:
    """Let the block use the values of table wherever it uses their keys."""
    now = sch.realize(realize.block.name)
    sch.replace(now, now.replace(block=replace_buffers(now.block, table)))


# ---- what the copy may rely on

def require_written(sch: Schedule, buffer: Buffer, box: Sequence[Interval], consumers: Sequence[BlockRealize],
                    place: Place, after: Stmt) -> None:
    """The copy, before the statement `after`, reads no element of an intermediate buffer that nothing has written."""
    if any(b is buffer for b in sch.arguments):
        return
    if is_written(sch, buffer, box, consumers, place, after):
        return
    for c in consumers:
        inner = loops_within(sch.index, c, place.loop_vars)
        values = reach(c, inner, place.lets)[0]
        read = [substitute(r.min, values) for region in c.block.reads if region.buffer is buffer for r in region.region]
        if _reads_all(c, buffer, box, inner, place) and _runs(sch, c, read, place, after):
            return
    legal(False, f"the copy would read elements of {buffer.name} that may not be written by then", *consumers)


def is_written(sch: Schedule, buffer: Buffer, box: Sequence[Interval], consumers: Sequence[BlockRealize], place: Place,
               after: Stmt) -> bool:
    """True when one block, which comes before the consumers, writes all of the box before the statement `after`."""
    for writer in writers_of(sch, buffer):
        if all(precedes(sch.index, writer, c) for c in consumers) and not beyond_domain(
                writer, place.analyzer) and _runs(sch, writer, writer.iter_values, place, after):
            inner = loops_within(sch.index, writer, place.loop_vars)
            if any(r.buffer is buffer and fills(writer, r, inner, place, box) for r in writer.block.writes):
                return True
    return False


def _runs(sch: Schedule, realize: BlockRealize, exprs: Sequence[Expr], place: Place, after: Stmt) -> bool:
    """True when the block runs in each iteration of the place, but where a loop of no iterations leaves exprs no value.

    No condition is around it, and every other loop inside of the place has an iteration.
    """
    used = {n for e in exprs for n in walk(e)}
    return not branches_of_its_own(sch.index, realize, after) and all(
        loop.loop_var in used or loop.loop_var in place.loop_vars or place.analyzer.prove(binary("gt", loop.extent, 0))
        for loop in sch.index.loops_above(realize))


def _reads_all(consumer: BlockRealize, buffer: Buffer, box: Sequence[Interval], inner: Domains, place: Place) -> bool:
    """True when the consumer itself reads every element of the box, so that all of them are written by then; in its
    body, since the start of a reduction runs where its first step does, which may be nowhere."""
    body = [n for s in block_statements(consumer.block) for n in walk(s)]
    conditional = (Select, IfThenElse, While, BlockRealize)          # the last may have a predicate
    if any(isinstance(n, conditional) or isinstance(n, Call) and n.op == "if_then_else" for n in body):
        return False
    regions = [r for r in consumer.block.reads if r.buffer is buffer]
    return len(loads_of([consumer.block.body], buffer)) == 1 and not beyond_domain(
        consumer, place.analyzer) and all(fills(consumer, r, inner, place, box) for r in regions)


def other_buffers(block: Block, buffer: Buffer) -> list[Buffer]:
    """What the block touches besides the buffer."""
    return [r.buffer for r in (*block.reads, *block.writes) if r.buffer is not buffer]


def require_fresh(sch: Schedule, old: Index, name: str, buffer: Buffer, consumers: Sequence[BlockRealize]) -> None:
    """Every writer of buffer that may run between the copy `name` and the consumers comes before (or after) the copy as
    it came before (or after) each consumer."""
    copy = sch.realize(name)
    for writer in writers_of(sch, buffer):
        if not runs_between(sch.index, writer, copy, sch.realize(consumers[0].block.name)):
            continue
        now = order(sch, sch.index, writer, copy)
        for consumer in consumers:
            was = order(sch, old, old.realizes[writer.block.name], consumer, other_buffers(consumer.block, buffer))
            legal(not was or (len(was) == 1 and now <= was),
                  f"block {writer.block.name} writes {buffer.name} between the copy and block {consumer.block.name}",
                  old.realizes[writer.block.name], consumer, hint="name the consumers before it in consumer_blocks")
