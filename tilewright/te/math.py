"""Scalar functions of tensor expressions, each elementwise on floats unless its docstring says otherwise."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.support.errors import TensorExpressionError
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, all_of, any_of, binary, intrinsic, power
from tilewright.tir.buffer import Buffer, pointer
from tilewright.tir.conversion import convert, match_types
from tilewright.tir.expr import Call, Expr, FloatImm, StringImm
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.verify_types import reinterpret_mismatch


def _function(name: str) -> Callable[..., Expr]:
    def function(*args: Any) -> Expr:
        return intrinsic(name, *args)
    row = INTRINSICS[name]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}({', '.join('abcdefgh'[:row.arity])}) of {row.operands}s."
    return function


# Every function of numbers in the operator table. Those that programs mostly use are named below, for type checkers.
FUNCTIONS = {name: _function(name) for name, row in INTRINSICS.items() if row.operands}

exp, exp2, exp10 = FUNCTIONS["exp"], FUNCTIONS["exp2"], lambda x: power(10.0, x)
expm1, log1p = FUNCTIONS["expm1"], FUNCTIONS["log1p"]
log, log2, log10 = FUNCTIONS["log"], FUNCTIONS["log2"], FUNCTIONS["log10"]
sqrt, rsqrt = FUNCTIONS["sqrt"], FUNCTIONS["rsqrt"]
sin, cos, tan = FUNCTIONS["sin"], FUNCTIONS["cos"], FUNCTIONS["tan"]
asin, acos, atan = FUNCTIONS["asin"], FUNCTIONS["acos"], FUNCTIONS["atan"]
sinh, cosh, tanh = FUNCTIONS["sinh"], FUNCTIONS["cosh"], FUNCTIONS["tanh"]
sigmoid, erf = FUNCTIONS["sigmoid"], FUNCTIONS["erf"]
isnan, isinf, isfinite = FUNCTIONS["isnan"], FUNCTIONS["isinf"], FUNCTIONS["isfinite"]
popcount, clz = FUNCTIONS["popcount"], FUNCTIONS["clz"]
atan2, fmod, copysign, fma = FUNCTIONS["atan2"], FUNCTIONS["fmod"], FUNCTIONS["copysign"], FUNCTIONS["fma"]
hypot = FUNCTIONS["hypot"]
pow = power


def _rounding(name: str) -> Callable[[Any], Expr]:
    def function(x: Any) -> Expr:
        e = convert(x)
        return e if dt.is_integer(e.dtype) else intrinsic(name, e)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(x) of a float; an integer is its own rounding."
    return function


floor, ceil, trunc = _rounding("floor"), _rounding("ceil"), _rounding("trunc")
round, nearbyint = _rounding("round"), _rounding("nearbyint")


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
    """The infinity of a float dtype."""
    return FloatImm(float("inf"), dt.canonical(dtype))


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
