"""`tvm.topi.nn`: layers under TVM's names. A padding is TVM's: a number, one for each axis, the ends (all first ones,
then all last ones), "VALID", or "SAME"."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright import te, topi
from tilewright.compat.topi import convolutions
from tilewright.compat.topi.arguments import (
    along,
    channels_last,
    each,
    ends,
    items,
    numbers,
    plain,
    same_count,
    taking_numbers,
)
from tilewright.compat.topi.images import resize2d
from tilewright.support.errors import ArgumentError, described
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import maximum
from tilewright.topi.shapes import axis_index, axis_indices, check_numbers, check_rank, same_shape


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


def batch_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, moving_mean: Tensor, moving_var: Tensor,
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
    check_numbers("batch_norm", momentum=share, epsilon=eps)
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


def layer_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """(data - mean) / sqrt(var + epsilon) * gamma + beta, by the moments over the last axes."""
    return topi.layer_norm(data, gamma, beta, axes=_last("layer_norm", data, axis), eps=epsilon)


def rms_norm(data: Tensor, weight: Tensor | None, axis: Any, epsilon: float = 1e-5) -> Tensor:
    """data / sqrt(mean of squares + epsilon) * weight, over the last axes."""
    return topi.rms_norm(data, weight, axes=_last("rms_norm", data, axis), eps=epsilon)


def group_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, num_groups: int, channel_axis: int = 1,
               axes: Any = None, epsilon: float = 1e-5) -> Tensor:
    """The norm by the moments of groups of channels and of space."""
    _of_channels("group_norm", data, channel_axis, axes)
    return topi.group_norm(data, gamma, beta, groups=num_groups, eps=epsilon)


def instance_norm(data: Tensor, gamma: Tensor | None, beta: Tensor | None, channel_axis: Any = 1, axis: Any = None,
                  epsilon: float = 1e-5) -> Tensor:
    """The norm by the moments of the space of each channel. Up to TVM 0.13: (data, gamma, beta, axis, epsilon)."""
    if isinstance(channel_axis, (list, tuple)):
        channel_axis, axis, epsilon = 1, channel_axis, epsilon if axis is None else axis
    _of_channels("instance_norm", data, channel_axis, axis)
    return topi.instance_norm(data, gamma, beta, eps=epsilon)


def l2_normalize(data: Tensor, eps: float, axis: Any = None) -> Tensor:
    """data / sqrt(max(sum of squares over axes, eps))."""
    check_numbers("l2_normalize", eps=eps)
    if eps < 0:
        raise ArgumentError(f"l2_normalize: eps is {eps}, below 0")
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
    before = items(op, "pad_before", pad_before)
    after = before if pad_after is None else items(op, "pad_after", pad_after)
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
    size = [_scaled(n, s) for n, s in zip(extents, (scale_h, scale_w))] if output_shape is None else items(
        "upsampling", "output_shape", output_shape)[first:first + 2]
    return resize2d(data, None, size, layout, method, "align_corners" if align_corners else "asymmetric")


def _scaled(extent: Any, scale: float) -> Any:
    """extent * scale, rounded; of a symbolic extent by a whole number."""
    check_numbers("upsampling", scale=scale)
    if not 0 <= scale < math.inf:
        raise ArgumentError(f"upsampling: a scale is {scale}, a finite number of at least 0 is needed")
    if isinstance(plain(extent), int):
        return round(plain(extent) * scale)
    if scale != int(scale):
        raise ArgumentError(f"upsampling: the extent {extent} times {scale}", "say the size: output_shape=...")
    return extent * int(scale)


NAMES: dict[str, Any] = convolutions.NAMES | {f.__name__: taking_numbers(f) for f in (
    dense, matmul, batch_matmul, sparse_dense, pool1d, pool2d, pool3d, pool, global_pool, adaptive_pool, softmax,
    log_softmax, batch_norm, layer_norm, rms_norm, group_norm, instance_norm, l2_normalize, lrn, relu, leaky_relu,
    prelu, bias_add, scale_shift_nchw, scale_shift_nhwc, flatten, pad, mirror_pad, dilate, depth_to_space,
    space_to_depth, upsampling,
)}
NAMES["fast_softmax"] = NAMES["softmax"]
