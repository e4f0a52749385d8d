"""`tvm.arith.IntSet`: intervals of expressions, and the boxes that accesses touch."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright import arith, tir
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import binary, children, convert

_NEG_INF, _POS_INF = tir.Var("neg_inf", "handle"), tir.Var("pos_inf", "handle")


def pos_inf() -> tir.Var:
    """The end of an interval that has no upper end."""
    return _POS_INF


def neg_inf() -> tir.Var:
    """The beginning of an interval that has no lower end."""
    return _NEG_INF


class IntSet:
    """A set of integers."""

    def is_nothing(self) -> bool:
        """True when the set is known to be empty."""
        raise NotImplementedError

    def is_everything(self) -> bool:
        """True when nothing is known of the set."""
        raise NotImplementedError

    @staticmethod
    def vector(vec: Any) -> IntervalSet:
        """An interval that holds the values of the lanes of vec."""
        return interval_of(convert(vec), {}, arith.Analyzer())

    @staticmethod
    def single_point(point: Any) -> IntervalSet:
        """The set of one value."""
        return IntervalSet(point, point)

    @staticmethod
    def interval(min_value: Any, max_value: Any) -> IntervalSet:
        """The integers from min_value to max_value, both included."""
        return IntervalSet(min_value, max_value)


class IntervalSet(IntSet):
    """The integers from min_value to max_value, both included; the ends may be pos_inf() and neg_inf()."""

    def __init__(self, min_value: Any, max_value: Any) -> None:
        self.min_value, self.max_value = convert(min_value), convert(max_value)

    def is_nothing(self) -> bool:
        """True when the upper end is below the lower one, for all values of the variables in them."""
        if self.min_value is _POS_INF or self.max_value is _NEG_INF:
            return True
        return self._bounded and arith.Analyzer().prove(binary("lt", self.max_value, self.min_value))

    def is_everything(self) -> bool:
        """True when neither end is known."""
        return self.min_value is _NEG_INF and self.max_value is _POS_INF

    @property
    def _bounded(self) -> bool:
        return self.min_value is not _NEG_INF and self.max_value is not _POS_INF

    def union(self, other: IntervalSet) -> IntervalSet:
        """The smallest interval that holds both."""
        simplify = arith.Analyzer().simplify
        return IntervalSet(
            _NEG_INF if any(x is _NEG_INF for x in (self.min_value, other.min_value)) else simplify(
                binary("min", self.min_value, other.min_value)),
            _POS_INF if any(x is _POS_INF for x in (self.max_value, other.max_value)) else simplify(
                binary("max", self.max_value, other.max_value)))

    def intersection(self, other: IntervalSet) -> IntervalSet:
        """The integers in both."""
        simplify = arith.Analyzer().simplify
        low = [x for x in (self.min_value, other.min_value) if x is not _NEG_INF]
        high = [x for x in (self.max_value, other.max_value) if x is not _POS_INF]
        return IntervalSet(simplify(binary("max", low[0], low[-1])) if low else _NEG_INF,
                           simplify(binary("min", high[0], high[-1])) if high else _POS_INF)

    def __repr__(self) -> str:
        return f"IntervalSet[{self.min_value}, {self.max_value}]"


EVERYTHING = IntervalSet(_NEG_INF, _POS_INF)
NOTHING = IntervalSet(_POS_INF, _NEG_INF)


def as_ends(dom: Any) -> tuple[tir.Expr | None, tir.Expr | None]:
    """(least, greatest) of a Range or an IntervalSet; None for an end that there is not."""
    if isinstance(dom, tir.Range):
        return dom.min, binary("sub", binary("add", dom.min, dom.extent), 1)
    if isinstance(dom, IntervalSet):
        return (None if dom.min_value is _NEG_INF else dom.min_value,
                None if dom.max_value is _POS_INF else dom.max_value)
    raise ArgumentError(f"{described(dom)} is no set of integers",
                        "tvm.arith.IntervalSet(low, high) or tvm.ir.Range(begin, end)")


def domains(dom_map: Mapping[Any, Any]) -> tuple[
        dict[tir.Var, tuple[tir.Expr, tir.Expr]], dict[tir.Var, tuple[Any, Any]]]:
    """The variables whose sets have both ends, as (min, extent), and the ends of the others."""
    closed: dict[tir.Var, tuple[tir.Expr, tir.Expr]] = {}
    open_: dict[tir.Var, tuple[Any, Any]] = {}
    for key, dom in dom_map.items():
        v = key.var if isinstance(key, tir.IterVar) else key
        low, high = as_ends(dom)
        if low is None or high is None:
            open_[v] = low, high
        else:
            closed[v] = low, binary("add", binary("sub", high, low), 1)
    return closed, open_


def interval_of(e: tir.Expr, dom_map: Mapping[Any, Any], analyzer: arith.Analyzer) -> IntervalSet:
    """An interval that holds every value of e, of each lane of a vector, while the variables of dom_map range."""
    if isinstance(e, tir.Broadcast):
        return interval_of(e.value, dom_map, analyzer)
    if isinstance(e, tir.Ramp):
        first = interval_of(e.base, dom_map, analyzer)
        last = interval_of(binary("add", e.base, binary("mul", e.stride, e.lanes - 1)), dom_map, analyzer)
        return first.union(last)
    closed, open_ = domains(dom_map)
    with analyzer.scope():
        for v, (low, high) in open_.items():
            analyzer.assume(binary("ge", v, low) if low is not None else
                            binary("le", v, high) if high is not None else tir.IntImm(1, "bool"))
        if not any(v in open_ for v in _variables(e)):
            found = arith.interval_of(e, closed, analyzer, widen=False)
            if found is not None:
                low, size = found
                return IntervalSet(low, analyzer.simplify(binary("sub", binary("add", low, size), 1)))
        for v, (low, size) in closed.items():
            analyzer.bind(v, low, size)
        least, most = analyzer.bounds(e)
    return IntervalSet(_NEG_INF if least is None else tir.IntImm(least, e.dtype),
                       _POS_INF if most is None else tir.IntImm(most, e.dtype))


def _variables(e: tir.Node) -> list[tir.Var]:
    return [e] if isinstance(e, tir.Var) else [v for child in children(e) for v in _variables(child)]


def estimate_region_upper_bound(region: Sequence[tir.Range], var_dom: Mapping[Any, tir.Range],
                                predicate: Any = None) -> list[IntervalSet]:
    """For each dimension an interval that holds all that the region touches while the variables range."""
    analyzer = arith.Analyzer()
    if predicate is not None:
        analyzer.assume(convert(predicate))
    out = []
    for r in region:
        low = interval_of(r.min, var_dom, analyzer)
        last = interval_of(binary("sub", binary("add", r.min, r.extent), 1), var_dom, analyzer)
        out.append(IntervalSet(low.min_value, last.max_value))
    return out


def domain_touched(stmt: tir.Node, buffer: tir.Buffer, consider_loads: bool, consider_stores: bool) -> list[tir.Range]:
    """The box of the elements of buffer that the loads and stores in stmt touch; [] where there is none.

    Raises ArgumentError for an access whose box is not bounded.
    """
    analyzer = arith.Analyzer()
    boxes: list[tuple[tuple[tir.Expr, tir.Expr], ...]] = []

    def visit(node: tir.Node, loops: dict[tir.Var, tuple[tir.Expr, tir.Expr]]) -> None:
        counted = tuple(kind for kind, yes in ((tir.Load, consider_loads), (tir.Store, consider_stores)) if yes)
        if isinstance(node, counted) and node.buffer is buffer:
            boxes.append(_box(node.indices, loops, analyzer))
        inner = loops
        if isinstance(node, tir.For):
            (low, _), (last, more) = _box(
                (node.min, binary("sub", binary("add", node.min, node.extent), 1)), loops, analyzer)
            inner = {**loops, node.loop_var: (low, binary("sub", binary("add", last, more), low))}
        for child in children(node):
            visit(child, inner)

    visit(stmt, {})
    return [tir.Range(low, size) for low, size in arith.union(boxes, analyzer)] if boxes else []


def _box(indices: Iterable[tir.Expr], loops: Mapping[tir.Var, tuple[tir.Expr, tir.Expr]],
         analyzer: arith.Analyzer) -> tuple[tuple[tir.Expr, tir.Expr], ...]:
    found = [arith.interval_of(i, loops, analyzer, widen=False) for i in indices]
    if any(f is None for f in found):
        raise ArgumentError("domain_touched: an index, or a loop around it, is not bounded: it reads memory")
    return tuple(f for f in found if f is not None)
