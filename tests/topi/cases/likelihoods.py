"""Samples of more losses; the references are PyTorch's formulas in float64."""
from __future__ import annotations

import itertools

import numpy as np

from tests.topi.agreement import Draw, Sample, case, wide
from tests.topi.cases.losses import finished, reduced, two
from tilewright import topi


def signs(draw: Draw, shape, dtype):
    return (draw.rng.integers(0, 2, shape) * 2 - 1).astype(draw.array((), dtype).dtype)


@case
def gaussian_nll_loss(draw: Draw) -> Sample:
    x, t, dtype = two(draw)
    v, full = draw.array(draw.broadcastable(x.shape), dtype, 0, 2), draw.flag()
    w = np.maximum(wide(v), 0.25)
    y = (np.log(w) + (wide(x) - wide(t)) ** 2 / w) / 2 + full * np.log(2 * np.pi) / 2
    return finished(topi.gaussian_nll_loss, [x, t, v], y, draw, dtype, full=full, eps=0.25)


@case
def poisson_nll_loss(draw: Draw) -> Sample:
    x, t, dtype = two(draw, 0, 4)
    logs, full = draw.flag(), draw.flag()
    x, a = (x, wide(x)) if logs else (np.abs(x), np.abs(wide(x)))
    y = np.exp(a) - wide(t) * a if logs else a - wide(t) * np.log(a + 0.1)
    u = np.maximum(wide(t), 1)
    y = y + np.where(wide(t) > 1, u * np.log(u) - u + np.log(2 * np.pi * u) / 2, 0) * full
    return finished(topi.poisson_nll_loss, [x, t], y, draw, dtype, log_input=logs, full=full, eps=0.1)


@case
def soft_margin_loss(draw: Draw) -> Sample:
    shape, dtype = draw.shape(0, 3), draw.dtype()
    x, t = draw.array(shape, dtype, -30, 30), signs(draw, shape, dtype)
    return finished(topi.soft_margin_loss, [x, t], np.logaddexp(0, -wide(x) * wide(t)), draw, dtype)


@case
def margin_ranking_loss(draw: Draw) -> Sample:
    a, b, dtype = two(draw)
    t, margin = signs(draw, a.shape, dtype), draw.choice(0.0, 0.5)
    return finished(topi.margin_ranking_loss, [a, b, t], np.maximum(margin - wide(t) * (wide(a) - wide(b)), 0), draw,
                    dtype, margin=margin)


@case
def sigmoid_focal_loss(draw: Draw) -> Sample:
    x, t, dtype = two(draw, 0, 1)
    t = np.asarray(np.round(t))
    alpha, gamma = draw.choice(0.25, -1.0), draw.choice(2.0, 1.5)
    p = 1 / (1 + np.exp(-wide(x)))
    q = p * wide(t) + (1 - p) * (1 - wide(t))
    y = -np.log(q) * (1 - q) ** gamma * (1 if alpha < 0 else alpha * wide(t) + (1 - alpha) * (1 - wide(t)))
    return finished(topi.sigmoid_focal_loss, [x, t], y, draw, dtype, alpha=alpha, gamma=gamma)


def scores(draw: Draw):
    """(x, how many classes, its leading extents, the type)"""
    dtype, c = draw.dtype(), draw.integer(1, 5)
    lead = (draw.extent(4),) if draw.flag(0.8) else ()
    return draw.array((*lead, c), dtype), c, lead, dtype


