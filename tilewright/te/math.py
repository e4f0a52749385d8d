"""Scalar functions of tensor expressions, each elementwise on floats unless its docstring says otherwise."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.support.errors import TensorExpressionError
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import (
    Call,
    Expr,
    FloatImm,
    IntImm,
    StringImm,
    absolute,
    all_of,
    any_of,
    binary,
    convert,
    intrinsic,
    match_types,
    power,
)


def _elementwise(name: str) -> Callable[[Any], Expr]:
    def function(x: Any) -> Expr:
        return intrinsic(name, x)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(x) of a float."
    return function


exp, exp2, exp10 = _elementwise("exp"), _elementwise("exp2"), lambda x: power(10.0, x)
expm1, log1p = _elementwise("expm1"), _elementwise("log1p")
log, log2, log10 = _elementwise("log"), _elementwise("log2"), _elementwise("log10")
sqrt, rsqrt = _elementwise("sqrt"), _elementwise("rsqrt")
sin, cos, tan = _elementwise("sin"), _elementwise("cos"), _elementwise("tan")
asin, acos, atan = _elementwise("asin"), _elementwise("acos"), _elementwise("atan")
sinh, cosh, tanh = _elementwise("sinh"), _elementwise("cosh"), _elementwise("tanh")
sigmoid, erf = _elementwise("sigmoid"), _elementwise("erf")
isnan, isinf, isfinite = _elementwise("isnan"), _elementwise("isinf"), _elementwise("isfinite")
popcount, clz = _elementwise("popcount"), _elementwise("clz")


def _rounding(name: str) -> Callable[[Any], Expr]:
    def function(x: Any) -> Expr:
        e = convert(x)
        return e if dt.is_integer(e.dtype) else intrinsic(name, e)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(x) of a float; an integer is its own rounding."
    return function


floor, ceil, trunc = _rounding("floor"), _rounding("ceil"), _rounding("trunc")
round, nearbyint = _rounding("round"), _rounding("nearbyint")


def _two(name: str) -> Callable[[Any, Any], Expr]:
    def function(a: Any, b: Any) -> Expr:
        return intrinsic(name, *match_types(a, b))
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(a, b) of floats."
    return function


atan2, fmod, copysign = _two("atan2"), _two("fmod"), _two("copysign")
pow = power


def fma(a: Any, b: Any, c: Any) -> Expr:
    """a * b + c rounded once."""
    x, y = match_types(a, b)
    x, z = match_types(x, c)
    return intrinsic("fma", *match_types(x, y), match_types(x, z)[1])


def abs(x: Any) -> Expr:
    """|x| of a float or an integer."""
    return absolute(convert(x))


def all(*conditions: Any) -> Expr:
    """True when every condition holds."""
    return all_of(*conditions)


def any(*conditions: Any) -> Expr:
    """True when some condition holds."""
    return any_of(*conditions)


def likely(condition: Any) -> Expr:
    """condition, marked as nearly always true."""
    return intrinsic("likely", condition)


def div(a: Any, b: Any) -> Expr:
    """a / b: rounded to zero on integers, as in C."""
    x, y = match_types(a, b)
    return binary("div" if dt.is_float(x.dtype) else "truncdiv", x, y)


def infinity(dtype: str = "float32") -> Expr:
    """The infinity of a float dtype."""
    return FloatImm(float("inf"), dt.canonical(dtype))


def reinterpret(dtype: str, x: Any) -> Expr:
    """The bits of x read as dtype of the same size."""
    e, dtype = convert(x), dt.canonical(dtype)
    if dt.bits_of(e.dtype) != dt.bits_of(dtype):
        raise TensorExpressionError(f"reinterpret: {e.dtype} and {dtype} have different sizes")
    return Call("reinterpret", (e,), dtype)


def _argument(x: Any) -> Expr:
    """A call argument; a buffer becomes access_ptr(its first element, its extents...)."""
    if isinstance(x, Buffer):
        zeros = tuple(IntImm(0, d.dtype) for d in x.shape)
        return Call("access_ptr", (Load(x, zeros), *x.shape), "handle")
    return convert(x)


def call_packed(name: str, *args: Any) -> Expr:
    """Call the registered packed function `name`; buffers are passed as tensors. For the body of `extern`."""
    return Call("call_packed", (StringImm(name), *map(_argument, args)), "int32")


def call_extern(dtype: str, name: str, *args: Any) -> Expr:
    """Call the C function `name` that gives dtype; a buffer is passed as the address of its first element."""
    return Call("call_extern", (StringImm(name), *map(_argument, args)), dt.canonical(dtype))
