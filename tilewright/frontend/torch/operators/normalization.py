"""Softmax and norms."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch.emit import Emitter, axis_of
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


@operator("_softmax", "softmax.int", "special_softmax")
def softmax(e: Emitter, x: Value, dim: int, *_: Any, **__: Any) -> Value:
    """`topi.softmax`."""
    x = e.lifted(e.cast(x, e.dtype))
    return e.te(topi.softmax, x, axis=axis_of(dim, x.ndim))


@operator("_safe_softmax")
def safe_softmax(e: Emitter, x: Value, dim: int, dtype: str | None = None) -> Value:
    """`topi.softmax`, 0 where a line has nothing above -inf."""
    x = e.lifted(e.cast(x, e.dtype))
    axis = axis_of(dim, x.ndim)
    empty = e.te(topi.equal, e.te(topi.max, x, axis=axis, keepdims=True), -math.inf)
    return e.te(topi.where, empty, 0.0, e.te(topi.softmax, x, axis=axis))


@operator("_log_softmax", "log_softmax.int")
def log_softmax(e: Emitter, x: Value, dim: int, *_: Any, **__: Any) -> Value:
    """`topi.log_softmax`."""
    x = e.lifted(e.cast(x, e.dtype))
    return e.te(topi.log_softmax, x, axis=axis_of(dim, x.ndim))


@operator("layer_norm")
def layer_norm(e: Emitter, x: Value, normalized_shape: Sequence[Any], weight: Value | None = None,
               bias: Value | None = None, eps: float = 1e-5, cudnn_enable: bool = True) -> Value:
    """`topi.layer_norm`."""
    return e.te(topi.layer_norm, x, weight, bias, axes=len(normalized_shape), eps=float(eps))


@operator("native_layer_norm")
def native_layer_norm(e: Emitter, x: Value, normalized_shape: Sequence[Any], weight: Value | None,
                      bias: Value | None, eps: float) -> tuple[Value, ...]:
    """`topi.layer_norm`, and the moments."""
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    return (layer_norm(e, x, normalized_shape, weight, bias, eps), *_moments(e, x, axes, eps))


def _moments(e: Emitter, x: Value, axes: Sequence[int], eps: float, keepdims: bool = True) -> tuple[Value, Value]:
    """(the mean, 1 / sqrt(var + eps)) over axes, in float32 at least."""
    x = e.cast(x, e.wide)
    mean = e.te(topi.mean, x, axis=tuple(axes), keepdims=keepdims)
    var = e.te(topi.var, x, axis=tuple(axes), correction=0.0, keepdims=keepdims)
    return mean, e.te(topi.rsqrt, e.te(topi.add, var, float(eps)))


_EPSILON = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -23, "float64": 2.0 ** -52}


@operator("rms_norm")
def rms_norm(e: Emitter, x: Value, normalized_shape: Sequence[Any], weight: Value | None = None,
             eps: float | None = None) -> Value:
    """`topi.rms_norm`."""
    return e.te(topi.rms_norm, x, weight, axes=len(normalized_shape), eps=_EPSILON[x.dtype] if eps is None else eps)


@operator("_fused_rms_norm")
def fused_rms_norm(e: Emitter, x: Value, normalized_shape: Sequence[Any], weight: Value | None,
                   eps: float | None) -> tuple[Value, Value]:
    """`topi.rms_norm`, and 1 / sqrt(mean of squares)."""
    axes = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    square = e.te(topi.mean, e.te(topi.square, e.cast(x, e.wide)), axis=axes, keepdims=True)
    scale = e.te(topi.rsqrt, e.te(topi.add, square, _EPSILON[x.dtype] if eps is None else eps))
    return rms_norm(e, x, normalized_shape, weight, eps), scale


@operator("group_norm")
def group_norm(e: Emitter, x: Value, num_groups: int, weight: Value | None = None, bias: Value | None = None,
               eps: float = 1e-5, cudnn_enabled: bool = True) -> Value:
    """`topi.group_norm`."""
    return e.te(topi.group_norm, x, weight, bias, groups=num_groups, eps=float(eps))


@operator("native_group_norm")
def native_group_norm(e: Emitter, x: Value, weight: Value | None, bias: Value | None, n: Any, c: Any, space: Any,
                      group: int, eps: float) -> tuple[Value, ...]:
    """`topi.group_norm`, and the moments."""
    parts = e.reshape(x, (x.shape[0], group, -1)) if 0 not in x.shape else None
    shape = (x.shape[0], group)
    moments = _moments(e, parts, (2,), eps, False) if parts is not None else (
        e.tensor(0, x.dtype, shape), e.tensor(math.nan, x.dtype, shape))
    return (group_norm(e, x, group, weight, bias, eps), *moments)


@operator("batch_norm")
def batch_norm(e: Emitter, x: Value, weight: Value | None, bias: Value | None, mean: Value | None, var: Value | None,
               training: bool, momentum: float, eps: float, cudnn_enabled: bool = True) -> Value:
    """`topi.batch_norm`, by moments of x where none are given."""
    if training or mean is None or var is None:
        return _by_own_moments(e, x, weight, bias, eps)[0]
    return e.te(topi.batch_norm, x, mean, var, weight, bias, eps=float(eps))


def _by_own_moments(e: Emitter, x: Value, weight: Value | None, bias: Value | None, eps: float) -> tuple[Value, ...]:
    """(`topi.batch_norm` by the moments of x, its mean, its variance), in float32 at least."""
    x, axes = e.cast(x, e.wide), (0, *range(2, x.ndim))
    mean = e.te(topi.mean, x, axis=axes)
    var = e.te(topi.var, x, axis=axes, correction=0.0)
    return e.te(topi.batch_norm, x, mean, var, weight, bias, eps=float(eps)), mean, var


@operator("_native_batch_norm_legit_no_training", "_batch_norm_no_update")
def batch_norm_no_training(e: Emitter, x: Value, weight: Value | None, bias: Value | None, mean: Value, var: Value,
                           momentum: float, eps: float) -> tuple[Value | None, ...]:
    """`topi.batch_norm`."""
    empty = e.tensor(0, "float32", (0,))
    return (e.te(topi.batch_norm, x, mean, var, weight, bias, eps=float(eps)), empty, empty,
            *([e.tensor(0, "uint8", (0,))] if len(e.meta) > 3 else []))


@operator("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(e: Emitter, x: Value, weight: Value | None, bias: Value | None, training: bool,
                        momentum: float, eps: float) -> tuple[Value, ...]:
    """`topi.batch_norm` by the moments of x, and these."""
    y, mean, var = _by_own_moments(e, x, weight, bias, eps)
    return y, mean, e.te(topi.rsqrt, e.te(topi.add, var, float(eps)))


@operator("native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional")
def native_batch_norm(e: Emitter, x: Value, weight: Value | None, bias: Value | None, mean: Value | None,
                      var: Value | None, training: bool, momentum: float, eps: float) -> tuple[Value, ...]:
    """`topi.batch_norm` by moments that are given, or in training by those of x, which change these."""
    if not training and mean is not None and var is not None:
        empty = e.tensor(0, x.dtype, (0,))
        y = e.te(topi.batch_norm, x, mean, var, weight, bias, eps=float(eps))
        return (y, empty, empty, mean, var)[:len(e.meta)]
    y, own_mean, own_var = _by_own_moments(e, x, weight, bias, eps)
    found = [y, own_mean, e.te(topi.rsqrt, e.te(topi.add, own_var, float(eps)))]
    if len(e.meta) > 3 and mean is not None and var is not None:
        unbiased = e.te(topi.var, e.cast(x, e.wide), axis=(0, *range(2, x.ndim)), correction=1.0)
        found += [e.te(topi.lerp, e.cast(old, own.dtype), own, float(momentum))
                  for old, own in ((mean, own_mean), (var, unbiased))]
    return tuple(found)
