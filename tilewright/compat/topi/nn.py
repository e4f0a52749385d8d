"""`tvm.topi.nn`: layers under TVM's names. A padding is TVM's: a number, one for each axis, the ends (all first ones,
then all last ones), "VALID", or "SAME"."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import te, topi
from tilewright.compat.topi.elements import numbers, plain
from tilewright.support.errors import ArgumentError, described
from tilewright.te.tensor import Tensor


def ends(padding: Any, kernel: Sequence[Any], dilation: Any) -> list[tuple[int, int]]:
    """The padding as pairs (before, after), one for each spatial axis."""
    count, given = len(kernel), numbers(padding)
    if isinstance(given, str):
        if given == "VALID":
            return [(0, 0)] * count
        if given != "SAME":
            raise ArgumentError(f"padding is {described(padding)}", '"VALID", "SAME" or numbers')
        spans = [(plain(k) - 1) * d for k, d in zip(kernel, _each(dilation, count))]
        return [((s + 1) // 2, s - (s + 1) // 2) for s in spans]
    values = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(values) == 1:
        values *= count
    if len(values) == count:
        values *= 2
    if len(values) != 2 * count:
        raise ArgumentError(f"padding is {described(padding)}, {count} or {2 * count} numbers are needed")
    return list(zip(values[:count], values[count:]))


def _each(value: Any, count: int) -> list[int]:
    given = numbers(value)
    values = list(given) if isinstance(given, (list, tuple)) else [given] * count
    return values * count if len(values) == 1 else values


def conv(data: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any, groups: int, layout: str,
         kernel_layout: str, out_dtype: Any) -> Tensor:
    """A convolution of tensors in any layout of these letters; the result has that of the data."""
    count = len(data.shape) - 2
    space = "DHW"[3 - count:]
    plain_data, last = "NC" + space, "N" + space + "C"
    wanted = kernel_layout or ("OI" + space if layout != last else space + "IO")
    if sorted(layout) != sorted(plain_data) or sorted(wanted) != sorted("OI" + space):
        raise ArgumentError(f"conv{count}d: the layouts {layout!r} and {wanted!r}", "layouts without blocks are taken")
    weight = kernel if wanted == "OI" + space else topi.transpose(kernel, [wanted.index(c) for c in "OI" + space])
    keeps = layout in (plain_data, last)
    x = data if keeps else topi.transpose(data, [layout.index(c) for c in plain_data])
    pads = ends(padding, weight.shape[2:], dilation)
    y = topi.conv(x, weight, stride=_each(strides, count), padding=pads, dilation=_each(dilation, count), groups=groups,
                  channels_last=layout == last, out_dtype=out_dtype or data.dtype)
    return y if keeps else topi.transpose(y, [plain_data.index(c) for c in layout])


def conv1d(data: Tensor, kernel: Tensor, strides: Any = 1, padding: Any = "VALID", dilation: Any = 1, groups: int = 1,
           data_layout: str = "NCW", kernel_layout: str = "", out_dtype: Any = None) -> Tensor:
    """A convolution over one axis."""
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype)


def conv2d(input: Tensor, filter: Tensor, strides: Any, padding: Any, dilation: Any, data_layout: str = "NCHW",
           kernel_layout: str = "", out_dtype: Any = None) -> Tensor:
    """A convolution over two axes; data_layout "NCHW" with filters "OIHW", "NHWC" and "HWCN" with "HWIO"."""
    kernel_layout = kernel_layout or ("OIHW" if data_layout == "NCHW" else "HWIO")
    if (data_layout, kernel_layout) == ("NCHW", "OIHW"):
        return conv2d_nchw(input, filter, strides, padding, dilation, out_dtype)
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1,
                out_dtype: Any = None) -> Tensor:
    """A convolution of data in the layout NCHW by filters OIHW, in the stages that schedules of TVM know by name:
    pad_temp and conv2d_nchw."""
    pads = ends(padding, Filter.shape[2:], dilation)
    plan = conv(Input, Filter, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype)       # its checks and its type
    (sy, sx), (dy, dx) = _each(stride, 2), _each(dilation, 2)
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


def _fixed(layout: str, kernel_layout: str) -> Callable[..., Tensor]:
    def function(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1,
                 out_dtype: Any = None) -> Tensor:
        return conv(Input, Filter, stride, padding, dilation, 1, layout, kernel_layout, out_dtype)
    function.__doc__ = f"A convolution of data in the layout {layout} by filters {kernel_layout}."
    return function


def conv3d_ncdhw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int = 1,
                 out_dtype: Any = None) -> Tensor:
    """A convolution over three axes."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype)


