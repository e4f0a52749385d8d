"""Convolutions, and windows as columns."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch.emit import Emitter, numbers
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


@operator("convolution", "_convolution", "convolution_overrideable", "mkldnn_convolution")
def convolution(e: Emitter, x: Value, weight: Value, bias: Value | None, stride: Any, padding: Any, dilation: Any,
                transposed: bool = False, output_padding: Any = 0, groups: int = 1, *_: Any) -> Value:
    """`topi.conv`, or `topi.conv_transpose`."""
    n = weight.ndim - 2
    single = x.ndim == n + 1
    if single:
        x = e.reshape(x, (1, *x.shape))
    attributes: dict[str, Any] = {"stride": numbers(stride, n), "dilation": numbers(dilation, n), "groups": groups,
                                  "padding": numbers(padding, n)}
    if transposed:
        y = e.te(topi.conv_transpose, x, weight, bias, output_padding=numbers(output_padding, n), **attributes)
    else:
        y = e.te(topi.conv, x, weight, bias, **attributes)
    return e.reshape(y, e.shape) if single else y


@operator("conv1d", "conv2d", "conv3d", "conv1d.padding", "conv2d.padding", "conv3d.padding")
def conv(e: Emitter, x: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0,
         dilation: Any = 1, groups: int = 1) -> Value:
    """`topi.conv`."""
    n = weight.ndim - 2
    if isinstance(padding, str):
        strides, wide = numbers(stride, n), numbers(dilation, n)
        around = [d * (k - 1) if padding == "same" else 0 for d, k in zip(wide, weight.shape[2:])]
        single = x.ndim == n + 1
        x = e.reshape(x, (1, *x.shape)) if single else x
        y = e.te(topi.conv, x, weight, bias, stride=strides, dilation=wide, groups=groups,
                 padding=tuple((p // 2, p - p // 2) for p in around))
        return e.reshape(y, e.shape) if single else y
    return convolution(e, x, weight, bias, stride, padding, dilation, groups=groups)


@operator("conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input")
def conv_transpose(e: Emitter, x: Value, weight: Value, bias: Value | None = None, stride: Any = 1, padding: Any = 0,
                   output_padding: Any = 0, groups: int = 1, dilation: Any = 1) -> Value:
    """`topi.conv_transpose`."""
    return convolution(e, x, weight, bias, stride, padding, dilation, True, output_padding, groups)


@operator("im2col")
def im2col(e: Emitter, x: Value, kernel_size: Sequence[int], dilation: Sequence[int], padding: Sequence[int],
           stride: Sequence[int]) -> Value:
    """`topi.unfold`."""
    single = x.ndim == 3
    x = e.reshape(x, (1, *x.shape)) if single else x
    y = e.te(topi.unfold, x, numbers(kernel_size, 2), stride=numbers(stride, 2), padding=numbers(padding, 2),
             dilation=numbers(dilation, 2))
    return e.reshape(y, e.shape) if single else y


@operator("col2im")
def col2im(e: Emitter, x: Value, output_size: Sequence[int], kernel_size: Sequence[int], dilation: Sequence[int],
           padding: Sequence[int], stride: Sequence[int]) -> Value:
    """`topi.fold`."""
    single = x.ndim == 2
    x = e.reshape(x, (1, *x.shape)) if single else x
    y = e.te(topi.fold, x, numbers(output_size, 2), numbers(kernel_size, 2), stride=numbers(stride, 2),
             padding=numbers(padding, 2), dilation=numbers(dilation, 2))
    return e.reshape(y, e.shape) if single else y
