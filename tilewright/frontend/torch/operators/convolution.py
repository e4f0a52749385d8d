"""Convolutions, and windows as columns."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch import rules
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


@operator("convolution_backward")
def convolution_backward(e: Emitter, dy: Value, x: Value, weight: Value, bias_sizes: Any, stride: Any, padding: Any,
                         dilation: Any, transposed: bool, output_padding: Any, groups: int,
                         output_mask: Sequence[bool]) -> tuple[Value | None, ...]:
    """`topi.conv_transpose` or `topi.conv` of dy for x, sums of products for the weight, `topi.sum` for the bias."""
    n = weight.ndim - 2
    window: dict[str, Any] = {"stride": numbers(stride, n), "padding": numbers(padding, n),
                              "dilation": numbers(dilation, n)}
    dx = dw = db = None
    if output_mask[0]:
        dx = _input_gradient(e, dy, x, weight, transposed, groups, window)
    if output_mask[1]:
        wide, narrow = (dy, x) if transposed else (x, dy)
        dw = e.te(rules.weight_gradient, wide, narrow, kernel=weight.shape[2:], groups=groups, **window)
    if output_mask[2]:
        db = e.te(topi.sum, dy, axis=(0, *range(2, dy.ndim)))
    return dx, dw, db


def _input_gradient(e: Emitter, dy: Value, x: Value, weight: Value, transposed: bool, groups: int,
                    window: dict[str, Any]) -> Value:
    """The gradient of x, cut to its extents: a convolution leaves out what no window reaches."""
    if transposed:
        y = e.te(topi.conv, dy, weight, None, groups=groups, **window)
    else:
        y = e.te(topi.conv_transpose, dy, weight, None, groups=groups, output_padding=tuple(
            s - 1 for s in window["stride"]), **window)
    return e.te(rules.window, y, shape=x.shape, begin=(0,) * x.ndim)


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
