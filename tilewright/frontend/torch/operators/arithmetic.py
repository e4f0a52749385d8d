"""Arithmetic of two or three tensors and numbers, converted to the type of the result."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import topi
from tilewright.frontend.torch import rules
from tilewright.frontend.torch.dtypes import category
from tilewright.frontend.torch.emit import Emitter
from tilewright.frontend.torch.operators.elementwise import binary
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


@operator("add.Tensor", "add.Scalar")
def add(e: Emitter, a: Any, b: Any, alpha: Any = 1) -> Value:
    """a + alpha * b."""
    return binary(e, topi.add, a, _scaled(e, b, alpha))


@operator("sub.Tensor", "sub.Scalar", "subtract.Tensor", "subtract.Scalar")
def sub(e: Emitter, a: Any, b: Any, alpha: Any = 1) -> Value:
    """a - alpha * b."""
    return binary(e, topi.subtract, a, _scaled(e, b, alpha))


@operator("rsub.Tensor", "rsub.Scalar")
def rsub(e: Emitter, a: Any, b: Any, alpha: Any = 1) -> Value:
    """b - alpha * a."""
    return binary(e, topi.subtract, b, _scaled(e, a, alpha))


def _scaled(e: Emitter, x: Any, alpha: Any, dtype: str | None = None) -> Any:
    if isinstance(alpha, (int, float)) and alpha == 1:
        return x
    return binary(e, topi.multiply, x, alpha, dtype) if isinstance(x, Value) else x * alpha


@operator("mul.Tensor", "mul.Scalar", "multiply.Tensor", "multiply.Scalar")
def mul(e: Emitter, a: Any, b: Any) -> Value:
    """a * b."""
    return binary(e, topi.multiply, a, b)


@operator("div.Tensor", "div.Scalar", "div.Tensor_mode", "div.Scalar_mode", "divide.Tensor", "true_divide.Tensor")
def div(e: Emitter, a: Any, b: Any, rounding_mode: str | None = None) -> Value:
    """a / b, of integers in floats; rounded toward 0 or down by a mode."""
    if rounding_mode == "floor":
        return floor_divide(e, a, b)
    if rounding_mode == "trunc":
        if category(e.dtype) == 2:
            return e.te(topi.trunc, binary(e, topi.divide, a, b))
        return binary(e, rules.truncated_quotient, a, b)
    return binary(e, topi.divide, a, b)


@operator("floor_divide", "floor_divide.Scalar")
def floor_divide(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.floor_divide`; of floats from the remainder, as PyTorch."""
    if category(e.dtype) != 2:
        return binary(e, topi.floor_divide, a, b)
    return e.te(rules.floored_quotient, e.tensor(a, e.dtype), e.tensor(b, e.dtype))


@operator("remainder.Tensor", "remainder.Scalar", "remainder.Scalar_Tensor")
def remainder(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.remainder`."""
    return binary(e, topi.remainder, a, b)


@operator("fmod.Tensor", "fmod.Scalar")
def fmod(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.fmod`."""
    return binary(e, topi.fmod, a, b)


@operator("maximum", "max.other")
def maximum(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.maximum`."""
    return binary(e, topi.maximum if e.dtype != "bool" else topi.logical_or, a, b)


@operator("minimum", "min.other")
def minimum(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.minimum`."""
    return binary(e, topi.minimum if e.dtype != "bool" else topi.logical_and, a, b)


@operator("fmax")
def fmax(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.maximum`, and of a number and NaN the number."""
    return _without_nan(e, maximum, a, b)


@operator("fmin")
def fmin(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.minimum`, and of a number and NaN the number."""
    return _without_nan(e, minimum, a, b)


def _without_nan(e: Emitter, rule: Callable[[Emitter, Any, Any], Value], a: Value, b: Value) -> Value:
    a, b = e.cast(a, e.dtype), e.cast(b, e.dtype)
    y = rule(e, a, b)
    if category(e.dtype) != 2:
        return y
    return e.te(topi.where, e.te(topi.isnan, a), b, e.te(topi.where, e.te(topi.isnan, b), a, y))


@operator("pow.Tensor_Tensor", "pow.Tensor_Scalar", "pow.Scalar")
def power(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.power`, or products and roots for the exponents that have them."""
    if isinstance(a, Value) and isinstance(b, (int, float)) and category(e.dtype) != 0:
        x = e.cast(a, e.dtype)
        floats = category(e.dtype) == 2
        if b == 2:
            return e.te(topi.square, x)
        if b == 1:
            return x
        if b == 3:
            return e.te(topi.multiply, e.te(topi.square, x), x)
        roots = {0.5: topi.sqrt, -0.5: topi.rsqrt, -1.0: topi.reciprocal}
        if floats and float(b) in roots:
            return e.te(roots[float(b)], x)
    return binary(e, topi.power, a, b)


@operator("atan2")
def atan2(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.atan2`."""
    return binary(e, topi.atan2, a, b)


@operator("hypot")
def hypot(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.hypot`."""
    return binary(e, topi.hypot, a, b)


@operator("copysign.Tensor", "copysign.Scalar")
def copysign(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.copysign`."""
    return binary(e, topi.copysign, a, b)


@operator("logaddexp")
def logaddexp(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.logaddexp`."""
    return binary(e, topi.logaddexp, a, b)


@operator("logaddexp2")
def logaddexp2(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.logaddexp2`."""
    return binary(e, topi.logaddexp2, a, b)


@operator("xlogy.Tensor", "xlogy.Scalar_Self", "xlogy.Scalar_Other")
def xlogy(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.xlogy`."""
    return binary(e, topi.xlogy, a, b)


@operator("heaviside")
def heaviside(e: Emitter, a: Any, b: Any) -> Value:
    """`topi.heaviside`; of NaN 0."""
    if category(e.dtype) != 2:
        return binary(e, topi.heaviside, a, b)
    return e.te(topi.where, e.te(topi.equal, a, 0.0), b, e.cast(e.te(topi.greater, a, 0.0), a.dtype))


@operator("lerp.Scalar", "lerp.Tensor")
def lerp(e: Emitter, a: Value, b: Value, weight: Any) -> Value:
    """`topi.lerp`."""
    return e.te(topi.lerp, e.cast(a, e.dtype), e.cast(b, e.dtype), e.operand(weight, e.dtype))


@operator("prims.fma")
def fma(e: Emitter, a: Value, b: Any, c: Any) -> Value:
    """a * b + c."""
    return binary(e, topi.add, binary(e, topi.multiply, a, b), c)


@operator("addcmul")
def addcmul(e: Emitter, x: Value, a: Value, b: Value, value: Any = 1) -> Value:
    """x + value * a * b."""
    return _accumulated(e, x, binary(e, topi.multiply, a, b, e.wide), value)


@operator("addcdiv")
def addcdiv(e: Emitter, x: Value, a: Value, b: Value, value: Any = 1) -> Value:
    """x + value * a / b."""
    return _accumulated(e, x, binary(e, topi.divide, a, b, e.wide), value)


def _accumulated(e: Emitter, x: Value, term: Value, value: Any) -> Value:
    return binary(e, topi.add, x, _scaled(e, term, value, e.wide), e.wide)
