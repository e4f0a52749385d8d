"""Statements rewritten one level at a time; those that have nothing left to do vanish."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from tilewright.lowering.conditions import guard, is_nop
from tilewright.tir.stmt import NOP, Allocate, For, IfThenElse, LetStmt, Stmt, While, map_sub_statements


def map_stmts(stmt: Stmt, fn: Any) -> Stmt:
    """stmt with fn applied to the statements directly below it; NOP where that leaves nothing to do."""
    new = map_sub_statements(stmt, fn)
    if new is stmt:
        return stmt
    if isinstance(new, IfThenElse):
        return guard(new.condition, new.then_case, new.else_case)
    return NOP if isinstance(new, (For, While, LetStmt, Allocate)) and is_nop(new.body) else new


def same_items(a: Sequence[object], b: Sequence[object]) -> bool:
    """True when two sequences of one length hold the same objects."""
    return all(map(operator.is_, a, b))
