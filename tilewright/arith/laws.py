"""The laws of floor division, minimum and maximum on linear forms, as data with an example each.

Everything else follows from linear forms being canonical: sums cancel, and x % c is kept as x - c * (x // c).
"""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from tilewright.arith.context import Context
from tilewright.arith.linear import Atom, Linear
from tilewright.arith.proof import nonneg, positive
from tilewright.tir import arithmetic


class Law(NamedTuple):
    """`apply` gives the form that the law's left side equals, or None where the law says nothing.

    `example`: x, y, z with 0 <= x < 8, 0 <= y < 4 and z unbounded -> (before, after) on which the law fires.
    """
    name: str
    apply: Callable[[Context, Linear, Any], Linear | None]
    example: Callable[[Any, Any, Any], tuple[Any, Any]]


DIVISION: list[Law] = []             # (numerator, positive int denominator)
SYMBOLIC_DIVISION: list[Law] = []    # (numerator, denominator with terms)
MINIMUM: list[Law] = []              # (a, b): min(a, b)


def law(table: list[Law], example: Callable[[Any, Any, Any], tuple[Any, Any]]) -> Callable[[Any], Any]:
    """Decorator: add the function to a table under its own name."""
    def keep(fn: Callable[..., Linear | None]) -> Callable[..., Linear | None]:
        table.append(Law(fn.__name__, fn, example))
        return fn
    return keep


def divide(ctx: Context, num: Linear, den: Linear) -> Linear:
    """The form of num // den, rounded to minus infinity. den is not the constant 0."""
    if den.terms:
        return _first(SYMBOLIC_DIVISION, ctx, num, den) or ctx.compound("div", num, den)
    c = den.const
    if c < 0:
        return divide(ctx, num.times(-1), Linear({}, -c))
    return _first(DIVISION, ctx, num, c) or ctx.compound("div", num, den)


def remainder(ctx: Context, num: Linear, den: Linear) -> Linear:
    """The form of num % den, with the sign of den. den is not the constant 0."""
    if not den.terms or (len(den.terms) == 1 and not den.const and positive(ctx, den)):
        return num.plus(ctx.multiply(den, divide(ctx, num, den)), -1)
    if not positive(ctx, den):
        return ctx.compound("mod", num, den)
    q = divide(ctx, num, den)
    whole = Linear({a: k for a, k in q.terms.items() if a.kind != "div" or a.args[1].key != den.key}, q.const)
    rest = num.plus(ctx.multiply(den, whole), -1)
    return rest if whole.key == q.key else ctx.compound("mod", rest, den)


def minimum(ctx: Context, a: Linear, b: Linear) -> Linear:
    """The form of min(a, b)."""
    return _first(MINIMUM, ctx, a, b) or ctx.compound("min", *_merged("min", min, a, b))


def maximum(ctx: Context, a: Linear, b: Linear) -> Linear:
    """The form of max(a, b): by the laws of min(-a, -b)."""
    out = _first(MINIMUM, ctx, a.times(-1), b.times(-1))
    return out.times(-1) if out is not None else ctx.compound("max", *_merged("max", max, a, b))


def _merged(kind: str, pick: Callable[[int, int], int], a: Linear, b: Linear) -> tuple[Linear, Linear]:
    """Operands with min(min(x, c), d) made min(x, min(c, d)) and constants second; max likewise."""
    if not a.terms:
        a, b = b, a
    if not b.terms and len(a.terms) == 1 and not a.const:
        (m, k), = a.terms.items()
        if m.kind == kind and k == 1 and not m.args[1].terms:
            return m.args[0], Linear({}, pick(m.args[1].const, b.const))
    return a, b


def _first(laws: list[Law], ctx: Context, a: Linear, b: Any) -> Linear | None:
    for entry in laws:
        out = entry.apply(ctx, a, b)
        if out is not None:
            return out
    return None


