"""Samples of windows as columns, blocks as batches, pooling undone."""
from __future__ import annotations

import itertools

import numpy as np

from tests.topi.agreement import NUMBERS, Draw, Sample, case, wide
from tests.topi.cases.indexing import ALL
from tilewright import topi


def geometry(draw: Draw):
    """(spatial extents, kernel, attributes, the number of windows along each axis)"""
    count = draw.integer(1, 3)
    kernel, stride, dilation, pads = ([draw.integer(low, high) for _ in range(count)] for low, high in (
        (1, 3 if count < 3 else 2), (1, 2), (1, 2), (0, 1)))
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    space = [max(s - 2 * p, 1) + draw.integer(0, 3) for s, p in zip(spans, pads)]
    out = [(n + 2 * p - s) // t + 1 for n, p, s, t in zip(space, pads, spans, stride)]
    return space, kernel, {"stride": stride, "padding": pads, "dilation": dilation}, out


def steps(kernel, attrs, out, limits):
    """(row in the kernel, column, place) of what windows touch, inside of the limits."""
    for (k, at_k), (o, at_o) in itertools.product(*(enumerate(np.ndindex(*n)) for n in (kernel, out))):
        place = [w * s + e * d - p for w, s, e, d, p in zip(at_o, attrs["stride"], at_k, attrs["dilation"],
                                                           attrs["padding"])]
        if all(0 <= v < n for v, n in zip(place, limits)):
            yield k, o, tuple(place)


@case
def unfold(draw: Draw) -> Sample:
    space, kernel, attrs, out = geometry(draw)
    x = draw.array((draw.extent(2), draw.extent(2), *space), draw.dtype(*ALL))
    y = np.zeros((*x.shape[:2], np.prod(kernel), np.prod(out)), x.dtype)
    for k, o, place in steps(kernel, attrs, out, space):
        y[:, :, k, o] = x[(slice(None), slice(None), *place)]
    return Sample(lambda x: topi.unfold(x, kernel, **attrs), [x],
                  y.reshape(x.shape[0], x.shape[1] * y.shape[2], y.shape[3]), symbolic=[tuple(range(x.ndim))])


@case
def fold(draw: Draw) -> Sample:
    space, kernel, attrs, out = geometry(draw)
    b, c, dtype = draw.extent(2), draw.extent(2), draw.dtype(*NUMBERS)
    x = draw.array((b, c * int(np.prod(kernel)), int(np.prod(out))), dtype)
    y, rows = np.zeros((b, c, *space), wide(x).dtype), wide(x).reshape(b, c, int(np.prod(kernel)), int(np.prod(out)))
    with np.errstate(all="ignore"):
        for k, o, place in steps(kernel, attrs, out, space):
            y[(slice(None), slice(None), *place)] += rows[:, :, k, o]
    return Sample(lambda x: topi.fold(x, space, kernel, **attrs), [x], y, dtype, [(0,)], tolerance=2)


@case
def sliding_window(draw: Draw) -> Sample:
    x, step = draw.array(draw.shape(1, 3, 6, 0), draw.dtype(*ALL)), draw.integer(1, 3)
    axis = draw.axis(x.ndim)
    size = draw.integer(1, x.shape[axis])
    y = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    y = np.take(y, range(0, y.shape[axis % x.ndim], step), axis % x.ndim)
    return Sample(lambda x: topi.sliding_window(x, size=size, step=step, axis=axis), [x], y)


@case
def max_unpool(draw: Draw) -> Sample:
    dtype, count = draw.dtype(*NUMBERS), draw.integer(1, 3)
    space = [draw.integer(1, 4) for _ in range(count)]
    pixels = int(np.prod(space))
    small = [draw.integer(1, n) for n in space]
    x = draw.array((draw.extent(2), draw.extent(2), *small), dtype)
    places = np.zeros(x.shape, draw.choice("int64", "int32"))
    y = np.zeros((*x.shape[:2], pixels), x.dtype)
    for at in np.ndindex(*x.shape[:2]):
        places[at] = draw.rng.permutation(pixels)[:int(np.prod(small))].reshape(small)
        y[at][places[at].ravel()] = x[at].ravel()
    return Sample(lambda *a: topi.max_unpool(*a, space), [x, places], y.reshape(*x.shape[:2], *space),
                  symbolic=[tuple(range(x.ndim))] * 2)


def blocks(draw: Draw):
    count = draw.integer(1, 3)
    return [draw.integer(1, 3) for _ in range(count)], [[draw.integer(0, 2) for _ in range(2)] for _ in range(count)]


def split(x, block):
    """[k..., b, c, o...] of blocks."""
    form = [v for n, k in zip(x.shape[2:], block) for v in (n // k, k)]
    y = x.reshape(*x.shape[:2], *form)
    count = len(block)
    return y.transpose(*(3 + 2 * n for n in range(count)), 0, 1, *(2 + 2 * n for n in range(count)))


@case
def space_to_batch(draw: Draw) -> Sample:
    block, pads = blocks(draw)
    space = []
    for k, pair in zip(block, pads):
        while (total := draw.integer(1, 3) * k) < sum(pair) + 1:
            pair[:] = [p // 2 for p in pair]
        space.append(total - sum(pair))
    x = draw.array((draw.extent(2), draw.extent(2), *space), draw.dtype(*ALL))
    parts = split(np.pad(x, [(0, 0), (0, 0), *pads]), block)
    y = parts.reshape(x.shape[0] * int(np.prod(block)), x.shape[1], *parts.shape[len(block) + 2:])
    return Sample(lambda x: topi.space_to_batch(x, block=block, padding=pads), [x], y, symbolic=[(0, 1)])


@case
def batch_to_space(draw: Draw) -> Sample:
    block, cuts = blocks(draw)
    whole = [draw.integer(1, 3) * k for k in block]
    for pair, n in zip(cuts, whole):
        while sum(pair) >= n:
            pair[:] = [p // 2 for p in pair]
    full = draw.array((draw.extent(2), draw.extent(2), *whole), draw.dtype(*ALL))
    parts = split(full, block)
    x = parts.reshape(full.shape[0] * int(np.prod(block)), full.shape[1], *parts.shape[len(block) + 2:])
    y = full[(slice(None), slice(None), *(slice(a, n - b) for (a, b), n in zip(cuts, whole)))]
    return Sample(lambda x: topi.batch_to_space(x, block=block, crop=cuts), [x], y, symbolic=[(1, *range(2, x.ndim))])
