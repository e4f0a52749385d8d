"""Orders of elements, and running sums along a dimension."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import topi
from tilewright.frontend.torch.emit import Emitter, axis_of
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


@operator("cumsum")
def cumsum(e: Emitter, x: Value, dim: int, dtype: str | None = None) -> Value:
    """`topi.cumsum`."""
    return _running(e, topi.cumsum, e.cast(x, e.dtype), dim, dtype=e.dtype)


@operator("cumprod")
def cumprod(e: Emitter, x: Value, dim: int, dtype: str | None = None) -> Value:
    """`topi.cumprod`."""
    return _running(e, topi.cumprod, e.cast(x, e.dtype), dim, dtype=e.dtype)


@operator("logcumsumexp")
def logcumsumexp(e: Emitter, x: Value, dim: int) -> Value:
    """`topi.logcumsumexp`."""
    return _running(e, topi.logcumsumexp, x, dim)


@operator("cummax")
def cummax(e: Emitter, x: Value, dim: int) -> Any:
    """`topi.cummax` and the places."""
    return _running(e, topi.cummax, x, dim, return_indices=True)


@operator("cummin")
def cummin(e: Emitter, x: Value, dim: int) -> Any:
    """`topi.cummin` and the places."""
    return _running(e, topi.cummin, x, dim, return_indices=True)


def _running(e: Emitter, rule: Callable[..., Any], x: Value, dim: int, **attributes: Any) -> Any:
    x = e.lifted(x)
    return e.te(rule, x, axis=axis_of(dim, x.ndim), **attributes)


@operator("sort", "sort.stable")
def sort(e: Emitter, x: Value, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Any:
    """`topi.sort` and `topi.argsort`, which keep the order of equals."""
    places = argsort(e, x, dim, descending)
    x = e.lifted(x)
    axis = axis_of(dim, x.ndim)
    if x.dtype == "bool":
        return e.cast(e.te(topi.sort, e.cast(x, "uint8"), axis=axis, descending=descending), "bool"), places
    return e.te(topi.sort, x, axis=axis, descending=descending), places


@operator("argsort", "argsort.stable")
def argsort(e: Emitter, x: Value, dim: int = -1, descending: bool = False, stable: bool | None = None) -> Value:
    """`topi.argsort`, which keeps the order of equals."""
    x = e.lifted(x)
    x = e.cast(x, "uint8") if x.dtype == "bool" else x
    return e.te(topi.argsort, x, axis=axis_of(dim, x.ndim), descending=descending)


@operator("topk")
def topk(e: Emitter, x: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """`topi.topk`."""
    if not isinstance(k, int):
        raise e.refuse(f"topk: k is {k}, and it must be a number", "a k that follows from sizes is not supported")
    x = e.lifted(x)
    axis = axis_of(dim, x.ndim)
    if k == 0:
        return e.te(topi.zeros, e.shape, dtype=x.dtype), e.te(topi.zeros, e.shape, dtype="int64")
    return e.te(topi.topk, x, k=k, axis=axis, largest=largest)


@operator("kthvalue")
def kthvalue(e: Emitter, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """`topi.kthvalue`."""
    x = e.lifted(x)
    return e.te(topi.kthvalue, x, k=k, axis=axis_of(dim, x.ndim), keepdims=keepdim)


@operator("median")
def median(e: Emitter, x: Value) -> Value:
    """`topi.median`."""
    return e.te(topi.median, e.reshape(x, (-1,)), axis=0)[0]


@operator("median.dim")
def median_dim(e: Emitter, x: Value, dim: int, keepdim: bool = False) -> Any:
    """`topi.median` and the places."""
    x = e.lifted(x)
    return e.te(topi.median, x, axis=axis_of(dim, x.ndim), keepdims=keepdim)


@operator("searchsorted.Tensor")
def searchsorted(e: Emitter, x: Value, value: Value, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Value | None = None) -> Value:
    """`topi.searchsorted`."""
    if sorter is not None:
        x = e.te(topi.gather, x, sorter, axis=x.ndim - 1)
    wide = x.dtype if x.dtype == value.dtype else "float64" if "float" in x.dtype + value.dtype else "int64"
    x, value = e.cast(x, wide), e.cast(value, wide)
    return e.te(topi.searchsorted, x, value, side="right" if right or side == "right" else "left")


@operator("bucketize.Tensor")
def bucketize(e: Emitter, x: Value, boundaries: Value, out_int32: bool = False, right: bool = False) -> Value:
    """`topi.searchsorted` in the boundaries."""
    return searchsorted(e, boundaries, x, out_int32, right)
