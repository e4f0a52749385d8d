"""Other orders of the same elements: transposition, concatenation."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_cases.drawing import Draw
from kernel_cases.rows import Operator, Row, Shape, f32, joined


@dataclass(frozen=True)
class Transpose(Operator):
    """The axes in another order, as a copy."""
    axes: tuple[int, ...]

    def te(self, topi: Any, x: Any) -> Any:
        return topi.transpose(x, self.axes)

    def numpy(self, x: Any) -> Any:
        return np.ascontiguousarray(np.transpose(x, self.axes))

    def torch(self, torch: Any, x: Any) -> Any:
        return torch.permute(x, self.axes).contiguous()

    def jax(self, jax: Any, x: Any) -> Any:
        return jax.numpy.transpose(x, self.axes)

    def onnx(self, node: Any, x: str) -> Any:
        return node("Transpose", x, perm=self.axes)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        return [tuple(shapes[0][a] for a in self.axes)]

    def operations(self, *shapes: Shape) -> float:
        return 0.0

    def text(self, *shapes: Shape) -> str:
        return f"transpose {joined(shapes[0])} by {','.join(map(str, self.axes))}"


@dataclass(frozen=True)
class Concat(Operator):
    """Tensors one behind the other along an axis."""
    axis: int

    def te(self, topi: Any, *parts: Any) -> Any:
        return topi.concatenate(parts, axis=self.axis)

    def numpy(self, *parts: Any) -> Any:
        return np.concatenate(parts, self.axis)

    def torch(self, torch: Any, *parts: Any) -> Any:
        return torch.cat(parts, self.axis)

    def jax(self, jax: Any, *parts: Any) -> Any:
        return jax.numpy.concatenate(parts, self.axis)

    def onnx(self, node: Any, *parts: str) -> Any:
        return node("Concat", *parts, axis=self.axis)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        first, at = shapes[0], self.axis
        return [(*first[:at], sum(s[at] for s in shapes), *first[at + 1:])]

    def operations(self, *shapes: Shape) -> float:
        return 0.0

    def leading(self, *shapes: Shape) -> list[tuple[int, int]]:
        return [] if self.axis == 0 else [(n, 0) for n in range(len(shapes))]

    def text(self, *shapes: Shape) -> str:
        return f"concat {' '.join(map(joined, shapes))} axis {self.axis}"


def transpose(shape: tuple[int, ...], *axes: int) -> Row:
    return Row(Transpose(axes), (f32(*shape),))


def concat(axis: int, *shapes: tuple[int, ...]) -> Row:
    return Row(Concat(axis), tuple(f32(*s) for s in shapes))


ROWS = [
    *(transpose(shape, 1, 0) for shape in ((1024, 1024), (2048, 2048), (1000, 784), (128, 3072), (4096, 16))),
    *(transpose((64, 128, 256), *axes) for axes in ((0, 2, 1), (1, 0, 2), (2, 1, 0), (2, 0, 1))),
    transpose((1, 128, 12, 64), 0, 2, 1, 3), transpose((1, 128, 12, 64), 0, 2, 3, 1),
    transpose((1, 64, 56, 56), 0, 2, 3, 1), transpose((1, 56, 56, 64), 0, 3, 1, 2),
    transpose((8, 256, 14, 14), 0, 2, 3, 1), transpose((16, 32, 16, 32), 3, 1, 2, 0),
    concat(1, (1, 256, 28, 28), (1, 256, 28, 28)), concat(0, (1000, 256), (1000, 256)),
    concat(1, (1000, 64), (1000, 192)), concat(2, (1, 12, 127, 64), (1, 12, 1, 64)),
]


def draw(random: Draw) -> Row:
    rank = random.choice([2, 3, 4])
    shape = tuple(random.extent(3, {2: 1500, 3: 150, 4: 48}[rank]) for _ in range(rank))
    if random.flag(0.3):
        axis = random.randrange(1, rank)
        return concat(axis, shape, (*shape[:axis], random.extent(1, shape[axis]), *shape[axis + 1:]))
    axes = list(range(rank))
    while axes == sorted(axes):
        random.shuffle(axes)
    return transpose(shape, *axes)
