"""Reductions: the init becomes a block of its own."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from tilewright.schedule.analysis.covering import with_reads
from tilewright.schedule.analysis.dataflow import require_not_read_outside, require_way_unwritten
from tilewright.schedule.analysis.iteration import is_plain, require_no_branch, unsure_start
from tilewright.schedule.analysis.legality import check_annotated_loops
from tilewright.schedule.analysis.region import Region
from tilewright.schedule.analysis.shared_reductions import require_one_thread
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.nest import bounds_to_check
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import legal, require
from tilewright.tir.accesses import uses_below
from tilewright.tir.arithmetic import all_of, binary, conjuncts
from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.conversion import is_const
from tilewright.tir.empty_reductions import left_by_start, may_be_empty
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, IterVar
from tilewright.tir.node import statements, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, For, Stmt, Store, map_sub_statements, seq


@primitive
def decompose_reduction(sch: Schedule, block: BlockRV | str, loop: LoopRV) -> BlockRV:
    """Let a reduction start in a block of its own, NAME_init, right before a loop around the reduction.

        for i in range(n):                          for i in range(n):
            for k in range(m):                          with block("C_init"): C[i] = 0
                with block("C"):            ->          for k in range(m):
                    with init(): C[i] = 0                   with block("C_update"): C[i] = C[i] + A[i, k]
                    C[i] = C[i] + A[i, k]

    The loops from `loop` inwards that drive output axes, or may not run, are copied around the new block and keep their
    kinds; the block itself is called NAME_update from then on (handles to it stay valid). Returns the init block.

    Legal when
    - the block is a reduction with an init, below the loop;
    - no loop outside of it drives a reduction axis;
    - each copied loop drives no reduction axis;
    - the loops from `loop` inwards run each step of the reduction once, and neither a condition nor the bounds of loops
      keep the first one from running;
    - nothing below the loop touches the output before the block starts it;
    - loops whose iterations run at once still may, where the output was used inside of one iteration of them only.
    """
    realize, outer = sch.realize(block), sch.loop(loop)
    old = realize.block
    require(old.init is not None, f"block {old.name} is not a reduction with an init", realize,
            hint="only a reduction that was not decomposed yet has one")
    views = {m.buffer for m in old.match_buffers}
    assert old.init is not None
    require(not any(isinstance(n, (Load, Store)) and n.buffer in views for n in walk(old.init)),
            f"block {old.name} starts its reduction through views of buffers (match_buffer)", realize)
    above = sch.loops_above(realize)
    require(outer in above, f"loop {outer.loop_var.name} is not around block {old.name}", outer, realize,
            hint=f"its loops are {', '.join(a.loop_var.name for a in above)}")
    require_one_thread(realize, above, "decompose only where one thread runs all steps")
    copied = _loops_to_copy(sch, realize, above, outer)
    require_no_branch(sch, realize, outer)
    below = Region(sch, [outer])
    _require_start(sch, realize, below)
    _check_own_elements(realize, above[above.index(outer):])
    nest = above[above.index(outer):]
    require_runs_once(realize, below if len(nest) == 1 else Region(sch, nest), "decompose at an inner loop")
    _check_untouched_before(below, realize, outer)
    kept = {a.loop_var for a in (*copied, *above[:above.index(outer)])}
    outputs = [(iv, value) for iv, value in realize.bound if iv.iter_type != COMM_REDUCE]
    part = _output_part(realize, kept, {a.loop_var for a in above})
    init = start_nest(sch, old, outputs, all_of(part, *_beyond(sch, outputs, part, copied, outer)), copied)
    name = sch.fresh_block(f"{old.name}_update")
    update = old.replace(name=name, init=None, reads=reads_with_output(old))
    sch.rename_block(old.name, name)
    new_outer = _with_block(outer, old, update)
    sch.replace(outer, seq([init, new_outer]))
    started = sch.block_rv(next(s for s in statements(init) if isinstance(s, BlockRealize)))
    check_annotated_loops(sch, [a.loop_var for b in (started, name) for a in sch.loops_above(b)[above.index(outer):]])
    return started


def _beyond(sch: Schedule, outputs: Sequence[tuple[IterVar, Expr]], known: Expr, copied: Sequence[For],
            outer: For) -> list[Expr]:
    """The conditions that keep output axes in their domains and that only loops which are not copied say: below
    `for k in range(n)`, n is at least 1."""
    outputs = [(iv, value) for iv, value in outputs if not is_plain(iv, value, copied)]
    if not outputs:                                        # most blocks: nothing is to be proved
        return []
    analyzer = sch.analyzer_at(outer)
    for loop in copied:
        analyzer.bind(loop.loop_var, loop.min, loop.extent)
    with analyzer.constraint(known):
        return [c for iv, value in outputs for c in bounds_to_check(iv, value, analyzer)]


def _require_start(sch: Schedule, realize: BlockRealize, below: Region) -> None:
    """The first iteration of the reduction's loops starts it, by a condition on what nothing `below` the outermost
    writes."""
    outer, written = below.nest[0], [t.buffer for t in below.touches if t.writes]
    why = unsure_start(realize, sch.loops_above(realize), sch.analyzer_at(realize))
    legal(not why, why, realize)
    require_not_read_outside(sch, realize)
    require_start_apart(realize.block, written, realize)
    require_way_unwritten(sch, realize, written, outer)


def require_start_apart(block: Block, written: Iterable[Buffer], at: Stmt) -> None:
    """The start of a reduction, which is to run before its time, reads nothing of what is `written` until then, and
    does not depend on the step."""
    assert block.init is not None
    steps = {iv.var for iv in block.iter_vars if iv.iter_type == COMM_REDUCE}
    legal(not any(n in steps for n in walk(block.init)),
          f"how block {block.name} starts its reduction depends on the step", at)
    read = {use.buffer for use in uses_below(block.init) if use.reads}
    for buffer in written:
        legal(buffer not in read, f"block {block.name} starts its reduction with {buffer.name}, which may be written "
              "in between", at)


def _loops_to_copy(sch: Schedule, realize: BlockRealize, above: list[For], outer: For) -> list[For]:
    """The loops from outer inwards that drive no reduction, but for those that run for sure and say nothing."""
    drives: dict[Var, set[int]] = {a.loop_var: set() for a in above}
    for iv, value in realize.bound:
        for node in walk(value):
            if isinstance(node, Var) and node in drives:
                drives[node].add(iv.iter_type)
    at = above.index(outer)
    for a in above[:at]:
        name = a.loop_var.name
        legal(COMM_REDUCE not in drives[a.loop_var],
              f"loop {name}, outside of {outer.loop_var.name}, drives a reduction axis of block "
              f"{realize.block.name}", outer, a, hint=f"decompose at {name}")
    for a in above[at:]:
        kinds = drives[a.loop_var]
        legal(COMM_REDUCE not in kinds or len(kinds) == 1,
              f"loop {a.loop_var.name} drives output and reduction axes of block {realize.block.name}", a)
    said = {n for e in (realize.predicate, *(e for a in above for e in (a.min, a.extent))) for n in walk(e)}
    return [a for a in above[at:] if COMM_REDUCE not in drives[a.loop_var] and (
        drives[a.loop_var] or a.loop_var in said or not (isinstance(a.extent, IntImm) and a.extent.value > 0))]


def _check_own_elements(realize: BlockRealize, loops: Sequence[For]) -> None:
    """Refuse when loops run several reductions into one element, one after the other."""
    block, varying = realize.block, {loop.loop_var for loop in loops if not is_const(loop.extent, 1)}
    written = {n for w in block.writes for r in w.region for n in walk(r)}
    for iv, value in realize.bound:
        legal(iv.iter_type == COMM_REDUCE or iv.var in written or not any(n in varying for n in walk(value)),
              f"iteration {iv.var.name} of block {block.name} does not determine what is written: each starts the "
              "reduction again", realize, hint="decompose at an inner loop")


def require_runs_once(realize: BlockRealize, region: Region, hint: str) -> None:
    """Refuse when an iteration of the region's loops repeats what another one does: one init would not do for both."""
    instance = next(i for i in region.instances if i.realize is realize)
    legal(region.runs_once(instance),
          f"the loops from {region.nest[0].loop_var.name} inwards run block {realize.block.name} more than once "
          "for the same point", *region.nest, hint=hint)


