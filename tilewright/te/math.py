"""Scalar functions of tensor expressions, each elementwise on floats unless its docstring says otherwise."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.support.errors import TensorExpressionError
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, all_of, any_of, binary, intrinsic, power
from tilewright.tir.buffer import Buffer, pointer
from tilewright.tir.conversion import convert, match_types, max_value
from tilewright.tir.expr import Call, Expr, StringImm
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.verify.types import reinterpret_mismatch

__all__ = [
    "abs", "acos", "acosh", "all", "any", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_not", "call_extern",
    "call_packed", "ceil", "clz", "copysign", "cos", "cosh", "div", "erf", "exp", "exp10", "exp2", "expm1", "fabs",
    "floor", "fma", "fmod", "hypot", "infinity", "isfinite", "isinf", "isnan", "likely", "log", "log10", "log1p",
    "log2", "nearbyint", "popcount", "pow", "power", "reinterpret", "round", "rsqrt", "sigmoid", "sin", "sinh",
    "sqrt", "tan", "tanh", "trunc",
]


def _parameters(name: str) -> str:
    arity = INTRINSICS[name].arity
    return "x" if arity == 1 else ", ".join("abc"[:arity])


def _function(name: str) -> Callable[..., Expr]:
    def function(*args: Any) -> Expr:
        return intrinsic(name, *args)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}({_parameters(name)}) of {INTRINSICS[name].operands}s: {INTRINSICS[name].meaning}."
    return function


# Every function of numbers in the operator table, each named below: type checkers know what a program names.
FUNCTIONS = {name: _function(name) for name, row in INTRINSICS.items() if row.operands}

exp, exp2 = FUNCTIONS["exp"], FUNCTIONS["exp2"]
expm1, log1p = FUNCTIONS["expm1"], FUNCTIONS["log1p"]
log, log2, log10 = FUNCTIONS["log"], FUNCTIONS["log2"], FUNCTIONS["log10"]
sqrt, rsqrt = FUNCTIONS["sqrt"], FUNCTIONS["rsqrt"]
sin, cos, tan = FUNCTIONS["sin"], FUNCTIONS["cos"], FUNCTIONS["tan"]
asin, acos, atan = FUNCTIONS["asin"], FUNCTIONS["acos"], FUNCTIONS["atan"]
asinh, acosh, atanh = FUNCTIONS["asinh"], FUNCTIONS["acosh"], FUNCTIONS["atanh"]
sinh, cosh, tanh = FUNCTIONS["sinh"], FUNCTIONS["cosh"], FUNCTIONS["tanh"]
sigmoid, erf = FUNCTIONS["sigmoid"], FUNCTIONS["erf"]
isnan, isinf, isfinite = FUNCTIONS["isnan"], FUNCTIONS["isinf"], FUNCTIONS["isfinite"]
popcount, clz = FUNCTIONS["popcount"], FUNCTIONS["clz"]
atan2, fmod, copysign, fma = FUNCTIONS["atan2"], FUNCTIONS["fmod"], FUNCTIONS["copysign"], FUNCTIONS["fma"]
hypot, bitwise_not = FUNCTIONS["hypot"], FUNCTIONS["bitwise_not"]
pow = power


def _rounding(name: str) -> Callable[[Any], Expr]:
    def function(x: Any) -> Expr:
        return intrinsic(name, x)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(x) of a float: {INTRINSICS[name].meaning}; an integer or a bool is its own rounding."
    return function


floor, ceil, trunc = _rounding("floor"), _rounding("ceil"), _rounding("trunc")
round, nearbyint = _rounding("round"), _rounding("nearbyint")


def exp10(x: Any) -> Expr:
    """10 to the power of x, of a float: pow(10, x)."""
    return power(10.0, x)


def abs(x: Any) -> Expr:
    """|x| of a float or an integer."""
    return absolute(convert(x))


fabs = abs                                   # by C's name


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
    """The infinity of a float dtype. Raises TensorExpressionError where there is none."""
    name = dt.canonical(dtype)
    if not dt.is_float(name) or math.isfinite(dt.float_limits(name)[1]):
        raise TensorExpressionError(f"{name} has no infinity", f'te.max_value("{name}") is its largest value')
    return max_value(name)


def reinterpret(dtype: str, x: Any) -> Expr:
    """The bits of x read as dtype of the same size; the lanes may differ: four uint8 make an int32."""
    e, dtype = convert(x), dt.canonical(dtype)
    wrong = reinterpret_mismatch(e.dtype, dtype)
    if wrong:
        raise TensorExpressionError(f"reinterpret: {wrong}")
    return Call("reinterpret", (e,), dtype)


def _argument(x: Any) -> Expr:
    """A call argument; a buffer becomes access_ptr(its first element, its extents...)."""
    if isinstance(x, Buffer):
        return pointer(x)
    return convert(x)


def call_packed(name: str, *args: Any) -> Expr:
    """Call the registered packed function `name`; buffers are passed as tensors. For the body of `extern`."""
    return Call("call_packed", (StringImm(name), *map(_argument, args)), "int32")


def call_extern(dtype: str, name: str, *args: Any) -> Expr:
    """Call the C function `name` that gives dtype; a buffer is passed as the address of its first element."""
    return Call("call_extern", (StringImm(name), *map(_argument, args)), dt.canonical(dtype))
