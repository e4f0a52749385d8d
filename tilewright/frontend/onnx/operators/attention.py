"""Attention and what decoders need, by the standard."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.registry import operator
from tilewright.graph.ir.values import Value


def heads_of(x: Any, heads: int) -> Any:
    """T[b, l, h * d] as T[b, h, l, d]."""
    b, length, width = x.shape
    return topi.transpose(topi.reshape(x, (b, length, heads, width // heads)), (0, 2, 1, 3))


def joined_heads(x: Any) -> Any:
    """T[b, h, l, d] as T[b, l, h * d]."""
    b, h, length, d = x.shape
    return topi.reshape(topi.transpose(x, (0, 2, 1, 3)), (b, length, h * d))


@operator("Attention", since=23)
def attention(n: Node) -> Any:
    """`topi.scaled_dot_product_attention`; with caches, windows or more results the operator's definition."""
    plain = not any(n.has(k) for k in (4, 5, 6)) and not any(n.wants(k) for k in (1, 2, 3))
    windows = max(n.attr("left_window_size", -1), n.attr("right_window_size", -1)) >= 0
    if not plain or windows or n.attr("qk_matmul_output_mode", 0) or n.attr("softmax_precision", 0) not in (0, 1):
        return n.importer.by_function(n)
    q, k, v = (n.value(i) for i in range(3))
    flat = q.ndim == 3
    if flat:
        q = n.emit(heads_of, q, n.required("q_num_heads"))
        k, v = (n.emit(heads_of, x, n.required("kv_num_heads")) for x in (k, v))
    causal = bool(n.attr("is_causal", 0))
    if n.has(3) and (n.held(3).shape[-1:] != k.shape[-2:-1] or causal and n.held(3).dtype != "bool"):
        return n.importer.by_function(n)
    y = n.emit(topi.scaled_dot_product_attention, q, k, v, n.optional(3), is_causal=causal, scale=n.attr("scale"),
               softcap=n.attr("softcap", 0.0))
    return n.emit(joined_heads, y) if flat else y


@operator("RotaryEmbedding", since=23)
def rotary_embedding(n: Node) -> Value:
    """`topi.rotary_embedding`."""
    x, cos, sin, positions = n.value(0), n.value(1), n.value(2), n.optional(3)
    flat, heads = x.ndim == 3, n.attr("num_heads", 0)
    if flat:
        if heads < 1:
            raise Unsupported("x has 3 dimensions, and the attribute num_heads is missing")
        x = n.emit(heads_of, x, heads)
    y = n.emit(topi.rotary_embedding, x, cos, sin, positions, interleaved=bool(n.attr("interleaved", 0)))
    return n.emit(joined_heads, y) if flat else y
