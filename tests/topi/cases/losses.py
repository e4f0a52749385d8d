"""Samples of losses; the references are PyTorch's formulas in float64."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import Draw, Sample, case, wide
from tilewright import topi

FORMS = ("none", "mean", "sum")


def reduced(terms, reduction, count=None):
    with np.errstate(all="ignore"):
        total = np.sum(terms)
        return terms if reduction == "none" else total if reduction == "sum" else np.float64(total) / (
            terms.size if count is None else count)


def finished(call, arrays, terms, draw: Draw, dtype, count=None, tolerance=4.0, symbolic="all", **attrs) -> Sample:
    how = draw.choice(*FORMS)
    return Sample(lambda *a: call(*a, reduction=how, **attrs), arrays, reduced(terms, how, count), dtype, symbolic,
                  tolerance)


def two(draw: Draw, low=-2.0, high=2.0):
    """(x, target that broadcasts to it, their type)"""
    shape, dtype = draw.shape(0, 3), draw.dtype()
    target = draw.array(draw.broadcastable(shape) if draw.flag(0.2) else shape, dtype, low, high)
    return draw.array(shape, dtype), target, dtype


@case
def mse_loss(draw: Draw) -> Sample:
    x, t, dtype = two(draw)
    return finished(topi.mse_loss, [x, t], (wide(x) - wide(t)) ** 2, draw, dtype)


@case
def l1_loss(draw: Draw) -> Sample:
    x, t, dtype = two(draw)
    return finished(topi.l1_loss, [x, t], np.abs(wide(x) - wide(t)), draw, dtype)


@case
def smooth_l1_loss(draw: Draw) -> Sample:
    x, t, dtype = two(draw)
    beta = draw.choice(0.0, 0.5, 1.0, 2.0)
    d = np.abs(wide(x) - wide(t))
    y = np.where(d < beta, d * d / (2 * beta or 1), d - beta / 2)
    return finished(topi.smooth_l1_loss, [x, t], y, draw, dtype, beta=beta)


@case
def huber_loss(draw: Draw) -> Sample:
    x, t, dtype = two(draw)
    delta = draw.choice(0.5, 1.0, 2.0)
    d = np.abs(wide(x) - wide(t))
    return finished(topi.huber_loss, [x, t], np.where(d <= delta, d * d / 2, delta * (d - delta / 2)), draw, dtype,
                    delta=delta)


def weights(draw: Draw, shape, dtype):
    return [draw.array(draw.broadcastable(shape), dtype, 0.1, 2)] if draw.flag() else []


@case
def binary_cross_entropy(draw: Draw) -> Sample:
    _, t, dtype = two(draw, 0, 1)
    p = draw.array(t.shape, dtype, 0.05, 0.95)
    if draw.flag(0.2):
        p = np.asarray(np.round(p)).astype(p.dtype)
    w = weights(draw, t.shape, dtype)
    with np.errstate(all="ignore"):
        a, b = np.maximum(np.log(wide(p)), -100), np.maximum(np.log1p(-wide(p)), -100)
    y = -(wide(t) * a + (1 - wide(t)) * b) * (wide(w[0]) if w else 1)
    return finished(topi.binary_cross_entropy, [p, t, *w], y, draw, dtype)


@case
def binary_cross_entropy_with_logits(draw: Draw) -> Sample:
    x, t, dtype = two(draw, 0, 1)
    x = x * x.dtype.type(draw.choice(1, 20))
    w, p = weights(draw, x.shape, dtype), weights(draw, x.shape, dtype)
    with np.errstate(all="ignore"):
        own, other = np.logaddexp(0, -wide(x)), np.logaddexp(0, wide(x))
    y = (wide(t) * own * (wide(p[0]) if p else 1) + (1 - wide(t)) * other) * (wide(w[0]) if w else 1)
    def call(x, t, *rest, **attrs):
        rest = list(rest)
        return topi.binary_cross_entropy_with_logits(x, t, rest.pop(0) if w else None, rest.pop(0) if p else None,
                                                     **attrs)
    return finished(call, [x, t, *w, *p], y, draw, dtype)


@case
def kl_div(draw: Draw) -> Sample:
    x, t, dtype = two(draw, 0, 1)
    logs = draw.flag()
    t = t if logs else np.asarray(np.where(draw.rng.random(t.shape) < 0.2, 0, t)).astype(t.dtype)
    v = wide(t)
    with np.errstate(all="ignore"):
        y = np.exp(v) * (v - wide(x)) if logs else np.where(v > 0, v * np.log(v), 0) - v * wide(x)
    if x.ndim and x.shape[0] and draw.flag(0.3):
        return Sample(lambda x, t: topi.kl_div(x, t, log_target=logs, reduction="batchmean"), [x, t],
                      y.sum() / x.shape[0], dtype, tolerance=4)
    return finished(topi.kl_div, [x, t], y, draw, dtype, log_target=logs)


def signs(draw: Draw, shape, dtype):
    return np.where(draw.rng.random(shape) < 0.5, 1, -1).astype(dtype)


@case
def hinge_embedding_loss(draw: Draw) -> Sample:
    x, _, dtype = two(draw)
    t, margin = signs(draw, x.shape, draw.choice(x.dtype, "int32", "int64")), draw.choice(1.0, 0.5)
    y = np.where(t == 1, wide(x), np.maximum(margin - wide(x), 0))
    return finished(topi.hinge_embedding_loss, [x, t], y, draw, dtype, margin=margin)


@case
def cosine_embedding_loss(draw: Draw) -> Sample:
    shape, dtype = (*([draw.extent(5)] if draw.flag(0.8) else []), draw.integer(2, 6)), draw.dtype()
    a, b = draw.array(shape, dtype), draw.array(shape, dtype)
    t, margin = signs(draw, shape[:-1], draw.choice(a.dtype, "int64")), draw.choice(0.0, 0.3)
    u, v = wide(a), wide(b)
    cos = (u * v).sum(-1) / np.sqrt(((u * u).sum(-1) + 1e-12) * ((v * v).sum(-1) + 1e-12))
    y = np.where(t == 1, 1 - cos, np.maximum(cos - margin, 0))
    return finished(topi.cosine_embedding_loss, [a, b, t], y, draw, dtype, margin=margin)


@case
def triplet_margin_loss(draw: Draw) -> Sample:
    shape, dtype = (*draw.shape(0, 2, 4), draw.integer(1, 6)), draw.dtype()
    a, p, n = (draw.array(shape, dtype) for _ in range(3))
    order, margin, swap = draw.choice(1.0, 2.0, 3.0), draw.choice(0.5, 1.0), draw.flag(0.3)
    def distance(u, v):
        return (np.abs(wide(u) - wide(v) + 1e-6) ** order).sum(-1) ** (1 / order)
    far = np.minimum(distance(a, n), distance(p, n)) if swap else distance(a, n)
    return finished(topi.triplet_margin_loss, [a, p, n], np.maximum(distance(a, p) - far + margin, 0), draw, dtype,
                    margin=margin, p=order, swap=swap)


def classes(draw: Draw):
    """(x, the axis of its classes, their number, weights or none, the type)"""
    dtype, count = draw.dtype(), draw.integer(1, 5)
    shape = (count,) if draw.flag(0.2) else (draw.extent(4), count, *draw.shape(0, 2, 3))
    weight = [draw.array((count,), dtype, 0.2, 2)] if draw.flag() else []
    return draw.array(shape, dtype, -4, 4), min(len(shape) - 1, 1), count, weight, dtype


def chosen(draw: Draw, x, axis: int, count: int):
    shape = x.shape[:axis] + x.shape[axis + 1:]
    t, ignored = draw.rng.integers(0, count, shape), draw.choice(-100, 0, 1)
    if ignored < 0:
        t = np.where(draw.rng.random(shape) < 0.2, ignored, t)
    return np.asarray(t).astype(draw.choice("int64", "int32")), ignored


def by_class(logs, axis, t, ignored, w, smoothing=0.0):
    """(terms, the sum of the weights that count)"""
    logs = np.moveaxis(logs, axis, -1)
    safe = np.where(t == ignored, 0, t)
    own = -np.take_along_axis(logs, safe[..., None], -1)[..., 0] * w[safe]
    terms = (1 - smoothing) * own - smoothing / logs.shape[-1] * (logs * w).sum(-1)
    return np.where(t == ignored, 0, terms), np.where(t == ignored, 0, w[safe]).sum()


@case
def nll_loss(draw: Draw) -> Sample:
    x, axis, count, weight, dtype = classes(draw)
    t, ignored = chosen(draw, x, axis, count)
    terms, total = by_class(wide(x), axis, t, ignored, wide(weight[0]) if weight else np.ones(count))
    return finished(topi.nll_loss, [x, t, *weight], terms, draw, dtype, total, ignore_index=ignored)


def log_softmax(x, axis):
    v = x - x.max(axis, keepdims=True, initial=-np.inf)
    return v - np.log(np.exp(v).sum(axis, keepdims=True))


@case
def cross_entropy(draw: Draw) -> Sample:
    x, axis, count, weight, dtype = classes(draw)
    smoothing, w = draw.choice(0.0, 0.0, 0.1, 1.0), wide(weight[0]) if weight else np.ones(count)
    logs = log_softmax(wide(x), axis)
    if draw.flag(0.6):
        t, ignored = chosen(draw, x, axis, count)
        terms, total = by_class(logs, axis, t, ignored, w, smoothing)
        return finished(topi.cross_entropy, [x, t, *weight], terms, draw, dtype, total, ignore_index=ignored,
                        label_smoothing=smoothing)
    t = draw.array(x.shape, dtype, 0, 1)
    shares = np.moveaxis(wide(t) * (1 - smoothing) + smoothing / count, axis, -1)
    terms = -(np.moveaxis(logs, axis, -1) * shares * w).sum(-1)
    return finished(topi.cross_entropy, [x, t, *weight], terms, draw, dtype, label_smoothing=smoothing)
