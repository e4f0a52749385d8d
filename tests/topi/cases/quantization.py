"""Samples of quantization."""
from __future__ import annotations

import ml_dtypes
import numpy as np

from tests.topi.agreement import INTEGERS, Draw, Sample, case, wide
from tilewright import topi

SMALL = ("int8", "uint8", "int16", "uint16")


def drawn(draw: Draw, low: int, high: int):
    """(shape, attributes, scales, zero points, a function that makes both broadcast)"""
    shape = draw.shape(0, 3)
    axis = draw.axis(len(shape)) if shape and draw.flag(0.6) else None
    if axis is not None and draw.flag():
        return blocks(draw, low, high, shape, axis, draw.integer(1, 4))
    own = () if axis is None else (shape[axis],)
    scale = np.asarray(draw.rng.choice([0.25, 0.5, 0.1, 0.037], own)).astype("float32")
    zero = np.asarray(draw.rng.integers(max(low, -20), min(high, 20), own))
    form = () if axis is None else tuple(-1 if k == axis % len(shape) else 1 for k in range(len(shape)))
    return shape, {"axis": axis}, scale, zero, lambda v: np.reshape(v, form) if axis is not None else v


def blocks(draw: Draw, low: int, high: int, shape, axis: int, block: int):
    own = tuple(-(-n // block) if k == axis % len(shape) else n for k, n in enumerate(shape))
    scale = np.asarray(draw.rng.choice([0.25, 0.5, 0.1, 0.037], own)).astype("float32")
    zero = np.asarray(draw.rng.integers(max(low, -20), min(high, 20), own))
    return shape, {"axis": axis, "block": block}, scale, zero, lambda v: np.take(
        np.repeat(v, block, axis), range(shape[axis]), axis)


def tiled(attrs):
    """Blocks have extents that are computed, which a variable is not."""
    return None if "block" in attrs else "all"


def near_steps(draw: Draw, shape, scale, kind):
    """Numbers that are not halfway between two steps, but for scales that are powers of 2."""
    steps = draw.rng.integers(-150, 150, shape) + draw.rng.choice([-0.3, 0.0, 0.2, 0.4], shape)
    exact = np.isin(scale, [0.25, 0.5])
    steps = np.where(exact & (draw.rng.random(shape) < 0.3), np.floor(steps) + 0.5, steps)
    return np.asarray(steps * scale).astype(kind)


def steps_of(x, scale, zero, low, high):
    return np.clip(np.rint(wide(x) / wide(scale)) + zero, low, high)


def quantized(draw: Draw):
    kind = draw.choice(*SMALL)
    info = np.iinfo(kind)
    shape, attrs, scale, zero, form = drawn(draw, info.min, info.max)
    x = near_steps(draw, shape, form(scale), draw.dtype("float32", "float64"))
    return kind, x, attrs, scale, zero, form, steps_of(x, form(scale), form(zero), info.min, info.max)


F8 = ("float8_e4m3fn", "float8_e5m2")


def float8(x, kind):
    """x, rounded to the type, as float64; what is beyond its range as its largest number."""
    most = float(ml_dtypes.finfo(kind).max)
    return np.clip(x, -most, most).astype(getattr(ml_dtypes, kind)).astype("float64")


def floats8(draw: Draw):
    """(type, x, attributes, scale, the quotients rounded, a function that makes scales broadcast)"""
    kind = draw.choice(*F8)
    shape, attrs, scale, _, form = drawn(draw, 0, 1)
    scale = np.asarray(2.0 ** np.round(np.log2(scale))).astype("float32")
    x = draw.array(shape, "float32", -3, draw.choice(3, 300))
    return kind, x, attrs, scale, float8(wide(x) / form(wide(scale)), kind), form


@case
def absmax_quantize(draw: Draw) -> Sample:
    dtype, kind, shape = draw.dtype("float32", "float64"), draw.choice("int8", "uint8", *F8), draw.shape(1, 3, 6, 0)
    x, axis, block = draw.array(shape, dtype), draw.axis(len(shape)), draw.choice(None, 1, 2, 3)
    x = np.abs(x) if kind == "uint8" else x
    if draw.flag(0.2):
        x = x * 0
    size, most = block or shape[axis], float(ml_dtypes.finfo(kind).max) if kind in F8 else float(np.iinfo(kind).max)
    count = -(-shape[axis] // size)
    parts = [np.take(x, range(k * size, min((k + 1) * size, shape[axis])), axis) for k in range(count)]
    largest = np.concatenate([np.abs(p).max(axis, keepdims=True) for p in parts], axis)
    scale = np.where(largest > 0, largest / x.dtype.type(most), x.dtype.type(1))
    q = x / np.take(np.repeat(scale, size, axis), range(shape[axis]), axis)
    y = float8(q, kind).astype(getattr(ml_dtypes, kind)) if kind in F8 else np.rint(q)
    return Sample(lambda x: topi.absmax_quantize(x, axis=axis, block=block, dtype=kind), [x], [y, scale], [kind, dtype],
                  [[k for k in range(x.ndim) if k != axis % x.ndim]])


@case
def quantize(draw: Draw) -> Sample:
    if draw.flag(0.2):
        kind, x, attrs, scale, y, _ = floats8(draw)
        return Sample(lambda *a: topi.quantize(*a, **attrs, dtype=kind), [x, scale], y.astype(getattr(ml_dtypes, kind)),
                      kind, tiled(attrs))
    kind, x, attrs, scale, zero, _, y = quantized(draw)
    if attrs["axis"] is None and draw.flag():
        return Sample(lambda x: topi.quantize(x, float(scale), int(zero), dtype=kind), [x], y, kind)
    return Sample(lambda *a: topi.quantize(*a, **attrs, dtype=kind), [x, scale, zero.astype(kind)], y, kind,
                  tiled(attrs))


@case
def dequantize(draw: Draw) -> Sample:
    if draw.flag(0.2):
        kind, _, attrs, scale, y, form = floats8(draw)
        return Sample(lambda *a: topi.dequantize(*a, **attrs), [y.astype(getattr(ml_dtypes, kind)), scale],
                      y * form(wide(scale)), "float32", tiled(attrs))
    kind, dtype = draw.choice(*INTEGERS), draw.dtype()
    info = np.iinfo(kind)
    shape, attrs, scale, zero, form = drawn(draw, info.min, info.max)
    x = draw.array(shape, kind)
    y = (x.astype("float64") - form(zero)) * wide(form(scale))
    return Sample(lambda *a: topi.dequantize(*a, **attrs, dtype=dtype), [x, scale, zero.astype(kind)], y, dtype,
                  tiled(attrs))


@case
def fake_quantize(draw: Draw) -> Sample:
    if draw.flag(0.2):
        kind, x, attrs, scale, y, form = floats8(draw)
        return Sample(lambda *a: topi.fake_quantize(*a, **attrs, dtype=kind), [x, scale], y * form(wide(scale)),
                      "float32", tiled(attrs))
    kind, x, attrs, scale, zero, form, y = quantized(draw)
    return Sample(lambda *a: topi.fake_quantize(*a, **attrs, dtype=kind), [x, scale, zero.astype(kind)],
                  (y - form(zero)) * wide(form(scale)), str(x.dtype), tiled(attrs))


@case
def dynamic_quantize(draw: Draw) -> Sample:
    kind, x = draw.choice("uint8", "int8"), draw.array(draw.shape(0, 3, 5, 0), "float32", -1, draw.choice(0.5, 3.0))
    x = np.asarray(np.abs(x)) if draw.flag(0.3) else x
    x = x * 0 if draw.flag(0.1) else x
    info, low, high = np.iinfo(kind), min(x.min(), np.float32(0)), max(x.max(), np.float32(0))
    scale = (high - low) / np.float32(255) if high > low else np.float32(1)
    zero = np.clip(np.rint(np.float32(info.min) - low / scale), info.min, info.max)
    return Sample(lambda x: topi.dynamic_quantize(x, dtype=kind), [x],
                  [np.clip(np.rint(x / scale) + zero, info.min, info.max), np.asarray(scale), np.asarray(zero)],
                  [kind, "float32", kind])
