"""Drops statements that do nothing."""
from __future__ import annotations

from tilewright import tir
from tilewright.arith.linear import structural_key
from tilewright.lowering.conditions import guard, is_nop
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import seq
from tilewright.tir.symbols import uses_any


def remove_no_ops(func: tir.PrimFunc) -> tir.PrimFunc:
    """func, of any form, without statements that neither store nor call.

    These are values that nobody takes, elements stored over themselves, loops without iterations, and whatever holds
    nothing else. The root block stays.
    """
    root = func.body
    if isinstance(root, tir.BlockRealize):
        block = root.block
        body = rewrite(block.body, _without)
        return func if body is block.body else func.with_body(root.replace(block=block.replace(body=body)))
    return func.with_body(rewrite(root, _without))


def has_effect(e: tir.Expr) -> bool:
    """True when something in e must be kept, and kept in order."""
    calls = (n.op for n in walk(e) if isinstance(n, tir.Call))
    return any(op not in INTRINSICS or INTRINSICS[op].kind == "effect" for op in calls)


def _without(s: Node) -> tir.Stmt | None:
    """What is left of a statement whose parts were looked at; None: all of it."""
    match s:
        case tir.Evaluate(value):
            return None if has_effect(value) else tir.NOP
        case tir.Store(buffer, tir.Load() as v, indices) if v.buffer is buffer and v.predicate is s.predicate:
            same = structural_key(v.indices) == structural_key(indices)
            return tir.NOP if same and not any(map(has_effect, indices)) else None
        case tir.For(_, low, extent, _, body):
            empty = isinstance(extent, tir.IntImm) and extent.value <= 0
            return tir.NOP if (empty or is_nop(body)) and not has_effect(low) and not has_effect(extent) else None
        case tir.IfThenElse(condition, then, other) if is_nop(then) or (other is not None and is_nop(other)):
            nothing_left = is_nop(then) and (other is None or is_nop(other))
            return None if nothing_left and has_effect(condition) else guard(condition, then, other)
        case tir.LetStmt(var, value, body) if is_nop(body) or not uses_any(body, {var}):
            return None if has_effect(value) else body
        case tir.Allocate(_, body) if is_nop(body):
            return tir.NOP
        case tir.BlockRealize() if is_nop(s.block.body) and s.block.init is None:
            return tir.NOP
        case tir.Seq(stmts):
            kept = [x for x in stmts if not is_nop(x)]
            return None if len(kept) == len(stmts) > 1 else seq(kept)
    return None
