"""Samples of products of quantized tensors."""
from __future__ import annotations

import numpy as np

from tests.topi import references
from tests.topi.agreement import INTEGERS, Draw, Sample, case, wide
from tests.topi.cases.convolution import geometry
from tilewright import topi

BYTES = ("int8", "uint8")


def zero(draw: Draw, kind: str, extent=None):
    """(a number, a scalar or a vector of zero points, as floats that broadcast)"""
    low, high = (-20, 20) if kind == "int8" else (0, 200)
    how = draw.choice("none", "number", "scalar", "vector")
    if how in ("none", "number") or how == "vector" and extent is None:
        value = 0 if how == "none" else draw.integer(low, high)
        return value, float(value)
    value = np.asarray(draw.rng.integers(low, high, () if how == "scalar" else (extent,))).astype(kind)
    return value, value.astype("float64")


def apply(call, given, symbolic=None):
    """(a function of the arrays among them, these arrays, which of their axes may be variables)"""
    there = [isinstance(v, np.ndarray) for v in given]

    def f(*tensors):
        rest = iter(tensors)
        return call(*(next(rest) if yes else v for yes, v in zip(there, given)))
    chosen = [symbolic.get(n, ()) for n, yes in enumerate(there) if yes] if symbolic else None
    return f, [v for v in given if isinstance(v, np.ndarray)], chosen


def factors(draw: Draw):
    m, k, n, kind, other = draw.extent(), draw.extent(), draw.extent(), draw.choice(*BYTES), draw.choice(*BYTES)
    batch = draw.shape(0, 2, 3)
    a = draw.array((*draw.broadcastable(batch), m, k), kind, -100, 100)
    b = draw.array((*draw.broadcastable(batch), k, n), other, -100, 100)
    (za, x), (zb, y) = zero(draw, kind, m), zero(draw, other, n)
    return a, za, b, zb, np.matmul(a - (x[:, None] if np.ndim(x) else x), b - y)


@case
def matmul_integer(draw: Draw) -> Sample:
    a, za, b, zb, y = factors(draw)
    call, arrays, _ = apply(lambda a, b, za, zb: topi.matmul_integer(a, b, za, zb), [a, b, za, zb])
    return Sample(call, arrays, y, "int32")


def scale(draw: Draw, extent=None):
    """A power of 2, so that no result is next to a half by rounding alone."""
    how = draw.choice("number", "scalar", "vector")
    if how == "number" or how == "vector" and extent is None:
        value = float(draw.choice(0.25, 0.5, 1.0))
        return value, value
    value = np.asarray(draw.rng.choice([0.25, 0.5, 1.0], () if how == "scalar" else (extent,))).astype("float32")
    return value, wide(value)


def finished(draw: Draw, y, factor):
    """(scale, zero point, attributes, the result)"""
    kind, (s, own) = draw.choice(*BYTES), scale(draw)
    z, offset = zero(draw, kind)
    info = np.iinfo(kind)
    s, own = (v * 64 for v in (s, own)) if isinstance(s, float) else (s * np.float32(64), own * 64)
    found = np.clip(np.rint(y * (factor / own)) + offset, info.min, info.max)
    return np.asarray(s) if isinstance(s, np.generic) else s, z, {"dtype": kind}, found


@case
def quantized_matmul(draw: Draw) -> Sample:
    a, za, b, zb, y = factors(draw)
    (sa, x), (sb, w) = scale(draw, a.shape[-2]), scale(draw, b.shape[-1])
    s, z, attrs, found = finished(draw, y, (x[:, None] if np.ndim(x) else x) * w)
    call, arrays, _ = apply(lambda *t: topi.quantized_matmul(*t, **attrs), [a, sa, za, b, sb, zb, s, z])
    return Sample(call, arrays, found, attrs["dtype"])


def convolution(draw: Draw):
    count = draw.integer(1, 2)
    extents, kernel, attrs = geometry(draw, count)
    groups, depth, per, kind, other = draw.choice(1, 1, 2), draw.integer(1, 3), draw.integer(1, 3), draw.choice(
        *BYTES), draw.choice(*BYTES)
    x = draw.array((draw.extent(2), groups * depth, *extents), kind, -100, 100)
    w = draw.array((groups * per, depth, *kernel), other, -100, 100)
    (zx, a), (zw, b) = zero(draw, kind), zero(draw, other, groups * per)
    y = references.conv(x - a, w - np.reshape(b, (-1, *[1] * (count + 1))) if np.ndim(b) else w - b, **attrs,
                        groups=groups)
    return x, zx, w, zw, attrs | {"groups": groups}, y, {0: (0, *range(2, count + 2))}


