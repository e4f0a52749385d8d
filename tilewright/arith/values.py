"""Expressions that are no index: floats, narrow and unsigned integers, vectors. All laws hold bit for bit."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.arith.context import Context
from tilewright.arith.forms import simplify_children
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import refolded
from tilewright.tir.expr import Binary, Call, Cast, Expr, FloatImm, IntImm, Select


class ValueLaw(NamedTuple):
    """`apply` gives an equal expression or None; `example`: float x -> (before, after)."""
    name: str
    apply: Callable[[Any], Expr | None]
    example: Callable[[Any], tuple[Any, Any]]


VALUES: list[ValueLaw] = []


def law(example: Callable[[Any], tuple[Any, Any]]) -> Callable[[Any], Any]:
    """Decorator: add the function to VALUES under its own name."""
    def keep(fn: Callable[[Any], Expr | None]) -> Callable[[Any], Expr | None]:
        VALUES.append(ValueLaw(fn.__name__, fn, example))
        return fn
    return keep


@law(lambda x: (x * 1.0, x))
def times_one(e: Expr) -> Expr | None:
    """x * 1 == x and x / 1 == x, also for NaN, infinities and -0."""
    if isinstance(e, Binary) and e.op in ("mul", "div"):
        if isinstance(e.b, FloatImm) and e.b.value == 1.0:
            return e.a
        if e.op == "mul" and isinstance(e.a, FloatImm) and e.a.value == 1.0:
            return e.b
    return None


@law(lambda x: (x - 0.0, x))
def minus_zero(e: Expr) -> Expr | None:
    """x - 0.0 == x. (x + 0.0 is not: -0.0 + 0.0 == 0.0.)"""
    if isinstance(e, Binary) and e.op == "sub" and isinstance(e.b, FloatImm) and str(e.b.value) == "0.0":
        return e.a
    return None


@law(lambda x: (Select(IntImm(1, "bool"), x, x * 2.0), x))
def known_choice(e: Expr) -> Expr | None:
    """A choice by a constant is the branch it takes."""
    if isinstance(e, Select) and isinstance(e.condition, IntImm):
        return e.a if e.condition.value else e.b
    if isinstance(e, Call) and e.op == "if_then_else" and isinstance(e.args[0], IntImm):
        return e.args[1] if e.args[0].value else e.args[2]
    return None


def simplify_value(ctx: Context, e: Expr) -> Expr:
    """e with its index expressions and conditions simplified, and the laws of VALUES applied."""
    if isinstance(e, Select) or (isinstance(e, Call) and e.op == "if_then_else"):
        return _choice(ctx, e)
    new: Any = simplify_children(ctx, e)
    for entry in VALUES:
        out = entry.apply(new)
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
