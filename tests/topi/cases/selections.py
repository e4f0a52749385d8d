"""Samples of selections."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import FLOATS, INTEGERS, NUMBERS, Draw, Sample, case, wide
from tests.topi.cases.indexing import ALL, indices, scattered
from tilewright import topi


def counted(values, room):
    """[the values and zeros behind them, how many there are]"""
    return [np.concatenate([values, np.zeros((room - len(values), *values.shape[1:]), values.dtype)]),
            np.array([len(values)])]


def sparse(draw: Draw, x):
    """x, with zeros in it."""
    return np.where(draw.rng.random(x.shape) < draw.choice(0.0, 0.5, 1.0), x, np.zeros((), x.dtype))


def mask(draw: Draw, shape):
    return np.asarray(draw.rng.random(tuple(shape)) < draw.choice(0.0, 0.5, 0.5, 1.0))


@case
def nonzero(draw: Draw) -> Sample:
    x = sparse(draw, draw.array(draw.shape(0, 4, 4), draw.dtype(*ALL)))
    return Sample(topi.nonzero, [x], counted(np.argwhere(wide(x)), x.size))


@case
def masked_select(draw: Draw) -> Sample:
    shape = draw.shape(0, 3)
    x, m = draw.array(draw.broadcastable(shape), draw.dtype(*ALL)), mask(draw, draw.broadcastable(shape))
    a, b = np.broadcast_arrays(x, m)
    return Sample(topi.masked_select, [x, m], counted(a[b], a.size))


@case
def compress(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3), draw.dtype(*ALL))
    axis = None if draw.flag(0.3) else draw.axis(x.ndim)
    extent = x.size if axis is None else x.shape[axis]
    c = mask(draw, (draw.integer(0, extent),))
    y, source = np.compress(c, x, axis), x.ravel() if axis is None else x
    y, number = counted(np.moveaxis(y, axis or 0, 0), len(c))
    return Sample(lambda x, c: topi.compress(x, c, axis=axis), [x, c], [np.moveaxis(y, 0, axis or 0), number],
                  symbolic=[() if axis is None else tuple(range(source.ndim)), (0,)])


@case
def masked_scatter(draw: Draw) -> Sample:
    x = draw.array(draw.shape(0, 3), draw.dtype(*ALL))
    m, source = mask(draw, draw.broadcastable(x.shape)), draw.array(draw.shape(0, 2), str(x.dtype))
    y, full = x.copy(), np.broadcast_to(m, x.shape)
    for at, value in zip(np.argwhere(full), source.ravel()):
        y[tuple(at)] = value
    return Sample(topi.masked_scatter, [x, m, source], y)


@case
def index_put(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3, 4), draw.dtype(*NUMBERS))
    depth, accumulate = draw.integer(1, x.ndim), draw.flag()
    lead = draw.shape(0, 2, 3) if all(x.shape[:depth]) else (0,)
    which = [indices(draw, draw.broadcastable(lead) if all(lead) else lead, n) for n in x.shape[:depth]]
    full = np.broadcast_shapes(*(i.shape for i in which))
    shape = (*full, *x.shape[depth:])
    updates = draw.array(draw.broadcastable(shape), str(x.dtype))
    places = [np.broadcast_to(i.astype("int64"), full) for i in which]
    y = scattered(x, lambda j: (*(int(p[j[:len(full)]]) for p in places), *j[len(full):]),
                  np.broadcast_to(updates, shape), "add" if accumulate else "none")
    return Sample(lambda x, u, *i: topi.index_put(x, i, u, accumulate=accumulate), [x, updates, *which], y,
                  str(x.dtype))


@case
def index_get(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3, 4), draw.dtype(*ALL))
    depth = draw.integer(1, x.ndim)
    lead = draw.shape(0, 2, 3) if all(x.shape[:depth]) else (0,)
    which = [indices(draw, draw.broadcastable(lead) if all(lead) else lead, n) for n in x.shape[:depth]]
    return Sample(lambda x, *i: topi.index_get(x, i), [x, *which], x[tuple(i.astype("int64") for i in which)])


@case
def index_reduce(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3, 4), draw.dtype(*ALL))
    axis, name = draw.axis(x.ndim), draw.choice("none", "add", "mul", "min", "max")
    at = axis % x.ndim
    i = indices(draw, (draw.extent(5) if x.shape[at] else 0,), x.shape[at])
    updates = draw.array((*x.shape[:at], len(i), *x.shape[at + 1:]), str(x.dtype))
    y = scattered(x, lambda j: (*j[:at], i[j[at]], *j[at + 1:]), updates, name)
    return Sample(lambda *a: topi.index_reduce(*a, axis=axis, reduction=name), [x, i, updates], y, str(x.dtype))


REDUCE = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "min": np.min, "max": np.max}


@case
def segment_reduce(draw: Draw) -> Sample:
    name, segments = draw.choice(*REDUCE), draw.integer(1, 5)
    x = draw.array(draw.shape(1, 3), draw.dtype(*FLOATS if name == "mean" else NUMBERS))
    i = indices(draw, (len(x),), segments)
    y = np.zeros((segments, *x.shape[1:]), wide(x).dtype)
    with np.errstate(all="ignore"):
        for s in range(segments):
            rows = wide(x)[i.astype("int64") % segments == s]
            y[s] = REDUCE[name](rows, 0) if len(rows) else 0
    return Sample(lambda x, i: topi.segment_reduce(x, i, segments=segments, reduction=name), [x, i], y, str(x.dtype),
                  tolerance=2)


@case
def scatter_reduce(draw: Draw) -> Sample:
    name, own = draw.choice(*REDUCE), draw.flag()
    x = draw.array(draw.shape(1, 3, 4), draw.dtype(*FLOATS if name == "mean" else NUMBERS))
    axis = draw.axis(x.ndim)
    at = axis % x.ndim
    shape = [draw.integer(0, n) for n in x.shape]
    shape[at] = draw.extent(5) if x.shape[at] else 0
    i, updates = indices(draw, shape, x.shape[at]), draw.array(shape, str(x.dtype))
    parts = {p: [wide(x)[p]] if own else [] for p in np.ndindex(*x.shape)}
    for j in np.ndindex(*shape):
        parts[(*j[:at], int(i[j]) % x.shape[at], *j[at + 1:])].append(wide(updates)[j])
    y = np.zeros(x.shape, wide(x).dtype)
    with np.errstate(all="ignore"):
        for p, values in parts.items():
            y[p] = REDUCE[name](np.array(values, y.dtype)) if values else wide(x)[p]
    return Sample(lambda *a: topi.scatter_reduce(*a, axis=axis, reduction=name, include_self=own), [x, i, updates], y,
                  str(x.dtype), tolerance=2)


@case
def repeat_interleave(draw: Draw) -> Sample:
    x, size = draw.array(draw.shape(1, 3), draw.dtype(*ALL)), draw.extent(9)
    axis = draw.axis(x.ndim)
    times = draw.rng.integers(0, 4, x.shape[axis]).astype(draw.choice("int64", "int32", "uint8"))
    y = np.moveaxis(np.repeat(x, times, axis), axis, 0)[:size]
    y = np.concatenate([y, np.zeros((size - len(y), *y.shape[1:]), y.dtype)])
    return Sample(lambda x, r: topi.repeat_interleave(x, r, size=size, axis=axis), [x, times], np.moveaxis(y, 0, axis))


@case
def embedding_bag(draw: Draw) -> Sample:
    weight, name = draw.array((draw.integer(1, 6), draw.extent(4)), draw.dtype()), draw.choice("mean", "sum", "max")
    i = indices(draw, (draw.integer(0, 8),), len(weight))
    starts = np.sort(draw.rng.integers(0, len(i) + 1, draw.extent(4))).astype(draw.choice("int64", "int32"))
    more = [draw.array((len(i),), str(weight.dtype))] if name == "sum" and draw.flag() else []
    rows = wide(weight)[i.astype("int64")] * (wide(more[0])[:, None] if more else 1)
    y = np.zeros((len(starts), weight.shape[1]))
    for b, (start, end) in enumerate(zip(starts, [*starts[1:], len(i)])):
        y[b] = REDUCE[name](rows[start:end], 0) if end > start else 0
    return Sample(lambda *a: topi.embedding_bag(*a, reduction=name), [i, weight, starts, *more], y, str(weight.dtype))


@case
def sequence_mask(draw: Draw) -> Sample:
    lengths, size = draw.array(draw.shape(0, 3), draw.dtype(*INTEGERS)), draw.extent(7)
    return Sample(lambda n: topi.sequence_mask(n, size=size), [lengths],
                  np.arange(size) < lengths.astype("int64")[..., None])


@case
def reverse_sequence(draw: Draw) -> Sample:
    x = draw.array(draw.shape(2, 4), draw.dtype(*ALL))
    axis, batch = (int(a) for a in draw.rng.permutation(x.ndim)[:2])
    lengths = draw.rng.integers(0, x.shape[axis] + 1, x.shape[batch]).astype(draw.choice("int64", "int32", "uint8"))
    y = np.moveaxis(x, (batch, axis), (0, 1)).copy()
    for b, n in enumerate(lengths):
        y[b, :n] = y[b, :n][::-1].copy()
    axes = [a - x.ndim if draw.flag(0.3) else a for a in (axis, batch)]
    return Sample(lambda *a: topi.reverse_sequence(*a, axis=axes[0], batch_axis=axes[1]), [x, lengths],
                  np.moveaxis(y, (0, 1), (batch, axis)))
