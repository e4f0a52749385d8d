"""Samples of reductions."""
from __future__ import annotations

import warnings

import numpy as np

from tests.topi.agreement import FLOATS, INTEGERS, NUMBERS, Draw, Sample, case, wide
from tilewright import topi

MORE = (*NUMBERS, "bool")


def drawn(draw: Draw, *kinds: str, zero: float = 0.04):
    """(x, attributes)."""
    shape = draw.shape(0, 4, 5, zero)
    return draw.array(shape, draw.dtype(*kinds)), {"axis": draw.axes(len(shape)), "keepdims": draw.flag()}


def sums(draw: Draw, name: str) -> Sample:
    x, attrs = drawn(draw, *MORE)
    y = getattr(np, name)(wide(x), **attrs)
    return Sample(lambda x: getattr(topi, name)(x, **attrs), [x], y, str(x.dtype) if str(x.dtype) in FLOATS else None)


@case
def sum(draw: Draw) -> Sample:
    return sums(draw, "sum")


@case
def prod(draw: Draw) -> Sample:
    return sums(draw, "prod")


def extremes(draw: Draw, name: str) -> Sample:
    x, attrs = drawn(draw, *MORE, zero=0)
    if str(x.dtype) == "float32" and draw.flag(0.3):
        x[draw.rng.random(x.shape) < 0.2] = np.nan
    return Sample(lambda x: getattr(topi, name)(x, **attrs), [x], getattr(np, name)(wide(x), **attrs), str(x.dtype))


@case
def max(draw: Draw) -> Sample:
    return extremes(draw, "max")


@case
def min(draw: Draw) -> Sample:
    return extremes(draw, "min")


def places(draw: Draw, name: str) -> Sample:
    shape = draw.shape(0, 4, 5, 0)
    dtype = draw.dtype(*MORE)
    x = draw.array(shape, dtype)
    if dtype == "float32":
        x = np.asarray(np.round(x))
        x[draw.rng.random(shape) < 0.1] = np.nan
    axis, keep = None if not shape or draw.flag(0.3) else draw.axis(len(shape)), draw.flag()
    out = draw.choice("int64", "int32")
    last, v = draw.flag(0.3), wide(x)
    if last:
        extent = v.size if axis is None else v.shape[axis]
        y = extent - 1 - getattr(np, name)(np.flip(v, axis), axis=axis, keepdims=keep)
    else:
        y = getattr(np, name)(v, axis=axis, keepdims=keep)
    return Sample(lambda x: getattr(topi, name)(x, axis=axis, keepdims=keep, dtype=out, last=last), [x], y, out)


@case
def argmax(draw: Draw) -> Sample:
    return places(draw, "argmax")


@case
def argmin(draw: Draw) -> Sample:
    return places(draw, "argmin")


def without_nan(draw: Draw, name: str) -> Sample:
    x, attrs = drawn(draw)
    x = np.asarray(x)
    x[draw.rng.random(x.shape) < 0.3] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = getattr(np, name)(wide(x), **attrs)
    return Sample(lambda x: getattr(topi, name)(x, **attrs), [x], y, str(x.dtype), tolerance=2)


@case
def nansum(draw: Draw) -> Sample:
    return without_nan(draw, "nansum")


@case
def nanmean(draw: Draw) -> Sample:
    return without_nan(draw, "nanmean")


@case
def mean(draw: Draw) -> Sample:
    x, attrs = drawn(draw, *MORE, zero=0)
    return Sample(lambda x: topi.mean(x, **attrs), [x], np.mean(wide(x), **attrs),
                  str(x.dtype) if str(x.dtype) in FLOATS else "float32", tolerance=2)


def moments(draw: Draw, name: str) -> Sample:
    x, attrs = drawn(draw, *FLOATS, *INTEGERS, zero=0)
    correction = draw.choice(0.0, 1.0)
    with np.errstate(all="ignore"):
        y = getattr(np, name)(wide(x), ddof=correction, **attrs)
    return Sample(lambda x: getattr(topi, name)(x, correction=correction, **attrs), [x], y,
                  str(x.dtype) if str(x.dtype) in FLOATS else "float32", tolerance=4)


@case
def var(draw: Draw) -> Sample:
    return moments(draw, "var")


@case
def std(draw: Draw) -> Sample:
    return moments(draw, "std")


@case
def logsumexp(draw: Draw) -> Sample:
    x, attrs = drawn(draw)
    if draw.flag(0.2):
        x[...] = -np.inf
    x = x + x.dtype.type(64)
    with np.errstate(all="ignore"):
        y = np.log(np.sum(np.exp(wide(x) - 64), **attrs)) + 64
    return Sample(lambda x: topi.logsumexp(x, **attrs), [x], y, str(x.dtype))


@case
def norm(draw: Draw) -> Sample:
    x, attrs = drawn(draw, zero=0)
    if draw.flag(0.3):
        x[draw.rng.random(x.shape) < 0.3] = 0
    order = draw.choice(2, 1, 0, np.inf, -np.inf, 3.0, 0.5)
    a = np.abs(wide(x))
    y = a.max(**attrs) if order == np.inf else a.min(**attrs) if order == -np.inf else (a != 0).sum(
        dtype="float64", **attrs) if order == 0 else (a ** order).sum(**attrs) ** (1 / order)
    return Sample(lambda x: topi.norm(x, ord=order, **attrs), [x], y, str(x.dtype), tolerance=2)


def questions(draw: Draw, name: str) -> Sample:
    x, attrs = drawn(draw, *MORE)
    x[draw.rng.random(x.shape) < (0.8 if name == "any" else 0.05)] = 0
    return Sample(lambda x: getattr(topi, name)(x, **attrs), [x], getattr(np, name)(wide(x), **attrs))


@case
def all(draw: Draw) -> Sample:
    return questions(draw, "all")


@case
def any(draw: Draw) -> Sample:
    return questions(draw, "any")


@case
def count_nonzero(draw: Draw) -> Sample:
    x, attrs = drawn(draw, *MORE)
    x[draw.rng.random(x.shape) < 0.5] = 0
    y = (wide(x) != 0).sum(dtype="int64", **attrs)
    return Sample(lambda x: topi.count_nonzero(x, **attrs), [x], y)
