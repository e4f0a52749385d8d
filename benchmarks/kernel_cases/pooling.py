"""Pooling of images: windows, and whole channels."""
from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_cases.drawing import Draw
from kernel_cases.rows import Operator, Row, Shape, f32, joined


@dataclass(frozen=True)
class Pool(Operator):
    """The maximum or the mean of each window; padding is in no mean."""
    kind: str
    kernel: int
    stride: int
    pad: int = 0
    numpy_is_peer = False

    def te(self, topi: Any, x: Any) -> Any:
        if self.kind == "max":
            return topi.max_pool(x, self.kernel, stride=self.stride, padding=self.pad)
        return topi.avg_pool(x, self.kernel, stride=self.stride, padding=self.pad, count_include_pad=False)

    def numpy(self, x: Any) -> Any:
        p, s = self.pad, self.stride
        y, = self.shapes(x.shape)
        padded = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)), constant_values=np.nan)
        windows = [padded[:, :, i:i + s * y[2]:s, j:j + s * y[3]:s][:, :, :y[2], :y[3]]
                   for i, j in itertools.product(range(self.kernel), repeat=2)]
        return (np.nanmax if self.kind == "max" else np.nanmean)(np.stack(windows), axis=0)

    def torch(self, torch: Any, x: Any) -> Any:
        f = torch.nn.functional
        if self.kind == "max":
            return f.max_pool2d(x, self.kernel, self.stride, self.pad)
        return f.avg_pool2d(x, self.kernel, self.stride, self.pad, count_include_pad=False)

    def jax(self, jax: Any, x: Any) -> Any:
        def windows(x: Any, start: float, f: Any) -> Any:
            return jax.lax.reduce_window(x, start, f, (1, 1, *(self.kernel,) * 2), (1, 1, *(self.stride,) * 2),
                                         ((0, 0), (0, 0), (self.pad,) * 2, (self.pad,) * 2))
        if self.kind == "max":
            return windows(x, -math.inf, jax.lax.max)
        there = jax.numpy.ones((1, 1, *x.shape[2:]), x.dtype)
        return windows(x, 0.0, jax.lax.add) / (windows(there, 0.0, jax.lax.add) if self.pad else self.kernel**2)

    def onnx(self, node: Any, x: str) -> Any:
        shape = {"kernel_shape": [self.kernel] * 2, "strides": [self.stride] * 2, "pads": [self.pad] * 4}
        return node("MaxPool", x, **shape) if self.kind == "max" else node("AveragePool", x, **shape)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        x, = shapes
        return [(*x[:2], *((n + 2 * self.pad - self.kernel) // self.stride + 1 for n in x[2:]))]

    def operations(self, *shapes: Shape) -> float:
        return float(math.prod(self.shapes(*shapes)[0]) * self.kernel**2)

    def text(self, *shapes: Shape) -> str:
        return f"{self.kind} pool {joined(shapes[0])} {self.kernel}x{self.kernel}/{self.stride} pad {self.pad}"


@dataclass(frozen=True)
class GlobalPool(Operator):
    """The maximum or the mean of each channel."""
    kind: str

    def te(self, topi: Any, x: Any) -> Any:
        return (topi.global_max_pool if self.kind == "max" else topi.global_avg_pool)(x)

    def numpy(self, x: Any) -> Any:
        return (np.max if self.kind == "max" else np.mean)(x, axis=(2, 3), keepdims=True)

    def torch(self, torch: Any, x: Any) -> Any:
        return (torch.amax if self.kind == "max" else torch.mean)(x, dim=(2, 3), keepdim=True)

    def jax(self, jax: Any, x: Any) -> Any:
        return (jax.numpy.max if self.kind == "max" else jax.numpy.mean)(x, axis=(2, 3), keepdims=True)

    def onnx(self, node: Any, x: str) -> Any:
        return node("GlobalMaxPool" if self.kind == "max" else "GlobalAveragePool", x)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        return [(*shapes[0][:2], 1, 1)]

    def operations(self, *shapes: Shape) -> float:
        return float(math.prod(shapes[0]))

    def magnitude(self, want: Any, *operands: Any) -> float:
        return float(np.max(self.numpy(np.abs(operands[0]))))

    def text(self, *shapes: Shape) -> str:
        return f"global {self.kind} pool {joined(shapes[0])}"


def pool(kind: str, channels: int, size: int, kernel: int, stride: int, pad: int = 0, batch: int = 1) -> Row:
    return Row(Pool(kind, kernel, stride, pad), (f32(batch, channels, size, size),))


def global_pool(kind: str, *shape: int) -> Row:
    return Row(GlobalPool(kind), (f32(*shape),))


ROWS = [
    pool("max", 64, 112, 3, 2, 1), pool("max", 64, 112, 2, 2), pool("max", 256, 28, 3, 1, 1),
    pool("avg", 64, 56, 2, 2), pool("avg", 128, 28, 3, 2, 1), pool("avg", 256, 14, 3, 1, 1),
    global_pool("avg", 1, 2048, 7, 7), global_pool("avg", 1, 96, 112, 112), global_pool("max", 1, 512, 14, 14),
]


def draw(random: Draw) -> Row:
    kind, channels, size = random.choice(["max", "avg"]), random.extent(3, 512), random.extent(7, 112)
    if random.flag(0.2):
        return global_pool(kind, 1, channels, size, size)
    kernel = random.choice([2, 3, 3, 5])
    return pool(kind, channels, size, kernel, random.choice([1, 2]), random.choice([0, kernel // 2]),
                random.choice([1, 1, 2]))
