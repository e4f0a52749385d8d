"""Index maps made of splits and fusions of independent iterators, and their inverses.

After the idea of TVM's iter_affine_map: every iterator, or mixed-radix sum of iterators, is cut into digits
by the divisors that occur; the map is understood when each index is a sum of digits.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.conditions import ORDER, comparison_form, is_index_comparison
from tilewright.arith.forms import form_of, to_expr
from tilewright.arith.iterators import ONE, Digit, IterMap, Mark, Output
from tilewright.arith.laws import divide
from tilewright.arith.linear import Atom, Linear, substitute_atoms
from tilewright.arith.proof import nonneg, positive
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Var


def detect_iter_map(indices: Sequence[Expr], domains: Mapping[Var, tuple[Any, Any]], predicate: Expr | None,
                    analyzer: Analyzer) -> IterMap | None:
    """The map from the points of domains (var -> (min, extent)) where predicate holds to indices, or None.

    Variables outside domains are symbols. None: the indices are no sums of splits and fusions.
    """
    restricted = any(_has_one_value_or_none(analyzer, extent) for _, extent in domains.values())
    with analyzer.scope():
        for v, (low, extent) in domains.items():
            analyzer.bind(v, low, extent)
        return _Detector(analyzer, domains, restricted).detect(indices, predicate)


def _has_one_value_or_none(analyzer: Analyzer, extent: Any) -> bool:
    """True for an extent such as min(n, 1): a variable of it is 0 where it is anything, and stands in no index."""
    if not isinstance(extent, Expr) or isinstance(extent, IntImm):
        return False
    low, high = analyzer.bounds(extent)
    return high is not None and high <= 1 and (low is None or low < 1)


class _Detector:
    """Finds marks and digits. Works on variables shifted to start at 0."""

    def __init__(self, analyzer: Analyzer, domains: Mapping[Var, tuple[Any, Any]], restricted: bool) -> None:
        self.analyzer, self.restricted = analyzer, restricted
        self.start: dict[Atom, Linear] = {}
        self.single: dict[Atom, Mark] = {}
        self.mark_of: dict[Atom, Mark] = {}
        for v, (low, extent) in domains.items():
            atom = analyzer.var_atom(v)
            if atom in analyzer.values:                         # one value only
                continue
            span = analyzer.span(atom)
            if span[0] is not None and span[0] == span[1]:
                continue
            least, size = self._form(low), self._form(extent)
            mark = Mark([(v, least, size, ONE)], size)
            self.single[atom] = self.mark_of[atom] = mark
            if least.key != Linear({}).key:
                self.start[atom] = least
        self.fixed = [(v, self._form(low)) for v, (low, _) in domains.items()
                      if analyzer.var_atom(v) not in self.single]

    def _form(self, e: Any) -> Linear:
        return form_of(self.analyzer, e) if isinstance(e, Expr) else Linear({}, int(e))

    def detect(self, indices: Sequence[Expr], predicate: Expr | None) -> IterMap | None:
        """The map, or None."""
        an = self.analyzer
        if any(a in self.single for low in self.start.values() for a in low.terms):
            return None
        if predicate is not None and not self._cut(predicate):
            return None
        forms = [form_of(an, e) for e in indices]
        quotients = [a for f in forms for a in _atoms(f) if a.kind == "div"]
        table: dict[Atom, Linear] = {}
        pending = []
        for q in dict.fromkeys(quotients):
            mark = self._numerator(q)
            if mark is False:
                return None
            if mark is not None:
                mark[0].divisors.append(q.args[1])
                pending.append((q, *mark))
        for mark in self.marks():
            if not self._make_digits(mark):
                return None
        for q, mark, offset in pending:
            value = _over(an, mark, q.args[1])
            if value is None or offset.terms or offset.const:
                return None
            table[q] = value
        outputs = []
        dense = True
        for form, e in zip(forms, indices, strict=True):
            digits = self._in_digits(form, table)
            found = None if digits is None else self._output(digits, e.dtype)
            if found is None:
                return None
            outputs.append(found[0])
            dense = dense and found[1]
        marks = self.marks() + [Mark([(v, low, ONE, ONE)], ONE) for v, low in self.fixed]
        return IterMap(an, marks, outputs, dense, self.restricted)

    def marks(self) -> list[Mark]:
        """All marks, each once."""
        return list({id(m): m for m in self.mark_of.values()}.values())

    # ------------------------------------------------------------------------------------------ marks

    def _cut(self, predicate: Expr) -> bool:
        """Use the predicate: a bound on a mixed-radix sum cuts its extent, else it restricts the map."""
        if isinstance(predicate, Binary) and predicate.op == "and":
            return self._cut(predicate.a) and self._cut(predicate.b)
        if isinstance(predicate, Call) and predicate.op == "likely":
            return self._cut(predicate.args[0])
        if isinstance(predicate, IntImm) or self.analyzer.prove(predicate):
            return not (isinstance(predicate, IntImm) and not predicate.value)
        ordered = isinstance(predicate, Binary) and predicate.op in ORDER and is_index_comparison(predicate)
        form = comparison_form(self.analyzer, predicate) if ordered else None
        if form is None:
            self.restricted = True
            return True
        mine = Linear({a: -k for a, k in form.terms.items() if a in self.single})
        limit = form.plus(mine).shifted(1)
        for a, k in mine.terms.items():
            if a in self.start:
                limit = limit.plus(self.start[a], -k)
        mark = self._fused(mine) if mine.terms and not any(self._depends(a) for a in limit.terms) else None
        if mark is None or not self._cuts(limit, mark.extent):
            self.restricted = True
        else:
            mark.extent = limit
        return True

    def _cuts(self, limit: Linear, extent: Linear) -> bool:
        """0 <= limit <= extent."""
        return nonneg(self.analyzer, limit) and nonneg(self.analyzer, extent.plus(limit, -1))

    def _depends(self, atom: Atom) -> bool:
        if atom in self.single:
            return True
        return any(self._depends(x) for arg in atom.args for x in (
            arg.terms if isinstance(arg, Linear) else (arg,) if isinstance(arg, Atom) else ()))

    def _numerator(self, q: Atom) -> Any:
        """(mark, offset) of a quotient's numerator; None for one of symbols, False for others."""
        num, den = q.args
        inner = [a for a in num.terms if self._depends(a)]
        if not inner:
            return False if any(self._depends(a) for a in den.terms) else None
        if any(self._depends(a) for a in den.terms) or not positive(self.analyzer, den):
            return False
        mine = Linear({a: num.terms[a] for a in inner})
        if not all(a in self.single for a in inner):
            return False
        offset = num.plus(mine, -1)
        for a, k in mine.terms.items():
            if a in self.start:
                offset = offset.plus(self.start[a], k)
        mark = self._fused(mine)
        return False if mark is None else (mark, offset)

    def _fused(self, form: Linear) -> Mark | None:
        """The mark of value form (of variables shifted to 0): an iterator or a mixed-radix sum of some."""
        if len(form.terms) == 1:
            (atom, k), = form.terms.items()
            mark = self.mark_of[atom]
            return mark if k == 1 and len(mark.parts) == 1 else None
        marks = {id(self.mark_of[a]): self.mark_of[a] for a in form.terms}
        if len(marks) == 1:
            mark = next(iter(marks.values()))
            mine = Linear({self.analyzer.var_atom(v): c.const for v, _, _, c in mark.parts})
            return mark if mine.key == form.key else None
        if any(len(m.parts) > 1 or m.divisors for m in marks.values()):
            return None
        size, parts = ONE, []
        for atom, k in sorted(form.terms.items(), key=lambda item: item[1]):
            v, low, extent, _ = self.single[atom].parts[0]
            if size.key != Linear({}, k).key or self.single[atom].extent.key != extent.key:
                return None
            parts.append((v, low, extent, size))
            size = size.times(extent.const) if not extent.terms else extent.times(size.const)
        mark = Mark(parts, size)
        for atom in form.terms:
            self.mark_of[atom] = mark
        return mark

    # ------------------------------------------------------------------------------------------ digits

    def _make_digits(self, mark: Mark) -> bool:
        """Cut a mark at its divisors, which must divide one another."""
        an = self.analyzer
        weights = [ONE]
        divisors = {d.key: d for d in mark.divisors if d.key != ONE.key}.values()
        for c in sorted(divisors, key=lambda d: (len(d.terms), d.const)):
            step = divide(an, c, weights[-1])
            if an.multiply(step, weights[-1]).key != c.key:
                return False
            weights.append(c)
        mark.weights = weights
        for i, c in enumerate(weights):
            if i + 1 < len(weights):
                extent = divide(an, weights[i + 1], c)
            else:
                extent = divide(an, mark.extent, c)
                if an.multiply(extent, c).key != mark.extent.key:
                    extent, mark.ragged = divide(an, mark.extent.plus(c).shifted(-1), c), True
            v = Var("digit")
            an.bind(v, 0, to_expr(an, extent, "int64"))
            mark.digits.append(Digit(an.var_atom(v), extent))
        return True

    def _in_digits(self, form: Linear, table: Mapping[Atom, Linear]) -> Linear | None:
        """form with variables and quotients written in digits."""
        an = self.analyzer
        whole = dict(table)
        rest = form
        for mark in self.marks():
            atoms = [an.var_atom(v) for v, _, _, _ in mark.parts]
            value = _over(an, mark, ONE)
            assert value is not None
            if len(atoms) == 1:
                whole[atoms[0]] = value.plus(mark.parts[0][1])
                continue
            first = mark.parts[0][3].const
            scale = rest.terms.get(atoms[0], 0) // first
            for atom, (_, low, _, c) in zip(atoms, mark.parts, strict=True):
                if rest.terms.get(atom, 0) != scale * c.const:
                    return None
                rest = rest.plus(Linear({atom: 1}), -scale * c.const).plus(low, scale * c.const)
            rest = rest.plus(value, scale)
        out = substitute_atoms(an.multiply, rest, whole)
        return None if any(self._depends(a) for a in out.terms) else out

    def _output(self, form: Linear, dtype: str) -> tuple[Output, bool] | None:
        """The digits of an index, least first, and whether they fill its range; None when they overlap."""
        digits = {d.atom: d for m in self.marks() for d in m.digits}
        base, parts = Linear({}, form.const), []
        for atom, k in form.terms.items():
            inside = [x for x in (atom.args if atom.kind == "product" else (atom,)) if x in digits]
            if len(inside) > 1 or (atom not in digits and _hides(atom, digits)):
                return None
            if not inside:
                base = base.plus(Linear({atom: 1}), k)
                continue
            others = [x for x in atom.args if x is not inside[0]] if atom.kind == "product" else []
            weight = Linear({}, k) if not others else Linear(
                {self.analyzer.product(others) if len(others) > 1 else others[0]: k})
            parts.append((digits[inside[0]], weight))
        return self._arranged(base, parts, dtype)

    def _arranged(self, base: Linear, parts: list[tuple[Digit, Linear]],
                  dtype: str) -> tuple[Output, bool] | None:
        """The parts by weight: dense where each weight is the number of values that those below it take."""
        an = self.analyzer
        size, done, dense = ONE, [], True
        left = []
        for digit, weight in parts:
            backward = weight.const < 0 or any(k < 0 for k in weight.terms.values())
            if backward:
                weight = weight.times(-1)
                base = base.plus(an.multiply(digit.extent.shifted(-1), weight), -1)
            left.append((digit, weight, backward))
        while left:
            place = next((p for p in left if p[1].key == size.key), None)
            if place is None:
                place = min((p for p in left if not p[1].terms), key=lambda p: p[1].const, default=None)
                if place is None or not nonneg(an, place[1].plus(size, -1)):
                    return None
                dense = False
            left.remove(place)
            done.append(place)
            size = size.plus(an.multiply(place[1], place[0].extent.shifted(-1)))
        return Output(base, done, size, dtype), dense


def _over(an: Analyzer, mark: Mark, den: Linear) -> Linear | None:
    """(value of mark) // den in its digits, for den one of its weights."""
    out = Linear({})
    start = next((i for i, w in enumerate(mark.weights) if w.key == den.key), None)
    if start is None:
        return None
    for weight, digit in zip(mark.weights[start:], mark.digits[start:], strict=True):
        out = out.plus(an.multiply(divide(an, weight, den), Linear({digit.atom: 1})))
    return out


def _atoms(form: Linear) -> list[Atom]:
    """The atoms of form and the factors of its products."""
    return [x for a in form.terms for x in (a, *(a.args if a.kind == "product" else ()))]


def _hides(atom: Atom, digits: Mapping[Atom, Digit]) -> bool:
    """True when a digit occurs inside atom in a way that is not linear."""
    if atom.kind == "product":
        return False
    inner = [x for arg in atom.args if isinstance(arg, Linear) for x in arg.terms]
    return any(x in digits or _hides(x, digits) for x in inner)
