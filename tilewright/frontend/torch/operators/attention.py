"""Attention."""
from __future__ import annotations

import math
from typing import Any

from tilewright import topi
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
    factor = 1 / float(query.shape[-1]) ** 0.5 if scale is None else float(scale)
    scores = e.te(topi.multiply, e.te(topi.matmul, query, key, transpose_b=True), factor)
    if is_causal:
        seen = e.te(topi.tril, e.tensor(1, "uint8", scores.shape[-2:]))
        scores = e.te(topi.where, e.cast(seen, "bool"), scores, -math.inf)
    if attn_mask is not None:
        scores = e.te(topi.add, scores, e.cast(attn_mask, scores.dtype))
    return y, e.te(topi.logsumexp, scores, axis=-1)


@operator("_scaled_dot_product_attention_math", "_scaled_dot_product_attention_math_for_mps")
def math_attention(e: Emitter, query: Value, key: Value, value: Value, attn_mask: Value | None = None,
                   dropout_p: float = 0.0, is_causal: bool = False, dropout_mask: Value | None = None,
                   scale: float | None = None, enable_gqa: bool = False) -> tuple[Value, Any]:
    """`topi.scaled_dot_product_attention`; the weights are missing."""
    return attention(e, query, key, value, attn_mask, dropout_p, is_causal, scale), None
