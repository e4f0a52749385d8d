"""What is known while simplifying: atoms, ranges, facts, and the numeric bounds that follow from them."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tilewright.arith.intervals import UNBOUNDED, hull, meet, product_bounds, quotient_bounds, remainder_bounds, scaled
from tilewright.arith.linear import Atom, Bounds, Linear
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Expr, Var
from tilewright.tir.places import is_index

INDEX_TYPES = ("int32", "int64")
_WHOLE = ("var", "opaque", "cast")                # kinds of atoms that are written as they are


class Context:
    """The state of an Analyzer, and the bounds of linear forms in it.

    A form is a sum in the integers: it knows no type. What type an expression has matters twice: when an expression
    is read (an operand that may have wrapped is not the form it looks like: `fits`) and when a form is written as an
    expression (`holds`). Both depend on the place:

    - in an index place (indices, extents, bounds and bindings of loops, predicates of blocks), arithmetic on
      variables and constants does not overflow, by what such a place means;
    - a value wraps around, as does arithmetic on what memory holds wherever it stands.

    Once indices have the types in which they are computed (`settled`), that holds of those that are read alone: what
    is written of int32 has to fit by its bounds.
    """

    def __init__(self, types: tuple[str, ...] = INDEX_TYPES, settled: bool = False) -> None:
        self.types, self.settled = types, settled           # types: those whose expressions are taken apart
        self.in_place = True                                # whether what is read and written is an index
        self.atoms: dict[Any, Atom] = {}
        self.facts: list[Linear] = []                       # each is known to be >= 0
        self.ranges: dict[Atom, Bounds] = {}                # numeric bounds learnt from binds and constraints
        self.values: dict[Atom, Linear] = {}                # variables known to equal something else
        self.multiples: dict[Atom, tuple[Atom, int]] = {}   # quotient q -> (x, c) where x == c * q exactly
        self.known: dict[Any, tuple[Expr, bool]] = {}       # truth of conditions that are no comparisons, by key
        self.divisions: dict[tuple[Atom, Atom, Atom], tuple[Linear, Linear] | None] = {}        # see _division
        self.plain: dict[int, tuple[Expr, bool]] = {}       # see is_plain
        self.limits: dict[Atom, tuple[Linear, Linear]] = {}         # least and greatest value of variables: see `fits`
        self.limiting = False
        self.forget()

    def forget(self) -> None:
        """Drop what was derived from facts that have changed."""
        self.forms: dict[int, tuple[Expr, Linear]] = {}
        self.simple: dict[int, tuple[Expr, Expr]] = {}
        self.held: dict[Any, bool] = {}
        self.elsewhere: tuple[Any, Any, Any] = {}, {}, {}           # the same three of the other kind of place
        self.limited: tuple[dict[Atom, Bounds], dict[Any, Bounds]] = {}, {}
        self.spans: dict[Atom, Bounds] = {}
        self.linear_spans: dict[Any, Bounds] = {}
        self.mixes: dict[Any, Linear] = {}

    @contextmanager
    def places(self, yes: bool) -> Iterator[None]:
        """Within the `with`, expressions are indices (yes) or values."""
        moves = self.in_place is not yes
        if moves:
            self.move()
        try:
            yield
        finally:
            if moves:
                self.move()

    def move(self) -> None:
        """From indices to values, or back."""
        self.in_place = not self.in_place
        (self.forms, self.simple, self.held), self.elsewhere = self.elsewhere, (self.forms, self.simple, self.held)

    # filled in by Analyzer; the forms and laws call back
    def simplify(self, e: Expr) -> Expr:
        raise NotImplementedError

    def constraint(self, condition: Expr, memory: bool = False) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def branch(self, condition: Expr, memory: bool = False) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def var_atom(self, v: Var) -> Atom:
        atom = self.atoms.get(id(v))
        if atom is None:
            index = v.type in self.types
            span = UNBOUNDED if index else dt.integer_range(v.type)
            atom = Atom(len(self.atoms), "var", (), v, span, index)
            self.atoms[id(v)] = atom
        return atom

    def intern(self, key: Any, kind: str, args: tuple[Any, ...], expr: Expr | None = None,
               span: Bounds = UNBOUNDED, exact: bool = True) -> Atom:
        """The atom of `key`, made from the other arguments when it is new."""
        atom = self.atoms.get(key)
        if atom is None:
            atom = self.atoms[key] = Atom(len(self.atoms), kind, args, expr, span, exact)
        return atom

    def compound(self, kind: str, a: Linear, b: Linear) -> Linear:
        """The form of the one atom `kind`(a, b): div, mod, min or max."""
        return Linear({self.intern((kind, a.key, b.key), kind, (a, b), exact=a.exact and b.exact): 1})

    def product(self, factors: list[Atom]) -> Atom:
        """The atom of a product; products inside are flattened."""
        flat: list[Atom] = []
        for f in factors:
            flat.extend(f.args if f.kind == "product" else (f,))
        flat.sort(key=lambda f: f.index)
        return self.intern(("product", *flat), "product", tuple(flat), exact=all(f.exact for f in flat))

    def multiply(self, a: Linear, b: Linear) -> Linear:
        """a * b, multiplied out."""
        if not b.terms:
            return a.times(b.const)
        if not a.terms:
            return b.times(a.const)
        out = a.times(b.const).plus(Linear(b.terms), a.const)
        for x, k in a.terms.items():
            out = out.plus(Linear({self.product([x, y]): k * j for y, j in b.terms.items()}))
        return out

    def bounds_of(self, form: Linear) -> Bounds:
        """Inclusive numeric bounds of a form; None where there is none."""
        if not form.terms:
            return form.const, form.const
        if len(form.terms) == 1:
            (atom, k), = form.terms.items()
            lo, hi = scaled(self.span(atom), k)
            return None if lo is None else lo + form.const, None if hi is None else hi + form.const
        found = self.linear_spans.get(form.key)
        if found is None:
            found = self._sum(form)
            mixed = self.with_remainders(form)
            if mixed is not form:
                found = meet(found, self._sum(mixed))
            self.linear_spans[form.key] = found
        return found

    def _sum(self, form: Linear) -> Bounds:
        lo: int | None = form.const
        hi: int | None = form.const
        for atom, k in form.terms.items():
            a, b = scaled(self.span(atom), k)
            lo = None if lo is None or a is None else lo + a
            hi = None if hi is None or b is None else hi + b
            if lo is None and hi is None:
                break
        return lo, hi

    def span(self, atom: Atom) -> Bounds:
        """Inclusive numeric bounds of an atom."""
        found = self.spans.get(atom)
        if found is None:
            found = self._span(atom)
            learnt = self.ranges.get(atom)
            if learnt is not None:
                found = meet(found, learnt)
            if self.limiting and atom.kind == "var":
                found = meet(found, self._limit(atom))
            self.spans[atom] = found
        return found

    def _limit(self, atom: Atom) -> Bounds:
        """What a call or its loop lets a variable be; all that its type has where nothing is said of it."""
        found = self.limits.get(atom)
        if found is None:
            assert atom.expr is not None
            return dt.integer_range(atom.expr.dtype)
        return self.bounds_of(found[0])[0], self.bounds_of(found[1])[1]

    def _span(self, atom: Atom) -> Bounds:
        kind, args = atom.kind, atom.args
        if kind in ("var", "opaque"):
            return atom.span
        if kind == "cast":
            form, source, dtype = args
            least, most = dt.integer_range(dtype)
            lo, hi = self.bounds_of(form)
            inside = lo is not None and hi is not None and least <= lo and hi <= most
            return (lo, hi) if inside and self.fits(form, source) else (least, most)
        if kind == "div":
            return quotient_bounds(self.bounds_of(args[0]), self.bounds_of(args[1]))
        if kind == "mod":
            return remainder_bounds(self.bounds_of(args[0]), self.bounds_of(args[1]))
        if kind == "product":
            out = self.span(args[0])
            for f in args[1:]:
                out = product_bounds(out, self.span(f))
            return out
        a, b = self.bounds_of(args[-2]), self.bounds_of(args[-1])
        if kind == "min":
            return hull(a, b)[0], meet((None, a[1]), (None, b[1]))[1]
        if kind == "max":
            return meet((a[0], None), (b[0], None))[0], hull(a, b)[1]
        return hull(a, b)

    def with_remainders(self, form: Linear) -> Linear:
        """form with `k*x - k*c*(x // c)` written as `k*(x % c)` wherever that makes it smaller."""
        for a in form.terms:
            if a.kind == "div" or a.kind == "product":
                break
        else:
            return form
        found = self.mixes.get(form.key)
        if found is None:
            found, step = form, _with_one_remainder(self, form)
            while step is not None:
                found, step = step, _with_one_remainder(self, step)
            self.mixes[form.key] = found
        return found

    def fits(self, form: Linear, dtype: str) -> bool:
        """True when an expression of dtype that is written as form has the value of form: it cannot wrap around."""
        return self.in_place and form.exact or self._inside(form, dtype)

    def stands(self, form: Linear, dtype: str) -> bool:
        """`fits`, of an expression that is to be written."""
        return self._inside(form, dtype) if self.settled and dtype == "int32" else self.fits(form, dtype)

    def _inside(self, form: Linear, dtype: str) -> bool:
        """True when the bounds of form lie in dtype."""
        least, most = dt.integer_range(dtype)
        lo, hi = self.bounds_of(form)
        if lo is None or hi is None:
            lo, hi = self.limited_bounds(form)
        return lo is not None and hi is not None and least <= lo and hi <= most

    def is_plain(self, e: Expr) -> bool:
        """`tir.places.is_index`, worked out once for each operation."""
        if type(e) is not Binary:
            return is_index(e)
        found = self.plain.get(id(e))
        if found is None:
            found = self.plain[id(e)] = e, self.is_plain(e.a) and self.is_plain(e.b)
        return found[1]

    def limited_bounds(self, form: Linear) -> Bounds:
        """bounds_of with what types and calls say of variables. Not used for bounds that allocate or run loops."""
        outer = self.spans, self.linear_spans
        (self.spans, self.linear_spans), self.limiting = self.limited, True
        try:
            return self.bounds_of(form)
        finally:
            (self.spans, self.linear_spans), self.limiting = outer, False

    def holds(self, form: Linear, dtype: str) -> bool:
        """True when form can be written in dtype: every operand of a division or a choice in it fits the type.

        A sum or product of a value may wrap on its way to its result. That of an index may not: it has no constant
        and no coefficient beyond the type.
        """
        if self.in_place:
            least, most = dt.integer_range(dtype)
            if not least <= form.const <= most:
                return False
            for k in form.terms.values():
                if not least <= k <= most:
                    return False
        for a in form.terms:
            if a.kind not in _WHOLE and not self._atom_holds(a, dtype):
                return False
        return True

    def _atom_holds(self, atom: Atom, dtype: str) -> bool:
        found = self.held.get((atom, dtype))
        if found is None:
            found = self.held[atom, dtype] = self._compound_holds(atom, dtype)
        return found

    def _compound_holds(self, atom: Atom, dtype: str) -> bool:
        if atom.kind == "product":
            return all(f.kind in _WHOLE or self._atom_holds(f, dtype) for f in atom.args)
        if atom.kind == "select":
            return self.holds(atom.args[2], dtype) and self.holds(atom.args[3], dtype)
        least, most = dt.integer_range(dtype)
        return all(self.holds(x, dtype) and self.stands(x, dtype) and (x.terms or least <= x.const <= most)
                   for x in atom.args)


def _with_one_remainder(ctx: Context, form: Linear) -> Linear | None:
    quotients = [p for p in form.terms if p.kind == "div"]
    for term, k in form.terms.items():
        for num, den in _divisions(ctx, term, quotients) if term.kind in ("div", "product") else ():
            count = _remainders_in(form, num, k, _scale(den)) if num.terms else 0
            if count:
                rest = form.plus(num, -count).plus(Linear({term: 1}), count * _scale(den))
                return rest.plus(ctx.compound("mod", num, den), count)
    return None


def _scale(den: Linear) -> int:
    """The coefficient of a divisor that is a constant or one term."""
    return next(iter(den.terms.values()), den.const)


def _divisions(ctx: Context, term: Atom, quotients: list[Atom]) -> list[tuple[Linear, Linear]]:
    """(y, d), d a constant or one term, with term * (coefficient of d) == d * (y // d).

    y is the numerator of a quotient in term, or x // a + s where x // a is among quotients and that in term is of
    x + s*a.
    """
    out = []
    for q in term.args if term.kind == "product" else (term,):
        if q.kind != "div" or q in ctx.multiples:
            continue
        for p in (*[p for p in quotients if p is not q], q):
            if (term, q, p) not in ctx.divisions:
                ctx.divisions[term, q, p] = _division(ctx, term, q, p)
            part = ctx.divisions[term, q, p]
            if part is not None:
                out.append(part)
    return out


def _division(ctx: Context, term: Atom, q: Atom, p: Atom) -> tuple[Linear, Linear] | None:
    """What _divisions gives for the quotients q, in term, and p; for p the same as q, q's own (numerator, divisor)."""
    others = list(term.args) if term.kind == "product" else [q]
    others.remove(q)
    num, den = q.args
    if p is q:
        return (num, den) if _factors(den) == others else None
    part = None if _factors(den) is None else _quotient_of(ctx, num, den, p)
    return part if part is not None and _factors(part[1]) == others else None


def _factors(den: Linear) -> list[Atom] | None:
    """The atoms that a divisor of one term, or a constant, is a product of; None for a sum."""
    if not den.terms:
        return []
    if len(den.terms) > 1 or den.const:
        return None
    atom = next(iter(den.terms))
    return list(atom.args) if atom.kind == "product" else [atom]


def _quotient_of(ctx: Context, num: Linear, den: Linear, p: Atom) -> tuple[Linear, Linear] | None:
    """(p + s, b) with num // den == (p + s) // b, for p == x // a, den == a*b and num == x + s*a."""
    a = p.args[1]
    outer, inner = _factors(den), _factors(a)
    if outer is None or inner is None or _scale(den) % _scale(a):
        return None
    for f in inner:
        if f not in outer:
            return None
        outer.remove(f)
    gap = num.plus(p.args[0], -1)
    if gap.terms or (gap.const and (a.terms or gap.const % a.const)):
        return None
    b = _scale(den) // _scale(a)
    rest = Linear({}, b) if not outer else Linear({ctx.product(outer) if len(outer) > 1 else outer[0]: b})
    return Linear({p: 1}, gap.const // a.const if gap.const else 0), rest


def _remainders_in(form: Linear, num: Linear, k: int, c: int) -> int:
    """How many times num % c to take out of a form that has k * (num // c)."""
    if k % c == 0:
        count = -k // c
        needed = [(form.terms.get(a, 0), count * n) for a, n in num.terms.items()]
        if all(have * need > 0 and abs(have) >= abs(need) for have, need in needed):
            return count
    first, n = next(iter(num.terms.items()))
    have = form.terms.get(first, 0)
    if have % n or not have:
        return 0
    count = have // n
    if abs(k + count * c) >= abs(k) or any(form.terms.get(a, 0) != count * n for a, n in num.terms.items()):
        return 0
    return count
