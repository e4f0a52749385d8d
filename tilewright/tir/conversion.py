"""Values as expressions: constants, casts, operands brought to one dtype."""
from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tilewright.support.errors import IRError, described
from tilewright.support.registry import register_hook
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Broadcast, Cast, Expr, FloatImm, IntImm, StringImm
from tilewright.tir.iter_var import IterVar

_FLOATS: Any = (float, np.floating, *(dt.numpy_dtype(small).type for small in dt.SMALL_FLOATS))
_NUMBERS: Any = (int, np.number, *_FLOATS)
_VALUES: Any = (*_NUMBERS, np.bool_)

@register_hook("tir.convert")
def convert(x: Any, dtype: str | None = None) -> Expr:
    """x as an Expr: a Python or NumPy number becomes a constant, of `dtype` or as `const` chooses."""
    if isinstance(x, Expr):
        return x
    if isinstance(x, IterVar):
        return x.var
    to_expr = getattr(x, "__tilewright_expr__", None)
    if to_expr is not None:
        return to_expr()
    if isinstance(x, str):
        return StringImm(x)
    if isinstance(x, _VALUES):
        return const(x, dtype)
    raise IRError(f"{described(x)} is not an expression", "expected a number, a Var, an axis or an indexed tensor")


def const(value: Any, dtype: str | None = None) -> Expr:
    """A constant of dtype (a Broadcast of one when dtype is a vector). Raises IRError where it does not fit.

    Without a dtype a NumPy number has its own, an int is int32 or, where it needs to be, int64, and a float is float32
    or, where it is too large for that, float64.
    """
    plain = dtype is None or isinstance(dtype, str) and dtype == "int32"
    if plain and type(value) is int and -0x80000000 <= value < 0x80000000:
        return IntImm(value)                             # most constants
    if type(value) not in (int, float) and not isinstance(value, _VALUES):
        raise IRError(f"{described(value)} is not a number")
    if dtype is None:
        dtype = _own_dtype(value)
    element, lanes = dt.parse(dtype if isinstance(dtype, str) else dt.canonical(dtype))
    if lanes > 1:
        return Broadcast(const(value, element), lanes)
    if dt.is_float(element):
        return FloatImm(_float(value, element), element)
    if isinstance(value, _FLOATS):
        if not float(value).is_integer():
            raise IRError(f"the constant {value} is not an integer, and {element} holds nothing else",
                          'where it stands beside an operand, cast that first: x.astype("float32")')
        value = int(value)
    low, high = dt.integer_range(element)
    if not low <= int(value) <= high:
        raise IRError(f"the constant {value} does not fit {element} ({low} to {high})")
    return IntImm(int(value), element)


def _own_dtype(value: Any) -> str:
    """The dtype of a number of Python or NumPy."""
    if isinstance(value, np.generic):
        return dt.canonical(value.dtype)
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int32" if -2**31 <= value < 2**31 else "int64"
    if abs(value) <= dt.largest("float32") or not math.isfinite(value):
        return "float32"
    return "float64" if math.isinf(dt.nearest(value, "float32")) else "float32"


def _float(value: Any, dtype: str) -> float:
    """A number as a float that is finite in dtype if the number is. Raises IRError where it is too large."""
    try:
        x = float(value)
    except OverflowError:                        # an int of more than 1024 bits
        x = math.inf
    if abs(x) <= dt.largest(dtype):              # most constants
        return x
    if not math.isfinite(dt.nearest(x, dtype)) and (math.isfinite(x) or isinstance(value, int)):
        small, largest = dt.SMALL_FLOATS.get(dtype), dt.largest(dtype)
        raise IRError(f"the constant {described(value)} does not fit {dtype} ({-largest:g} to {largest:g})",
                      'an infinity is written float("inf")' if not small or small.infinity else "")
    return x


def is_const(e: Any, value: float | None = None) -> bool:
    """True when e is a scalar constant (equal to value, if given)."""
    return isinstance(e, (IntImm, FloatImm)) and (value is None or e.value == value)


