"""Layers that move elements, or leave some out."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.keras.layer import Layer, layer
from tilewright.graph.ir.values import Value


@layer("Flatten")
def _flatten(at: Layer, x: Value) -> Any:
    if not at.channels_last and x.ndim > 2:
        x = at.emit(topi.transpose, x, (0, *range(2, x.ndim), 1))
    return at.emit(topi.flatten, x, start=1)


@layer("Reshape")
def _reshape(at: Layer, x: Value) -> Any:
    return at.emit(topi.reshape, x, (x.shape[0], *at.target_shape))


@layer("Permute")
def _permute(at: Layer, x: Value) -> Any:
    return at.emit(topi.transpose, x, (0, *at.dims))


@layer("RepeatVector")
def _repeat(at: Layer, x: Value) -> Any:
    return at.emit(topi.repeat, at.emit(topi.expand_dims, x, axis=1), int(at.n), axis=1)


def _spatial(at: Layer, pairs: Any) -> list[tuple[int, int]]:
    """(before, after) of every axis, from those of the spatial ones."""
    inner = [(int(a), int(b)) for a, b in pairs]
    return [(0, 0), *inner, (0, 0)] if at.channels_last else [(0, 0), (0, 0), *inner]


@layer("ZeroPadding1D", "ZeroPadding2D", "ZeroPadding3D")
def _padding(at: Layer, x: Value) -> Any:
    given = at.padding if isinstance(at.padding[0], (tuple, list)) else [at.padding]
    return at.emit(topi.pad, x, _spatial(at, given))


@layer("Cropping1D", "Cropping2D", "Cropping3D")
def _cropping(at: Layer, x: Value) -> Any:
    given = at.cropping if isinstance(at.cropping[0], (tuple, list)) else [at.cropping]
    axes = [k for k, (a, b) in enumerate(_spatial(at, given)) if a or b]
    cut = _spatial(at, given)
    if not axes:
        return x
    return at.emit(topi.strided_slice, x, begin=[cut[k][0] for k in axes], end=[x.shape[k] - cut[k][1] for k in axes],
                  axes=axes)


@layer("UpSampling1D", "UpSampling2D", "UpSampling3D")
def _upsampling(at: Layer, x: Value) -> Any:
    factors = [at.size] if isinstance(at.size, int) else list(at.size)
    first = 1 if at.channels_last else 2
    axes = range(first, first + len(factors))
    if getattr(at.op, "interpolation", "nearest") == "nearest":
        for axis, n in zip(axes, factors):
            x = at.emit(topi.repeat, x, int(n), axis=axis)
        return x
    if at.interpolation != "bilinear":
        raise at.refuse(f"the interpolation {at.interpolation}")
    return at.emit(topi.resize, x, tuple(x.shape[k] * n for k, n in zip(axes, factors)), axes=list(axes))
