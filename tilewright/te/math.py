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
from tilewright.tir.verify.types import reinterpret_mismatch

__all__ = [
    "abs", "acos", "all", "any", "asin", "atan", "atan2", "call_extern", "call_packed", "ceil", "clz", "copysign",
    "cos", "cosh", "div", "erf", "exp", "exp10", "exp2", "expm1", "fabs", "floor", "fma", "fmod", "infinity",
    "isfinite", "isinf", "isnan", "likely", "log", "log10", "log1p", "log2", "nearbyint", "popcount", "pow",
    "power", "reinterpret", "round", "rsqrt", "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
]
# What each function of numbers in the operator table gives, for x, or for a, b, c.
MEANING = {
    "exp": "e to the power of x", "exp2": "2 to the power of x", "expm1": "exp(x) - 1, which keeps small x",
    "log": "the natural logarithm of x", "log2": "the logarithm of x to the base 2",
    "log10": "the logarithm of x to the base 10", "log1p": "log(1 + x), which keeps small x",
    "sqrt": "the square root of x", "rsqrt": "1 / sqrt(x)",
    "sin": "the sine of x, in radians", "cos": "the cosine of x, in radians", "tan": "the tangent of x, in radians",
    "asin": "the angle between -pi/2 and pi/2 whose sine is x", "acos": "the angle between 0 and pi whose cosine is x",
    "atan": "the angle between -pi/2 and pi/2 whose tangent is x",
    "sinh": "(exp(x) - exp(-x)) / 2", "cosh": "(exp(x) + exp(-x)) / 2", "tanh": "sinh(x) / cosh(x)",
    "asinh": "the number whose sinh is x", "acosh": "the number of at least 0 whose cosh is x",
    "atanh": "the number whose tanh is x", "sigmoid": "1 / (1 + exp(-x))",
    "erf": "2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x",
    "floor": "the largest integer that is not above x", "ceil": "the smallest integer that is not below x",
    "trunc": "x without its fraction", "round": "the integer next to x, the even one of two",
    "nearbyint": "the integer next to x, the even one of two",
    "pow": "a to the power of b", "atan2": "the angle of the point (b, a), between -pi and pi",
    "hypot": "sqrt(a * a + b * b), without overflow on the way",
    "fmod": "a - b * trunc(a / b), exactly: the remainder with the sign of a, as in C",
    "copysign": "|a| with the sign of b", "fma": "a * b + c, rounded once",
    "isnan": "True where x is no number", "isinf": "True where x is an infinity",
    "isfinite": "True where x is neither an infinity nor NaN",
    "popcount": "how many bits of x are 1", "clz": "how many bits of x above its highest 1 are 0",
    "bitwise_not": "x with every bit the other way, as ~x",
}


def _parameters(name: str) -> str:
    arity = INTRINSICS[name].arity
    return "x" if arity == 1 else ", ".join("abc"[:arity])


def _function(name: str) -> Callable[..., Expr]:
    def function(*args: Any) -> Expr:
        return intrinsic(name, *args)
    function.__name__ = function.__qualname__ = name
    meaning = f": {MEANING[name]}" if name in MEANING else ""              # rows of extensions have none
    function.__doc__ = f"{name}({_parameters(name)}) of {INTRINSICS[name].operands}s{meaning}."
    return function


# Every function of numbers in the operator table. Those that programs mostly use are named below, for type checkers.
FUNCTIONS = {name: _function(name) for name, row in INTRINSICS.items() if row.operands}

exp, exp2 = FUNCTIONS["exp"], FUNCTIONS["exp2"]
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
        return intrinsic(name, x)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{name}(x) of a float: {MEANING[name]}; an integer or a bool is its own rounding."
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
