"""Samples of images in other sizes; the references go pixel by pixel, after ONNX, PyTorch and torchvision."""
from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from tests.topi.agreement import NUMBERS, Draw, Sample, case, wide
from tilewright import topi


def place(i, n, m, scale, coordinates, region):
    """Where element i of m lies among n: exactly for sizes, in float64 for scales."""
    if coordinates == "tf_crop_and_resize":
        start, end = region
        return start * (n - 1) + i * ((end - start) * (n - 1) / (m - 1)) if m > 1 else 0.5 * (start + end) * (n - 1)
    if coordinates == "align_corners":
        return Fraction(i * (n - 1), max(m - 1, 1))
    one, s = (Fraction(1), Fraction(m, n)) if scale is None else (1.0, scale)
    if coordinates == "asymmetric":
        return one * i / s
    if coordinates == "pytorch_half_pixel" and m == 1:
        return one * 0
    x = (one * i + one / 2) / s - one / 2
    return x + n / 2 * (1 - m / (n * s)) if coordinates == "half_pixel_symmetric" else x


def cubic(d, a):
    d = abs(d)
    if d <= 1:
        return (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1
    return a * d ** 3 - 5 * a * d ** 2 + 8 * a * d - 4 * a if d < 2 else 0.0


def taps(p, n, mode, rounding, a, exclude, shrink=1.0):
    """The weights of n elements at a place; shrink: the scale, for weights that reach farther where it is below 1."""
    weights = np.zeros(n)
    if shrink < 1:
        for k in range(math.floor(p - 2 / shrink), math.ceil(p + 2 / shrink) + 1):
            d = abs(float(p - k)) * shrink
            if not exclude or 0 <= k < n:
                weights[min(max(k, 0), n - 1)] += cubic(d, a) if mode == "cubic" else max(1 - d, 0)
        return weights / weights.sum()
    if mode == "nearest":
        half = Fraction(1, 2) if isinstance(p, Fraction) else 0.5
        k = {"round_prefer_floor": lambda: math.ceil(p - half), "round_prefer_ceil": lambda: math.floor(p + half),
             "floor": lambda: math.floor(p), "ceil": lambda: math.ceil(p)}[rounding]()
        weights[min(max(k, 0), n - 1)] = 1
        return weights
    low = math.floor(p)
    for k in range(low - 1, low + 3):
        w = cubic(float(p - k), a) if mode == "cubic" else max(1 - abs(float(p - k)), 0)
        if not (mode == "cubic" and exclude and not 0 <= k < n):
            weights[min(max(k, 0), n - 1)] += w
    return weights / weights.sum() if mode == "cubic" and exclude else weights


@case
def resize(draw: Draw) -> Sample:
    mode = draw.choice("nearest", "nearest", "linear", "cubic")
    x = draw.array(draw.shape(1, 3, 8), draw.dtype(*(NUMBERS if mode == "nearest" else ())))
    count = draw.integer(1, min(x.ndim, 2))
    axes = [int(a) for a in draw.rng.permutation(x.ndim)[:count]] if draw.flag(0.3) else list(
        range(x.ndim - count, x.ndim))
    kind = draw.choice("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
                       "tf_crop_and_resize")
    attrs = {"mode": mode, "coordinates": kind, "exclude_outside": draw.flag(), "cubic_a": draw.choice(-0.75, -0.5),
             "rounding": draw.choice("round_prefer_floor", "round_prefer_floor", "round_prefer_ceil", "floor",
                                     "ceil")}
    if mode != "nearest" and kind != "tf_crop_and_resize":
        attrs["antialias"] = draw.flag()
    scales = [draw.choice(0.3, 0.7, 1.3, 1.6, 2.0, 3.0) for _ in axes] if draw.flag() else None
    sizes = [int(x.shape[a] * s) for a, s in zip(axes, scales)] if scales else [
        draw.integer(0 if draw.flag(0.05) else 1, 8) if x.shape[a] else 0 for a in axes]
    both = scales is not None and not attrs.get("antialias") and draw.flag(0.3)
    if both:
        sizes = [max(m + draw.integer(0, 1), 1) if x.shape[a] else 0 for a, m in zip(axes, sizes)]
    regions = [(draw.choice(0.0, 0.2, -0.3), draw.choice(1.0, 0.7, 1.2)) for _ in axes]
    y, outside = wide(x).astype("float64"), np.zeros(1, bool)
    with np.errstate(all="ignore"):
        for a, m, s, region in zip(axes, sizes, scales or [None] * count, regions):
            n = x.shape[a]
            places = [place(i, n, m, s, kind, region) for i in range(m)]
            matrix = np.array([taps(p, n, mode, attrs["rounding"], attrs["cubic_a"], attrs["exclude_outside"],
                                    (s or m / n) if attrs.get("antialias") else 1.0) for p in places]).reshape(m, n)
            y = np.moveaxis(np.tensordot(matrix, y, (1, a)), 0, a)
            beyond = np.array([p < 0 or p > n - 1 for p in places], bool)
            outside = outside | beyond.reshape([-1 if k == a else 1 for k in range(x.ndim)])
    if kind == "tf_crop_and_resize":
        attrs |= {"regions": regions, "extrapolation": 3.0}
        y = np.where(outside, 3.0, y)
    fixed = {"scales": scales} if scales else {}
    if attrs.get("antialias") and not scales:
        symbolic = [tuple(a for a in range(x.ndim) if a not in axes)]
        return Sample(lambda x: topi.resize(x, sizes, axes=axes, **attrs), [x], y, str(x.dtype), symbolic, tolerance=4)
    symbolic = [tuple(a for a in range(x.ndim) if a not in axes or not scales or scales[axes.index(a)] >= 2 or both)]
    if scales is not None and not both and not all(s >= 2 for s in scales):
        symbolic = [tuple(a for a in range(x.ndim) if a not in axes)]
    return Sample(lambda x: topi.resize(x, sizes if both or not scales else None, axes=axes, **fixed, **attrs), [x], y,
                  str(x.dtype), symbolic, tolerance=4)


def inward(v, n, padding, corners):
    if padding == "zeros":
        return v
    if padding == "reflection":
        low, span = (0.0, n - 1.0) if corners else (-0.5, float(n))
        d = abs(v - low)
        v = 0.0 if span == 0 else low + (d % span if math.floor(d / span) % 2 == 0 else span - d % span)
    return min(max(v, 0.0), n - 1.0)


def linear(image, places):
    """The sum over corners of the elements inside, times 1 - distance."""
    lows = [math.floor(p) for p in places]
    total = 0.0
    for k in itertools.product((0, 1), repeat=len(lows)):
        at = tuple(low + s for low, s in zip(lows, k))
        if all(0 <= v < n for v, n in zip(at, image.shape)):
            total += image[at] * math.prod(1 - abs(p - v) for p, v in zip(places, at))
    return total


def sampled(image, places, mode, padding, corners):
    extents = image.shape

    def pixel(k):
        at = [int(inward(float(v), n, padding, corners)) for v, n in zip(k, extents)]
        return image[tuple(at)] if all(0 <= v < n for v, n in zip(at, extents)) else 0.0
    if mode == "bicubic":
        lows = [math.floor(p) for p in places]
        return sum(pixel([low + s for low, s in zip(lows, k)]) * math.prod(
            cubic(p - low - s, -0.75) for p, low, s in zip(places, lows, k))
            for k in itertools.product((-1, 0, 1, 2), repeat=len(places)))
    places = [inward(p, n, padding, corners) for p, n in zip(places, extents)]
    if mode == "bilinear":
        return linear(image, places)
    at = tuple(int(np.rint(p)) for p in places)
    return image[at] if all(0 <= v < n for v, n in zip(at, extents)) else 0.0


@case
def affine_grid(draw: Draw) -> Sample:
    dims, dtype, corners = draw.choice(2, 3), draw.dtype(), draw.flag()
    theta, size = draw.array((draw.extent(2), dims, dims + 1), dtype), [draw.extent(4) for _ in range(dims)]
    axes = [np.linspace(-1, 1, n) if corners and n > 1 else (
        np.zeros(n) if corners else (2 * np.arange(n) + 1) / max(n, 1) - 1) for n in size]
    places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(size)], -1)
    y = np.einsum("...k,brk->b...r", places, wide(theta)).reshape(len(theta), *size, dims)
    return Sample(lambda t: topi.affine_grid(t, size, align_corners=corners), [theta], y, dtype, [(0,)], tolerance=2)


