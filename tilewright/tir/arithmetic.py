"""Operators and functions of expressions: operands are checked and brought to one dtype, integer constants fold."""
from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.support.errors import IRError
from tilewright.support.registry import register_hook
from tilewright.tir import dtype as dt
from tilewright.tir.conversion import const, convert, match_all, match_types
from tilewright.tir.expr import Binary, Call, Expr, FloatImm, IntImm, Not, Select
from tilewright.tir.ops import BINARY, INTRINSICS

__all__ = [
    "absolute", "all_of", "any_of", "binary", "bitwise_not", "ceildiv", "floordiv", "floormod", "if_then_else",
    "intrinsic", "logical_not", "maximum", "minimum", "negate", "power", "select", "truncdiv", "truncmod",
]
_ON_NUMBERS = ("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "shl", "shr")
INDEX_TYPES = ["int32", "int64"]           # whose constants are not folded where that would wrap around: see `_folded`
_DIVIDES = ("floordiv", "floormod", "truncdiv", "truncmod")
# operators that all integers have, with the dtype of the result where it is not that of the operands
_ALWAYS_ON_INTEGERS = {op: "bool" if BINARY[op].compares else ""
                       for op in ("add", "sub", "mul", "min", "max", "eq", "ne", "lt", "le", "gt", "ge")}


def _checked(op: str, dtype: str, divisor: Any) -> str:
    """The operator for operands of dtype. Raises IRError where there is none, and for a divisor that is written as 0.

    A divisor that only turns out to be 0, as `y % 1`, is none of the author's mistakes: x // 0 is 0.
    """
    if dt.is_bool(dtype):
        op = {"bitand": "and", "bitor": "or"}.get(op, op)      # one spelling, so that guards are recognised
    row = BINARY[op]
    if dtype == "handle" and op not in ("eq", "ne"):           # `in` on a tuple of parameters compares
        raise IRError(f"`{row.symbol}` on a pointer")
    if row.logical and not dt.is_bool(dtype):
        raise IRError(f"`{row.symbol}` needs bool operands, got {dtype}", "compare first: x != 0")
    if op == "div" and not dt.is_float(dtype):
        raise IRError(f"`/` on {dtype} is ambiguous",
                      "write // to round down, truncdiv to round to zero, " 'or cast: x.astype("float32") / y')
    if op in ("truncdiv", "truncmod", "bitand", "bitor", "bitxor", "shl", "shr") and dt.is_float(dtype):
        raise IRError(f"`{row.symbol}` needs integers, got {dtype}")
    if op in _ON_NUMBERS and dt.is_bool(dtype):
        raise IRError(f"`{row.symbol}` on bool", 'cast first: x.astype("int32")')
    if op in _DIVIDES and isinstance(divisor, (int, np.integer)) and divisor == 0:
        raise IRError(f"`{row.symbol}` by the constant 0")
    return op


@register_hook("tir.binary")
def binary(op: str, a: Any, b: Any) -> Expr:
    """`a op b` with operands brought to one dtype; integer constants fold, x + 0 and x * 1 vanish on
    integers.

    Raises IRError when the dtypes do not promote, for `/` on integers and for a constant zero divisor.
    """
    x, y = match_types(a, b)
    dtype, result = x.dtype, ""
    if dtype not in ("int32", "int64") or op not in _ALWAYS_ON_INTEGERS:
        op = _checked(op, dtype, b)
    else:                                                              # indices mostly: nothing to check
        result = _ALWAYS_ON_INTEGERS[op] or dtype
        constants = (type(x) is IntImm) + (type(y) is IntImm)
        if constants < (2 if result == "bool" else 1):                 # and nothing to fold
            return Binary(op, x, y, result)
    found = _folded(op, x, y, dtype)
    return Binary(op, x, y, result) if found is None else found


def _folded(op: str, x: Expr, y: Expr, dtype: str) -> Expr | None:
    """What `x op y` is where constants decide it; None where they do not.

    Constants wrap around into their dtype. What overflows int32 or int64 stays as it is written: where it is an index
    it must not wrap, and only the place tells (`Analyzer.simplify`).
    """
    row = BINARY[op]
    if isinstance(x, IntImm) and isinstance(y, IntImm):
        if (op in ("shl", "shr") and not 0 <= y.value < dt.bits_of(dtype)) or (y.value == 0 and op in _DIVIDES):
            return None
        value, out = row.fold(x.value, y.value), "bool" if row.compares else dtype
        low, high = dt.integer_range(out)
        if low <= value <= high:
            return IntImm(int(value), out)
        return None if out in INDEX_TYPES else IntImm(dt.wrapped(int(value), out), out)
    if dtype in INDEX_TYPES or dt.is_integer(dtype):
        if isinstance(y, IntImm):
            if y.value == 0 and op in ("add", "sub", "shl", "shr", "bitor", "bitxor"):
                return x
            if y.value == 1 and op in ("mul", "floordiv", "truncdiv"):
                return x
            if y.value == 0 and op == "mul":
                return y
            if y.value == 1 and op in ("floormod", "truncmod"):
                return IntImm(0, dtype)
        elif isinstance(x, IntImm):
            if (x.value == 0 and op == "add") or (x.value == 1 and op == "mul"):
                return y
            if x.value == 0 and op == "mul":
                return x
    elif row.logical:
        for this, other in ((x, y), (y, x)):
            if isinstance(this, IntImm):
                return other if bool(this.value) == (op == "and") else this
    return None


def refolded(e: Binary) -> Expr:
    """e, or what its constants make of it: for an expression whose operands were replaced by others of their types."""
    found = _folded(e.op, e.a, e.b, e.a.dtype)
    return e if found is None else found


@register_hook("tir.negate")
def negate(e: Expr) -> Expr:
    """-e; unsigned and bool are refused."""
    if not (dt.is_float(e.dtype) or dt.is_signed(e.dtype)):
        raise IRError(f"negation of {e.dtype}", 'cast first: x.astype("int32")')
    if isinstance(e, FloatImm):
        return FloatImm(-e.value, e.type)
    zero = -0.0 if dt.is_float(e.dtype) else 0            # -0.0 - x keeps the sign of zero
    return binary("sub", const(zero, e.dtype), e)


def logical_not(a: Any) -> Expr:
    """True where the condition is false."""
    e = convert(a)
    if not dt.is_bool(e.dtype):
        raise IRError(f"`not` needs a bool, got {e.dtype}", "compare first: x == 0")
    if isinstance(e, IntImm):
        return IntImm(1 - e.value, "bool")
    return e.a if isinstance(e, Not) else Not(e)


@register_hook("tir.bitwise_not")
def bitwise_not(e: Expr) -> Expr:
    if dt.is_bool(e.dtype):
        return logical_not(e)
    return intrinsic("bitwise_not", e)


@register_hook("tir.absolute")
def absolute(e: Expr) -> Expr:
    return e if dt.is_unsigned(e.dtype) else intrinsic("abs", e)


@register_hook("tir.power")
def power(a: Any, b: Any) -> Expr:
    """a to the power of b, of floats: a ** b."""
    x, y = match_types(a, b)
    if not dt.is_float(x.dtype):
        raise IRError(f"`**` on {x.dtype}", 'cast first: x.astype("float32")')
    return intrinsic("pow", x, y)


_ROUNDING = ("floor", "ceil", "trunc", "round", "nearbyint")


def intrinsic(name: str, *args: Any, dtype: str | None = None) -> Expr:
    """name(*args) for a row of INTRINSICS. Math functions of integers are refused. Raises IRError."""
    row = INTRINSICS.get(name)
    if row is None:
        raise IRError(f"there is no function {name!r}", f"the functions are {', '.join(sorted(INTRINSICS))}")
    if row.arity >= 0 and len(args) != row.arity:
        raise IRError(f"{name} takes {row.arity} argument(s), {len(args)} given")
    exprs = match_all(*args) if row.operands else tuple(convert(a) for a in args)
    if name in _ROUNDING and not dt.is_float(exprs[0].dtype):
        return exprs[0]                                    # integers and bools are round
    types = ", ".join(e.dtype for e in exprs)
    if row.operands == "float" and not all(dt.is_float(e.dtype) for e in exprs):
        raise IRError(f"{name} of {types}", f'cast first: {name}(x.astype("float32"))')
    if row.operands == "integer" and not all(dt.is_integer(e.dtype) for e in exprs):
        raise IRError(f"{name} needs an integer, got {types}")
    return Call(name, exprs, dtype or result_type(name, exprs))


def result_type(name: str, args: tuple[Expr, ...]) -> str:
    """The dtype that a call of intrinsic `name` has when none is given."""
    if INTRINSICS[name].predicate:
        return dt.with_lanes("bool", dt.lanes_of(args[0].dtype))
    if INTRINSICS[name].kind == "effect" or not args:
        return "int32"
    return args[-1].dtype


def if_then_else(condition: Any, a: Any, b: Any) -> Expr:
    """a where condition holds, else b; only the chosen one is evaluated."""
    c, x, y = _chosen("if_then_else", condition, a, b)
    if isinstance(c, IntImm):
        return x if c.value else y
    return Call("if_then_else", (c, x, y), x.dtype)


def select(condition: Any, a: Any, b: Any) -> Expr:
    """a where condition holds, else b; both may be evaluated."""
    return Select(*_chosen("select", condition, a, b))


def _chosen(what: str, condition: Any, a: Any, b: Any) -> tuple[Expr, Expr, Expr]:
    c = convert(condition)
    if not dt.is_bool(c.dtype):
        raise IRError(f"{what}: the condition is {c.dtype}", "compare first: x != 0")
    return c, *match_types(a, b)


def truncdiv(a: Any, b: Any) -> Expr:
    """a / b of integers, rounded to zero as in C."""
    return binary("truncdiv", a, b)


def truncmod(a: Any, b: Any) -> Expr:
    """a - b * truncdiv(a, b): the remainder with the sign of a, as in C."""
    return binary("truncmod", a, b)


def floordiv(a: Any, b: Any) -> Expr:
    """a // b: the quotient rounded to minus infinity, as in Python."""
    return binary("floordiv", a, b)


def floormod(a: Any, b: Any) -> Expr:
    """a % b: a - b * floordiv(a, b), the remainder with the sign of b, as in Python."""
    return binary("floormod", a, b)


def minimum(a: Any, b: Any) -> Expr:
    """The smaller of two numbers; NaN where one is NaN."""
    return binary("min", a, b)


def maximum(a: Any, b: Any) -> Expr:
    """The larger of two numbers; NaN where one is NaN."""
    return binary("max", a, b)


def all_of(*conditions: Any) -> Expr:
    """True when every condition holds; True for none."""
    out: Expr = IntImm(1, "bool")
    for c in conditions:
        out = binary("and", out, c)
    return out


def conjuncts(condition: Expr, through_likely: bool = False) -> list[Expr]:
    """The terms of a conjunction, left to right, without the constant True; with through_likely, of what that marks."""
    if type(condition) is Binary and condition.op == "and":
        return conjuncts(condition.a, through_likely) + conjuncts(condition.b, through_likely)
    if through_likely and type(condition) is Call and condition.op == "likely":
        return conjuncts(condition.args[0], through_likely)
    return [] if type(condition) is IntImm and condition.value else [condition]


def any_of(*conditions: Any) -> Expr:
    """True when some condition holds; False for none."""
    out: Expr = IntImm(0, "bool")
    for c in conditions:
        out = binary("or", out, c)
    return out


def ceildiv(a: Any, b: Any) -> Expr:
    """a / b rounded up, as (a + b - 1) // b, b > 0."""
    x, y = match_types(a, b)
    return binary("floordiv", binary("add", x, binary("sub", y, 1)), y)
