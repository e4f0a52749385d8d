"""Samples of convolutions."""
from __future__ import annotations

import numpy as np

from tests.topi import references
from tests.topi.agreement import FLOATS, Draw, Sample, case, wide
from tilewright import topi


def geometry(draw: Draw, count: int, transposed: bool = False):
    """(extents, kernel, attributes) of windows that fit."""
    kernel, dilation = [draw.integer(1, 3) for _ in range(count)], [draw.integer(1, 2) for _ in range(count)]
    pads = [draw.integer(0, 2) if transposed or draw.flag() else (draw.integer(0, 2), draw.integer(0, 2))
            for _ in range(count)]
    if any(isinstance(p, tuple) for p in pads):
        pads = [p if isinstance(p, tuple) else (p, p) for p in pads]
    least = [max(1, (k - 1) * d + 1 - (sum(p) if isinstance(p, tuple) else 2 * p))
             for k, d, p in zip(kernel, dilation, pads)]
    extents = [n + draw.integer(0, 4) for n in least]
    stride = [draw.integer(1, 3) for _ in range(count)]
    attrs = {"stride": stride if draw.flag() or len(set(stride)) > 1 else stride[0], "padding": pads,
             "dilation": dilation}
    return extents, kernel, attrs


def conv_sample(draw: Draw, count: int, call, kinds=(*FLOATS, "int32", "int8")) -> Sample:
    extents, kernel, attrs = geometry(draw, count)
    groups, cg, per, dtype = draw.choice(1, 1, 2, 3), draw.integer(1, 3), draw.integer(1, 3), draw.dtype(*kinds)
    x = draw.array((draw.extent(2), groups * cg, *extents), dtype)
    w, b = draw.array((groups * per, cg, *kernel), dtype), draw.array((groups * per,), dtype)
    constants = None
    if draw.flag(0.1):
        upper, stride = draw.flag(), references.tuples(attrs["stride"], count)
        total = [max(-(-n // s) * s - s + (k - 1) * d + 1 - n, 0)
                 for n, k, s, d in zip(extents, kernel, stride, attrs["dilation"])]
        pads = [(t // 2, t - t // 2) if upper else (t - t // 2, t // 2) for t in total]
        y = references.conv(wide(x), wide(w), **(attrs | {"padding": pads}), groups=groups)
        attrs |= {"padding": "same_upper" if upper else "same_lower"}
        constants = [(0,), (), ()]
    elif draw.flag(0.1):
        attrs |= {"padding": "same", "stride": 1}
        spans = [(k - 1) * d for k, d in zip(kernel, attrs["dilation"])]
        y = references.conv(wide(x), wide(w), 1, [(s // 2, s - s // 2) for s in spans], attrs["dilation"], groups)
    else:
        y = references.conv(wide(x), wide(w), **attrs, groups=groups)
    y = y + wide(b).reshape(-1, *[1] * count)
    if count == 2 and draw.flag(0.3):
        return Sample(lambda x, w, b: call(x, w, b, **attrs, groups=groups, channels_last=True),
                      [np.moveaxis(x, 1, -1), w, b], np.moveaxis(y, 1, -1), dtype,
                      constants or [(0, 1, 2), (), ()])
    return Sample(lambda x, w, b: call(x, w, b, **attrs, groups=groups), [x, w, b], y, dtype,
                  constants or [(0, *range(2, count + 2)), (), ()])


@case
def conv(draw: Draw) -> Sample:
    return conv_sample(draw, draw.integer(1, 3), topi.conv)


@case
def conv1d(draw: Draw) -> Sample:
    return conv_sample(draw, 1, topi.conv1d)


@case
def conv2d(draw: Draw) -> Sample:
    return conv_sample(draw, 2, topi.conv2d)


@case
def conv3d(draw: Draw) -> Sample:
    return conv_sample(draw, 3, topi.conv3d)


@case
def depthwise_conv(draw: Draw) -> Sample:
    count, dtype, c, per = draw.integer(1, 2), draw.dtype(), draw.integer(1, 4), draw.integer(1, 2)
    extents, kernel, attrs = geometry(draw, count)
    x, w = draw.array((draw.extent(2), c, *extents), dtype), draw.array((c * per, 1, *kernel), dtype)
    return Sample(lambda x, w: topi.depthwise_conv(x, w, **attrs), [x, w],
                  references.conv(wide(x), wide(w), **attrs, groups=c), dtype, [(0, *range(2, count + 2)), ()])


def transposed(draw: Draw, count: int, call) -> Sample:
    dtype, groups = draw.dtype(), draw.choice(1, 1, 2)
    kernel = [draw.integer(1, 4 if count < 3 else 2) for _ in range(count)]
    stride, dilation = [draw.integer(1, 3) for _ in kernel], [draw.integer(1, 2) for _ in kernel]
    pads = [draw.integer(0, (k - 1) * d // 2) for k, d in zip(kernel, dilation)]
    if draw.flag(0.3):
        pads = [(draw.integer(0, p), p) for p in pads]
    extra = [draw.integer(0, 1) for _ in kernel]
    attrs = {"stride": stride, "padding": pads, "dilation": dilation, "output_padding": extra}
    cg, per = draw.integer(1, 3), draw.integer(1, 3)
    x = draw.array((draw.extent(2), groups * cg, *(draw.integer(1, 4) for _ in kernel)), dtype)
    w, b = draw.array((groups * cg, per, *kernel), dtype), draw.array((groups * per,), dtype)
    y = references.conv_transpose(wide(x), wide(w), **attrs, groups=groups) + wide(b).reshape(-1, *[1] * count)
    return Sample(lambda x, w, b: call(x, w, b, **attrs, groups=groups), [x, w, b], y, dtype,
                  [(0, *range(2, count + 2)), (), ()])


@case
def conv_transpose(draw: Draw) -> Sample:
    return transposed(draw, draw.integer(1, 3), topi.conv_transpose)


@case
def conv_transpose1d(draw: Draw) -> Sample:
    return transposed(draw, 1, topi.conv_transpose1d)


@case
def conv_transpose2d(draw: Draw) -> Sample:
    return transposed(draw, 2, topi.conv_transpose2d)


@case
def conv_transpose3d(draw: Draw) -> Sample:
    return transposed(draw, 3, topi.conv_transpose3d)


@case
def deform_conv2d(draw: Draw) -> Sample:
    dtype, groups, parts = draw.dtype("float32", "float64"), draw.choice(1, 2), draw.choice(1, 2)
    extents, kernel, attrs = geometry(draw, 2, transposed=True)
    kernel, attrs["dilation"] = [min(k, 2) for k in kernel], [1, 1]
    pads = attrs["padding"]
    strides = references.tuples(attrs["stride"], 2)
    oh, ow = ((n + 2 * p - k) // s + 1 for n, p, k, s in zip(extents, pads, kernel, strides))
    x, w = draw.array((1, 2, *extents), dtype), draw.array((2, 2 // groups, *kernel), dtype)
    taps = parts * kernel[0] * kernel[1]
    offset, mask = draw.array((1, 2 * taps, oh, ow), dtype), draw.array((1, taps, oh, ow), dtype)
    arrays = [x, offset, w] + ([mask] if draw.flag() else [])
    y = references.deform_conv2d(*map(wide, arrays), **attrs)
    return Sample(lambda x, o, w, m=None: topi.deform_conv2d(x, o, w, None, m, **attrs), arrays, y, dtype,
                  [(0,), (0,), (), (0,)], tolerance=4)
