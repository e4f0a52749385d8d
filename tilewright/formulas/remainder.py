"""The remainder of floats, exact for all operands, and Python's // and % by it."""
from __future__ import annotations

import functools

from tilewright.formulas.builder import Builder, Formula
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Broadcast, Expr, IntImm, Select


@functools.lru_cache(64)
def floor_division(op: str, dtype: str) -> Formula:
    """floordiv or floormod of float32 or float64: the remainder takes the sign of the divisor and is exact.

    As in NumPy, x // 0 is x / 0 and x % 0 is NaN.
    """
    b = Builder(dtype)
    x, y = b.param("x"), b.param("y")
    rest = b.call("fmod", x, y)
    differs = b.differ(b.cmp("olt", rest, b.c(0.0)), b.cmp("olt", y, b.c(0.0)))
    adjust = b.both(b.cmp("une", rest, b.c(0.0)), differs)
    if op == "floormod":
        return b.formula(op, [x, y], b.select(adjust, b.add(rest, y), rest))
    quotient = b.div(b.sub(x, rest), y)
    whole = b.call("nearbyint", b.select(adjust, b.sub(quotient, b.c(1.0)), quotient))
    return b.formula(op, [x, y], b.select(b.cmp("oeq", y, b.c(0.0)), b.div(x, y), whole))


def fmod(b: Builder, x: Expr, y: Expr) -> Expr:
    """x - n * y with n = x / y rounded to zero; the sign of x. NaN for x infinite or y zero."""
    true: Expr = IntImm(1, "bool")
    return b.rare(true if b.lanes == 1 else Broadcast(true, b.lanes), _long_division(dt.element_of(b.f)), [x, y], x)[0]


@functools.lru_cache(2)
def _long_division(dtype: str) -> Formula:
    """fmod of two numbers: mantissas aligned at the exponent of y, then one subtraction per bit, as musl's fmod.c."""
    b = Builder(dtype)
    x, y = b.param("x"), b.param("y")
    ax, ay = b.abs(x), b.abs(y)
    valid = b.both(b.cmp("olt", ax, b.c(float("inf"))), b.cmp("ogt", ay, b.c(0.0)))
    divides = b.both(valid, b.cmp("oge", ax, ay))
    (ex, mx), (ey, my) = _parts(b, ax), _parts(b, ay)
    e, m = b.repeat([b.select(divides, ex, ey), mx], lambda e, m: Binary("gt", e, ey), lambda e, m: [
        Binary("sub", e, b.n(1)), Binary("shl", _reduced(m, my), b.n(1))])
    rest = b.value(("rest",), lambda: _reduced(m, my))
    up = b.isub(b.call("clz", rest), b.n(_above(b)))
    shifted, exponent = b.bare("shl", rest, up), b.isub(e, up)
    normal = b.iadd(b.isub(shifted, b.n(1 << b.mantissa_bits)), b.shl(exponent, b.mantissa_bits))
    tiny = b.bare("shr", shifted, b.select(b.icmp("lt", exponent, b.n(1)), b.isub(b.n(1), exponent), b.n(0)))
    bits = b.select(b.icmp("gt", exponent, b.n(0)), normal, tiny)
    out = b.copysign(b.unbits(b.select(b.icmp("eq", rest, b.n(0)), b.n(0), bits)), x)
    nan = b.select(b.cmp("uno", x, y), b.add(x, y), b.c(float("nan")))
    return b.formula("long_division", [x, y], b.select(valid, b.select(divides, out, x), nan))


def _above(b: Builder) -> int:
    """The bits above a mantissa and the one before it."""
    return 11 if b.is_double else 8


def _parts(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """(exponent, mantissa with its leading bit) of a number that is not negative; those of a denormal one moved up."""
    raw = b.bits(x)
    exponent, fraction = b.shr(raw, b.mantissa_bits), b.iand(raw, b.n((1 << b.mantissa_bits) - 1))
    denormal = b.icmp("eq", exponent, b.n(0))
    up = b.select(denormal, b.isub(b.call("clz", fraction), b.n(_above(b))), b.n(0))
    mantissa = b.select(denormal, b.bare("shl", fraction, up), b.ior(fraction, b.n(1 << b.mantissa_bits)))
    return b.select(denormal, b.isub(b.n(1), up), exponent), mantissa


def _reduced(m: Expr, my: Expr) -> Expr:
    """m - my where that is not negative, else m."""
    left = Binary("sub", m, my)
    return Select(Binary("lt", left, IntImm(0, m.dtype)), m, left)
