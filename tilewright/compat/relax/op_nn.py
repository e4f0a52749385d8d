"""Operators of relax that are layers of networks."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tilewright import te, topi
from tilewright.compat.relax.ops import Use, op, use
from tilewright.compat.topi import convolutions, nn
from tilewright.support.errors import ArgumentError, described
from tilewright.topi.shapes import check_choice, number


def _plain(rule: Callable[..., Any]) -> Callable[..., Use]:
    def uses(data: Any) -> Use:
        return use(rule, data)
    return uses


for _name in ("relu", "silu", "gelu", "selu", "relu6"):
    op(f"nn.{_name}", "data")(_plain(getattr(topi, _name)))


@op("nn.gelu_tanh", "data")
def _gelu_tanh(data: Any) -> Use:
    return use(topi.gelu, data, approximate="tanh")


@op("nn.softplus", "data")
def _softplus(data: Any, beta: float = 1.0, threshold: float = 20.0) -> Use:
    return use(_soft, data, beta, threshold)


def _soft(x: Any, beta: float, threshold: float) -> Any:
    """log(1 + exp(beta * x)) / beta, and x where beta * x is above the threshold."""
    return topi.where(topi.greater(topi.multiply(x, beta), threshold), x, topi.softplus(x, beta=beta))


_soft.__name__ = "softplus"


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
    return use(nn.NAMES["flatten"], data)


op("nn.batch_flatten", "data")(_flatten)


@op("nn.dropout", "data")
def _dropout(data: Any, rate: float = 0.5) -> Use:
    return use(_all_kept, data)


def _all_kept(x: Any) -> Any:
    """(x, a mask of ones): nothing is dropped when a model is run."""
    return topi.multiply(x, 1), topi.full_like(x, 1)


_all_kept.__name__ = "dropout"


def _kept(x: Any) -> Any:
    """x as it is."""
    return topi.multiply(x, 1)


def _same_layout(layout: str, out_layout: Any) -> None:
    """The result has the layout of the data. Raises ArgumentError for another out_layout."""
    if out_layout not in (None, "", layout):
        raise ArgumentError(f"out_layout is {described(out_layout)}, the layout of the data {layout!r}",
                            "the result has that of the data: relax.op.permute_dims changes it")


def _conv(dims: int) -> Callable[..., Use]:
    space = "DHW"[3 - dims:]

    def uses(data: Any, weight: Any, strides: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
             data_layout: str = "NC" + space, kernel_layout: str = "OI" + space, out_layout: Any = None,
             out_dtype: Any = None) -> Use:
        _same_layout(data_layout, out_layout)
        return use(convolutions.conv, data, weight, strides, padding, dilation, groups, data_layout, kernel_layout,
                   out_dtype or None)
    return uses


for _dims in (1, 2, 3):
    op(f"nn.conv{_dims}d", "data weight")(_conv(_dims))


@op("nn.conv2d_transpose", "data weight")
def _transposed(data: Any, weight: Any, strides: Any = 1, padding: Any = 0, output_padding: Any = 0, dilation: Any = 1,
                groups: int = 1, data_layout: str = "NCHW", kernel_layout: str = "IOHW", out_layout: Any = None,
                out_dtype: Any = None) -> Use:
    _same_layout(data_layout, out_layout)
    return use(convolutions.conv_transposed, data, weight, strides, padding, dilation, output_padding, groups,
               data_layout, kernel_layout, out_dtype or None)


def _pool(dims: int, kind: str) -> Callable[..., Use]:
    layout_ = "NC" + "DHW"[3 - dims:]

    def uses(data: Any, pool_size: Any = 1, strides: Any = 1, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False, count_include_pad: bool = False, layout: str = layout_,
             out_layout: Any = None) -> Use:
        _same_layout(layout, out_layout)
        return use(nn.NAMES[f"pool{dims}d"], data, pool_size, strides, dilation, padding, kind, ceil_mode, layout,
                   count_include_pad)
    return uses


for _dims in (1, 2, 3):
    for _kind in ("max", "avg"):
        op(f"nn.{_kind}_pool{_dims}d", "data")(_pool(_dims, _kind))


def _adaptive(dims: int) -> Callable[..., Use]:
    layout_ = "NC" + "DHW"[3 - dims:]

    def uses(data: Any, output_size: Any = None, layout: str = layout_, out_layout: Any = None) -> Use:
        _same_layout(layout, out_layout)
        if output_size is None:
            return use(_kept, data)
        return use(nn.NAMES["adaptive_pool"], data, output_size, "avg", layout)
    return uses


for _dims in (1, 2, 3):
    op(f"nn.adaptive_avg_pool{_dims}d", "data")(_adaptive(_dims))


@op("nn.pixel_shuffle", "data")
def _pixel_shuffle(data: Any, upscale_factor: int) -> Use:
    return use(topi.pixel_shuffle, data, factor=upscale_factor)


@op("nn.instance_norm", "data gamma beta")
def _instance_norm(data: Any, gamma: Any, beta: Any, channel_axis: Any = 1, axes: Any = None, epsilon: float = 1e-5,
                   center: bool = True, scale: bool = True) -> Use:
    return use(nn.NAMES["instance_norm"], data, gamma if scale else None, beta if center else None, channel_axis,
               axes, epsilon)


@op("nn.pad", "data")
def _pad(data: Any, pad_width: Any, pad_mode: str = "constant", pad_value: float = 0.0) -> Use:
    flat = list(pad_width)
    if flat and isinstance(flat[0], (list, tuple)):
        return use(topi.pad, data, flat, mode=pad_mode, value=pad_value)
    if len(flat) % 2:
        raise ArgumentError(f"nn.pad: pad_width is {described(pad_width)}, two numbers for each dimension are needed")
    pairs = list(zip(flat[::2], flat[1::2]))
    return use(topi.pad, data, pairs, mode=pad_mode, value=pad_value)


@op("nn.batch_norm", "data gamma beta moving_mean moving_var")
def _batch_norm(data: Any, gamma: Any, beta: Any, moving_mean: Any, moving_var: Any, axis: int,
                epsilon: float = 1e-5, center: bool = True, scale: bool = True, momentum: float = 0.1,
                training: bool = True) -> Use:
    return use(nn.NAMES["batch_norm"], data, gamma, beta, moving_mean, moving_var, axis, epsilon, center, scale,
               training, momentum)


@op("nn.layer_norm", "data gamma beta")
def _layer_norm(data: Any, gamma: Any, beta: Any, axes: Any, epsilon: float = 1e-5, center: bool = True,
                scale: bool = True) -> Use:
    return use(nn.NAMES["layer_norm"], data, gamma if scale else None, beta if center else None, axes, epsilon)


@op("nn.rms_norm", "data weight")
def _rms_norm(data: Any, weight: Any, axes: Any = -1, epsilon: float = 1e-5) -> Use:
    return use(nn.NAMES["rms_norm"], data, weight, axes, epsilon)


@op("nn.group_norm", "data gamma beta")
def _group_norm(data: Any, gamma: Any, beta: Any, num_groups: int, channel_axis: int = 1, axes: Any = None,
                epsilon: float = 1e-5, center: bool = True, scale: bool = True) -> Use:
    return use(nn.NAMES["group_norm"], data, gamma if scale else None, beta if center else None, num_groups,
               channel_axis, axes, epsilon)


@op("nn.attention", "query key value bias")
def _attention(query: Any, key: Any, value: Any, bias: Any = None, scale: float | None = None,
               causal_mask: str | None = None, window_size: int | None = None) -> Use:
    if window_size is not None:
        raise ArgumentError(f"nn.attention: window_size is {window_size}", "a bias of minus infinity leaves keys out")
    return use(_attended, query, key, value, bias, scale, causal_mask)


def _attended(query: Any, key: Any, value: Any, bias: Any, scale: float | None, causal: str | None) -> Any:
    """Of tensors [batch, sequence, heads, width]."""
    check_choice("attention", "causal_mask", causal, (None, "TopLeft", "BottomRight"))
    q, k, v = (topi.transpose(t, (0, 2, 1, 3)) for t in (query, key, value))
    if causal == "BottomRight":
        bias = _last_keys(q, k, bias)
    y = topi.scaled_dot_product_attention(q, k, v, bias, is_causal=causal == "TopLeft", scale=scale)
    return topi.transpose(y, (0, 2, 1, 3))


def _last_keys(q: Any, k: Any, bias: Any) -> Any:
    """The mask, or the bias, of query i that asks for key j where j <= i + |keys - queries|."""
    queries, keys = q.shape[2], k.shape[2]
    asked = te.compute((queries, keys), lambda i, j: j <= i + te.abs(keys - queries), name="asked")
    return asked if bias is None else topi.where(asked, bias, -math.inf)


_attended.__name__ = "attention"


@op("nn.cross_entropy_with_logits", "predictions labels")
def _cross_entropy(predictions: Any, labels: Any) -> Use:
    return use(_entropy, predictions, labels)


def _entropy(predictions: Any, labels: Any) -> Any:
    """The sum of -predictions * labels, of matrices divided by the number of rows: predictions are logarithms."""
    total = topi.negative(topi.sum(topi.multiply(predictions, labels)))
    return topi.divide(total, number(predictions.shape[0], total.dtype)) if len(predictions.shape) > 1 else total


_entropy.__name__ = "cross_entropy_with_logits"


@op("nn.nll_loss", "predictions targets weights")
def _nll_loss(predictions: Any, targets: Any, weights: Any = None, reduction: str = "mean",
              ignore_index: int = -100) -> Use:
    return use(topi.nll_loss, predictions, targets, weights, ignore_index=ignore_index, reduction=reduction)