@case
def multi_margin_loss(draw: Draw) -> Sample:
    x, c, lead, dtype = scores(draw)
    t = np.asarray(draw.rng.integers(0, c, lead)).astype(draw.choice("int64", "int32"))
    w, p, margin = [draw.array((c,), dtype, 0.1, 2)] if draw.flag() else [], draw.choice(1, 2), draw.choice(1.0, 0.4)
    own = np.take_along_axis(wide(x), t[..., None].astype("int64"), -1)
    y = np.maximum(margin - own + wide(x), 0) ** p * (wide(w[0])[t][..., None] if w else 1)
    y = np.where(np.arange(c) == t[..., None], 0, y).sum(-1) / c
    symbolic = [tuple(range(len(lead))), tuple(range(len(lead))), *[()] * len(w)]
    return finished(topi.multi_margin_loss, [x, t, *w], y, draw, dtype, symbolic=symbolic, p=p, margin=margin)


@case
def multilabel_margin_loss(draw: Draw) -> Sample:
    x, c, lead, dtype = scores(draw)
    t, y = np.full(x.shape, -1, draw.choice("int64", "int32")), np.zeros(lead)
    for at in np.ndindex(*lead):
        labels = [int(v) for v in draw.rng.permutation(c)[:draw.integer(0, c)]]
        t[at][:len(labels)] = labels
        if len(labels) + 1 < c:
            t[at][len(labels) + 1:] = draw.integer(0, c - 1)                # behind the end: not read
        v = wide(x)[at]
        y[at] = sum(max(1 - v[j] + v[i], 0) for j in labels for i in range(c) if i not in labels) / c
    return finished(topi.multilabel_margin_loss, [x, t], y, draw, dtype, symbolic=[tuple(range(len(lead)))] * 2)


@case
def multilabel_soft_margin_loss(draw: Draw) -> Sample:
    dtype, shape = draw.dtype(), (*draw.shape(0, 2), draw.integer(1, 5))
    x, t = draw.array(shape, dtype, -9, 9), draw.array(shape, dtype, 0, 1)
    w = [draw.array(draw.broadcastable(shape), dtype, 0.1, 2)] if draw.flag() else []
    y = wide(t) * np.logaddexp(0, -wide(x)) + (1 - wide(t)) * np.logaddexp(0, wide(x))
    return finished(topi.multilabel_soft_margin_loss, [x, t, *w], (y * (wide(w[0]) if w else 1)).mean(-1), draw, dtype)


def likelihood(p, labels, blank):
    """By all paths."""
    total = 0.0
    for path in itertools.product(range(p.shape[1]), repeat=len(p)):
        short = [k for n, k in enumerate(path) if k != blank and (n == 0 or path[n - 1] != k)]
        if short == labels:
            total += np.prod([p[n, k] for n, k in enumerate(path)])
    return total


@case
def ctc_loss(draw: Draw) -> Sample:
    steps, b, classes, s = draw.integer(1, 5), draw.extent(3), draw.integer(2, 3), draw.integer(1, 3)
    dtype = draw.dtype("float32", "float64", "float16")
    x = draw.array((steps, b, classes), dtype)
    x = np.asarray(wide(x) - np.log(np.exp(wide(x)).sum(-1, keepdims=True))).astype(x.dtype)
    blank, zero, kind = draw.integer(0, classes - 1), draw.flag(), draw.choice("int64", "int32")
    others = [k for k in range(classes) if k != blank]
    t = np.array(others)[draw.rng.integers(0, len(others), (b, s))].reshape(b, s).astype(kind)
    n, m = draw.rng.integers(0, steps + 1, b).astype(kind), draw.rng.integers(0, s + 1, b).astype(kind)
    with np.errstate(divide="ignore"):
        y = np.array([-np.log(likelihood(np.exp(wide(x)[:n[k], k]), list(t[k, :m[k]]), blank)) for k in range(b)])
    y = np.where(np.isinf(y), 0.0, y) if zero else y
    how = draw.choice("none", "mean", "sum")
    terms = y / np.maximum(m, 1) if how == "mean" else y
    return Sample(lambda *a: topi.ctc_loss(*a, blank=blank, zero_infinity=zero, reduction=how), [x, t, n, m],
                  reduced(terms, how), dtype, [(0, 1), (0, 1), (0,), (0,)], tolerance=8)
