"""Convolutions and pooling; data has its channels last, or behind the batch."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.frontend.keras.layer import Layer, layer
from tilewright.graph.ir.values import Value


def _each(x: Any, count: int) -> list[int]:
    return [int(x)] * count if isinstance(x, int) else [int(v) for v in x]


def _extents(at: Layer, x: Value) -> Sequence[Any]:
    return x.shape[1:-1] if at.channels_last else x.shape[2:]


def _ends(at: Layer, x: Value, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
          ) -> list[tuple[int, int]]:
    """(before, after) for each spatial axis: "same" gives n // stride windows, rounded up, the odd element behind."""
    if at.padding == "valid":
        return [(0, 0)] * len(kernel)
    pads = []
    for n, k, s, d in zip(_extents(at, x), kernel, stride, dilation):
        if at.padding == "causal":
            pads.append(((k - 1) * d, 0))
        elif s == 1:
            pads.append((((k - 1) * d) // 2, (k - 1) * d - ((k - 1) * d) // 2))
        elif isinstance(n, int):
            total = max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
            pads.append((total // 2, total - total // 2))
        else:
            raise at.refuse('padding="same" with strides, of a size that is not known,')
    return pads


def _convolved(at: Layer, x: Value, weight: Value, kernel: Sequence[int], groups: int, bias: Value | None) -> Any:
    stride, dilation = _each(at.strides, len(kernel)), _each(at.dilation_rate, len(kernel))
    return at.emit(topi.conv, x, weight, bias, stride=stride, padding=_ends(at, x, kernel, stride, dilation),
                  dilation=dilation, groups=groups, channels_last=at.channels_last)


def _channels_first(w: np.ndarray) -> np.ndarray:
    """Weights [*kernel, in, out] as [out, in, *kernel]."""
    return np.moveaxis(w, (-1, -2), (0, 1))


@layer("Conv1D", "Conv2D", "Conv3D")
def _conv(at: Layer, x: Value) -> Any:
    bias = at.weight("bias") if at.use_bias else None
    return at.activated(_convolved(at, x, at.weight("kernel", _channels_first), at.kernel_size, int(at.groups), bias))


def _by_channel(w: np.ndarray) -> np.ndarray:
    """Weights [*kernel, c, m] as [c * m, 1, *kernel]."""
    *kernel, c, m = w.shape
    return np.moveaxis(w.reshape(*kernel, 1, c * m), (-1, -2), (0, 1))


@layer("DepthwiseConv1D", "DepthwiseConv2D")
def _depthwise(at: Layer, x: Value) -> Any:
    channels = int(x.shape[-1 if at.channels_last else 1])
    bias = at.weight("bias") if at.use_bias else None
    return at.activated(_convolved(at, x, at.weight("kernel", _by_channel), at.kernel_size, channels, bias))


@layer("SeparableConv1D", "SeparableConv2D")
def _separable(at: Layer, x: Value) -> Any:
    channels = int(x.shape[-1 if at.channels_last else 1])
    y = _convolved(at, x, at.weight("depthwise_kernel", _by_channel), at.kernel_size, channels, None)
    bias = at.weight("bias") if at.use_bias else None
    return at.activated(at.emit(topi.conv, y, at.weight("pointwise_kernel", _channels_first), bias,
                              channels_last=at.channels_last))


@layer("MaxPooling1D", "MaxPooling2D", "MaxPooling3D", "AveragePooling1D", "AveragePooling2D", "AveragePooling3D")
def _pool(at: Layer, x: Value) -> Any:
    kernel = _each(at.pool_size, x.ndim - 2)
    stride = _each(at.strides, len(kernel))
    attrs = {"stride": stride, "padding": _ends(at, x, kernel, stride, [1] * len(kernel)),
             "channels_last": at.channels_last}
    if at.kind.startswith("Max"):
        return at.emit(topi.max_pool, x, kernel, **attrs)
    return at.emit(topi.avg_pool, x, kernel, count_include_pad=False, **attrs)


@layer("GlobalAveragePooling1D", "GlobalAveragePooling2D", "GlobalAveragePooling3D", "GlobalMaxPooling1D",
       "GlobalMaxPooling2D", "GlobalMaxPooling3D")
def _global_pool(at: Layer, x: Value) -> Any:
    axes = tuple(range(1, x.ndim - 1)) if at.channels_last else tuple(range(2, x.ndim))
    rule = topi.mean if "Average" in at.kind else topi.max
    return at.emit(rule, x, axis=axes, keepdims=bool(at.keepdims))
