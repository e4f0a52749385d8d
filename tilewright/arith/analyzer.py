"""The Analyzer: simplification, proofs and bounds of integer expressions.

Where integers wrap is a fact of the place (docs/integers.md). What an Analyzer is asked is taken for an index or the
bound of a loop, whose arithmetic on variables does not overflow (a late pass widens it where it might); within
`places(False)` for a value, which wraps around and is simplified only as far as that allows. The indices of a load and
what `likely` holds, the guard of a loop that was split, are indices wherever they stand. Division follows the operator:
`//` rounds to minus infinity. A divisor is never taken to be nonzero without a proof.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.arith.conditions import (
    ORDER,
    comparison_form,
    condition_key,
    is_index_comparison,
    negation,
    prove,
    simplify_condition,
    tightened,
)
from tilewright.arith.context import Context
from tilewright.arith.forms import form_of, simplify_children, written
from tilewright.arith.intervals import meet
from tilewright.arith.linear import Atom, Bounds, Linear, structural_key
from tilewright.arith.proof import positive
from tilewright.arith.value_laws import simplify_value
from tilewright.tir import dtype as dt
from tilewright.tir.accesses import reads_memory
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Not, Var
from tilewright.tir.node import children, same
from tilewright.tir.places import is_index


class Analyzer(Context):
    """Facts about variables, and what follows from them. Variables that nobody named are unbounded."""

    # ------------------------------------------------------------------------------------------ facts

    def bind(self, var: Var, min: Expr | int, extent: Expr | int) -> None:
        """From now on min <= var < min + extent, and so extent >= 1: true wherever var has a value.

        A variable of constant extent 1 is replaced by its value. Use `loop` where the code after the loop is
        looked at too.
        """
        is_new = id(var) not in self.atoms
        atom = self.var_atom(var)
        if type(min) is IntImm and type(extent) is IntImm:       # most loops: two numbers, and no fact beside them
            first, last = min.value, min.value + extent.value - 1
            self.limits[atom] = Linear({}, first), Linear({}, last)
            self._learn(atom, (first, last))
            if not is_new:                                       # nothing was derived of a new variable
                self.forget()
            return
        if reads_memory(min) or reads_memory(extent):            # it may change while the loop runs: numbers only
            starts, most = self.bounds(min), self.bounds(extent)[1]
            end = None if starts[1] is None or most is None else starts[1] + most - 1
            self._learn(atom, (starts[0], end))
            self.forget()
            return
        low = form_of(self, min) if isinstance(min, Expr) else Linear({}, int(min))
        size = form_of(self, extent) if isinstance(extent, Expr) else Linear({}, int(extent))
        me, high = Linear({atom: 1}), low.plus(size).shifted(-1)
        self.limits[atom] = low, high
        self._learn(atom, (self.bounds_of(low)[0], self.bounds_of(high)[1]))
        if low.terms and not size.terms and size.const == 1:
            self.values[atom] = low
        for known in ([me.plus(low, -1)] if low.terms else []) + ([high.plus(me, -1)] if high.terms else []):
            for form in _of_operands(known):
                if all(form.key != f.key for f in self.facts):
                    self.facts.append(form)
        if size.terms:
            self._fact(size.shifted(-1))
            if not low.terms and not low.const:
                self._digits(me, size)
        self.forget()

    def _digits(self, me: Linear, size: Linear) -> None:
        """x < a*b says that x // a < b: a fused loop of symbolic extent, taken apart again."""
        if len(size.terms) != 1 or size.const:
            return
        (product, k), = size.terms.items()
        factors = [Linear({f: 1}) for f in (product.args if product.kind == "product" else (product,))]
        factors += [Linear({}, k)] if k > 1 else []
        for chosen in range(1, (1 << len(factors)) - 1) if len(factors) <= 4 else ():
            low, high = Linear({}, 1), Linear({}, 1)
            for i, f in enumerate(factors):
                if chosen >> i & 1:
                    low = self.multiply(low, f)
                else:
                    high = self.multiply(high, f)
            if low.terms and positive(self, low):
                self.facts.append(high.shifted(-1).plus(self.compound("div", me, low), -1))

    def assume_nonneg(self, var: Var, limit: int | None = None) -> None:
        """From now on var >= 0: what holds of every extent of a shape. No call has one above `limit`, by default
        `dtype.extent_limit`.
        """
        atom = self.var_atom(var)
        self.limits[atom] = Linear({}), Linear({}, dt.extent_limit(var.dtype) if limit is None else limit)
        self._learn(atom, (0, None))
        self.forget()

    def assume(self, condition: Expr) -> None:
        """From now on condition holds. The parts of it that read memory are ignored: memory may change."""
        self._assume(condition, memory=False)

    def _assume(self, condition: Expr, memory: bool) -> None:
        if isinstance(condition, Binary) and condition.op == "and":
            self._assume(condition.a, memory)
            self._assume(condition.b, memory)
        elif isinstance(condition, Call) and condition.op in ("likely", "assume"):
            with self.places(self.in_place or condition.op == "likely"):
                self._assume(condition.args[0], memory)
        elif not memory and reads_memory(condition):
            return
        elif isinstance(condition, Binary) and is_index_comparison(condition, self.types):
            self._assume_comparison(condition)
        elif isinstance(condition, Not) and not isinstance(inner := negation(self, condition.a), Not):
            self._assume(inner, memory)
        elif not isinstance(condition, IntImm):
            inner = condition.a if isinstance(condition, Not) else condition
            self._know(self.simplify(inner), inner is condition)
        self.forget()

    @contextmanager
    def constraint(self, condition: Expr, memory: bool = False) -> Iterator[None]:
        """Within the `with`, condition is known to hold; loads in it count only with `memory`."""
        with self.scope():
            self._assume(condition, memory)
            yield

    @contextmanager
    def branch(self, condition: Expr, memory: bool = False) -> Iterator[None]:
        """`constraint` by the condition of an `if` or a choice: a value, unless `likely` marks it a guard."""
        with self.scope():
            with self.places(False):
                self._assume(condition, memory)
            yield

    @contextmanager
    def loop(self, var: Var, min: Expr | int, extent: Expr | int) -> Iterator[None]:
        """Within the `with`, min <= var < min + extent."""
        with self.scope():
            self.bind(var, min, extent)
            yield

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is learnt within the `with` is forgotten after it."""
        count, ranges, values = len(self.facts), dict(self.ranges), dict(self.values)
        multiples, known, limits = dict(self.multiples), dict(self.known), dict(self.limits)
        caches = (self.forms, self.simple, self.held, self.elsewhere, self.limited, self.spans, self.linear_spans,
                  self.mixes)
        self.forget()
        try:
            yield
        finally:
            del self.facts[count:]
            self.ranges, self.values, self.multiples, self.known = ranges, values, multiples, known
            self.limits = limits
            (self.forms, self.simple, self.held, self.elsewhere, self.limited, self.spans, self.linear_spans,
             self.mixes) = caches

    def _know(self, condition: Expr, value: bool) -> None:
        self.known[condition_key(self, condition)] = condition, value

    def _learn(self, atom: Atom, span: Bounds, depth: int = 0) -> None:
        """Meet the range of an atom with span; x // c >= q says that x >= c*q, x*y >= 1 that x >= 1.

        depth counts conclusions from conclusions: facts that contradict each other would give them for ever.
        """
        self.ranges[atom] = meet(self.ranges.get(atom, (None, None)), span)
        lo, hi = span
        if depth > 2:
            return
        if atom.kind == "div" and not atom.args[1].terms:
            c = atom.args[1].const
            if lo is not None:
                self._fact(atom.args[0].shifted(-lo * c), depth + 1)
            if hi is not None:
                self._fact(atom.args[0].times(-1).shifted(hi * c + c - 1), depth + 1)
        elif atom.kind == "product" and lo is not None and lo > 0:
            if all((self.span(x)[0] or 0) >= 0 and self.span(x)[0] is not None for x in atom.args):
                for x in atom.args:
                    self._learn(x, (1, None), depth + 1)

    def _narrow(self, atom: Atom, span: Bounds, depth: int) -> None:
        """Learn span unless it is known."""
        now = self.span(atom)
        if meet(now, span) != now:
            self._learn(atom, span, depth)

    def _assume_comparison(self, e: Binary) -> None:
        form = comparison_form(self, e)
        if form is None:
            self._know(self.simplify(e), True)
        elif e.op in ORDER:
            self._fact(tightened(self, form))
        elif e.op == "eq":
            self._fact(form)
            self._fact(form.times(-1))
            self._equality(form)
        else:
            self._know(self.simplify(e), True)
            self._exclude(form)

    def _fact(self, form: Linear, depth: int = 0) -> None:
        """form >= 0: kept as a fact, and as a range of each atom as far as the others are bounded."""
        if not form.terms:
            return
        self.facts.append(form)
        self._spread(form, depth)
        for fact in self.facts[:-1] if depth == 0 else ():
            if any(None in self.span(atom) for atom in fact.terms):
                self._spread(fact, depth + 1)

    def _spread(self, form: Linear, depth: int) -> None:
        """form >= 0 narrows the range of each atom as far as the others are bounded."""
        self.spans, self.linear_spans = {}, {}
        for atom, k in form.terms.items():
            rest = Linear({a: j for a, j in form.terms.items() if a is not atom}, form.const)
            most = self.bounds_of(rest)[1]
            if most is not None:
                self._narrow(atom, (-(most // k), None) if k > 0 else (None, most // -k), depth)
        self.spans, self.linear_spans = {}, {}

    def _equality(self, form: Linear) -> None:
        """form == 0: x == c gives x its value; x - c * (x // c) == 0 makes x the multiple c * (x // c)."""
        if len(form.terms) == 1:
            (x, k), = form.terms.items()
            if x.kind == "var" and form.const % k == 0:
                self.values[x] = Linear({}, -form.const // k)
        elif len(form.terms) == 2 and not form.const:
            for quotient, k in form.terms.items():
                whole = self._divided_variable(quotient)
                if whole is not None and whole not in self.values:
                    c = quotient.args[1].const
                    if form.terms.get(whole, 0) * c == -k:
                        self.values[whole] = Linear({quotient: c})
                        self.multiples[quotient] = (whole, c)
                        return

    @staticmethod
    def _divided_variable(q: Atom) -> Atom | None:
        """x when q is x // c for a variable x and a constant c."""
        if q.kind == "div" and not q.args[1].terms and len(q.args[0].terms) == 1 and not q.args[0].const:
            (x, k), = q.args[0].terms.items()
            return x if k == 1 and x.kind == "var" else None
        return None

    def _exclude(self, form: Linear) -> None:
        """form != 0 moves a bound that is 0."""
        lo, hi = self.bounds_of(form)
        if lo == 0:
            self._fact(form.shifted(-1))
        if hi == 0:
            self._fact(form.times(-1).shifted(-1))

    # ------------------------------------------------------------------------------------------ questions

    def simplify(self, e: Expr) -> Expr:
        """An expression of the same value, e itself when there is nothing to do. Descends into loads."""
        if type(e) is IntImm:
            return e
        found = self.simple.get(id(e))
        if found is not None:
            return found[1]
        out = self._simplify(e) if isinstance(e, Expr) else e
        if out is not e and same(out, e):
            out = e
        self.simple[id(e)] = (e, out)
        return out

    def _simplify(self, e: Expr) -> Expr:
        dtype = e.dtype
        if dtype in self.types:
            form = form_of(self, e)
            return written(self, form, dtype) if self.holds(form, dtype) else simplify_children(self, e)
        return simplify_condition(self, e) if dtype == "bool" else simplify_value(self, e)

    def prove(self, condition: Expr) -> bool:
        """True when condition is shown to hold; False when it is not (it may hold all the same)."""
        return prove(self, condition)

    def same_everywhere(self, e: Expr) -> bool:
        """True when e is shown to mean the same as an index and as a value: what variables make in it does not wrap."""
        if not is_index(e):
            return all(self.same_everywhere(c) for c in children(e) if isinstance(c, Expr) and not isinstance(e, Load))
        if e.dtype not in self.types:
            return isinstance(e, (Var, IntImm))
        with self.places(False):
            value = form_of(self, e)
            fits = self.fits(value, e.dtype)
        return fits and value.key == form_of(self, e).key

    def exact(self, e: Expr) -> bool:
        """True when e, as a value, is shown not to wrap around: it is its form, a sum in the integers."""
        if e.dtype not in self.types:
            return isinstance(e, (Var, IntImm))
        with self.places(False):
            return self.fits(form_of(self, e), e.dtype)

    def bounds(self, e: Expr | int) -> Bounds:
        """(least, greatest) value of an integer expression, inclusive; None for an unknown side."""
        if isinstance(e, int):
            return e, e
        dtype = e.dtype
        if dtype in self.types:
            form = form_of(self, e)
            known = self.in_place and self.is_plain(e) or self.fits(form, dtype)       # not to have wrapped around
            return self.bounds_of(form) if known else dt.integer_range(dtype)
        out = self.simplify(e)
        return (out.value, out.value) if isinstance(out, IntImm) else dt.integer_range(dt.element_of(dtype))

    def equal(self, a: Expr | int, b: Expr | int) -> bool:
        """True when a and b are shown to have one value."""
        x, y = (IntImm(v) if isinstance(v, int) else v for v in (a, b))
        if x.dtype in self.types and y.dtype in self.types:
            form, other = form_of(self, x), form_of(self, y)
            if form.key == other.key:
                return x.dtype == y.dtype or (self.fits(form, x.dtype) and self.fits(other, y.dtype))
            return x.dtype == y.dtype and self.prove(Binary("eq", x, y))
        return structural_key(self.simplify(x)) == structural_key(self.simplify(y))


def _of_operands(form: Linear) -> Iterator[Linear]:
    """form, which is >= 0, and what follows from that: min(a, b) >= x says that a >= x and b >= x."""
    yield form
    for atom, k in form.terms.items():
        if atom.kind == ("min" if k > 0 else "max"):
            for operand in atom.args:
                yield from _of_operands(form.replacing(atom, operand))
            return
