"""Tensors of numbers, and results whose size the elements of constants decide."""
from __future__ import annotations

import numpy as np

from tilewright.frontend.onnx.evaluated.results import bounded, integers, kept
from tilewright.frontend.onnx.limits import MOST_FOLDED, MOST_KNOWN
from tilewright.frontend.onnx.node import Node, Unknown, Unsupported
from tilewright.frontend.onnx.registry import evaluated
from tilewright.frontend.onnx.values import Held
from tilewright.tir import Expr


@evaluated("ConstantOfShape")
def constant_of_shape(n: Node) -> Held:
    """A tensor of one value."""
    value = n.tensor("value") if "value" in n.attributes else Held.known(np.zeros(1, "float32"))
    wanted = n.numbers(0, "the shape")
    found = value.elements
    if any(isinstance(d, Expr) for d in wanted) or found is None:
        raise Unknown(n.held(0), "the shape")
    return Held.known(np.full(bounded(n, wanted), found.reshape(-1)[0]), value.dtype, value.kind)


@evaluated("Range")
def range_(n: Node) -> Held:
    """The numbers from start to limit."""
    start, limit, delta = (integers(n, k).reshape(-1)[0] for k in range(3))
    if delta == 0:
        raise Unsupported("the step is 0")
    with np.errstate(all="ignore"):
        count = np.ceil((float(limit) - float(start)) / float(delta))
    if not count <= MOST_KNOWN:
        raise Unknown(n.held(1), "the limit")
    return kept(n, start + np.arange(max(int(count), 0)) * delta)


def _constant(n: Node, k: int) -> np.ndarray:
    """The elements of a constant, of more of them than elsewhere."""
    held = n.held(k)
    found = held.few(MOST_FOLDED)
    if found is None or held.is_symbolic:
        raise Unknown(held, f"input {k}")
    return found


@evaluated("NonZero")
def nonzero(n: Node) -> Held:
    """The places of the elements of a constant that are not 0."""
    return Held.known(np.array(np.nonzero(_constant(n, 0)), "int64"))


@evaluated("Compress")
def compress(n: Node) -> Held:
    """The slices of a constant where a condition holds."""
    x, condition = _constant(n, 0), _constant(n, 1)
    held = n.held(0)
    return Held.known(np.compress(condition.reshape(-1), x, n.attr("axis")), held.dtype, held.kind)


@evaluated("Unique")
def unique(n: Node) -> tuple[Held, ...]:
    """The values of a constant, each once, where each comes first, which one each element is, how often each comes."""
    axis, held = n.attr("axis"), n.held(0)
    values, first, inverse, counts = np.unique(_constant(n, 0), True, True, True, axis=axis)
    inverse = inverse.reshape(-1)
    if not n.attr("sorted", 1):
        order = np.argsort(first)
        values = np.take(values, order, axis or 0)
        inverse, first, counts = np.argsort(order)[inverse], first[order], counts[order]
    places = (Held.known(a.astype("int64")) for a in (first, inverse, counts))
    return (Held.known(values, held.dtype, held.kind), *places)
