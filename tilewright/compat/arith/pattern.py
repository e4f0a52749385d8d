"""`tvm.arith.detect_linear_equation`, `detect_clip_bound`, `deduce_bound`: conditions solved for a variable."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tilewright import arith
from tilewright.compat.arith.int_set import NOTHING, IntervalSet, domains, interval_of, neg_inf, pos_inf
from tilewright.tir import Expr, IntImm, Var, binary, convert, is_const, walk
from tilewright.tir.arithmetic import conjuncts
from tilewright.tir.expr import Binary, Call


def detect_linear_equation(expr: Any, var_list: Sequence[Var]) -> list[Expr]:
    """[k0, k1, ..., base] with expr == k0 * v0 + k1 * v1 + ... + base, none of which has a variable of var_list.

    [] where expr is not such a sum.
    """
    e = convert(expr)
    found = _linear(e, var_list)
    if found is None:
        return []
    simplify = arith.Analyzer().simplify
    zero = IntImm(0, e.dtype)
    return [simplify(found[0].get(v, zero)) for v in var_list] + [simplify(found[1])]


def _linear(e: Expr, variables: Sequence[Var]) -> tuple[dict[Var, Expr], Expr] | None:
    """(coefficients, base) of e."""
    zero = IntImm(0, e.dtype)
    if isinstance(e, Var) and any(e is v for v in variables):
        return {e: IntImm(1, e.dtype)}, zero
    if not any(n is v for n in walk(e) for v in variables):
        return {}, e
    if not isinstance(e, Binary) or e.op not in ("add", "sub", "mul"):
        return None
    a, b = _linear(e.a, variables), _linear(e.b, variables)
    if a is None or b is None:
        return None
    if e.op == "mul":
        (scale, (terms, base)) = (b[1], a) if not b[0] else (a[1], b)
        if a[0] and b[0]:
            return None
        return {v: binary("mul", k, scale) for v, k in terms.items()}, binary("mul", base, scale)
    terms = {v: binary(e.op, a[0].get(v, zero), b[0].get(v, zero)) for v in (*a[0], *b[0])}
    return terms, binary(e.op, a[1], b[1])


def detect_clip_bound(expr: Any, var_list: Sequence[Var]) -> list[Expr | None]:
    """[least, greatest] of each variable of var_list, one after the other, where the condition expr holds.

    None for a side that expr does not bound. [] where a part of expr is no bound of one variable.
    """
    bounds: dict[Var, list[Expr | None]] = {v: [None, None] for v in var_list}
    for condition in conjuncts(convert(expr)):
        mine = [v for v in var_list if any(n is v for n in walk(condition))]
        form = _difference(condition) if mine else None
        if not mine:
            continue
        found = None if form is None or len(mine) > 1 or form.equal else _bound(mine[0], form.value, {}, {})
        if found is None:
            return []
        for side, (end, pick) in enumerate(((found.min_value, "max"), (found.max_value, "min"))):
            if end is not neg_inf() and end is not pos_inf():
                old = bounds[mine[0]][side]
                bounds[mine[0]][side] = end if old is None else arith.Analyzer().simplify(binary(pick, old, end))
    return [x for v in var_list for x in bounds[v]]


def deduce_bound(var: Var, cond: Any, hint_map: Mapping[Any, Any], relax_map: Mapping[Any, Any]) -> IntervalSet:
    """The values of var for which cond holds whatever values the variables of relax_map take in their sets.

    hint_map: what other variables range over, for the signs of coefficients. The empty set where nothing is deduced.
    """
    form = _difference(convert(cond))
    found = None if form is None else _bound(var, form.value, hint_map, relax_map)
    if form is None or found is None:
        return NOTHING
    if not form.equal:
        return found
    other = _bound(var, binary("sub", 0, form.value), hint_map, relax_map)
    if other is None:
        return NOTHING
    both = IntervalSet(found.min_value if found.min_value is not neg_inf() else other.min_value,
                       found.max_value if found.max_value is not pos_inf() else other.max_value)
    return NOTHING if both.is_nothing() else both


class _Form(NamedTuple):
    """value >= 0, or value == 0 with `equal`."""
    value: Expr
    equal: bool


def _difference(condition: Expr) -> _Form | None:
    if isinstance(condition, Call) and condition.op in ("likely", "assume"):
        return _difference(condition.args[0])
    if not isinstance(condition, Binary) or not condition.a.dtype.startswith("int"):
        return None
    a, b, op = condition.a, condition.b, condition.op
    if op in ("lt", "le"):
        a, b, op = b, a, {"lt": "gt", "le": "ge"}[op]
    if op not in ("gt", "ge", "eq"):
        return None
    gap = binary("sub", a, b)
    return _Form(binary("sub", gap, 1) if op == "gt" else gap, op == "eq")


def _bound(var: Var, value: Expr, hints: Mapping[Any, Any], relaxed: Mapping[Any, Any]) -> IntervalSet | None:
    """The interval of var in which value >= 0; None where value is not linear in var, or a sign is not known."""
    parts = _linear(value, [var])
    if parts is None or not parts[0]:
        return None
    analyzer = arith.Analyzer()
    ranges = {**hints, **relaxed}
    closed, _ = domains(ranges)
    for v, (low, extent) in closed.items():
        analyzer.bind(v, low, extent)
    free = {*domains(relaxed)[0], *domains(relaxed)[1]}
    k = analyzer.simplify(parts[0][var])
    if any(n is v for n in walk(k) for v in free):
        return None
    base = interval_of(parts[1], relaxed, analyzer).min_value if relaxed else analyzer.simplify(parts[1])
    if base is neg_inf():
        return None
    if analyzer.prove(binary("gt", k, 0)):
        least = base if is_const(k, 1) else binary("floordiv", base, k)       # var >= ceil(-base / k) = -(base // k)
        return IntervalSet(analyzer.simplify(binary("sub", 0, least)), pos_inf())
    if analyzer.prove(binary("lt", k, 0)):
        divisor = analyzer.simplify(binary("sub", 0, k))
        return IntervalSet(neg_inf(), analyzer.simplify(binary("floordiv", base, divisor)))
    return None