def _check_untouched_before(region: Region, realize: BlockRealize, outer: For) -> None:
    """Refuse when something below outer touches an element of the output before the block starts on it."""
    mine = [t.instance is not None and t.instance.realize is realize for t in region.touches]
    starts = [k for k, t in enumerate(region.touches) if t.writes and mine[k]]
    for k, t in enumerate(region.touches):
        for m in starts:
            start = region.touches[m]
            if mine[k] and (t is start or t.same_element(start)):
                continue
            before = {v for v in region.directions(t.access, start.access) if v[0] > 0 or v[0] == 0 and k < m
                      } if start.buffer is t.buffer else set()
            legal(not before, f"{t.buffer.name} is touched below loop {outer.loop_var.name} before block "
                  f"{realize.block.name} starts it", t.stmt, hint="decompose at an inner loop")


def start_nest(sch: Schedule, old: Block, axes: Sequence[tuple[IterVar, Expr]], predicate: Expr,
               loops: Sequence[For]) -> Stmt:
    """The init of a block in one of its own, NAME_init, over some axes with their values, below copies of loops."""
    assert old.init is not None
    fresh = {a.loop_var: sch.fresh_var(f"{a.loop_var.name}_init", a.loop_var.dtype) for a in loops}
    table = {iv.var: Var(f"{iv.var.name}_init", iv.var.dtype) for iv, _ in axes}
    iters = tuple(iv.replace(var=table[iv.var]) for iv, _ in axes)
    writes = tuple(substitute(w, table) for w in old.writes)
    block = with_reads(Block(sch.fresh_block(f"{old.name}_init"), iters, (), writes, substitute(old.init, table)))
    nest: Stmt = BlockRealize(tuple(substitute(v, fresh) for _, v in axes), substitute(predicate, fresh), block)
    for a in reversed(loops):
        low, extent = substitute(a.min, fresh), substitute(a.extent, fresh)
        nest = a.replace(loop_var=fresh[a.loop_var], min=low, extent=extent, body=nest)
    return nest


