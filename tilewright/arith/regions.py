"""Regions: the box of values that index expressions take while some variables range over their domains.

An interval is (min, extent); a region is a sequence of intervals, one for each dimension.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.forms import form_of, to_expr
from tilewright.arith.laws import divide, maximum, minimum
from tilewright.arith.linear import Atom, Bounds, Linear
from tilewright.arith.proof import nonneg, positive
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Expr, Var
from tilewright.tir.node import walk

Interval = tuple[Expr, Expr]
_WIDEST = dt.integer_range("int32")[1] - 1       # what is known of an index of which nothing is known
Ends = tuple[Linear, Linear]                     # least and greatest value, inclusive


def interval_of(e: Expr, domains: Mapping[Var, Interval], analyzer: Analyzer, widen: bool = True) -> Interval | None:
    """(min, extent) of an interval that holds every value of e while the variables of domains range freely.

    Other variables are symbols. The extent is constant wherever that can be had, if need be by widening (with `widen`).
    None when e is not bounded (it reads memory, say).
    """
    return intervals_of([e], domains, analyzer, widen)[0]


def intervals_of(exprs: Sequence[Expr], domains: Mapping[Var, Interval], analyzer: Analyzer,
                 widen: bool = True) -> list[Interval | None]:
    """interval_of each of exprs; the domains are taken up once.

    Without widen the ends of domains are as they stand: empty where a domain is, whatever its having values would tell.
    """
    if not exprs:
        return []
    ranges = {} if widen else _ends_of_domains(domains, analyzer)
    with analyzer.scope():
        for v, (low, extent) in domains.items():
            analyzer.bind(v, low, extent)
        forms = [form_of(analyzer, e) for e in exprs]
        ranges = ranges or _ends_of_domains(domains, analyzer)
        hulls = [_Hull(analyzer, ranges, widen).of(form) for form in forms]
    return [None if ends is None else _interval(ends, e.dtype, analyzer, widen)
            for ends, e in zip(hulls, exprs, strict=True)]


def _ends_of_domains(domains: Mapping[Var, Interval], analyzer: Analyzer) -> dict[Atom, Ends]:
    """The ends of each variable's domain, by what analyzer knows."""
    return {analyzer.var_atom(v): _ends(analyzer, interval) for v, interval in domains.items()}


def _interval(ends: Ends, dtype: str, analyzer: Analyzer, widen: bool) -> Interval | None:
    low_form, width, widest = ends[0], ends[1].plus(ends[0], -1), dt.integer_range(dtype)[1]
    if width.terms and widen:
        most = analyzer.bounds_of(width)[1]
        if most is not None and most < widest:
            width = Linear({}, most)
    elif not width.terms and width.const >= widest:
        return None
    return to_expr(analyzer, low_form, dtype), to_expr(analyzer, width.shifted(1), dtype)


