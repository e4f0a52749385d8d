"""Activations: functions of floats between the layers of a network, each computed in float32 or more."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright.te import math as te_math
from tilewright.te.definition import compute
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import absolute, binary, negate, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.topi.elementwise import elementwise
from tilewright.topi.shapes import (
    axis_index,
    check,
    check_choice,
    check_extent,
    check_numbers,
    check_tensors,
    constant,
    replaced,
)
from tilewright.topi.types import FLOAT, NUMBER, accumulator, check_kind

_F = te_math.FUNCTIONS


def mapped(op: str, x: Any, f: Callable[[Expr], Expr], kind: str = FLOAT) -> Tensor:
    """f of each element of a tensor of floats."""
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, kind)
    return elementwise(op, f, x)


def _simple(op: str, formula: str, f: Callable[[Expr], Expr], kind: str = FLOAT) -> Callable[[Tensor], Tensor]:
    def function(x: Tensor) -> Tensor:
        return mapped(op, x, f, kind)
    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"y = {formula}, element by element."
    return function


def _c(e: Expr, value: float) -> Expr:
    return const(value, e.dtype)


def _above(e: Expr, low: float) -> Expr:
    return binary("max", e, _c(e, low))


def _within(e: Expr, low: float, high: float) -> Expr:
    return binary("min", _above(e, low), _c(e, high))


def _softplus(e: Expr) -> Expr:
    """log(1 + exp(e)), without overflow."""
    return _above(e, 0.0) + _F["log1p"](_F["exp"](negate(absolute(e))))


relu = _simple("relu", "max(x, 0)", lambda x: _above(x, 0), NUMBER)
relu6 = _simple("relu6", "min(max(x, 0), 6)", lambda x: _within(x, 0, 6), NUMBER)
sigmoid = _simple("sigmoid", "1 / (1 + exp(-x))", _F["sigmoid"])
silu = _simple("silu", "x / (1 + exp(-x))", lambda x: x * _F["sigmoid"](x))
mish = _simple("mish", "x * tanh(log(1 + exp(x)))", lambda x: x * _F["tanh"](_softplus(x)))
hardswish = _simple("hardswish", "x * min(max(x + 3, 0), 6) / 6", lambda x: x * (_within(x + 3.0, 0, 6) / 6.0))
squared_relu = _simple("squared_relu", "max(x, 0) ** 2", lambda x: _above(x, 0) * _above(x, 0), NUMBER)
softsign = _simple("softsign", "x / (1 + |x|)", lambda x: x / (absolute(x) + 1.0))
tanhshrink = _simple("tanhshrink", "x - tanh(x)", lambda x: x - _F["tanh"](x))
logsigmoid = _simple("logsigmoid", "-log(1 + exp(-x))", lambda x: negate(_softplus(negate(x))))


def hardsigmoid(x: Tensor, *, alpha: float = 1.0 / 6.0, beta: float = 0.5) -> Tensor:
    """y = min(max(alpha * x + beta, 0), 1). (ONNX's alpha is 0.2.)"""
    return mapped("hardsigmoid", x, lambda e: _within(e * alpha + beta, 0, 1))


def swish(x: Tensor, *, beta: float = 1.0) -> Tensor:
    """y = x / (1 + exp(-beta * x)). Source: Ramachandran, Zoph and Le (2017); with 1.702 an approximation of `gelu`."""
    return mapped("swish", x, lambda e: e * _F["sigmoid"](e * beta))


def softcap(x: Tensor, *, cap: float) -> Tensor:
    """y = cap * tanh(x / cap)."""
    check_numbers("softcap", cap=cap)
    check(cap > 0, "softcap", f"cap is {cap}, a positive number is needed")
    return mapped("softcap", x, lambda e: _F["tanh"](e / cap) * cap)


def leaky_relu(x: Tensor, *, negative_slope: float = 0.01) -> Tensor:
    """y = x where x > 0, else negative_slope * x."""
    return mapped("leaky_relu", x, lambda e: select(binary("gt", e, _c(e, 0)), e, e * negative_slope))


def prelu(x: Tensor, weight: Tensor, *, axis: int = 1) -> Tensor:
    """y = x where x > 0, else weight[c] * x, with c the index along an axis, or 0 for a weight of one element.

    Raises TensorExpressionError unless weight is a vector that fits.
    """
    op = "prelu"
    check_tensors(op, x=x, weight=weight)
    check_kind(op, "x", x.dtype, FLOAT)
    check(weight.ndim == 1, op, f"weight has the shape {shape_text(weight.shape)}, one dimension is needed")
    single = constant(weight.shape[0]) == 1
    at = 0 if single else axis_index(op, axis, x.ndim)
    if not single:
        check_extent(op, "the extent of weight", weight.shape[0], x.shape[at], f"x has the shape {shape_text(x.shape)}")

    def element(*i: Any) -> Expr:
        e = x(*i)
        wide = accumulator(e.dtype)
        scaled = cast(wide, e) * cast(wide, weight(0 if single else i[at]))
        return select(binary("gt", e, _c(e, 0)), e, cast(e.dtype, scaled))
    return compute(x.shape, element, name=op)


def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """y = x where x > 0, else alpha * (exp(x) - 1)."""
    return mapped("elu", x, lambda e: select(binary("gt", e, _c(e, 0)), e, _F["expm1"](e) * alpha))


def selu(x: Tensor) -> Tensor:
    """y = 1.0507 * x where x > 0, else 1.0507 * 1.6733 * (exp(x) - 1). Source: Klambauer and others (2017)."""
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return mapped("selu", x, lambda e: select(binary("gt", e, _c(e, 0)), e * scale, _F["expm1"](e) * (scale * alpha)))


def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """y = max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""
    check(alpha != 0, "celu", "alpha is 0")
    return mapped("celu", x, lambda e: select(binary("gt", e, _c(e, 0)), e, _F["expm1"](e / alpha) * alpha))


def _gelu(e: Expr, approximate: bool) -> Expr:
    if approximate:
        return e * _F["sigmoid"]((e + e * e * e * 0.044715) * (2.0 * math.sqrt(2.0 / math.pi)))   # (1 + tanh(u)) / 2
    return e * 0.5 * (_F["erf"](e * math.sqrt(0.5)) + 1.0)


def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """y = x * P(X <= x) of a standard normal X: x / 2 * (1 + erf(x / sqrt(2))).

    "tanh" approximates it by x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))). Source: Hendrycks and Gimpel
    (2016). Raises TensorExpressionError for another word.
    """
    check_choice("gelu", "approximate", approximate, ("none", "tanh"))
    return mapped("gelu", x, lambda e: _gelu(e, approximate == "tanh"))


def softplus(x: Tensor, *, beta: float = 1.0) -> Tensor:
    """y = log(1 + exp(beta * x)) / beta, without overflow."""
    check(beta != 0, "softplus", "beta is 0")
    return mapped("softplus", x, lambda e: _softplus(e * beta) / beta)


def threshold(x: Tensor, *, threshold: float, value: float) -> Tensor:
    """y = x where x > threshold, else value."""
    return mapped("threshold", x, lambda e: select(binary("gt", e, _c(e, threshold)), e, _c(e, value)), NUMBER)


def hardtanh(x: Tensor, *, min: float = -1.0, max: float = 1.0) -> Tensor:
    """y = x brought into [min, max]."""
    return mapped("hardtanh", x, lambda e: _within(e, min, max))


def hardshrink(x: Tensor, *, lambd: float = 0.5) -> Tensor:
    """y = x where |x| > lambd, else 0."""
    return mapped("hardshrink", x, lambda e: select(binary("gt", absolute(e), _c(e, lambd)), e, _c(e, 0)))


def shrink(x: Tensor, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """y = x + bias where x < -lambd, else x - bias where x > lambd, else 0."""
    return mapped("shrink", x, lambda e: select(binary("lt", e, _c(e, -lambd)), e + bias, select(
        binary("gt", e, _c(e, lambd)), e - bias, _c(e, 0))))


def softshrink(x: Tensor, *, lambd: float = 0.5) -> Tensor:
    """y = x - lambd where x > lambd, x + lambd where x < -lambd, else 0."""
    return shrink(x, lambd=lambd, bias=lambd)


_GATES: dict[str, Callable[[Expr], Expr]] = {
    "sigmoid": _F["sigmoid"], "silu": lambda e: e * _F["sigmoid"](e), "relu": lambda e: _above(e, 0),
    "gelu": lambda e: _gelu(e, False), "gelu_tanh": lambda e: _gelu(e, True), "tanh": _F["tanh"],
    "identity": lambda e: e,
}


def gated(a: Tensor, b: Tensor, *, activation: str = "silu") -> Tensor:
    """y = a * f(b); both broadcast. f: "sigmoid", "silu", "gelu", "gelu_tanh", "relu", "tanh", "identity".

    Source: Shazeer, GLU Variants Improve Transformer (2020).
    """
    check_choice("gated", "activation", activation, _GATES)
    check_tensors("gated", a=a, b=b)
    for name, x in (("a", a), ("b", b)):
        check_kind("gated", name, x.dtype, FLOAT)
    return elementwise("gated", lambda x, y: x * _GATES[activation](y), a, b)


def glu(x: Tensor, *, axis: int = -1, activation: str = "sigmoid") -> Tensor:
    """y = a * f(b), where a and b are the halves of x along an axis; f: as in `gated`.

    Raises TensorExpressionError for an odd extent.
    """
    op = "glu"
    check_choice(op, "activation", activation, _GATES)
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, FLOAT)
    at = axis_index(op, axis, x.ndim)
    extent = constant(x.shape[at])
    check(extent is None or extent % 2 == 0, op, f"x has the shape {shape_text(x.shape)}, axis {axis} has no halves")
    half = binary("floordiv", x.shape[at], 2)
    wide = accumulator(x.dtype)

    def element(*i: Any) -> Expr:
        gate = x(*replaced(i, at, binary("add", i[at], half)))
        return cast(x.dtype, cast(wide, x(*i)) * _GATES[activation](cast(wide, gate)))
    return compute(replaced(x.shape, at, half), element, name=op)


__all__ = ["celu", "elu", "gated", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
           "logsigmoid", "mish", "prelu", "relu", "relu6", "selu", "shrink", "sigmoid", "silu", "softcap",
           "softplus", "softshrink", "softsign", "squared_relu", "swish", "tanhshrink", "threshold"]
