"""What operators of windows give, as loops over windows in NumPy; `against_torch` holds them to PyTorch."""
from __future__ import annotations

import itertools

import numpy as np


def tuples(value, count):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def pad_pairs(padding, count):
    return tuple(tuples(p, 2) for p in tuples(padding, count))


def conv(x, w, stride=1, padding=0, dilation=1, groups=1):
    """x: [b, c, *spatial], w: [f, c / groups, *kernel]."""
    count = x.ndim - 2
    stride, dilation = tuples(stride, count), tuples(dilation, count)
    data = np.pad(x, ((0, 0), (0, 0), *pad_pairs(padding, count)))
    out = [(n - (k - 1) * d - 1) // s + 1 for n, k, s, d in zip(data.shape[2:], w.shape[2:], stride, dilation)]
    y = np.zeros((x.shape[0], w.shape[0], *out), np.result_type(x, w))
    per, depth = w.shape[0] // groups, w.shape[1]
    for f in range(w.shape[0]):
        part = data[:, f // per * depth:(f // per + 1) * depth]
        for k in itertools.product(*map(range, w.shape[2:])):
            at = tuple(slice(a * d, a * d + (o - 1) * s + 1, s) for a, d, o, s in zip(k, dilation, out, stride))
            if all(out):
                y[:, f] += np.einsum("bc...,c->b...", part[(slice(None), slice(None), *at)], w[(f, slice(None), *k)])
    return y


def conv_transpose(x, w, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """x: [b, c, *spatial], w: [c, f / groups, *kernel]."""
    count = x.ndim - 2
    stride, dilation, extra = (tuples(v, count) for v in (stride, dilation, output_padding))
    padding = pad_pairs(padding, count)
    full = [(n - 1) * s + d * (k - 1) + 1 + e
            for n, s, d, k, e in zip(x.shape[2:], stride, dilation, w.shape[2:], extra)]
    y = np.zeros((x.shape[0], w.shape[1] * groups, *full))
    per, depth = w.shape[1], x.shape[1] // groups
    for c in range(x.shape[1]):
        g = c // depth
        for i in itertools.product(*map(range, x.shape[2:])):
            for k in itertools.product(*map(range, w.shape[2:])):
                o = tuple(a * s + b * d for a, s, b, d in zip(i, stride, k, dilation))
                y[(slice(None), slice(g * per, (g + 1) * per), *o)] += np.outer(x[(slice(None), c, *i)],
                                                                               w[(c, slice(None), *k)])
    return y[(slice(None), slice(None), *(slice(p, n - q) for (p, q), n in zip(padding, full)))]


def bilinear(image, y, x):
    """image: [h, w] at a place, 0 outside."""
    h, w = image.shape
    y0, x0 = int(np.floor(y)), int(np.floor(x))
    total = 0.0
    for i, j in itertools.product((0, 1), (0, 1)):
        if 0 <= y0 + i < h and 0 <= x0 + j < w:
            total += image[y0 + i, x0 + j] * (1 - abs(y - y0 - i)) * (1 - abs(x - x0 - j))
    return total


def deform_conv2d(x, offset, w, mask=None, stride=1, padding=0, dilation=1):
    stride, padding, dilation = (tuples(v, 2) for v in (stride, padding, dilation))
    kh, kw = w.shape[2:]
    parts, groups = offset.shape[1] // (2 * kh * kw), x.shape[1] // w.shape[1]
    oh, ow = offset.shape[2:]
    y = np.zeros((x.shape[0], w.shape[0], oh, ow))
    for b, f, i, j, c, r, s in itertools.product(*map(range, (*y.shape, w.shape[1], kh, kw))):
        channel = f // (w.shape[0] // groups) * w.shape[1] + c
        tap = channel // (x.shape[1] // parts) * kh * kw + r * kw + s
        value = bilinear(x[b, channel], i * stride[0] - padding[0] + r * dilation[0] + offset[b, 2 * tap, i, j],
                         j * stride[1] - padding[1] + s * dilation[1] + offset[b, 2 * tap + 1, i, j])
        y[b, f, i, j] += value * w[f, c, r, s] * (1 if mask is None else mask[b, tap, i, j])
    return y


def window_slices(n, kernel, stride, pads, dilation, ceil_mode):
    """(the indices of the elements of each window along one axis), as PyTorch counts windows."""
    span, (before, after) = (kernel - 1) * dilation + 1, pads
    room = n + before + after - span
    count = (-(-room // stride) if ceil_mode else room // stride) + 1
    if ceil_mode and (count - 1) * stride >= n + before:
        count -= 1
    return [[o * stride + k * dilation - before for k in range(kernel)] for o in range(count)]


def pooled(x, kernel, stride, padding, dilation, ceil_mode, combine):
    """combine(values, places, counts) of the elements of each window that lie in x; counts: of x and its padding."""
    count = x.ndim - 2
    pads = pad_pairs(padding, count)
    axes = [window_slices(n, k, s, p, d, ceil_mode) for n, k, s, p, d in zip(
        x.shape[2:], tuples(kernel, count), tuples(stride, count), pads, tuples(dilation, count))]
    out = np.zeros((*x.shape[:2], *map(len, axes)), object)
    for b, c, *o in itertools.product(*map(range, out.shape)):
        at = [axes[n][v] for n, v in enumerate(o)]
        places = [p for p in itertools.product(*at) if all(0 <= v < n for v, n in zip(p, x.shape[2:]))]
        inside = [[v for v in a if -p[0] <= v < n + p[1]] for a, n, p in zip(at, x.shape[2:], pads)]
        out[(b, c, *o)] = combine([x[(b, c, *p)] for p in places],
                                  [int(np.ravel_multi_index(p, x.shape[2:])) for p in places],
                                  np.prod([len(v) for v in inside]))
    return out


def adaptive(x, size, combine):
    out = np.zeros((*x.shape[:2], *size), object)
    for b, c, *o in itertools.product(*map(range, out.shape)):
        at = [range(v * n // s, -(-(v + 1) * n // s)) for v, n, s in zip(o, x.shape[2:], size)]
        places = list(itertools.product(*at))
        out[(b, c, *o)] = combine([x[(b, c, *p)] for p in places],
                                  [int(np.ravel_multi_index(p, x.shape[2:])) for p in places], len(places))
    return out


def standardized(x, axes, eps, weight=1.0, bias=0.0):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps) * weight + bias


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis, keepdims=True)
