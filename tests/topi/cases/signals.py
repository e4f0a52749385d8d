"""Samples of signals; the references are NumPy's transforms in float64."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import FLOATS, Draw, Sample, case, wide
from tilewright import topi

NORMS = ("backward", "forward", "ortho")


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def drawn(draw: Draw, *more: int):
    """(x, an axis of it, a size or None): few or many elements along the axis."""
    x_shape = list(draw.shape(1, 3, 4))
    axis = draw.integer(0, len(x_shape) - 1)
    x_shape[axis] = draw.choice(1, 2, 3, 5, 8, 12, draw.integer(33, 50), 64, 37)
    size = draw.choice(None, None, draw.integer(1, 12))
    return draw.array((*x_shape, *more), draw.dtype("float32", "float32", "float64", "float16")), axis, size


@case
def fft(draw: Draw) -> Sample:
    x, axis, size = drawn(draw, 2)
    norm, inverse = draw.choice(*NORMS), draw.flag()
    z = wide(x)[..., 0] + 1j * wide(x)[..., 1]
    y = (np.fft.ifft if inverse else np.fft.fft)(z, size, axis, norm)
    given = axis - x.ndim if draw.flag() else axis
    return Sample(lambda x: topi.fft(x, axis=given, size=size, inverse=inverse, norm=norm), [x], pairs(y),
                  str(x.dtype), [tuple(range(x.ndim - 1))], tolerance=4)


@case
def rfft(draw: Draw) -> Sample:
    x, axis, size = drawn(draw)
    norm, given = draw.choice(*NORMS), axis - x.ndim if draw.flag() else axis
    return Sample(lambda x: topi.rfft(x, axis=given, size=size, norm=norm), [x],
                  pairs(np.fft.rfft(wide(x), size, axis, norm)), str(x.dtype), tolerance=4)


@case
def irfft(draw: Draw) -> Sample:
    x, axis, _ = drawn(draw, 2)
    norm, size = draw.choice(*NORMS), draw.integer(1, 2 * x.shape[axis] + 1)
    z = wide(x)[..., 0] + 1j * wide(x)[..., 1]
    given = axis - x.ndim if draw.flag() else axis
    return Sample(lambda x: topi.irfft(x, axis=given, size=size, norm=norm), [x], np.fft.irfft(z, size, axis, norm),
                  str(x.dtype), [tuple(range(x.ndim - 1))], tolerance=4)


def frames(draw: Draw):
    """(length, step, window or None)"""
    length, dtype = draw.choice(1, 2, 3, 6, 8, 36), draw.dtype("float32", "float32", "float64", "float16")
    step = draw.integer(1, length)
    return length, step, draw.array((length,), dtype, 0.2, 1.0) if draw.flag() else None, dtype


@case
def stft(draw: Draw) -> Sample:
    length, step, window, dtype = frames(draw)
    x = draw.array((*draw.shape(0, 2, 3), length + draw.integer(0, 2 * length)), dtype)
    onesided, count = draw.flag(0.7), (x.shape[-1] - length) // step + 1
    cut = np.stack([wide(x)[..., f * step:f * step + length] for f in range(count)], -2)
    y = (np.fft.rfft if onesided else np.fft.fft)(cut * (1 if window is None else wide(window)))
    return Sample(lambda *a: topi.stft(*a, length=length, step=step, onesided=onesided),
                  [x] if window is None else [x, window], pairs(y), dtype, [tuple(range(x.ndim)), ()], tolerance=4)


@case
def istft(draw: Draw) -> Sample:
    length, step, window, dtype = frames(draw)
    x = draw.array((*draw.shape(0, 2, 3), draw.integer(1, 5), length // 2 + 1, 2), dtype)
    parts = np.fft.irfft(wide(x)[..., 0] + 1j * wide(x)[..., 1], length)
    w, count = np.ones(length) if window is None else wide(window), x.shape[-3]
    y, squares = (np.zeros((*lead, (count - 1) * step + length)) for lead in (x.shape[:-3], ()))
    for f in range(count):
        y[..., f * step:f * step + length] += parts[..., f, :] * w
        squares[f * step:f * step + length] += w * w
    return Sample(lambda *a: topi.istft(*a, length=length, step=step), [x] if window is None else [x, window],
                  y / squares, dtype, [tuple(range(x.ndim - 2)), ()], tolerance=8)


def window(name, f):
    def make(draw: Draw) -> Sample:
        size, periodic, dtype = draw.extent(20), draw.flag(), draw.dtype(*FLOATS)
        y = np.ones(1) if size == 1 else f(np.arange(size) / max(size if periodic else size - 1, 1) * 2 * np.pi)
        return Sample(lambda: getattr(topi, name)(size, periodic=periodic, dtype=dtype), [], y, dtype)
    make.__name__ = name
    case(make)


window("hann_window", lambda t: 0.5 - 0.5 * np.cos(t))
window("hamming_window", lambda t: 0.54 - 0.46 * np.cos(t))
window("blackman_window", lambda t: 0.42 - 0.5 * np.cos(t) + 0.08 * np.cos(2 * t))


@case
def mel_weights(draw: Draw) -> Sample:
    bins, length, rate, dtype = draw.integer(1, 8), draw.choice(16, 64, 100), draw.choice(8192, 16000), draw.dtype()
    low, high = draw.choice(0, 60), draw.choice(rate / 4, rate / 2)
    ends = [2595 * np.log10(1 + f / 700) for f in (low, high)]
    mels = ends[0] + np.arange(bins + 2) * (ends[1] - ends[0]) / (bins + 2)
    edges = np.floor((length + 1) * (700 * (10 ** (mels / 2595) - 1)) / rate)
    y = np.zeros((length // 2 + 1, bins))
    for i, k in np.ndindex(*y.shape):
        start, middle, end = edges[k:k + 3]
        if start <= i < middle:
            y[i, k] = (i - start) / (middle - start)
        elif middle <= i < end:
            y[i, k] = (end - i) / (end - middle)
        if i == middle:
            y[i, k] = 1
    attrs = {"bins": bins, "length": length, "rate": rate, "low": low, "high": high, "dtype": dtype}
    return Sample(lambda: topi.mel_weights(**attrs), [], y, dtype)
