"""Operators of relax that make tensors, move their elements, or read them at indices."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.compat.relax.ops import Use, op, use
from tilewright.compat.topi import images, transform


@op("reshape", "x shape")
def _reshape(x: Any, shape: Any) -> Use:
    return use(topi.reshape, x, shape)


@op("flatten")
def _flatten(x: Any) -> Use:
    return use(topi.reshape, x, (-1,))


@op("permute_dims")
def _permute(x: Any, axes: Any = None) -> Use:
    return use(topi.transpose, x, axes)


op("transpose")(_permute)


@op("expand_dims")
def _expand(x: Any, axis: Any) -> Use:
    return use(topi.expand_dims, x, axis=axis)


@op("squeeze")
def _squeeze(x: Any, axis: Any = None) -> Use:
    return use(topi.squeeze, x, axis=axis)


@op("concat", "tensors")
def _concat(tensors: Any, axis: int = 0) -> Use:
    return use(topi.concatenate, list(tensors), axis=axis)


op("concatenate", "tensors")(_concat)


@op("stack", "tensors")
def _stack(tensors: Any, axis: int = 0) -> Use:
    return use(topi.stack, list(tensors), axis=axis)


@op("split")
def _split(x: Any, indices_or_sections: Any, axis: int = 0) -> Use:
    return use(transform.NAMES["split"], x, indices_or_sections, axis)


@op("broadcast_to", "x shape")
def _broadcast(x: Any, shape: Any) -> Use:
    return use(topi.broadcast_to, x, shape)


@op("repeat", "data")
def _repeat(data: Any, repeats: int, axis: int | None = None) -> Use:
    return use(topi.repeat, data, repeats, axis=axis)


@op("tile", "data")
def _tile(data: Any, repeats: Any) -> Use:
    return use(topi.tile, data, repeats)


@op("flip", "data")
def _flip(data: Any, axis: int) -> Use:
    return use(topi.flip, data, axis=axis)


@op("take", "x indices")
def _take(x: Any, indices: Any, axis: int | None = None, mode: str = "clip") -> Use:
    return use(topi.take, x, indices, axis=axis, mode={"fast": "raise"}.get(mode, mode))


@op("strided_slice")
def _slice(x: Any, axes: Any, begin: Any, end: Any, strides: Any = None, assume_inbound: bool = False) -> Use:
    return use(topi.strided_slice, x, begin=begin, end=end, strides=strides, axes=axes)


@op("gather_elements", "data indices")
def _gather(data: Any, indices: Any, axis: int = 0) -> Use:
    return use(topi.gather, data, indices, axis=axis)


@op("gather_nd", "data indices")
def _gather_nd(data: Any, indices: Any, batch_dims: int = 0) -> Use:
    return use(topi.gather_nd, data, indices, batch_dims=batch_dims)


@op("scatter_elements", "data indices updates")
def _scatter(data: Any, indices: Any, updates: Any, axis: int = 0, reduction: str = "update") -> Use:
    return use(transform.NAMES["scatter_elements"], data, indices, updates, axis, reduction)


@op("scatter_nd", "data indices updates")
def _scatter_nd(data: Any, indices: Any, updates: Any, reduction: str = "update") -> Use:
    return use(transform.NAMES["scatter_nd"], data, indices, updates, reduction)


@op("one_hot", "indices")
def _one_hot(indices: Any, on_value: Any, off_value: Any, depth: int, axis: int = -1) -> Use:
    dtype = "float32" if isinstance(on_value, float) else "int64"
    return use(topi.one_hot, indices, depth=depth, on=on_value, off=off_value, axis=axis, dtype=dtype)


@op("full", "shape")
def _full(shape: Any, fill_value: Any, dtype: Any = None) -> Use:
    return use(topi.full, shape, fill_value, dtype=dtype or _number_type(fill_value))


def _number_type(x: Any) -> str:
    """The type of a number as TVM has it."""
    return "bool" if isinstance(x, bool) else "int32" if isinstance(x, int) else "float32"


@op("zeros", "shape")
def _zeros(shape: Any, dtype: Any = "float32") -> Use:
    return use(topi.full, shape, 0, dtype=dtype)


@op("ones", "shape")
def _ones(shape: Any, dtype: Any = "float32") -> Use:
    return use(topi.full, shape, 1, dtype=dtype)


@op("full_like")
def _full_like(x: Any, fill_value: Any, dtype: Any = None) -> Use:
    return use(topi.full, x.shape, fill_value, dtype=dtype or x.dtype)


@op("zeros_like")
def _zeros_like(x: Any, dtype: Any = None) -> Use:
    return use(topi.full, x.shape, 0, dtype=dtype or x.dtype)


@op("ones_like")
def _ones_like(x: Any, dtype: Any = None) -> Use:
    return use(topi.full, x.shape, 1, dtype=dtype or x.dtype)


@op("arange", "")
def _arange(start: Any, end: Any = None, step: Any = 1, dtype: Any = None) -> Use:
    return use(topi.arange, start, end, step, **({"dtype": dtype} if dtype else {}))


@op("tril")
def _tril(x: Any, k: int = 0) -> Use:
    return use(topi.tril, x, k=k)


@op("triu")
def _triu(x: Any, k: int = 0) -> Use:
    return use(topi.triu, x, k=k)


@op("image.resize2d", "data size")
def _resize(data: Any, size: Any, roi: Any = (0.0, 0.0, 0.0, 0.0), layout: str = "NCHW", method: str = "linear",
            coordinate_transformation_mode: str = "half_pixel", rounding_method: str = "round",
            cubic_alpha: float = -0.75, cubic_exclude: int = 0, extrapolation_value: float = 0.0,
            out_dtype: Any = None) -> Use:
    return use(images.IMAGE["resize2d"], data, roi, size, layout, method, coordinate_transformation_mode,
               rounding_method, cubic_alpha, cubic_exclude, extrapolation_value, out_dtype or None)
