"""Keeps values alive that an iteration of a serial loop leaves in a buffer for the next one."""
from __future__ import annotations

from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.walking import map_stmts
from tilewright.lowering.written_first import is_written_first
from tilewright.tir.expr import Var
from tilewright.tir.stmt import SERIAL, UNROLLED, Allocate, For, IfThenElse, LetStmt, PrimFunc, Seq, Stmt, While
from tilewright.tir.symbols import uses_any


def lift_carried_buffers(func: PrimFunc) -> PrimFunc:
    """An allocation inside a serial loop is written, in each iteration, before and wherever it is read.

    Where that is not shown, the allocation moves out of the loop, unless the loop decides its size: then each iteration
    has always had its own. It never leaves a parallel or bound loop:
    its iterations have no order, so nothing is carried from one to the next. Expects loops with N-dimensional
    allocations (after lower_blocks).
    """
    return func.with_body(_visit(func.body, analyzer_for(func)))


def _visit(stmt: Stmt, analyzer: Analyzer) -> Stmt:
    if isinstance(stmt, While):
        return _lift(map_stmts(stmt, lambda s: _visit(s, analyzer)), set(), analyzer)
    if not isinstance(stmt, For):
        return map_stmts(stmt, lambda s: _visit(s, analyzer))
    with loop_scope(analyzer, stmt.loop_var, stmt.min, stmt.extent):
        new = map_stmts(stmt, lambda s: _visit(s, analyzer))
        return _lift(new, {stmt.loop_var}, analyzer) if stmt.kind in (SERIAL, UNROLLED) else new


def _lift(loop: Stmt, inside: set[Var], analyzer: Analyzer) -> Stmt:
    """loop, whose variable is in `inside`, with the allocations that belong outside around it."""
    if not isinstance(loop, (For, While)):
        return loop
    lifted: list[Allocate] = []
    out: Stmt = loop.replace(body=_take(loop.body, inside, lifted, analyzer))
    for a in reversed(lifted):
        out = a.replace(body=out)
    return out if lifted else loop


def _take(stmt: Stmt, inside: set[Var], lifted: list[Allocate], analyzer: Analyzer) -> Stmt:
    """stmt without the allocations that belong outside of the loop around it, unless they need one of the variables
    `inside` of it; inner loops have given up theirs."""
    if isinstance(stmt, Allocate) and not any(uses_any(d, inside) for d in stmt.buffer.shape) and not is_written_first(
            stmt.buffer, stmt.body, inside, analyzer):
        lifted.append(stmt)
        return _take(stmt.body, inside, lifted, analyzer)
    if isinstance(stmt, LetStmt):
        inside = {*inside, stmt.var}
    if isinstance(stmt, (Seq, Allocate, IfThenElse, LetStmt)):
        return map_stmts(stmt, lambda s: _take(s, inside, lifted, analyzer))
    return stmt
