"""Tensors of numbers that no input has."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.shaping import extent
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.values import Held
from tilewright.graph.ir.values import Value
from tilewright.tir import Expr


@operator("ConstantOfShape")
def constant_of_shape(n: Node) -> Held:
    """`topi.full`."""
    value = n.tensor("value") if "value" in n.attributes else None
    shape = tuple(extent(d) for d in n.numbers(0, "the shape"))
    found = value.elements if value is not None else None
    if value is None or found is None:
        return Held.of(n.emit(topi.full, shape, 0.0, dtype="float32"))
    number = found.reshape(-1)[0].item() if value.dtype != "bfloat16" else float(found.reshape(-1)[0])
    return Held.of(n.emit(topi.full, shape, number, dtype=value.dtype), value.kind)


@operator("Range")
def range_(n: Node) -> Value:
    """`topi.arange`."""
    names = ("the start", "the limit", "the step")
    start, limit, step = (n.number(k, name) for k, name in enumerate(names))
    if isinstance(step, Expr):
        raise Unsupported(f"the step {step} depends on sizes")
    return n.emit(topi.arange, start, limit, step, dtype=n.held(0).dtype)


@operator("EyeLike")
def eye_like(n: Node) -> Value:
    """`topi.eye`."""
    x = n.held(0)
    dtype = n.dtype("dtype")[1] if "dtype" in n.attributes else x.dtype
    if len(x.shape) != 2:
        raise Unsupported(f"x has {len(x.shape)} dimensions, 2 are needed")
    return n.emit(topi.eye, *x.shape, k=n.attr("k", 0), dtype=dtype)


def _window(rule: Any, **options: Any) -> Any:
    def row(n: Node) -> Value:
        size, periodic, dtype = n.number(0, "the size"), bool(n.attr("periodic", 1)), n.dtype("output_datatype")[1]
        if size == 1 and periodic:                      # by the formula, where topi has 1 as others do
            two = n.emit(rule, 2, periodic=False, dtype=dtype, **options)
            return n.emit(topi.strided_slice, two, begin=[0], end=[1], axes=[0])
        return n.emit(rule, size, periodic=periodic, dtype=dtype, **options)
    return row


for _name, _rule, _options in (("BlackmanWindow", topi.blackman_window, {}), ("HannWindow", topi.hann_window, {}),
                               ("HammingWindow", topi.hamming_window, {"alpha": 25 / 46})):
    operator(_name, text=f"`topi.{_rule.__name__}`")(_window(_rule, **_options))


@operator("MelWeightMatrix")
def mel_weights(n: Node) -> Value:
    """`topi.mel_weights`."""
    names = ("the number of bins", "the length", "the sample rate", "the lower edge", "the upper edge")
    bins, length, rate, low, high = (n.number(k, name) for k, name in enumerate(names))
    return n.emit(topi.mel_weights, bins=bins, length=length, rate=rate, low=low, high=high,
                  dtype=n.dtype("output_datatype")[1])
