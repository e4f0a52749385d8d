"""Samples of softmax and norms."""
from __future__ import annotations

import numpy as np

from tests.topi import references
from tests.topi.agreement import NUMBERS, Draw, Sample, case, wide
from tilewright import topi


def rows(draw: Draw):
    dtype, shape = draw.dtype(), draw.shape(1, 4)
    return draw.array(shape, dtype, -4, 4), draw.axis(len(shape))


@case
def softmax(draw: Draw) -> Sample:
    x, axis = rows(draw)
    return Sample(lambda x: topi.softmax(x, axis=axis), [x], references.softmax(wide(x), axis), str(x.dtype))


@case
def softmin(draw: Draw) -> Sample:
    x, axis = rows(draw)
    return Sample(lambda x: topi.softmin(x, axis=axis), [x], references.softmax(-wide(x), axis), str(x.dtype))


@case
def log_softmax(draw: Draw) -> Sample:
    x, axis = rows(draw)
    x = x * 10
    v = wide(x) - wide(x).max(axis, keepdims=True, initial=-np.inf)
    return Sample(lambda x: topi.log_softmax(x, axis=axis), [x], v - np.log(np.exp(v).sum(axis, keepdims=True)),
                  str(x.dtype))


@case
def masked_softmax(draw: Draw) -> Sample:
    x, axis = rows(draw)
    mask = np.asarray(draw.rng.random(draw.broadcastable(x.shape)) < draw.choice(0.0, 0.5, 0.5, 1.0))
    v = np.where(mask, wide(x), -np.inf)
    top = v.max(axis, keepdims=True, initial=-np.inf)
    e = np.exp(v - np.where(np.isinf(top), 0, top))
    total = e.sum(axis, keepdims=True)
    return Sample(lambda x, m: topi.masked_softmax(x, m, axis=axis), [x, mask], e / np.where(total == 0, 1, total),
                  str(x.dtype))


@case
def sparsemax(draw: Draw) -> Sample:
    dtype, shape = draw.dtype(), draw.shape(1, 3, 5, 0)
    x, axis = draw.array(shape, dtype), draw.axis(len(shape))

    def of_line(v):
        z = np.sort(v)[::-1]
        k = max(n for n in range(1, len(z) + 1) if 1 + n * z[n - 1] > z[:n].sum())
        return np.maximum(v - (z[:k].sum() - 1) / k, 0)
    return Sample(lambda x: topi.sparsemax(x, axis=axis), [x], np.apply_along_axis(of_line, axis, wide(x)), dtype,
                  tolerance=2)


@case
def hardmax(draw: Draw) -> Sample:
    dtype, shape = draw.dtype(*NUMBERS), draw.shape(1, 4, 5, 0)
    x, axis = np.asarray(np.round(draw.array(shape, dtype))), draw.axis(len(shape))
    y = np.zeros(x.shape)
    np.put_along_axis(y, np.expand_dims(wide(x).argmax(axis), axis), 1, axis)
    return Sample(lambda x: topi.hardmax(x, axis=axis), [x], y, dtype)


def channels(draw: Draw, least: int = 2):
    """(x, vectors of one element a channel, the shape that broadcasts them)."""
    dtype, shape = draw.dtype(), (draw.integer(1, 3), draw.integer(1, 6), *draw.shape(least - 2, 3, 4, 0))
    vectors = [draw.array((shape[1],), dtype) for _ in range(3)] + [draw.array((shape[1],), dtype, 0.2, 2)]
    return draw.array(shape, dtype), vectors, (-1, *[1] * (len(shape) - 2)), dtype


def affine(draw: Draw, weight, bias):
    """(the vectors that are given, both with the default of what is not)."""
    if draw.flag(0.3):
        return [], (1.0, 0.0)
    return [weight, bias], (wide(weight), wide(bias))


@case
def batch_norm(draw: Draw) -> Sample:
    x, (mean, weight, bias, var), form, dtype = channels(draw)
    given, (w, b) = affine(draw, weight, bias)
    w, b = np.reshape(w, form) if given else w, np.reshape(b, form) if given else b
    y = (wide(x) - wide(mean).reshape(form)) / np.sqrt(wide(var).reshape(form) + 1e-5) * w + b
    if draw.flag(0.3):
        return Sample(lambda *a: topi.batch_norm(*a, axis=-1), [np.moveaxis(x, 1, -1), mean, var, *given],
                      np.moveaxis(y, 1, -1), dtype, tolerance=2)
    return Sample(topi.batch_norm, [x, mean, var, *given], y, dtype, tolerance=2)


@case
def batch_norm_training(draw: Draw) -> Sample:
    x, (mean, weight, bias, var), form, dtype = channels(draw)
    if x.size // x.shape[1] < 2:
        x = np.concatenate([x, x + x.dtype.type(0.5)], 0)
    given, (w, b) = affine(draw, weight, bias)
    w, b = np.reshape(w, form) if given else w, np.reshape(b, form) if given else b
    axes = (0, *range(2, x.ndim))
    y = references.standardized(wide(x), axes, 1e-5, w, b)
    new = wide(mean) * 0.9 + wide(x).mean(axes) * 0.1
    return Sample(topi.batch_norm_training, [x, mean, var, *given],
                  [y, new, wide(var) * 0.9 + wide(x).var(axes, ddof=1) * 0.1], [dtype] * 3, tolerance=4)