@register_hook("tir.cast")
def cast(dtype: str, value: Any) -> Expr:
    """value converted to dtype; constants convert at once, equal types give value itself.

    Raises IRError for pointers, and for a vector of another number of lanes (a scalar becomes a vector of copies).
    """
    e, dtype = convert(value), dt.canonical(dtype)
    if e.dtype == dtype:
        return e
    _check_cast(e.dtype, dtype)
    if dt.lanes_of(dtype) == 1 and isinstance(e, (IntImm, FloatImm)):
        if dt.is_float(dtype):
            own = dt.nearest(e.value, e.dtype)               # rounded to its own type first
            there = dt.nearest(own, dtype)
            return FloatImm(own if math.isfinite(there) else there, dtype)
        if isinstance(e, IntImm) and dt.integer_range(dtype)[0] <= e.value <= dt.integer_range(dtype)[1]:
            return IntImm(e.value, dtype)
    if dt.lanes_of(e.dtype) == 1 and dt.lanes_of(dtype) > 1:
        return Broadcast(cast(dt.element_of(dtype), e), dt.lanes_of(dtype))
    return Cast(dtype, e)


def _check_cast(source: str, target: str) -> None:
    if "handle" in (source, target):
        raise IRError(f"a cast of {source} to {target}: a pointer is no number")
    lanes = dt.lanes_of(source)
    if lanes not in (1, dt.lanes_of(target)):
        raise IRError(f"a cast of {source} to {target}: a vector keeps its lanes",
                      f'x.astype("{dt.with_lanes(dt.element_of(target), lanes)}")')


def match_types(a: Any, b: Any) -> tuple[Expr, Expr]:
    """Both operands as expressions of one dtype: numbers take the other's type, the rest promotes."""
    if isinstance(a, Expr):                              # the usual cases, which the rest would answer alike
        if type(b) is int:
            return a, _adapt(b, a.dtype)
        if isinstance(b, Expr) and a.dtype == b.dtype:
            return a, b
    for operand in (a, b):
        if isinstance(operand, str):
            raise IRError(f"the operand {operand!r} is a string, not a number or an expression")
    number_a, number_b = isinstance(a, _NUMBERS), isinstance(b, _NUMBERS)
    if number_a and not number_b:
        y = _beside(a, convert(b))
        return _adapt(a, y.dtype), y
    if number_b and not number_a:
        x = _beside(b, convert(a))
        return x, _adapt(b, x.dtype)
    x, y = convert(a), convert(b)
    if x.dtype == y.dtype:
        return x, y
    common = dt.promote(x.dtype, y.dtype)
    return cast(common, x), cast(common, y)


def match_all(*args: Any) -> tuple[Expr, ...]:
    """All operands as expressions of one dtype, by the rules of `match_types`."""
    numbers = [isinstance(a, _NUMBERS) for a in args]
    given = [convert(a) for a, number in zip(args, numbers, strict=True) if not number]
    if not given:
        return tuple(convert(a) for a in args)
    common = functools.reduce(dt.promote, [e.dtype for e in given])
    for a, number in zip(args, numbers, strict=True):
        if number:
            common = _float_of(a, common) or common
    pairs = zip(args, numbers, strict=True)
    return tuple(_adapt(a, common) if number else cast(common, a) for a, number in pairs)


def _float_of(number: Any, dtype: str) -> str | None:
    """The type of a float beside an integer of dtype: that of a NumPy float, else float32. None for other pairs."""
    if not isinstance(number, _FLOATS) or not dt.is_integer(dtype):
        return None
    return dt.with_lanes("float32" if isinstance(number, float) and not isinstance(number, np.floating)
                         else dt.canonical(type(number)), dt.lanes_of(dtype))


def _beside(number: Any, e: Expr) -> Expr:
    """e in the type that it has beside a number."""
    common = _float_of(number, e.dtype)
    return e if common is None else cast(common, e)


def _adapt(value: Any, dtype: str) -> Expr:
    """A number in dtype, the type of the operand beside it."""
    if type(value) is int and dtype in ("int32", "int64") and -0x80000000 <= value < 0x80000000:
        return IntImm(value, dtype)
    if isinstance(value, _FLOATS) and not dt.is_float(dtype):
        raise IRError(f"the float {value} is combined with an operand of type {dtype}",
                      'cast the operand first: x.astype("float32")')
    if dt.is_bool(dtype) and not isinstance(value, (bool, np.bool_)):
        raise IRError(f"the number {value} is combined with a bool", 'cast the bool first: x.astype("int32")')
    return const(value, dtype)


def min_value(dtype: str) -> Expr:
    """The smallest value of dtype; -inf for floats that have one (the identity of max)."""
    return _limit(dt.canonical(dtype), 0)


def max_value(dtype: str) -> Expr:
    """The largest value of dtype; inf for floats that have one (the identity of min)."""
    return _limit(dt.canonical(dtype), 1)


def _limit(dtype: str, end: int) -> Expr:
    return const((dt.float_limits if dt.is_float(dtype) else dt.integer_range)(dtype)[end], dtype)
