"""Drops statements that do nothing."""
from __future__ import annotations

from tilewright.arith.linear import structural_key
from tilewright.lowering.conditions import guard, is_nop
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Call, Expr, IntImm
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import (
    NOP,
    Allocate,
    BlockRealize,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    seq,
)
from tilewright.tir.symbols import uses_any


def remove_no_ops(func: PrimFunc) -> PrimFunc:
    """func, of any form, without statements that neither store nor call.

    These are values that nobody takes, elements stored over themselves, loops without iterations, and whatever holds
    nothing else. The root block stays.
    """
    root = func.body
    if isinstance(root, BlockRealize):
        block = root.block
        body = rewrite(block.body, _without)
        return func if body is block.body else func.with_body(root.replace(block=block.replace(body=body)))
    return func.with_body(rewrite(root, _without))


def has_effect(e: Expr) -> bool:
    """True when something in e must be kept, and kept in order."""
    return any(isinstance(n, Call) and (n.op not in INTRINSICS or INTRINSICS[n.op].kind == "effect") for n in walk(e))


def _without(s: Node) -> Stmt | None:
    """What is left of a statement whose parts were looked at; None: all of it."""
    match s:
        case Evaluate(value):
            return None if has_effect(value) else NOP
        case Store(buffer, Load() as value, indices) if value.buffer is buffer and value.predicate is s.predicate:
            same = structural_key(value.indices) == structural_key(indices)
            return NOP if same and not any(map(has_effect, indices)) else None
        case For(_, low, extent, _, body):
            empty = isinstance(extent, IntImm) and extent.value <= 0
            return NOP if (empty or is_nop(body)) and not has_effect(low) and not has_effect(extent) else None
        case IfThenElse(condition, then, other) if is_nop(then) or (other is not None and is_nop(other)):
            nothing_left = is_nop(then) and (other is None or is_nop(other))
            return None if nothing_left and has_effect(condition) else guard(condition, then, other)
        case LetStmt(var, value, body) if is_nop(body) or not uses_any(body, {var}):
            return None if has_effect(value) else body
        case Allocate(_, body) if is_nop(body):
            return NOP
        case BlockRealize() if is_nop(s.block.body) and s.block.init is None:
            return NOP
        case Seq(stmts):
            kept = [x for x in stmts if not is_nop(x)]
            return None if len(kept) == len(stmts) > 1 else seq(kept)
    return None
