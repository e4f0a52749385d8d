"""Losses."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node
from tilewright.frontend.onnx.registry import operator
from tilewright.graph.ir.values import Value


def _options(n: Node) -> dict[str, Any]:
    return {"ignore_index": n.attr("ignore_index", -(2**31)), "reduction": n.attr("reduction", "mean")}


@operator("NegativeLogLikelihoodLoss")
def nll_loss(n: Node) -> Value:
    """`topi.nll_loss`."""
    return n.emit(topi.nll_loss, n.value(0), n.value(1), n.optional(2), **_options(n))


@operator("SoftmaxCrossEntropyLoss")
def softmax_cross_entropy_loss(n: Node) -> Any:
    """`topi.nll_loss` of `topi.log_softmax`."""
    x, target, weight = n.value(0), n.value(1), n.optional(2)
    likelihood = n.emit(topi.log_softmax, x, axis=1)
    return n.emit(topi.nll_loss, likelihood, target, weight, **_options(n)), likelihood
