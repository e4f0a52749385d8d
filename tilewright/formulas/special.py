"""erf."""
from __future__ import annotations

from tilewright.formulas.builder import Builder
from tilewright.formulas.exponential import exp_of_small
from tilewright.tir.expr import Expr

# erf(x) / x - 1 in x**2: on [0, 0.93**2] in single, [0, 1] in double precision
NEAR_SINGLE = (
    0.128379167,
    -0.376126335,
    0.112836915,
    -0.0268591515,
    0.00520036859,
    -0.000813470933,
    8.33471862e-5,
)
NEAR_DOUBLE = (
    0.128379167095512567,
    -0.376126389031835404,
    0.112837916709450063,
    -0.0268661706432377704,
    0.00522397760711642273,
    -0.000854832597538969208,
    0.000120552949048397079,
    -0.0000149247369074196603,
    1.64474247033173624e-6,
    -1.62084838018717059e-7,
    1.37200645467776856e-8,
    -7.79589882700214224e-10,
)
# log(erfc(t)) on [0.92, 4], minimax with weight erfc(t)
FAR_SINGLE = (
    -0.0002070232413,
    -1.127627336,
    -0.6372658685,
    -0.1038562658,
    0.0221897211,
    -0.003033677567,
    0.0001949451506,
)
# exp(t**2) * erfc(t) * (1 + 2 t) in u = (t - 3) / (t + 3), t in [1, 6], minimax with weight erfc(t)
FAR_DOUBLE = (
    1.25300805827020512,
    -0.135621106101656269,
    -0.0475622942023037316,
    0.129645152073731083,
    -0.119273820053744929,
    0.0683064007189961765,
    -0.0237805587809845384,
    0.00248920915940277765,
    0.00178182455955908825,
    -0.000966487392298383986,
    -0.000306632040360569945,
    0.0000139632712409879542,
)


def erf(b: Builder, x: Expr) -> Expr:
    """x + x P(x**2) near 0; else 1 - erfc(|x|), whose error is scaled down by erfc. NaN takes the second way."""
    t = b.abs(x)
    z = b.mul(x, x)
    near = b.fma(x, b.poly(z, NEAR_DOUBLE if b.is_double else NEAR_SINGLE), x)
    held = b.at_most(t, b.pick(4.0, 6.0))
    if b.is_double:
        u = b.div(b.sub(held, b.c(3.0)), b.add(held, b.c(3.0)))
        factor = b.div(b.poly(u, FAR_DOUBLE), b.fma(b.c(2.0), held, b.c(1.0)))
        complement = b.mul(exp_of_small(b, b.neg(b.mul(held, held))), factor)
    else:
        complement = exp_of_small(b, b.poly(held, FAR_SINGLE))
    far = b.copysign(b.sub(b.c(1.0), complement), x)
    return b.select(b.cmp("olt", t, b.c(b.pick(0.927734375, 1.0))), near, far)
