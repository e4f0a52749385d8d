"""Terms of reductions that are nothing where a guard fails: the step is under the guard."""
from __future__ import annotations

import math
from collections.abc import Set as AbstractSet

from tilewright.lowering.conditions import guard, is_likely, likely, terms_of
from tilewright.lowering.walking import map_stmts
from tilewright.tir.buffer import Load
from tilewright.tir.conversion import is_const, max_value, min_value
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Binary, Call, Expr, FloatImm, Var
from tilewright.tir.stmt import VECTORIZED, For, IfThenElse, PrimFunc, Stmt, Store
from tilewright.tir.symbols import uses_any


def guard_steps(func: PrimFunc) -> PrimFunc:
    """Steps of a reduction that change nothing where a guard fails are under it, so that loops end where it does.

        x[i] = x[i] + if_then_else(likely(c), e, -0.0)  ->  if likely(c): x[i] = x[i] + e

    Guards on the variables of vectorised loops stay where they are.
    """
    return func.with_body(_guarded(func.body, frozenset()))


def _guarded(stmt: Stmt, lanes: AbstractSet[Var]) -> Stmt:
    """stmt below vectorised loops over lanes."""
    match stmt:
        case For(loop_var=var, kind=kind) if kind == VECTORIZED:
            lanes = {*lanes, var}
        case Store(b, Binary(op, Load() as old, Call("if_then_else", (c, term, other))), at):
            same = structural_equal(old, Load(b, at)) and stmt.predicate is None
            if same and is_likely(c) and is_nothing(op, other) and not uses_any(c, lanes):
                return guard(c, stmt.replace(value=Binary(op, old, term)))
    new = map_stmts(stmt, lambda s: _guarded(s, lanes))
    match new:
        case IfThenElse(outer, IfThenElse(inner, step, None), None) if is_likely(outer) and is_likely(inner):
            return guard(likely(terms_of(outer) + terms_of(inner)), step)
    return new


def is_nothing(op: str, x: Expr) -> bool:
    """True when `y op x` is y for every y. For sums of floats that is -0.0: 0.0 turns -0.0 into itself."""
    match op, x:
        case "add", FloatImm(value):
            return value == 0.0 and math.copysign(1.0, value) < 0.0
        case "add" | "bitor" | "bitxor", _:
            return is_const(x, 0)
        case "mul", _:
            return is_const(x, 1)
        case "max" | "min", _:
            return bool(structural_equal(x, (min_value if op == "max" else max_value)(x.dtype)))
    return False
