"""Elements at places that data say, running sums, and the largest elements."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_cases.drawing import Draw
from kernel_cases.rows import ITEM_BYTES, Operand, Operator, Row, Shape, f32, joined


@dataclass(frozen=True)
class Embedding(Operator):
    """Rows of a table."""

    def te(self, topi: Any, indices: Any, table: Any) -> Any:
        return topi.embedding(indices, table)

    def numpy(self, indices: Any, table: Any) -> Any:
        return table[indices]

    def torch(self, torch: Any, indices: Any, table: Any) -> Any:
        return torch.nn.functional.embedding(indices, table)

    def jax(self, jax: Any, indices: Any, table: Any) -> Any:
        return jax.numpy.take(table, indices, axis=0)

    def onnx(self, node: Any, indices: str, table: str) -> Any:
        return node("Gather", table, indices, axis=0)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        indices, table = shapes
        return [(*indices, table[1])]

    def operations(self, *shapes: Shape) -> float:
        return 0.0

    def read(self, operands: Sequence[Operand]) -> int:
        indices, table = operands
        return indices.nbytes + math.prod(indices.shape) * table.shape[1] * ITEM_BYTES[table.dtype]

    def text(self, *shapes: Shape) -> str:
        indices, table = shapes
        return f"embedding of {joined(indices)} in {joined(table)}"


@dataclass(frozen=True)
class Gather(Operator):
    """Elements along an axis: NumPy's take_along_axis."""
    axis: int

    def te(self, topi: Any, x: Any, indices: Any) -> Any:
        return topi.gather(x, indices, axis=self.axis)

    def numpy(self, x: Any, indices: Any) -> Any:
        return np.take_along_axis(x, indices, self.axis)

    def torch(self, torch: Any, x: Any, indices: Any) -> Any:
        return torch.gather(x, self.axis, indices)

    def jax(self, jax: Any, x: Any, indices: Any) -> Any:
        return jax.numpy.take_along_axis(x, indices, self.axis)

    def onnx(self, node: Any, x: str, indices: str) -> Any:
        return node("GatherElements", x, indices, axis=self.axis)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        return [shapes[1]]

    def operations(self, *shapes: Shape) -> float:
        return 0.0

    def read(self, operands: Sequence[Operand]) -> int:
        x, indices = operands
        return indices.nbytes + math.prod(indices.shape) * ITEM_BYTES[x.dtype]

    def leading(self, *shapes: Shape) -> list[tuple[int, int]]:
        return [(1, 0)] if self.axis == 0 else [(0, 0), (1, 0)]


@dataclass(frozen=True)
class CumSum(Operator):
    """The sums of the elements up to each, along an axis."""
    axis: int

    def te(self, topi: Any, x: Any) -> Any:
        return topi.cumsum(x, axis=self.axis)

    def numpy(self, x: Any) -> Any:
        return np.cumsum(x, self.axis)

    def torch(self, torch: Any, x: Any) -> Any:
        return torch.cumsum(x, self.axis)

    def jax(self, jax: Any, x: Any) -> Any:
        return jax.numpy.cumsum(x, self.axis)

    def onnx(self, node: Any, x: str) -> Any:
        return node("CumSum", x, node.constant(self.axis, "int64"))

    def operations(self, *shapes: Shape) -> float:
        return float(math.prod(shapes[0]))

    def magnitude(self, want: Any, *operands: Any) -> float:
        return float(np.abs(operands[0]).sum(self.axis).max())


@dataclass(frozen=True)
class TopK(Operator):
    """The k largest elements of each row, and where they are."""
    k: int

    def te(self, topi: Any, x: Any) -> Any:
        return topi.topk(x, k=self.k)

    def numpy(self, x: Any) -> Any:
        some = np.argpartition(x, -self.k, -1)[..., -self.k:]
        order = np.take_along_axis(some, np.argsort(-np.take_along_axis(x, some, -1), -1), -1)
        return np.take_along_axis(x, order, -1), order

    def torch(self, torch: Any, x: Any) -> Any:
        return torch.topk(x, self.k)

    def jax(self, jax: Any, x: Any) -> Any:
        return jax.lax.top_k(x, self.k)

    def onnx(self, node: Any, x: str) -> Any:
        return node("TopK", x, node.constant([self.k], "int64"), results=2)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        return [(*shapes[0][:-1], self.k)] * 2

    def operations(self, *shapes: Shape) -> float:
        return float(math.prod(shapes[0]))


def embedding(indices: tuple[int, ...], rows: int, width: int) -> Row:
    return Row(Embedding(), (Operand(indices, "int64", 0, rows), f32(rows, width)))


def gather(axis: int, shape: tuple[int, ...], extent: int) -> Row:
    """The row of as many places along the axis."""
    places = (*shape[:axis], extent, *shape[axis + 1:])
    return Row(Gather(axis), (f32(*shape), Operand(places, "int64", 0, shape[axis])))


def cumsum(axis: int, *shape: int) -> Row:
    return Row(CumSum(axis), (f32(*shape),))


def topk(k: int, *shape: int) -> Row:
    return Row(TopK(k), (f32(*shape),))


ROWS = [
    embedding((128,), 30522, 768), embedding((1, 1024), 50257, 768), embedding((1000, 10), 1000, 16),
    gather(1, (1000, 1000), 1000), gather(0, (1000, 256), 1000), gather(1, (128, 1000), 1),
    cumsum(1, 1000, 1000), cumsum(0, 1000, 1000), cumsum(1, 128, 4096), cumsum(0, 100_000),
    topk(5, 1, 1000), topk(5, 128, 1000), topk(50, 1, 50257), topk(2, 1024, 64),
]


def draw(random: Draw) -> Row:
    rows, columns = random.extent(1, 1500), random.extent(4, 1500)
    return random.choice([
        lambda: embedding((random.extent(1, 500),), rows, columns),
        lambda: gather(random.randrange(2), (rows, columns), random.extent(1, 500)),
        lambda: cumsum(random.randrange(2), rows, columns),
        lambda: topk(min(columns, random.extent(1, 20)), rows, columns)])()
