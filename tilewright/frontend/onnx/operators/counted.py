"""Results whose size elements decide: the largest tensor that there may be, and how much of it counts.

Only results of the model may be counted: what reads a tensor in the graph has to know its shape.
"""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.values import Held
from tilewright.graph.ir.values import Value


def counted(value: Value, axis: int, number: Value, kind: str = "") -> Held:
    """A tensor of which the first `number` slices along an axis count."""
    held = Held.of(value, kind)
    held.counted = (axis, number)
    return held


@operator("NonZero")
def nonzero(n: Node) -> Held:
    """`topi.nonzero`, transposed; counted."""
    places, number = n.emit(topi.nonzero, n.value(0))
    return counted(n.emit(topi.transpose, places), 1, number)


@operator("Compress")
def compress(n: Node) -> Held:
    """`topi.compress`; counted."""
    axis = n.axis() if "axis" in n.attributes else None
    y, number = n.emit(topi.compress, n.value(0), n.value(1), axis=axis)
    return counted(y, axis or 0, number, n.held(0).kind)


@operator("Unique")
def unique(n: Node) -> tuple[Any, ...]:
    """`topi.unique`, of all elements in ascending order; counted."""
    if "axis" in n.attributes or not n.attr("sorted", 1):
        raise Unsupported("slices along an axis, or values in the order in which they come")
    flat = n.emit(topi.flatten, n.value(0)) if n.rank() != 1 else n.value(0)
    values, inverse, counts, number, first = n.emit(topi.unique, flat, return_index=True)
    return (counted(values, 0, number, n.held(0).kind), counted(first, 0, number), inverse,
            counted(counts, 0, number))


@operator("NonMaxSuppression", since=10)
def non_max_suppression(n: Node) -> Held:
    """`topi.non_max_suppression`; counted."""
    most = int(n.number(2, "the number of boxes")) if n.has(2) else 0
    if most <= 0:
        return Held.of(n.emit(topi.zeros, (0, 3), dtype="int64"))
    overlap = float(n.number(3, "the threshold of overlap")) if n.has(3) else 0.0
    least = float(n.number(4, "the threshold of scores")) if n.has(4) else None
    boxes = n.held(0).shape[1]
    selected, number = n.emit(topi.non_max_suppression, n.value(0), n.value(1), iou_threshold=overlap,
                              score_threshold=least, center=bool(n.attr("center_point_box", 0)),
                              max_output=min(most, boxes) if isinstance(boxes, int) else most)
    return counted(selected, 0, number)
