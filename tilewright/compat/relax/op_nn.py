"""Operators of relax that are layers of networks."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import topi
from tilewright.compat.relax.ops import Use, op, use
from tilewright.compat.topi import nn


def _plain(rule: Callable[..., Any]) -> Callable[..., Use]:
    def uses(x: Any) -> Use:
        return use(rule, x)
    return uses


for _name in ("relu", "silu", "gelu", "selu", "relu6", "softplus"):
    op(f"nn.{_name}")(_plain(getattr(topi, _name)))


@op("nn.gelu_tanh")
def _gelu_tanh(x: Any) -> Use:
    return use(topi.gelu, x, approximate="tanh")


@op("nn.leakyrelu", "data")
def _leaky(data: Any, alpha: float = 0.01) -> Use:
    return use(topi.leaky_relu, data, negative_slope=alpha)


@op("nn.prelu", "data alpha")
def _prelu(data: Any, alpha: Any, axis: int = 1) -> Use:
    return use(topi.prelu, data, alpha, axis=axis)


@op("nn.softmax", "data")
def _softmax(data: Any, axis: int = -1) -> Use:
    return use(topi.softmax, data, axis=axis)


@op("nn.log_softmax", "data")
def _log_softmax(data: Any, axis: int = -1) -> Use:
    return use(topi.log_softmax, data, axis=axis)


@op("nn.dense", "data weight")
def _dense(data: Any, weight: Any, out_dtype: Any = None) -> Use:
    return use(topi.linear, data, weight, **({"out_dtype": out_dtype} if out_dtype else {}))


@op("nn.bias_add", "data bias")
def _bias_add(data: Any, bias: Any, axis: int = 1) -> Use:
    return use(nn.NAMES["bias_add"], data, bias, axis)


@op("nn.flatten", "data")
def _flatten(data: Any) -> Use:
    return use(topi.flatten, data, start=1)


op("nn.batch_flatten", "data")(_flatten)


@op("nn.dropout", "data")
def _dropout(data: Any, rate: float = 0.5) -> Use:
    return use(_kept, data)


def _kept(x: Any) -> Any:
    """Nothing is dropped when a model is run."""
    return topi.multiply(x, 1)


def _conv(dims: int) -> Callable[..., Use]:
    space = "DHW"[3 - dims:]

    def uses(data: Any, weight: Any, strides: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
             data_layout: str = "NC" + space, kernel_layout: str = "OI" + space, out_layout: Any = None,
             out_dtype: Any = None) -> Use:
        return use(nn.conv, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout,
                   out_dtype or None)
    return uses


for _dims in (1, 2, 3):
    op(f"nn.conv{_dims}d", "data weight")(_conv(_dims))


@op("nn.conv2d_transpose", "data weight")
def _transposed(data: Any, weight: Any, strides: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1,
                groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: Any = None,
                out_dtype: Any = None) -> Use:
    return use(nn.NAMES["group_conv2d_transpose_nchw"], data, weight, strides, padding, out_dtype or None,
               output_padding, groups)


def _pool(dims: int, kind: str) -> Callable[..., Use]:
    layout_ = "NC" + "DHW"[3 - dims:]

    def uses(data: Any, pool_size: Any = 1, strides: Any = 1, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False, count_include_pad: bool = False, layout: str = layout_,
             out_layout: Any = None) -> Use:
        return use(nn.NAMES[f"pool{dims}d"], data, pool_size, strides, dilation, padding, kind, ceil_mode, layout,
                   count_include_pad)
    return uses


for _dims in (1, 2, 3):
    for _kind in ("max", "avg"):
        op(f"nn.{_kind}_pool{_dims}d", "data")(_pool(_dims, _kind))


@op("nn.adaptive_avg_pool2d", "data")
def _adaptive(data: Any, output_size: Any = None, layout: str = "NCHW", out_layout: Any = None) -> Use:
    return use(nn.NAMES["adaptive_pool"], data, output_size, "avg", layout)


@op("nn.adaptive_avg_pool1d", "data")
def _adaptive_1d(data: Any, output_size: Any, layout: str = "NCW", out_layout: Any = None) -> Use:
    return use(topi.adaptive_avg_pool, data, (output_size,) if isinstance(output_size, int) else tuple(output_size))


@op("nn.pixel_shuffle", "data")
def _pixel_shuffle(data: Any, upscale_factor: int) -> Use:
    return use(topi.pixel_shuffle, data, upscale_factor)


@op("nn.instance_norm", "data gamma beta")
def _instance_norm(data: Any, gamma: Any, beta: Any, axes: Any, channel_axis: int = 1, epsilon: float = 1e-5,
                   center: bool = True, scale: bool = True) -> Use:
    return use(nn.NAMES["instance_norm"], data, gamma, beta, channel_axis, axes, epsilon)


@op("nn.pad", "data")
def _pad(data: Any, pad_width: Any, pad_mode: str = "constant", pad_value: float = 0.0) -> Use:
    flat = list(pad_width)
    pairs = flat if flat and isinstance(flat[0], (list, tuple)) else list(zip(flat[::2], flat[1::2]))
    return use(topi.pad, data, pairs, mode=pad_mode, value=pad_value)


@op("nn.batch_norm", "data gamma beta moving_mean moving_var")
def _batch_norm(data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, axis: int = 1,
                epsilon: float = 1e-5, center: bool = True, scale: bool = True, momentum: float = 0.1,
                training: bool = False) -> Use:
    return use(_normalised, data, gamma, beta, moving_mean, moving_var, axis, epsilon, center, scale)


def _normalised(data: Any, gamma: Any, beta: Any, mean: Any, var: Any, axis: int, epsilon: float, center: bool,
                scale: bool) -> Any:
    y = topi.batch_norm(data, mean, var, gamma if scale else None, beta if center else None, eps=epsilon, axis=axis)
    return y, topi.multiply(mean, 1), topi.multiply(var, 1)


_normalised.__name__ = "batch_norm"


@op("nn.layer_norm", "data gamma beta")
def _layer_norm(data: Any, gamma: Any, beta: Any, axes: Any, epsilon: float = 1e-5, center: bool = True,
                scale: bool = True) -> Use:
    return use(nn.NAMES["layer_norm"], data, gamma, beta, axes, epsilon)


@op("nn.rms_norm", "data weight")
def _rms_norm(data: Any, weight: Any, axes: Any, epsilon: float = 1e-5) -> Use:
    return use(nn.NAMES["rms_norm"], data, weight, axes, epsilon)


@op("nn.group_norm", "data gamma beta")
def _group_norm(data: Any, gamma: Any, beta: Any, num_groups: int, channel_axis: int = 1, axes: Any = None,
                epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Use:
    return use(nn.NAMES["group_norm"], data, gamma, beta, num_groups, channel_axis, axes, epsilon)


@op("nn.attention", "query key value bias")
def _attention(query: Any, key: Any, value: Any, bias: Any = None, scale: float | None = None,
               causal_mask: str | None = None) -> Use:
    return use(_attended, query, key, value, bias, scale, causal_mask is not None)


def _attended(query: Any, key: Any, value: Any, bias: Any, scale: float | None, causal: bool) -> Any:
    """Of tensors [batch, sequence, heads, width]."""
    q, k, v = (topi.transpose(t, (0, 2, 1, 3)) for t in (query, key, value))
    y = topi.scaled_dot_product_attention(q, k, v, bias, is_causal=causal, scale=scale)
    return topi.transpose(y, (0, 2, 1, 3))


_attended.__name__ = "attention"


@op("nn.cross_entropy_with_logits", "predictions labels")
def _cross_entropy(predictions: Any, labels: Any) -> Use:
    return use(_entropy, predictions, labels)


def _entropy(predictions: Any, labels: Any) -> Any:
    total = topi.negative(topi.sum(topi.multiply(topi.log_softmax(predictions, axis=-1), labels)))
    return topi.divide(total, float(int(predictions.shape[0]))) if len(predictions.shape) > 1 else total


_entropy.__name__ = "cross_entropy_with_logits"


@op("nn.nll_loss", "predictions targets weights")
def _nll_loss(predictions: Any, targets: Any, weights: Any = None, reduction: str = "mean",
              ignore_index: int = -100) -> Use:
    return use(topi.nll_loss, predictions, targets, weights, ignore_index=ignore_index, reduction=reduction)
