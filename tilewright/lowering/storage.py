"""Moves allocations that come from the heap out of serial loops."""
from __future__ import annotations

from tilewright.lowering.scopes import is_small
from tilewright.lowering.walking import map_stmts
from tilewright.tir.node import statements
from tilewright.tir.stmt import SERIAL, UNROLLED, Allocate, For, PrimFunc, Seq, Stmt, seq
from tilewright.tir.symbols import uses_any


def hoist_allocations(func: PrimFunc) -> PrimFunc:
    """Allocations too large for registers stand outside of the serial loops that do not change their size.

    They never leave a parallel or thread-bound loop, whose iterations each need their own (but those of a thread share
    one: `outline_parallel_loops`).
    """
    if not any(isinstance(s, Allocate) for s in statements(func.body)):
        return func
    return func.with_body(_visit(func.body))


def _visit(stmt: Stmt) -> Stmt:
    new = map_stmts(stmt, _visit)
    return allocating_once(new) if isinstance(new, For) and new.kind in (SERIAL, UNROLLED) else new


def allocating_once(loop: For) -> Stmt:
    """A loop with its allocations around it: those that are too large for registers, and whose size it does not change.
    """
    kept, lifted = _take(loop.body, loop)
    out: Stmt = loop if not lifted else loop.replace(body=kept)
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
