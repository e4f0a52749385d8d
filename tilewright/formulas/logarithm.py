"""log, log2, log10 and log1p.

x = 2**k * m with m in [sqrt(1/2), sqrt(2)), f = m - 1, s = f / (2 + f), and
log(1 + f) = f - f**2 / 2 + s * (f**2 / 2 + R(s**2)), as in FreeBSD's e_log.c. R interpolates at Chebyshev
nodes.
"""
from __future__ import annotations

from tilewright.formulas.builder import Builder
from tilewright.tir.expr import Expr

R_SINGLE = (0.666666666, 0.400001226, 0.285507308, 0.233329128)
R_DOUBLE = (0.666666666666666973, 0.399999999998981919, 0.285714286265702036, 0.222222110378165877,
            0.181828961834830866, 0.153314872358657332, 0.146193434535126152)
LN2_SINGLE = (6.9313812256e-01, 9.0580006145e-06)  # high parts with trailing zeros: k * high is exact
LN2_DOUBLE = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
# 1 / ln 2 and 1 / ln 10, and log10(2), each in two parts
INV_LN2_SINGLE = (1.4428710938e+00, -1.7605285393e-04)
INV_LN2_DOUBLE = (1.44269504072144627571e+00, 1.67517131648865118353e-10)
INV_LN10_SINGLE = (4.3432617188e-01, -3.1689971365e-05)
INV_LN10_DOUBLE = (4.34294481878168880939e-01, 2.50829467116452752298e-11)
LOG10_2_SINGLE = (3.0102920532e-01, 7.9034151668e-07)
LOG10_2_DOUBLE = (3.01029995663611771306e-01, 3.69423907715893078616e-13)
SQRT_HALF_SINGLE, SQRT_HALF_DOUBLE = 0x3F3504F3, 0x3FE6A09E667F3BCD


def split(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """(k as an integer, m) of a positive normal x = 2**k * m."""
    lowest = SQRT_HALF_DOUBLE if b.is_double else SQRT_HALF_SINGLE
    raw = b.isub(b.bits(x), b.n(lowest))
    k = b.shr(raw, b.mantissa_bits)
    m = b.unbits(b.iadd(b.iand(raw, b.n((1 << b.mantissa_bits) - 1)), b.n(lowest)))
    return k, m


def _decompose(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """(k as a float, f) with x = 2**k * (1 + f); denormal numbers are scaled up first."""
    tiny = b.cmp("olt", x, b.c(b.pick(2.0**-126, 2.0**-1022)))
    shift = b.mantissa_bits + 2
    x = b.select(tiny, b.mul(x, b.c(2.0**shift)), x)
    k, m = split(b, x)
    k = b.isub(k, b.iselect(tiny, b.n(shift), b.n(0)))
    return b.to_float(k), b.sub(m, b.c(1.0))


def _correction(b: Builder, f: Expr) -> tuple[Expr, Expr]:
    """(f**2 / 2, s * (f**2 / 2 + R)): log(1 + f) is f - first + second."""
    s = b.div(f, b.add(b.c(2.0), f))
    z = b.mul(s, s)
    r = b.mul(z, b.poly(z, R_DOUBLE if b.is_double else R_SINGLE))
    half_square = b.mul(b.c(0.5), b.mul(f, f))
    return half_square, b.mul(s, b.add(half_square, r))


def _specials(b: Builder, x: Expr, y: Expr, at_zero: Expr) -> Expr:
    """log of 0, of negative numbers, of infinity and NaN. x is 0 exactly where `at_zero` holds."""
    y = b.select(at_zero, b.c(float("-inf")), y)
    finite = b.cmp("olt", x, b.c(float("inf")))
    y = b.select(finite, y, x)
    return b.select(b.cmp("olt", x, b.c(0.0)), b.c(float("nan")), y)


def _natural(b: Builder, k: Expr, f: Expr, extra: Expr | None = None) -> Expr:
    """k ln 2 + log(1 + f) (+ extra, a small term)."""
    high, low = LN2_DOUBLE if b.is_double else LN2_SINGLE
    half_square, rest = _correction(b, f)
    rest = b.add(rest, b.fma(k, b.c(low), extra) if extra is not None else b.mul(k, b.c(low)))
    return b.fma(k, b.c(high), b.sub(f, b.sub(half_square, rest)))


def log(b: Builder, x: Expr) -> Expr:
    k, f = _decompose(b, x)
    return _specials(b, x, _natural(b, k, f), b.cmp("oeq", x, b.c(0.0)))


def log1p(b: Builder, x: Expr) -> Expr:
    """log(u) + c / u with u = 1 + x rounded and c what the rounding lost."""
    u = b.add(b.c(1.0), x)
    k, m = split(b, u)
    lost_small = b.sub(x, b.sub(u, b.c(1.0)))
    lost_large = b.sub(b.c(1.0), b.sub(u, x))
    lost = b.div(b.select(b.cmp("ogt", x, b.c(1.0)), lost_large, lost_small), u)
    same = b.icmp("eq", k, b.n(0))                   # 1 + x needs no scaling: f is x itself
    f = b.select(same, x, b.sub(m, b.c(1.0)))
    lost = b.select(same, b.c(0.0), lost)
    y = _natural(b, b.to_float(k), f, lost)
    y = b.select(b.cmp("olt", b.abs(x), b.c(b.pick(2.0**-25, 2.0**-54))), x, y)
    y = b.select(b.cmp("oeq", u, b.c(0.0)), b.c(float("-inf")), y)
    y = b.select(b.cmp("olt", x, b.c(float("inf"))), y, x)
    return b.select(b.cmp("olt", x, b.c(-1.0)), b.c(float("nan")), y)


def _in_two_parts(b: Builder, f: Expr) -> tuple[Expr, Expr]:
    """log(1 + f) as an unevaluated sum; the high part has spare trailing zeros."""
    half_square, rest = _correction(b, f)
    high = b.upper(b.sub(f, half_square))
    return high, b.add(b.sub(b.sub(f, high), half_square), rest)


def log2(b: Builder, x: Expr) -> Expr:
    k, f = _decompose(b, x)
    high, low = _in_two_parts(b, f)
    factor, factor_low = INV_LN2_DOUBLE if b.is_double else INV_LN2_SINGLE
    head = b.mul(high, b.c(factor))
    tail = b.add(b.mul(b.add(low, high), b.c(factor_low)), b.mul(low, b.c(factor)))
    whole = b.add(k, head)
    tail = b.add(tail, b.add(b.sub(k, whole), head))
    return _specials(b, x, b.add(tail, whole), b.cmp("oeq", x, b.c(0.0)))


def log10(b: Builder, x: Expr) -> Expr:
    k, f = _decompose(b, x)
    high, low = _in_two_parts(b, f)
    factor, factor_low = INV_LN10_DOUBLE if b.is_double else INV_LN10_SINGLE
    power, power_low = LOG10_2_DOUBLE if b.is_double else LOG10_2_SINGLE
    head = b.mul(high, b.c(factor))
    scaled = b.mul(k, b.c(power))
    tail = b.add(
        b.mul(k, b.c(power_low)), b.add(b.mul(b.add(low, high), b.c(factor_low)), b.mul(low, b.c(factor)))
    )
    whole = b.add(scaled, head)
    tail = b.add(tail, b.add(b.sub(scaled, whole), head))
    return _specials(b, x, b.add(tail, whole), b.cmp("oeq", x, b.c(0.0)))