@case
def grid_sample(draw: Draw) -> Sample:
    dims, dtype = draw.choice(2, 2, 3), draw.dtype("float32", "float32", "float64", "float16")
    mode = draw.choice(*("bilinear", "nearest", "bicubic")[:3 if dims == 2 else 2])
    padding, corners = draw.choice("zeros", "border", "reflection"), draw.flag()
    x = draw.array((draw.extent(2), draw.extent(2), *(draw.integer(1, 5) for _ in range(dims))), dtype)
    grid = draw.array((x.shape[0], *(draw.extent(3) for _ in range(dims)), dims), dtype, -1.5, 1.5)
    y, g = np.zeros((*x.shape[:2], *grid.shape[1:-1])), wide(grid)
    for b, c, *i in np.ndindex(*y.shape):
        places = [(v + 1) / 2 * (n - 1) if corners else ((v + 1) * n - 1) / 2
                  for v, n in zip(g[(b, *i)][::-1], x.shape[2:])]
        y[(b, c, *i)] = sampled(wide(x)[b, c], places, mode, padding, corners)
    return Sample(lambda x, g: topi.grid_sample(x, g, mode=mode, padding_mode=padding, align_corners=corners),
                  [x, grid], y, dtype, [tuple(range(x.ndim)), tuple(range(grid.ndim - 1))], tolerance=8)
