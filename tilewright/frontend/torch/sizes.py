"""Sizes: PyTorch's symbolic integers as numbers or expressions of size variables."""
from __future__ import annotations

import math
import operator as python_operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from tilewright import te
from tilewright.graph.ir.types import size
from tilewright.support.errors import ImportModelError
from tilewright.support.names import identifier
from tilewright.tir import Expr
from tilewright.tir.conversion import convert

Number = int | float | bool | Expr
_GREATEST = 2 ** 8                   # of a scale and of the number below its fraction: products with sizes stay exact


def number(x: Any, known: Mapping[str, int] | None = None) -> Number:
    """An int, a float, a SymInt, SymFloat or SymBool. known: the values of symbols that are no variables.

    Raises ImportModelError for what depends on data, and for expressions that sizes have not.
    """
    if isinstance(x, (bool, int, float)):
        return x
    return expression(x.node.expr, known or {})


def expression(e: Any, known: Mapping[str, int] | None = None) -> Number:
    """A sympy expression of PyTorch's shape environment."""
    known = known or {}
    if e.is_Symbol:
        return known[e.name] if e.name in known else symbol(e.name)
    if e.is_Boolean and e in (True, False):
        return bool(e)
    if e.is_Integer:
        return int(e)
    if e.is_number and e.is_real:
        return float(e)
    name = type(e).__name__
    if name in ("FloorDiv", "CleanDiv"):
        quotient, rest = (e.args[0] / e.args[1]).cancel().as_numer_denom()
        if rest == 1:                                   # a product of sizes divided by one of them
            return expression(quotient, known)
    if name in _WHOLE:
        return _whole(name, e.args[0], known)
    make = _FUNCTIONS.get(name)
    if make is None:
        raise ImportModelError(f"the size {e} is made by {name}, which sizes do not have")
    return make(*(expression(a, known) for a in e.args))


def _whole(name: str, e: Any, known: Mapping[str, int]) -> Number:
    """A float expression as an integer: of a size times a fraction of small integers their quotient.

    Raises ImportModelError for others: what is rounded in floats is no expression of sizes.
    """
    value = expression(e, known)
    if not isinstance(value, Expr):
        return _WHOLE[name](value)
    factors = e.args if type(e).__name__ in ("Mul", "FloatMul") else (e,)
    sizes = [a for a in factors if not a.is_number]
    ratio = Fraction(math.prod(float(a) for a in factors if a.is_number))
    if len(sizes) != 1 or type(sizes[0]).__name__ != "ToFloat" or not 0 <= ratio <= _GREATEST \
            or ratio.denominator > _GREATEST or name == "RoundToInt" \
            or name == "TruncToInt" and not sizes[0].args[0].is_nonnegative:
        raise ImportModelError(f"the size {name}({e}) is computed with floats",
                               "use scales that are fractions with a power of two below, or sizes instead of scales")
    whole, above = expression(sizes[0].args[0], known) * ratio.numerator, ratio.denominator
    return te.floordiv(whole + (above - 1 if name == "CeilToInt" else 0), above)


def symbol(name: str) -> Expr:
    """The size variable of a symbol. Raises ImportModelError for one that depends on the elements of tensors."""
    if name.startswith(("u", "zu", "zf")) and name.lstrip("uzf").isdigit():
        raise ImportModelError(f"the size {name} follows from elements of a tensor, and sizes must follow from shapes")
    return size(identifier(name))


def _folded(constant: Callable[..., Any], symbolic: Callable[..., Any]) -> Callable[..., Any]:
    """One operation on numbers, another one where an argument is an expression."""
    def make(*arguments: Any) -> Any:
        if not any(isinstance(a, Expr) for a in arguments):
            return constant(*arguments)
        return symbolic(*(convert(a) for a in arguments))
    return make


def _chain(operation: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def make(*arguments: Any) -> Any:
        result = arguments[0]
        for a in arguments[1:]:
            result = operation(result, a)
        return result
    return make


def _power(base: Any, exponent: Any) -> Any:
    if isinstance(exponent, int) and exponent >= 0 and isinstance(base, Expr):
        return math.prod([base] * exponent, start=1)
    if isinstance(base, Expr) or isinstance(exponent, Expr):
        raise ImportModelError(f"the size {base} ** {exponent} is no product of sizes")
    return base ** exponent


def _real(x: Any) -> Any:
    return te.cast("float64", x) if isinstance(x, Expr) else float(x)


_WHOLE: dict[str, Callable[[Any], int]] = {"FloorToInt": math.floor, "CeilToInt": math.ceil, "TruncToInt": math.trunc,
                                           "RoundToInt": round}
_floor_div = _folded(lambda a, b: a // b, te.floordiv)
_mod = _folded(lambda a, b: a % b, te.floormod)
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Add": _chain(lambda a, b: a + b), "Mul": _chain(lambda a, b: a * b), "Pow": _power, "PowByNatural": _power,
    "FloorDiv": _floor_div, "CleanDiv": _floor_div, "Mod": _mod, "PythonMod": _mod,
    "CeilDiv": _folded(lambda a, b: -(-a // b), lambda a, b: te.floordiv(a + b - 1, b)),
    "Max": _chain(_folded(max, te.maximum)), "Min": _chain(_folded(min, te.minimum)),
    "ToFloat": _real, "FloatTrueDiv": lambda a, b: a / b, "IntTrueDiv": lambda a, b: _real(a) / _real(b),
    "Equality": python_operator.eq, "Unequality": python_operator.ne, "StrictLessThan": python_operator.lt,
    "LessThan": python_operator.le, "StrictGreaterThan": python_operator.gt, "GreaterThan": python_operator.ge,
    "Identity": lambda x: x, "FloatPow": _folded(lambda a, b: a ** b, te.power),
    **{f"OpaqueUnaryFn_{n}": _folded(getattr(math, n), getattr(te, n)) for n in ("sqrt", "exp", "log", "log2")},
}
