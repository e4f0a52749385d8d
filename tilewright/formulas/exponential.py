"""exp, exp2, expm1 and what is made of them: tanh, sigmoid, sinh, cosh.

exp(x) = 2**k * e**r with k = round(x / ln 2), |r| <= ln(2) / 2, and e**r = 1 + r + r**2 * Q(r), where Q
interpolates at Chebyshev nodes. The reduction subtracts k * ln 2 in two parts (Cody and Waite, 1980).
"""
from __future__ import annotations

from tilewright.formulas.builder import Builder
from tilewright.tir.expr import Expr

LOG2_E = 1.4426950408889634
# ln 2 in two parts; the high one has trailing zeros, so that k * high is exact
LN2_SINGLE = (0.693359375, -2.1219444005469058e-4)
LN2_DOUBLE = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
EXP_SINGLE = (0.5, 0.16666576, 0.0416665534, 0.00836334581, 0.00139263919)
EXP_DOUBLE = (
    0.5, 0.166666666666666675, 0.0416666666666231704, 0.0083333333333299882, 0.00138888889176906035,
    0.000198412698634203503, 0.0000248015205570178279, 2.75572678917455304e-6, 2.76204389486344186e-7,
    2.51006550360665901e-8)
LN2 = 0.6931471805599453
EXP2_SINGLE = (LN2, 0.240226507, 0.0555038077, 0.00961810305, 0.0013381494, 0.000154450498)
EXP2_DOUBLE = (
    LN2, 0.240226506959100762, 0.0555041086648215826, 0.00961812910761850742, 0.00133335581464231288,
    0.000154035304251553547, 0.0000152527338209977335, 1.32154513509204687e-6, 1.01780671169719791e-7,
    7.07104226504065577e-9, 4.45413773741370746e-10)


def _multiple(b: Builder, x: Expr) -> tuple[Expr, Expr, Expr]:
    """(k as a float, as an integer, x - k * the high part of ln 2)."""
    high, _ = LN2_DOUBLE if b.is_double else LN2_SINGLE
    whole, k = b.nearest_multiple(x, LOG2_E)
    return whole, k, b.fma(whole, b.c(-high), x)


def _reduce(b: Builder, x: Expr) -> tuple[Expr, Expr, Expr]:
    """(k, r, the rounding error of r) with x = k * ln 2 + r."""
    whole, k, head = _multiple(b, x)
    tail = b.mul(whole, b.c((LN2_DOUBLE if b.is_double else LN2_SINGLE)[1]))
    r = b.sub(head, tail)
    return k, r, b.sub(b.sub(head, r), tail)


def _reduce_roughly(b: Builder, x: Expr) -> tuple[Expr, Expr]:
    """(k, r) with x = k * ln 2 + r, as if ln 2 were one number: an error of r below |k| units in its last place."""
    if not b.cpu.fma:
        return _reduce(b, x)[:2]
    whole, k = b.nearest_multiple(x, LOG2_E)
    return k, b.fma(whole, b.c(-LN2), x)


def _minus_one(b: Builder, r: Expr) -> Expr:
    """e**r - 1."""
    return _beyond_one(b, r, r)


def _beyond_one(b: Builder, r: Expr, plus: Expr) -> Expr:
    """e**r - 1 - r + plus."""
    square = b.mul(r, r)
    return b.fma(square, b.poly_by_pairs(r, square, EXP_DOUBLE if b.is_double else EXP_SINGLE), plus)


def exp_scaled(b: Builder, x: Expr, shift: int = 0) -> Expr:
    """exp(x) * 2**shift."""
    return _exp_from_low(b, b.at_most(x, b.pick(89.0, 710.0) + 1), shift)


def _exp_from_low(b: Builder, x: Expr, shift: int = 0) -> Expr:
    """exp(x) * 2**shift for x that is not far beyond the overflow threshold.

    What is 0 is chosen, not computed: processors take a hundred cycles for a result that underflows.
    """
    some = b.flip(b.cmp("olt", x, b.c(b.pick(-104.5, -746.0) - shift)))
    whole, k, head = _multiple(b, b.select(some, x, b.c(0.0)))
    r = b.fma(whole, b.c(-(LN2_DOUBLE if b.is_double else LN2_SINGLE)[1]), head)
    p = b.add(b.c(1.0), _minus_one(b, r))
    return b.select(some, b.scale(p, b.iadd(k, b.n(shift)) if shift else k), b.c(0.0))


