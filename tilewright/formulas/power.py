"""pow, by exp2(y * log2(x)) with log2(x) in more than working precision; squares and cubes by products."""
from __future__ import annotations

from tilewright.formulas.builder import Builder
from tilewright.formulas.exponential import EXP2_DOUBLE, EXP_DOUBLE
from tilewright.formulas.logarithm import log2
from tilewright.tir.expr import Expr

# log2 by the scheme of FreeBSD's e_pow.c: in f = (x - c) / (x + c) with c = 1 or 3/2
L = (
    5.99999999999994648725e-01,
    4.28571428578550184252e-01,
    3.33333329818377432918e-01,
    2.72728123808534006489e-01,
    2.30660745775561754067e-01,
    2.06975017800338417784e-01,
)
CP = (
    9.61796693925975554329e-01,
    9.61796700954437255859e-01,
    -7.02846165095275826516e-09,
)  # 2 / (3 ln 2): whole, parts
DP = (5.84962487220764160156e-01, 1.35003920212974897128e-08)  # log2(3 / 2) in parts


def _log2_parts(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """log2 of a positive finite float64 as high + low; the high part has its lower 32 bits clear."""
    tiny = b.cmp("olt", x, b.c(2.0**-1022))
    x = b.select(tiny, b.mul(x, b.c(2.0**53)), x)
    raw = b.bits(x)
    k = b.isub(b.ushr(raw, 52), b.iadd(b.n(1023), b.iselect(tiny, b.n(53), b.n(0))))
    fraction = b.iand(raw, b.n((1 << 52) - 1))
    middle = b.icmp("gt", fraction, b.n(0x3988E << 32))
    upper = b.icmp("ge", fraction, b.n(0xBB67A << 32))
    use_c = b.both(middle, b.flip(upper))
    k = b.iadd(k, b.iselect(upper, b.n(1), b.n(0)))
    m = b.unbits(b.isub(b.ior(fraction, b.n(1023 << 52)), b.iselect(upper, b.n(1 << 52), b.n(0))))
    c = b.select(use_c, b.c(1.5), b.c(1.0))
    u, v = b.sub(m, c), b.div(b.c(1.0), b.add(m, c))
    s = b.mul(u, v)
    s_high = b.upper(s)
    t_high = b.upper(b.add(m, c))
    t_low = b.sub(m, b.sub(t_high, c))
    s_low = b.mul(v, b.sub(b.sub(u, b.mul(s_high, t_high)), b.mul(s_high, t_low)))
    s2 = b.mul(s, s)
    r = b.mul(b.mul(s2, s2), b.poly(s2, L))
    r = b.add(r, b.mul(s_low, b.add(s_high, s)))
    square = b.mul(s_high, s_high)
    w_high = b.upper(b.add(b.add(b.c(3.0), square), r))
    w_low = b.sub(r, b.sub(b.sub(w_high, b.c(3.0)), square))
    u2 = b.mul(s_high, w_high)
    v2 = b.add(b.mul(s_low, w_high), b.mul(w_low, s))
    p_high = b.upper(b.add(u2, v2))
    p_low = b.sub(v2, b.sub(p_high, u2))
    z_high = b.mul(b.c(CP[1]), p_high)
    d_high, d_low = (b.select(use_c, b.c(part), b.c(0.0)) for part in DP)
    z_low = b.add(b.add(b.mul(b.c(CP[2]), p_high), b.mul(p_low, b.c(CP[0]))), d_low)
    whole = b.to_float(k)
    high = b.upper(b.add(b.add(b.add(z_high, z_low), d_high), whole))
    low = b.sub(z_low, b.sub(b.sub(b.sub(high, whole), d_high), z_high))
    return high, low


def _magnitude_double(b: Builder, x: Expr, y: Expr) -> Expr:
    """x**y for a positive finite x, in float64."""
    high, low = _log2_parts(b, x)
    # beyond this the result is 0, 1 or infinity whatever x is; keeps the products finite
    y = b.clamp(y, -2.0**66, 2.0**66)
    y_high = b.upper(y)
    p_low = b.add(b.mul(b.sub(y, y_high), high), b.mul(y, low))
    p_high = b.mul(y_high, high)
    exact = b.add(p_high, p_low)
    total = b.clamp(exact, -1100.0, 1100.0)
    outside = b.cmp("une", exact, total)
    p_high, p_low = b.select(outside, total, p_high), b.select(outside, b.c(0.0), p_low)
    whole, k = b.nearest(total)
    r = b.add(b.sub(p_high, whole), p_low)
    low_of_r = b.sub(b.sub(p_high, whole), b.sub(r, p_low))
    # 2**r = e**(r ln 2), with ln 2 in two parts
    r_high = b.upper(r)
    r_low = b.add(b.sub(r, r_high), low_of_r)
    head = b.mul(r_high, b.c(6.93147182464599609375e-01))
    tail = b.add(
        b.mul(r_low, b.c(6.93147180559945286227e-01)), b.mul(r_high, b.c(-1.90465429995776804525e-09))
    )
    t = b.add(head, tail)
    error = b.sub(tail, b.sub(t, head))
    rest = b.fma(b.mul(t, t), b.poly(t, EXP_DOUBLE), error)
    p = b.add(b.c(1.0), b.add(t, b.add(rest, b.mul(error, t))))
    return b.scale(p, k)


def _magnitude_single(b: Builder, x: Expr, y: Expr) -> Expr:
    """x**y for a positive finite x, computed in float64."""
    d = b.wide()
    total = d.clamp(d.mul(b.to_double(y), log2(d, b.to_double(x))), -400.0, 400.0)
    whole, k = d.nearest(total)
    r = d.sub(total, whole)
    return b.from_double(d.scale(d.fma(r, d.poly(r, EXP2_DOUBLE[:9]), d.c(1.0)), k))


def pow(b: Builder, x: Expr, y: Expr) -> Expr:
    """C's pow: x**0 = 1**y = 1; negative x needs an integer y; signs of zeros and infinities as in
    IEEE 754.
    """
    zero, one, inf = b.c(0.0), b.c(1.0), b.c(float("inf"))
    ax, ay = b.abs(x), b.abs(y)
    # integers: all numbers from 2**mantissa_bits on; odd ones lie below twice that
    big = b.cmp("oge", ay, b.c(2.0**b.mantissa_bits))
    held = b.select(big, zero, y)
    rounded, parity = b.nearest_any(held)
    integer = b.either(big, b.cmp("oeq", rounded, held))
    small_odd = b.both(b.cmp("oeq", rounded, held), b.icmp("ne", b.iand(parity, b.n(1)), b.n(0)))
    last_bit = b.icmp("ne", b.iand(b.bits(ay), b.n(1)), b.n(0))
    big_odd = b.both(b.both(big, b.cmp("olt", ay, b.c(2.0**(b.mantissa_bits + 1)))), last_bit)
    odd = b.either(b.both(small_odd, b.flip(big)), big_odd)
    plain = b.both(b.cmp("ogt", ax, zero), b.cmp("olt", ax, inf))
    base = b.select(plain, ax, one)
    z = _magnitude_double(b, base, y) if b.is_double else _magnitude_single(b, base, y)
    grows = b.cmp("ogt", y, zero)
    at_zero, at_infinity = b.select(grows, zero, inf), b.select(grows, inf, zero)
    z = b.select(b.cmp("oeq", ax, zero), at_zero, z)
    z = b.select(b.cmp("oeq", ax, inf), at_infinity, z)
    endless = b.cmp("oeq", ay, inf)
    inward = b.differ(b.cmp("ogt", ax, one), grows)
    z = b.select(endless, b.select(b.cmp("oeq", ax, one), one, b.select(inward, zero, inf)), z)
    negative = b.icmp("lt", b.bits(x), b.n(0))
    z = b.select(b.both(negative, odd), b.neg(z), z)
    undefined = b.both(b.both(b.cmp("olt", x, zero), b.flip(integer)), b.cmp("olt", ax, inf))
    z = b.select(b.both(undefined, b.flip(endless)), b.c(float("nan")), z)
    z = b.select(b.cmp("uno", x, y), b.add(x, y), z)
    return b.select(b.either(b.cmp("oeq", y, zero), b.cmp("oeq", x, one)), one, z)


def square(b: Builder, x: Expr) -> Expr:
    """x * x, which is pow(x, 2) rounded once."""
    return b.mul(x, x)


def cube(b: Builder, x: Expr) -> Expr:
    """pow(x, 3): in float64 with what rounding loses of both products, as fused multiply-adds find it."""
    if not b.is_double:
        d = b.wide()
        y = d.to_double(x)
        return b.from_double(d.mul(d.mul(y, y), y))
    if not b.cpu.fma:
        return pow(b, x, b.c(3.0))
    second = b.mul(x, x)
    third = b.mul(second, x)
    lost = b.fma(b.fma(x, x, b.neg(second)), x, b.fma(second, x, b.neg(third)))
    size = b.abs(third)
    plain = b.both(b.cmp("ogt", size, b.c(0.0)), b.cmp("olt", size, b.c(float("inf"))))
    return b.select(plain, b.add(third, lost), third)
