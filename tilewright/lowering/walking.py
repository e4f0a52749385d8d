"""Statements one level at a time, and the variables that IR reads."""
from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.lowering.conditions import guard, is_nop
from tilewright.tir.expr import Binary, Expr, Var
from tilewright.tir.node import Node, children
from tilewright.tir.stmt import (
    NOP,
    Allocate,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Seq,
    Stmt,
    Store,
    While,
    seq,
)


def uses_any(node: Node, variables: Any) -> bool:
    """True when node reads one of the variables (a set or mapping of Vars)."""
    if not variables:
        return False
    assert type(variables) is not tuple, "`in` on a tuple of Vars builds expressions"
    stack = [node]
    while stack:
        top = stack.pop()
        if type(top) is Var:
            if top in variables:
                return True
        elif type(top) is Binary:
            stack.append(top.a)
            stack.append(top.b)
        else:
            stack.extend(children(top))
    return False


def free_vars(node: Node) -> Iterator[Var]:
    """The variables that an expression reads, with repetitions."""
    stack = [node]
    while stack:
        top = stack.pop()
        if type(top) is Var:
            yield top
        elif type(top) is Binary:
            stack.append(top.a)
            stack.append(top.b)
        else:
            stack.extend(children(top))


def statements(stmt: Stmt) -> Iterator[Stmt]:
    """stmt and the statements below it, parents first, in program order (expressions are not visited)."""
    stack: list[Stmt] = [stmt]
    while stack:
        top = stack.pop()
        yield top
        match top:
            case Seq(stmts):
                stack.extend(reversed(stmts))
            case For() | While() | LetStmt() | Allocate():
                stack.append(top.body)
            case IfThenElse(_, then, other):
                if other is not None:
                    stack.append(other)
                stack.append(then)


def expressions(stmt: Stmt) -> list[Expr]:
    """The expressions that stmt itself evaluates, without those of the statements below it."""
    match stmt:
        case Store(_, value, indices, predicate):
            return [value, *indices] + ([predicate] if predicate is not None else [])
        case For(_, low, extent):
            return [low, extent]
        case IfThenElse(cond) | While(cond):
            return [cond]
        case LetStmt(_, value) | Evaluate(value):
            return [value]
        case Allocate(buffer):
            return list(buffer.shape)
        case _:
            return []


def map_stmts(stmt: Stmt, fn: Any) -> Stmt:
    """stmt with fn applied to its direct child statements only."""
    match stmt:
        case Seq(stmts):
            new = [fn(s) for s in stmts]
            return stmt if same_items(new, stmts) else seq(new)
        case For() | While() | LetStmt() | Allocate():
            body = fn(stmt.body)
            return stmt if body is stmt.body else NOP if is_nop(body) else stmt.replace(body=body)
        case IfThenElse(cond, then, other):
            new_then, new_other = fn(then), None if other is None else fn(other)
            return stmt if new_then is then and new_other is other else guard(cond, new_then, new_other)
        case _:
            return stmt


def same_items(a: Sequence[object], b: Sequence[object]) -> bool:
    """True when two sequences of one length hold the same objects."""
    return all(map(operator.is_, a, b))
