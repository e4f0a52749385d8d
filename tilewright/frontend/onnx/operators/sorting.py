"""Orders of elements, and results whose size elements decide."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.registry import operator


@operator("TopK")
def topk(n: Node) -> Any:
    """`topi.topk`."""
    k = n.number(1, "k") if n.has(1) else n.required("k")
    return n.emit(topi.topk, n.value(0), k=k, axis=n.axis(-1), largest=bool(n.attr("largest", 1)))


@operator("NonMaxSuppression", text="not supported: the size of its result depends on elements")
def non_max_suppression(n: Node) -> Any:
    """Refused: the size of the result depends on elements."""
    raise Unsupported("the size of its result depends on the elements of its inputs, which is not supported")
