"""The convolutions of `tvm.topi.nn` under TVM's names. A padding is TVM's, as `arguments.ends` reads it."""
from __future__ import annotations

from typing import Any

from tilewright import te, topi
from tilewright.compat.topi.arguments import (
    SPATIAL,
    converted,
    each,
    ends,
    plain,
    taking_numbers,
)
from tilewright.support.errors import ArgumentError, described
from tilewright.te.tensor import Tensor
from tilewright.topi.shapes import check_extent, check_rank


def conv(data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, groups: int, layout: str,
         kernel_layout: str, out_dtype: Any) -> Tensor:
    """A convolution of tensors in any layout of these letters; the result has that of the data."""
    count = len(layout) - 2
    space = SPATIAL[count - 1] if 1 <= count <= 3 else ""
    plain_data, last = "NC" + space, "N" + space + "C"
    wanted = kernel_layout or ("OI" + space if layout != last else space + "IO")
    if sorted(layout) != sorted(plain_data) or sorted(wanted) != sorted("OI" + space):
        raise ArgumentError(f"conv{count}d: the layouts {layout!r} and {wanted!r}", "layouts without blocks are taken")
    for name, x in (("data", data), ("kernel", kernel)):
        check_rank(f"conv{count}d", name, x, count + 2)
    weight = _ordered(kernel, wanted, "OI" + space)
    keeps = layout in (plain_data, last)
    x = data if keeps else _ordered(data, layout, plain_data)
    pads = ends(padding, weight.shape[2:], dilation)
    y = topi.conv(x, weight, stride=each(strides, count), padding=pads, dilation=each(dilation, count), groups=groups,
                  channels_last=layout == last, out_dtype=out_dtype or data.dtype)
    return y if keeps else _ordered(y, plain_data, layout)


def _ordered(x: Tensor, layout: str, wanted: str) -> Tensor:
    """x with its axes in the order of another layout of the same letters."""
    return x if layout == wanted else topi.transpose(x, [layout.index(c) for c in wanted])


def conv1d(data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1,
           data_layout: str = "NCW", kernel_layout: str = "", out_dtype: Any = None, layout: str = "") -> Tensor:
    """A convolution over one axis. layout: the name of data_layout up to TVM 0.8."""
    return conv(data, kernel, strides, padding, dilation, groups, layout or data_layout, kernel_layout, out_dtype)


def conv1d_ncw(data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1,
               out_dtype: Any = None) -> Tensor:
    """A convolution of data in the layout NCW by filters OIW."""
    return conv(data, kernel, strides, padding, dilation, 1, "NCW", "OIW", out_dtype)


def conv1d_nwc(data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1,
               out_dtype: Any = None) -> Tensor:
    """A convolution of data in the layout NWC by filters WIO."""
    return conv(data, kernel, strides, padding, dilation, 1, "NWC", "WIO", out_dtype)


def conv2d(input: Tensor, filter: Tensor, strides: Any, padding: Any, dilation: Any, data_layout: str = "NCHW",
           kernel_layout: str = "", out_dtype: Any = None, layout: str = "") -> Tensor:
    """A convolution over two axes; data_layout "NCHW" with filters "OIHW", "NHWC" and "HWCN" with "HWIO".

    layout: the name of data_layout up to TVM 0.8.
    """
    data_layout = layout or data_layout
    kernel_layout = kernel_layout or ("OIHW" if data_layout == "NCHW" else "HWIO")
    if (data_layout, kernel_layout) == ("NCHW", "OIHW"):
        return conv2d_nchw(input, filter, strides, padding, dilation, out_dtype)
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1,
                out_dtype: Any = None) -> Tensor:
    """A convolution of data in the layout NCHW by filters OIHW, in the stages that schedules of TVM know by name:
    pad_temp and conv2d_nchw."""
    plan = conv(Input, Filter, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype)       # its checks and its type
    pads = ends(padding, Filter.shape[2:], dilation)
    (sy, sx), (dy, dx) = each(stride, 2), each(dilation, 2)
    (top, bottom), (left, right) = pads
    batch, channels, height, width = Input.shape

    def padded(n: Any, c: Any, y: Any, x: Any) -> Any:
        inside = te.all(y >= top, y < height + top, x >= left, x < width + left)
        return te.if_then_else(inside, Input[n, c, y - top, x - left], te.const(0, Input.dtype))
    shape = (batch, channels, height + top + bottom, width + left + right)
    pad_temp = te.compute(shape, padded if any(map(any, pads)) else lambda *at: Input(*at), name="pad_temp")
    rc, ry, rx = (te.reduce_axis((0, n), name=name) for n, name in zip(Filter.shape[1:], ("rc", "ry", "rx")))
    return te.compute(plan.shape, lambda nn, ff, yy, xx: te.sum(
        pad_temp[nn, rc, yy * sy + ry * dy, xx * sx + rx * dx].astype(plan.dtype)
        * Filter[ff, rc, ry, rx].astype(plan.dtype), axis=[rc, ry, rx]), name="conv2d_nchw", tag="conv2d_nchw")


def conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1,
                out_dtype: Any = "float32") -> Tensor:
    """A convolution of data in the layout NHWC by filters HWIO."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype)


def conv2d_hwcn(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1,
                out_dtype: Any = None) -> Tensor:
    """A convolution of data in the layout HWCN by filters HWIO."""
    return conv(Input, Filter, stride, padding, dilation, 1, "HWCN", "HWIO", out_dtype)


def conv3d_ncdhw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int = 1,
                 out_dtype: Any = None) -> Tensor:
    """A convolution over three axes."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype)


