"""Samples of orders."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import NUMBERS, Draw, Sample, case, wide
from tilewright import topi

ALL = (*NUMBERS, "bool")


def drawn(draw: Draw, least: int = 1, most: int = 3):
    """An array of few different values, in some samples with NaN."""
    x = draw.array(draw.shape(least, most, draw.choice(6, 6, 9, 20)), draw.dtype(*ALL))
    if x.dtype.kind not in "iub":
        x = np.asarray(np.round(x))
        if draw.flag(0.3):
            x[draw.rng.random(x.shape) < 0.2] = np.nan
    return x


def order(x, axis, descending):
    """Stable; NaN counts as the largest."""
    if not descending:
        return np.argsort(wide(x), axis, kind="stable")
    y = np.flip(np.argsort(np.flip(wide(x), axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - y


@case
def sort(draw: Draw) -> Sample:
    x, down = drawn(draw), draw.flag()
    axis = draw.axis(x.ndim)
    return Sample(lambda x: topi.sort(x, axis=axis, descending=down), [x],
                  np.take_along_axis(x, order(x, axis, down), axis))


@case
def argsort(draw: Draw) -> Sample:
    x, down, dtype = drawn(draw), draw.flag(), draw.choice("int64", "int32", "float32")
    axis = draw.axis(x.ndim)
    return Sample(lambda x: topi.argsort(x, axis=axis, descending=down, dtype=dtype), [x], order(x, axis, down), dtype)


@case
def topk(draw: Draw) -> Sample:
    x, largest = drawn(draw), draw.flag()
    axis = draw.axis(x.ndim)
    k = draw.integer(0 if draw.flag(0.1) else min(1, x.shape[axis]), x.shape[axis])
    places = np.take(order(x, axis, largest), range(k), axis)
    return Sample(lambda x: topi.topk(x, k=k, axis=axis, largest=largest), [x],
                  [np.take_along_axis(x, places, axis), places])


@case
def searchsorted(draw: Draw) -> Sample:
    x, side = drawn(draw), draw.choice("left", "right")
    x = np.sort(wide(x), -1).astype(x.dtype)
    shape = (*x.shape[:-1], draw.extent(5)) if x.ndim > 1 or draw.flag() else draw.shape(0, 3)
    value = draw.array(shape, str(x.dtype))
    value = value if x.dtype.kind in "iub" else np.asarray(np.round(value))
    if x.dtype.kind not in "iub" and draw.flag(0.3):
        value[draw.rng.random(shape) < 0.3] = np.nan
    y = np.zeros(shape, "int64")
    for at in np.ndindex(*shape):
        y[at] = np.searchsorted(wide(x[at[:x.ndim - 1]]), wide(value)[at], side)
    return Sample(lambda x, v: topi.searchsorted(x, v, side=side), [x, value], y)


@case
def unique(draw: Draw) -> Sample:
    x = drawn(draw, 0)
    values, index, inverse, counts = np.unique(wide(x), return_index=True, return_inverse=True, return_counts=True)
    rest = (0, x.size - len(values))
    first = draw.flag()
    return Sample(lambda x: topi.unique(x, return_index=first), [x], [
        np.pad(values, rest).astype(x.dtype), inverse.reshape(x.shape), np.pad(counts, rest), np.array([len(values)]),
        *([np.pad(index, rest)] if first else [])])
