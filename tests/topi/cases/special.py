"""Samples of special functions."""
from __future__ import annotations

import math

import mpmath
import numpy as np

from tests.topi.agreement import FLOATS, INTEGERS, NUMBERS, Draw, Sample, case, wide
from tests.topi.cases.elementwise import ALL, operands
from tilewright import topi


def vectorized(f):
    return np.vectorize(lambda v: float(f(v)), otypes=["float64"])


def unary(name, f, low=-3.0, high=3.0, kinds=(*FLOATS, "int32", "bool"), tolerance=2.0):
    """Samples of y = f(x) of floats; integers are computed in float32."""
    def make(draw: Draw) -> Sample:
        x = draw.array(draw.shape(), draw.dtype(*kinds), low, high)
        with np.errstate(all="ignore"):
            y = f(wide(x).astype("float64"))
        kind = str(x.dtype) if str(x.dtype) in FLOATS else "float32"
        return Sample(getattr(topi, name), [x], np.asarray(y), kind, tolerance=tolerance)
    make.__name__ = name
    case(make)


unary("erfc", vectorized(math.erfc), -4, 6, FLOATS)
unary("normal_cdf", vectorized(lambda v: math.erfc(-v / math.sqrt(2)) / 2), -6, 4, FLOATS)
unary("erfinv", vectorized(lambda v: mpmath.erfinv(v)), -0.97, 0.97, FLOATS)
unary("lgamma", vectorized(lambda v: math.inf if v <= 0 and v == int(v) else math.lgamma(v)), -4.5, 9,
      tolerance=4.0)
unary("digamma", vectorized(lambda v: math.nan if v < 0 and v == int(v) else mpmath.digamma(v)), 0.3, 9, FLOATS)
unary("bessel_i0", vectorized(lambda v: mpmath.besseli(0, v)), -12, 30, FLOATS)
unary("sinc", np.sinc)
unary("cbrt", np.cbrt)
unary("exp10", lambda x: 10 ** x, -2, 2)
unary("frac", lambda x: x - np.trunc(x))
unary("deg2rad", np.deg2rad)
unary("rad2deg", np.rad2deg)


def question(name, f):
    def make(draw: Draw) -> Sample:
        x = draw.array(draw.shape(), draw.dtype(*NUMBERS if name == "signbit" else ALL))
        if str(x.dtype) in FLOATS:
            x[draw.rng.random(x.shape) < 0.4] = draw.choice(np.nan, np.inf, -np.inf, -0.0, 0.0)
        return Sample(getattr(topi, name), [x], f(wide(x)))
    make.__name__ = name
    case(make)


question("signbit", lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0)
question("isposinf", lambda x: x == np.inf)
question("isneginf", lambda x: x == -np.inf)


def drawn(draw: Draw, count: int = 2, low: float = -2.0, high: float = 2.0):
    """Floats that broadcast, some of them 0, and their type."""
    shape, dtype = draw.shape(), draw.dtype()
    out = [draw.array(draw.broadcastable(shape), dtype, low, high) for _ in range(count)]
    for x in out:
        x[draw.rng.random(x.shape) < 0.2] = 0
    return *out, dtype


def product_with_log(name, log):
    def make(draw: Draw) -> Sample:
        a, b, dtype = drawn(draw)
        b = np.abs(b)
        with np.errstate(all="ignore"):
            y = np.where(wide(a) == 0, 0.0, wide(a) * log(wide(b)))
        return Sample(getattr(topi, name), [a, b], y, dtype, tolerance=2)
    make.__name__ = name
    case(make)


product_with_log("xlogy", np.log)
product_with_log("xlog1py", np.log1p)


@case
def logaddexp2(draw: Draw) -> Sample:
    a, b, dtype = drawn(draw)
    if draw.flag(0.3):
        a[draw.rng.random(a.shape) < 0.3] = -np.inf
    return Sample(topi.logaddexp2, [a, b], np.logaddexp2(wide(a), wide(b)), dtype)


@case
def heaviside(draw: Draw) -> Sample:
    a, b = operands(draw, NUMBERS)
    if not isinstance(b, np.ndarray) or a.dtype != b.dtype:
        b = draw.array(a.shape, str(a.dtype))
    if str(a.dtype) in FLOATS:
        a[draw.rng.random(a.shape) < 0.3] = draw.choice(0.0, np.nan)
    y = np.where(wide(a) == 0, wide(b), np.where(wide(a) < 0, 0, 1))
    return Sample(topi.heaviside, [a, b], np.where(np.isnan(wide(a)), np.nan, y) if str(a.dtype) in FLOATS else y,
                  str(a.dtype))


@case
def logit(draw: Draw) -> Sample:
    x, eps = draw.array(draw.shape(), draw.dtype(), 0.02, 0.98), draw.choice(None, 0.1)
    x[draw.rng.random(x.shape) < 0.1] = draw.choice(0.0, 1.0)
    v = wide(x) if eps is None else np.clip(wide(x), eps, 1 - eps)
    with np.errstate(all="ignore"):
        y = np.log(v) - np.log1p(-v)
    return Sample(lambda x: topi.logit(x, eps=eps), [x], y, str(x.dtype), tolerance=2)


@case
def addcmul(draw: Draw) -> Sample:
    x, a, b, dtype = drawn(draw, 3)
    value = draw.choice(1.0, -0.5)
    return Sample(lambda *t: topi.addcmul(*t, value=value), [x, a, b], wide(x) + value * wide(a) * wide(b), dtype,
                  tolerance=2)


@case
def addcdiv(draw: Draw) -> Sample:
    x, a, b, dtype = drawn(draw, 3)
    b, value = np.where(np.abs(b) < 0.3, np.ones((), b.dtype), b), draw.choice(1.0, -0.5)
    return Sample(lambda *t: topi.addcdiv(*t, value=value), [x, a, b], wide(x) + value * wide(a) / wide(b), dtype,
                  tolerance=2)


@case
def popcount(draw: Draw) -> Sample:
    x = draw.array(draw.shape(), draw.dtype(*INTEGERS), -120, 120)
    bits = 8 * x.dtype.itemsize
    y = np.vectorize(lambda v: bin(int(v) % (1 << bits)).count("1"), otypes=["int64"])(x) if x.size else x
    return Sample(topi.popcount, [x], y, str(x.dtype))