def conv3d_ndhwc(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int = 1,
                 out_dtype: Any = "float32") -> Tensor:
    """A convolution over three axes of data in the layout NDHWC by filters DHWIO."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NDHWC", "DHWIO", out_dtype)


def group_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int,
                      out_dtype: Any = None) -> Tensor:
    """A convolution of groups of channels."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


def _depthwise(Input: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: Any,
               last: bool) -> Tensor:
    """By filters [c, m, kh, kw], of which channel c has m."""
    check_rank("depthwise_conv2d", "Filter", weight, 4)
    c, m, *kernel = weight.shape
    filters = topi.reshape(weight, [c * m, 1, *kernel])
    return topi.conv(Input, filters, stride=each(stride, 2), padding=ends(padding, kernel, dilation),
                     dilation=each(dilation, 2), groups=plain(c), channels_last=last,
                     out_dtype=out_dtype or Input.dtype)


def depthwise_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1,
                          out_dtype: Any = None) -> Tensor:
    """A convolution of each channel by filters of its own, [c, m, kh, kw]."""
    return _depthwise(Input, Filter, stride, padding, dilation, out_dtype, False)


def depthwise_conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1,
                          kernel_layout: str = "HWOI", out_dtype: Any = None) -> Tensor:
    """A convolution of each channel by filters of its own, [kh, kw, c, m], or [kh, kw, m, c] in the layout HWIO."""
    if kernel_layout not in ("HWOI", "HWIO"):
        raise ArgumentError(f"depthwise_conv2d_nhwc: kernel_layout is {described(kernel_layout)}", '"HWOI" or "HWIO"')
    check_rank("depthwise_conv2d_nhwc", "Filter", Filter, 4)
    return _depthwise(Input, _ordered(Filter, kernel_layout, "OIHW"), stride, padding, dilation, out_dtype, True)


def conv_transposed(data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, output_padding: Any,
                    groups: int, layout: str, kernel_layout: str, out_dtype: Any) -> Tensor:
    """The adjoint of a convolution, of tensors in any layout of these letters; products are made in out_dtype."""
    count = len(layout) - 2
    space = SPATIAL[count - 1] if 1 <= count <= 3 else ""
    op = f"conv{count}d_transpose"
    if sorted(layout) != sorted("NC" + space) or sorted(kernel_layout) != sorted("IO" + space):
        raise ArgumentError(f"{op}: the layouts {layout!r} and {kernel_layout!r}", "layouts without blocks are taken")
    for name, x in (("data", data), ("kernel", kernel)):
        check_rank(op, name, x, count + 2)
    steps, extra = each(strides, count), each(output_padding, count)
    if any(e >= s for e, s in zip(extra, steps)):
        raise ArgumentError(f"{op}: output_padding is {described(output_padding)}, strides {described(strides)}",
                            "output_padding is smaller than the stride")
    x, weight = _ordered(data, layout, "NC" + space), _ordered(kernel, kernel_layout, "IO" + space)
    y = topi.conv_transpose(converted(x, out_dtype), converted(weight, out_dtype), stride=steps,
                            padding=ends(padding, weight.shape[2:], dilation), output_padding=extra,
                            dilation=each(dilation, count), groups=groups)
    return _ordered(y, "NC" + space, layout)


def conv2d_transpose_nchw(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: Any = None,
                          output_padding: Any = 0) -> Tensor:
    """The adjoint of a convolution, by filters [in, out, kh, kw]."""
    return conv_transposed(Input, Filter, strides, padding, 1, output_padding, 1, "NCHW", "IOHW", out_dtype)


def conv1d_transpose_ncw(data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: Any = None,
                         output_padding: Any = 0) -> Tensor:
    """The adjoint of a convolution over one axis, by filters [in, out, kw]."""
    return conv_transposed(data, kernel, stride, padding, 1, output_padding, 1, "NCW", "IOW", out_dtype)


def group_conv2d_transpose_nchw(data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: Any = None,
                                output_padding: Any = 0, groups: int = 1) -> Tensor:
    """The adjoint of a convolution of groups."""
    return conv_transposed(data, kernel, stride, padding, 1, output_padding, groups, "NCHW", "IOHW", out_dtype)


def deformable_conv2d_nchw(data: Tensor, offset: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any,
                           deformable_groups: int, groups: int, out_dtype: Any = None) -> Tensor:
    """A convolution that reads at places moved by offset."""
    op = "deformable_conv2d_nchw"
    for name, x in (("data", data), ("offset", offset), ("kernel", kernel)):
        check_rank(op, name, x, 4)
    _, per, high, wide = kernel.shape
    check_extent(op, f"for {groups} group(s) extent 1 of data", data.shape[1], groups * per)
    check_extent(op, f"for {deformable_groups} part(s) extent 1 of offset", offset.shape[1],
                 deformable_groups * 2 * high * wide)
    return topi.deform_conv2d(converted(data, out_dtype), offset, converted(kernel, out_dtype), stride=each(strides, 2),
                              padding=ends(padding, kernel.shape[2:], dilation), dilation=each(dilation, 2))


# products


NAMES: dict[str, Any] = {f.__name__: taking_numbers(f) for f in (
    conv1d, conv1d_ncw, conv1d_nwc, conv2d, conv2d_nchw, conv2d_nhwc, conv2d_hwcn, conv3d_ncdhw, conv3d_ndhwc,
    group_conv2d_nchw, depthwise_conv2d_nchw, depthwise_conv2d_nhwc,
    conv2d_transpose_nchw, conv1d_transpose_ncw, group_conv2d_transpose_nchw, deformable_conv2d_nchw)}
