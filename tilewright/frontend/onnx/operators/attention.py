"""Attention and what decoders need."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.registry import CONTRIB, operator
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


# contrib


@operator("MultiHeadAttention", domain=CONTRIB)
def multi_head_attention(n: Node) -> Value:
    """`topi.scaled_dot_product_attention` of heads that lie side by side, with a bias and a mask."""
    heads = n.required("num_heads")
    if n.rank() != 3 or not n.has(1) or not n.has(2) or n.rank(1) != 3 or n.has(6) or n.has(7) or n.outputs() > 1:
        raise Unsupported("packed or cached keys and values")
    q, k, v = (n.value(i) for i in range(3))
    if n.has(3):
        width = q.shape[-1]
        bias = n.emit(topi.split, n.value(3), [width, k.shape[-1], v.shape[-1]], axis=0)
        q, k, v = (n.emit(topi.add, x, b) for x, b in zip((q, k, v), bias))
    q, k, v = (n.emit(heads_of, x, heads) for x in (q, k, v))
    mask = _mask(n, n.value(4)) if n.has(4) else None
    if n.has(5):
        if mask is not None:
            raise Unsupported("a mask beside a bias of the scores")
        mask = n.value(5)
    y = n.emit(topi.scaled_dot_product_attention, q, k, v, mask, is_causal=bool(n.attr("unidirectional", 0)),
               scale=n.attr("scale") or None)
    return n.emit(joined_heads, y)


def _mask(n: Node, mask: Value) -> Value:
    """Which keys count, as bools that broadcast to [b, h, l, s]."""
    if mask.ndim not in (2, 3):
        raise Unsupported(f"a mask of {mask.ndim} dimension(s)")
    held = n.emit(topi.not_equal, mask, 0)
    return n.emit(topi.expand_dims, held, axis=(1, 2) if mask.ndim == 2 else (1,))


@operator("Attention", domain=CONTRIB)
def packed_attention(n: Node) -> Value:
    """`topi.scaled_dot_product_attention` of the thirds of x times a weight."""
    heads = n.required("num_heads")
    if n.has(4) or n.has(6) or n.outputs() > 1 or n.attr("do_rotary", 0):
        raise Unsupported("cached keys and values, or rotations")
    x = n.emit(topi.matmul, n.value(0), n.value(1))
    if n.has(2):
        x = n.emit(topi.add, x, n.value(2))
    sizes = n.attr("qkv_hidden_sizes") or [x.shape[-1] // 3] * 3
    q, k, v = (n.emit(heads_of, p, heads) for p in n.emit(topi.split, x, list(sizes), axis=2))
    mask = _mask(n, n.value(3)) if n.has(3) else None
    if n.has(5):
        if mask is not None:
            raise Unsupported("a mask beside a bias of the scores")
        mask = n.value(5)
    y = n.emit(topi.scaled_dot_product_attention, q, k, v, mask, is_causal=bool(n.attr("unidirectional", 0)),
               scale=n.attr("scale") or None)
    return n.emit(joined_heads, y)
