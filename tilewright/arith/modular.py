"""Which residues an integer expression takes: its value is coeff * k + base for some integer k."""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.context import INDEX_TYPES
from tilewright.arith.linear import linear
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Call, Cast, Expr, IntImm, Let, Select, Var
from tilewright.tir.node import walk


@dataclass(frozen=True)
class ModularSet:
    """The integers coeff * k + base. coeff 0: base alone; coeff 1: every integer."""
    coeff: int
    base: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "coeff", abs(self.coeff))
        if self.coeff:
            object.__setattr__(self, "base", self.base % self.coeff)

    def joined(self, other: ModularSet) -> ModularSet:
        """The smallest such set that holds both."""
        return ModularSet(math.gcd(self.coeff, other.coeff, self.base - other.base), self.base)

    def meet(self, other: ModularSet) -> ModularSet:
        """The values in both sets; this set where there is none."""
        g = math.gcd(self.coeff, other.coeff)
        if (self.base - other.base) % g if g else True:
            return self
        if not self.coeff or not other.coeff:
            return other if self.coeff else self
        step = self.coeff // g
        k = (other.base - self.base) // g * pow(step, -1, other.coeff // g) if other.coeff // g > 1 else 0
        return ModularSet(step * other.coeff, self.base + k * self.coeff)


ANY = ModularSet(1, 0)


def modular_set(e: Expr, analyzer: Analyzer, known: Mapping[Var, ModularSet] | None = None) -> ModularSet:
    """A set that holds every value of e. known: the sets of variables.

    Index arithmetic is taken not to overflow, as in Analyzer; what reads memory, and other types, may wrap around.
    """
    if not dt.is_integer(e.dtype):
        return ANY
    exact = not any(isinstance(n, Load) for n in walk(e))
    return _Residues(analyzer, dict(known or {}), exact).of(e)


def residues_said(condition: Expr) -> Iterator[tuple[Var, ModularSet]]:
    """What a condition says of variables: (x + a) % c == b, alone or in a conjunction."""
    if isinstance(condition, Binary) and condition.op == "and":
        yield from residues_said(condition.a)
        yield from residues_said(condition.b)
    elif isinstance(condition, Call) and condition.op in ("likely", "assume"):
        yield from residues_said(condition.args[0])
    elif isinstance(condition, Binary) and condition.op == "eq":
        for side, value in ((condition.a, condition.b), (condition.b, condition.a)):
            match side, value:
                case Binary(op, a, IntImm(c)), IntImm(r) if c and (op == "floormod" or op == "truncmod" and not r):
                    terms, const = linear(a)
                    x, k = next(iter(terms.items()), (None, 0))
                    if len(terms) == 1 and isinstance(x, Var) and abs(k) == 1 and x.dtype in INDEX_TYPES:
                        yield x, ModularSet(c, (r - const) * k)


class _Residues:
    def __init__(self, analyzer: Analyzer, known: dict[Var, ModularSet], exact: bool) -> None:
        self.analyzer, self.known, self.exact = analyzer, known, exact

    def of(self, e: Expr) -> ModularSet:
        if isinstance(e, IntImm):
            return ModularSet(0, e.value)
        if isinstance(e, Var):
            found = self.known.get(e, ANY)
            low, high = self.analyzer.bounds(e)
            return ModularSet(0, low) if low is not None and low == high else found
        if isinstance(e, Binary):
            return self._wrapped(e.dtype, self._binary(e))
        if isinstance(e, Select):
            return self.of(e.a).joined(self.of(e.b))
        if isinstance(e, Call) and e.op == "if_then_else":
            return self.of(e.args[1]).joined(self.of(e.args[2]))
        if isinstance(e, Cast) and dt.is_integer(e.value.dtype):
            return self._cast(e)
        if isinstance(e, Let):
            self.known[e.var] = self.of(e.value) if dt.is_integer(e.var.dtype) else ANY
            return self.of(e.body)
        return ANY

    def _wrapped(self, dtype: str, found: ModularSet) -> ModularSet:
        """found, or what is left of it when the value may have wrapped around."""
        if (self.exact and dtype in INDEX_TYPES) or not dt.is_integer(dtype):
            return found
        low, high = dt.integer_range(dtype)
        if found.coeff == 0 and low <= found.base <= high:
            return found
        return ModularSet(math.gcd(found.coeff, high - low + 1), found.base)

    def _cast(self, e: Cast) -> ModularSet:
        found = self.of(e.value)
        low, high = dt.integer_range(e.dtype)
        least, most = self.analyzer.bounds(e.value)
        if least is not None and most is not None and low <= least and most <= high:
            return found
        inner = dt.integer_range(e.value.dtype)
        if low <= inner[0] and inner[1] <= high:
            return found
        return ModularSet(math.gcd(found.coeff, high - low + 1), found.base)

    def _binary(self, e: Binary) -> ModularSet:
        a, b = self.of(e.a), self.of(e.b)
        if e.op in ("add", "sub"):
            return ModularSet(math.gcd(a.coeff, b.coeff), a.base + b.base if e.op == "add" else a.base - b.base)
        if e.op == "mul":
            return ModularSet(math.gcd(a.coeff * b.coeff, a.coeff * b.base, b.coeff * a.base), a.base * b.base)
        if e.op in ("min", "max"):
            return a.joined(b)
        if not isinstance(e.b, IntImm):
            return ANY
        return self._by_constant(e, a, e.b.value)

    def _by_constant(self, e: Binary, a: ModularSet, c: int) -> ModularSet:
        bits = dt.bits_of(e.dtype)
        if e.op in ("shl", "shr") and 0 <= c < bits:
            step = 1 << c
            if e.op == "shl":
                return ModularSet(a.coeff * step, a.base * step)
            return _quotient(a, step)
        if e.op == "bitand" and c:
            if c > 0 and c & (c + 1) == 0:
                return _remainder(a, c + 1)
            return ModularSet(c & -c, 0)
        if not c or e.op not in ("floordiv", "floormod", "truncdiv", "truncmod"):
            return ANY
        least = self.analyzer.bounds(e.a)[0]
        if e.op.startswith("trunc") and not (c > 0 and least is not None and least >= 0):
            return self._rounded_to_zero(e.op, a, c)
        return _quotient(a, c) if e.op.endswith("div") else _remainder(a, c)

    @staticmethod
    def _rounded_to_zero(op: str, a: ModularSet, c: int) -> ModularSet:
        """Of a numerator that may be negative."""
        if op == "truncmod":
            return ModularSet(math.gcd(a.coeff, c), a.base) if a.coeff else ANY
        return _quotient(a, c) if a.coeff % c == 0 and a.base % c == 0 else ANY


def _quotient(a: ModularSet, c: int) -> ModularSet:
    """Of x // c."""
    return ANY if a.coeff % c else ModularSet(a.coeff // c, a.base // c)


def _remainder(a: ModularSet, c: int) -> ModularSet:
    """Of x % c, which has the sign of c."""
    return ModularSet(0, a.base % c) if a.coeff % c == 0 else ModularSet(math.gcd(a.coeff, c), a.base)
