"""Reductions: parts are reduced on their own."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis.covering import with_reads
from tilewright.schedule.analysis.dataflow import require_stage
from tilewright.schedule.analysis.domains import bind_axes
from tilewright.schedule.analysis.iteration import unsure_start
from tilewright.schedule.analysis.reducers import Reduction, reduction_of, stores
from tilewright.schedule.analysis.region import Region
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.storage import allocate, require_scope
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV, simpler
from tilewright.support.errors import legal, require
from tilewright.tir.arithmetic import all_of, binary, conjuncts, if_then_else, intrinsic
from tilewright.tir.buffer import Buffer, Load, element_region
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr, FloatImm, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar, Range
from tilewright.tir.node import Node, statements, substitute, walk
from tilewright.tir.stmt import SERIAL, UNROLLED, Block, BlockRealize, For, Stmt, seq


@primitive
def rfactor(sch: Schedule, loop: LoopRV, factor_axis: int, mem_scope: str = "global") -> BlockRV:
    """Reduce each iteration of a reduction loop on its own, into a buffer with one more axis, and that buffer
    afterwards.

        for i, ko, ki in grid(n, m, 4):                for i, ko, ki in grid(n, m, 4):
            B[i] = B[i] + A[i, ko * 4 + ki]    ->          B_rf[ki, i] = B_rf[ki, i] + A[i, ko * 4 + ki]
                                                       for i, ki in grid(n, 4):
                                                           B[i] = B[i] + B_rf[ki, i]

    loop: of the reduction; it drives an output axis of the new block, so it can be parallel or vectorized there.
    factor_axis: the place of the new axis in the new buffer; negative ones count from behind. mem_scope: of the new
    buffer. `block` goes on to name the second block, and handles to loops of output axes and to `loop` stay with it;
    handles to the other loops of the reduction go to the new block, which is returned: NAME_rf. A condition on the
    loops of the reduction (a split that does not divide) becomes part of the terms: the identity where it fails.

    Of equal values, where the program says nothing of their indices, an argmax may find another one. The conditions
    are those of Suriana, Adams and Kamil (Parallel associative reductions in Halide, CGO 2017).

    Legal when
    - the reduction is associative and commutative: sums, products, minima, maxima, bitwise operators, several of these
      at once, argmax, argmin, and combiners that te.comm_reducer was told to be so;
    - no loop drives output and reduction axes at once;
    - only the block stands below the loops of the reduction;
    - these run each step of it once, beginning with the first, which no condition keeps from running.
    """
    outer = sch.loop(loop)
    below = [s for s in statements(outer.body) if isinstance(s, BlockRealize)]
    require(len(below) == 1, f"loop {outer.loop_var.name} has {len(below)} blocks below it", outer,
            hint="rfactor takes a loop around one reduction block")
    require_scope(mem_scope, outer)
    realize = below[0]
    require_stage(sch, realize)
    found = _reduction(realize)
    axis = _axis(factor_axis, len(found.point), found.targets[0])
    loops = _private_loops(sch, realize)
    others = _reduction_loops(realize, sch.loops_above(realize), loops, outer)
    why = unsure_start(realize, sch.loops_above(realize), sch.analyzer_at(realize))
    legal(not why, why, realize)
    region = Region(sch, loops)
    legal(region.runs_once(region.instances[0]),
          f"the loops around block {realize.block.name} may run a step of the reduction twice", *loops)
    work = _Factoring(sch, realize, loops, outer, others, found, axis, mem_scope)
    name = sch.fresh_block(f"{realize.block.name}_rf")
    sch.replace(loops[0], seq([work.partial_nest(name), work.final_nest()]))
    allocate(sch, *work.buffers)
    return sch.block_rv(name)


def _reduction(realize: BlockRealize) -> Reduction:
    block = realize.block
    require(block.init is not None, f"block {block.name} is not a reduction with an init", realize,
            hint="rfactor comes before decompose_reduction")
    require(not block.match_buffers, f"block {block.name} has views of buffers (match_buffer)", realize)
    found = reduction_of(block)
    require(found is not None, f"block {block.name} is not known to combine terms by an associative operator", realize,
            hint="known are +, *, min, max, &, |, ^, argmax and argmin of an index and a value, "
                 "and what te.comm_reducer makes")
    assert found is not None
    return found


def _axis(factor_axis: int, rank: int, target: Buffer) -> int:
    fine = isinstance(factor_axis, int) and not isinstance(factor_axis, bool) and -rank - 1 <= factor_axis <= rank
    require(fine, f"factor_axis is {factor_axis!r}; {target.name} has {rank} dimension(s)",
            hint=f"it is one of {-rank - 1}, ..., {rank}")
    return factor_axis % (rank + 1)


def _private_loops(sch: Schedule, realize: BlockRealize) -> list[For]:
    """The loops around the block with nothing else in them, outermost first."""
    loops = sch.loops_above(realize)
    inner: Stmt = realize
    for n in range(len(loops) - 1, -1, -1):
        if loops[n].body is not inner:
            return loops[n + 1:]
        inner = loops[n]
    return loops


def _reduction_loops(realize: BlockRealize, above: Sequence[For], loops: Sequence[For], outer: For) -> list[For]:
    """The loops that drive reduction axes, but for `outer`."""
    block = realize.block
    own, around = ({loop.loop_var for loop in group} for group in (loops, above))
    drives: dict[Var, set[bool]] = {}
    for iv, value in realize.bound:
        for n in walk(value):
            if isinstance(n, Var):
                drives.setdefault(n, set()).add(iv.iter_type == COMM_REDUCE)
                require(iv.iter_type != COMM_REDUCE or n in own or n not in around,
                        f"a loop of the reduction of block {block.name} has other statements in it, too", outer)
    for loop in loops:
        require(len(drives.get(loop.loop_var, ())) < 2,
                f"loop {loop.loop_var.name} drives output and reduction axes of block {block.name}", loop)
        fixed = not any(n in own for e in (loop.min, loop.extent) for n in walk(e))
        require(fixed, f"the extent of loop {loop.loop_var.name} depends on other loops", loop)
    name = outer.loop_var.name
    require(True in drives.get(outer.loop_var, ()), f"loop {name} drives no reduction axis of block {block.name}",
            outer, hint="rfactor takes a loop of the reduction")
    require(outer.kind in (SERIAL, UNROLLED), f"loop {name} is {outer.kind}", outer, hint="rfactor it first")
    return [loop for loop in loops if loop is not outer and True in drives.get(loop.loop_var, ())]


@dataclass
class _Factoring:
    """The two nests that take the place of a reduction."""
    sch: Schedule
    realize: BlockRealize
    loops: Sequence[For]                       # around the block and nothing else
    outer: For                                 # the factored one
    others: Sequence[For]                      # of the reduction
    found: Reduction
    axis: int
    scope: str

    def __post_init__(self) -> None:
        extent = self.outer.extent
        self.buffers = tuple(_with_axis(b, self.axis, extent, self.scope) for b in self.found.targets)
        self.factor = IterVar(Range(IntImm(0, extent.dtype), extent), _iter_var(self.outer.loop_var), DATA_PARALLEL)
        self.split_vars, self.inner = self._replaced_axes()
        self.terms_parts, self.kept = self._conditions()

    # ---- which axes and conditions change

    def _replaced_axes(self) -> tuple[list[IterVar], dict[Var, IterVar]]:
        """(reduction axes that the factored loop drives, new axes for the other loops that drive these)."""
        others = {loop.loop_var: loop for loop in self.others}
        chosen, changed = {self.outer.loop_var}, True
        axes: list[IterVar] = []
        pairs = [(iv, v) for iv, v in self.realize.bound if iv.iter_type == COMM_REDUCE]
        groups: list[tuple[set[Var], IterVar | None]] = [
            ({n for n in walk(v) if isinstance(n, Var)}, iv) for iv, v in pairs]
        groups += [({n for n in walk(part) if isinstance(n, Var)}, None) for part in conjuncts(self.realize.predicate)]
        while changed:
            changed = False
            for used, iv in groups:
                if used & chosen and (not used & others.keys() <= chosen or iv is not None and not _holds(axes, iv)):
                    chosen |= used & others.keys()
                    axes += [] if iv is None or _holds(axes, iv) else [iv]
                    changed = True
        inner = {v: IterVar(Range(loop.min, loop.extent), _iter_var(v), COMM_REDUCE)
                 for v, loop in others.items() if v in chosen}
        return axes, inner

    def _conditions(self) -> tuple[list[Expr], list[Expr]]:
        """The parts of the predicate that become part of the terms, and the rest."""
        own = {self.outer.loop_var, *self.inner}
        reducing = {self.outer.loop_var, *(loop.loop_var for loop in self.others)}
        output = {loop.loop_var for loop in self.sch.loops_above(self.realize)} - reducing
        moved: list[Expr] = []
        kept: list[Expr] = []
        for part in conjuncts(self.realize.predicate):
            used = {n for n in walk(part) if isinstance(n, Var)}
            require(not used & reducing or not used & output,
                    f"the condition {part} of block {self.realize.block.name} mixes output and reduction loops",
                    self.realize)
            (moved if used & own else kept).append(part)
        return moved, kept

    # ---- the nests

    def partial_nest(self, name: str) -> Stmt:
        """The block that reduces each iteration of the factored loop by itself."""
        block, loop_vars = self.realize.block, {loop.loop_var: loop for loop in self.others}
        fresh = {loop.loop_var: self.sch.fresh_var(loop.loop_var.name, loop.loop_var.dtype)
                 for loop in self.loops if loop.loop_var not in loop_vars}
        renamed = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in block.iter_vars if iv.iter_type == DATA_PARALLEL}
        axes, values = self._partial_axes(renamed, fresh)
        terms = self._terms(renamed)
        point = _inserted([substitute(p, renamed) for p in self.found.point], self.axis, self.factor.var)
        reduces = any(iv.iter_type == COMM_REDUCE for iv in axes)
        start = stores(self.buffers, self.found.combiner.identity, point) if reduces else None
        body = self.found.step(self.buffers, point, terms) if reduces else stores(self.buffers, terms, point)
        writes = tuple(element_region(b, point) for b in self.buffers)
        made = with_reads(Block(name, tuple(axes), (), writes, body, start, annotations=block.annotations))
        nest: Stmt = BlockRealize(tuple(values), substitute(all_of(*self.kept), fresh), made)
        for loop in reversed(self.loops):
            nest = loop.replace(loop_var=fresh.get(loop.loop_var, loop.loop_var), body=nest)
        return nest

    def _partial_axes(self, renamed: Mapping[Var, Var], fresh: Mapping[Var, Node]) -> tuple[list[IterVar], list[Expr]]:
        """The axes of the partial block and their values: output axes, the factored one among them, then the rest."""
        spatial: list[tuple[IterVar, Expr]] = []
        reduced: list[tuple[IterVar, Expr]] = []
        for iv, value in self.realize.bound:
            if iv.iter_type == DATA_PARALLEL:
                spatial.append((iv.replace(var=renamed[iv.var]), substitute(value, fresh)))
            elif not _holds(self.split_vars, iv):
                reduced.append((iv, value))
        step = binary("sub", fresh[self.outer.loop_var], self.outer.min)
        spatial.insert(min(self.axis, len(spatial)), (self.factor, self._simpler(step)))
        reduced += [(iv, v) for v, iv in self.inner.items()]
        place = {loop.loop_var: n for n, loop in enumerate(self.loops)}
        reduced.sort(key=lambda pair: min((place[n] for n in walk(pair[1]) if isinstance(n, Var) and n in place),
                                         default=0))
        both = spatial + reduced
        return [iv for iv, _ in both], [value for _, value in both]

    def _terms(self, renamed: Mapping[Var, Expr]) -> tuple[Expr, ...]:
        """The terms in the axes of the partial block, the identity where the loops run beyond the reduction."""
        loops: dict[Var, Expr] = {v: iv.var for v, iv in self.inner.items()}
        loops[self.outer.loop_var] = self._simpler(binary("add", self.factor.var, self.outer.min))
        table: dict[Var, Node] = dict(renamed)
        for iv, value in self.realize.bound:
            if _holds(self.split_vars, iv):
                table[iv.var] = self._simpler(cast(iv.var.dtype, substitute(value, loops)))
        terms = tuple(substitute(t, table) for t in self.found.terms)
        if not self.terms_parts:
            return terms
        condition = intrinsic("likely", all_of(*[substitute(p, loops) for p in self.terms_parts]))
        return tuple(if_then_else(condition, t, _nothing(operator, e))
                     for t, operator, e in zip(terms, self.found.operators, self.found.combiner.identity, strict=True))

    def final_nest(self) -> Stmt:
        """The block, under its old name, that reduces the parts."""
        block = self.realize.block
        dropped = {loop.loop_var for loop in self.others}
        step = IterVar(self.factor.dom, Var(self.factor.var.name, self.factor.var.dtype), COMM_REDUCE)
        pairs = [(iv, v) for iv, v in self.realize.bound if iv.iter_type == DATA_PARALLEL]
        pairs.append((step, self._simpler(binary("sub", self.outer.loop_var, self.outer.min))))
        point = _inserted(self.found.point, self.axis, step.var)
        body = self.found.step(self.found.targets, self.found.point,
                               tuple(Load(b, point) for b in self.buffers))
        made = with_reads(block.replace(iter_vars=tuple(iv for iv, _ in pairs), body=body))
        kept = [p for p in self.kept if not any(n in dropped for n in walk(p))]
        nest: Stmt = BlockRealize(tuple(v for _, v in pairs), all_of(*kept), made)
        for loop in reversed(self.loops):
            nest = nest if loop.loop_var in dropped else loop.replace(body=nest)
        return nest

    def _simpler(self, e: Expr) -> Expr:
        analyzer: Analyzer = self.sch.analyzer_at(None)
        bind_axes(analyzer, (self.factor, *self.inner.values()))
        return simpler(e, analyzer)


def _nothing(operator: str, identity: Expr) -> Expr:
    """What leaves every value as it is: for sums of floats -0.0, since -0.0 + 0.0 is 0.0."""
    return const(-0.0, identity.dtype) if operator == "add" and isinstance(identity, FloatImm) else identity


def _holds(axes: Sequence[IterVar], iv: IterVar) -> bool:
    return any(iv is other for other in axes)


def _iter_var(loop_var: Var) -> Var:
    """The axis for a loop: vk for k, v_rows for rows."""
    name = loop_var.name
    return Var(f"v{name}" if len(name) == 1 else f"v_{name}", loop_var.dtype)


def _inserted(point: Sequence[Expr], axis: int, index: Expr) -> tuple[Expr, ...]:
    return (*point[:axis], index, *point[axis:])


def _with_axis(buffer: Buffer, axis: int, extent: Expr, scope: str) -> Buffer:
    return Buffer(f"{buffer.name}_rf", _inserted(buffer.shape, axis, extent), buffer.dtype, scope=scope)