def group_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any, groups: int,
                      out_dtype: Any = None) -> Tensor:
    """A convolution of groups of channels."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


def _depthwise(Input: Tensor, weight: Tensor, stride: Any, padding: Any, dilation: Any, out_dtype: Any,
               last: bool) -> Tensor:
    """By filters [c, m, kh, kw], of which channel c has m."""
    c, m, *kernel = weight.shape
    filters = topi.reshape(weight, [c * m, 1, *kernel])
    return topi.conv(Input, filters, stride=_each(stride, 2), padding=ends(padding, kernel, dilation),
                     dilation=_each(dilation, 2), groups=plain(c), channels_last=last,
                     out_dtype=out_dtype or Input.dtype)


def depthwise_conv2d_nchw(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1,
                          out_dtype: Any = None) -> Tensor:
    """A convolution of each channel by filters of its own, [c, m, kh, kw]."""
    return _depthwise(Input, Filter, stride, padding, dilation, out_dtype, False)


def depthwise_conv2d_nhwc(Input: Tensor, Filter: Tensor, stride: Any, padding: Any, dilation: Any = 1,
                          kernel_layout: str = "HWOI", out_dtype: Any = None) -> Tensor:
    """A convolution of each channel by filters of its own, [kh, kw, c, m]."""
    return _depthwise(Input, topi.transpose(Filter, (2, 3, 0, 1)), stride, padding, dilation, out_dtype, True)


def _transposed(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: Any, output_padding: Any,
                groups: int) -> Tensor:
    count = len(Input.shape) - 2
    y = topi.conv_transpose(Input, Filter, stride=_each(strides, count), padding=ends(padding, Filter.shape[2:], 1),
                            output_padding=_each(output_padding, count), groups=groups)
    return y if out_dtype in (None, y.dtype) else topi.astype(y, out_dtype)


def conv2d_transpose_nchw(Input: Tensor, Filter: Tensor, strides: Any, padding: Any, out_dtype: Any = None,
                          output_padding: Any = 0) -> Tensor:
    """The adjoint of a convolution, by filters [in, out, kh, kw]."""
    return _transposed(Input, Filter, strides, padding, out_dtype, output_padding, 1)


def conv1d_transpose_ncw(data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: Any = None,
                         output_padding: Any = 0) -> Tensor:
    """The adjoint of a convolution over one axis, by filters [in, out, kw]."""
    return _transposed(data, kernel, stride, padding, out_dtype, output_padding, 1)


def group_conv2d_transpose_nchw(data: Tensor, kernel: Tensor, stride: Any, padding: Any, out_dtype: Any = None,
                                output_padding: Any = 0, groups: int = 1) -> Tensor:
    """The adjoint of a convolution of groups."""
    return _transposed(data, kernel, stride, padding, out_dtype, output_padding, groups)


def deformable_conv2d_nchw(data: Tensor, offset: Tensor, kernel: Tensor, strides: Any, padding: Any, dilation: Any,
                           deformable_groups: int, groups: int, out_dtype: Any = None) -> Tensor:
    """A convolution that reads at places moved by offset."""
    return topi.deform_conv2d(data, offset, kernel, stride=_each(strides, 2),
                              padding=ends(padding, kernel.shape[2:], dilation), dilation=_each(dilation, 2))


# products


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: Any = None, **ignored: Any) -> Tensor:
    """y[i, o] = sum over k of data[i, k] * weight[o, k], + bias[o]."""
    if any(v for v in ignored.values()):
        raise ArgumentError(f"dense: {', '.join(ignored)}", "layouts of the auto-scheduler are not taken")
    return topi.linear(data, weight, bias, out_dtype=out_dtype or data.dtype)


def matmul(tensor_a: Tensor, tensor_b: Tensor, bias: Tensor | None = None, out_dtype: Any = None,
           transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """The product of matrices, + bias."""
    y = topi.matmul(tensor_a, tensor_b, transpose_a=transpose_a, transpose_b=transpose_b,
                    out_dtype=out_dtype or tensor_a.dtype)
    return y if bias is None else topi.add(y, bias)


def batch_matmul(tensor_a: Tensor, tensor_b: Tensor, oshape: Any = None, out_dtype: Any = None,
                 transpose_a: bool = False, transpose_b: bool = True) -> Tensor:
    """y[b, i, j] = sum over k of tensor_a[b, i, k] * tensor_b[b, j, k]."""
    return topi.matmul(tensor_a, tensor_b, transpose_a=transpose_a, transpose_b=transpose_b,
                       out_dtype=out_dtype or tensor_a.dtype)


def sparse_dense(dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor,
                 sparse_lhs: bool = False) -> Tensor:
    """y[i, r] = sum over k in row r of sparse_data[k] * dense_data[i, sparse_indices[k]]."""
    if sparse_lhs:
        return topi.csr_matmul(sparse_data, sparse_indices, sparse_indptr, topi.transpose(dense_data))
    return topi.sparse_linear(dense_data, sparse_data, sparse_indices, sparse_indptr)


# pooling


def _pool(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str, ceil_mode: bool,
          layout: str, count_include_pad: bool) -> Tensor:
    count = len(data.shape) - 2
    space = "DHW"[3 - count:]
    if layout not in ("NC" + space, "N" + space + "C"):
        raise ArgumentError(f"pool{count}d: the layout {layout!r}", "layouts without blocks are taken")
    sizes = _each(kernel, count)
    attrs: dict[str, Any] = {"stride": _each(stride, count), "padding": ends(padding, sizes, dilation),
                             "dilation": _each(dilation, count), "ceil_mode": ceil_mode,
                             "channels_last": layout[1] != "C"}
    if pool_type not in ("max", "avg"):
        raise ArgumentError(f"pool{count}d: pool_type is {described(pool_type)}", '"max" or "avg"')
    if pool_type == "max":
        return topi.max_pool(data, sizes, **attrs)
    return topi.avg_pool(data, sizes, count_include_pad=count_include_pad, **attrs)


def pool1d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str,
           ceil_mode: bool = False, layout: str = "NCW", count_include_pad: bool = True) -> Tensor:
    """The largest or the mean of windows over one axis."""
    return _pool(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool2d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str,
           ceil_mode: bool = False, layout: str = "NCHW", count_include_pad: bool = True) -> Tensor:
    """The largest or the mean of windows over two axes."""
    return _pool(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool3d(data: Tensor, kernel: Any, stride: Any, dilation: Any, padding: Any, pool_type: str,
           ceil_mode: bool = False, layout: str = "NCDHW", count_include_pad: bool = True) -> Tensor:
    """The largest or the mean of windows over three axes."""
    return _pool(data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool(data: Tensor, kernel: Any, stride: Any, padding: Any, pool_type: str, ceil_mode: bool = False,
         layout: str = "NCHW", count_include_pad: bool = True) -> Tensor:
    """`pool2d` of TVM up to 0.8, without dilation."""
    return _pool(data, kernel, stride, 1, padding, pool_type, ceil_mode, layout, count_include_pad)


def _channels_first(data: Tensor, layout: str, f: Callable[[Tensor], Tensor]) -> Tensor:
    """f of images whose channels are the second axis."""
    rank = len(data.shape)
    if layout[1] == "C":
        return f(data)
    y = f(topi.transpose(data, (0, rank - 1, *range(1, rank - 1))))
    return topi.transpose(y, (0, *range(2, rank), 1))


def global_pool(data: Tensor, pool_type: str, layout: str = "NCHW") -> Tensor:
    """The largest or the mean of each channel."""
    return _channels_first(data, layout, topi.global_max_pool if pool_type == "max" else topi.global_avg_pool)


def adaptive_pool(data: Tensor, output_size: Any, pool_type: str, layout: str = "NCHW") -> Tensor:
    """The largest or the mean of windows that give the size."""
    f = topi.adaptive_max_pool if pool_type == "max" else topi.adaptive_avg_pool
    return _channels_first(data, layout, lambda x: f(x, numbers(output_size)))


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
    at, eps = 1 if axis is None else axis, 1e-5 if epsilon is None else epsilon
    weight, bias = None if scale is False else gamma, None if center is False else beta
    if not training:
        y = topi.batch_norm(data, moving_mean, moving_var, weight, bias, eps=eps, axis=at)
        return [y, te.compute(moving_mean.shape, lambda c: moving_mean(c), name="moving_mean"),
                te.compute(moving_var.shape, lambda c: moving_var(c), name="moving_var")]
    rank, share = len(data.shape), 0.1 if momentum is None else momentum
    axes = tuple(n for n in range(rank) if n != at % rank)
    mean, var = topi.mean(data, axis=axes), topi.var(data, axis=axes)
    y = topi.batch_norm(data, mean, var, weight, bias, eps=eps, axis=at)
    return [y, *(te.compute(old.shape, lambda c, old=old, new=new: old(c) * (1.0 - share) + new(c) * share,
                            name=f"{old.name}_next") for old, new in ((moving_mean, mean), (moving_var, var)))]


def _last(op: str, data: Tensor, axis: Any) -> int:
    """How many axes, which have to be the last ones."""
    rank, given = len(data.shape), numbers(axis)
    axes = sorted(a % rank for a in (given if isinstance(given, (list, tuple)) else [given]))
    if axes != list(range(rank - len(axes), rank)):
        raise ArgumentError(f"{op}: axis is {described(axis)}, the last axes are taken", "transpose first")
    return len(axes)


def layer_norm(data: Tensor, gamma: Tensor, beta: Tensor, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """(data - mean) / sqrt(var + epsilon) * gamma + beta, by the moments over the last axes."""
    return topi.layer_norm(data, gamma, beta, axes=_last("layer_norm", data, axis), eps=epsilon)


def rms_norm(data: Tensor, weight: Tensor, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """data / sqrt(mean of squares + epsilon) * weight, over the last axes."""
    return topi.rms_norm(data, weight, axes=_last("rms_norm", data, axis), eps=epsilon)


def group_norm(data: Tensor, gamma: Tensor, beta: Tensor, num_groups: int, channel_axis: int = 1, axes: Any = None,
               epsilon: float = 1e-5) -> Tensor:
    """The norm by the moments of groups of channels and of space."""
    if channel_axis % len(data.shape) != 1:
        raise ArgumentError(f"group_norm: channel_axis is {channel_axis}, 1 is taken", "transpose first")
    return topi.group_norm(data, gamma, beta, groups=num_groups, eps=epsilon)


def instance_norm(data: Tensor, gamma: Tensor, beta: Tensor, channel_axis: int = 1, axis: Any = None,
                  epsilon: float = 1e-5) -> Tensor:
    """The norm by the moments of the space of each channel."""
    if channel_axis % len(data.shape) != 1:
        raise ArgumentError(f"instance_norm: channel_axis is {channel_axis}, 1 is taken", "transpose first")
    return topi.instance_norm(data, gamma, beta, eps=epsilon)


def l2_normalize(data: Tensor, eps: float, axis: Any = None) -> Tensor:
    """data / sqrt(max(sum of squares over axes, eps))."""
    return topi.normalize(data, axis=tuple(numbers(axis)) if isinstance(axis, (list, tuple)) else axis, eps=eps ** 0.5)


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
    at = axis % len(data.shape)
    return te.compute(data.shape, lambda *i: data(*i) + bias(i[at]), name="bias_add")


def scale_shift_nchw(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Input * Scale[c] + Shift[c]."""
    return te.compute(Input.shape, lambda b, c, i, j: Input(b, c, i, j) * Scale(c) + Shift(c), name="ScaleShift")


