"""Iterators cut into digits, and the maps made of them."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.forms import form_of, to_expr
from tilewright.arith.laws import divide
from tilewright.arith.linear import Atom, Linear
from tilewright.tir.arithmetic import binary
from tilewright.tir.expr import Expr, Var
from tilewright.tir.node import substitute

ONE = Linear({}, 1)


@dataclass(eq=False)
class Digit:
    """atom runs over [0, extent); independent of the other digits unless its mark is ragged."""
    atom: Atom
    extent: Linear


@dataclass(eq=False)
class Mark:
    """value = sum of parts[var] * (var - min) runs over [0, extent); its digits have the weights `weights`.

    `ragged`: the last digit does not fill its extent, so that not every combination of digits occurs.
    """
    parts: list[tuple[Var, Linear, Linear, Linear]]           # (var, min, extent, coefficient), least first
    extent: Linear
    divisors: list[Linear] = field(default_factory=list)
    weights: list[Linear] = field(default_factory=list)
    digits: list[Digit] = field(default_factory=list)
    ragged: bool = False


@dataclass(eq=False)
class Output:
    """index = base + sum of weight * digit, least weight first; a reversed digit is extent - 1 - digit."""
    base: Linear
    parts: list[tuple[Digit, Linear, bool]]
    extent: Linear
    dtype: str


class IterMap:
    """An understood map from the points of some domains to indices."""

    def __init__(self, analyzer: Analyzer, marks: list[Mark], outputs: list[Output], dense: bool,
                 restricted: bool) -> None:
        self._analyzer, self._marks, self._outputs = analyzer, marks, outputs
        used = [d for o in outputs for d, _, _ in o.parts]
        once = len(used) == len({id(d) for d in used})
        whole = all(d.extent.key == ONE.key or any(u is d for u in used) for m in marks for d in m.digits)
        #: no two points of the domain (where the predicate holds) have the same indices
        self.is_injective = whole
        #: every point of the box of `outputs` is reached exactly once
        self.is_bijective = whole and once and dense and not restricted and not any(m.ragged for m in marks)
        #: the digits say all: the predicate cuts nothing but extents, and every combination of digits occurs
        self.is_exact = not restricted and not any(m.ragged for m in marks)
        #: no digit occurs twice in the indices
        self.is_independent = once

    @property
    def outputs(self) -> list[tuple[Expr, Expr]]:
        """(min, extent) of each index."""
        an = self._analyzer
        return [(to_expr(an, o.base, o.dtype), to_expr(an, o.extent, o.dtype)) for o in self._outputs]

    @property
    def digits(self) -> list[tuple[Expr, list[tuple[Mark, Expr, Expr, Expr]]]]:
        """Of each index (base, [(mark, w, extent, scale)]), highest weight first.

        index == base + sum of scale * (value of mark // w % extent); a digit that runs backwards has a scale below 0.
        """
        an = self._analyzer
        mark_of = {d.atom: (m, w) for m in self._marks for w, d in zip(m.weights, m.digits, strict=False)}
        out = []
        for o in self._outputs:
            base, parts = o.base, []
            for digit, weight, backward in reversed(o.parts):
                if digit.extent.key == ONE.key:
                    continue
                if backward:
                    base = base.plus(an.multiply(digit.extent.shifted(-1), weight))
                mark, lower = mark_of[digit.atom]
                scale = weight.times(-1 if backward else 1)
                lower_factor, extent, factor = (to_expr(an, x, o.dtype) for x in (lower, digit.extent, scale))
                parts.append((mark, lower_factor, extent, factor))
            out.append((to_expr(an, base, o.dtype), parts))
        return out

    def source(self, mark: Mark, dtype: str) -> tuple[list[tuple[Var, Expr, Expr, Expr]], Expr]:
        """What a mark is made of, (variable, min, extent, coefficient), least first, and its extent."""
        an = self._analyzer
        parts = [(v, to_expr(an, low, dtype), to_expr(an, size, dtype), to_expr(an, k, dtype))
                 for v, low, size, k in mark.parts]
        return parts, to_expr(an, mark.extent, dtype)

    def invert(self, outputs: Sequence[Expr]) -> dict[Var, Expr]:
        """The value of each variable where the indices are `outputs`, a point of an injective map's image."""
        assert self.is_injective, "only an injective map has an inverse"
        an = self._analyzer
        with an.scope():
            places, digits = self._digit_values()
            result: dict[Var, Linear] = {}
            for mark in self._marks:
                value = Linear({})
                for weight, digit in reversed(list(zip(mark.weights, mark.digits, strict=True))):
                    value = value.plus(an.multiply(digits.get(digit.atom, Linear({})), weight))
                for i, (v, low, extent, weight) in enumerate(mark.parts):
                    part = value if weight.key == ONE.key else divide(an, value, weight)
                    if i + 1 < len(mark.parts):
                        part = part.plus(an.multiply(extent, divide(an, part, extent)), -1)
                    result[v] = part.plus(low)
            exprs = {v: to_expr(an, form, v.dtype) for v, form in result.items()}
        table = {p: binary("add", o, 0) for p, o in zip(places, outputs, strict=True)}
        return {v: substitute(e, table) for v, e in exprs.items()}

    def _digit_values(self) -> tuple[list[Var], dict[Atom, Linear]]:
        """A variable for each output, in its range, and the digits in terms of them."""
        an, places = self._analyzer, []
        digits: dict[Atom, Linear] = {}
        for i, o in enumerate(self._outputs):
            place = Var(f"index{i}", o.dtype)
            places.append(place)
            an.bind(place, to_expr(an, o.base, o.dtype), to_expr(an, o.extent, o.dtype))
            rest = form_of(an, place).plus(o.base, -1)
            for digit, weight, backward in reversed(o.parts):
                value = divide(an, rest, weight)
                rest = rest.plus(an.multiply(weight, value), -1)
                digits.setdefault(digit.atom, digit.extent.shifted(-1).plus(value, -1) if backward else value)
        return places, digits