def last_axes(draw: Draw):
    dtype, shape = draw.dtype(), draw.shape(1, 4, 5, 0)
    axes = draw.integer(1, len(shape))
    return draw.array(shape, dtype), axes, [draw.array(shape[-axes:], dtype) for _ in range(2)], dtype


@case
def layer_norm(draw: Draw) -> Sample:
    x, axes, (weight, bias), dtype = last_axes(draw)
    given, (w, b) = affine(draw, weight, bias)
    y = references.standardized(wide(x), tuple(range(-axes, 0)), 1e-3, w, b)
    return Sample(lambda *a: topi.layer_norm(*a, axes=axes, eps=1e-3), [x, *given], y, dtype, tolerance=3)


@case
def rms_norm(draw: Draw) -> Sample:
    x, axes, (weight, _), dtype = last_axes(draw)
    last = tuple(range(-axes, 0))
    y = wide(x) / np.sqrt((wide(x) ** 2).mean(last, keepdims=True) + 1e-6) * wide(weight)
    return Sample(lambda *a: topi.rms_norm(*a, axes=axes), [x, weight], y, dtype, tolerance=2)


@case
def group_norm(draw: Draw) -> Sample:
    dtype, groups, per = draw.dtype(), draw.integer(1, 3), draw.integer(1, 3)
    x = draw.array((draw.extent(3), groups * per, *draw.shape(0, 3, 4, 0)), dtype)
    weight, bias = (draw.array((groups * per,), dtype) for _ in range(2))
    form = (-1, *[1] * (x.ndim - 2))
    split = wide(x).reshape(x.shape[0], groups, per, *x.shape[2:])
    y = references.standardized(split, tuple(range(2, split.ndim)), 1e-3).reshape(x.shape)
    return Sample(lambda *a: topi.group_norm(*a, groups=groups, eps=1e-3), [x, weight, bias],
                  y * wide(weight).reshape(form) + wide(bias).reshape(form), dtype,
                  [(0, *range(2, x.ndim)), (), ()], tolerance=3)


@case
def instance_norm(draw: Draw) -> Sample:
    x, (_, weight, bias, _), form, dtype = channels(draw, 3)
    y = references.standardized(wide(x), tuple(range(2, x.ndim)), 1e-3, wide(weight).reshape(form),
                                wide(bias).reshape(form))
    return Sample(lambda *a: topi.instance_norm(*a, eps=1e-3), [x, weight, bias], y, dtype, tolerance=3)


@case
def normalize(draw: Draw) -> Sample:
    x, axis = rows(draw)
    p = draw.choice(1.0, 2.0, 3.0)
    size = (np.abs(wide(x)) ** p).sum(axis, keepdims=True) ** (1 / p)
    return Sample(lambda x: topi.normalize(x, p=p, axis=axis), [x], wide(x) / np.maximum(size, 1e-12), str(x.dtype))


@case
def mean_variance_norm(draw: Draw) -> Sample:
    x = draw.array((draw.integer(1, 3), draw.extent(3), draw.integer(2, 4), draw.integer(2, 4)), draw.dtype())
    axis = draw.choice((0, 2, 3), (-1, -2), 3)
    v = wide(x)
    y = (v - v.mean(axis, keepdims=True)) / (v.std(axis, keepdims=True) + 1e-9)
    return Sample(lambda x: topi.mean_variance_norm(x, axis=axis), [x], y, str(x.dtype), tolerance=4)


@case
def weight_norm(draw: Draw) -> Sample:
    shape, dtype = draw.shape(1, 4, 5, 0), draw.dtype()
    axis, x = draw.axis(len(shape)), draw.array(shape, dtype)
    others = tuple(n for n in range(x.ndim) if n != axis % x.ndim)
    scale = draw.array([1 if n in others else e for n, e in enumerate(shape)], dtype)
    y = wide(x) * wide(scale) / np.sqrt((wide(x) ** 2).sum(others, keepdims=True))
    return Sample(lambda *a: topi.weight_norm(*a, axis=axis), [x, scale], y, dtype, tolerance=2)


@case
def local_response_norm(draw: Draw) -> Sample:
    dtype, size = draw.dtype(), draw.integer(1, 5)
    x = draw.array((draw.extent(2), draw.extent(6), *draw.shape(0, 2, 4)), dtype)
    c, total = x.shape[1], np.zeros(x.shape)
    for n in range(c):
        low = max(n - size // 2, 0)
        total[:, n] = (wide(x)[:, low:max(n - size // 2 + size, 0)] ** 2).sum(1)
    y = wide(x) / (2.0 + 0.5 / size * total) ** 0.75
    return Sample(lambda x: topi.local_response_norm(x, size=size, alpha=0.5, k=2.0), [x], y, dtype)
