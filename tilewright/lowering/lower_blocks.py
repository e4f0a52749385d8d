"""Replaces blocks by the statements they stand for."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.lowering.aliases import with_one_name
from tilewright.lowering.align_strides import alignments
from tilewright.lowering.conditions import guard, likely, terms_of
from tilewright.lowering.copying import Copier
from tilewright.lowering.scopes import reads_memory
from tilewright.support.errors import LowerError
from tilewright.tir.buffer import DIM_ALIGN, Buffer
from tilewright.tir.expr import Var
from tilewright.tir.stmt import Allocate, BlockRealize, LetStmt, PrimFunc, Stmt


def lower_blocks(func: PrimFunc) -> PrimFunc:
    """No blocks are left: iter vars are replaced by their values, predicates become `if likely(...)`.

    Allocations become Allocate statements of N-dimensional buffers, annotated with the alignments that blocks ask
    for, and loops of one iteration (unless bound to a thread) vanish. Extents that read memory have a name, so that the
    buffer keeps the size that it was allocated with; memory that several buffers lead to has one (aliases.py).
    """
    return with_one_name(func.with_body(_Lowering(alignments(func))(func.body)))


class _Lowering(Copier):
    def __init__(self, aligned: Mapping[Buffer, list[list[int]]]) -> None:
        super().__init__()
        self.alignments = aligned

    def __call__(self, node: Any) -> Any:
        if type(node) is BlockRealize:
            return self.realize(node)
        return super().__call__(node)

    def realize(self, s: BlockRealize) -> Stmt:
        values = [self(v) for v in s.iter_values]
        terms = terms_of(self(s.predicate))
        for axis, value in zip(s.block.iter_vars, values, strict=True):
            self.variables[axis.var] = value
        assert not s.block.match_buffers, "views are left: run lower_match_buffer first"
        if s.block.init is not None:
            raise LowerError(f"block {s.block.name} still has an init: run lower_reduction_init first")
        body = s.block.body
        for buffer in reversed(s.block.alloc_buffers):         # their extents may name axes
            body = Allocate(buffer, body)
        return guard(likely(terms), self(body))

    def aligned(self, s: Allocate) -> Allocate:
        rows = self.alignments.get(s.buffer)
        return s if rows is None else s.replace(annotations={**s.annotations, DIM_ALIGN: rows})

    def allocate(self, s: Allocate) -> Stmt:
        if not reads_memory(s.buffer.shape):
            return super().allocate(self.aligned(s))
        shape = [Var(f"{s.buffer.name}_extent", d.dtype) if reads_memory([d]) else d for d in s.buffer.shape]
        self.buffers[s.buffer] = s.buffer.replace(shape=tuple(shape))
        out = super().allocate(self.aligned(s))
        for name, extent in zip(shape, s.buffer.shape, strict=True):
            if name is not extent:
                out = LetStmt(name, self(extent), out)
        return out
