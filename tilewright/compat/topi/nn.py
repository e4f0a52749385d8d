"""`tvm.topi.nn`: layers under TVM's names. A padding is TVM's: a number, one for each axis, the ends (all first ones,
then all last ones), "VALID", or "SAME"."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import te, topi
from tilewright.compat.topi.arguments import (
    SPATIAL,
    along,
    channels_last,
    converted,
    each,
    numbers,
    plain,
    same_count,
    taking_numbers,
)
from tilewright.compat.topi.images import resize2d
from tilewright.support.errors import ArgumentError, described
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import maximum
from tilewright.topi.shapes import axis_index, axis_indices, check_extent, check_rank, same_shape


def ends(padding: Any, kernel: Sequence[Any], dilation: Any) -> list[tuple[int, int]]:
    """The padding as pairs (before, after), one for each spatial axis."""
    count, given = len(kernel), numbers(padding)
    if isinstance(given, str):
        if given == "VALID":
            return [(0, 0)] * count
        if given != "SAME":
            raise ArgumentError(f"padding is {described(padding)}", '"VALID", "SAME" or numbers')
        spans = [(plain(k) - 1) * d for k, d in zip(kernel, each(dilation, count))]
        return [((s + 1) // 2, s - (s + 1) // 2) for s in spans]
    values = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(values) == 1:
        values *= count
    if len(values) == count:
        values *= 2
    if len(values) != 2 * count:
        raise ArgumentError(f"padding is {described(padding)}, {count} or {2 * count} numbers are needed")
    return list(zip(values[:count], values[count:]))


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


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: Any = None,
          auto_scheduler_rewritten_layout: str = "", meta_schedule_original_shape: Any = None) -> Tensor:
    """y[i, o] = sum over k of data[i, k] * weight[o, k], + bias[o]."""
    _no_rewriting("dense", auto_scheduler_rewritten_layout, meta_schedule_original_shape)
    return topi.linear(data, weight, bias, out_dtype=out_dtype or data.dtype)


def matmul(tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None, out_dtype: Any = None,
           transpose_a: bool = False, transpose_b: bool = False, auto_scheduler_rewritten_layout: str = "",
           meta_schedule_original_shape: Any = None) -> Tensor:
    """The product of matrices, + bias."""
    _no_rewriting("matmul", auto_scheduler_rewritten_layout, meta_schedule_original_shape)
    y = topi.matmul(tensor_a, tensor_b, transpose_a=transpose_a, transpose_b=transpose_b,
                    out_dtype=out_dtype or tensor_a.dtype)
    return y if bias is None else topi.add(y, bias)


def batch_matmul(tensor_a: Tensor, tensor_b: Tensor, oshape: Any = None, out_dtype: Any = None,
                 transpose_a: bool = False, transpose_b: bool = True, auto_scheduler_rewritten_layout: str = "",
                 meta_schedule_original_shape: Any = None) -> Tensor:
    """y[b, i, j] = sum over k of tensor_a[b, i, k] * tensor_b[b, j, k]; oshape: the shape that y has."""
    _no_rewriting("batch_matmul", auto_scheduler_rewritten_layout, meta_schedule_original_shape)
    for name, x in (("tensor_a", tensor_a), ("tensor_b", tensor_b)):
        check_rank("batch_matmul", name, x, 3)
    y = topi.matmul(tensor_a, tensor_b, transpose_a=transpose_a, transpose_b=transpose_b,
                    out_dtype=out_dtype or tensor_a.dtype)
    if oshape is not None and not same_shape(y.shape, oshape):
        raise ArgumentError(f"batch_matmul: oshape is {described(oshape)}, the result has the shape "
                            f"{shape_text(y.shape)}")
    return y


def _no_rewriting(op: str, layout: str, shape: Any) -> None:
    if layout or shape:
        raise ArgumentError(f"{op}: auto_scheduler_rewritten_layout is {described(layout)}, "
                            f"meta_schedule_original_shape {described(shape)}", "layouts of schedulers are not taken")


def sparse_dense(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor,
                 sparse_lhs: bool = False) -> Tensor:
    """y[i, r] = sum over k in row r of sparse_data[k] * dense_data[i, sparse_indices[k]]."""
    if sparse_lhs:
        return topi.csr_matmul(sparse_data, sparse_indices, sparse_indptr, topi.transpose(dense_data))
    return topi.sparse_linear(dense_data, sparse_data, sparse_indices, sparse_indptr)


# pooling


def _pool(count: int, data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str,
          ceil_mode: bool, layout: str, count_include_pad: bool) -> Tensor:
    check_rank(f"pool{count}d", "data", data, count + 2)
    last = channels_last(f"pool{count}d", data, layout)
    sizes = each(kernel, count)
    attrs: dict[str, Any] = {"stride": each(stride, count), "padding": ends(padding, sizes, dilation),
                             "dilation": each(dilation, count), "ceil_mode": ceil_mode,
                             "channels_last": last}
    if _of_kind(f"pool{count}d", pool_type, True, False):
        return topi.max_pool(data, sizes, **attrs)
    return topi.avg_pool(data, sizes, count_include_pad=count_include_pad, **attrs)


def pool1d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str,
           ceil_mode: bool = False, layout: str = "NCW", count_include_pad: bool = True) -> Tensor:
    """The largest or the mean of windows over one axis."""
    return _pool(1, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool2d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str,
           ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True) -> Tensor:
    """The largest or the mean of windows over two axes."""
    return _pool(2, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool3d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str,
           ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True) -> Tensor:
    """The largest or the mean of windows over three axes."""
    return _pool(3, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool(data: Tensor, kernel: Any, stride: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
         layout: str = "NCHW", count_include_pad: bool = True) -> Tensor:
    """`pool2d` of TVM up to 0.8, without dilation."""
    return _pool(2, data, kernel, stride, 1, padding, pool_type, ceil_mode, layout, count_include_pad)


def _of_kind(op: str, pool_type: Any, largest: Any, mean: Any) -> Any:
    """What belongs to a pool_type. Raises ArgumentError for one that is not known."""
    if pool_type not in ("max", "avg"):
        raise ArgumentError(f"{op}: pool_type is {described(pool_type)}", '"max" or "avg"')
    return largest if pool_type == "max" else mean


def _channels_first(op: str, data: Tensor, layout: str, f: Callable[[Tensor], Tensor]) -> Tensor:
    """f of images whose channels are the second axis."""
    if not channels_last(op, data, layout):
        return f(data)
    rank = len(data.shape)
    y = f(topi.transpose(data, (0, rank - 1, *range(1, rank - 1))))
    return topi.transpose(y, (0, *range(2, rank), 1))


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """The largest or the mean of each channel."""
    f = _of_kind("global_pool", pool_type, topi.global_max_pool, topi.global_avg_pool)
    return _channels_first("global_pool", data, layout, f)


def adaptive_pool(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCHW") -> Tensor:
    """The largest or the mean of windows that give the size."""
    f = _of_kind("adaptive_pool", pool_type, topi.adaptive_max_pool, topi.adaptive_avg_pool)
    return _channels_first("adaptive_pool", data, layout, lambda x: f(x, output_size))


# norms


def softmax(x: Tensor, axis: int = -1) -> Tensor:
    """exp(x) divided by its sum along an axis."""
    return topi.softmax(x, axis=axis)


def log_softmax(x: Tensor, axis: int = -1) -> Tensor:
    """The logarithm of the softmax."""
    return topi.log_softmax(x, axis=axis)


def batch_norm(data: Tensor, gamma: Tensor, beta: Tensor, moving_mean: Tensor, moving_var: Tensor,
               axis: int | None = None, epsilon: float | None = None, center: bool | None = None,
               scale: bool | None = None, training: bool | None = None, momentum: float | None = None) -> list[Tensor]:
    """[(data - mean) / sqrt(var + epsilon) * gamma + beta, moving mean, moving var]."""
    rank = len(data.shape)
    at = axis_index("batch_norm", 1 if axis is None else axis, rank)
    eps, share = 1e-5 if epsilon is None else epsilon, 0.1 if momentum is None else momentum
    weight, bias = None if scale is False else gamma, None if center is False else beta
    for name, x in (("moving_mean", moving_mean), ("moving_var", moving_var)):
        along("batch_norm", name, x, data, at)
    if not training:
        y = topi.batch_norm(data, moving_mean, moving_var, weight, bias, eps=eps, axis=at)
        return [y, te.compute(moving_mean.shape, lambda c: moving_mean(c), name="moving_mean"),
                te.compute(moving_var.shape, lambda c: moving_var(c), name="moving_var")]
    if not 0 <= share <= 1:
        raise ArgumentError(f"batch_norm: momentum is {described(momentum)}, not between 0 and 1")
    axes = tuple(n for n in range(rank) if n != at)
    mean, var = topi.mean(data, axis=axes), topi.var(data, axis=axes)
    y = topi.batch_norm(data, mean, var, weight, bias, eps=eps, axis=at)
    return [y, *(te.compute(old.shape, lambda c, old=old, new=new: old(c) * (1.0 - share) + new(c) * share,
                            name=f"{old.name}_next") for old, new in ((moving_mean, mean), (moving_var, var)))]


def _last(op: str, data: Tensor, axis: Any) -> int:
    """How many axes, which have to be the last ones."""
    rank = len(data.shape)
    axes = sorted(axis_indices(op, numbers(axis), rank))
    if axes != list(range(rank - len(axes), rank)):
        raise ArgumentError(f"{op}: axis is {described(axis)}, the last axes are taken", "transpose first")
    return len(axes)


def _of_channels(op: str, data: Tensor, channel_axis: Any, axes: Any) -> None:
    """The channels are axis 1, and the moments those over all axes behind it."""
    rank = len(data.shape)
    if axis_index(op, channel_axis, rank, "channel_axis") != 1:
        raise ArgumentError(f"{op}: channel_axis is {channel_axis}, 1 is taken", "transpose first")
    if axes is not None and sorted(axis_indices(op, axes, rank, "axes")) != list(range(2, rank)):
        raise ArgumentError(f"{op}: axes is {described(axes)}, all behind the channels are taken",
                            f"axes={list(range(2, rank))}")


def layer_norm(data: Tensor, gamma: Tensor, beta: Tensor, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """(data - mean) / sqrt(var + epsilon) * gamma + beta, by the moments over the last axes."""
    return topi.layer_norm(data, gamma, beta, axes=_last("layer_norm", data, axis), eps=epsilon)


def rms_norm(data: Tensor, weight: Tensor, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """data / sqrt(mean of squares + epsilon) * weight, over the last axes."""
    return topi.rms_norm(data, weight, axes=_last("rms_norm", data, axis), eps=epsilon)


def group_norm(data: Tensor, gamma: Tensor, beta: Tensor, num_groups: int, channel_axis: int = 1, axes: Any = None,
               epsilon: float = 1e-5) -> Tensor:
    """The norm by the moments of groups of channels and of space."""
    _of_channels("group_norm", data, channel_axis, axes)
    return topi.group_norm(data, gamma, beta, groups=num_groups, eps=epsilon)


def instance_norm(data: Tensor, gamma: Tensor, beta: Tensor, channel_axis: Any = 1, axis: Any = None,
                  epsilon: float = 1e-5) -> Tensor:
    """The norm by the moments of the space of each channel. Up to TVM 0.13: (data, gamma, beta, axis, epsilon)."""
    if isinstance(channel_axis, (list, tuple)):
        channel_axis, axis, epsilon = 1, channel_axis, epsilon if axis is None else axis
    _of_channels("instance_norm", data, channel_axis, axis)
    return topi.instance_norm(data, gamma, beta, eps=epsilon)


def l2_normalize(data: Tensor, eps: float, axis: Any = None) -> Tensor:
    """data / sqrt(max(sum of squares over axes, eps))."""
    return topi.normalize(data, axis=axis, eps=eps ** 0.5)


def lrn(data: Tensor, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2) -> Tensor:
    """data / (bias + alpha / size * sum of squares of near channels) ** beta."""
    if axis != 1:
        raise ArgumentError(f"lrn: axis is {axis}, 1 is taken", "transpose first")
    return topi.local_response_norm(data, size=size, alpha=alpha, beta=beta, k=bias)


# elements and shapes


def relu(x: Tensor) -> Tensor:
    """max(x, 0)."""
    return topi.relu(x)


def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    """x where x > 0, else alpha * x."""
    return topi.leaky_relu(x, negative_slope=alpha)


def prelu(x: Tensor, slope: Tensor, axis: int = 1) -> Tensor:
    """x where x > 0, else slope[c] * x."""
    return topi.prelu(x, slope, axis=axis)


def bias_add(data: Tensor, bias: Tensor, axis: int = 1) -> Tensor:
    """data + bias along an axis."""
    at = axis_index("bias_add", axis, len(data.shape))
    along("bias_add", "bias", bias, data, at)
    return te.compute(data.shape, lambda *i: data(*i) + bias(i[at]), name="bias_add")


def _scale_shift(data: Tensor, scale: Tensor, shift: Tensor, at: int) -> Tensor:
    check_rank("scale_shift", "Input", data, 4)
    for name, x in (("Scale", scale), ("Shift", shift)):
        along("scale_shift", name, x, data, at)
    return te.compute(data.shape, lambda *i: data(*i) * scale(i[at]) + shift(i[at]), name="ScaleShift")


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Input * Scale[c] + Shift[c]."""
    return _scale_shift(Input, Scale, Shift, 1)


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Input * Scale[c] + Shift[c], channels last."""
    return _scale_shift(Input, Scale, Shift, 3)


def flatten(data: Tensor) -> Tensor:
    """[b, everything else]."""
    check_rank("flatten", "data", data, 1, 100)
    return topi.flatten(data, start=1) if len(data.shape) > 1 else topi.expand_dims(data, axis=1)


def _borders(op: str, data: Tensor, pad_before: Any, pad_after: Any) -> list[tuple[Any, Any]]:
    """A pair (before, after) for each dimension; pad_after is pad_before where it is None."""
    before = list(pad_before)
    after = before if pad_after is None else list(pad_after)
    same_count(op, len(data.shape), pad_before=before, pad_after=after)
    return list(zip(before, after))


def pad(data: Tensor, pad_before: Any, pad_after: Any = None, pad_value: Any = 0.0, name: str = "PadInput",
        attrs: Any = None) -> Tensor:
    """data with borders of pad_value."""
    return topi.pad(data, _borders("pad", data, pad_before, pad_after), value=pad_value)


def mirror_pad(data: Tensor, pad_before: Any, pad_after: Any = None, mode: str = "SYMMETRIC",
               name: str = "MirrorPadInput") -> Tensor:
    """data with mirrored borders: "SYMMETRIC" or "REFLECT"."""
    if mode not in ("SYMMETRIC", "REFLECT"):
        raise ArgumentError(f"mirror_pad: mode is {described(mode)}", '"SYMMETRIC" or "REFLECT"')
    return topi.pad(data, _borders("mirror_pad", data, pad_before, pad_after), mode=mode.lower())


def dilate(data: Tensor, strides: Any, dilation_value: Any = 0.0, name: str = "DilatedInput") -> Tensor:
    """data with strides - 1 elements of dilation_value between its own."""
    steps = each(strides, len(data.shape))
    same_count("dilate", len(data.shape), strides=steps)
    if not all(isinstance(s, int) and s >= 1 for s in steps):
        raise ArgumentError(f"dilate: strides is {described(strides)}, not made of integers of at least 1")
    shape = [maximum((n - 1) * s + 1, 0) for n, s in zip(data.shape, steps)]

    def at(*i: Any) -> Any:
        own = [v % s == 0 for v, s in zip(i, steps) if s > 1]
        value = data(*(v // s for v, s in zip(i, steps)))
        return te.if_then_else(te.all(*own), value, te.const(dilation_value, data.dtype)) if own else value
    return te.compute(shape, at, name=name)


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Channels as blocks of pixels."""
    return _channels_first("depth_to_space", data, layout,
                           lambda x: topi.depth_to_space(x, block=block_size, mode=mode))


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Blocks of pixels as channels."""
    return _channels_first("space_to_depth", data, layout, lambda x: topi.space_to_depth(x, block=block_size))


def upsampling(data: Tensor, scale_h: float, scale_w: float, layout: str = "NCHW", method: str = "nearest_neighbor",
               align_corners: bool = False, output_shape: Any = None) -> Tensor:
    """Images that are larger by factors, of which element i lies at i / factor; output_shape: that of the result."""
    first = 1 if channels_last("upsampling", data, layout) else 2
    extents = data.shape[first:first + 2]
    size = [_scaled(n, s) for n, s in zip(extents, (scale_h, scale_w))] if output_shape is None else list(
        output_shape)[first:first + 2]
    return resize2d(data, None, size, layout, method, "align_corners" if align_corners else "asymmetric")


def _scaled(extent: Any, scale: float) -> Any:
    """extent * scale, rounded; of a symbolic extent by a whole number."""
    if isinstance(plain(extent), int):
        return round(plain(extent) * scale)
    if scale != int(scale):
        raise ArgumentError(f"upsampling: the extent {extent} times {scale}", "say the size: output_shape=...")
    return extent * int(scale)


NAMES: dict[str, Any] = {f.__name__: taking_numbers(f) for f in (
    conv1d, conv1d_ncw, conv1d_nwc, conv2d, conv2d_nchw, conv2d_nhwc, conv2d_hwcn, conv3d_ncdhw, conv3d_ndhwc,
    group_conv2d_nchw, depthwise_conv2d_nchw, depthwise_conv2d_nhwc,
    conv2d_transpose_nchw, conv1d_transpose_ncw, group_conv2d_transpose_nchw, deformable_conv2d_nchw, dense, matmul,
    batch_matmul, sparse_dense, pool1d, pool2d, pool3d, pool, global_pool, adaptive_pool, softmax, log_softmax,
    batch_norm, layer_norm, rms_norm, group_norm, instance_norm, l2_normalize, lrn, relu, leaky_relu, prelu, bias_add,
    scale_shift_nchw, scale_shift_nhwc, flatten, pad, mirror_pad, dilate, depth_to_space, space_to_depth, upsampling,
)}
NAMES["fast_softmax"] = NAMES["softmax"]
