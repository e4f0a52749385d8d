"""Attention."""
from __future__ import annotations

import math
from typing import Any

from tilewright import te, topi
from tilewright.frontend.torch.emit import Emitter
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


@operator("scaled_dot_product_attention")
def attention(e: Emitter, query: Value, key: Value, value: Value, attn_mask: Value | None = None,
              dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
              enable_gqa: bool = False) -> Value:
    """`topi.scaled_dot_product_attention`."""
    if dropout_p:
        raise e.refuse(f"attention with dropout {dropout_p} needs random numbers", "call model.eval()")
    scale = None if scale is None else float(scale)
    if query.ndim <= 4 and query.ndim == key.ndim == value.ndim >= 3:
        return e.te(topi.scaled_dot_product_attention, query, key, value, _mask(e, attn_mask, query.ndim),
                    is_causal=is_causal, scale=scale)
    lead = e.shape[:-2]
    flat = [e.reshape(e.broadcast(x, (*lead, *x.shape[-2:])), (-1, 1, *x.shape[-2:])) for x in (query, key, value)]
    if attn_mask is not None:
        full = e.broadcast(attn_mask, (*lead, query.shape[-2], key.shape[-2]))
        attn_mask = e.reshape(full, (-1, 1, query.shape[-2], key.shape[-2]))
    y = e.te(topi.scaled_dot_product_attention, *flat, attn_mask, is_causal=is_causal, scale=scale)
    return e.reshape(y, e.shape)


def _mask(e: Emitter, mask: Value | None, ndim: int) -> Value | None:
    if mask is None or mask.ndim <= ndim:
        return mask
    return e.reshape(mask, mask.shape[mask.ndim - ndim:])


@operator("_scaled_dot_product_flash_attention_for_cpu")
def flash_attention(e: Emitter, query: Value, key: Value, value: Value, dropout_p: float = 0.0,
                    is_causal: bool = False, attn_mask: Value | None = None,
                    scale: float | None = None) -> tuple[Value, Any]:
    """`topi.scaled_dot_product_attention`, and the logarithms of the sums of its softmax."""
    y = attention(e, query, key, value, attn_mask, dropout_p, is_causal, scale)
    return y, e.te(topi.logsumexp, _scores(e, query, key, attn_mask, is_causal, _factor(query, scale)), axis=-1)


@operator("_scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_backward(e: Emitter, dy: Value, query: Value, key: Value, value: Value, y: Value, logsumexp: Value,
                             dropout_p: float = 0.0, is_causal: bool = False, attn_mask: Value | None = None,
                             scale: float | None = None) -> tuple[Value, Value, Value]:
    """The gradients of query, key and value, by the weights p = exp(scores - logsumexp).

    ds = p * (dy v^T - sum of dy * y), dq = scale * ds k, dk = scale * ds^T q, dv = p^T dy.
    Source: Dao and others, FlashAttention (2022).
    """
    if dropout_p:
        raise e.refuse(f"attention with dropout {dropout_p} needs random numbers", "call model.eval()")
    factor, wide = _factor(query, scale), logsumexp.dtype
    dy, query, key, value, y = (e.cast(x, wide) for x in (dy, query, key, value, y))
    least = e.te(topi.expand_dims, logsumexp, axis=-1)
    scores = _scores(e, query, key, attn_mask, is_causal, factor)
    weights = e.te(topi.where, e.te(topi.isfinite, least), e.te(topi.exp, e.te(topi.subtract, scores, least)), 0.0)
    own = e.te(topi.sum, e.te(topi.multiply, dy, y), axis=-1, keepdims=True)
    change = e.te(topi.subtract, e.te(topi.matmul, dy, value, transpose_b=True), own)
    change = e.te(topi.multiply, e.te(topi.multiply, weights, change), factor)
    return (e.te(topi.matmul, change, key), e.te(topi.matmul, change, query, transpose_a=True),
            e.te(topi.matmul, weights, dy, transpose_a=True))


def _factor(query: Value, scale: float | None) -> Any:
    """What scores are multiplied by: 1 / sqrt(d) where nothing is given."""
    if scale is not None:
        return float(scale)
    width: Any = query.shape[-1]
    return width ** -0.5 if isinstance(width, int) else 1.0 / te.sqrt(te.cast(query.dtype, width))


