"""Samples of other shapes and orders, and of tensors that read no other."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import FLOATS, NUMBERS, Draw, Sample, case, wide
from tilewright import topi

ALL = (*NUMBERS, "bool")


def any_array(draw: Draw, least=0, most=4, zero=0.04):
    return draw.array(draw.shape(least, most, 5, zero), draw.dtype(*ALL))


def refactored(draw: Draw, total: int):
    """A shape of so many elements."""
    out = []
    while total > 1 and len(out) < 4:
        factors = [f for f in range(1, total + 1) if total % f == 0]
        out.append(int(draw.choice(*factors)))
        total //= out[-1]
    out.insert(draw.integer(0, len(out)), total)
    return out


@case
def reshape(draw: Draw) -> Sample:
    x = any_array(draw)
    shape = [0] if x.size == 0 else refactored(draw, x.size)
    if x.ndim > 1 and draw.flag(0.3) and x.size:              # one that regroups
        shape = [*x.shape[:1], -1] if draw.flag() else [-1, *x.shape[1:]]
    elif draw.flag(0.3) and x.size:
        shape[draw.integer(0, len(shape) - 1)] = -1
    symbolic = [(0,)] if shape[:1] == [-1] and len(shape) == x.ndim and shape[1:] == list(x.shape[1:]) else None
    return Sample(lambda x: topi.reshape(x, shape), [x], x.reshape(shape), symbolic=symbolic)


@case
def flatten(draw: Draw) -> Sample:
    x = any_array(draw)
    if x.ndim == 0:
        return Sample(topi.flatten, [x], x.reshape(1))
    a = draw.integer(0, x.ndim - 1)
    b = draw.integer(a, x.ndim - 1)
    y = x.reshape(*x.shape[:a], int(np.prod(x.shape[a:b + 1])), *x.shape[b + 1:])
    return Sample(lambda x: topi.flatten(x, start=a, end=b - x.ndim), [x], y)


@case
def squeeze(draw: Draw) -> Sample:
    x = draw.array([draw.choice(1, 1, 3, 5) for _ in range(draw.integer(0, 4))], draw.dtype(*ALL))
    ones = [a for a in range(x.ndim) if x.shape[a] == 1]
    axis = None if draw.flag() else tuple(a - draw.choice(0, x.ndim) for a in ones[:draw.integer(0, len(ones))])
    return Sample(lambda x: topi.squeeze(x, axis=axis), [x], np.squeeze(x, axis))


@case
def expand_dims(draw: Draw) -> Sample:
    x = any_array(draw, most=3)
    axis = draw.integer(-x.ndim - 1, x.ndim) if draw.flag() else (0, x.ndim + 1)
    return Sample(lambda x: topi.expand_dims(x, axis=axis), [x], np.expand_dims(x, axis))


@case
def transpose(draw: Draw) -> Sample:
    x = any_array(draw)
    axes = None if draw.flag(0.3) else [int(a) - draw.choice(0, x.ndim) for a in draw.rng.permutation(x.ndim)]
    return Sample(lambda x: topi.transpose(x, axes), [x], np.transpose(x, axes))


@case
def swapaxes(draw: Draw) -> Sample:
    x = any_array(draw, 1)
    a, b = draw.axis(x.ndim), draw.axis(x.ndim)
    return Sample(lambda x: topi.swapaxes(x, axis1=a, axis2=b), [x], np.swapaxes(x, a, b))


@case
def moveaxis(draw: Draw) -> Sample:
    x = any_array(draw, 1)
    count = draw.integer(1, x.ndim)
    a, b = ([int(v) for v in draw.rng.permutation(x.ndim)[:count]] for _ in "ab")
    return Sample(lambda x: topi.moveaxis(x, source=a, destination=b), [x], np.moveaxis(x, a, b))


@case
def broadcast_to(draw: Draw) -> Sample:
    shape = draw.shape()
    x = draw.array(draw.broadcastable(shape), draw.dtype(*ALL))
    return Sample(lambda x: topi.broadcast_to(x, shape), [x], np.broadcast_to(x, shape), symbolic=None)


@case
def concatenate(draw: Draw) -> Sample:
    shape, dtype = draw.shape(1, 4, 4), draw.dtype(*ALL)
    axis = draw.axis(len(shape))
    xs = []
    for _ in range(draw.integer(1, 4)):
        own = list(shape)
        own[axis] = draw.extent(4, 0.1)
        xs.append(draw.array(own, dtype))
    return Sample(lambda *xs: topi.concatenate(xs, axis=axis), xs, np.concatenate(xs, axis))


@case
def stack(draw: Draw) -> Sample:
    shape, dtype = draw.shape(0, 3), draw.dtype(*ALL)
    xs = [draw.array(shape, dtype) for _ in range(draw.integer(1, 4))]
    axis = draw.integer(-len(shape) - 1, len(shape))
    return Sample(lambda *xs: topi.stack(xs, axis=axis), xs, np.stack(xs, axis))


@case
def split(draw: Draw) -> Sample:
    shape, dtype = list(draw.shape(1, 3, 4)), draw.dtype(*ALL)
    axis, parts = draw.axis(len(shape)), draw.integer(1, 4)
    others = tuple(a for a in range(len(shape)) if a != axis % len(shape))
    if draw.flag():
        shape[axis] = parts * draw.integer(0, 3)
        x = draw.array(shape, dtype)
        return Sample(lambda x: topi.split(x, parts, axis=axis), [x], np.split(x, parts, axis), symbolic=[others])
    sizes = [draw.extent(3, 0.2) for _ in range(parts)]
    shape[axis] = sum(sizes)
    x = draw.array(shape, dtype)
    return Sample(lambda x: topi.split(x, sizes, axis=axis), [x], np.split(x, np.cumsum(sizes)[:-1], axis),
                  symbolic=[others])


@case
def unstack(draw: Draw) -> Sample:
    x = any_array(draw, 1, 3, 0)
    axis = draw.axis(x.ndim)
    y = [np.take(x, n, axis) for n in range(x.shape[axis])]
    return Sample(lambda x: topi.unstack(x, axis=axis), [x], y,
                  symbolic=[tuple(a for a in range(x.ndim) if a != axis % x.ndim)])


@case
def channel_shuffle(draw: Draw) -> Sample:
    groups, per = draw.integer(1, 3), draw.extent(3)
    shape = list(draw.shape(1, 4, 4))
    axis = draw.axis(len(shape))
    at = axis % len(shape)
    shape[axis] = groups * per
    x = draw.array(shape, draw.dtype(*ALL))
    y = np.swapaxes(x.reshape(*shape[:at], groups, per, *shape[at + 1:]), at, at + 1).reshape(shape)
    return Sample(lambda x: topi.channel_shuffle(x, groups=groups, axis=axis), [x], y,
                  symbolic=[[k for k in range(len(shape)) if k != at]])


def bounds(draw: Draw, x):
    """(attributes of a slice, the slice as NumPy has it)"""
    axes = sorted(int(a) for a in draw.rng.permutation(x.ndim)[:draw.integer(1, x.ndim)])
    def bound(n):
        return None if draw.flag(0.2) else draw.integer(-n - 2, n + 2)
    begin, end = ([bound(x.shape[a]) for a in axes] for _ in "be")
    steps = [draw.choice(1, 2, 3, -1, -2, -3) for _ in axes]
    at = [slice(None)] * x.ndim
    for a, b, e, s in zip(axes, begin, end, steps):
        at[a] = slice(b, e, s)
    return {"begin": begin, "end": end, "strides": steps, "axes": axes}, tuple(at)


@case
def strided_slice(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3, 8), draw.dtype(*ALL))
    attrs, at = bounds(draw, x)
    return Sample(lambda x: topi.strided_slice(x, **attrs), [x], x[at])


@case
def as_strided(draw: Draw) -> Sample:
    x = draw.array(draw.shape(0, 3, 6), draw.dtype(*ALL))
    shape, steps, offset = draw.shape(0, 3, 4), [], 0
    left = x.size - 1
    if x.size:
        offset = draw.integer(0, left)
        left -= offset
    for n in shape:
        steps.append(draw.integer(0, left // (n - 1)) if n > 1 and x.size else draw.integer(0, 3))
        left -= (n - 1) * steps[-1] if n > 1 else 0
    if not x.size:
        shape = (*shape, 0)
        steps.append(1)
    y = np.lib.stride_tricks.as_strided(x.ravel()[offset:], shape, [s * x.itemsize for s in steps])
    return Sample(lambda x: topi.as_strided(x, shape, strides=steps, offset=offset), [x], y.copy(), symbolic=None)


@case
def diff(draw: Draw) -> Sample:
    x, n = draw.array(draw.shape(1, 3, 6), draw.dtype(*ALL)), draw.integer(0, 2)
    axis = draw.axis(x.ndim)
    n = min(n, x.shape[axis])
    return Sample(lambda x: topi.diff(x, axis=axis, n=n), [x], np.diff(wide(x), n, axis), str(x.dtype), tolerance=4)


@case
def slice_scatter(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3, 8), draw.dtype(*ALL))
    attrs, at = bounds(draw, x)
    y, updates = x.copy(), draw.array(x[at].shape, str(x.dtype))
    y[at] = updates
    return Sample(lambda *a: topi.slice_scatter(*a, **attrs), [x, updates], y, symbolic=None)


@case
def center_crop_pad(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3, 6), draw.dtype(*ALL))
    axes = [int(a) - x.ndim * draw.flag() for a in draw.rng.permutation(x.ndim)[:draw.integer(1, x.ndim)]]
    sizes = [draw.integer(0, 8) for _ in axes]
    y = x
    for a, n in zip(axes, sizes):
        more = n - y.shape[a]
        half = abs(more) // 2
        if more >= 0:
            y = np.pad(y, [(half, more - half) if k == a % x.ndim else (0, 0) for k in range(x.ndim)])
        else:
            y = np.take(y, range(half, half + n), a)
    return Sample(lambda x: topi.center_crop_pad(x, sizes, axes=axes), [x], y, symbolic=None)


@case
def flip(draw: Draw) -> Sample:
    x = any_array(draw)
    axis = draw.axes(x.ndim)
    return Sample(lambda x: topi.flip(x, axis=axis), [x], np.flip(x, axis))


@case
def roll(draw: Draw) -> Sample:
    x = any_array(draw)
    if draw.flag(0.3):
        shift = draw.integer(-9, 9)
        return Sample(lambda x: topi.roll(x, shift), [x], np.roll(x, shift), symbolic=None)
    axes = tuple(int(a) for a in draw.rng.permutation(x.ndim)[:draw.integer(0, x.ndim)])
    shift = tuple(draw.integer(-9, 9) for _ in axes)
    return Sample(lambda x: topi.roll(x, shift, axis=axes), [x], np.roll(x, shift, axes) if axes else x)


@case
def pad(draw: Draw) -> Sample:
    mode = draw.choice("constant", "edge", "reflect", "symmetric", "circular")
    x = any_array(draw, 1, 3, 0.04 if mode == "constant" else 0)
    widths = []
    for n in x.shape:
        most = {"constant": 3, "edge": 3, "reflect": n - 1, "symmetric": n, "circular": 4}[mode]
        widths.append((draw.integer(0, most), draw.integer(0, most)))
    more = {"constant_values": 1} if mode == "constant" else {}
    y = np.pad(x, widths, {"circular": "wrap"}.get(mode, mode), **more)
    return Sample(lambda x: topi.pad(x, widths, mode=mode, value=1), [x], y)


@case
def tile(draw: Draw) -> Sample:
    x = any_array(draw, 0, 3)
    times = tuple(draw.integer(0, 3) if draw.flag(0.1) else draw.integer(1, 3) for _ in range(draw.integer(1, 4)))
    return Sample(lambda x: topi.tile(x, times), [x], np.tile(x, times))


@case
def repeat(draw: Draw) -> Sample:
    x = any_array(draw)
    times, axis = draw.integer(0, 3), None if x.ndim == 0 or draw.flag(0.3) else draw.axis(x.ndim)
    return Sample(lambda x: topi.repeat(x, times, axis=axis), [x], np.repeat(x, times, axis))


def blocks(draw: Draw):
    return draw.integer(1, 3), draw.extent(2), draw.extent(3), draw.extent(3, 0), draw.extent(3, 0), draw.dtype()


def to_space(x, s, mode):
    b, k, h, w = x.shape
    c = k // (s * s)
    if mode == "DCR":
        return x.reshape(b, s, s, c, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(b, c, h * s, w * s)
    return x.reshape(b, c, s, s, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(b, c, h * s, w * s)


def depth(draw: Draw, call, mode) -> Sample:
    s, b, c, h, w, dtype = blocks(draw)
    x = draw.array((b, s * s * c, h, w), dtype)
    return Sample(lambda x: call(x, s), [x], to_space(x, s, mode), symbolic=[(0, 2, 3)])


def space(draw: Draw, call, mode) -> Sample:
    s, b, c, h, w, dtype = blocks(draw)
    y = draw.array((b, s * s * c, h, w), dtype)
    return Sample(lambda x: call(x, s), [to_space(y, s, mode)], y, symbolic=[(0, 1)])


@case
def depth_to_space(draw: Draw) -> Sample:
    mode = draw.choice("DCR", "CRD")
    return depth(draw, lambda x, s: topi.depth_to_space(x, block=s, mode=mode), mode)


@case
def space_to_depth(draw: Draw) -> Sample:
    mode = draw.choice("DCR", "CRD")
    return space(draw, lambda x, s: topi.space_to_depth(x, block=s, mode=mode), mode)


@case
def pixel_shuffle(draw: Draw) -> Sample:
    return depth(draw, lambda x, s: topi.pixel_shuffle(x, factor=s), "CRD")


@case
def pixel_unshuffle(draw: Draw) -> Sample:
    return space(draw, lambda x, s: topi.pixel_unshuffle(x, factor=s), "CRD")


@case
def tril(draw: Draw) -> Sample:
    x, k = any_array(draw, 2), draw.integer(-3, 3)
    return Sample(lambda x: topi.tril(x, k=k), [x], np.tril(x, k))


@case
def triu(draw: Draw) -> Sample:
    x, k = any_array(draw, 2), draw.integer(-3, 3)
    return Sample(lambda x: topi.triu(x, k=k), [x], np.triu(x, k))


@case
def diagonal(draw: Draw) -> Sample:
    x, k = any_array(draw, 2), draw.integer(-3, 3)
    return Sample(lambda x: topi.diagonal(x, offset=k), [x], np.diagonal(x, k, -2, -1))


@case
def diag_embed(draw: Draw) -> Sample:
    x, k = any_array(draw, 1, 3), draw.integer(-2, 2)
    n = x.shape[-1]
    y = np.zeros((*x.shape[:-1], n + abs(k), n + abs(k)), x.dtype)
    for i in range(n):
        y[..., i + max(-k, 0), i + max(k, 0)] = x[..., i]
    return Sample(lambda x: topi.diag_embed(x, offset=k), [x], y)


@case
def meshgrid(draw: Draw) -> Sample:
    vectors = [draw.array((draw.extent(4),), draw.dtype(*ALL)) for _ in range(draw.integer(1, 3))]
    order = draw.choice("xy", "ij")
    return Sample(lambda *v: topi.meshgrid(*v, indexing=order), vectors, list(np.meshgrid(*vectors, indexing=order)))


@case
def full(draw: Draw) -> Sample:
    shape, dtype = draw.shape(), draw.dtype(*NUMBERS)
    return Sample(lambda: topi.full(shape, 3, dtype=dtype), [], np.full(shape, 3.0), dtype)


@case
def zeros(draw: Draw) -> Sample:
    shape, dtype = draw.shape(), draw.dtype(*ALL)
    return Sample(lambda: topi.zeros(shape, dtype=dtype), [], np.zeros(shape), dtype)


@case
def ones(draw: Draw) -> Sample:
    shape, dtype = draw.shape(), draw.dtype(*ALL)
    return Sample(lambda: topi.ones(shape, dtype=dtype), [], np.ones(shape), dtype)


@case
def full_like(draw: Draw) -> Sample:
    x = draw.array(draw.shape(), draw.dtype(*NUMBERS))
    return Sample(lambda x: topi.full_like(x, 2), [x], np.full_like(x, 2))


@case
def zeros_like(draw: Draw) -> Sample:
    x = any_array(draw)
    return Sample(topi.zeros_like, [x], np.zeros_like(x))


@case
def ones_like(draw: Draw) -> Sample:
    x = any_array(draw)
    return Sample(topi.ones_like, [x], np.ones_like(x))


@case
def arange(draw: Draw) -> Sample:
    if draw.flag():
        a, b, s = draw.integer(-5, 5), draw.integer(-5, 9), draw.choice(1, 2, 3, -1, -2)
        return Sample(lambda: topi.arange(a, b, s), [], np.arange(a, b, s))
    a, b, s = float(draw.integer(-5, 5)), draw.integer(-5, 9) + 0.25, draw.choice(0.5, 0.3, -1.0)
    dtype = draw.choice("float32", "float64")
    return Sample(lambda: topi.arange(a, b, s, dtype=dtype), [], np.arange(a, b, s), dtype)


@case
def linspace(draw: Draw) -> Sample:
    a, b, n, end = draw.integer(-3, 3), draw.integer(-3, 3), draw.extent(), draw.flag()
    dtype = draw.dtype(*FLOATS)
    y = np.linspace(a, b, n, endpoint=end)
    return Sample(lambda: topi.linspace(a, b, n, endpoint=end, dtype=dtype), [], y, dtype)


@case
def eye(draw: Draw) -> Sample:
    n, m, k, dtype = draw.extent(), draw.choice(None, draw.extent()), draw.integer(-2, 2), draw.dtype(*ALL)
    return Sample(lambda: topi.eye(n, m, k=k, dtype=dtype), [], np.eye(n, m, k), dtype)
