"""Samples of medians, quantiles and runs."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import FLOATS, INTEGERS, NUMBERS, Draw, Sample, case, wide
from tests.topi.cases.sorting import drawn, order
from tilewright import topi


def lines(draw: Draw, flat: bool = True):
    """(x with elements, axis or None, keepdims, the axis as NumPy's functions along one take it)"""
    x = drawn(draw)
    while not x.size:
        x = drawn(draw)
    return x, None if flat and draw.flag(0.3) else draw.axis(x.ndim), draw.flag()


def taken(x, rank, axis, keep):
    """(values, places) of the elements of number rank of the order, lower where a line has NaN."""
    rows = x.ravel() if axis is None else x
    at = 0 if axis is None else axis
    places = order(rows, at, False)
    last = np.take(places, [rows.shape[at] - 1], at)
    chosen = np.take(places, [rank(rows.shape[at])], at)
    if rank(9) == 4:                                              # a median
        nan = np.take_along_axis(rows, last, at)
        chosen = np.where(nan != nan, last, chosen)
    out = [np.take_along_axis(rows, chosen, at), chosen]
    if axis is None:
        return [v.reshape([1] * x.ndim if keep else []) for v in out]
    return out if keep else [np.squeeze(v, at) for v in out]


@case
def median(draw: Draw) -> Sample:
    x, axis, keep = lines(draw)
    return Sample(lambda x: topi.median(x, axis=axis, keepdims=keep), [x],
                  taken(x, lambda n: (n - 1) // 2, axis, keep), [str(x.dtype), "int64"])


@case
def kthvalue(draw: Draw) -> Sample:
    x, axis, keep = lines(draw, False)
    k = draw.integer(1, x.shape[axis])
    values = [np.take(v, [k - 1], axis) for v in (np.take_along_axis(x, order(x, axis, False), axis),
                                                  order(x, axis, False))]
    return Sample(lambda x: topi.kthvalue(x, k=k, axis=axis, keepdims=keep), [x],
                  values if keep else [np.squeeze(v, axis) for v in values], [str(x.dtype), "int64"])


@case
def quantile(draw: Draw) -> Sample:
    x, axis, keep = lines(draw)
    method = draw.choice("linear", "lower", "higher", "nearest", "midpoint")
    q = draw.choice(0.0, 0.25, 0.3, 1.0, [0.5, 0.9], [0.1])
    kind = str(x.dtype) if str(x.dtype) in FLOATS else "float32"
    y = np.quantile(wide(x).astype("float64"), q, axis=axis, method=method, keepdims=keep)
    return Sample(lambda x: topi.quantile(x, q=q, axis=axis, keepdims=keep, method=method), [x], y, kind, tolerance=2)


@case
def mode(draw: Draw) -> Sample:
    x, axis, keep = lines(draw, False)

    def of_line(line):
        values, counts = np.unique(wide(line), return_counts=True)
        return values[np.argmax(counts)], counts.max()
    found = np.apply_along_axis(lambda line: np.array(of_line(line), "float64"), axis, wide(x))
    y, counts = (np.take(found, [n], axis) for n in (0, 1))
    y = y.astype(x.dtype)
    return Sample(lambda x: topi.mode(x, axis=axis, keepdims=keep), [x],
                  [v if keep else np.squeeze(v, axis) for v in (y, counts.astype("int64"))])


@case
def unique_consecutive(draw: Draw) -> Sample:
    x = drawn(draw, 0)
    flat = wide(x).ravel()
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, x.size), bool), flat[1:] != flat[:-1]]))
    counts = np.diff(np.append(starts, x.size))
    inverse = np.repeat(np.arange(len(starts)), counts).reshape(x.shape)
    rest = (0, x.size - len(starts))
    return Sample(topi.unique_consecutive, [x], [np.pad(x.ravel()[starts], rest), inverse, np.pad(counts, rest),
                                                 np.array([len(starts)])])


@case
def cov(draw: Draw) -> Sample:
    x, correction = draw.array((draw.extent(5), draw.integer(2, 6)), draw.dtype()), draw.choice(0, 1)
    apart = wide(x) - wide(x).mean(1, keepdims=True)
    return Sample(lambda x: topi.cov(x, correction=correction), [x], apart @ apart.T / (x.shape[1] - correction),
                  str(x.dtype), tolerance=2)


@case
def bincount(draw: Draw) -> Sample:
    size, x = draw.extent(6), draw.array(draw.shape(0, 3), draw.dtype(*INTEGERS), -1, 7)
    weights = [draw.array(x.shape, draw.dtype(*NUMBERS))] if draw.flag() else []
    kind = str(weights[0].dtype) if weights else "int64"
    y = np.zeros(size, "float64" if kind in FLOATS else kind)
    with np.errstate(all="ignore"):
        for at in np.ndindex(*x.shape):
            if 0 <= int(x[at]) < size:
                y[int(x[at])] += wide(weights[0])[at] if weights else 1
    return Sample(lambda *a: topi.bincount(*a, size=size), [x, *weights], y, kind)


@case
def histogram(draw: Draw) -> Sample:
    x, bins = draw.array(draw.shape(0, 3), draw.dtype("float32", "float64"), -3, 3), draw.integer(1, 5)
    if draw.flag(0.3):
        x = np.asarray(np.round(x))
        x[draw.rng.random(x.shape) < 0.1] = np.nan
    low, high = draw.choice((-2.0, 2.0), (0.0, 1.0))
    return Sample(lambda x: topi.histogram(x, bins=bins, low=low, high=high), [x],
                  np.histogram(wide(x)[~np.isnan(x)], bins, (low, high))[0])
