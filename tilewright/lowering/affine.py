"""Affine views of expressions in single variables."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Binary, Broadcast, Cast, Expr, IntImm, Ramp, Var
from tilewright.tir.places import is_index
from tilewright.tir.stmt import For
from tilewright.tir.symbols import uses_any

SUMS = ("add", "sub", "mul")


def split_linear(e: Expr, var: Var, exact: Callable[[Expr], bool] = is_index) -> tuple[int, Expr] | None:
    """(k, rest) with e == k * var + rest and rest free of var; None when e is not affine in var.

    Where e is a value that may wrap around, the equation holds modulo what its type holds. `exact` says which int32
    cannot wrap, so that the form goes on below a cast of it to int64; unless told, e is an index.
    """
    if e is var:
        return 1, const(0, var.dtype)
    if not uses_any(e, {var}):
        return 0, e
    if isinstance(e, Binary):
        if e.op in ("add", "sub"):
            a, b = split_linear(e.a, var, exact), split_linear(e.b, var, exact)
            if a is None or b is None:
                return None
            return (a[0] + b[0] if e.op == "add" else a[0] - b[0]), binary(e.op, a[1], b[1])
        if e.op == "mul":
            scale, other = (e.b, e.a) if isinstance(e.b, IntImm) else (e.a, e.b)
            inner = split_linear(other, var, exact) if isinstance(scale, IntImm) else None
            if inner is not None:
                return inner[0] * scale.value, binary("mul", inner[1], scale)  # type: ignore[attr-defined]
    if isinstance(e, Cast) and e.type == "int64" and e.value.dtype == "int32" and exact(e.value):
        inner = split_linear(e.value, var, exact)
        if inner is not None:
            return inner[0], cast(e.type, inner[1])
    return None


def as_ramp(e: Expr) -> Ramp | Broadcast | None:
    """A vector index as base + lane * stride or as a broadcast, if it is one by its form."""
    if isinstance(e, (Ramp, Broadcast)):
        return e
    if not isinstance(e, Binary) or e.op not in SUMS:
        return None
    a, b = as_ramp(e.a), as_ramp(e.b)
    if a is None or b is None:
        return None
    if isinstance(a, Broadcast) and isinstance(b, Broadcast):
        return Broadcast(binary(e.op, a.value, b.value), a.lanes)
    if e.op == "mul":
        if isinstance(a, Ramp) and isinstance(b, Ramp):
            return None
        ramp, factor = (a, b) if isinstance(a, Ramp) else (b, a)
        assert isinstance(ramp, Ramp) and isinstance(factor, Broadcast)
        return Ramp(
            binary("mul", ramp.base, factor.value), binary("mul", ramp.stride, factor.value), ramp.lanes
        )
    parts = [
        (x.base, x.stride) if isinstance(x, Ramp) else (x.value, IntImm(0, x.value.dtype)) for x in (a, b)
    ]
    return Ramp(binary(e.op, parts[0][0], parts[1][0]), binary(e.op, parts[0][1], parts[1][1]), a.lanes)


def is_order(e: Expr) -> bool:
    """True for <, <=, > and >=."""
    return isinstance(e, Binary) and e.op in ("lt", "le", "gt", "ge")


def relax(cond: Expr, loops: Sequence[For], everywhere: bool) -> Expr | None:
    """The comparison cond for all (or, not everywhere, for some) iterations of loops of constant range.

    None when cond is no comparison of integers, or not affine in one of the loop variables. Loops whose
    variable cond does not mention may have any range.
    """
    if not is_order(cond) or not dt.is_integer(cond.a.dtype):  # type: ignore[attr-defined]
        return None
    assert isinstance(cond, Binary)
    a, b = cond.a, cond.b
    for loop in loops:
        var = loop.loop_var
        if not uses_any(cond, {var}):
            continue
        if not isinstance(loop.min, IntImm) or not isinstance(loop.extent, IntImm):
            return None
        left, right = split_linear(a, var), split_linear(b, var)
        if left is None or right is None:
            return None
        k = left[0] - right[0]
        toward_false = (k > 0) == (cond.op in ("lt", "le"))
        value = loop.min.value + (loop.extent.value - 1 if toward_false == everywhere else 0)
        a, b = binary("add", left[1], left[0] * value), binary("add", right[1], right[0] * value)
    return cond if a is cond.a and b is cond.b else Binary(cond.op, a, b)
