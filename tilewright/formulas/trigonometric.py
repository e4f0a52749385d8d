"""sin, cos and tan for arguments of any size.

x = n * pi / 2 + r with |r| <= pi / 4; float32 is computed in float64. Up to 2**20 * pi / 2 the reduction
subtracts multiples of pi / 2 in parts (FreeBSD's e_rem_pio2.c). Beyond, x is multiplied exactly with the bits of
2 / pi that matter (Payne and Hanek, 1983): a rare step, one lane at a time.
"""
from __future__ import annotations

from tilewright.formulas.builder import Builder
from tilewright.formulas.two_over_pi import payne_hanek
from tilewright.tir.expr import Expr

# (sin(r) / r - 1) / r**2 and (cos(r) - 1 + r**2 / 2) / r**4 in r**2
SIN_SINGLE = (-0.166666666638370509, 0.00833333186762330345, -0.0001984008291000507, 2.72494301852998833e-6)
COS_SINGLE = (0.041666666664305983, -0.00138888876661022572, 0.0000248005971844660027, -2.7300545545861005e-7)
SIN_DOUBLE = (-0.166666666666666646, 0.00833333333333092912, -0.000198412698367292982, 2.75573160873788714e-6,
              -2.50511286851555027e-8, 1.59179018245968765e-10)
COS_DOUBLE = (
    0.0416666666666666654,
    -0.00138888888888873851,
    0.0000248015872987473735,
    -2.75573172622374836e-7,
    2.08761442916421966e-9,
    -1.13824901220002794e-11,
)
TWO_OVER_PI = 0.6366197723675814
# pi / 2 in parts of 33 bits, and what is missing after each
PARTS = (
    (1.57079632673412561417e+00, 6.07710050650619224932e-11),
    (6.07710050630396597660e-11, 2.02226624879595063154e-21),
    (2.02226624871116645580e-21, 8.47842766036889956997e-32),
)
MEDIUM = 1647099.0                              # 2**20 * pi / 2


def _reduce_medium(d: Builder, x: Expr, parts: int) -> tuple[Expr, Expr, Expr]:
    """(n, r, the part of r below its last bit) for |x| <= MEDIUM, in float64."""
    whole, n = d.nearest(d.mul(x, d.c(TWO_OVER_PI)))
    r, lost = x, d.c(0.0)
    for high, _ in PARTS[:parts]:
        before, step = r, d.mul(whole, d.c(high))           # exact: 33 bits by 21
        r = d.sub(before, step)
        lost = d.add(lost, d.sub(d.sub(before, r), step))
    w = d.sub(d.mul(whole, d.c(PARTS[parts - 1][1])), lost)
    y = d.sub(r, w)
    return n, y, d.sub(d.sub(r, y), w)


def _reduce(d: Builder, x: Expr, parts: int) -> tuple[Expr, Expr, Expr]:
    """(n, r, its tail) for any finite x; NaN for infinities."""
    magnitude = d.abs(x)
    finite = d.cmp("olt", magnitude, d.c(float("inf")))
    huge = d.both(d.cmp("ogt", magnitude, d.c(MEDIUM)), finite)
    usual = _reduce_medium(d, d.select(huge, d.c(0.0), x), parts)
    n, r, tail = d.rare(huge, payne_hanek(), [x], *usual)
    return n, d.select(finite, r, d.c(float("nan"))), tail


def _sin_cos(d: Builder, r: Expr, tail: Expr, single: bool) -> tuple[Expr, Expr]:
    """(sin, cos) of r + tail, |r| <= pi / 4."""
    z = d.mul(r, r)
    cube = d.mul(z, r)
    half = d.mul(d.c(0.5), z)
    if single:
        sine = d.fma(cube, d.poly(z, SIN_SINGLE), r)
        return sine, d.fma(d.mul(z, z), d.poly(z, COS_SINGLE), d.sub(d.c(1.0), half))
    # sin(r + t) = sin r + t (1 - r^2 / 2); cos(r + t) = cos r - r t
    inner = d.sub(d.mul(half, tail), tail)
    sine = d.sub(r, d.sub(inner, d.mul(cube, d.poly(z, SIN_DOUBLE))))
    head = d.sub(d.c(1.0), half)
    lost = d.sub(d.sub(d.c(1.0), head), half)
    series = d.mul(d.mul(z, z), d.poly(z, COS_DOUBLE))
    return sine, d.add(head, d.add(lost, d.sub(series, d.mul(r, tail))))


def _bit(d: Builder, n: Expr, bit: int) -> Expr:
    return d.icmp("ne", d.iand(n, d.n(bit)), d.n(0))


def _trig(b: Builder, x: Expr, name: str) -> Expr:
    single = not b.is_double
    d, wide = (b.wide(), b.to_double(x)) if single else (b, x)
    n, r, tail = _reduce(d, wide, 2 if single else 3)
    sine, cosine = _sin_cos(d, r, tail, single)
    odd = _bit(d, n, 1)
    if name == "tan":
        top, bottom = d.select(odd, d.neg(cosine), sine), d.select(odd, sine, cosine)
        y = d.div(top, bottom)
    else:
        turned = n if name == "sin" else d.iadd(n, d.n(1))
        odd = _bit(d, turned, 1)
        y = d.select(odd, cosine, sine)
        y = d.select(_bit(d, turned, 2), d.neg(y), y)
    if name != "cos":  # keeps -0.0, and tiny numbers exact
        y = d.select(
            d.cmp("olt", d.abs(wide), d.c(2.0**-13 if single else 2.0**-27)), _tiny(d, wide, name, single), y
        )
    return b.from_double(y) if single else y


def _tiny(d: Builder, x: Expr, name: str, single: bool) -> Expr:
    """x itself in double precision; in single the cubic term still matters."""
    if not single:
        return x
    factor = -1.0 / 6.0 if name == "sin" else 1.0 / 3.0
    return d.mul(x, d.fma(d.mul(x, x), d.c(factor), d.c(1.0)))


def sin(b: Builder, x: Expr) -> Expr:
    return _trig(b, x, "sin")


def cos(b: Builder, x: Expr) -> Expr:
    return _trig(b, x, "cos")


def tan(b: Builder, x: Expr) -> Expr:
    return _trig(b, x, "tan")

