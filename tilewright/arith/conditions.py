"""Conditions: comparisons of linear forms, and their logic."""
from __future__ import annotations

from typing import Any

from tilewright.arith.context import INDEX_TYPES, Context
from tilewright.arith.forms import form_of, simplify_children, written
from tilewright.arith.laws import split_terms
from tilewright.arith.linear import Linear, structural_key
from tilewright.arith.proof import nonneg
from tilewright.tir import dtype as dt
from tilewright.tir.accesses import reads_memory
from tilewright.tir.arithmetic import refolded
from tilewright.tir.expr import Binary, Broadcast, Call, Expr, IntImm, Not, Ramp, Var

ORDER = ("lt", "le", "gt", "ge")
NEGATED = {"lt": "ge", "ge": "lt", "le": "gt", "gt": "le", "eq": "ne", "ne": "eq"}


def boolean(value: bool) -> IntImm:
    return IntImm(int(value), "bool")


def is_index_comparison(e: Expr, types: tuple[str, ...] = INDEX_TYPES) -> bool:
    """True for a comparison of two scalars of one of types, which linear forms describe."""
    return type(e) is Binary and e.op in NEGATED and e.a.dtype in types


def condition_key(ctx: Context, e: Expr) -> Any:
    """What tells conditions apart in ctx.known: a comparison of sums may be true of indices and false of values."""
    key = structural_key(e)
    return (key, ctx.in_place) if is_index_comparison(e, ctx.types) else key


def comparison_form(ctx: Context, e: Any) -> Linear | None:
    """f with `e` true exactly when f >= 0 (orders) or f == 0 (eq, ne); None where an operand may wrap."""
    a, b = form_of(ctx, e.a), form_of(ctx, e.b)
    if not (ctx.fits(a, e.a.dtype) and ctx.fits(b, e.a.dtype)):
        return None
    if e.op in ("eq", "ne", "ge"):
        return a.plus(b, -1)
    if e.op == "gt":
        return a.plus(b, -1).shifted(-1)
    return b.plus(a, -1) if e.op == "le" else b.plus(a, -1).shifted(-1)


def at_least_zero(ctx: Context, form: Linear) -> bool | None:
    """Whether form >= 0: True, False, or None when unknown."""
    if nonneg(ctx, form):
        return True
    return False if nonneg(ctx, form.times(-1).shifted(-1)) else None


def equals_zero(ctx: Context, form: Linear) -> bool | None:
    """Whether form == 0: True, False, or None when unknown."""
    if not form.terms:
        return form.const == 0
    if form.const % form.divisor():
        return False
    if nonneg(ctx, form.shifted(-1)) or nonneg(ctx, form.times(-1).shifted(-1)):
        return False
    return True if nonneg(ctx, form) and nonneg(ctx, form.times(-1)) else None


def simplify_condition(ctx: Context, e: Expr) -> Expr:
    """A scalar bool expression, simplified."""
    if isinstance(e, IntImm):
        return e
    if type(e) is Binary and e.op in ("and", "or"):
        return _connective(ctx, e)
    out = _leaf(ctx, e)
    if ctx.known and not isinstance(out, IntImm):
        found = ctx.known.get(condition_key(ctx, out))
        if found is not None:
            return boolean(found[1])
    return out


def _leaf(ctx: Context, e: Expr) -> Expr:
    if is_index_comparison(e, ctx.types):
        return _comparison(ctx, e)
    if isinstance(e, Not):
        return negation(ctx, ctx.simplify(e.a))
    new = simplify_children(ctx, e)
    if isinstance(new, Binary):
        return refolded(new)
    if isinstance(new, Call):
        if new.op == "likely" and isinstance(new.args[0], IntImm):
            return new.args[0]
        if new.op == "if_then_else" and isinstance(new.args[0], IntImm):
            return new.args[1] if new.args[0].value else new.args[2]
    return new


def negation(ctx: Context, e: Expr) -> Expr:
    """`not e`, moved inside where that is exact (NaN makes `not a < b` differ from `a >= b`)."""
    if isinstance(e, IntImm):
        return boolean(not e.value)
    if isinstance(e, Not):
        return e.a
    if isinstance(e, Binary) and e.op in ("eq", "ne"):
        return Binary(NEGATED[e.op], e.a, e.b, e.type)
    if isinstance(e, Binary) and is_index_comparison(e, ctx.types):
        return ctx.simplify(Binary(NEGATED[e.op], e.a, e.b, e.type))
    if isinstance(e, Binary) and e.op in ("and", "or"):
        return Binary("or" if e.op == "and" else "and", negation(ctx, e.a), negation(ctx, e.b), e.type)
    return Not(e)


def _connective(ctx: Context, e: Binary) -> Expr:
    """Each part simplified where the parts before it hold (and) or fail (or); what is known is dropped."""
    conjunction = e.op == "and"
    a = ctx.simplify(e.a)
    if isinstance(a, IntImm):
        return ctx.simplify(e.b) if bool(a.value) == conjunction else a
    if reads_memory(e.b):         # both parts may be evaluated: the second must stay safe without the first
        b = ctx.simplify(e.b)
    else:
        with ctx.constraint(a if conjunction else negation(ctx, a), memory=True):
            b = ctx.simplify(e.b)
    if isinstance(b, IntImm):
        return a if bool(b.value) == conjunction else b
    return Binary(e.op, a, b, e.type)