def exp_of_small(b: Builder, x: Expr) -> Expr:
    """exp(x) for |x| < 80, with an error of some |x| units in the last place; NaN stays."""
    k, r = _reduce_roughly(b, x)
    return b.mul(b.add(b.c(1.0), _minus_one(b, r)), b.power_of_two(k))


def exp(b: Builder, x: Expr) -> Expr:
    return exp_scaled(b, x)


def exp2(b: Builder, x: Expr) -> Expr:
    some = b.flip(b.cmp("olt", x, b.c(b.pick(-151.0, -1076.0))))    # else 0, chosen as in exp
    x = b.select(some, b.at_most(x, b.pick(129.0, 1025.0)), b.c(0.0))
    whole, k = b.nearest(x)
    r = b.sub(x, whole)
    p = b.fma(r, b.poly(r, EXP2_DOUBLE if b.is_double else EXP2_SINGLE), b.c(1.0))
    return b.select(some, b.scale(p, k), b.c(0.0))


def _expm1(b: Builder, x: Expr) -> Expr:
    """e**x - 1 for x below the overflow threshold: 2**k * (e**r - 1) + (2**k - 1)."""
    k, r, error = _reduce(b, x)
    minus_one = b.add(r, _beyond_one(b, r, error))
    power = b.power_of_two(k)
    combined = b.fma(power, minus_one, b.sub(power, b.c(1.0)))
    # k = 0: the value itself, so that tiny numbers and -0.0 come back exactly
    return b.select(b.icmp("eq", k, b.n(0)), minus_one, combined)


def expm1(b: Builder, x: Expr) -> Expr:
    high = b.pick(88.0, 709.0)
    near = _expm1(b, b.clamp(x, b.pick(-20.0, -40.0), high))
    small = b.select(b.cmp("olt", b.abs(x), b.c(b.pick(2.0**-25, 2.0**-54))), x, near)
    large = b.cmp("ogt", x, b.c(high))               # here the 1 is far below half a unit in the last place
    return b.select(large, exp(b, x), small)


def tanh(b: Builder, x: Expr) -> Expr:
    """-t / (t + 2) with t = expm1(-2 |x|) = 2**k * (e**r - 1) + (2**k - 1).

    An error of r counts 2**k times and k is 0 for small x, so that the rounding of ln 2 to one number does no harm.
    """
    magnitude = b.at_most(b.abs(x), b.pick(10.0, 20.0))
    k, r = _reduce_roughly(b, b.neg(b.add(magnitude, magnitude)))
    power = b.power_of_two(k)
    t = b.fma(power, _minus_one(b, r), b.sub(power, b.c(1.0)))
    return b.copysign(b.div(t, b.add(t, b.c(2.0))), x)


def sigmoid(b: Builder, x: Expr) -> Expr:
    """1 / (1 + e) for x >= 0, else e / (1 + e), with e = exp(-|x|): no overflow, and full accuracy
    at the low end.
    """
    e = _exp_from_low(b, b.neg(b.abs(x)))
    top = b.select(b.icmp("lt", b.bits(x), b.n(0)), e, b.c(1.0))
    return b.div(top, b.add(b.c(1.0), e))


def sinh(b: Builder, x: Expr) -> Expr:
    """(t + t / (t + 1)) / 2 with t = expm1(|x|); exp(|x|) / 2 where that is the same."""
    magnitude = b.abs(x)
    limit = b.pick(10.0, 20.0)
    t = _expm1(b, b.select(b.cmp("ogt", magnitude, b.c(limit)), b.c(limit), magnitude))
    near = b.mul(b.c(0.5), b.add(t, b.div(t, b.add(t, b.c(1.0)))))
    y = b.select(b.cmp("ogt", magnitude, b.c(limit)), exp_scaled(b, magnitude, -1), near)
    y = b.select(b.cmp("olt", magnitude, b.c(b.pick(2.0**-13, 2.0**-28))), magnitude, y)
    return b.copysign(b.select(b.cmp("uno", x, x), x, y), x)


def cosh(b: Builder, x: Expr) -> Expr:
    """h + 1 / (4 h) with h = exp(|x|) / 2."""
    half = exp_scaled(b, b.abs(x), -1)
    return b.add(half, b.div(b.c(0.25), half))