@case
def conv_integer(draw: Draw) -> Sample:
    x, zx, w, zw, attrs, y, symbolic = convolution(draw)
    call, arrays, chosen = apply(lambda *t: topi.conv_integer(*t, **attrs), [x, w, zx, zw], symbolic)
    return Sample(call, arrays, y, "int32", chosen)


@case
def quantized_conv(draw: Draw) -> Sample:
    x, zx, w, zw, attrs, y, symbolic = convolution(draw)
    (sx, a), (sw, b) = scale(draw), scale(draw, len(w))
    form = (-1, *[1] * (x.ndim - 2))
    bias = draw.rng.integers(-500, 500, len(w)).astype("int32") if draw.flag() else None
    y = y if bias is None else y + bias.reshape(form)
    s, z, more, found = finished(draw, y, a * (np.reshape(b, form) if np.ndim(b) else b))
    call, arrays, chosen = apply(lambda *t: topi.quantized_conv(*t, **attrs, **more),
                                 [x, sx, zx, w, sw, zw, s, z, *([] if bias is None else [bias])], symbolic)
    return Sample(call, arrays, found, more["dtype"], chosen)


def nibbles(x):
    """uint8 of pairs of integers, the lower bits first."""
    four = x.astype("int64") & 15
    four = np.concatenate([four, np.zeros((*x.shape[:-1], x.shape[-1] % 2), "int64")], -1)
    return (four[..., ::2] | four[..., 1::2] << 4).astype("uint8")


@case
def pack_int4(draw: Draw) -> Sample:
    x = draw.array(draw.shape(1, 3, 9), draw.dtype(*INTEGERS), -9, 16)
    return Sample(topi.pack_int4, [x], nibbles(x))


@case
def unpack_int4(draw: Draw) -> Sample:
    signed = draw.flag()
    y = draw.array(draw.shape(1, 3, 9), "int8" if signed else "uint8", -8 if signed else 0, 7 if signed else 15)
    size = y.shape[-1]
    size = size if size % 2 or draw.flag(0.3) else None
    x = nibbles(y)
    return Sample(lambda x: topi.unpack_int4(x, signed=signed, size=size), [x], y)


@case
def linear_int4(draw: Draw) -> Sample:
    c, o, block, dtype, signed = draw.integer(1, 9), draw.extent(5), draw.integer(1, 4), draw.dtype(), draw.flag()
    q = draw.rng.integers(-8 if signed else 0, 8 if signed else 16, (o, c))
    blocks = -(-c // block)
    s, with_zero, with_bias = draw.array((o, blocks), dtype, 0.2, 1.0), draw.flag(), draw.flag()
    z = draw.rng.integers(0, 8, (o, blocks)).astype(draw.choice("uint8", "int32"))
    x, b = draw.array((*draw.shape(0, 2, 3), c), dtype), draw.array((o,), dtype)

    def spread(v):
        return np.repeat(v, block, 1)[:, :c]
    w = (q - (spread(z.astype("int64")) if with_zero else 0 if signed else 8)) * spread(wide(s))
    y = wide(x) @ w.T + (wide(b) if with_bias else 0)
    arrays = [x, nibbles(q), s] + ([z] if with_zero else []) + ([b] if with_bias else [])
    symbolic = [tuple(range(x.ndim - 1)), (0,), (0,), *[(0,)] * (with_zero + with_bias)]

    def call(x, w, s, *more):
        rest = list(more)
        zero = rest.pop(0) if with_zero else None
        return topi.linear_int4(x, w, s, zero, *rest, block=block, signed=signed)
    return Sample(call, arrays, y, dtype, symbolic, tolerance=2)


@case
def linear_blocks(draw: Draw) -> Sample:
    block, groups, o = 2 * draw.integer(1, 4), draw.extent(4), draw.extent(5)
    dtype, bits = draw.dtype(), draw.choice(4, 8)
    q = draw.rng.integers(-8, 8, (o, groups * block)) if bits == 4 else draw.array((o, groups * block), "int8")
    s, with_bias = draw.array((o, groups), dtype, 0.2, 1.0), draw.flag()
    x, b = draw.array((*draw.shape(0, 2, 3), groups * block), dtype), draw.array((o,), dtype)
    y = wide(x) @ (q * np.repeat(wide(s), block, 1)).T + (wide(b) if with_bias else 0)
    if bits == 4:
        low, high = (q + 8).astype("uint8").reshape(o, groups, 2, block // 2).transpose(2, 0, 1, 3)
        q = (low | high << 4).reshape(o, groups * block // 2)
    arrays = [x, q, s] + ([b] if with_bias else [])
    symbolic = [tuple(range(x.ndim - 1)), (0,), (0,), *[(0,)] * with_bias]
    return Sample(lambda x, w, s, *rest: topi.linear_blocks(x, w, s, *rest, block=block), arrays, y, dtype, symbolic,
                  tolerance=2)
