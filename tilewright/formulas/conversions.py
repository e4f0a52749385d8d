"""Conversions between floats and integers: truncation that saturates, and roundings that happen once."""
from __future__ import annotations

import functools

from tilewright.formulas.builder import Builder, Formula
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Expr


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
