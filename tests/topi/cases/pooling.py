"""Samples of pooling."""
from __future__ import annotations

import numpy as np

from tests.topi import references
from tests.topi.agreement import FLOATS, Draw, Sample, case, wide
from tilewright import topi


def geometry(draw: Draw, count: int, dilated: bool = True):
    """(extents, attributes) of windows that fit, padding below the windows."""
    kernel = [draw.integer(1, 3) for _ in range(count)]
    dilation = [draw.integer(1, 2) if dilated else 1 for _ in kernel]
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
    pads = [draw.integer(0, s // 2) for s in spans]
    extents = [max(d, s - 2 * p) + draw.integer(0, 4) for s, p, d in zip(spans, pads, dilation)]
    stride = draw.choice(None, [draw.integer(1, 3) for _ in kernel])
    attrs = {"kernel": kernel, "stride": stride, "padding": pads, "ceil_mode": draw.flag(0.4)}
    return extents, attrs | ({"dilation": dilation} if dilated else {})


def reference(x, attrs, combine):
    a = {"dilation": 1} | attrs
    return references.pooled(x, a["kernel"], a["stride"] or a["kernel"], a["padding"], a["dilation"], a["ceil_mode"],
                             combine)


def symbolic(count, last=False):
    return [(0, 1, *range(2, 2 + count))]


def max_sample(draw: Draw, count: int, call) -> Sample:
    extents, attrs = geometry(draw, count)
    dtype, indices = draw.dtype(*FLOATS, "int8", "uint8"), draw.flag(0.4)
    x = draw.array((draw.extent(2), draw.extent(2), *extents), dtype)
    if dtype == "float32" and draw.flag(0.2):
        x[draw.rng.random(x.shape) < 0.3] = -np.inf
    y = reference(wide(x), attrs, lambda v, p, n: v[int(np.argmax(v))]).astype(x.dtype)
    if indices:
        places = reference(wide(x), attrs, lambda v, p, n: p[int(np.argmax(v))]).astype("int64")
        return Sample(lambda x: call(x, **attrs, return_indices=True), [x], [y, places], [dtype, "int64"])
    if draw.flag(0.3):
        return Sample(lambda x: call(x, **attrs, channels_last=True), [np.moveaxis(x, 1, -1)], np.moveaxis(y, 1, -1),
                      dtype)
    return Sample(lambda x: call(x, **attrs), [x], y, dtype)


def average(attrs, include, divisor):
    def combine(values, places, count):
        n = divisor or (count if include else len(values))
        return np.sum(values) / n if n else np.nan
    return combine


def avg_sample(draw: Draw, count: int, call) -> Sample:
    extents, attrs = geometry(draw, count, draw.flag(0.3))
    include, divisor, dtype = draw.flag(), draw.choice(None, None, 2.5), draw.dtype()
    if "dilation" in attrs and any(d > 1 for d in attrs["dilation"]):
        attrs["padding"] = [0 for _ in extents] if not include else attrs["padding"]
        extents = [max(e, (k - 1) * d + 1) for e, k, d in zip(extents, attrs["kernel"], attrs["dilation"])]
    x = draw.array((draw.extent(2), draw.extent(2), *extents), dtype)
    y = reference(wide(x), attrs, average(attrs, include, divisor)).astype("float64")
    attrs |= {"count_include_pad": include, "divisor": divisor}
    return Sample(lambda x: call(x, **attrs), [x], y, dtype)


def _register(kind, sample):
    for count in (1, 2, 3):
        def make(draw: Draw, count=count) -> Sample:
            return sample(draw, count, getattr(topi, f"{kind}{count}d"))
        make.__name__ = f"{kind}{count}d"
        case(make)


_register("max_pool", max_sample)
_register("avg_pool", avg_sample)


@case
def max_pool(draw: Draw) -> Sample:
    return max_sample(draw, draw.integer(1, 3), topi.max_pool)


@case
def avg_pool(draw: Draw) -> Sample:
    return avg_sample(draw, draw.integer(1, 3), topi.avg_pool)


@case
def lp_pool(draw: Draw) -> Sample:
    extents, attrs = geometry(draw, draw.integer(1, 3), draw.flag(0.3))
    dtype, p = draw.dtype(), draw.choice(1.0, 2.0, 3.0)
    x = draw.array((draw.extent(2), draw.extent(2), *extents), dtype)
    y = reference(wide(x), attrs, lambda v, _, n: np.sum(np.abs(v) ** p) ** (1 / p)).astype("float64")
    return Sample(lambda x: topi.lp_pool(x, p=p, **attrs), [x], y, dtype)


@case
def adaptive_max_pool(draw: Draw) -> Sample:
    count, indices, dtype = draw.integer(1, 3), draw.flag(), draw.dtype()
    size = [draw.integer(1, 4) for _ in range(count)]
    x = draw.array((draw.extent(2), draw.extent(2), *(draw.integer(1, 6) for _ in size)), dtype)
    y = references.adaptive(wide(x), size, lambda v, p, n: np.max(v)).astype(x.dtype)
    places = references.adaptive(wide(x), size, lambda v, p, n: p[int(np.argmax(v))]).astype("int64")
    return Sample(lambda x: topi.adaptive_max_pool(x, size, return_indices=indices), [x], [y, places] if indices else y,
                  [dtype, "int64"] if indices else dtype)


@case
def adaptive_avg_pool(draw: Draw) -> Sample:
    count, dtype = draw.integer(1, 3), draw.dtype()
    size = [draw.integer(1, 4) for _ in range(count)]
    x = draw.array((draw.extent(2), draw.extent(2), *(draw.integer(1, 6) for _ in size)), dtype)
    y = references.adaptive(wide(x), size, lambda v, p, n: np.mean(v)).astype("float64")
    return Sample(lambda x: topi.adaptive_avg_pool(x, size), [x], y, dtype)


def image(draw: Draw, dtype: str) -> np.ndarray:
    return draw.array((draw.extent(3), draw.extent(3), *(draw.integer(1, 5) for _ in range(draw.integer(1, 3)))), dtype)


@case
def global_avg_pool(draw: Draw) -> Sample:
    x = image(draw, draw.dtype())
    return Sample(topi.global_avg_pool, [x], wide(x).mean(tuple(range(2, x.ndim)), keepdims=True), str(x.dtype))


@case
def global_lp_pool(draw: Draw) -> Sample:
    x, p = image(draw, draw.dtype()), draw.choice(1.0, 2.0, 3.0)
    y = (np.abs(wide(x)) ** p).sum(tuple(range(2, x.ndim)), keepdims=True) ** (1 / p)
    return Sample(lambda x: topi.global_lp_pool(x, p=p), [x], y, str(x.dtype), tolerance=2)


@case
def global_max_pool(draw: Draw) -> Sample:
    x = image(draw, draw.dtype(*FLOATS, "int8"))
    return Sample(topi.global_max_pool, [x], wide(x).max(tuple(range(2, x.ndim)), keepdims=True), str(x.dtype))
