"""Conversions between floats and integers: truncation that saturates, and roundings that happen once."""
from __future__ import annotations

import functools

from tilewright.formulas.builder import Builder, Formula
from tilewright.formulas.small_floats import narrowed, rounded, widened
from tilewright.tir import dtype as dt
from tilewright.tir.dtype import SMALL_FLOATS
from tilewright.tir.expr import Cast, Expr

Step = Formula | str                     # what computes a value from another; a dtype to which machines convert it


def conversions(e: Cast, native: tuple[str, ...] = ()) -> tuple[Expr, list[Step]]:
    """(a value, how e is made of it, step by step); floats of 16 and 8 bits are held as their bits.

    native: those of them that the machine converts from and to float32. To one and on is a rounding.
    """
    inner = e.value
    if not isinstance(inner, Cast) or inner.value.dtype == inner.type or not _by_formula(inner.type, native):
        return inner, _steps(inner.dtype, e.type, native)
    *rounding, _ = _steps(inner.value.dtype, inner.type, native)
    return inner.value, [*rounding, *_steps(_like("float32", e.type), e.type, native)]


def _steps(source: str, target: str, native: tuple[str, ...]) -> list[Step]:
    if source == target:
        return []
    if dt.element_of(source) in SMALL_FLOATS:
        single = _like("float32", source)
        return [widened(source) if _by_formula(source, native) else single, *_steps(single, target, native)]
    if dt.element_of(target) in SMALL_FLOATS:
        end: list[Step] = [rounded(target), narrowed(target)] if _by_formula(target, native) else [target]
        if dt.element_of(source) == "float32":
            return end
        double = _like("float64", source)
        if source == double:
            return [double_to_odd(dt.lanes_of(source)), *end]
        if dt.bits_of(source) <= 16:
            return [_like("float32", source), *end]
        return [integer_to_double(source) if dt.bits_of(source) == 64 else double, *_steps(double, target, native)]
    if dt.is_float(source) and dt.is_integer(target):
        return [saturating(source, target)]
    return [target]


def _by_formula(dtype: str, native: tuple[str, ...]) -> bool:
    return dt.element_of(dtype) in SMALL_FLOATS and dt.element_of(dtype) not in native


def _like(element: str, dtype: str) -> str:
    return dt.with_lanes(element, dt.lanes_of(dtype))


@functools.lru_cache(256)
def saturating(source: str, target: str) -> Formula:
    """A float truncated to an integer; the nearest one of the type where it has none, 0 for NaN."""
    b = Builder(source)
    b.i = target
    x, (low, high) = b.param("x"), dt.integer_range(target)
    not_low, not_high = b.cmp("oge", x, b.c(float(low))), b.cmp("olt", x, b.c(float(high + 1)))
    kept = b.bare_cast(target, b.select(b.both(not_low, not_high), x, b.c(0.0)))
    above = b.both(b.cmp("oeq", x, x), b.flip(not_high))
    out = b.select(above, b.n(high), kept)
    return b.formula("truncate", [x], b.select(b.cmp("olt", x, b.c(float(low))), b.n(low), out))


@functools.lru_cache(64)
def double_to_odd(lanes: int) -> Formula:
    """float64 to float32 so that a second rounding to 16 bits equals a single one (Boldo and Melquiond, 2008)."""
    single = Builder(dt.with_lanes("float32", lanes))
    double = single.wide()
    x = double.param("x")
    near = single.from_double(x)
    magnitude, rounded = double.abs(x), double.abs(single.to_double(near))
    above, below = double.cmp("ogt", rounded, magnitude), double.cmp("olt", rounded, magnitude)
    down = single.iadd(single.bits(near), single.select(above, single.n(-1), single.n(0)))
    odd = single.ior(down, single.select(single.either(above, below), single.n(1), single.n(0)))
    return single.formula("to_odd", [x], single.unbits(odd))


@functools.lru_cache(64)
def integer_to_double(source: str) -> Formula:
    """An integer of 64 bits as float64; where that loses bits, with the last one odd, for a second rounding."""
    b = Builder(dt.with_lanes("float64", dt.lanes_of(source)))
    b.i = source
    x = b.param("x", source)
    high = b.iand(x, b.n(-2048 if dt.is_signed(source) else (1 << 64) - 2048))
    inexact = b.icmp("ne", high, x)
    shifted: Expr = b.iadd(x, b.n(1 << 53)) if dt.is_signed(source) else x
    unsigned = b.cast(dt.with_lanes("uint64", b.lanes), shifted)
    limit = b.cast(unsigned.dtype, b.n(1 << 53 + dt.is_signed(source)))
    large = b.binary("gt", unsigned, limit)
    held = b.select(b.both(inexact, large), b.ior(high, b.n(2048)), x)
    return b.formula("odd_double", [x], b.cast(b.f, held))
