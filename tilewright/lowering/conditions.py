"""Guards: conjunctions marked `likely`, and statements under them."""
from __future__ import annotations

from tilewright.tir.arithmetic import all_of, conjuncts, logical_not
from tilewright.tir.expr import Call, Expr, IntImm
from tilewright.tir.stmt import NOP, IfThenElse, Seq, Stmt


def is_nop(stmt: Stmt) -> bool:
    return type(stmt) is Seq and not stmt.stmts


def terms_of(cond: Expr) -> list[Expr]:
    """The terms of a conjunction, left to right, without any `likely` around them."""
    return conjuncts(cond, through_likely=True)


def likely(terms: list[Expr]) -> Expr:
    """likely(a and b and ...); the constant True for no terms."""
    cond = all_of(*terms)
    return cond if type(cond) is IntImm else Call("likely", (cond,), cond.dtype)


def is_likely(cond: Expr) -> bool:
    return type(cond) is Call and cond.op == "likely"


def guard(cond: Expr, body: Stmt, otherwise: Stmt | None = None) -> Stmt:
    """`if cond: body else: otherwise`, decided at once when cond is a constant."""
    if type(cond) is IntImm:
        return body if cond.value else (otherwise or NOP)
    if otherwise is not None and is_nop(otherwise):
        otherwise = None
    if is_nop(body):
        return NOP if otherwise is None else IfThenElse(logical_not(cond), otherwise)
    return IfThenElse(cond, body, otherwise)
