"""Reduction of huge arguments modulo pi / 2: an exact product with the bits of 2 / pi that matter."""
from __future__ import annotations

import functools

import numpy as np

from tilewright.formulas.builder import Builder, Formula
from tilewright.tir.constant_table import text_of
from tilewright.tir.expr import Call, Cast, Expr, StringImm

# A zero word, then 2 / pi in 64-bit words, high first
WORDS = (
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
)
HALF_PI = (1.57079632679489655800e+00, 6.12323399573676603587e-17)
Wide = tuple[Expr, Expr]        # an integer of 128 bits: its upper and its lower half, as int64


@functools.cache
def payne_hanek() -> Formula:
    """float64 x, |x| >= 2**20 -> (n mod 4 of the nearest multiple of pi / 2, r, tail).

    With x = m * 2**(e - 52), m of 53 bits, the 192 bits of 2 / pi from bit e - 53 on decide: what lies before
    contributes multiples of 4, what lies behind less than 2**-126. 128 bits of the product are kept: 2 of n, 126 of the
    fraction, of which cancellation eats at most 62.
    """
    b = _Exact("float64")
    x = b.param("x")
    raw = b.bits(x)
    exponent = b.iand(b.ushr(raw, 52), b.n(2047))
    mantissa = b.ior(b.iand(raw, b.n((1 << 52) - 1)), b.n(1 << 52))
    position = b.isub(exponent, b.n(1023 + 54 - 64))
    word, shift = b.ushr(position, 6), b.iand(position, b.n(63))
    words = [b.word(b.iadd(word, b.n(k))) for k in range(4)]
    window = [b.funnel(words[k], words[k + 1], shift) for k in range(3)]
    products = [b.product(mantissa, w) for w in window]
    total = b.sum((products[0][1], b.n(0)), products[1], (b.n(0), products[2][0]))
    quadrant = b.ushr(b.iadd(total[0], b.n(1 << 61)), 62)
    high, tail = b.times_half_pi((b.isub(total[0], b.shl(quadrant, 62)), total[1]))
    negative = b.icmp("lt", raw, b.n(0))
    n = b.select(negative, b.isub(b.n(0), quadrant), quadrant)
    return b.formula("payne_hanek", [x], n, *(b.select(negative, b.neg(v), v) for v in (high, tail)))


class _Exact(Builder):
    """Scalar float64 with integers of 128 bits."""

    def word(self, index: Expr) -> Expr:
        """A word of 2 / pi."""
        data = StringImm(text_of(np.array(WORDS, "uint64"), "uint64"))
        return self.value(("word", index), lambda: Cast("int64", Call("table", (data, index), "uint64")))

    def funnel(self, high: Expr, low: Expr, shift: Expr) -> Expr:
        """The upper half of high:low shifted left by 0 to 63."""
        return self.ior(self.shl(high, shift), self.ushr(low, self.isub(self.n(64), shift)))

    def product(self, a: Expr, b: Expr) -> Wide:
        """a * b of two unsigned numbers of 64 bits, from four products of their halves."""
        mask = self.n((1 << 32) - 1)
        (a1, a0), (b1, b0) = ((self.ushr(v, 32), self.iand(v, mask)) for v in (a, b))
        low, cross = self.imul(a0, b0), self.imul(a1, b0)
        middle = self.iadd(self.iadd(self.iand(cross, mask), self.imul(a0, b1)), self.ushr(low, 32))
        high = self.iadd(self.iadd(self.imul(a1, b1), self.ushr(cross, 32)), self.ushr(middle, 32))
        return high, self.imul(a, b)

    def sum(self, *terms: Wide) -> Wide:
        high, low = terms[0]
        for more_high, more_low in terms[1:]:
            out = self.iadd(low, more_low)
            carry = self.select(self.below(out, low), self.n(1), self.n(0))
            high, low = self.iadd(self.iadd(high, more_high), carry), out
        return high, low

    def times_half_pi(self, fraction: Wide) -> tuple[Expr, Expr]:
        """pi / 2 * fraction / 2**126 of a signed fraction, as high + tail."""
        below = self.icmp("lt", fraction[0], self.n(0))
        flipped = self.sum((self.isub(self.n(-1), fraction[0]), self.isub(self.n(-1), fraction[1])),
                           (self.n(0), self.n(1)))
        high, low = (self.select(below, f, v) for f, v in zip(flipped, fraction))
        empty = self.icmp("eq", high, self.n(0))
        zeros = self.select(empty, self.iadd(self.call("clz", low), self.n(64)), self.call("clz", high))
        high, low = self.select(empty, low, high), self.select(empty, self.n(0), low)
        within = self.iand(zeros, self.n(63))
        high, low = self.funnel(high, low, within), self.shl(low, within)
        first = self.ushr(high, 11)                                             # 53 bits
        second = self.ior(self.shl(high, 53), self.ushr(low, 11))               # the 64 bits behind them
        scale = self.power_of_two(self.isub(self.n(-51), zeros))
        v = self.mul(self.unsigned(first), scale)
        v_low = self.mul(self.mul(self.unsigned(second), self.c(2.0**-64)), scale)
        r = self.mul(v, self.c(HALF_PI[0]))
        v_head, pi_head = self.upper(v), 1.570796012878418
        v_rest, pi_rest = self.sub(v, v_head), HALF_PI[0] - pi_head
        error = self.sub(self.mul(v_head, self.c(pi_head)), r)
        for part, factor in ((v_head, pi_rest), (v_rest, pi_head), (v_rest, pi_rest)):
            error = self.add(error, self.mul(part, self.c(factor)))
        rest = self.add(self.mul(v, self.c(HALF_PI[1])), self.mul(v_low, self.c(HALF_PI[0])))
        out = self.add(r, self.add(error, rest))
        tail = self.add(self.sub(r, out), self.add(error, rest))
        return self.select(below, self.neg(out), out), self.select(below, self.neg(tail), tail)

    def unsigned(self, a: Expr) -> Expr:
        """The float of an unsigned number."""
        return self.cast("float64", self.cast("uint64", a))
