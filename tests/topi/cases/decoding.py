"""Samples of positions and caches."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import NUMBERS, Draw, Sample, case, wide
from tests.topi.cases.attention import attention
from tests.topi.references import softmax
from tilewright import topi


def angles(rows, width, base):
    a = np.arange(rows)[:, None] / base ** (np.arange(0, width, 2) / width)
    return np.cos(a), np.sin(a)


@case
def rotary_angles(draw: Draw) -> Sample:
    rows, width, base, dtype = draw.extent(9), 2 * draw.integer(1, 4), draw.choice(10000.0, 500.0), draw.dtype()
    return Sample(lambda: topi.rotary_angles(rows, width=width, base=base, dtype=dtype), [],
                  list(angles(rows, width, base)), [dtype] * 2)


@case
def rotary_embedding(draw: Draw) -> Sample:
    dtype, b, n, r = draw.dtype(), draw.extent(2), draw.extent(4), draw.integer(1, 3)
    d, interleaved = 2 * r + draw.choice(0, 0, 1, 2), draw.flag()
    x = draw.array((b, draw.extent(2), n, d) if draw.flag(0.7) else (b, n, d), dtype)
    how = draw.choice("rows", "batches", "positions", "row positions")
    lead = {"rows": (n,), "batches": (b, n)}.get(how, (draw.integer(1, 6),))
    cos, sin = draw.array((*lead, r), dtype), draw.array((*lead, r), dtype)
    arrays, c, s = [x, cos, sin], wide(cos), wide(sin)
    if "positions" in how:
        at = draw.rng.integers(0, lead[0], (b, n) if how == "positions" else (n,)).astype(draw.choice("int64", "int32"))
        arrays.append(at)
        c, s = c[at], s[at]
    c, s = (v[:, None] if v.ndim == 3 and x.ndim == 4 else v for v in (c, s))
    v, y = wide(x), wide(x).copy()
    p, q = (slice(0, 2 * r, 2), slice(1, 2 * r, 2)) if interleaved else (slice(0, r), slice(r, 2 * r))
    y[..., p], y[..., q] = v[..., p] * c - v[..., q] * s, v[..., p] * s + v[..., q] * c
    symbolic = [tuple(range(x.ndim - 1)), *[tuple(range(a.ndim - 1 if k < 2 else a.ndim))
                                            for k, a in enumerate(arrays[1:])]]
    return Sample(lambda *a: topi.rotary_embedding(*a, interleaved=interleaved), arrays, y, dtype, symbolic)


@case
def sinusoidal_positions(draw: Draw) -> Sample:
    rows, width, dtype = draw.extent(9), 2 * draw.integer(1, 4), draw.dtype()
    cos, sin = angles(rows, width, 10000.0)
    return Sample(lambda: topi.sinusoidal_positions(rows, width=width, dtype=dtype), [],
                  np.stack([sin, cos], -1).reshape(rows, width), dtype)


def slopes(heads):
    """As in the code of the paper."""
    def powers(n):
        return [2.0 ** (-8.0 / n * (k + 1)) for k in range(n)]
    lower = 2 ** int(np.floor(np.log2(heads)))
    return np.array(powers(lower) + powers(2 * lower)[::2][:heads - lower])


@case
def alibi_bias(draw: Draw) -> Sample:
    heads, rows, columns, dtype = draw.integer(1, 9), draw.extent(4), draw.extent(6), draw.dtype()
    far = np.abs(columns - rows + np.arange(rows)[:, None] - np.arange(columns))
    return Sample(lambda: topi.alibi_bias(rows, columns, heads=heads, dtype=dtype), [],
                  -slopes(heads)[:, None, None] * far, dtype)


@case
def top_p_filter(draw: Draw) -> Sample:
    x, p = draw.array((*draw.shape(0, 2, 3), draw.integer(1, 7)), draw.dtype(), -3, 3), draw.choice(0.0, 0.4, 0.83)
    y = np.full(x.shape, -np.inf)
    for at in np.ndindex(*x.shape[:-1]):
        row = wide(x)[at]
        order = np.argsort(-row, kind="stable")
        shares = softmax(row)[order]
        stays = np.cumsum(shares) - shares < p
        stays[0] = True
        y[at][order[stays]] = row[order[stays]]
    return Sample(lambda x: topi.top_p_filter(x, p=p), [x], y, str(x.dtype))


@case
def update_cache(draw: Draw) -> Sample:
    x = draw.array(draw.shape(2, 4), draw.dtype(*NUMBERS))
    axis, circular = draw.integer(1, x.ndim - 1), draw.flag()
    extent = x.shape[axis]
    shape = [draw.integer(0, extent) if k == axis else n for k, n in enumerate(x.shape)]
    new = draw.array(shape, str(x.dtype))
    start = draw.rng.integers(0, max(extent, 1), x.shape[0]).astype(draw.choice("int64", "int32", "uint8"))
    y = x.copy()
    for b in range(x.shape[0]):
        for k in range(shape[axis]):
            at = int(start[b]) + k
            if circular or at < extent:
                np.moveaxis(y, axis, 1)[b, at % extent] = np.moveaxis(new, axis, 1)[b, k]
    given = axis - x.ndim if draw.flag() else axis
    return Sample(lambda *a: topi.update_cache(*a, axis=given, circular=circular), [x, new, start], y)


def visible(lengths, rows, columns, causal, window):
    far = lengths.astype("int64")[:, None, None] - rows + np.arange(rows)[:, None] - np.arange(columns)
    out = np.broadcast_to(np.arange(columns) < lengths.astype("int64")[:, None, None], far.shape)
    out = out & (far >= 0) if causal else out
    return (out if window is None else out & (np.abs(far) < window))[:, None]


@case
def attention_mask(draw: Draw) -> Sample:
    rows, columns, causal, window = draw.extent(4), draw.extent(7), draw.flag(0.7), draw.choice(None, 1, 3)
    lengths = draw.rng.integers(0, columns + 1, draw.extent(3)).astype(draw.choice("int64", "int32", "uint8"))
    return Sample(lambda n: topi.attention_mask(n, rows, columns, is_causal=causal, window=window), [lengths],
                  visible(lengths, rows, columns, causal, window))


@case
def cached_attention(draw: Draw) -> Sample:
    dtype, b, g, per = draw.dtype(), draw.extent(2), draw.integer(1, 2), draw.integer(1, 2)
    n, s, d, e = draw.extent(3), draw.extent(6), draw.integer(1, 3), draw.extent(3)
    arrays = [draw.array((b, g * per, n, d), dtype), *(draw.array((b, g, s, w), dtype) for w in (d, e))]
    lengths = draw.rng.integers(0, s + 1, b).astype(draw.choice("int64", "int32"))
    causal, window = draw.flag(0.7), draw.choice(None, 2)
    y = attention(*map(wide, arrays), visible(lengths, n, s, causal, window), scale=0.4)
    return Sample(lambda *a: topi.cached_attention(*a, is_causal=causal, window=window, scale=0.4), [*arrays, lengths],
                  y, dtype, [(0, 2), (0, 2), (0, 2, 3), (0,)], tolerance=2)


@case
def group_query_attention(draw: Draw) -> Sample:
    dtype, b, g, per = draw.dtype(), draw.extent(2), draw.integer(1, 2), draw.integer(1, 2)
    n, s, d = draw.extent(3), draw.integer(3, 6), draw.integer(1, 3)
    q, *rest = (draw.array(shape, dtype) for shape in ((b, g * per, n, d), *[(b, g, n, d)] * 2, *[(b, g, s, d)] * 2))
    before = draw.rng.integers(0, s - n + 1, b).astype(draw.choice("int64", "int32"))
    caches = [x.copy() for x in rest[2:]]
    for cache, new in zip(caches, rest):
        for k in range(b):
            cache[k, :, before[k]:before[k] + n] = new[k]
    window = draw.choice(None, 2)
    y = attention(wide(q), *map(wide, caches), visible(before + n, n, s, True, window))
    return Sample(lambda *a: topi.group_query_attention(*a, window=window), [q, *rest, before], [y, *caches],
                  [dtype] * 3, [(0, 2), (0, 2), (0, 2), (0, 2), (0, 2), (0,)], tolerance=2)


@case
def gather_pages(draw: Draw) -> Sample:
    pages = draw.array((draw.integer(1, 4), draw.extent(2), draw.extent(3), draw.extent(3)), draw.dtype())
    table = draw.rng.integers(0, len(pages), (draw.extent(2), draw.extent(3))).astype(draw.choice("int64", "int32"))
    y = np.moveaxis(pages[table], 2, 1).reshape(table.shape[0], pages.shape[1], -1, pages.shape[3]) if pages.size and \
        table.size else np.zeros((table.shape[0], pages.shape[1], table.shape[1] * pages.shape[2], pages.shape[3]))
    return Sample(topi.gather_pages, [pages, table], y, str(pages.dtype))
