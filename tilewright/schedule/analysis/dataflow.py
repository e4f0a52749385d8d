"""Which block makes a buffer and which ones use it: the conditions that moving a computation rests on."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tilewright.schedule.analysis.elements import shared_element
from tilewright.schedule.outside import outside_of
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import Index
from tilewright.support.errors import Illegal, legal, require
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Call, Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar
from tilewright.tir.node import Node, statements, walk
from tilewright.tir.stmt import Block, BlockRealize, For, Seq, Stmt, Store


def is_reduction(block: Block) -> bool:
    """True when some iteration of block is a reduction."""
    return any(iv.iter_type == COMM_REDUCE for iv in block.iter_vars)


def spatial(block: Block) -> list[IterVar]:
    return [iv for iv in block.iter_vars if iv.iter_type == DATA_PARALLEL]


def block_statements(block: Block) -> Iterator[Stmt]:
    """The init and body of block."""
    if block.init is not None:
        yield block.init
    yield block.body


def loads_of(nodes: Iterable[Node], buffer: Buffer | None = None) -> list[Load]:
    """The loads (of one buffer, if given) in nodes, in program order."""
    return [n for top in nodes for n in walk(top)
            if isinstance(n, Load) and (buffer is None or n.buffer is buffer)]


def takes_address(n: Node, buffer: Buffer) -> bool:
    """True where n is a call that is given the place of an element of buffer, not its value."""
    return isinstance(n, Call) and n.op in ("access_ptr", "prefetch") and any(
        isinstance(a, Load) and a.buffer is buffer for a in n.args)


def stores_of(nodes: Iterable[Node], buffer: Buffer | None = None) -> list[Store]:
    """The stores (to one buffer, if given) in nodes, in program order."""
    return [n for top in nodes for n in walk(top)
            if isinstance(n, Store) and (buffer is None or n.buffer is buffer)]


def writes(block: Block, buffer: Buffer) -> bool:
    return any(r.buffer is buffer for r in block.writes)


def reads(block: Block, buffer: Buffer) -> bool:
    return any(r.buffer is buffer for r in block.reads)


def blocks_of(index: Index) -> list[BlockRealize]:
    """Every block that lies in no other block but the root, in program order. The regions of a block speak for the
    blocks in it."""
    return index.outermost()


def writers_of(sch: Schedule, buffer: Buffer) -> list[BlockRealize]:
    """The blocks that write buffer, in program order. Refuses a buffer that a statement touches for which no block
    speaks."""
    _require_in_blocks(sch, buffer)
    return [r for r in blocks_of(sch.index) if writes(r.block, buffer)]


def readers_of(sch: Schedule, buffer: Buffer) -> list[BlockRealize]:
    """The blocks that read buffer, or on the way to which it is read, in program order. Refuses as writers_of does."""
    _require_in_blocks(sch, buffer)
    outside = outside_of(sch.index)
    return [r for r in blocks_of(sch.index) if reads(r.block, buffer) or outside.of(r, buffer)]


def body_readers_of(sch: Schedule, buffer: Buffer) -> list[BlockRealize]:
    """The blocks that read buffer in their bodies, in program order."""
    return [r for r in blocks_of(sch.index) if reads(r.block, buffer)]


def _require_in_blocks(sch: Schedule, buffer: Buffer) -> None:
    outside = outside_of(sch.index)
    if not outside.loose:
        return
    stray = outside.stray(buffer)
    at = () if stray is None else (stray,)
    legal(stray is None, f"a statement outside of every block touches {buffer.name}", *at, hint="put it into a block")


def inputs_of(sch: Schedule, realize: BlockRealize) -> list[Buffer]:
    """The buffers that a block reads, and those that are read on the way to it, each once."""
    found = [r.buffer for r in realize.block.reads] + [r.region.buffer for r in outside_of(sch.index).of(realize)]
    return list(dict.fromkeys(found))


def is_output(sch: Schedule, buffer: Buffer) -> bool:
    """True when the caller of the function sees buffer."""
    return any(b is buffer for b in sch.func.buffers)


def is_allocated(sch: Schedule, buffer: Buffer) -> bool:
    """True for memory of the function's own; False for arguments, and for views, which are memory of others."""
    return any(b is buffer for r in sch.index.realizes.values() for b in r.block.alloc_buffers)