def split_terms(form: Linear, c: int) -> tuple[Linear, Linear]:
    """(q, r) with form == c * q + r, where q has every term that c divides, and 0 <= r.const < c."""
    whole = {a: k // c for a, k in form.terms.items() if k % c == 0}
    rest = {a: k for a, k in form.terms.items() if k % c}
    return Linear(whole, form.const // c), Linear(rest, form.const % c)


@law(DIVISION, lambda x, y, z: (z * 4 // (x - x + 1), z * 4))
def by_one(ctx: Context, num: Linear, c: int) -> Linear | None:
    """a // 1 == a, and constants fold."""
    if c == 1:
        return num
    return None if num.terms else Linear({}, num.const // c)


@law(DIVISION, lambda x, y, z: ((z * 4 + x + 9) // 4, z + (x + 1) // 4 + 2))
def take_multiples(ctx: Context, num: Linear, c: int) -> Linear | None:
    """(a*c + r) // c == a + r // c."""
    q, r = split_terms(num, c)
    if not q.terms and not q.const:
        return None
    return q.plus(divide(ctx, r, Linear({}, c)))


@law(DIVISION, lambda x, y, z: ((x + y) // 16, 0))
def within_one_step(ctx: Context, num: Linear, c: int) -> Linear | None:
    """r // c == q when q*c <= r < (q + 1)*c."""
    lo, hi = ctx.bounds_of(num)
    if lo is not None and hi is not None:
        return Linear({}, lo // c) if lo // c == hi // c else None
    if ctx.facts and (lo is None or lo >= 0) and (hi is None or hi < c):
        if lo is not None or nonneg(ctx, num):
            return Linear({}) if hi is not None or nonneg(ctx, num.times(-1).shifted(c - 1)) else None
    return None


@law(DIVISION, lambda x, y, z: ((z * 6 + 4) // 8, (z * 3 + 2) // 4))
def common_factor(ctx: Context, num: Linear, c: int) -> Linear | None:
    """(a*g + r) // (b*g) == (a + r // g) // b."""
    g = math.gcd(c, num.divisor())
    if g == 1:
        return None
    return divide(ctx, num.divided(g), Linear({}, c // g))


@law(DIVISION, lambda x, y, z: ((z * 8 + x) // 64, z // 8))
def drop_low_digits(ctx: Context, num: Linear, c: int) -> Linear | None:
    """(a*g + r) // (b*g) == (a + t) // b when t*g <= r < (t + 1)*g."""
    found = _high_digits(ctx, num, c)
    return divide(ctx, found[0], Linear({}, c // found[1])) if found else None


@law(DIVISION, lambda x, y, z: ((z // 4 + 3) // 5, (z + 12) // 20))
def nested(ctx: Context, num: Linear, c: int) -> Linear | None:
    """(x // a + s) // c == (x + s*a) // (a*c)."""
    if len(num.terms) == 1:
        (q, k), = num.terms.items()
        if k == 1 and q.kind == "div" and q not in ctx.multiples and positive(ctx, q.args[1]):
            a = q.args[1]
            return divide(ctx, q.args[0].plus(a, num.const), a.times(c))
    return None


@law(SYMBOLIC_DIVISION, lambda x, y, z: (z // (y + 1) // (x + 1), z // ((y + 1) * (x + 1))))
def nested_symbolic(ctx: Context, num: Linear, den: Linear) -> Linear | None:
    """(x // a) // b == x // (a*b), a > 0 and b > 0."""
    if len(num.terms) == 1 and not num.const:
        (q, k), = num.terms.items()
        if k == 1 and q.kind == "div" and positive(ctx, q.args[1]) and positive(ctx, den):
            return divide(ctx, q.args[0], ctx.multiply(q.args[1], den))
    return None


@law(SYMBOLIC_DIVISION, lambda x, y, z: ((y * 3 + 3) // (y + 1), 3))
def proportional(ctx: Context, num: Linear, den: Linear) -> Linear | None:
    """(k*d) // d == k, d > 0."""
    first, k = next(iter(den.terms.items()))
    have = num.terms.get(first, 0)
    if num.terms and have % k == 0 and num.key == den.times(have // k).key and positive(ctx, den):
        return Linear({}, have // k)
    return None


@law(SYMBOLIC_DIVISION, lambda x, y, z: ((z * (y + 1) + y) // (y + 1), z))
def take_symbolic_multiples(ctx: Context, num: Linear, den: Linear) -> Linear | None:
    """(a*d + r) // d == a + r // d, d > 0."""
    if not any(a.kind == "product" or a in den.terms for a in num.terms):
        return None
    whole = _multiples_of(ctx, num, den)
    if not whole.terms and not whole.const or not positive(ctx, den):
        return None
    return whole.plus(divide(ctx, num.plus(ctx.multiply(whole, den), -1), den))


@law(SYMBOLIC_DIVISION, lambda x, y, z: (y // (y + 1), 0))
def below_divisor(ctx: Context, num: Linear, den: Linear) -> Linear | None:
    """r // d == 0 when 0 <= r < d, and == -1 when -d <= r < 0."""
    if nonneg(ctx, num):
        return Linear({}) if positive(ctx, den.plus(num, -1)) else None
    return Linear({}, -1) if positive(ctx, num.times(-1)) and nonneg(ctx, num.plus(den)) else None


@law(SYMBOLIC_DIVISION, lambda x, y, z: ((z * 8 + x) // ((y + 1) * 16), z // ((y + 1) * 2)))
def drop_digits_below_a_factor(ctx: Context, num: Linear, den: Linear) -> Linear | None:
    """(a*g + r) // (b*g) == (a + t) // b when t*g <= r < (t + 1)*g, b > 0."""
    found = _high_digits(ctx, num, math.gcd(den.divisor(), den.const))
    return divide(ctx, found[0], den.divided(found[1])) if found and positive(ctx, den) else None


def _high_digits(ctx: Context, num: Linear, factor: int) -> tuple[Linear, int] | None:
    """(num // g, g) for the largest g > 1, a divisor of factor, for which the terms of num that g does not divide stay
    within one step of g."""
    for g in sorted({math.gcd(factor, k) for k in num.terms.values()}, reverse=True):
        if g == 1:
            break
        high, low = split_terms(num, g)
        lo, hi = ctx.bounds_of(low)
        if lo is not None and hi is not None and lo // g == hi // g:
            return high.shifted(lo // g), g
    return None


def _multiples_of(ctx: Context, num: Linear, den: Linear) -> Linear:
    """A form a such that num - a*den has fewer terms: found term by term along den's first term."""
    lead, c = next(iter(den.terms.items()))
    whole, rest = Linear({}), num
    for atom, k in num.terms.items():
        other = _without(ctx, atom, lead)
        if other is None or k % c:
            continue
        part = other.times(k // c)
        smaller = rest.plus(ctx.multiply(part, den), -1)
        if len(smaller.terms) < len(rest.terms):
            whole, rest = whole.plus(part), smaller
    return whole


def _without(ctx: Context, atom: Atom, factor: Atom) -> Linear | None:
    """atom / factor when it is a product that has all of factor."""
    if atom is factor:
        return Linear({}, 1)
    if atom.kind != "product":
        return None
    left = list(atom.args)
    for f in factor.args if factor.kind == "product" else (factor,):
        if f not in left:
            return None
        left.remove(f)
    return Linear({left[0] if len(left) == 1 else ctx.product(left): 1})


@law(MINIMUM, lambda x, y, z: (arithmetic.minimum(z + x, z + 9), z + x))
def by_bounds(ctx: Context, a: Linear, b: Linear) -> Linear | None:
    """min(a, b) == a when a <= b, and b when b <= a."""
    gap = b.plus(a, -1)
    if nonneg(ctx, gap):
        return a
    return b if nonneg(ctx, gap.times(-1)) else None
