"""Samples of running sums, products and extremes."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import FLOATS, NUMBERS, Draw, Sample, case, wide
from tilewright import topi

MORE = (*NUMBERS, "bool")


def drawn(draw: Draw, *kinds: str):
    """(x, attributes)"""
    x = draw.array(draw.shape(1, 4, 5), draw.dtype(*kinds))
    return x, {"axis": draw.axis(x.ndim), "exclusive": draw.flag(0.3), "reverse": draw.flag(0.3)}


def running(x, f, start, axis, exclusive, reverse):
    """f(the elements before i, start for none) of each line along an axis; f of all of them first to last."""
    lines = np.moveaxis(x, axis, -1)
    lines = lines[..., ::-1] if reverse else lines
    out = np.zeros(lines.shape, np.asarray(start).dtype)
    for at in np.ndindex(*lines.shape[:-1]):
        for i in range(lines.shape[-1]):
            part = lines[at][:i + (not exclusive)]
            out[(*at, i)] = f(part) if part.size else start
    return np.moveaxis(out[..., ::-1] if reverse else out, -1, axis)


def folds(draw: Draw, name: str, f, start: int) -> Sample:
    x, attrs = drawn(draw, *MORE)
    kind = str(x.dtype) if str(x.dtype) in FLOATS else str(f(x[:0]).dtype)
    y = running(wide(x), f, f(wide(x)[:0]).dtype.type(start), **attrs)
    if draw.flag(0.2):
        kind = "float32"
        return Sample(lambda x: getattr(topi, name)(x, dtype="float32", **attrs), [x], y, kind)
    return Sample(lambda x: getattr(topi, name)(x, **attrs), [x], y, kind)


@case
def cumsum(draw: Draw) -> Sample:
    return folds(draw, "cumsum", np.sum, 0)


@case
def cumprod(draw: Draw) -> Sample:
    return folds(draw, "cumprod", np.prod, 1)


def extremes(draw: Draw, name: str) -> Sample:
    x, attrs = drawn(draw, *MORE)
    with_places, kind = draw.flag(), str(x.dtype)
    if kind == "float32":
        x = np.round(x)
        x[draw.rng.random(x.shape) < 0.1] = np.nan
    v = wide(x)
    best = np.max if name == "cummax" else np.min
    limits = (-np.inf, np.inf) if kind in FLOATS else (False, True) if kind == "bool" else (
        np.iinfo(kind).min, np.iinfo(kind).max)
    y = running(v, best, v.dtype.type(limits[name == "cummin"]), **attrs)

    def last(part):
        """The index of the last NaN, or of the last extreme."""
        hits = np.isnan(part) if part.dtype.kind == "f" and np.isnan(part).any() else part == best(part)
        return len(part) - 1 - int(hits[::-1].argmax())
    if not with_places:
        return Sample(lambda x: getattr(topi, name)(x, **attrs), [x], y, kind)
    places = running(v, last, np.int64(-1), **attrs)
    if attrs["reverse"]:
        places = np.where(places < 0, -1, x.shape[attrs["axis"]] - 1 - places)
    return Sample(lambda x: getattr(topi, name)(x, return_indices=True, **attrs), [x], [y, places], [kind, "int64"])


@case
def cummax(draw: Draw) -> Sample:
    return extremes(draw, "cummax")


@case
def cummin(draw: Draw) -> Sample:
    return extremes(draw, "cummin")


@case
def logcumsumexp(draw: Draw) -> Sample:
    x, attrs = drawn(draw)
    x = x * x.dtype.type(8)
    x[draw.rng.random(x.shape) < draw.choice(0, 0.3, 1)] = -np.inf
    if draw.flag(0.2):
        x[draw.rng.random(x.shape) < 0.1] = np.inf
    with np.errstate(all="ignore"):
        y = running(wide(x), lambda e: np.logaddexp.reduce(e), np.float64(-np.inf), **attrs)
    return Sample(lambda x: topi.logcumsumexp(x, **attrs), [x], y, str(x.dtype), tolerance=2)
