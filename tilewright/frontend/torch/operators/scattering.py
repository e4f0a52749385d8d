"""Tensors with other elements at places that tensors or masks say."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch import rules
from tilewright.frontend.torch.dtypes import category
from tilewright.frontend.torch.emit import Emitter, axis_of
from tilewright.frontend.torch.operators.indexing import masks_as_places
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


@operator("scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce")
def scatter(e: Emitter, x: Value, dim: int, index: Value, src: Any = None, reduce: str | None = None,
            value: Any = None) -> Value:
    """`topi.scatter`."""
    reduction = {None: "none", "add": "add", "multiply": "mul"}[reduce]
    return _scattered(e, x, dim, index, value if src is None else src, reduction)


@operator("scatter_add")
def scatter_add(e: Emitter, x: Value, dim: int, index: Value, src: Value) -> Value:
    """`topi.scatter`, added."""
    return _scattered(e, x, dim, index, src, "add")


def _scattered(e: Emitter, x: Value, dim: int, index: Value, src: Any, reduction: str) -> Value:
    x, index, src, axis = _lined_up(e, x, dim, index, src)
    return e.te(topi.scatter, x, index, src, axis=axis, reduction=reduction)


def _lined_up(e: Emitter, x: Value, dim: int, index: Value, src: Any) -> tuple[Value, Value, Value, int]:
    """x, the index and the updates of its shape, the axis."""
    x, index = e.lifted(x), e.lifted(index)
    if isinstance(src, Value):
        src = e.cast(e.lifted(src), x.dtype)
        if any(a is not b and not (isinstance(a, int) and a == b) for a, b in zip(src.shape, index.shape)):
            n = src.ndim
            src = e.te(topi.strided_slice, src, begin=[0] * n, end=list(index.shape), axes=list(range(n)))
    else:
        src = e.tensor(src, x.dtype, index.shape)
    axis = axis_of(dim, x.ndim)
    return x, e.te(rules.exact_indices, e.cast(index, "int64"), extent=x.shape[axis]), src, axis


@operator("scatter_reduce.two")
def scatter_reduce(e: Emitter, x: Value, dim: int, index: Value, src: Value, reduce: str,
                   include_self: bool = True) -> Value:
    """`topi.scatter_reduce`."""
    x, index, src, axis = _lined_up(e, x, dim, index, src)
    reduction = {"amax": "max", "amin": "min"}.get(reduce, reduce)
    if x.dtype == "bool":
        y = e.te(topi.scatter_reduce, e.cast(x, "int32"), index, e.cast(src, "int32"), axis=axis, reduction=reduction,
                 include_self=include_self)
        return e.te(topi.not_equal, y, 0)
    if reduction == "mean" and category(x.dtype) == 1:
        total = e.te(topi.scatter_reduce, x, index, src, axis=axis, reduction="sum", include_self=include_self)
        ones, start = e.tensor(1, x.dtype, src.shape), e.tensor(int(include_self), x.dtype, x.shape)
        count = e.te(topi.scatter, start, index, ones, axis=axis, reduction="add")
        return e.te(topi.floor_divide, total, e.te(topi.maximum, count, 1))
    return e.te(topi.scatter_reduce, x, index, src, axis=axis, reduction=reduction, include_self=include_self)


@operator("index_add")
def index_add(e: Emitter, x: Value, dim: int, index: Value, source: Value, alpha: Any = 1) -> Value:
    """`topi.index_reduce`, added."""
    source = e.cast(source, x.dtype)
    if alpha != 1:
        source = e.te(topi.multiply, source, e.operand(alpha, x.dtype))
    return _by_index(e, x, dim, _exact(e, x, dim, index), source, "add")


@operator("index_copy")
def index_copy(e: Emitter, x: Value, dim: int, index: Value, source: Value) -> Value:
    """`topi.index_reduce`, put."""
    return _by_index(e, x, dim, _exact(e, x, dim, index), source, "none")


def _exact(e: Emitter, x: Value, dim: int, index: Value) -> Value:
    return e.te(rules.exact_indices, index, extent=x.shape[axis_of(dim, x.ndim)]) if x.ndim else index


def _by_index(e: Emitter, x: Value, dim: int, index: Value, source: Value, reduction: str) -> Value:
    x, index, source = e.lifted(x), e.lifted(index), e.lifted(source)
    if x.dtype == "bool":
        made = _by_index(e, e.cast(x, "int32"), dim, index, e.cast(source, "int32"), reduction)
        return e.te(topi.not_equal, made, 0)
    return e.te(topi.index_reduce, x, index, source, axis=axis_of(dim, x.ndim), reduction=reduction)


@operator("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(e: Emitter, x: Value, dim: int, index: Value, value: Any) -> Value:
    """`topi.index_reduce`, put."""
    x, index = e.lifted(x), e.lifted(index)
    axis = axis_of(dim, x.ndim)
    shape = (*x.shape[:axis], index.shape[0], *x.shape[axis + 1:])
    return _by_index(e, x, axis, index, e.broadcast(e.tensor(value, x.dtype), shape), "none")


@operator("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(e: Emitter, x: Value, mask: Value, value: Any) -> Value:
    """`topi.where`."""
    return e.te(topi.where, e.cast(mask, "bool"), e.operand(value, x.dtype), x)


@operator("masked_scatter")
def masked_scatter(e: Emitter, x: Value, mask: Value, source: Value) -> Value:
    """`topi.masked_scatter`."""
    x, source = e.broadcast(x, e.shape), e.reshape(source, (-1,))
    return e.te(topi.masked_scatter, x, e.broadcast(mask, e.shape), e.cast(source, x.dtype))


@operator("index_put", "_unsafe_index_put")
def index_put(e: Emitter, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False,
              unsafe: bool = False) -> Value:
    """`topi.index_put`; by a mask `topi.where` or `topi.masked_scatter`."""
    values = e.cast(values, x.dtype)
    mask = next((i for i in indices if i is not None), None)
    if mask is not None and mask.dtype in ("bool", "uint8") and sum(i is not None for i in indices) == 1:
        return _put_mask(e, x, list(indices).index(mask), e.cast(mask, "bool"), values, accumulate)
    x, indices = masks_as_places(e, x, indices)
    axes = [k for k, i in enumerate(indices) if i is not None]
    given = [i for i in indices if i is not None]
    if not axes:
        return e.broadcast(values, x.shape) if not accumulate else e.te(topi.add, x, values)
    rest = [k for k in range(x.ndim) if k not in axes]
    rank = max(i.ndim for i in given)
    adjacent = axes == list(range(axes[0], axes[0] + len(axes)))
    if adjacent and axes[0] and values.ndim > rank:          # values has the axes of the indices in the middle
        before = max(values.ndim - rank - (len(rest) - axes[0]), 0)
        values = e.transpose(values, [*range(before, before + rank), *range(before),
                                      *range(before + rank, values.ndim)])
        if before < axes[0]:
            values = e.reshape(values, (*values.shape[:rank], *(1,) * (axes[0] - before), *values.shape[rank:]))
    order = [*axes, *rest]
    bools = x.dtype == "bool"
    front = e.transpose(x, order)
    if bools:                                                # as many as there may be are added
        front, values = e.cast(front, "int32"), e.cast(values, "int32")
    y = e.te(topi.index_put, front, given, values, accumulate=accumulate)
    if bools:
        y = e.te(topi.not_equal, y, 0)
    return e.transpose(y, [order.index(k) for k in range(x.ndim)])


def _put_mask(e: Emitter, x: Value, first: int, mask: Value, values: Value, accumulate: bool) -> Value:
    """x with values where a mask of its dimensions from `first` on holds; where those go, values count what holds."""
    axes = list(range(first, first + mask.ndim))
    order = [*axes, *(k for k in range(x.ndim) if k not in axes)]
    front, rest = e.transpose(x, order), x.ndim - mask.ndim
    values = e.reshape(values, (*(1,) * (rest + 1 - values.ndim), *values.shape)[-(rest + 1):])
    values = e.transpose(values, [first, *(k for k in range(rest + 1) if k != first)])
    mask = e.reshape(mask, (*mask.shape, *(1,) * rest))
    if isinstance(values.shape[0], int) and values.shape[0] == 1:
        values = e.reshape(values, (*(1,) * mask.ndim, *values.shape[1:])[-x.ndim:])
        y = e.te(topi.where, mask, e.te(topi.add, front, values) if accumulate else values, front)
    else:
        values = e.reshape(e.broadcast(values, (values.shape[0], *front.shape[x.ndim - rest:])), (-1,))
        start = e.tensor(0, x.dtype, front.shape) if accumulate else front
        y = e.te(topi.masked_scatter, start, e.broadcast(mask, front.shape), values)
        y = e.te(topi.add, front, y) if accumulate else y
    return e.transpose(y, [order.index(k) for k in range(x.ndim)])


@operator("put")
def put(e: Emitter, x: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """`topi.index_put` of all elements, row by row."""
    flat = e.te(topi.index_put, e.reshape(x, (-1,)), [e.reshape(index, (-1,))],
                e.reshape(e.cast(source, x.dtype), (-1,)), accumulate=accumulate)
    return e.reshape(flat, x.shape)