class _Hull:
    """Ends of forms, for given ends of some variables."""

    def __init__(self, analyzer: Analyzer, ranges: Mapping[Atom, Ends], widen: bool) -> None:
        self.analyzer, self.ranges, self.widen = analyzer, ranges, widen

    def varies(self, atom: Atom) -> bool:
        """True when atom depends on a ranging variable."""
        if atom in self.ranges:
            return True
        expr = atom.expr if atom.kind == "opaque" else atom.args[1] if atom.kind == "select" else None
        for n in walk(expr) if expr is not None else ():
            if isinstance(n, Load) or (isinstance(n, Var) and self.analyzer.var_atom(n) in self.ranges):
                return True                      # memory is taken to change
        return any(self.varies(x) for arg in atom.args for x in (
            arg.terms if isinstance(arg, Linear) else (arg,) if isinstance(arg, Atom) else ()))

    def of(self, form: Linear) -> Ends | None:
        """The ends of a form: each term at its own end."""
        form = self.analyzer.with_remainders(form)
        low = high = Linear({}, form.const)
        for atom, k in form.terms.items():
            ends = self.of_atom(atom) if self.varies(atom) else (Linear({atom: 1}), Linear({atom: 1}))
            if ends is None:
                return None
            low = low.plus(ends[0 if k > 0 else 1], k)
            high = high.plus(ends[1 if k > 0 else 0], k)
        return low, high

    def of_atom(self, atom: Atom) -> Ends | None:
        """The ends of an atom that varies; its numeric bounds where nothing better is known."""
        ends = self.ranges.get(atom) or self._compound(atom)
        if ends is None or ends[1].plus(ends[0], -1).terms:
            lo, hi = self.analyzer.span(atom)
            if ends is None and self._is_unknown(atom):
                return None
            if lo is not None and hi is not None and (ends is None or ends[0].terms or ends[1].terms):
                if ends is None or self.widen and hi - lo < _WIDEST and not self._small(ends, hi - lo):
                    return Linear({}, lo), Linear({}, hi)
        return ends

    def _is_unknown(self, atom: Atom) -> bool:
        """True when no more is known of the atom, or of what it divides, than a type says."""
        if atom.kind not in ("opaque", "cast", "div"):
            return False
        lo, hi = self.analyzer.bounds_of(atom.args[0]) if atom.kind == "div" else self.analyzer.span(atom)
        if lo is None or hi is None or hi - lo >= _WIDEST:
            return True
        return atom.kind != "div" and (lo, hi) == _type_range(atom)

    def _small(self, ends: Ends, width: int) -> bool:
        most = self.analyzer.bounds_of(ends[1].plus(ends[0], -1))[1]
        return most is not None and most < width

    def _compound(self, atom: Atom) -> Ends | None:
        kind, args = atom.kind, atom.args
        if kind in ("div", "mod"):
            return self._division(kind, args[0], args[1])
        if kind in ("min", "max"):
            law = minimum if kind == "min" else maximum
            a, b = self.of(args[0]), self.of(args[1])
            if a is None or b is None:
                return None
            low, high = law(self.analyzer, a[0], b[0]), law(self.analyzer, a[1], b[1])
            return low, self._constant_width(low, high, [a, b])
        if kind == "select":
            a, b = self.of(args[2]), self.of(args[3])
            return None if a is None or b is None else hull(self.analyzer, a, b)
        if kind == "product":
            return self._product(args)
        return None

    def _constant_width(self, low: Linear, high: Linear, parts: Sequence[Ends]) -> Linear:
        """high, or low + the greatest constant width of parts (min and max stretch nothing) where needed."""
        if high.plus(low, -1).terms:
            widths = [b.plus(a, -1) for a, b in parts]
            if not any(w.terms for w in widths):
                return low.shifted(max(w.const for w in widths))
        return high

    def _division(self, kind: str, num: Linear, den: Linear) -> Ends | None:
        ends = self.of(num)
        if ends is None or any(self.varies(a) for a in den.terms) or not positive(self.analyzer, den):
            return None
        low, high = divide(self.analyzer, ends[0], den), divide(self.analyzer, ends[1], den)
        if kind == "mod":
            if low.key == high.key:
                whole = self.analyzer.multiply(low, den)
                return ends[0].plus(whole, -1), ends[1].plus(whole, -1)
            return Linear({}), den.shifted(-1)
        width = ends[1].plus(ends[0], -1)
        if high.plus(low, -1).terms and not width.terms and not den.terms:
            high = low.shifted(-(-width.const // den.const))
        return low, high

    def _product(self, factors: Sequence[Atom]) -> Ends | None:
        varying = [f for f in factors if self.varies(f)]
        others = [f for f in factors if f not in varying]
        if len(varying) != 1 or not all(nonneg(self.analyzer, Linear({f: 1})) for f in others):
            return None
        ends = self.of_atom(varying[0])
        if ends is None or not others:
            return None
        scale = Linear({self.analyzer.product(others) if len(others) > 1 else others[0]: 1})
        return self.analyzer.multiply(ends[0], scale), self.analyzer.multiply(ends[1], scale)


def _type_range(atom: Atom) -> Bounds:
    assert atom.expr is not None
    return dt.integer_range(atom.expr.dtype)


def hull(analyzer: Analyzer, a: Ends, b: Ends) -> Ends:
    """The ends of the smallest interval known to hold both."""
    low = a[0] if a[0].key == b[0].key else minimum(analyzer, a[0], b[0])
    high = a[1] if a[1].key == b[1].key else maximum(analyzer, a[1], b[1])
    return low, high


def union(regions: Sequence[Sequence[Interval]], analyzer: Analyzer) -> tuple[Interval, ...]:
    """The smallest box known to hold all regions (at least one, all of one rank)."""
    out = []
    for dimension in zip(*regions, strict=True):
        ends = [_ends(analyzer, interval) for interval in dimension]
        joined = ends[0]
        for other in ends[1:]:
            joined = hull(analyzer, joined, other)
        dtype = dimension[0][0].dtype
        extent = joined[1].plus(joined[0], -1).shifted(1)
        out.append((to_expr(analyzer, joined[0], dtype), to_expr(analyzer, extent, dtype)))
    return tuple(out)


def covers(a: Sequence[Interval], b: Sequence[Interval], analyzer: Analyzer) -> bool:
    """True when region a is shown to hold every point of region b."""
    for outer, inner in zip(a, b, strict=True):
        (low, high), (first, last) = _ends(analyzer, outer), _ends(analyzer, inner)
        if not nonneg(analyzer, first.plus(low, -1)) or not nonneg(analyzer, high.plus(last, -1)):
            return False
    return True


def disjoint(a: Sequence[Interval], b: Sequence[Interval], analyzer: Analyzer) -> bool:
    """True when the regions are shown to share no point."""
    for x, y in zip(a, b, strict=True):
        (low, high), (first, last) = _ends(analyzer, x), _ends(analyzer, y)
        if positive(analyzer, first.plus(high, -1)) or positive(analyzer, low.plus(last, -1)):
            return True
    return False


def _ends(analyzer: Analyzer, interval: Interval) -> Ends:
    low = form_of(analyzer, interval[0])
    return low, low.plus(form_of(analyzer, interval[1])).shifted(-1)
