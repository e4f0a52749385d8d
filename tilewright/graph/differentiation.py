"""Reverse-mode differentiation: the gradient of a graph is another graph."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright import te
from tilewright.graph.ir.types import TensorType
from tilewright.graph.operator import Operator
from tilewright.graph.operators.elementwise import Add
from tilewright.graph.value import Value, topological
from tilewright.support.errors import GraphError, described, listed


@dataclass(frozen=True)
class OnesLike(Operator):
    """y = 1 everywhere, of x's shape: the gradient of a loss with respect to itself."""

    def infer(self, *inputs: TensorType) -> TensorType:
        return TensorType(inputs[0].shape, self.same_float(*inputs))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        return te.compute(inputs[0].shape, lambda *_: te.const(1.0, inputs[0].dtype), name="ones")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (None,)


def gradients(loss: Value, wrt: Sequence[Value]) -> list[Value]:
    """d(sum of loss)/dx for every x in wrt, as values of the graph, each of the shape of its x.

    Reverse accumulation (Griewank and Walther, Evaluating Derivatives, 2008, chapter 3). Values that do not lead
    to a member of wrt are not differentiated. Raises GraphError where loss does not depend on a member of wrt,
    or an operator on the way has no gradient.
    """
    given = None if isinstance(wrt, Value) else listed(wrt)
    if given is None:
        raise GraphError(f"gradients: {described(wrt)} is not a list of graph values")
    wrt = given
    for v in (loss, *wrt):
        if not isinstance(v, Value):
            raise GraphError(f"gradients: {described(v)} is not a graph value")
    order = topological([loss])
    reaches = set(wrt)
    for v in order:
        if any(x in reaches for x in v.inputs):
            reaches.add(v)
    used = set(order)
    missing = [x.name for x in wrt if x not in used]
    if missing:
        raise GraphError(f"gradients: {loss.name} does not depend on {', '.join(missing)}",
                         "leave them out of the list")
    gradient: dict[Value, Value] = {loss: OnesLike()(loss)}
    for v in reversed(order):
        if v.op is None or v not in gradient or not any(x in reaches for x in v.inputs):
            continue
        parts = v.op.grad(v, gradient[v])
        if not isinstance(parts, (tuple, list)) or len(parts) != len(v.inputs):
            raise GraphError(f"{v.op}: grad gives {described(parts)}",
                             f"a tuple with a value or None for each of {len(v.inputs)} input(s)")
        for x, dx in zip(v.inputs, parts):
            if dx is not None and x in reaches:
                gradient[x] = Add()(gradient[x], dx) if x in gradient else dx
    absent = [x.name for x in wrt if x not in gradient]
    if absent:
        raise GraphError(f"gradients: no differentiable path leads from {loss.name} to {', '.join(absent)}")
    return [gradient[x] for x in wrt]
