"""Normalisation."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.elementwise import combined, narrowed, wider
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.frontend.onnx.values import first
from tilewright.graph.ir.values import Value

_OF_AXIS = ("axis", "epsilon", "stash_type")

@operator("BatchNormalization")
def batch_norm(n: Node) -> Any:
    """`topi.batch_norm`; in training `topi.batch_norm_training`."""
    x, scale, bias, mean, var = (n.value(k) for k in range(5))
    eps = n.attr("epsilon", 1e-5)
    training = n.attr("training_mode", 0) if n.version >= 14 else any(map(n.wants, range(1, 5))) and \
        not n.attr("is_test", 0)
    if not training and n.version < 9 and not n.attr("spatial", 1):         # each element is normalised by itself
        flat = [n.emit(topi.flatten, v, start=k) for v, k in ((x, 1), (mean, 0), (var, 0), (scale, 0), (bias, 0))]
        return n.emit(topi.reshape, n.emit(topi.batch_norm, *flat, eps=eps), x.shape)
    if not training:
        if x.ndim == 1:                                                     # of one channel
            x = n.emit(topi.expand_dims, x, axis=1)
            return n.emit(topi.squeeze, n.emit(topi.batch_norm, x, mean, var, scale, bias, eps=eps), axis=1)
        return n.emit(topi.batch_norm, x, mean, var, scale, bias, eps=eps)
    if n.version < 14:
        raise Unsupported("training, by the rules of versions below 14")
    return n.emit(trained, x, mean, var, scale, bias, n.attr("momentum", 0.9), eps)


def trained(x: Any, mean: Any, var: Any, scale: Any, bias: Any, momentum: float, eps: float) -> Any:
    """(y, new mean, new variance) by the moments of x; the variance is divided by the number of elements."""
    axes, wide = (0, *range(2, x.ndim)), wider(x)
    own_mean, own_var = topi.mean(wide, axis=axes), topi.var(wide, axis=axes)
    y = topi.batch_norm(wide, own_mean, own_var, wider(scale), wider(bias), eps=eps)
    new = (topi.add(topi.multiply(wider(old), momentum), topi.multiply(own, 1 - momentum))
           for old, own in ((mean, own_mean), (var, own_var)))
    return (topi.astype(y, x.dtype), *(topi.astype(v, old.dtype) for v, old in zip(new, (mean, var))))


@operator("InstanceNormalization")
def instance_norm(n: Node) -> Value:
    """`topi.instance_norm`."""
    return n.emit(topi.instance_norm, n.value(0), n.value(1), n.value(2), eps=n.attr("epsilon", 1e-5))


@operator("GroupNormalization", until=20)
def group_norm_by_groups(n: Node) -> Value:
    """`topi.group_norm`, with weights for each group."""
    groups = n.required("num_groups")
    channels = n.held(0).shape[1]
    if not isinstance(channels, int) or groups < 1 or channels % groups:
        raise Unsupported(f"{channels} channels in {groups} groups")
    weight, bias = (n.emit(topi.repeat, n.value(k), channels // groups, axis=0) for k in (1, 2))
    return n.emit(topi.group_norm, n.value(0), weight, bias, groups=groups, eps=n.attr("epsilon", 1e-5))


@operator("GroupNormalization", since=21)
def group_norm(n: Node) -> Value:
    """`topi.group_norm`."""
    return n.emit(topi.group_norm, n.value(0), n.value(1), n.value(2), groups=n.required("num_groups"),
                  eps=n.attr("epsilon", 1e-5))


@operator("LayerNormalization")
@operator("LayerNormalization", domain=CONTRIB, attributes=_OF_AXIS, inputs=3)
def layer_norm(n: Node) -> Any:
    """`topi.layer_norm`."""
    x, weight, bias = n.value(0), n.value(1), n.optional(2)
    axes, eps = n.rank() - n.axis(-1), n.attr("epsilon", 1e-5)
    if any(w is not None and (w.ndim != axes or w.shape != x.shape[-axes:]) for w in (weight, bias)):
        y = n.emit(topi.layer_norm, x, axes=axes, eps=eps)
        y = n.emit(topi.multiply, y, weight)
        y = y if bias is None else n.emit(topi.add, y, bias)
    else:
        y = n.emit(topi.layer_norm, x, weight, bias, axes=axes, eps=eps)
    return (y, *n.emit(moments, x, axes, eps, n.dtype("stash_type")[1])) if n.wants(1) or n.wants(2) else y


def moments(x: Any, axes: int, eps: float, dtype: str) -> Any:
    """(mean, 1 / standard deviation) over the last axes, which stay as ones."""
    over = tuple(range(-axes, 0))
    wide = topi.astype(x, "float32") if x.dtype in ("float16", "bfloat16") else x
    deviation = topi.rsqrt(topi.add(topi.var(wide, axis=over, keepdims=True), eps))
    return tuple(topi.astype(v, dtype) for v in (topi.mean(wide, axis=over, keepdims=True), deviation))


@operator("RMSNormalization")
@operator("SimplifiedLayerNormalization", domain=CONTRIB, attributes=_OF_AXIS, inputs=2)
@operator("SimplifiedLayerNormalization", attributes=_OF_AXIS, inputs=2)
def rms_norm(n: Node) -> Value:
    """`topi.rms_norm`."""
    x, weight = n.value(0), n.value(1)
    axes, eps = n.rank() - n.axis(-1), n.attr("epsilon", 1e-5)
    if weight.ndim != axes or weight.shape != x.shape[-axes:]:
        return n.emit(topi.multiply, n.emit(topi.rms_norm, x, axes=axes, eps=eps), weight)
    return n.emit(topi.rms_norm, x, weight, axes=axes, eps=eps)


@operator("LRN")
def lrn(n: Node) -> Value:
    """`topi.local_response_norm`."""
    return n.emit(lrn_rule, n.value(0), n.required("size"), n.attr("alpha", 1e-4), n.attr("beta", 0.75),
                  n.attr("bias", 1.0))


def lrn_rule(x: Any, size: int, alpha: float, beta: float, k: float) -> Any:
    """`topi.local_response_norm`, whose windows of even sizes reach further to the other side."""
    if size % 2:
        return topi.local_response_norm(x, size=size, alpha=alpha, beta=beta, k=k)
    return topi.flip(topi.local_response_norm(topi.flip(x, axis=1), size=size, alpha=alpha, beta=beta, k=k), axis=1)


@operator("MeanVarianceNormalization")
def mean_variance_norm(n: Node) -> Value:
    """`topi.mean_variance_norm`."""
    return n.emit(topi.mean_variance_norm, n.value(0), axis=tuple(n.attr("axes", [0, 2, 3])))


@operator("LpNormalization")
def lp_norm(n: Node) -> Value:
    """x divided by its norm along an axis; 0 where that is 0."""
    return n.emit(divided_by_norm, n.value(0), n.attr("p", 2), n.axis(-1))


def divided_by_norm(x: Any, p: int, axis: int) -> Any:
    """y = x / the norm of order p along an axis; 0 where that is 0."""
    norm = topi.norm(x, axis=axis, keepdims=True, ord=p)
    return topi.divide(x, topi.where(topi.equal(norm, 0), 1.0, norm))


# contrib


@operator("SkipLayerNormalization", domain=CONTRIB, attributes=("epsilon",), inputs=5)
def skip_layer_norm(n: Node) -> Any:
    """`topi.layer_norm` of x + skip + bias."""
    total = combined(n, topi.add, [n.value(k) for k in (0, 1, 4) if n.has(k)])
    weights = (n.emit(wider, n.value(k)) for k in (2, 3) if n.has(k))
    y = n.emit(topi.layer_norm, total, *weights, eps=n.attr("epsilon", 1e-12))
    return narrowed(n, y), None, None, narrowed(n, total)


@operator("SkipSimplifiedLayerNormalization", domain=CONTRIB, attributes=("epsilon",), inputs=4)
def skip_rms_norm(n: Node) -> Any:
    """`topi.rms_norm` of x + skip + bias."""
    total = combined(n, topi.add, [n.value(k) for k in (0, 1, 3) if n.has(k)])
    y = n.emit(topi.rms_norm, total, n.emit(wider, n.value(2)), eps=n.attr("epsilon", 1e-12))
    return narrowed(n, y), None, None, narrowed(n, total)


@operator("EmbedLayerNormalization", domain=CONTRIB, attributes=("epsilon", "mask_index_type"), inputs=9)
def embed_layer_norm(n: Node) -> Any:
    """`topi.layer_norm` of the sum of the embeddings of words, positions and segments."""
    ids, word, position = n.value(0), n.value(2), n.value(3)
    total = n.emit(topi.take, word, ids, axis=0)
    rows = n.emit(topi.take, position, n.value(8), axis=0) if n.has(8) else \
        n.emit(first, position, ids.shape[1], 0)
    total = n.emit(topi.add, total, rows)
    if n.has(1) and n.has(4):
        total = n.emit(topi.add, total, n.emit(topi.take, n.value(4), n.value(1), axis=0))
    y = n.emit(topi.layer_norm, total, n.value(5), n.value(6), eps=n.attr("epsilon", 1e-12))
    return y, lengths_of_mask(n, 7), total


def lengths_of_mask(n: Node, k: int) -> Value:
    """int32[b]: the number of words by a mask, input k; 0 without it."""
    made: Value = n.emit(number_of_words, n.value(k)) if n.has(k) else n.emit(
        topi.zeros, n.shape()[:1], dtype="int32")
    return made


def number_of_words(mask: Any) -> Any:
    """y[b] = how many elements of row b are 1: int32."""
    return topi.sum(topi.equal(mask, 1), axis=1, dtype="int32")
