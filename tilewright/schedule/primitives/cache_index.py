"""Copies of buffers: indices are computed ahead."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.analysis.dataflow import block_statements, loads_of, require_leaf
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.caching import axes_in, from_zero, require_index
from tilewright.schedule.primitives.nest import nest
from tilewright.schedule.primitives.storage import require_scope
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import require
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load, element_region
from tilewright.tir.dtype import is_integer
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Binary, Cast, Expr, IntImm, Select, Var
from tilewright.tir.iter_var import DATA_PARALLEL
from tilewright.tir.node import Node, children, rewrite, rewrite_top_down, substitute, walk
from tilewright.tir.stmt import Block, BlockRealize, Stmt, Store, seq


@primitive
def cache_index(sch: Schedule, block: BlockRV, storage_scope: str, cse_thresh: int = 0) -> list[BlockRV]:
    """Compute the indices at which a block reads ahead, into integer buffers.

        for i, j in grid(80, 40): B[i, j] = A[i // 4 + j // 4, j // 2]
    ->
        for i, j in grid(80, 40): index_var_0[i, j] = i // 4 + j // 4
        for j in range(40): index_var_1[j] = j // 2
        for i, j in grid(80, 40): B[i, j] = A[index_var_0[i, j], index_var_1[j]]

    cse_thresh: 0 caches each whole index that computes something (is more than a variable or a constant); n > 0
    caches the largest expressions that occur in the indices n times or more. The new buffers, in storage_scope, have an
    axis for each iteration variable in the expression. Returns the new blocks, index_0, index_1, ..., which stand
    before the nest of the block; none where there is nothing to cache, and then nothing changes.

    Legal when the block holds no other block: whatever depends on data, on a loop inside the block, or on a division by
    what may be 0 is left as it is.
    """
    realize = sch.realize(block)
    require_leaf(sch, realize)
    require_scope(storage_scope, realize)
    require(isinstance(cse_thresh, int) and not isinstance(cse_thresh, bool) and cse_thresh >= 0,
            f"cse_thresh is {cse_thresh!r}, not a number of repetitions", realize)
    indices = _Indices(sch, realize, cse_thresh)
    made = [_IndexBlock(sch, realize, e, n, storage_scope) for n, e in enumerate(indices.chosen())]
    if not made:
        return []
    used = tuple(element_region(m.element.buffer, m.element.indices) for m in made)
    block_now = indices.replaced(made)
    now = realize.replace(block=block_now.replace(reads=block_now.reads + used))
    sch.replace(realize, now)
    loops = sch.loops_above(now)
    top: Stmt = loops[0] if loops else now
    sch.replace(top, seq([*(m.nest for m in made), top]))
    sch.add_alloc(*(m.element.buffer for m in made))
    return [sch.block_rv(m.name) for m in made]


class _Indices:
    """The indices of a block's loads, and the expressions in them that can be computed ahead."""

    def __init__(self, sch: Schedule, realize: BlockRealize, repetitions: int) -> None:
        self.block, self.repetitions = realize.block, repetitions
        self.axes = {iv.var for iv in realize.block.iter_vars}
        self.known = self.axes | set(sch.shape_vars())
        self.analyzer = sch.analyzer_at(realize.block.body)
        self.written = {w.buffer for w in realize.block.writes}

    def chosen(self) -> list[Expr]:
        """The expressions to cache, each once, in order of first use."""
        found: list[Expr] = []
        loads = [x for x in loads_of(block_statements(self.block)) if x.buffer not in self.written]
        indices = [i for x in loads for i in x.indices]
        parts = [n for i in indices for n in walk(i) if isinstance(n, Expr) and self._can_be_ahead(n)]

        def visit(e: Expr) -> None:
            fits = self._can_be_ahead(e)
            if fits and (not self.repetitions or sum(structural_equal(e, p) for p in parts) >= self.repetitions):
                if not any(structural_equal(e, other) for other in found):
                    found.append(e)
            elif self.repetitions and not isinstance(e, Load):
                for below in children(e):
                    assert isinstance(below, Expr)
                    visit(below)

        for i in indices:
            visit(i)
        return found

    def _can_be_ahead(self, e: Expr) -> bool:
        """True for a computation on the block's iteration variables that is defined wherever these are."""
        if not isinstance(e, (Binary, Cast, Select)) or not is_integer(e.dtype):
            return False
        nodes = list(walk(e))
        if not any(n in self.axes for n in nodes):
            return False
        return all(n in self.known if isinstance(n, Var) else self._is_defined(n) for n in nodes)

    def _is_defined(self, n: Node) -> bool:
        if isinstance(n, Binary) and n.op in ("floordiv", "floormod", "truncdiv", "truncmod"):
            return self.analyzer.prove(binary("gt", n.b, 0))
        return isinstance(n, (Binary, Cast, Select, IntImm))

    def replaced(self, made: Sequence[_IndexBlock]) -> Block:
        """The block with loads of the index buffers for the expressions in its indices."""
        def cached(n: Node) -> Node | None:
            return next((m.element for m in made if isinstance(n, Expr) and structural_equal(n, m.expr)), None)

        def step(n: Node) -> Node | None:
            if isinstance(n, Load) and n.buffer not in self.written:
                return n.replace(indices=tuple(rewrite_top_down(i, cached) for i in n.indices))
            return None

        init = None if self.block.init is None else rewrite(self.block.init, step)
        return self.block.replace(init=init, body=rewrite(self.block.body, step))


class _IndexBlock:
    """expr computed for all points of the axes that it depends on: the loops, and its element in the block's axes."""

    def __init__(self, sch: Schedule, realize: BlockRealize, expr: Expr, number: int, scope: str) -> None:
        self.expr, axes = expr, axes_in(realize, [expr])
        self.name = sch.fresh_block(f"index_{number}")
        fresh = {iv.var: Var(iv.var.name, iv.var.dtype) for iv in axes}
        point = tuple(from_zero(iv) for iv in axes)
        for e in point:
            require_index(e, realize)
        buffer = Buffer(f"index_var_{number}", tuple(iv.domain.extent for iv in axes), expr.dtype, scope=scope)
        self.element = Load(buffer, point)
        place = tuple(substitute(i, fresh) for i in point)
        iter_vars = tuple(iv.replace(var=fresh[iv.var], iter_type=DATA_PARALLEL) for iv in axes)
        block = Block(self.name, iter_vars, (), (element_region(buffer, place),),
                      Store(buffer, substitute(expr, fresh), place))
        self.nest = nest(block, {}, sch.analyzer_at(None), True)

