"""Attention: softmax of products of queries and keys, times values."""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_cases.drawing import Draw
from kernel_cases.rows import Operator, Row, Shape, f32, joined


@dataclass(frozen=True)
class Attention(Operator):
    """softmax(q @ k transposed / sqrt(d)) @ v for each head; causal: no key behind the query."""
    causal: bool = False

    def te(self, topi: Any, q: Any, k: Any, v: Any) -> Any:
        return topi.scaled_dot_product_attention(q, k, v, is_causal=self.causal)

    def numpy(self, q: Any, k: Any, v: Any) -> Any:
        y = np.empty((*q.shape[:-1], v.shape[-1]), q.dtype)
        for head in np.ndindex(*q.shape[:-2]):                  # one matrix of scores at a time
            s = q[head] @ k[head].T * q.dtype.type(1 / math.sqrt(q.shape[-1]))
            if self.causal:
                s = np.where(np.tri(*s.shape, dtype=bool), s, -np.inf)
            e = np.exp(s - s.max(-1, keepdims=True))
            y[head] = e @ v[head] / e.sum(-1, keepdims=True)
        return y

    def torch(self, torch: Any, q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)

    def jax(self, jax: Any, q: Any, k: Any, v: Any) -> Any:
        s = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])
        if self.causal:
            s = jax.numpy.where(np.tri(*s.shape[-2:], dtype=bool), s, -math.inf)
        return jax.nn.softmax(s, -1) @ v

    def onnx(self, node: Any, q: str, k: str, v: str) -> Any:
        (*_, tokens, d), (*_, keys, _) = node.shapes[q], node.shapes[k]
        s = node("FusedMatMul", q, k, transB=1, alpha=1 / math.sqrt(d), domain="com.microsoft")
        if self.causal:
            s = node("Add", s, node.constant(np.where(np.tri(tokens, keys), 0.0, -np.inf), "float32"))
        return node("MatMul", node("Softmax", s, axis=-1), v)

    def shapes(self, *shapes: Shape) -> list[Shape]:
        q, _, v = shapes
        return [(*q[:-1], v[-1])]

    def operations(self, *shapes: Shape) -> float:
        q, k, v = shapes
        per_pair = 2 * q[-1] + 5 + 2 * v[-1]
        return float(math.prod(q[:-1]) * k[-2] * per_pair) * (0.5 if self.causal else 1.0)

    def leading(self, *shapes: Shape) -> list[tuple[int, int]]:
        return [(0, 0), (1, 0), (2, 0)]

    def text(self, *shapes: Shape) -> str:
        q, k, _ = shapes
        other = f" keys {k[-2]}" if k[-2] != q[-2] else ""
        return f"attention {joined(q)}{other}{' causal' if self.causal else ''}"


def attention(heads: int, tokens: int, width: int = 64, keys: int = 0, causal: bool = False,
              extra: bool = False) -> Row:
    """One batch of heads; keys: their number where it is not that of the tokens."""
    q, k = f32(1, heads, tokens, width), f32(1, heads, keys or tokens, width)
    return Row(Attention(causal), (q, k, k), "", extra)


ROWS = [*(attention(12, n, extra=n > 1024) for n in (128, 256, 512, 1024, 4096)), attention(12, 512, causal=True),
        attention(3, 196, 32), attention(12, 1, keys=512), attention(8, 77)]


def draw(random: Draw) -> Row:
    tokens = random.extent(8, 400)
    return attention(random.extent(1, 12), tokens, random.choice([16, 32, 64, 64, 80]),
                     random.choice([0, 0, random.extent(8, 400)]))
