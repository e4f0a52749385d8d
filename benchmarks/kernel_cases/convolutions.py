"""Convolutions of images: the distinct ones of four networks."""
from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_cases.drawing import Draw
from kernel_cases.rows import Operator, Row, Shape, f32


@dataclass(frozen=True)
class Conv(Operator):
    """y[b, f, i, j] = sum over c, p, q of x[b, c, i * stride + p - pad, j * stride + q - pad] * w[f, c, p, q]."""
    stride: int = 1
    pad: int = 0
    groups: int = 1
    numpy_is_peer = False
    tolerance = 1e-4                                 # room for Winograd's algorithm

    def te(self, topi: Any, x: Any, w: Any) -> Any:
        return topi.conv(x, w, stride=self.stride, padding=self.pad, groups=self.groups)

    def numpy(self, x: Any, w: Any) -> Any:
        x = np.pad(x, ((0, 0), (0, 0), (self.pad,) * 2, (self.pad,) * 2))
        (batch, filters, height, width), s, g = self.shapes_padded(x.shape, w.shape), self.stride, self.groups
        y = np.zeros((batch, g, filters // g, height * width))
        for p, q in itertools.product(*map(range, w.shape[2:])):
            part = x[:, :, p:p + s * height:s, q:q + s * width:s][:, :, :height, :width]
            y += w[:, :, p, q].reshape(g, filters // g, -1) @ part.reshape(batch, g, -1, height * width)
        return y.reshape(batch, filters, height, width)

    def torch(self, torch: Any, x: Any, w: Any) -> Any:
        return torch.nn.functional.conv2d(x, w, None, self.stride, self.pad, 1, self.groups)

    def jax(self, jax: Any, x: Any, w: Any) -> Any:
        return jax.lax.conv_general_dilated(x, w, (self.stride,) * 2, [(self.pad,) * 2] * 2,
                                            feature_group_count=self.groups)

    def onnx(self, node: Any, x: str, w: str) -> Any:
        return node("Conv", x, w, strides=[self.stride] * 2, pads=[self.pad] * 4, group=self.groups)

    def shapes_padded(self, x: Shape, w: Shape) -> Shape:
        return (x[0], w[0], *((n - k) // self.stride + 1 for n, k in zip(x[2:], w[2:])))

    def shapes(self, *shapes: Shape) -> list[Shape]:
        x, w = shapes
        return [self.shapes_padded((*x[:2], *(n + 2 * self.pad for n in x[2:])), w)]

    def operations(self, *shapes: Shape) -> float:
        return 2.0 * math.prod(self.shapes(*shapes)[0]) * math.prod(shapes[1][1:])

    def text(self, *shapes: Shape) -> str:
        (b, c, height, width), (f, _, kernel, _) = shapes
        kind = "" if self.groups == 1 else " depthwise" if self.groups == c else f" {self.groups} groups"
        return f"conv{kind} {b}x{c}x{height}x{width} -> {f}, {kernel}x{kernel}" + (
            f"/{self.stride}" if self.stride > 1 else "")


@dataclass(frozen=True)
class Layer:
    """A convolution of a square image; its padding keeps the size, but for a kernel as large as its stride."""
    channels: int
    size: int
    filters: int
    kernel: int
    stride: int = 1
    groups: int = 1

    @property
    def out(self) -> int:
        return -(-self.size // self.stride)

    def row(self, tag: str, batch: int = 1, extra: bool = False) -> Row:
        pad = 0 if self.kernel == self.stride else self.kernel // 2
        return Row(Conv(self.stride, pad, self.groups), (f32(batch, self.channels, self.size, self.size), f32(
            self.filters, self.channels // self.groups, self.kernel, self.kernel)), tag, extra)


def resnet50() -> Iterator[Layer]:
    yield Layer(3, 224, 64, 7, 2)
    channels, size = 64, 56
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            s = stride if block == 0 else 1
            yield Layer(channels, size, width, 1)
            yield Layer(width, size, width, 3, s)
            if block == 0:
                yield Layer(channels, size, 4 * width, 1, s)
            size //= s
            yield Layer(width, size, 4 * width, 1)
            channels = 4 * width


def inverted(channels: int, size: int, stages: Any, head: int) -> Iterator[Layer]:
    """Blocks that expand, convolve each channel, and contract; stages: (expansion, filters, blocks, stride, kernel)."""
    yield Layer(3, size, channels, 3, 2)
    size //= 2
    for expansion, filters, blocks, stride, kernel in stages:
        for block in range(blocks):
            width, s = channels * expansion, stride if block == 0 else 1
            if expansion > 1:
                yield Layer(channels, size, width, 1)
            yield Layer(width, size, width, kernel, s, width)
            size //= s
            yield Layer(width, size, filters, 1)
            channels = filters
    yield Layer(channels, size, head, 1)


def mobilenet_v2() -> Iterator[Layer]:
    return inverted(32, 224, ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 32, 3, 2, 3), (6, 64, 4, 2, 3), (6, 96, 3, 1, 3),
                              (6, 160, 3, 2, 3), (6, 320, 1, 1, 3)), 1280)


def efficientnet_b0() -> Iterator[Layer]:
    """Without the squeezes: 1x1 convolutions of single pixels."""
    return inverted(32, 224, ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
                              (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)), 1280)


def convnext_t() -> Iterator[Layer]:
    """Without the 1x1 ones, which are linear layers of pixels: rows of the products."""
    yield Layer(3, 224, 96, 4, 4)
    for width, size in ((96, 56), (192, 28), (384, 14), (768, 7)):
        if width > 96:
            yield Layer(width // 2, 2 * size, width, 2, 2)
        yield Layer(width, size, width, 7, 1, width)


NETWORKS = {"resnet50": resnet50, "mobilenetv2": mobilenet_v2, "efficientnetb0": efficientnet_b0,
            "convnext": convnext_t}


def distinct() -> dict[Layer, str]:
    """Each layer, and the first network that has it."""
    found: dict[Layer, str] = {}
    for name, network in NETWORKS.items():
        for layer in network():
            found.setdefault(layer, name)
    return found


ROWS = [layer.row(name, batch, batch > 1) for batch in (1, 8) for layer, name in distinct().items()]


def draw(random: Draw) -> Row:
    kernel, size = random.choice([1, 1, 3, 3, 3, 5, 7]), random.extent(5, 80)
    stride = random.choice([1, 1, 2])
    if random.flag(0.3):
        channels = random.extent(8, 800)
        layer = Layer(channels, size, channels, kernel, stride, channels)
    else:
        layer = Layer(random.extent(3, 512), size, random.extent(8, 512), kernel, stride)
    return layer.row("drawn", random.choice([1, 1, 1, 2]))
