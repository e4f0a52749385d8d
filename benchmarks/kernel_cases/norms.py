"""Softmax and norms: what divides by sums of a row, a channel, a group."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_cases.drawing import Draw
from kernel_cases.rows import Operand, Operator, Row, Shape, f32

EPS = 1e-5


@dataclass(frozen=True)
class Softmax(Operator):
    """exp(x) / sum of exp(x) along an axis, or the logarithm of it."""
    axis: int = -1
    log: bool = False

    def te(self, topi: Any, x: Any) -> Any:
        return (topi.log_softmax if self.log else topi.softmax)(x, axis=self.axis)

    def numpy(self, x: Any) -> Any:
        y = x - x.max(self.axis, keepdims=True)
        e = np.exp(y)
        total = e.sum(self.axis, keepdims=True)
        return y - np.log(total) if self.log else e / total

    def torch(self, torch: Any, x: Any) -> Any:
        return (torch.log_softmax if self.log else torch.softmax)(x, self.axis)

    def jax(self, jax: Any, x: Any) -> Any:
        return (jax.nn.log_softmax if self.log else jax.nn.softmax)(x, self.axis)

    def onnx(self, node: Any, x: str) -> Any:
        return node("LogSoftmax" if self.log else "Softmax", x, axis=self.axis)

    def operations(self, x: Shape) -> float:
        return 5.0 * math.prod(x)

    def leading(self, x: Shape) -> list[tuple[int, int]]:
        return [(0, 0)]


@dataclass(frozen=True)
class LayerNorm(Operator):
    """(x - mean) / sqrt(var + eps) * weight + bias, along the last axis."""

    def te(self, topi: Any, x: Any, weight: Any, bias: Any) -> Any:
        return topi.layer_norm(x, weight, bias, eps=EPS)

    def numpy(self, x: Any, weight: Any, bias: Any) -> Any:
        return normal(x, -1) * weight + bias

    def torch(self, torch: Any, x: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, EPS)

    def jax(self, jax: Any, x: Any, weight: Any, bias: Any) -> Any:
        return jax.nn.standardize(x, epsilon=EPS) * weight + bias

    def onnx(self, node: Any, x: str, weight: str, bias: str) -> Any:
        return node("LayerNormalization", x, weight, bias, axis=-1, epsilon=EPS)

    def operations(self, x: Shape, *_: Shape) -> float:
        return 8.0 * math.prod(x)


def normal(x: Any, axes: Any) -> Any:
    """(x - mean) / sqrt(var + eps) of an array of NumPy."""
    centered = x - x.mean(axes, keepdims=True)
    return centered / np.sqrt((centered * centered).mean(axes, keepdims=True) + x.dtype.type(EPS))


@dataclass(frozen=True)
class RmsNorm(Operator):
    """x / sqrt(mean of x * x + eps) * weight, along the last axis."""

    def te(self, topi: Any, x: Any, weight: Any) -> Any:
        return topi.rms_norm(x, weight, eps=EPS)

    def numpy(self, x: Any, weight: Any) -> Any:
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + x.dtype.type(EPS)) * weight

    def torch(self, torch: Any, x: Any, weight: Any) -> Any:
        return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, EPS)

    def jax(self, jax: Any, x: Any, weight: Any) -> Any:
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + EPS) * weight

    def onnx(self, node: Any, x: str, weight: str) -> Any:
        return node("SimplifiedLayerNormalization", x, weight, axis=-1, epsilon=EPS)

    def operations(self, x: Shape, *_: Shape) -> float:
        return 4.0 * math.prod(x)


@dataclass(frozen=True)
class BatchNorm(Operator):
    """(x - mean[c]) / sqrt(var[c] + eps) * weight[c] + bias[c], by moments that are given."""

    def te(self, topi: Any, x: Any, mean: Any, var: Any, weight: Any, bias: Any) -> Any:
        return topi.batch_norm(x, mean, var, weight, bias, eps=EPS)

    def numpy(self, x: Any, *moments: Any) -> Any:
        mean, var, weight, bias = (m[:, None, None] for m in moments)
        return (x - mean) * (weight / np.sqrt(var + x.dtype.type(EPS))) + bias

    def torch(self, torch: Any, x: Any, mean: Any, var: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.batch_norm(x, mean, var, weight, bias, False, 0.1, EPS)

    def jax(self, jax: Any, x: Any, *moments: Any) -> Any:
        mean, var, weight, bias = (m[:, None, None] for m in moments)
        return (x - mean) * (weight * jax.lax.rsqrt(var + EPS)) + bias

    def onnx(self, node: Any, x: str, mean: str, var: str, weight: str, bias: str) -> Any:
        return node("BatchNormalization", x, weight, bias, mean, var, epsilon=EPS)

    def operations(self, x: Shape, *_: Shape) -> float:
        return 2.0 * math.prod(x)


@dataclass(frozen=True)
class GroupNorm(Operator):
    """Normal within the channels of a group and their pixels, * weight[c] + bias[c]."""
    groups: int

    def te(self, topi: Any, x: Any, weight: Any, bias: Any) -> Any:
        return topi.group_norm(x, weight, bias, groups=self.groups, eps=EPS)

    def numpy(self, x: Any, weight: Any, bias: Any) -> Any:
        y = normal(x.reshape(x.shape[0], self.groups, -1), -1).reshape(x.shape)
        return y * weight[:, None, None] + bias[:, None, None]

    def torch(self, torch: Any, x: Any, weight: Any, bias: Any) -> Any:
        return torch.nn.functional.group_norm(x, self.groups, weight, bias, EPS)

    def jax(self, jax: Any, x: Any, weight: Any, bias: Any) -> Any:
        y = jax.nn.standardize(x.reshape(x.shape[0], self.groups, -1), epsilon=EPS).reshape(x.shape)
        return y * weight[:, None, None] + bias[:, None, None]

    def onnx(self, node: Any, x: str, weight: str, bias: str) -> Any:
        return node("GroupNormalization", x, weight, bias, num_groups=self.groups, epsilon=EPS)

    def operations(self, x: Shape, *_: Shape) -> float:
        return 8.0 * math.prod(x)


def softmax(*shape: int, axis: int = -1, log: bool = False, tag: str = "") -> Row:
    return Row(Softmax(axis, log), (f32(*shape),), tag)


def layer_norm(*shape: int) -> Row:
    return Row(LayerNorm(), (f32(*shape), f32(shape[-1]), f32(shape[-1])))


def rms_norm(*shape: int) -> Row:
    return Row(RmsNorm(), (f32(*shape), f32(shape[-1])))


def batch_norm(*shape: int) -> Row:
    c = shape[1]
    return Row(BatchNorm(), (f32(*shape), f32(c), Operand((c,), low=0.5, high=1.5), f32(c), f32(c)))


def group_norm(*shape: int, groups: int) -> Row:
    return Row(GroupNorm(groups), (f32(*shape), f32(shape[1]), f32(shape[1])))


ROWS = [
    softmax(1000, 1000), softmax(1000, 1000, axis=0), softmax(128, 50257), softmax(1000, 10), softmax(1, 1000),
    softmax(12, 128, 128, tag="bert"), softmax(12, 512, 512, tag="gpt2"), softmax(1000, 10, log=True),
    softmax(128, 1000, log=True),
    layer_norm(128, 768), layer_norm(1, 512, 768), layer_norm(1000, 100), layer_norm(3136, 96), layer_norm(32, 4096),
    rms_norm(128, 768), rms_norm(128, 4096), rms_norm(1, 4096),
    batch_norm(1, 64, 112, 112), batch_norm(1, 256, 56, 56), batch_norm(8, 512, 7, 7),
    group_norm(1, 64, 56, 56, groups=32), group_norm(1, 320, 32, 32, groups=32), group_norm(4, 32, 28, 28, groups=8),
]


def draw(random: Draw) -> Row:
    rows, columns = random.extent(1, 2000), random.extent(8, 4096)
    while rows * columns > 4e6:
        rows //= 2
    image = random.extent(1, 4), 8 * random.extent(1, 32), (size := random.extent(7, 56)), size
    return random.choice([
        lambda: softmax(rows, columns, axis=random.choice([-1, -1, 0]), log=random.flag(0.3)),
        lambda: layer_norm(rows, columns), lambda: rms_norm(rows, columns), lambda: batch_norm(*image),
        lambda: group_norm(*image, groups=random.choice([1, 2, 4, 8]))])()
