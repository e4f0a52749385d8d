"""Expressions that are no index: floats, narrow and unsigned integers, vectors. All laws hold bit for bit."""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tilewright.arith.context import Context
from tilewright.arith.forms import simplify_children
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import refolded
from tilewright.tir.expr import Binary, Call, Cast, Expr, FloatImm, IntImm, Select, Var
from tilewright.tir.patterns import ANY, Hole, Rule, Rules

X, A, B = Hole("x"), Hole("a"), Hole("b")
KNOWN = Hole("known", when=lambda e: isinstance(e, IntImm))
FLOATS = ("float32", "float64")
ONE, ZERO, MINUS_ZERO = FloatImm(1.0, ANY), FloatImm(0.0, ANY), FloatImm(-0.0, ANY)


def _better(name: str, op: str, limit: float, kind: str) -> Rule:
    """`op` chooses x, since no number is worse than the limit; a NaN stays, too."""
    x, worst = Hole("x", kind), FloatImm(limit, kind)
    return Rule(f"{name}_{kind}", Select(Binary(op, worst, x), worst, x), x,
                lambda _: (lambda v: (Select(Binary(op, worst, v), worst, v), v))(Var("v", kind)))


def _chosen(found: Mapping[Var, Any]) -> Expr:
    return found[A] if found[KNOWN].value else found[B]


VALUES = Rules([
    # also for NaN, infinities and -0
    Rule("times_one", Binary("mul", X, ONE), X, lambda x: (x * 1.0, x)),
    Rule("one_times", Binary("mul", ONE, X), X, lambda x: (1.0 * x, x)),
    Rule("over_one", Binary("div", X, ONE), X, lambda x: (x / 1.0, x)),
    # x + 0.0 is not x: -0.0 + 0.0 == 0.0
    Rule("minus_zero", Binary("sub", X, ZERO), X, lambda x: (x - 0.0, x)),
    Rule("plus_minus_zero", Binary("add", X, MINUS_ZERO), X, lambda x: (x + -0.0, x)),
    *(_better(*row, kind) for row in (("larger", "gt", -math.inf), ("smaller", "lt", math.inf)) for kind in FLOATS),
    Rule("known_select", Select(KNOWN, A, B), _chosen, lambda x: (Select(IntImm(1, "bool"), x, x * 2.0), x)),
    Rule("known_branch", Call("if_then_else", (KNOWN, A, B), ANY), _chosen,
         lambda x: (Call("if_then_else", (IntImm(0, "bool"), x * 2.0, x), x.dtype), x)),
])


def simplify_value(ctx: Context, e: Expr) -> Expr:
    """e with its index expressions and conditions simplified, and the laws of VALUES applied."""
    if isinstance(e, Select) or (isinstance(e, Call) and e.op == "if_then_else"):
        return _choice(ctx, e)
    new: Any = simplify_children(ctx, e)
    out = VALUES.apply(new)
    if out is not None:
        return out
    if isinstance(new, Binary) and dt.is_integer(new.a.dtype):
        return refolded(new)
    if isinstance(new, Cast) and new.type == new.value.dtype:
        return new.value
    return new


def _choice(ctx: Context, e: Any) -> Expr:
    """if_then_else evaluates a only where its condition holds; a Select evaluates both."""
    condition, a, b = (e.condition, e.a, e.b) if isinstance(e, Select) else e.args
    with ctx.places(False):
        known = ctx.simplify(condition)
    if isinstance(known, IntImm):
        return ctx.simplify(a if known.value else b)
    if known.dtype == "bool" and isinstance(e, Call):
        with ctx.branch(known, memory=True):
            x = ctx.simplify(a)
    else:
        x = ctx.simplify(a)
    y = ctx.simplify(b)
    if known is condition and x is a and y is b:
        return e
    return Select(known, x, y) if isinstance(e, Select) else Call("if_then_else", (known, x, y), e.type)
