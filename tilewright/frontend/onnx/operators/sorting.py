"""Orders of elements."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node
from tilewright.frontend.onnx.registry import operator


@operator("TopK")
def topk(n: Node) -> Any:
    """`topi.topk`."""
    k = n.number(1, "k") if n.has(1) else n.required("k")
    return n.emit(topi.topk, n.value(0), k=k, axis=n.axis(-1), largest=bool(n.attr("largest", 1)))
