"""sin, cos and tan for arguments of any size.

x = n * pi / 2 + r with |r| <= pi / 4; float32 is computed in float64. Up to 2**20 * pi / 2 the reduction
subtracts multiples of pi / 2 in parts (FreeBSD's e_rem_pio2.c). Beyond, x is multiplied exactly with the bits of
2 / pi that matter (Payne and Hanek, 1983), one lane at a time.
"""
from __future__ import annotations

from tilewright.codegen.llvm.mathlib.build import MathBuilder
from tilewright.codegen.llvm.mathlib.two_over_pi import reduce_huge

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


def _reduce_medium(d: MathBuilder, x: str, parts: int) -> tuple[str, str, str]:
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


def _reduce(d: MathBuilder, x: str, parts: int) -> tuple[str, str, str]:
    """(n, r, its tail) for any finite x; NaN for infinities. Lanes beyond MEDIUM go through a
    function of their own.
    """
    magnitude = d.abs(x)
    finite = d.cmp("olt", magnitude, d.c(float("inf")))
    huge = d.both(d.cmp("ogt", magnitude, d.c(MEDIUM)), finite)
    some = huge
    if d.lanes > 1:
        packed = d.value(f"bitcast {d.m} {huge} to i{d.lanes}")
        some = d.value(f"icmp ne i{d.lanes} {packed}, 0")
    held = d.select(huge, d.c(0.0), x)
    n, r, tail = _reduce_medium(d, held, parts)
    slow, done, before = d.new_label("huge"), d.new_label("reduced"), d.label
    symbol = reduce_huge(d.module, d.f)
    result = f"{{ {d.i}, {d.f}, {d.f} }}"
    d.branch(some, slow, done, f", !prof {d.module.metadata(RARE)}")
    d.start(slow)
    all_parts = d.effect(
        f"call {result} {symbol}({d.f} {x}, {d.m} {huge}, {d.i} {n}, {d.f} {r}, {d.f} {tail})"
    )
    parts_of = [d.effect(f"extractvalue {result} {all_parts}, {k}") for k in range(3)]
    d.jump(done)
    d.start(done)
    outs = [d.effect(f"phi {t} [ {a}, %{before} ], [ {s}, %{slow} ]")
            for t, a, s in zip((d.i, d.f, d.f), (n, r, tail), parts_of)]
    return outs[0], d.select(finite, outs[1], d.c(float("nan"))), outs[2]


RARE = '!{!"branch_weights", i32 1, i32 2000}'


def _sin_cos(d: MathBuilder, r: str, tail: str, single: bool) -> tuple[str, str]:
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


def _bit(d: MathBuilder, n: str, bit: int) -> str:
    return d.icmp("ne", d.iand(n, d.n(bit)), d.n(0))


def _trig(b: MathBuilder, x: str, name: str) -> str:
    single = not b.is_double
    d, wide = b.to_double(x) if single else (b, x)
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


def _tiny(d: MathBuilder, x: str, name: str, single: bool) -> str:
    """x itself in double precision; in single the cubic term still matters."""
    if not single:
        return x
    factor = -1.0 / 6.0 if name == "sin" else 1.0 / 3.0
    return d.mul(x, d.fma(d.mul(x, x), d.c(factor), d.c(1.0)))


def sin(b: MathBuilder, x: str) -> str:
    return _trig(b, x, "sin")


def cos(b: MathBuilder, x: str) -> str:
    return _trig(b, x, "cos")


def tan(b: MathBuilder, x: str) -> str:
    return _trig(b, x, "tan")