def _output_part(realize: BlockRealize, kept: set[Var], loops: set[Var]) -> Expr:
    """The conditions of the predicate that do not speak of reduction loops."""
    parts = []
    for condition in conjuncts(realize.predicate):
        used = {n for n in walk(condition) if isinstance(n, Var) and n in loops}
        if used <= kept:
            parts.append(condition)
        else:
            legal(not used & kept,
                  f"the condition {condition} of block {realize.block.name} mixes output and reduction loops",
                  realize)
    return all_of(*parts)


def reads_with_output(block: Block) -> tuple[BufferRegion, ...]:
    """The reads of the update: what is written is read first, then the rest."""
    new = [w for w in block.writes if not any(w.buffer is r.buffer and structural_equal(w, r) for r in block.reads)]
    return (*new, *block.reads)


def drop_dead_inits(sch: Schedule, part: For, first: bool) -> None:
    """Take the init from the reductions in part of a loop that never run their first step there.

    One that may have no elements keeps it, as it starts there all the same, but for those that the first part starts.
    """
    for realize in [s for s in statements(part) if isinstance(s, BlockRealize) and s.block.init is not None]:
        analyzer, block = sch.analyzer_at(realize), realize.block
        if may_be_empty(block):
            loops = sch.index.loops_above(realize)
            if first or part.loop_var not in left_by_start(realize, loops):
                continue
        if any(iv.iter_type == COMM_REDUCE and analyzer.prove(binary("gt", value, iv.domain.min))
               for iv, value in realize.bound):
            sch.replace(block, block.replace(init=None, reads=reads_with_output(block)))


def _with_block(top: For, old: Block, new: Block) -> Stmt:
    def visit(stmt: Stmt) -> Stmt:
        return new if stmt is old else map_sub_statements(stmt, visit)
    return visit(top)