def _comparison(ctx: Context, e: Any) -> Expr:
    form = comparison_form(ctx, e)
    dtype = e.a.dtype
    out: Expr | None = None
    if form is not None and e.op in ("eq", "ne"):
        known = equals_zero(ctx, form)
        if known is not None:
            return boolean(known == (e.op == "eq"))
        out = _two_sided(ctx, form.divided(form.divisor()), e.op, dtype)
    elif form is not None:
        known = at_least_zero(ctx, form)
        if known is not None:
            return boolean(known)
        out = _two_sided(ctx, tightened(ctx, ctx.with_remainders(form)), "lt", dtype)
    return Binary(e.op, ctx.simplify(e.a), ctx.simplify(e.b), e.type) if out is None else out


def tightened(ctx: Context, form: Linear) -> Linear:
    """The smallest form that is >= 0 exactly where form is: 4*i + j - 9 with 0 <= j < 4 gives i - 2."""
    form = form.divided(form.divisor())
    for g in sorted({abs(k) for k in form.terms.values()}, reverse=True):
        if g == 1:
            break
        high, low = split_terms(form, g)
        lo, hi = ctx.bounds_of(low)
        if high.terms and lo is not None and hi is not None and lo // g == hi // g:
            return tightened(ctx, high.shifted(lo // g))
    return form


def _two_sided(ctx: Context, form: Linear, op: str, dtype: str) -> Expr | None:
    """form >= 0 or form == 0 as a comparison without negative terms, the variable part on the left.

    None where a side could wrap around: data may be anything.
    """
    mixed = ctx.with_remainders(form)
    plus = {a: k for a, k in mixed.terms.items() if k > 0}
    minus = {a: -k for a, k in mixed.terms.items() if k < 0}
    const = mixed.const

    def compare(op: str, left: Linear, right: Linear) -> Expr | None:
        least, most = dt.integer_range(dtype)
        if not all(ctx.holds(side, dtype) and ctx.stands(side, dtype) and least <= side.const <= most
                   for side in (left, right)):
            return None
        return Binary(op, written(ctx, left, dtype), written(ctx, right, dtype), "bool")

    if op in ("eq", "ne"):
        if not plus or (minus and next(iter(mixed.terms.values())) < 0):
            plus, minus, const = minus, plus, -const
        return compare(op, Linear(plus), Linear(minus, -const))
    if not minus:
        return compare("ge", Linear(plus), Linear({}, -const))
    if plus and const == 0:
        return compare("le", Linear(minus), Linear(plus))
    return compare("lt", Linear(minus), Linear(plus, const + 1))


def prove(ctx: Context, e: Expr) -> bool:
    """True when the condition e is shown to hold."""
    if isinstance(e, IntImm):
        return bool(e.value)
    if isinstance(e, Binary) and is_index_comparison(e, ctx.types):
        form = comparison_form(ctx, e)
        if form is not None:
            known = nonneg(ctx, form) if e.op in ORDER else equals_zero(ctx, form) is (e.op == "eq")
            if known or not ctx.known:
                return known
    if isinstance(e, Binary) and e.op == "and":
        return prove(ctx, e.a) and prove(ctx, e.b)
    if isinstance(e, Call) and e.op == "likely":
        with ctx.places(True):
            return prove(ctx, e.args[0])
    if isinstance(e, Binary) and e.op in NEGATED and dt.element_of(e.a.dtype) in ctx.types:
        return _prove_lanes(ctx, e)
    out = ctx.simplify(e)
    return isinstance(out, IntImm) and bool(out.value)


def _prove_lanes(ctx: Context, e: Binary) -> bool:
    """A comparison of vectors, for all lanes at once: the lane is a variable."""
    count = dt.lanes_of(e.a.dtype)
    if count == 1:
        return False
    lane = Var("lane", dt.element_of(e.a.dtype))
    a, b = _lane(e.a, lane), _lane(e.b, lane)
    if a is None or b is None:
        return False
    first, end = IntImm(0, lane.type), IntImm(count, lane.type)
    with ctx.constraint(Binary("and", Binary("ge", lane, first), Binary("lt", lane, end))):
        return prove(ctx, Binary(e.op, a, b))


def _lane(e: Expr, lane: Var) -> Expr | None:
    """The element of a vector at a lane; None when e is no ramp, broadcast or arithmetic of them."""
    if isinstance(e, Broadcast):
        return e.value
    if isinstance(e, Ramp):
        return Binary("add", e.base, Binary("mul", lane, e.stride))
    if isinstance(e, Binary):
        a, b = _lane(e.a, lane), _lane(e.b, lane)
        return None if a is None or b is None else Binary(e.op, a, b)
    return None
