"""Samples of gathers, scatters and tables."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import NUMBERS, Draw, Sample, case, wide
from tilewright import topi

ALL = (*NUMBERS, "bool")


def indices(draw: Draw, shape, extent: int, beyond: bool = False) -> np.ndarray:
    """Indices into an extent, some of them negative where the type has such; out of range on request."""
    dtype = draw.dtype("int64", "int32", "int64", "int8", "uint8", "uint32")
    low, high = (-2 * extent - 3, 2 * extent + 3) if beyond else (-extent, extent - 1)
    low = 0 if dtype.startswith("u") else low
    return draw.rng.integers(low, max(high + 1, low + 1), tuple(shape)).astype(dtype)


def chosen(draw: Draw, shape, extent: int, mode: str) -> np.ndarray:
    """Indices that a mode takes."""
    i = indices(draw, shape, extent, mode in ("wrap", "clip"))
    return i % i.dtype.type(max(extent, 1)) if mode == "exact" else i


@case
def take(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3), draw.dtype(*ALL))
    axis, mode = None if draw.flag(0.3) else draw.axis(x.ndim), draw.choice("raise", "wrap", "clip", "exact")
    extent = x.size if axis is None else x.shape[axis]
    shape = draw.shape(0, 2, 4) if extent else (2, 0)
    i = chosen(draw, shape, extent, mode)
    return Sample(lambda x, i: topi.take(x, i, axis=axis, mode=mode), [x, i],
                  np.take(x, i.astype("int64"), axis, mode=mode.replace("exact", "raise")))


def along(draw: Draw):
    """(x, axis, a shape of indices along it)"""
    x = draw.array(draw.shape(1, 4), draw.dtype(*ALL))
    axis = draw.axis(x.ndim)
    shape = [n if draw.flag() else draw.integer(0 if draw.flag(0.1) else min(n, 1), n) for n in x.shape]
    shape[axis] = draw.extent(6) if x.shape[axis] else 0
    return x, axis, shape


@case
def gather(draw: Draw) -> Sample:
    x, axis, shape = along(draw)
    mode = draw.choice("raise", "exact", "wrap", "clip") if x.shape[axis] else "raise"
    i = chosen(draw, shape, x.shape[axis], mode)
    n = i.astype("int64")
    n = n % x.shape[axis] if mode == "wrap" else np.clip(n, 0, x.shape[axis] - 1) if mode == "clip" else n
    part = x[tuple(slice(None) if k == axis % x.ndim else slice(e) for k, e in enumerate(shape))]
    return Sample(lambda x, i: topi.gather(x, i, axis=axis, mode=mode), [x, i], np.take_along_axis(part, n, axis))


def points(draw: Draw, lead, extents) -> np.ndarray:
    """indices[lead..., k] into extents."""
    dtype = draw.dtype("int64", "int32", "int16")
    out = np.zeros((*lead, len(extents)), dtype)
    for k, n in enumerate(extents):
        out[..., k] = draw.rng.integers(-n, n, lead) if n else 0
    return out


@case
def gather_nd(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 4, 4), draw.dtype(*ALL))
    batch = draw.integer(0, min(2, x.ndim - 1))
    depth = draw.integer(0, x.ndim - batch)
    chosen = x.shape[batch:batch + depth]
    own = draw.shape(0, 2, 3) if all(chosen) else (0,)
    i = points(draw, (*x.shape[:batch], *own), chosen)
    y = np.zeros((*i.shape[:-1], *x.shape[batch + depth:]), x.dtype)
    for at in np.ndindex(*i.shape[:-1]):
        y[at] = x[(*at[:batch], *i[at])]
    last = i.ndim - 1
    return Sample(lambda x, i: topi.gather_nd(x, i, batch_dims=batch), [x, i], y,
                  symbolic=[tuple(range(x.ndim)), tuple(range(last))])


def combine(name, a, b):
    if a.dtype == bool:
        return {"none": b, "add": a | b, "mul": a & b, "min": a & b, "max": a | b}[name]
    return {"none": lambda: b, "add": lambda: a + b, "mul": lambda: a * b, "min": lambda: np.minimum(a, b),
            "max": lambda: np.maximum(a, b)}[name]()


def scattered(x, places, updates, name):
    y = wide(x).copy()
    with np.errstate(all="ignore"):
        for at in np.ndindex(*updates.shape):
            y[places(at)] = combine(name, y[places(at)], wide(updates)[at])
    return y


@case
def scatter(draw: Draw) -> Sample:
    x, axis, shape = along(draw)
    i, name = indices(draw, shape, x.shape[axis]), draw.choice("none", "add", "mul", "min", "max")
    updates = draw.array(shape, str(x.dtype))
    at = axis % x.ndim
    y = scattered(x, lambda j: (*j[:at], i[j], *j[at + 1:]), updates, name)
    return Sample(lambda *a: topi.scatter(*a, axis=axis, reduction=name), [x, i, updates], y, str(x.dtype))


@case
def scatter_nd(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3, 4), draw.dtype(*ALL))
    depth, name = draw.integer(0, x.ndim), draw.choice("none", "add", "mul", "min", "max")
    lead = draw.shape(0, 2, 4) if all(x.shape[:depth]) else (0,)
    i = points(draw, lead, x.shape[:depth])
    updates = draw.array((*lead, *x.shape[depth:]), str(x.dtype))
    y = scattered(x, lambda j: (*i[j[:len(lead)]], *j[len(lead):]), updates, name)
    return Sample(lambda *a: topi.scatter_nd(*a, reduction=name), [x, i, updates], y, str(x.dtype),
                  [tuple(range(x.ndim)), tuple(range(len(lead))), tuple(range(updates.ndim))])


@case
def embedding(draw: Draw) -> Sample:
    weight = draw.array((draw.integer(1, 6), draw.extent(4)), draw.dtype())
    i = indices(draw, draw.shape(0, 3, 4), len(weight))
    padding = draw.choice(None, draw.integer(-len(weight), len(weight) - 1))
    y = weight[i.astype("int64")]
    if padding is not None:
        y[i.astype("int64") % len(weight) == padding % len(weight)] = 0
    return Sample(lambda i, w: topi.embedding(i, w, padding_idx=padding), [i, weight], y)


@case
def one_hot(draw: Draw) -> Sample:
    depth, dtype = draw.extent(6), draw.dtype(*NUMBERS)
    i = indices(draw, draw.shape(0, 3, 4), depth, draw.flag())
    axis, on, off = draw.axis(i.ndim + 1), draw.integer(1, 3), draw.integer(0, 2)
    y = np.where(np.arange(depth) == i.astype("int64")[..., None], on, off)
    return Sample(lambda i: topi.one_hot(i, depth=depth, on=on, off=off, axis=axis, dtype=dtype), [i],
                  np.moveaxis(y, -1, axis), dtype)


