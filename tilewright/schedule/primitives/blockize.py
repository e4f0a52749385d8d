"""Tensor intrinsics: a subtree of the loops becomes one block, whose body is what it was."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.regions import intervals_of
from tilewright.schedule.analysis.accesses import Touch
from tilewright.schedule.analysis.covering import covering, outer_regions
from tilewright.schedule.analysis.domains import bind_axes, domains_of
from tilewright.schedule.analysis.legality import check_annotated_loops, kept_apart, require_fixed_bounds
from tilewright.schedule.analysis.region import Region
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.blockize_loop import blockize_loop
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import legal, require
from tilewright.tir.arithmetic import binary, maximum
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import DATA_PARALLEL, OPAQUE, IterVar, Range
from tilewright.tir.node import map_children, statements, substitute, walk
from tilewright.tir.stmt import SERIAL, UNROLLED, Block, BlockRealize, For, Seq, Stmt, map_sub_statements, seq
from tilewright.tir.symbols import expressions

TRUE = IntImm(1, "bool")


@primitive(older={"loop": "target"})
def blockize(sch: Schedule, target: LoopRV | Sequence[BlockRV], preserve_unit_iters: bool = True) -> BlockRV:
    """Make a loop and all below it, or some neighbouring blocks with their loops, the body of one new block.

        for i_0 in range(n // 8):                     for i_0 in range(n // 8):
            for i_1 in range(8):                          with block("B_o"):
                with block("B"):                 ->           vi_o = i_0
                    vi = i_0*8 + i_1                          for i_1 in range(8):
                    B[vi] = A[vi]                                 with block("B"):
                                                                      vi_i = i_1
                                                                      B[vi_o*8 + vi_i] = A[vi_o*8 + vi_i]

    target: a loop, or blocks in one scope; of these the new block holds the statements that contain them, up to
    the loops that they share. With preserve_unit_iters=False neither block has an axis for a part that has one
    value. A reduction whose steps run in several instances of the new block is started by the new block. Returns
    the new block, NAME_o.

    Blocks in a parallel, vectorized or bound loop whose iterations have a buffer each take it into the new block, and
    must be all that use it.

    Legal when
    - of a loop: one block is below it, and each of its axes is `outer*c + inner`, where inner runs through 0, 1, ...,
      c-1 in the loops below and outer stays the same; where the new block starts a reduction, the loops below run each
      point of it once, and where a block starts one, its axes begin where their domains do;
    - of blocks: no other block is among them;
    - no parallel loop in the new block is the only one that uses a buffer, of which its iterations have one each.
    """
    if isinstance(target, LoopRV):
        name = blockize_loop(sch, sch.loop(target), preserve_unit_iters)
    else:
        require(isinstance(target, (list, tuple)) and len(target) > 0, f"{target!r} is not a loop or a list of blocks")
        wanted = [sch.realize(b) for b in target]
        alone = len({r.block.name for r in wanted}) == 1 and _is_started_outside(sch, wanted[0])
        name = blockize_loop(sch, wanted[0], preserve_unit_iters) if alone else _blockize_blocks(sch, wanted)
    # a buffer that each iteration of a parallel loop had to itself is now declared by the block around
    check_annotated_loops(sch, [s.loop_var for s in statements(sch.realize(name).block) if isinstance(s, For)])
    return sch.block_rv(name)


def _is_started_outside(sch: Schedule, realize: BlockRealize) -> bool:
    """True for a block that holds no other and starts a reduction that loops around it drive."""
    holds = any(isinstance(s, BlockRealize) for s in statements(realize.block.body))
    around = {a.loop_var for a in sch.index.loops_above(realize)}
    return not holds and realize.block.init is not None and realize.reduces_over(*around)


def _blockize_blocks(sch: Schedule, wanted: Sequence[BlockRealize]) -> str:
    """Blockize the statements that hold the blocks, below the loops that they share: the new block's name."""
    scope = sch.index.scope_of(wanted[0]) if wanted[0] is not sch.root else sch.root
    for r in wanted:
        require(r is not sch.root, "the root block cannot be put into a block")
        require(sch.index.scope_of(r) is scope, f"blocks {wanted[0].block.name} and {r.block.name} are in different "
                "blocks", wanted[0], r)
    paths = [sch.path_to(r) for r in wanted]
    depth = 0
    while all(len(p) > depth + 1 and p[depth] is paths[0][depth] for p in paths):
        depth += 1
    shared = paths[0][depth - 1]
    stmts = [shared] if not isinstance(shared, Seq) else list(shared.stmts)
    if isinstance(shared, BlockRealize) and shared in wanted:
        hit = [0]
    elif isinstance(shared, Seq):
        hit = sorted({next(n for n, s in enumerate(stmts) if s is p[depth]) for p in paths})
    else:
        stmts, hit = [paths[0][depth]], [0]
    chosen = stmts[hit[0]:hit[-1] + 1]
    found = [s for part in chosen for s in statements(part) if isinstance(s, BlockRealize)]
    other = [s for s in found if not any(s is w or _holds(w, s) for w in wanted)]
    require(not other, f"block {other[0].block.name if other else ''} stands between them", *other,
            hint="name it as well")
    return _wrap(sch, shared if isinstance(shared, Seq) else stmts[0], chosen, found)


def _holds(outer: BlockRealize, inner: BlockRealize) -> bool:
    return any(s is inner for s in statements(outer.block))


def _wrap(sch: Schedule, shared: Stmt, chosen: Sequence[Stmt], found: Sequence[BlockRealize]) -> str:
    """One block around the statements chosen, with an axis for each loop around that they use."""
    first = found[0]
    around = sch.index.loops_above(chosen[0])
    for r in found:
        legal(r.block.init is None or not r.reduces_over(*(a.loop_var for a in around)),
              f"block {r.block.name} reduces over loops around the blocks, and starts its reduction among them", r,
              hint="call decompose_reduction first")
    kinds = _loop_kinds(around, found)
    for loop in around:
        require_fixed_bounds([loop])
    used = {n for s in chosen for x in statements(s) for e in expressions(x) for n in walk(e)}
    axes = [(a, IterVar(_domain(sch, a, around), Var(f"v{a.loop_var.name}", a.loop_var.dtype), kinds[a.loop_var]))
            for a in around if a.loop_var in used]
    table: dict[Var, Expr] = {a.loop_var: iv.var for a, iv in axes}
    body = seq([_rebound(s, table) for s in chosen])
    analyzer = sch.analyzer_at(chosen[0])
    bind_axes(analyzer, (iv for _, iv in axes))
    name = sch.fresh_block(f"{first.block.name}_o")
    own = _own_buffers(sch, around, {a.loop_var for a, iv in axes if iv.iter_type != DATA_PARALLEL}, found)
    reads, writes = (covering([r for r in outer_regions(body, kind, analyzer) if r.buffer not in own], {}, analyzer)
                     for kind in ("reads", "writes"))
    block = Block(name, tuple(iv for _, iv in axes), reads, writes, body, alloc_buffers=tuple(own))
    new = BlockRealize(tuple(a.loop_var for a, _ in axes), TRUE, block)
    if isinstance(shared, Seq):
        kept: list[Stmt] = []
        for s in shared.stmts:
            if s is chosen[0]:
                kept.append(new)
            elif not any(s is c for c in chosen):
                kept.append(s)
        sch.replace(shared, seq(kept))
    else:
        sch.replace(shared, new)
    for buffer in own:
        sch.remove_alloc(buffer)
    return name


def _own_buffers(sch: Schedule, around: Sequence[For], ordered: set[Var],
                 found: Sequence[BlockRealize]) -> list[Buffer]:
    """The buffers that the new block allocates: those that iterations of a loop around, which run at once, have each.

    A serial loop that drives an ordered axis of the new block carries what the block writes: the loops inside of it
    would share that.
    """
    own: dict[Buffer, None] = {}
    carrying: For | None = None
    for loop in around:
        if loop.kind in (SERIAL, UNROLLED):
            carrying = loop if carrying is None and loop.loop_var in ordered else carrying
            continue
        if carrying is None:
            continue
        for group in kept_apart(Region(sch, [loop])):
            if any(t.writes and _made_by(sch, t, found) for t in group):
                buffer, name = group[0].buffer, loop.loop_var.name
                legal(all(_made_by(sch, t, found) for t in group), f"each iteration of the {loop.kind} loop {name} has "
                      f"its own {buffer.name}; a block of several, ordered along loop {carrying.loop_var.name}, would "
                      "give them one", loop, *found, hint=f"name all blocks that use {buffer.name}, or one alone")
                own[buffer] = None
    return [b for b in own if any(b is x for x in sch.root.block.alloc_buffers)]


def _made_by(sch: Schedule, t: Touch, blocks: Sequence[BlockRealize]) -> bool:
    """True for an access in one of blocks."""
    return t.instance is not None and any(s is b for s in sch.path_to(t.instance.realize) for b in blocks)


def _domain(sch: Schedule, loop: For, around: Sequence[For]) -> Range:
    """All values that a loop gives its variable while the loops around run."""
    analyzer = sch.analyzer_at(None)
    low, end = loop.min, binary("add", loop.min, loop.extent)
    for outer in reversed(around):
        if any(n is outer.loop_var for e in (low, end) for n in walk(e)):
            first, last = intervals_of([low, end], domains_of([outer]), analyzer, widen=False)
            require(first is not None and last is not None, f"the values of loop {loop.loop_var.name} are not bounded "
                    f"while loop {outer.loop_var.name} runs", loop, hint=f"blockize loop {loop.loop_var.name}")
            assert first is not None and last is not None
            low, end = first[0], binary("add", last[0], binary("sub", last[1], 1))
    if low is loop.min and end.equal(binary("add", loop.min, loop.extent)):
        return Range(loop.min, loop.extent)
    return Range(low, analyzer.simplify(maximum(binary("sub", end, low), 0)))


def _loop_kinds(around: Sequence[For], found: Sequence[BlockRealize]) -> dict[Var, int]:
    """For each loop: data-parallel where it drives such axes of every block and no others, else opaque."""
    out: dict[Var, int] = {}
    for a in around:
        kinds = []
        for r in found:
            mine = {iv.iter_type for iv, v in r.bound if any(n is a.loop_var for n in walk(v))}
            kinds.append(mine)
        whole = all(k == {DATA_PARALLEL} for k in kinds)
        out[a.loop_var] = DATA_PARALLEL if whole and len(found) == 1 else OPAQUE
    return out


def _rebound(stmt: Stmt, table: Mapping[Var, Expr]) -> Stmt:
    """stmt with loop variables replaced; the bodies of blocks do not speak of them."""
    new = map_children(stmt, lambda c: substitute(c, table) if isinstance(c, Expr) else c)
    return new if isinstance(new, BlockRealize) else map_sub_statements(new, lambda s: _rebound(s, table))