def _scores(e: Emitter, query: Value, key: Value, mask: Value | None, is_causal: bool, factor: Any) -> Value:
    """The scaled products of queries and keys in float32 at least, -inf where a key is left out."""
    wide = "float64" if query.dtype == "float64" else "float32"
    scores = e.te(topi.multiply, e.te(topi.matmul, e.cast(query, wide), e.cast(key, wide), transpose_b=True), factor)
    if is_causal:
        seen = e.te(topi.tril, e.tensor(1, "uint8", scores.shape[-2:]))
        scores = e.te(topi.where, e.cast(seen, "bool"), scores, -math.inf)
    if mask is not None and mask.dtype == "bool":
        return e.te(topi.where, mask, scores, -math.inf)
    return scores if mask is None else e.te(topi.add, scores, e.cast(mask, wide))


@operator("_native_multi_head_attention")
def multi_head(e: Emitter, query: Value, key: Value, value: Value, embed_dim: int, num_head: int, in_weight: Value,
               in_bias: Value, out_weight: Value, out_bias: Value, mask: Value | None = None,
               need_weights: bool = True, average_attn_weights: bool = True,
               mask_type: int | None = None) -> tuple[Value, Any]:
    """`topi.multi_head_attention`; the weights are missing."""
    seen = None
    if mask is not None:
        shapes = {0: (1, 1, *mask.shape), 1: (mask.shape[0], 1, 1, mask.shape[-1])}
        mask = e.reshape(mask, shapes[mask_type]) if mask_type in shapes else mask
        seen = e.te(topi.logical_not, mask) if mask.dtype == "bool" else mask
    y = e.te(topi.multi_head_attention, query, key, value, in_weight, in_bias, out_weight, out_bias, seen,
             heads=num_head)
    return y, None


@operator("_transformer_encoder_layer_fwd")
def encoder_layer(e: Emitter, x: Value, embed_dim: int, num_heads: int, in_weight: Value, in_bias: Value,
                  out_weight: Value, out_bias: Value, use_gelu: bool, norm_first: bool, eps: float,
                  weight_1: Value, bias_1: Value, weight_2: Value, bias_2: Value, ffn_weight_1: Value,
                  ffn_bias_1: Value, ffn_weight_2: Value, ffn_bias_2: Value, mask: Value | None = None,
                  mask_type: int | None = None) -> Value:
    """`topi.multi_head_attention` and two of `topi.linear`, with `topi.layer_norm` before or behind each part."""
    x = e.reshape(x, (*x.shape[:-1], in_weight.shape[1]))        # a size may stand for the width that weights have

    def attended(h: Value) -> Value:
        return multi_head(e, h, h, h, embed_dim, num_heads, in_weight, in_bias, out_weight, out_bias, mask,
                          mask_type=mask_type)[0]

    def fed(h: Value) -> Value:
        h = e.te(topi.gelu if use_gelu else topi.relu, e.te(topi.linear, h, ffn_weight_1, ffn_bias_1))
        return e.te(topi.linear, h, ffn_weight_2, ffn_bias_2)
    for part, weight, bias in ((attended, weight_1, bias_1), (fed, weight_2, bias_2)):
        if norm_first:
            x = e.te(topi.add, x, part(e.te(topi.layer_norm, x, weight, bias, eps=float(eps))))
        else:
            x = e.te(topi.layer_norm, e.te(topi.add, x, part(x)), weight, bias, eps=float(eps))
    return x


@operator("_scaled_dot_product_attention_math", "_scaled_dot_product_attention_math_for_mps")
def math_attention(e: Emitter, query: Value, key: Value, value: Value, attn_mask: Value | None = None,
                   dropout_p: float = 0.0, is_causal: bool = False, dropout_mask: Value | None = None,
                   scale: float | None = None, enable_gqa: bool = False) -> tuple[Value, Any]:
    """`topi.scaled_dot_product_attention`; the weights are missing."""
    return attention(e, query, key, value, attn_mask, dropout_p, is_causal, scale), None
