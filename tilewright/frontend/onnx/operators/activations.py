"""Activations."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.elementwise import emit_floats, unary
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.graph.ir.values import Value

PLAIN = {"HardSwish": topi.hardswish, "Mish": topi.mish, "Relu": topi.relu, "Sigmoid": topi.sigmoid,
         "Softplus": topi.softplus, "Softsign": topi.softsign}
WITH_ATTRIBUTES: dict[str, tuple[Any, dict[str, tuple[str, float]]]] = {
    "Celu": (topi.celu, {"alpha": ("alpha", 1.0)}),
    "Elu": (topi.elu, {"alpha": ("alpha", 1.0)}),
    "HardSigmoid": (topi.hardsigmoid, {"alpha": ("alpha", 0.2), "beta": ("beta", 0.5)}),
    "LeakyRelu": (topi.leaky_relu, {"negative_slope": ("alpha", 0.01)}),
    "Swish": (topi.swish, {"beta": ("alpha", 1.0)}),
}

for _name, _rule in PLAIN.items():
    operator(_name, text=f"`topi.{_rule.__name__}`")(unary(_rule))


def _row(rule: Any, names: dict[str, tuple[str, float]]) -> Any:
    return lambda n: n.emit(rule, n.value(0), **{own: n.attr(name, default) for own, (name, default) in names.items()})


for _name, (_rule, _names) in WITH_ATTRIBUTES.items():
    operator(_name, text=f"`topi.{_rule.__name__}`")(_row(_rule, _names))


@operator("Shrink")
def shrink(n: Node) -> Value:
    """`topi.shrink`."""
    return emit_floats(n, topi.shrink, n.value(0), lambd=n.attr("lambd", 0.5), bias=n.attr("bias", 0.0))


def scaled_elu(x: Any, alpha: float, gamma: float) -> Any:
    """y = gamma * x where x > 0, else gamma * alpha * (exp(x) - 1)."""
    return topi.multiply(topi.elu(x, alpha=alpha), gamma)


@operator("Selu")
def selu(n: Node) -> Value:
    """`topi.elu`, scaled."""
    return n.emit(scaled_elu, n.value(0), n.attr("alpha", 1.67326319217681884765625),
                  n.attr("gamma", 1.05070102214813232421875))


@operator("ThresholdedRelu")
def thresholded_relu(n: Node) -> Value:
    """`topi.threshold`."""
    return n.emit(topi.threshold, n.value(0), threshold=n.attr("alpha", 1.0), value=0.0)


@operator("Gelu")
@operator("Gelu", domain=CONTRIB, inputs=1)
def gelu(n: Node) -> Value:
    """`topi.gelu`."""
    return n.emit(topi.gelu, n.value(0), approximate=n.attr("approximate", "none"))


def biased_gelu(x: Any, bias: Any, approximate: str) -> Any:
    """`topi.gelu` of x + bias."""
    return topi.gelu(topi.add(x, bias), approximate=approximate)


@operator("BiasGelu", "FastGelu", domain=CONTRIB, inputs=2)
def bias_gelu(n: Node) -> Value:
    """`topi.gelu` of x + bias."""
    approximate = "tanh" if n.op == "FastGelu" else "none"
    if not n.has(1):
        return n.emit(topi.gelu, n.value(0), approximate=approximate)
    return n.emit(biased_gelu, n.value(0), n.value(1), approximate)


@operator("QuickGelu", domain=CONTRIB, attributes=("alpha",), inputs=1)
def quick_gelu(n: Node) -> Value:
    """`topi.swish`."""
    return n.emit(topi.swish, n.value(0), beta=n.attr("alpha", 1.702))


def split_gelu(x: Any, bias: Any) -> Any:
    """y = a * gelu(b), of the halves a and b of x + bias along the last axis."""
    half = x.shape[-1] // 2
    a, b = topi.split(topi.add(x, bias), [half, half], axis=-1)
    return topi.multiply(a, topi.gelu(b))


@operator("BiasSplitGelu", domain=CONTRIB, inputs=2)
def bias_split_gelu(n: Node) -> Value:
    """The first half of x + bias times `topi.gelu` of the second."""
    return n.emit(split_gelu, n.value(0), n.value(1))


def activated(n: Node, x: Value, name: str, given: dict[str, float]) -> Value:
    """An activation of a fused operator, by its name; given: its attributes."""
    if name == "Clip" and {"min", "max"} == set(given):
        return n.emit(topi.clip, x, given["min"], given["max"])
    if name == "Tanh" and not given:
        return n.emit(topi.tanh, x)
    if name in PLAIN and not given:
        return n.emit(PLAIN[name], x)
    if name in WITH_ATTRIBUTES:
        rule, names = WITH_ATTRIBUTES[name]
        if all(own in [theirs for theirs, _ in names.values()] for own in given):
            return n.emit(rule, x, **{own: given.get(theirs, default) for own, (theirs, default) in names.items()})
    raise Unsupported(f"the attribute activation is {name!r}, with {given}")


@operator("PRelu")
def prelu(n: Node) -> Value:
    """x where x > 0, else slope * x; the slope broadcasts."""
    x, slope = n.value(0), n.value(1)
    if slope.ndim == 1 and n.version < 7 and x.ndim > 1:
        return n.emit(topi.prelu, x, slope)
    return n.emit(sloped, x, slope)


def sloped(x: Any, slope: Any) -> Any:
    """y = x where x > 0, else slope * x."""
    return topi.where(topi.greater(x, 0), x, topi.multiply(x, slope))


def _by_axis(rule: Any, default: int) -> Any:
    def row(n: Node) -> Value:
        return n.emit(rule, n.value(0), axis=n.axis(default))
    return row


def _by_rows(rule: Any) -> Any:
    """Versions below 13 take all dimensions from the axis on as one."""
    def row(n: Node) -> Value:
        x, axis = n.value(0), n.axis(1)
        if axis == x.ndim - 1:
            return n.emit(rule, x, axis=-1)
        flat = n.emit(topi.flatten, x, start=axis, end=-1)
        return n.emit(topi.reshape, n.emit(rule, flat, axis=-1), x.shape)
    return row


for _name, _rule in {"Softmax": topi.softmax, "LogSoftmax": topi.log_softmax, "Hardmax": topi.hardmax}.items():
    operator(_name, until=12, text=f"`topi.{_rule.__name__}` of all dimensions from the axis on")(_by_rows(_rule))
    operator(_name, since=13, text=f"`topi.{_rule.__name__}`")(_by_axis(_rule, -1))


@operator("SwiGLU")
def swiglu(n: Node) -> Value:
    """`topi.gated`."""
    return n.emit(gate, n.value(0), n.value(1), n.attr("alpha", 1.0))


def gate(a: Any, b: Any, alpha: float) -> Any:
    """y = a / (1 + exp(-alpha * a)) * b."""
    return topi.gated(b, a) if alpha == 1 else topi.multiply(topi.swish(a, beta=alpha), b)
