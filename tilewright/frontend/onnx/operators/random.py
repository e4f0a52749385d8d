"""Random numbers: by the seed that a node has; nodes without one have seeds of their own, the same in every run."""
from __future__ import annotations

import struct
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.frontend.onnx.node import Node
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.values import Held
from tilewright.graph.ir.values import Value


def key(n: Node, seed: float | None = None) -> Value:
    """The key of a node's numbers."""
    seed = n.attr("seed") if seed is None else seed
    low = n.importer.nodes if seed is None else struct.unpack("<I", struct.pack("<f", seed))[0]
    return n.constant(np.array([low, 0 if seed is None else 1], "uint32"))


def _spread(n: Node) -> tuple[Any, dict[str, float]]:
    if n.op.startswith("RandomUniform"):
        return topi.uniform, {"low": n.attr("low", 0.0), "high": n.attr("high", 1.0)}
    return topi.normal, {"mean": n.attr("mean", 0.0), "std": n.attr("scale", 1.0)}


@operator("RandomNormal", "RandomUniform")
def random(n: Node) -> Value:
    """`topi.normal` or `topi.uniform`."""
    rule, options = _spread(n)
    return n.emit(rule, key(n), tuple(n.required("shape")), dtype=n.dtype("dtype")[1], **options)


@operator("RandomNormalLike", "RandomUniformLike")
def random_like(n: Node) -> Value:
    """`topi.normal` or `topi.uniform`, of the shape of the input."""
    rule, options = _spread(n)
    dtype = n.dtype("dtype")[1] if "dtype" in n.attributes else n.held(0).dtype
    return n.emit(rule, key(n), n.shape(), dtype=dtype, **options)


@operator("Bernoulli")
def bernoulli(n: Node) -> Value:
    """`topi.bernoulli`."""
    dtype = n.dtype("dtype")[1] if "dtype" in n.attributes else n.held(0).dtype
    return n.emit(topi.bernoulli, n.value(0), key(n), dtype=dtype)


@operator("Multinomial")
def multinomial(n: Node) -> Value:
    """`topi.multinomial` of the exponentials."""
    x = n.emit(topi.softmax, n.value(0), axis=-1)
    y = n.emit(topi.multinomial, x, key(n), samples=n.attr("sample_size", 1))
    return n.emit(topi.astype, y, n.dtype("dtype", 6)[1])


@operator("Dropout")
def dropout(n: Node) -> Any:
    """x; in training `topi.dropout`."""
    training = bool(n.number(2, "training_mode")) if n.has(2) else n.version < 7 and not n.attr("is_test", 0)
    ratio = float(n.number(1, "the ratio")) if n.has(1) else n.attr("ratio", 0.5)
    if not training or n.version < 12 and not n.has(2):
        kind = "bool" if n.version >= 10 else n.held(0).dtype
        mask = n.emit(topi.ones_like, n.value(0), dtype=kind) if n.wants(1) else None
        return n.inputs[0], mask
    x = n.value(0)
    options = {"p": ratio}
    y = n.emit(topi.dropout, x, key(n), **options)
    if not n.wants(1):
        return y
    ones = n.emit(topi.ones_like, x)
    return y, Held.of(n.emit(topi.not_equal, n.emit(topi.dropout, ones, key(n), **options), 0))
