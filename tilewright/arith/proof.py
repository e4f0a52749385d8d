"""Proofs of `form >= 0` from bounds and facts: goal-directed Fourier-Motzkin elimination."""
from __future__ import annotations

import math
from collections.abc import Iterator

from tilewright.arith.context import Context
from tilewright.arith.linear import Atom, Linear

DEPTH, BUDGET, CHECKS = 6, 80, 400


def nonneg(ctx: Context, form: Linear) -> bool:
    """True when form >= 0 follows from what ctx knows; False when no proof was found."""
    lo, hi = ctx.bounds_of(form)
    if lo is not None and lo >= 0:
        return True
    if hi is not None and hi < 0:
        return False
    if not ctx.facts and all(a.kind == "var" for a in form.terms):
        return False
    return _Search(ctx).prove(form, DEPTH)


def positive(ctx: Context, form: Linear) -> bool:
    """True when form >= 1 follows from what ctx knows."""
    return nonneg(ctx, form.shifted(-1))


class _Search:
    """One proof attempt: goals already seen, and the numbers of goals that it may still look at and open."""

    def __init__(self, ctx: Context) -> None:
        self.ctx, self.left, self.checks = ctx, BUDGET, CHECKS
        self.seen: set[object] = set()
        self.known: dict[tuple[Atom, bool], list[Linear]] = {}       # what _facts gave

    def prove(self, form: Linear, depth: int) -> bool:
        if self.checks == 0:
            return False
        self.checks -= 1
        lo, hi = self.ctx.bounds_of(form)
        if lo is not None and lo >= 0:
            return True
        if depth == 0 or self.left == 0 or (hi is not None and hi < 0) or form.key in self.seen:
            return False
        self.seen.add(form.key)
        self.left -= 1
        return (self._by_cases(form, depth) or self._by_remainders(form, depth)
                or self._by_facts(form, depth) or self._by_scaling(form, depth))

    def _by_cases(self, form: Linear, depth: int) -> bool:
        """min, max and select are one of their operands: the goal holds for both, or for the better one."""
        for atom, k in form.terms.items():
            if atom.kind in ("min", "max", "select"):
                goals = [form.replacing(atom, x) for x in atom.args[-2:]]
                if atom.kind == "select" or (k > 0) == (atom.kind == "min"):
                    return all(self.prove(g, depth - 1) for g in goals)
                return any(self.prove(g, depth - 1) for g in goals)
        return False

    def _by_remainders(self, form: Linear, depth: int) -> bool:
        """Every x % d at its worst: 0 or d - 1."""
        goal = mixed = self.ctx.with_remainders(form)
        for atom, k in mixed.terms.items():
            if atom.kind == "mod" and self._is_positive(atom.args[1]):
                worst = Linear({}) if k > 0 else atom.args[1].shifted(-1)
                goal = goal.plus(Linear({atom: 1}), -k).plus(worst, k)
        return goal is not mixed and self.prove(goal, depth - 1)

    def _by_facts(self, form: Linear, depth: int) -> bool:
        """Subtract multiples of facts to cancel an atom."""
        for atom, k, facts in self._choices(form) if self.left else ():
            for fact in facts:
                f = fact.terms[atom]
                g = math.gcd(f, k)
                weight = abs(f) // g
                # weight * form == goal + positive * fact, and form is an integer: goal > -weight suffices
                goal = form.times(weight).plus(fact, -(abs(k) // g)).shifted(weight - 1)
                if self.prove(goal, depth - 1):
                    return True
        return False

    def _choices(self, form: Linear) -> list[tuple[Atom, int, list[Linear]]]:
        """The terms to cancel, with the facts for it. One without a bound must go, so only the first such is tried.

        Where no fact is about it, only those about products may still have it as another term.
        """
        choices = []
        for atom, k in form.terms.items():
            lo, hi = self.ctx.span(atom)
            facts = self._facts(atom, k > 0)
            if (lo if k > 0 else hi) is None:
                if facts:
                    return [(atom, k, facts)]
                products = [(a, j) for a, j in form.terms.items() if a.kind == "product"]
                return [(a, j, self._facts(a, j > 0)) for a, j in products]
            choices.append((atom, k, facts))
        return choices

    def _by_scaling(self, form: Linear, depth: int) -> bool:
        """form >= 0 follows from d * form > -d, where d > 0 is the symbolic divisor of a quotient in form."""
        for atom in form.terms if depth >= DEPTH - 1 else ():
            if atom.kind == "div" and atom.args[1].terms and self._is_positive(atom.args[1]):
                den = atom.args[1]
                return self.prove(self.ctx.multiply(den, form).plus(den).shifted(-1), depth - 1)
        return False

    def _facts(self, atom: Atom, wanted: bool) -> list[Linear]:
        """Forms known to be >= 0 in which atom has a positive (wanted) or negative coefficient."""
        found = self.known.get((atom, wanted))
        if found is None:
            found = self.known[atom, wanted] = list(self._found(atom, wanted))
        return found

    def _found(self, atom: Atom, wanted: bool) -> Iterator[Linear]:
        for fact in self.ctx.facts:
            k = fact.terms.get(atom, 0)
            if k and (k > 0) == wanted:
                yield fact
        if atom.kind == "div":
            yield from self._division(atom, wanted)
        elif atom.kind == "mod" and self._is_positive(atom.args[1]):
            me = Linear({atom: 1})
            yield me if wanted else atom.args[1].plus(me, -1).shifted(-1)
        elif atom.kind == "product":
            yield from self._products(atom, wanted)

    def _division(self, atom: Atom, wanted: bool) -> Iterator[Linear]:
        """0 <= num - den * q <= den - 1."""
        num, den = atom.args
        if self._is_positive(den):
            rest = num.plus(self.ctx.multiply(den, Linear({atom: 1})), -1)
            for fact in (den.shifted(-1).plus(rest, -1), rest):
                k = fact.terms.get(atom, 0)
                if k and (k > 0) == wanted:
                    yield fact

    def _products(self, atom: Atom, wanted: bool) -> Iterator[Linear]:
        """A fact about one factor, multiplied by the other factors, which must be nonnegative."""
        factors = atom.args
        for i, factor in enumerate(factors):
            others = [*factors[:i], *factors[i + 1:]]
            if all((self.ctx.span(o)[0] or 0) >= 0 and self.ctx.span(o)[0] is not None for o in others):
                rest = Linear({self.ctx.product(others) if len(others) > 1 else others[0]: 1})
                for fact in [*self._range(factor, wanted), *self._facts(factor, wanted)]:
                    product = self.ctx.multiply(fact, rest)
                    k = product.terms.get(atom, 0)
                    if k and (k > 0) == wanted:
                        yield product
            if factor.kind == "div" and len(factor.args[1].terms) == 1:
                for fact in self._scaled_division(factor, others):
                    k = fact.terms.get(atom, 0)
                    if k and (k > 0) == wanted:
                        yield fact

    def _scaled_division(self, q: Atom, others: list[Atom]) -> Iterator[Linear]:
        """0 <= num - den * q <= den - 1, where den is one of the other factors of a product."""
        num, den = q.args
        if not den.const and next(iter(den.terms)) in others and self._is_positive(den):
            rest = num.plus(self.ctx.multiply(den, Linear({q: 1})), -1)
            yield rest
            yield den.shifted(-1).plus(rest, -1)

    def _range(self, atom: Atom, wanted: bool) -> Iterator[Linear]:
        """The numeric bounds of an atom as facts."""
        lo, hi = self.ctx.span(atom)
        if wanted and lo is not None:
            yield Linear({atom: 1}, -lo)
        if not wanted and hi is not None:
            yield Linear({atom: -1}, hi)

    def _is_positive(self, den: Linear) -> bool:
        lo, _ = self.ctx.bounds_of(den)
        if lo is None or lo < 1:
            gaps = [den.shifted(-1).plus(f, -1) for f in self.ctx.facts]
            return any(not gap.terms and gap.const >= 0 for gap in gaps)
        return True
