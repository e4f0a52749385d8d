"""Replaces blocks by the statements they stand for."""
from __future__ import annotations

from typing import Any

from tilewright.lowering.conditions import conjuncts, guard, likely
from tilewright.lowering.copying import Copier
from tilewright.support.errors import LowerError
from tilewright.tir.buffer import Buffer, Load, MatchBuffer
from tilewright.tir.expr import Expr, IntImm, Var, binary
from tilewright.tir.stmt import Allocate, Block, BlockRealize, PrimFunc, Stmt, Store


def lower_blocks(func: PrimFunc) -> PrimFunc:
    """No blocks are left: iter vars are replaced by their values, predicates become `if likely(...)`.

    Allocations become Allocate statements of N-dimensional buffers, views (`match_buffer`) accesses to
    their source, and loops of one iteration (unless bound to a thread) vanish. Raises LowerError for a view
    that cannot be resolved.
    """
    return func.with_body(_Lowering()(func.body))


class _Lowering(Copier):
    def __init__(self) -> None:
        super().__init__()
        self.views: dict[Buffer, tuple[Buffer, tuple[Expr, ...]]] = {}        # view -> (source, offsets)

    def __call__(self, node: Any) -> Any:
        if type(node) is BlockRealize:
            return self.realize(node)
        return super().__call__(node)

    def realize(self, s: BlockRealize) -> Stmt:
        values = [self(v) for v in s.iter_values]
        terms = conjuncts(self(s.predicate))
        for axis, value in zip(s.block.iter_vars, values, strict=True):
            self.variables[axis.var] = value
        for view in s.block.match_buffers:
            self.add_view(view)
        body = self.block_body(s.block)
        for buffer in reversed(s.block.alloc_buffers):
            body = Allocate(buffer, body)
        return guard(likely(terms), body)

    def block_body(self, block: Block) -> Stmt:
        if block.init is not None:
            raise LowerError(f"block {block.name} still has an init: run lower_reduction_init first")
        return self(block.body)

    def add_view(self, view: MatchBuffer) -> None:
        source, region = view.source.buffer, view.source.region
        spare = source.ndim - view.buffer.ndim
        if spare < 0:
            raise LowerError(f"match_buffer {view.buffer.name} has {view.buffer.ndim} dimensions, "
                             f"its source {source.name} has {source.ndim}")
        mins = tuple(self(r.min) for r in region)
        if source in self.views:
            source, mins = self.resolve(source, mins)
        self.views[view.buffer] = (source, mins)
        strides = source.strides or row_major(source)
        for want, have in zip(view.buffer.strides, strides[len(strides) - view.buffer.ndim:], strict=False):
            if isinstance(want, Var):
                self.variables[want] = have
        if isinstance(view.buffer.elem_offset, Var):
            offset: Expr = IntImm(0) if source.elem_offset is None else source.elem_offset
            for low, stride in zip(mins, strides, strict=True):
                offset = binary("add", offset, binary("mul", low, stride))
            self.variables[view.buffer.elem_offset] = offset
        self.variables[view.buffer.data] = source.data

    def resolve(self, view: Buffer, indices: tuple[Expr, ...]) -> tuple[Buffer, tuple[Expr, ...]]:
        source, mins = self.views[view]
        spare = len(mins) - len(indices)
        return source, mins[:spare] + tuple(
            binary("add", low, i) for low, i in zip(mins[spare:], indices, strict=True))

    def load(self, e: Load) -> Expr:
        new = super().load(e)
        if isinstance(new, Load) and new.buffer in self.views:
            return Load(*self.resolve(new.buffer, new.indices), new.predicate)
        return new

    def store(self, s: Store) -> Stmt:
        new = super().store(s)
        if isinstance(new, Store) and new.buffer in self.views:
            source, indices = self.resolve(new.buffer, new.indices)
            return Store(source, new.value, indices, new.predicate)
        return new


def row_major(buffer: Buffer) -> tuple[Expr, ...]:
    """The strides of a compact buffer, in elements."""
    out: list[Expr] = []
    step: Expr = IntImm(1)
    for extent in reversed(buffer.shape):
        out.append(step)
        step = binary("mul", step, extent)
    return tuple(reversed(out))

