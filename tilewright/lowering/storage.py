"""Moves allocations that come from the heap out of serial loops."""
from __future__ import annotations

from tilewright.lowering.scopes import is_small
from tilewright.lowering.walking import map_stmts
from tilewright.tir.node import statements
from tilewright.tir.stmt import SERIAL, UNROLLED, Allocate, For, PrimFunc, Seq, Stmt, seq
from tilewright.tir.symbols import uses_any


def hoist_allocations(func: PrimFunc) -> PrimFunc:
    """Allocations too large for registers stand outside of the serial loops that do not change their size.

    They never leave a parallel or thread-bound loop, whose iterations each need their own.
    """
    if not any(isinstance(s, Allocate) for s in statements(func.body)):
        return func
    return func.with_body(_visit(func.body))


def _visit(stmt: Stmt) -> Stmt:
    new = map_stmts(stmt, _visit)
    if not isinstance(new, For) or new.kind not in (SERIAL, UNROLLED):
        return new
    kept, lifted = _take(new.body, new)
    out: Stmt = new if not lifted else new.replace(body=kept)
    for a in reversed(lifted):
        out = Allocate(a.buffer, out, a.annotations)
    return out


def _take(stmt: Stmt, around: For) -> tuple[Stmt, list[Allocate]]:
    """(stmt without its outermost movable allocations, those allocations)."""
    if isinstance(stmt, Allocate):
        inner, lifted = _take(stmt.body, around)
        if is_small(stmt.buffer) or any(uses_any(d, {around.loop_var}) for d in stmt.buffer.shape):
            return (stmt.replace(body=inner) if lifted else stmt), lifted
        return inner, [stmt, *lifted]
    if isinstance(stmt, Seq):
        parts = [_take(s, around) for s in stmt.stmts]
        lifted = [a for _, taken in parts for a in taken]
        return (seq([s for s, _ in parts]) if lifted else stmt), lifted
    return stmt, []