def is_below(index: Index, stmt: Stmt, loop: For) -> bool:
    """True when loop is among the loops around stmt."""
    return any(above is loop for above in index.loops_above(stmt))


def children_of(loop_or_block: For | Block) -> list[Stmt]:
    """The statements of a body, one after the other."""
    body = loop_or_block.body
    return list(body.stmts) if isinstance(body, Seq) else [body]


def positions(children: Iterable[Stmt], wanted: Iterable[BlockRealize]) -> list[int]:
    """Positions of the children that hold one of the wanted blocks."""
    keys = {id(r) for r in wanted}
    return [n for n, child in enumerate(children) if any(id(s) in keys for s in statements(child))]


def require_no_root(sch: Schedule, realize: BlockRealize) -> None:
    """The block is not the one that holds the whole function."""
    require(realize is not sch.root, "the root block cannot be moved", hint="name a block inside it")


def holds_blocks(block: Block) -> bool:
    """True when there are blocks inside."""
    return any(isinstance(s, BlockRealize) for part in block_statements(block) for s in statements(part))


def require_leaf(sch: Schedule, realize: BlockRealize) -> None:
    """The block is not the root and holds no other block."""
    require_no_root(sch, realize)
    require(not holds_blocks(realize.block), f"block {realize.block.name} holds other blocks", realize)
    require(sch.index.scope_of(realize) is sch.root, f"block {realize.block.name} lies inside another block", realize)


def require_single_writer(sch: Schedule, realize: BlockRealize) -> None:
    """No other block writes what the block writes."""
    name = realize.block.name
    for region in realize.block.writes:
        others = [r for r in writers_of(sch, region.buffer) if r is not realize]
        legal(not others, f"{region.buffer.name} is written by block {name} and by block "
              f"{', '.join(r.block.name for r in others)}, so {name} alone does not give its values",
              realize, *others, hint="do this before decompose_reduction")


def require_stage(sch: Schedule, realize: BlockRealize, alone: bool = True, starts: bool = True,
                  leaf: bool = True) -> None:
    """The block is the only one that gives its buffers their values (where `alone`), and gives each element a value
    that depends on nothing but what the block reads: running it again, or in another order, changes nothing.

    Without `starts` a reduction may go on from what another block began: its steps must run once each. Without `leaf`
    it may hold other blocks, for which its regions speak.
    """
    if leaf:
        require_leaf(sch, realize)
    require_no_root(sch, realize)
    block = realize.block
    ordered = [iv for iv in block.iter_vars if iv.iter_type not in (DATA_PARALLEL, COMM_REDUCE)]
    legal(not ordered, f"iteration {ordered[0].var.name if ordered else ''} of block {block.name} must run in order",
          realize)
    if alone:
        require_single_writer(sch, realize)
    _require_own_elements(realize)
    reduces = is_reduction(block)
    begun = block.init is not None or reduces and not starts
    legal(not reduces or begun, f"reduction block {block.name} does not initialise what it writes",
          realize, hint="do this before decompose_reduction")
    require_not_read_outside(sch, realize)
    accesses = [n for part in block_statements(block) for n in walk(part) if isinstance(n, (Load, Store))]
    views = [m for n in walk(block) if isinstance(n, Block) for m in n.match_buffers]
    for region in block.writes:
        own = [n for n in accesses if isinstance(n, Load) and n.buffer is region.buffer]
        from_itself = block.init is not None and loads_of([block.init], region.buffer)
        legal(not from_itself, f"block {block.name} starts its reduction with {region.buffer.name}, which it also "
              "writes", realize)
        points = [n.indices for n in accesses if isinstance(n, Store) and n.buffer is region.buffer]
        fine = begun and all(same_indices(load.indices, p) for load in own for p in points)
        viewed = any(m.source.buffer is region.buffer for m in views) and reads(block, region.buffer)
        legal((fine or not own) and (begun or not viewed),
              f"block {block.name} reads {region.buffer.name}, which it also writes", realize)
    reduction_vars = {iv.var for iv in block.iter_vars if iv.iter_type == COMM_REDUCE}
    places: list[tuple[Buffer, Sequence[Node]]] = [(n.buffer, n.indices) for n in accesses if isinstance(n, Store)]
    if holds_blocks(block):
        places += [(r.buffer, r.region) for r in block.writes]
    for buffer, where in places if reduction_vars else ():
        legal(not any(n in reduction_vars for i in where for n in walk(i)),
              f"a reduction axis of block {block.name} indexes {buffer.name}", realize)
    shared = shared_element(block, sch.analyzer_at)
    legal(shared is None, f"two iterations of block {block.name} may write one element of "
          f"{shared.name if shared else ''}, so that their order decides its value", realize)


