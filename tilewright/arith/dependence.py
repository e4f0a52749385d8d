"""Dependences between two accesses of one buffer, as sets of direction vectors.

The element accessed is the same when a system of linear equations holds: one for each index, and two for each
floor division in an index, whose quotient and remainder are unknowns of their own. Signs are given to the
loops one by one; a partial assignment is dropped when interval propagation, divisibility or a symbolic proof
shows that the system has no solution (the Banerjee and GCD tests with refinement of the direction vector).
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.forms import form_of
from tilewright.arith.intervals import meet, scaled
from tilewright.arith.linear import Atom, Bounds, Linear, substitute_atoms
from tilewright.arith.proof import nonneg, positive
from tilewright.tir.accesses import reads_memory
from tilewright.tir.expr import Expr, Var
from tilewright.tir.node import substitute

Domain = tuple[Expr, Expr]
Ranges = dict[Atom, Bounds]
ROUNDS = 6
REFUTATIONS = 6                          # symbolic proofs tried for one pair of accesses; they are what takes long


@dataclass(slots=True, eq=False)
class Access:
    """buffer[indices] where predicate holds, for all values of the variables of domains: the inner loops."""
    indices: tuple[Expr, ...]
    predicate: Expr | None = None
    domains: Mapping[Var, Domain] = field(default_factory=dict)


def direction_vectors(a: Access, b: Access, common_loops: Sequence[Var], domains: Mapping[Var, Domain],
                      analyzer: Analyzer) -> set[tuple[int, ...]]:
    """The signs of (iteration of b - iteration of a) for which both may touch one element, or a superset.

    A vector has -1, 0 or 1 for each of common_loops, whose (min, extent) are in domains; other variables have
    one value for both accesses. Accesses with different numbers of indices are taken to meet anywhere, and an
    index that reads memory is taken to have any value.
    """
    with analyzer.scope():
        return set(_System(a, b, common_loops, domains, analyzer).vectors())


class _System:
    """The equations of one pair of accesses: iteration variables of a, and differences from them for b."""

    def __init__(self, a: Access, b: Access, loops: Sequence[Var], domains: Mapping[Var, Domain],
                 analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.to_a: dict[Atom, Atom] = {}              # variable of b's iteration -> the same variable of a's
        self.shift: dict[Atom, Linear] = {}           # atom of b's iteration -> a's atom + difference
        self.differences: list[Atom] = []
        self.pairs: list[tuple[Atom, Atom, Bounds]] = []   # a loop's variable, the difference from it, b's span of it
        self.twins: list[tuple[Atom, Atom, Atom]] = []     # a variable, the difference from it, the same of b's
        self.equations: list[Linear] = []
        self.divided: set[Atom] = set()
        self.refutations = REFUTATIONS
        prime = {v: Var(v.name + "'", v.dtype) for v in [*loops, *b.domains]}
        self._bind(a, b, loops, domains, prime)
        if len(a.indices) == len(b.indices):
            for x, y in zip(a.indices, b.indices, strict=True):
                if reads_memory(x) or reads_memory(y):
                    continue
                self._equate(form_of(analyzer, x), form_of(analyzer, substitute(y, prime)))
        for fact in list(analyzer.facts):
            moved = self._shifted(fact)
            if moved is not fact and moved.terms:
                analyzer.facts.append(moved)

    def _bind(self, a: Access, b: Access, loops: Sequence[Var], domains: Mapping[Var, Domain],
              prime: Mapping[Var, Var]) -> None:
        """Bind the variables of both iterations, relate them, and assume both guards."""
        an = self.analyzer
        for v in loops:
            an.bind(v, *domains[v])
        for v in loops:
            an.bind(prime[v], *(substitute(x, prime) for x in domains[v]))
        for v, domain in a.domains.items():
            an.bind(v, *domain)
        for v, domain in b.domains.items():
            an.bind(prime[v], *(substitute(x, prime) for x in domain))
        if a.predicate is not None:
            an.assume(a.predicate)
        if b.predicate is not None:
            an.assume(substitute(b.predicate, prime))
        for v in loops:
            rectangular = all(substitute(x, prime) is x for x in domains[v])
            most = form_of(an, domains[v][1]).shifted(-1) if rectangular else None
            self.differences.append(self._pair(v, prime[v], most))
            self.pairs.append((an.var_atom(v), self.differences[-1], an.span(an.var_atom(prime[v]))))
        for v in b.domains:
            if v in a.domains:
                self._pair(v, prime[v], None)

    def _pair(self, v: Var, twin: Var, most: Linear | None) -> Atom:
        """The difference of two variables that stand for one loop."""
        me, other = self.analyzer.var_atom(v), self.analyzer.var_atom(twin)
        self.to_a[other] = me
        return self._difference(Linear({me: 1}), other, most)

    def _difference(self, me: Linear, other: Atom, most: Linear | None) -> Atom:
        """The new atom other - me: within the spans of the two, and between -most and most where given."""
        an = self.analyzer
        atom = an.var_atom(Var("d"))
        (a, b), (c, d) = an.bounds_of(me), an.span(other)
        span: Bounds = (None if c is None or b is None else c - b, None if d is None or a is None else d - a)
        if most is not None:
            hi = an.bounds_of(most)[1]
            span = meet(span, (None if hi is None else -hi, hi))
            if most.terms:
                an.facts += [most.plus(Linear({atom: 1}), -1), most.plus(Linear({atom: 1}))]
        an.ranges[atom] = span
        self.shift[other] = me.plus(Linear({atom: 1}))
        if len(me.terms) == 1 and not me.const:
            self.twins.append((next(iter(me.terms)), atom, other))
        return atom

    def _equate(self, x: Linear, y: Linear) -> None:
        """x of a's iteration == y of b's; the divisions in them get their equations first."""
        for form in (x, y):
            for atom in _inner_atoms(form):
                if atom.kind == "div" and atom not in self.divided and positive(self.analyzer, atom.args[1]):
                    self._divide(atom)
        self._add(self._shifted(y).plus(self._shifted(x), -1))

    def _divide(self, q: Atom) -> None:
        """num == den * q + r with 0 <= r < den; of the differences where q is b's twin of a division of a."""
        self.divided.add(q)
        an, (num, den) = self.analyzer, q.args
        home = Linear({self.to_a.get(x, x): k for x, k in num.terms.items()}, num.const)
        simple = all(x.kind == "var" for x in num.terms) and not any(x in self.to_a for x in den.terms)
        if home.key == num.key or not simple or len(home.terms) != len(num.terms):
            rest = self._remainder(den, both_signs=False)
            product = an.multiply(den, Linear({q: 1}))
            self._add(self._shifted(num).plus(product, -1).plus(Linear({rest: 1}), -1))
            return
        (twin, _), = an.compound("div", home, den).terms.items()
        if twin not in self.divided:
            self._divide(twin)
        step = self._difference(Linear({twin: 1}), q, None)
        rest = self._remainder(den, both_signs=True)
        moved = self._shifted(num).plus(home, -1)
        self._add(moved.plus(an.multiply(den, Linear({step: 1})), -1).plus(Linear({rest: 1}), -1))

    def _remainder(self, den: Linear, both_signs: bool) -> Atom:
        """A new atom r with r < den, and r >= 0 or r > -den."""
        an = self.analyzer
        atom = an.var_atom(Var("r"))
        most = den.shifted(-1)
        hi = an.bounds_of(most)[1]
        an.ranges[atom] = (0 if not both_signs else None if hi is None else -hi, hi)
        if most.terms:
            an.facts.append(most.plus(Linear({atom: 1}), -1))
            if both_signs:
                an.facts.append(most.plus(Linear({atom: 1})))
        return atom

    def _add(self, equation: Linear) -> None:
        if equation.terms or equation.const:
            self.equations.append(equation)
        whole = equation                                   # v + (v' - v) is v', whose range is known
        for v, difference, twin in self.twins:
            k = whole.terms.get(v)
            if k is not None and k == whole.terms.get(difference):
                whole = whole.plus(Linear({v: k, difference: k}), -1).plus(Linear({twin: k}))
        if whole is not equation:
            self.equations.append(whole)

    def _shifted(self, form: Linear) -> Linear:
        return substitute_atoms(self.analyzer.multiply, form, self.shift)

    # ------------------------------------------------------------------------------------------ solving

    def vectors(self) -> Iterator[tuple[int, ...]]:
        """Every sign vector that the system does not exclude."""
        ranges: Ranges = {}
        for e in self.equations:
            for atom in _inner_atoms(e):
                ranges[atom] = self.analyzer.span(atom)
        for d in self.differences:
            ranges[d] = self.analyzer.span(d)
        used = {atom for e in self.equations for atom in _inner_atoms(e)}
        tied = [i for i, (v, d, _) in enumerate(self.pairs) if v in used or d in used]
        free = [i for i in range(len(self.differences)) if i not in tied]
        choices = [_signs(ranges[self.differences[i]]) for i in free]
        for chosen in self._assign(tied, 0, self.equations, ranges):
            for rest in itertools.product(*choices):
                vector = [0] * len(self.differences)
                for i, s in itertools.chain(zip(tied, chosen, strict=True), zip(free, rest, strict=True)):
                    vector[i] = s
                yield tuple(vector)

    def _assign(self, tied: Sequence[int], depth: int, equations: list[Linear],
                ranges: Ranges) -> Iterator[tuple[int, ...]]:
        """The sign vectors of the loops tied[depth:] that solve the equations."""
        solved = self._solve(equations, ranges)
        if solved is None:
            return
        if depth == len(tied):
            yield ()
            return
        d = self.differences[tied[depth]]
        for s in _signs(solved[1][d]):
            half: Bounds = ((None, -1), (0, 0), (1, None))[s + 1]
            for rest in self._assign(tied, depth + 1, solved[0], {**solved[1], d: meet(solved[1][d], half)}):
                yield (s, *rest)

    def _solve(self, equations: list[Linear], ranges: Ranges) -> tuple[list[Linear], Ranges] | None:
        """The equations and narrower ranges after propagation; None when there is no solution."""
        for _ in range(ROUNDS):
            fixed = {a: Linear({}, r[0]) for a, r in ranges.items() if r[0] is not None and r[0] == r[1]}
            equations = [substitute_atoms(self.analyzer.multiply, e, fixed) for e in equations]
            before = dict(ranges)
            for e in equations:
                for atom in e.terms:
                    if atom not in ranges:
                        ranges[atom] = self.analyzer.span(atom)
                if not _propagate(e, ranges):
                    return None
            if not all(_within(v, d, span, ranges) for v, d, span in self.pairs):
                return None
            if ranges == before:
                break
        open_ends = [e for e in equations if e.terms and any(None in ranges[a] for a in e.terms)]
        if open_ends and self.refutations:
            self.refutations -= 1
            if self._refuted(open_ends, ranges):
                return None
        return equations, ranges

    def _refuted(self, equations: Sequence[Linear], ranges: Ranges) -> bool:
        """True when some equation is shown to have no solution by facts about symbols."""
        an = self.analyzer
        with an.scope():
            for atom, span in ranges.items():
                an.ranges[atom] = meet(an.ranges.get(atom, (None, None)), span)
            return any(nonneg(an, e.shifted(-1)) or nonneg(an, e.times(-1).shifted(-1)) for e in equations)


