"""Operators of integers for every operand: divisions that never trap, shifts by any amount."""
from __future__ import annotations

import functools

from tilewright.formulas.builder import Builder, Formula
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Expr


@functools.lru_cache(1024)
def division(op: str, dtype: str, safe: bool, natural: bool) -> Formula:
    """`op`, a division or remainder of BINARY: by 0 it gives 0, and the smallest integer over -1 wraps.

    safe: the divisor is a constant, neither 0 nor -1. natural: neither operand is negative.
    """
    b = _Integers(dtype)
    x, y = b.param("x", dtype), b.param("y", dtype)
    divisor, by_zero = (y, None) if safe else b.without_traps(x, y)
    if natural or op.startswith("trunc") or not dt.is_signed(dtype):
        out = b.quotient(x, divisor, natural) if op.endswith("div") else b.remainder(x, divisor, natural)
    else:
        out = b.floor(op, x, divisor)
    name = op + "_safe" * safe + "_natural" * natural
    return b.formula(name, [x, y], out if by_zero is None else b.select(by_zero, b.n(0), out))


@functools.lru_cache(256)
def shift(op: str, dtype: str) -> Formula:
    """`op`, "shl" or "shr": by the width or more it gives 0, or -1 for a negative number shifted right, as in NumPy."""
    b = _Integers(dtype)
    x, amount = b.param("x", dtype), b.param("amount", dtype)
    unsigned, last = b.as_unsigned(amount), b.n(dt.bits_of(dtype) - 1)
    if op == "shr" and dt.is_signed(dtype):
        held = b.cast(dtype, b.binary("min", unsigned, b.as_unsigned(last)))
        return b.formula(op, [x, amount], b.bare(op, x, held))
    inside = b.binary("le", unsigned, b.as_unsigned(last))
    held = b.select(inside, amount, b.n(0))
    return b.formula(op, [x, amount], b.select(inside, b.bare(op, x, held), b.n(0)))


class _Integers(Builder):
    """A builder whose integers are of the given dtype."""

    def __init__(self, dtype: str) -> None:
        super().__init__(dt.with_lanes("float32", dt.lanes_of(dtype)))
        self.i = dtype

    def as_unsigned(self, x: Expr) -> Expr:
        """The bits of x as an unsigned number."""
        return self.cast(x.dtype if x.dtype.startswith("u") else f"u{x.dtype}", x)

    def without_traps(self, x: Expr, y: Expr) -> tuple[Expr, Expr]:
        """(y, but 1 where x / y would trap: for 0, and for -1 under the smallest integer; whether y is 0)."""
        by_zero = self.icmp("eq", y, self.n(0))
        unsafe = by_zero
        if dt.is_signed(self.i):
            smallest = self.icmp("eq", x, self.n(dt.integer_range(self.i)[0]))
            unsafe = self.either(by_zero, self.both(smallest, self.icmp("eq", y, self.n(-1))))
        return self.select(unsafe, self.n(1), y), by_zero

    def quotient(self, x: Expr, y: Expr, natural: bool = False) -> Expr:
        """x / y rounded to zero, for operands that do not trap."""
        return self._plain("truncdiv", x, y, natural)

    def remainder(self, x: Expr, y: Expr, natural: bool = False) -> Expr:
        """The remainder of `quotient`."""
        return self._plain("truncmod", x, y, natural)

    def _plain(self, op: str, x: Expr, y: Expr, natural: bool) -> Expr:
        if natural:
            return self.cast(self.i, self.bare(op, self.as_unsigned(x), self.as_unsigned(y)))
        return self.bare(op, x, y)

    def floor(self, op: str, x: Expr, y: Expr) -> Expr:
        """The division that rounds down, or its remainder, which has the sign of y."""
        rest = self.remainder(x, y)
        differs = self.icmp("lt", self.binary("bitxor", rest, y), self.n(0))
        adjust = self.both(self.icmp("ne", rest, self.n(0)), differs)
        if op == "floormod":
            return self.select(adjust, self.iadd(rest, y), rest)
        return self.iadd(self.quotient(x, y), self.select(adjust, self.n(-1), self.n(0)))
