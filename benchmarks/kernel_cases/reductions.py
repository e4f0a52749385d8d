"""Reductions over an axis or over all elements."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_cases.drawing import Draw
from kernel_cases.rows import Operator, Row, Shape, f32


@dataclass(frozen=True)
class Reduce(Operator):
    """The sum, mean, max or argmax along an axis; None: of all elements."""
    kind: str
    axis: int | None

    def te(self, topi: Any, x: Any) -> Any:
        return getattr(topi, self.kind)(x, axis=self.axis)

    def numpy(self, x: Any) -> Any:
        return getattr(np, self.kind)(x, axis=self.axis)

    def torch(self, torch: Any, x: Any) -> Any:
        return {"max": torch.amax}.get(self.kind, getattr(torch, self.kind))(x, **(
            {} if self.axis is None else {"dim": self.axis}))

    def jax(self, jax: Any, x: Any) -> Any:
        return getattr(jax.numpy, self.kind)(x, axis=self.axis)

    def onnx(self, node: Any, x: str) -> Any:
        if self.kind == "argmax":
            return None if self.axis is None else node("ArgMax", x, axis=self.axis, keepdims=0)
        axes = () if self.axis is None else (node.constant([self.axis], "int64"),)
        return node(f"Reduce{self.kind.capitalize()}", x, *axes, keepdims=0)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        x, = shapes
        return [() if self.axis is None else tuple(n for k, n in enumerate(x) if k != self.axis % len(x))]

    def operations(self, *shapes: Shape) -> float:
        return float(math.prod(shapes[0]))

    def magnitude(self, want: Any, *operands: Any) -> float:
        """Sums are right relative to the sum of the absolute values."""
        x, = operands
        return float(np.max(self.numpy(np.abs(x)))) if self.kind in ("sum", "mean") else super().magnitude(want, x)

    def text(self, *shapes: Shape) -> str:
        where = "all" if self.axis is None else f"axis {self.axis}"
        return f"{self.kind} {'x'.join(map(str, shapes[0]))} {where}"


def reduce(kind: str, *shape: int, axis: int | None) -> Row:
    return Row(Reduce(kind, axis), (f32(*shape),))


KINDS = ("sum", "max", "mean", "argmax")
ROWS = [
    *(reduce(kind, 1000, 1000, axis=axis) for kind in KINDS for axis in (0, 1)),
    *(reduce("sum", 64, 128, 256, axis=axis) for axis in (0, 1, 2)), reduce("max", 64, 128, 256, axis=1),
    *(reduce(kind, 1_000_000, axis=None) for kind in KINDS), reduce("sum", 1000, 10, axis=1),
    reduce("sum", 1000, 10, axis=0), reduce("argmax", 128, 50257, axis=1), reduce("mean", 197, 768, axis=0),
]


def draw(random: Draw) -> Row:
    rank = random.choice([2, 2, 3])
    shape = [random.extent(4, 2000 if rank == 2 else 200) for _ in range(rank)]
    return reduce(random.choice(KINDS), *shape, axis=random.randrange(rank))
