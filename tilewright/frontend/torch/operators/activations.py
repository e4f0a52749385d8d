"""Activations."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.torch.dtypes import category
from tilewright.frontend.torch.emit import Emitter
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


@operator("relu")
def relu(e: Emitter, x: Value) -> Value:
    """`topi.relu`."""
    return e.te(topi.relu, x) if category(x.dtype) == 2 else e.te(topi.maximum, x, 0)


@operator("relu6")
def relu6(e: Emitter, x: Value) -> Value:
    """`topi.relu6`."""
    return e.te(topi.clip, x, *_bounds(x, 0, 6))


@operator("hardtanh")
def hardtanh(e: Emitter, x: Value, min_val: Any = -1, max_val: Any = 1) -> Value:
    """`topi.clip`."""
    return e.te(topi.clip, x, *_bounds(x, min_val, max_val))


def _bounds(x: Value, low: Any, high: Any) -> tuple[Any, Any]:
    return (float(low), float(high)) if category(x.dtype) == 2 else (int(low), int(high))


@operator("gelu")
def gelu(e: Emitter, x: Value, approximate: str = "none") -> Value:
    """`topi.gelu`."""
    return e.te(topi.gelu, x, approximate=approximate)


@operator("silu")
def silu(e: Emitter, x: Value) -> Value:
    """`topi.silu`."""
    return e.te(topi.silu, x)


@operator("mish")
def mish(e: Emitter, x: Value) -> Value:
    """`topi.mish`."""
    return e.te(topi.mish, x)


@operator("hardswish")
def hardswish(e: Emitter, x: Value) -> Value:
    """`topi.hardswish`."""
    return e.te(topi.hardswish, x)


@operator("hardsigmoid")
def hardsigmoid(e: Emitter, x: Value) -> Value:
    """`topi.hardsigmoid`."""
    return e.te(topi.hardsigmoid, x)


@operator("leaky_relu")
def leaky_relu(e: Emitter, x: Value, negative_slope: Any = 0.01) -> Value:
    """`topi.leaky_relu`."""
    return e.te(topi.leaky_relu, x, negative_slope=float(negative_slope))


@operator("elu")
def elu(e: Emitter, x: Value, alpha: Any = 1, scale: Any = 1, input_scale: Any = 1) -> Value:
    """`topi.elu`, scaled."""
    alpha, scale, input_scale = float(alpha), float(scale), float(input_scale)
    if scale == input_scale == 1:
        return e.te(topi.elu, x, alpha=alpha)
    low = e.te(topi.multiply, e.te(topi.expm1, e.te(topi.multiply, x, input_scale)), alpha * scale)
    return e.te(topi.where, e.te(topi.greater, x, 0.0), e.te(topi.multiply, x, scale), low)


@operator("selu")
def selu(e: Emitter, x: Value) -> Value:
    """`topi.selu`."""
    return e.te(topi.selu, x)


@operator("celu")
def celu(e: Emitter, x: Value, alpha: Any = 1) -> Value:
    """`topi.celu`."""
    return e.te(topi.celu, x, alpha=float(alpha))


@operator("softplus")
def softplus(e: Emitter, x: Value, beta: Any = 1, threshold: Any = 20) -> Value:
    """`topi.softplus`, x itself where beta * x is above the threshold."""
    y = e.te(topi.softplus, x, beta=float(beta))
    if threshold >= 20:
        return y
    return e.te(topi.where, e.te(topi.greater, e.te(topi.multiply, x, float(beta)), float(threshold)), x, y)


@operator("log_sigmoid_forward")
def log_sigmoid_forward(e: Emitter, x: Value) -> tuple[Value | None, ...]:
    """`topi.logsigmoid`."""
    return e.te(topi.logsigmoid, x), None


@operator("log_sigmoid")
def log_sigmoid(e: Emitter, x: Value) -> Value:
    """`topi.logsigmoid`."""
    return e.te(topi.logsigmoid, x)


@operator("hardshrink")
def hardshrink(e: Emitter, x: Value, lambd: Any = 0.5) -> Value:
    """x where |x| > lambd or x is NaN, else 0."""
    inside = e.te(topi.less_equal, e.te(topi.abs, x), float(lambd))
    return e.te(topi.where, inside, 0.0, x)


@operator("softshrink")
def softshrink(e: Emitter, x: Value, lambd: Any = 0.5) -> Value:
    """`topi.softshrink`; NaN of NaN."""
    return e.te(topi.where, e.te(topi.isnan, x), x, e.te(topi.softshrink, x, lambd=float(lambd)))


@operator("threshold")
def threshold(e: Emitter, x: Value, threshold: Any, value: Any) -> Value:
    """`value` where x is at most the threshold, else x."""
    below = e.te(topi.less_equal, x, e.operand(threshold, x.dtype))
    return e.te(topi.where, below, e.operand(value, x.dtype), x)


@operator("prelu", "_prelu_kernel")
def prelu(e: Emitter, x: Value, weight: Value) -> Value:
    """`topi.prelu`, or the weight broadcast to x."""
    if weight.ndim > 1:
        return e.te(topi.where, e.te(topi.greater, x, 0.0), x, e.te(topi.multiply, x, weight))
    if x.ndim < 2:
        weight = e.reshape(weight, (1,) * x.ndim)
        return e.te(topi.where, e.te(topi.greater, x, 0.0), x, e.te(topi.multiply, x, weight))
    return e.te(topi.prelu, x, e.lifted(weight), axis=1)


@operator("glu")
def glu(e: Emitter, x: Value, dim: int = -1) -> Value:
    """`topi.glu`."""
    return e.te(topi.glu, x, axis=dim)


@operator("logit")
def logit(e: Emitter, x: Value, eps: float | None = None) -> Value:
    """`topi.logit`."""
    return e.te(topi.logit, e.cast(x, e.dtype), eps=eps)
