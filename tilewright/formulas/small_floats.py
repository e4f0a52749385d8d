"""Floats of 16 and 8 bits: float32 rounded to their precision, and their bits in memory."""
from __future__ import annotations

import functools
import math

from tilewright.formulas.builder import Builder, Formula
from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS, SmallFloat
from tilewright.tir.expr import Expr


@functools.lru_cache(64)
def rounded(dtype: str) -> Formula:
    """A float32 rounded to the precision of dtype, ties to even."""
    b, form = _builder(dtype)
    x = b.param("x")
    if form is None:
        return b.formula(f"round_{dt.element_of(dtype)}", [x], b.unbits(b.iand(_rounded_bits(b, x), b.n(-65536))))
    return b.formula(f"round_{dt.element_of(dtype)}", [x], _round_mantissa(b, x, form))


@functools.lru_cache(64)
def widened(dtype: str) -> Formula:
    """The bits of a small float, as an unsigned integer of its size, as a float32."""
    b, form = _builder(dtype)
    x = b.param("x", _stored(dtype))
    wide = b.cast(b.i, x)
    out = b.unbits(b.shl(wide, 16)) if form is None else _widen(b, wide, form)
    return b.formula(f"widen_{dt.element_of(dtype)}", [x], out)


@functools.lru_cache(64)
def narrowed(dtype: str) -> Formula:
    """The bits of a small float, as an unsigned integer of its size, of a float32 that has its precision."""
    b, form = _builder(dtype)
    x = b.param("x")
    bits = b.ushr(b.bits(x), 16) if form is None else _narrow(b, x, form)
    return b.formula(f"narrow_{dt.element_of(dtype)}", [x], b.cast(_stored(dtype), bits))


def _builder(dtype: str) -> tuple[Builder, SmallFloat | None]:
    """(a builder on float32, the format; None for bfloat16, the upper half of a float32)."""
    element, lanes = dt.parse(dtype)
    return Builder(dt.with_lanes("float32", lanes)), None if element == "bfloat16" else SMALL_FLOATS[element]


def _stored(dtype: str) -> str:
    element, lanes = dt.parse(dtype)
    return dt.with_lanes(f"uint{dt.bits_of(element)}", lanes)


def _round_mantissa(b: Builder, x: Expr, form: SmallFloat) -> Expr:
    """x rounded to a format with fewer exponent bits than float32.

    Normal numbers lose mantissa bits, ties to even; below them adding (and subtracting) a power of two leaves just
    the bits that the format has.
    """
    lost, magnitude = 23 - form.mantissa, b.abs(x)
    raw = b.bits(magnitude)
    increment = b.iadd(b.iand(b.ushr(raw, lost), b.n(1)), b.n((1 << lost - 1) - 1))
    normal = b.unbits(b.iand(b.iadd(raw, increment), b.n(-(1 << lost))))
    step = b.c(_alignment(form))
    tiny = b.sub(b.add(magnitude, step), step)
    y = b.select(b.cmp("olt", magnitude, b.c(form.least_normal)), tiny, normal)
    beyond = b.c(math.nan if form.infinity is None else math.inf)
    y = b.select(b.cmp("ogt", y, b.c(form.largest)), beyond, y)
    return b.copysign(b.select(b.cmp("uno", x, x), x, y), x)


def _alignment(form: SmallFloat) -> float:
    """The number whose float32 neighbours lie as far apart as the subnormal numbers of the format."""
    return form.least_normal * 2.0 ** (23 - form.mantissa)


def _rounded_bits(b: Builder, x: Expr) -> Expr:
    """Bits of the float x after adding the rounding increment of bfloat16: its upper half is the result.

    A NaN stays one: the increment could carry into the exponent, so its top mantissa bit is set instead.
    """
    raw = b.bits(x)
    moved = b.iadd(raw, b.iadd(b.iand(b.ushr(raw, 16), b.n(1)), b.n(32767)))
    return b.select(b.cmp("uno", x, x), b.ior(raw, b.n(4194304)), moved)


def _widen(b: Builder, wide: Expr, form: SmallFloat) -> Expr:
    """The float of the format's bits: its exponent is moved by a multiplication, which is exact."""
    sign_bit = form.exponent + form.mantissa
    low = b.iand(wide, b.n((1 << sign_bit) - 1))
    placed = b.shl(low, 23 - form.mantissa)
    finite = b.mul(b.unbits(placed), b.c(2.0 ** (127 - form.bias)))
    endless = b.unbits(b.ior(placed, b.n(0x7F800000)))
    first = form.nan if form.infinity is None else form.infinity
    magnitude = b.select(b.icmp("ge", low, b.n(first)), endless, finite)
    return b.copysign(magnitude, b.unbits(b.shl(wide, 31 - sign_bit)))


def _narrow(b: Builder, x: Expr, form: SmallFloat) -> Expr:
    """The format's bits, in the low part of an integer, of a float that has its precision."""
    magnitude = b.abs(x)
    normal = b.ushr(b.isub(b.bits(magnitude), b.n((127 - form.bias) << 23)), 23 - form.mantissa)
    tiny = b.iand(b.bits(b.add(magnitude, b.c(_alignment(form)))), b.n((1 << form.mantissa) - 1))
    y = b.select(b.cmp("olt", magnitude, b.c(form.least_normal)), tiny, normal)
    if form.infinity is not None:
        y = b.select(b.cmp("oeq", magnitude, b.c(math.inf)), b.n(form.infinity), y)
    y = b.select(b.cmp("uno", x, x), b.n(form.nan), y)
    sign_bit = form.exponent + form.mantissa
    return b.ior(y, b.iand(b.ushr(b.bits(x), 31 - sign_bit), b.n(1 << sign_bit)))
