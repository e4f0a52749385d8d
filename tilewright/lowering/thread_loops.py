"""Writes out which thread of a block does what: loops inside of others of one axis, and what threads do together."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.lowering.scopes import analyzer_for
from tilewright.lowering.walking import map_stmts
from tilewright.support.errors import LowerError
from tilewright.tir.expr import Var
from tilewright.tir.node import statements
from tilewright.tir.shared_work import Sharing, is_shared
from tilewright.tir.stmt import THREAD_BINDING, Allocate, For, LetStmt, PrimFunc, Stmt, is_thread_axis
from tilewright.tir.symbols import uses_any


def unify_thread_loops(func: PrimFunc) -> PrimFunc:
    """No loop bound to a thread axis is inside another one of the same axis: it uses the outer one's variable.

    Where the inner extent is smaller, the other threads are kept out by a guard. Virtual threads are as many axes as
    there are loops. What the threads of a block do together has its barriers (tir.shared_work), and the memory that
    they share is allocated outside of the loops over them. Raises LowerError where the inner extent is larger or cannot
    be compared, and for a barrier that not all threads would reach.
    """
    if not any(isinstance(s, For) and s.kind == THREAD_BINDING for s in statements(func.body)):
        return func

    def refuse(message: str, *at: Stmt, hint: str = "") -> None:
        raise LowerError(message, hint)

    return func.with_body(_outside(Sharing(func, refuse, analyzer_for(func).equal).visit(func.body)))


def _outside(stmt: Stmt) -> Stmt:
    """stmt with what threads share allocated around the outermost loop over them."""
    if not (isinstance(stmt, For) and is_thread_axis(stmt.thread_tag)):
        return map_stmts(stmt, _outside)
    lifted: list[Allocate] = []
    out = _without(stmt, frozenset(), lifted.append)
    for a in reversed(lifted):
        out = a.replace(body=out)
    return out


def _without(stmt: Stmt, inside: frozenset[Var], lift: Callable[[Allocate], None]) -> Stmt:
    """stmt without its allocations of shared memory, which lift gets, where their size is known outside."""
    if isinstance(stmt, (For, LetStmt)):
        inside |= {stmt.loop_var if isinstance(stmt, For) else stmt.var}
    if isinstance(stmt, Allocate) and is_shared(stmt.buffer) and not any(
            uses_any(d, inside) for d in stmt.buffer.shape):
        lift(stmt)
        return _without(stmt.body, inside, lift)
    return map_stmts(stmt, lambda s: _without(s, inside, lift))
