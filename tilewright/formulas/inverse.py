"""asin, acos, atan and atan2."""
from __future__ import annotations

from tilewright.formulas.builder import Builder
from tilewright.tir.expr import Expr

# (asin(s) / s - 1) / s**2 in z = s**2 on [0, 1/4]; (atan(s) / s - 1) / s**2 on [0, tan(pi / 8)**2]
ASIN_SINGLE = (0.166666663, 0.0750009454, 0.0445994015, 0.0311006627, 0.0171492384, 0.0336908472)
ASIN_DOUBLE = (
    0.166666666666666678,
    0.0749999999999843293,
    0.0446428571463554298,
    0.0303819441385312473,
    0.0223721729421498879,
    0.0173523927208699729,
    0.0139712129735529333,
    0.0114791774151849059,
    0.0103228143501857793,
    0.0054575067186403583,
    0.0174008794426940224,
    -0.0148518870712472032,
    0.0287578513674215647,
)
ATAN_SINGLE = (-0.333333318, 0.199995385, -0.142638874, 0.107429949, -0.0644948853)
ATAN_DOUBLE = (
    -0.333333333333333301,
    0.199999999999954723,
    -0.142857142846564545,
    0.111111110144453922,
    -0.090909045451917685,
    0.0769218242621360799,
    -0.0666450068332416224,
    0.058580554597517668,
    -0.0508496098459947251,
    0.0392175466438453861,
    -0.0191596150162300006,
)
# pi / 2 as a rounded number and what is missing
HALF_PI_SINGLE = (1.57079637050628662109375, -4.37113900018624283e-8)
HALF_PI_DOUBLE = (1.57079632679489655800, 6.12323399573676603587e-17)


def _half_pi(b: Builder, times: float = 1.0) -> tuple[Expr, Expr]:
    high, low = HALF_PI_DOUBLE if b.is_double else HALF_PI_SINGLE
    return b.c(high * times), b.c(low * times)


