"""Replaces blocks by the statements they stand for."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.lowering.aliases import with_one_name
from tilewright.lowering.align_strides import alignments
from tilewright.lowering.conditions import guard, is_nop, likely, terms_of
from tilewright.lowering.copying import Copier
from tilewright.lowering.software_pipeline import STAGE, in_parts
from tilewright.lowering.walking import same_items
from tilewright.support.errors import LowerError
from tilewright.tir.accesses import reads_memory
from tilewright.tir.buffer import DIM_ALIGN, Buffer
from tilewright.tir.expr import Expr, Var
from tilewright.tir.stmt import Allocate, BlockRealize, For, LetStmt, PrimFunc, Seq, Stmt, seq


def lower_blocks(func: PrimFunc) -> PrimFunc:
    """No blocks are left: iter vars are replaced by their values, predicates become `if likely(...)`.

    Allocations become Allocate statements of N-dimensional buffers, annotated with the alignments that blocks ask
    for, and loops of one iteration (unless bound to a thread) vanish. Memory that several buffers lead to has one name
    (aliases.py). What memory decides where a statement begins has a name from then on, since it may change: bounds of
    loops, values of iter vars, extents of allocations. A block of several statements in a software pipeline becomes as
    many of them, all of its stage.
    """
    return with_one_name(func.with_body(_Lowering(alignments(func))(func.body)))


class _Lowering(Copier):
    def __init__(self, aligned: Mapping[Buffer, list[list[int]]]) -> None:
        super().__init__()
        self.alignments = aligned
        self.counts: dict[int, list[int]] = {}             # what the statements of a sequence have become, by its id

    def __call__(self, node: Any) -> Any:
        if type(node) is BlockRealize:
            return self.realize(node)
        return super().__call__(node)

    def realize(self, s: BlockRealize) -> Stmt:
        terms = terms_of(self(s.predicate))
        names = _Names()
        values = [names(axis.var.name, value) for axis, value in s.bound]
        inside = [self(v) for v in values]                     # of the loops around, not of axes
        for axis, value in zip(s.block.iter_vars, inside, strict=True):
            self.variables[axis.var] = value
        assert not s.block.match_buffers, "views are left: run lower_match_buffer first"
        if s.block.init is not None:
            raise LowerError(f"block {s.block.name} still has an init: run lower_reduction_init first")
        body = s.block.body
        for buffer in reversed(s.block.alloc_buffers):         # their extents may name axes
            body = Allocate(buffer, body)
        return guard(likely(terms), self.named(names, self(body)))

    def loop(self, s: For) -> Stmt:
        names, name = _Names(), s.loop_var.name
        low, extent = names(f"{name}_begin", s.min), names(f"{name}_extent", s.extent)
        new = super().loop(s.replace(min=low, extent=extent) if names.values else s)
        if isinstance(new, For) and STAGE in new.annotations:
            new = new.replace(annotations=in_parts(new.annotations, self.parts(s.body, new.body)))
        return self.named(names, new)

    def seq(self, s: Seq) -> Stmt:
        new = [self(x) for x in s.stmts]
        self.counts[id(s)] = [_count(x) for x in new]
        return s if same_items(new, s.stmts) else seq(new)

    def parts(self, old: Stmt, new: Stmt) -> list[int]:
        """How many statements each of a body has become."""
        while isinstance(new, Allocate):
            new = new.body
        while isinstance(old, Allocate):
            old = old.body
        return self.counts[id(old)] if isinstance(old, Seq) else [_count(new)]

    def aligned(self, s: Allocate) -> Allocate:
        rows = self.alignments.get(s.buffer)
        return s if rows is None else s.replace(annotations={**s.annotations, DIM_ALIGN: rows})

    def allocate(self, s: Allocate) -> Stmt:
        names = _Names()
        shape = tuple(names(f"{s.buffer.name}_extent", d) for d in s.buffer.shape)
        if names.values:
            self.buffers[s.buffer] = s.buffer.replace(shape=shape)
        return self.named(names, super().allocate(self.aligned(s)))

    def named(self, names: _Names, stmt: Stmt) -> Stmt:
        """stmt where the names hold; their values are still to be lowered."""
        for var, value in reversed(names.values.items()):
            stmt = stmt if is_nop(stmt) else LetStmt(var, self(value), stmt)
        return stmt


def _count(s: Stmt) -> int:
    return len(s.stmts) if isinstance(s, Seq) else 1


class _Names:
    """Names for values that memory decides; others stand for themselves."""

    def __init__(self) -> None:
        self.values: dict[Var, Expr] = {}

    def __call__(self, name: str, value: Expr) -> Expr:
        if not reads_memory(value):
            return value
        var = Var(name, value.dtype)
        self.values[var] = value
        return var
