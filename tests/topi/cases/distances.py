"""Samples of distances."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import NUMBERS, Draw, Sample, case, wide
from tilewright import topi

ORDERS = (0.0, 1.0, 2.0, 3.0, np.inf)


def norm(d, p, axis=-1, keepdims=False):
    if p == np.inf:
        return np.abs(d).max(axis, keepdims=keepdims, initial=0)
    if p == 0:
        return (d != 0).sum(axis, keepdims=keepdims).astype("float64")
    return (np.abs(d) ** p).sum(axis, keepdims=keepdims) ** (1 / p)


def two(draw: Draw):
    shape, dtype = draw.shape(1, 3, 5, 0), draw.dtype()
    return draw.array(draw.broadcastable(shape), dtype), draw.array(shape, dtype), dtype


@case
def cosine_similarity(draw: Draw) -> Sample:
    a, b, dtype = two(draw)
    axis, eps = draw.axis(b.ndim), draw.choice(1e-8, 0.5)
    x, y = np.broadcast_arrays(wide(a), wide(b))
    sizes = [np.maximum(norm(v, 2, axis), eps) for v in (x, y)]
    return Sample(lambda a, b: topi.cosine_similarity(a, b, axis=axis, eps=eps), [a, b],
                  (x * y).sum(axis) / (sizes[0] * sizes[1]), dtype, tolerance=2)


@case
def pairwise_distance(draw: Draw) -> Sample:
    a, b, dtype = two(draw)
    p, keep, eps = draw.choice(1.0, 2.0, 3.0, np.inf), draw.flag(), draw.choice(1e-6, 0.1)
    return Sample(lambda a, b: topi.pairwise_distance(a, b, p=p, eps=eps, keepdims=keep), [a, b],
                  norm(wide(a) - wide(b) + eps, p, keepdims=keep), dtype, tolerance=2)


def rounded(x, draw: Draw):
    """Some elements are equal."""
    return np.asarray(np.round(x)) if draw.flag() else x


@case
def cdist(draw: Draw) -> Sample:
    lead, dtype, d, p = draw.shape(0, 2, 3), draw.dtype(), draw.extent(4), draw.choice(*ORDERS)
    a, b = (rounded(draw.array((*draw.broadcastable(lead), draw.extent(4), d), dtype), draw) for _ in "ab")
    y = norm(wide(a)[..., :, None, :] - wide(b)[..., None, :, :], p)
    return Sample(lambda a, b: topi.cdist(a, b, p=p), [a, b], y, dtype, tolerance=2)


@case
def pdist(draw: Draw) -> Sample:
    x, p = rounded(draw.array(draw.shape(2, 2, 6), draw.dtype()), draw), draw.choice(*ORDERS)
    i, j = np.triu_indices(len(x), 1)
    return Sample(lambda x: topi.pdist(x, p=p), [x], norm(wide(x)[i] - wide(x)[j], p), str(x.dtype), tolerance=2)


@case
def cross(draw: Draw) -> Sample:
    shape, dtype = list(draw.shape(1, 3)), draw.dtype(*NUMBERS)
    axis = draw.axis(len(shape))
    shape[axis] = 3
    shapes = [[n if k == axis % len(shape) or draw.flag(0.7) else 1 for k, n in enumerate(shape)] for _ in "ab"]
    full = np.broadcast_shapes(*shapes)
    a, b = (draw.array(s, dtype) for s in shapes)
    x, y = (np.moveaxis(np.broadcast_to(wide(v), full), axis, 0) for v in (a, b))
    with np.errstate(all="ignore"):
        z = np.stack([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]])
    return Sample(lambda a, b: topi.cross(a, b, axis=axis), [a, b], np.moveaxis(z, 0, axis), dtype,
                  [[k for k, n in enumerate(s) if n != 3] for s in shapes], tolerance=2)
