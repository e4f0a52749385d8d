"""Attention and what decoders need."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.frontend.onnx.values import holds
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


_KNOWN = ("num_heads", "unidirectional", "scale", "mask_filter_value")


def _attended(n: Node, given: Sequence[Value], mask: int, bias: int) -> Value:
    """`topi.scaled_dot_product_attention` of heads that lie side by side; `mask` and `bias` are numbers of inputs."""
    q, k, v = (n.emit(heads_of, x, n.required("num_heads")) for x in given)
    if n.has(mask) and n.has(bias):
        raise Unsupported("a mask beside a bias of the scores")
    if n.has(mask) and n.rank(mask) not in (2, 3):
        raise Unsupported(f"a mask of {n.rank(mask)} dimension(s)")
    added = n.emit(filtered, n.value(mask), n.attr("mask_filter_value", -1e4)) if n.has(mask) else n.optional(bias)
    rows, keys = q.shape[2], k.shape[2]
    causal = bool(n.attr("unidirectional", 0)) and not holds("eq", rows, 1)          # the last query sees all keys
    if causal and not holds("eq", rows, keys):
        raise Unsupported(f"the attribute unidirectional of {rows} queries and {keys} keys: the numbers differ")
    y = n.emit(topi.scaled_dot_product_attention, q, k, v, added, is_causal=causal, scale=n.attr("scale") or None)
    return n.emit(joined_heads, y)


def filtered(mask: Any, value: float) -> Any:
    """What is added to the scores [b, h, l, s]: a number where the mask, T[b, s] or T[b, l, s], is 0, else 0."""
    full = topi.expand_dims(mask, axis=(1, 2) if mask.ndim == 2 else (1,))
    return topi.where(topi.greater(full, 0), 0.0, topi.full((), value))


@operator("MultiHeadAttention", domain=CONTRIB, attributes=_KNOWN)
def multi_head_attention(n: Node) -> Value:
    """`topi.scaled_dot_product_attention` of heads that lie side by side, with a bias and a mask."""
    if n.rank() != 3 or not n.has(1) or not n.has(2) or n.rank(1) != 3 or n.has(6) or n.has(7) or n.outputs() > 1:
        raise Unsupported("packed or cached keys and values")
    q, k, v = (n.value(i) for i in range(3))
    if n.has(3):
        bias = n.emit(topi.split, n.value(3), [q.shape[-1], k.shape[-1], v.shape[-1]], axis=0)
        q, k, v = (n.emit(topi.add, x, b) for x, b in zip((q, k, v), bias))
    return _attended(n, (q, k, v), 4, 5)


@operator("Attention", domain=CONTRIB, attributes=(*_KNOWN, "do_rotary", "qkv_hidden_sizes", "rotary_embedding_dim",
                                                   "past_present_share_buffer"))
def packed_attention(n: Node) -> Value:
    """`topi.scaled_dot_product_attention` of the thirds of x times a weight."""
    if n.has(4) or n.has(6) or n.outputs() > 1 or n.attr("do_rotary", 0):
        raise Unsupported("cached keys and values, or rotations")
    x = n.emit(topi.matmul, n.value(0), n.value(1))
    if n.has(2):
        x = n.emit(topi.add, x, n.value(2))
    sizes = n.attr("qkv_hidden_sizes") or [x.shape[-1] // 3] * 3
    return _attended(n, n.emit(topi.split, x, list(sizes), axis=2), 3, 5)