def _asin_parts(b: Builder, x: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """(|x| > 1/2, s, z, s * z * P): asin(s) is s + the last, with s = |x|, or sqrt((1 - |x|) / 2)
    when |x| > 1/2.
    """
    magnitude = b.abs(x)
    large = b.cmp("ogt", magnitude, b.c(0.5))
    folded = b.mul(b.c(0.5), b.sub(b.c(1.0), magnitude))
    z = b.select(large, folded, b.mul(magnitude, magnitude))
    s = b.select(large, b.sqrt(folded), magnitude)
    return large, s, z, b.mul(s, b.mul(z, b.poly(z, ASIN_DOUBLE if b.is_double else ASIN_SINGLE)))


def _root_error(b: Builder, s: Expr, z: Expr) -> Expr:
    """What s = sqrt(z) misses: (z - s**2) / (2 s), 0 at 0."""
    head = b.upper(s)
    missing = b.div(b.sub(z, b.mul(head, head)), b.add(s, head))         # sqrt(z) - head
    return b.select(b.cmp("oeq", z, b.c(0.0)), b.c(0.0), b.sub(missing, b.sub(s, head)))


def asin(b: Builder, x: Expr) -> Expr:
    """asin(x) for |x| <= 1/2; else pi / 2 - 2 asin(sqrt((1 - |x|) / 2))."""
    large, s, z, tail = _asin_parts(b, x)
    high, low = _half_pi(b)
    correction = b.sub(b.mul(b.c(2.0), b.add(tail, _root_error(b, s, z))), low)
    far = b.sub(high, b.add(b.mul(b.c(2.0), s), correction))
    y = b.select(large, far, b.add(s, tail))
    return b.copysign(b.select(b.cmp("uno", y, y), b.c(float("nan")), y), x)


def acos(b: Builder, x: Expr) -> Expr:
    """pi / 2 - asin(x); 2 asin(sqrt((1 - x) / 2)) for x > 1/2; pi minus that of -x for x < -1/2."""
    large, s, z, tail = _asin_parts(b, x)
    high, low = _half_pi(b)
    signed_s, signed_tail = b.copysign(s, x), b.copysign(tail, x)
    near = b.sub(high, b.add(signed_s, b.sub(signed_tail, low)))
    error = _root_error(b, s, z)
    right = b.mul(b.c(2.0), b.add(s, b.add(tail, error)))
    pi_high, pi_low = _half_pi(b, 2.0)
    left = b.sub(pi_high, b.add(b.mul(b.c(2.0), s), b.sub(b.mul(b.c(2.0), b.add(tail, error)), pi_low)))
    far = b.select(b.cmp("olt", x, b.c(0.0)), left, right)
    return b.select(large, far, near)


def _atan_reduced(b: Builder, top: Expr, bottom: Expr, steps: Expr) -> Expr:
    """atan(top / bottom) + steps * pi / 4, |top / bottom| <= tan(pi / 8)."""
    t = b.div(top, bottom)
    z = b.mul(t, t)
    tail = b.mul(t, b.mul(z, b.poly(z, ATAN_DOUBLE if b.is_double else ATAN_SINGLE)))
    high, low = _half_pi(b, 0.5)
    return b.add(b.mul(steps, high), b.add(t, b.add(tail, b.mul(steps, low))))


def atan(b: Builder, x: Expr) -> Expr:
    """Reduced to |t| <= tan(pi / 8): t = x, (x - 1) / (x + 1) or -1 / x (Cephes)."""
    magnitude = b.abs(x)
    medium = b.cmp("ogt", magnitude, b.c(0.41421356237309503))
    large = b.cmp("ogt", magnitude, b.c(2.414213562373095))
    one = b.c(1.0)
    top = b.select(large, b.c(-1.0), b.select(medium, b.sub(magnitude, one), magnitude))
    bottom = b.select(large, magnitude, b.select(medium, b.add(magnitude, one), one))
    steps = b.select(large, b.c(2.0), b.select(medium, one, b.c(0.0)))
    return b.copysign(_atan_reduced(b, top, bottom, steps), x)


def atan2(b: Builder, y: Expr, x: Expr) -> Expr:
    """The angle of (x, y): atan of the smaller magnitude over the larger, then moved to its octant."""
    ax, ay = b.abs(x), b.abs(y)
    steep = b.cmp("ogt", ay, ax)
    small, large = b.select(steep, ax, ay), b.select(steep, ay, ax)
    # powers of two that keep both sums finite and quotients of denormal numbers accurate
    huge = b.cmp("ogt", large, b.c(b.pick(2.0**100, 2.0**1000)))
    tiny = b.cmp("olt", large, b.c(b.pick(2.0**-90, 2.0**-900)))
    factor = b.select(
        huge, b.c(b.pick(2.0**-30, 2.0**-100)), b.select(tiny, b.c(b.pick(2.0**60, 2.0**200)), b.c(1.0))
    )
    small, large = b.mul(small, factor), b.mul(large, factor)
    both_infinite = b.both(b.cmp("oeq", small, b.c(float("inf"))), b.cmp("oeq", large, b.c(float("inf"))))
    small, large = (b.select(both_infinite, b.c(1.0), v) for v in (small, large))
    large = b.select(b.cmp("oeq", large, b.c(0.0)), b.c(1.0), large)
    medium = b.cmp("ogt", small, b.mul(large, b.c(0.41421356237309503)))
    top = b.select(medium, b.sub(small, large), small)
    bottom = b.select(medium, b.add(small, large), large)
    # angle = steps * pi / 4 + sign * atan(top / bottom), with the octant folded into steps and sign
    left = b.icmp("lt", b.bits(x), b.n(0))
    steps = b.select(medium, b.c(1.0), b.c(0.0))
    steps = b.select(steep, b.sub(b.c(2.0), steps), steps)
    turned = b.select(left, b.sub(b.c(4.0), steps), steps)
    negative = b.differ(steep, left)
    angle = _atan_reduced(b, b.select(negative, b.neg(top), top), bottom, turned)
    nan = b.cmp("uno", x, y)
    return b.select(nan, b.add(x, y), b.copysign(angle, y))