def is_stage(sch: Schedule, realize: BlockRealize) -> bool:
    """True for a block that gives each element a value that depends on nothing but what it reads of other buffers."""
    try:
        require_stage(sch, realize, alone=False, leaf=False)
    except Illegal:
        return False
    return True


def require_not_read_outside(sch: Schedule, realize: BlockRealize, buffers: Iterable[Buffer] | None = None) -> None:
    """Nothing that the block writes (of buffers, if given) is read on the way to it, where its earlier iterations may
    have written it."""
    written = [r.buffer for r in realize.block.writes] if buffers is None else list(buffers)
    for read in outside_of(sch.index).of(realize):
        legal(not any(read.region.buffer is b for b in written), f"{read.region.buffer.name}, which block "
              f"{realize.block.name} writes, is read on the way to it", realize, read.place)


def require_way_unwritten(sch: Schedule, realize: BlockRealize, written: Iterable[Buffer], outer: For) -> None:
    """Nothing that is `written` below outer is read on the way to the block: iterations that are taken out of outer, to
    run before it, are decided there as they were inside."""
    buffers = list(written)
    for read in outside_of(sch.index).of(realize):
        name = read.region.buffer.name
        legal(not any(read.region.buffer is b for b in buffers), f"{name}, which is read on the way to block "
              f"{realize.block.name}, is written below loop {outer.loop_var.name}", read.place, outer)


def _require_own_elements(realize: BlockRealize) -> None:
    """Each data-parallel iter var says which element is written, so that no element has two values."""
    block = realize.block
    iv = _untold(block)
    legal(iv is None, f"iteration {'' if iv is None else iv.var.name} of block {block.name} does not determine what is "
          "written, so where the block runs decides its value", realize)


def _untold(block: Block) -> IterVar | None:
    """A data-parallel iter var of several values that no element which is written tells."""
    written = {n for region in block.writes for r in region.region
               for n in ((r.min,) if type(r.min) is Var and type(r.extent) is IntImm else walk(r))}
    return next((iv for iv in spatial(block) if iv.var not in written and not (
        isinstance(iv.domain.extent, IntImm) and iv.domain.extent.value <= 1)), None)


def gives_one_value(sch: Schedule, block: Block) -> bool:
    """True when one instance of a block alone, the steps of a reduction together, writes each element that it does."""
    return _untold(block) is None and shared_element(block, sch.analyzer_at) is None


def same_indices(a: tuple[Expr, ...], b: tuple[Expr, ...]) -> bool:
    """True when both index the same element, index by index the same expression."""
    return len(a) == len(b) and all(x is y or bool(x.equal(y)) for x, y in zip(a, b, strict=True))
