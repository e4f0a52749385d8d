"""What NumPy, `math` and Python's own conversions do with expressions: operators work, the rest says what to use."""
from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from tilewright.support.errors import IRError

# NumPy's functions that are operators: what the first operand is asked for, what the second one
_OPERATORS = {
    "add": ("__add__", "__radd__"), "subtract": ("__sub__", "__rsub__"), "multiply": ("__mul__", "__rmul__"),
    "divide": ("__truediv__", "__rtruediv__"), "floor_divide": ("__floordiv__", "__rfloordiv__"),
    "remainder": ("__mod__", "__rmod__"), "power": ("__pow__", "__rpow__"),
    "bitwise_and": ("__and__", "__rand__"), "bitwise_or": ("__or__", "__ror__"),
    "bitwise_xor": ("__xor__", "__rxor__"), "left_shift": ("__lshift__", "__rlshift__"),
    "right_shift": ("__rshift__", "__rrshift__"), "less": ("__lt__", "__gt__"), "less_equal": ("__le__", "__ge__"),
    "greater": ("__gt__", "__lt__"), "greater_equal": ("__ge__", "__le__"), "equal": ("__eq__", "__eq__"),
    "not_equal": ("__ne__", "__ne__"),
}
# NumPy's functions under other names than te's
_INSTEAD = {
    "arcsin": "te.asin(x)", "arccos": "te.acos(x)", "arctan": "te.atan(x)", "arctan2": "te.atan2(a, b)",
    "arcsinh": "te.asinh(x)", "arccosh": "te.acosh(x)", "arctanh": "te.atanh(x)",
    "maximum": "te.max(a, b)", "fmax": "te.max(a, b)", "minimum": "te.min(a, b)", "fmin": "te.min(a, b)",
    "absolute": "te.abs(x)", "fabs": "te.abs(x)", "rint": "te.nearbyint(x)", "logical_and": "te.all(a, b)",
    "logical_or": "te.any(a, b)", "logical_not": "x == 0, or ~x of a bool", "negative": "-x", "square": "x * x",
    "reciprocal": "1 / x", "sign": "te.if_then_else", "matmul": "te.sum over a te.reduce_axis",
    "clip": "te.min(te.max(x, low), high)", "float_power": "te.power(a, b)", "invert": "~x",
    "divmod": "te.floordiv and te.floormod",
}
_REDUCTIONS = {"add": "te.sum(A[i, k], axis=k)", "maximum": "te.max(A[i, k], axis=k)",
               "minimum": "te.min(A[i, k], axis=k)"}
_NAMED = frozenset((
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh",
    "floor", "ceil", "trunc", "isnan", "isinf", "isfinite", "fmod", "copysign"))


def ufunc(expression: type, function: Any, method: str, inputs: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """NumPy's `function` of operands of which one is an `expression`: an operator, or IRError with te's function."""
    name = str(function.__name__)
    inputs = tuple(x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x for x in inputs)
    if method == "__call__" and not options and name in _OPERATORS and len(inputs) == 2:
        forward, backward = _OPERATORS[name]
        a, b = inputs
        out = getattr(a, forward)(b) if isinstance(a, expression) else getattr(b, backward)(a)
        return out if out is not NotImplemented else name == "not_equal"
    if method == "__call__" and name in _OPERATORS:
        hint = "an array of NumPy cannot hold it: write a te.compute"
    elif method != "__call__":
        hint = _REDUCTIONS.get(name, "write a te.compute, with a te.reduce_axis for what is reduced")
    else:
        hint = instead(name) or "the functions of expressions are in te"
    called = f"np.{name}" if method == "__call__" else f"np.{name}.{method}"
    raise IRError(f"{called} computes now, and the value of an expression is known only when the kernel runs", hint)


def instead(name: str) -> str:
    """What to write for a function of NumPy, in the names of te; "" where there is nothing."""
    return f"te.{name}(x)" if name in _NAMED else _INSTEAD.get(name, "")


def number(how: str, hint: str) -> NoReturn:
    """Refuse to be a Python number."""
    raise IRError(f"{how} of an expression: its value is known only when the kernel runs", hint)
