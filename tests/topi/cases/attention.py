"""Samples of attention."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import Draw, Sample, case, wide
from tilewright import topi


def attention(q, k, v, mask=None, causal=False, scale=None, softcap=0.0):
    if q.ndim == 4:
        k, v = (np.repeat(t, q.shape[1] // t.shape[1], 1) for t in (k, v))
    s = q @ np.swapaxes(k, -1, -2) * (scale or 1 / np.sqrt(max(q.shape[-1], 1e-30)))
    if softcap:
        s = np.tanh(s / softcap) * softcap
    if mask is not None:
        s = np.where(mask, s, -np.inf) if mask.dtype == bool else s + mask
    if causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    m = s.max(-1, keepdims=True, initial=-np.inf)
    e = np.exp(s - np.where(np.isinf(m), 0, m))
    t = e.sum(-1, keepdims=True)
    return e / np.where(t == 0, 1, t) @ v


@case
def scaled_dot_product_attention(draw: Draw) -> Sample:
    dtype, b, g, per = draw.dtype(), draw.extent(2), draw.integer(1, 2), draw.integer(1, 3)
    n, s, d, e = draw.extent(5), draw.extent(5), draw.integer(1, 4), draw.extent(4)
    heads = draw.flag(0.8)
    q = draw.array((b, g * per, n, d) if heads else (b, n, d), dtype)
    k, v = (draw.array((b, g, s, w) if heads else (b, s, w), dtype) for w in (d, e))
    causal, scale, cap = draw.flag(0.4), draw.choice(None, 0.3), draw.choice(0.0, 0.0, 2.0)
    arrays = [q, k, v]
    if draw.flag():
        shape = draw.broadcastable((b, g * per, n, s) if heads else (b, n, s))
        arrays.append(draw.array(shape, draw.choice("bool", dtype)))
    y = attention(*map(wide, arrays), causal=causal, scale=scale, softcap=cap)
    symbolic = [(0, 2), (0, 2), (0, 2, 3), ()] if heads else "all"
    if len(arrays) > 3:
        symbolic = None
    attrs = {"is_causal": causal, "scale": scale, "softcap": cap}
    return Sample(lambda *a: topi.scaled_dot_product_attention(*a, **attrs), arrays, y, dtype, symbolic, tolerance=2)


@case
def multi_head_attention(draw: Draw) -> Sample:
    dtype, heads, per, causal = draw.dtype("float32", "float64"), draw.integer(1, 2), draw.integer(1, 2), draw.flag()
    b, n, s, width = draw.extent(2), draw.extent(4), draw.extent(4), heads * per
    q, k, v = (draw.array((b, m, width), dtype) for m in (n, s, s))
    w, bias = draw.array((3 * width, width), dtype), draw.array((3 * width,), dtype)
    wo, bo = draw.array((width, width), dtype), draw.array((width,), dtype)
    parts = [wide(x) @ wide(w)[i * width:(i + 1) * width].T + wide(bias)[i * width:(i + 1) * width]
             for i, x in enumerate((q, k, v))]
    parts = [p.reshape(b, p.shape[1], heads, per).transpose(0, 2, 1, 3) for p in parts]
    y = attention(*parts, causal=causal).transpose(0, 2, 1, 3).reshape(b, n, width) @ wide(wo).T + wide(bo)
    arrays = [q, k, v, w, bias, wo, bo]
    return Sample(lambda *a: topi.multi_head_attention(*a, heads=heads, is_causal=causal), arrays, y, dtype,
                  [(0, 1), (0, 1), (0, 1), (), (), (), ()], tolerance=2)
