"""Gradient descent, plain and with momentum."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.graph.optimizers.optimizer import Axpy, Descent, Optimizer, Update, zeros_like
from tilewright.graph.value import Value
from tilewright.graph.vocabulary import public


@public
class SGD(Optimizer):
    """p <- p - learning_rate * g."""

    def updates(self, params: Sequence[Value], grads: Sequence[Value]) -> list[Update]:
        return [Update(p, Descent()(p, g, self.rate)) for p, g in zip(params, grads)]


@public
class Momentum(Optimizer):
    """u <- momentum * u + g; p <- p - learning_rate * u (Polyak 1964, in PyTorch's form)."""

    def __init__(self, learning_rate: float, momentum: float = 0.9) -> None:
        self.check(below=1.0, momentum=momentum)
        super().__init__(learning_rate)
        self.momentum = momentum

    def updates(self, params: Sequence[Value], grads: Sequence[Value]) -> list[Update]:
        out = []
        for p, g in zip(params, grads):
            u = zeros_like(p, "velocity")
            moved = Axpy(self.momentum, 1.0)(u, g)
            out += [Update(u, moved), Update(p, Descent()(p, moved, self.rate))]
        return out