def scale_shift_nhwc(Input: Tensor, Scale: Tensor, Shift: Tensor) -> Tensor:
    """Input * Scale[c] + Shift[c], channels last."""
    return te.compute(Input.shape, lambda b, i, j, c: Input(b, i, j, c) * Scale(c) + Shift(c), name="ScaleShift")


def flatten(data: Tensor) -> Tensor:
    """[b, everything else]."""
    return topi.flatten(data, start=1)


def pad(data: Tensor, pad_before: Any, pad_after: Any = None, pad_value: Any = 0.0, name: str = "PadInput",
        attrs: Any = None) -> Tensor:
    """data with borders of pad_value."""
    before = numbers(list(pad_before))
    after = before if pad_after is None else numbers(list(pad_after))
    return topi.pad(data, list(zip(before, after)), value=plain(pad_value))


def mirror_pad(data: Tensor, pad_before: Any, pad_after: Any = None, mode: str = "SYMMETRIC",
               name: str = "MirrorPadInput") -> Tensor:
    """data with mirrored borders: "SYMMETRIC" or "REFLECT"."""
    before = numbers(list(pad_before))
    after = before if pad_after is None else numbers(list(pad_after))
    return topi.pad(data, list(zip(before, after)), mode=mode.lower())


def dilate(data: Tensor, strides: Any, dilation_value: Any = 0.0, name: str = "DilatedInput") -> Tensor:
    """data with strides - 1 elements of dilation_value between its own."""
    steps = _each(strides, len(data.shape))
    shape = [(n - 1) * s + 1 for n, s in zip(data.shape, steps)]

    def at(*i: Any) -> Any:
        own = [v % s == 0 for v, s in zip(i, steps) if s > 1]
        value = data(*(v // s for v, s in zip(i, steps)))
        return te.if_then_else(te.all(*own), value, te.const(plain(dilation_value), data.dtype)) if own else value
    return te.compute(shape, at, name=name)


def depth_to_space(data: Tensor, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> Tensor:
    """Channels as blocks of pixels."""
    return _channels_first(data, layout, lambda x: topi.depth_to_space(x, block=block_size, mode=mode))


def space_to_depth(data: Tensor, block_size: int, layout: str = "NCHW") -> Tensor:
    """Blocks of pixels as channels."""
    return _channels_first(data, layout, lambda x: topi.space_to_depth(x, block=block_size))


def upsampling(data: Tensor, scale_h: float, scale_w: float, layout: str = "NCHW", method: str = "nearest_neighbor",
               align_corners: bool = False, output_shape: Any = None) -> Tensor:
    """Images that are larger by factors."""
    mode = {"nearest_neighbor": "nearest", "bilinear": "linear", "bicubic": "cubic"}[method]
    coordinates = "align_corners" if align_corners else "asymmetric" if mode == "nearest" else "half_pixel"
    extents = data.shape[2:] if layout == "NCHW" else data.shape[1:3]
    size = [int(plain(n) * s + 0.5) for n, s in zip(extents, (scale_h, scale_w))]
    attrs: dict[str, Any] = {"rounding": "floor"} if mode == "nearest" else {}
    axes = (2, 3) if layout == "NCHW" else (1, 2)
    return topi.resize(data, size, axes=axes, mode=mode, coordinates=coordinates, **attrs)


NAMES: dict[str, Any] = {f.__name__: f for f in (
    conv1d, conv2d, conv3d_ncdhw, group_conv2d_nchw, depthwise_conv2d_nchw, depthwise_conv2d_nhwc,
    conv2d_transpose_nchw, conv1d_transpose_ncw, group_conv2d_transpose_nchw, deformable_conv2d_nchw, dense, matmul,
    batch_matmul, sparse_dense, pool1d, pool2d, pool3d, pool, global_pool, adaptive_pool, softmax, log_softmax,
    batch_norm, layer_norm, rms_norm, group_norm, instance_norm, l2_normalize, lrn, relu, leaky_relu, prelu, bias_add,
    scale_shift_nchw, scale_shift_nhwc, flatten, pad, mirror_pad, dilate, depth_to_space, space_to_depth, upsampling,
)} | {
    "conv2d_nchw": conv2d_nchw, "conv2d_nhwc": _fixed("NHWC", "HWIO"), "conv2d_hwcn": _fixed("HWCN", "HWIO"),
    "conv1d_ncw": _fixed("NCW", "OIW"), "conv1d_nwc": _fixed("NWC", "WIO"), "conv3d_ndhwc": _fixed("NDHWC", "DHWIO"),
    "fast_softmax": softmax,
}