def _inner_atoms(form: Linear) -> Iterator[Atom]:
    """The atoms of form and the factors of its products."""
    for atom in form.terms:
        yield atom
        if atom.kind == "product":
            yield from atom.args


def _signs(span: Bounds) -> list[int]:
    """The signs that values in span have."""
    lo, hi = span
    if lo is not None and hi is not None and lo > hi:
        return []
    zero = (lo is None or lo <= 0) and (hi is None or hi >= 0)
    possible = (-1, lo is None or lo < 0), (0, zero), (1, hi is None or hi > 0)
    return [sign for sign, holds in possible if holds]


def _within(v: Atom, d: Atom, span: Bounds, ranges: Ranges) -> bool:
    """Narrow the ranges of v and d so that v + d lies in span, where v is known; False when it cannot."""
    if v not in ranges:
        return True
    for x, other in ((v, d), (d, v)):
        (lo, hi), (a, b) = span, ranges[other]
        limits = (None if lo is None or b is None else lo - b, None if hi is None or a is None else hi - a)
        least, most = ranges[x] = meet(ranges[x], limits)
        if least is not None and most is not None and least > most:
            return False
    return True


def _propagate(e: Linear, ranges: Ranges) -> bool:
    """Narrow the range of each atom of e == 0 by those of the others; False when e has no solution."""
    if not e.terms:
        return e.const == 0
    if e.const % math.gcd(*e.terms.values()):
        return False
    for atom, k in e.terms.items():
        lo: int | None = e.const
        hi: int | None = e.const
        for other, j in e.terms.items():
            if other is not atom:
                a, b = scaled(ranges[other], j)
                lo = None if lo is None or a is None else lo + a
                hi = None if hi is None or b is None else hi + b
        least, most = (None if hi is None else -hi), (None if lo is None else -lo)      # of k * atom
        if k < 0:
            least, most = (None if most is None else -most), (None if least is None else -least)
        c = abs(k)
        least, most = None if least is None else -(-least // c), None if most is None else most // c
        span = meet(ranges[atom], (least, most))
        if span[0] is not None and span[1] is not None and span[0] > span[1]:
            return False
        ranges[atom] = span
    return True
