"""Elements at places that other tensors say."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch import rules
from tilewright.frontend.torch.emit import Counted, Emitter, axis_of
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


@operator("gather")
def gather(e: Emitter, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    """`topi.gather`."""
    x, index = e.lifted(x), e.lifted(index)
    return e.te(topi.gather, x, e.cast(index, "int64"), axis=axis_of(dim, x.ndim), mode="exact")


@operator("take_along_dim")
def take_along_dim(e: Emitter, x: Value, index: Value, dim: int | None = None) -> Value:
    """`topi.gather`, of all elements for None."""
    if dim is None:
        return e.te(topi.take, e.reshape(x, (-1,)), e.reshape(index, (-1,)), axis=0, mode="exact")
    axis = axis_of(dim, x.ndim)
    x = e.broadcast(x, (*e.shape[:axis], x.shape[axis], *e.shape[axis + 1:]))
    return e.te(topi.gather, x, e.broadcast(index, e.shape), axis=axis, mode="exact")


@operator("index_select")
def index_select(e: Emitter, x: Value, dim: int, index: Value) -> Value:
    """`topi.take` along a dimension."""
    x, index = e.lifted(x), e.lifted(index)
    return e.te(topi.take, x, index, axis=axis_of(dim, x.ndim), mode="exact")


@operator("take")
def take(e: Emitter, x: Value, index: Value) -> Value:
    """`topi.take` of all elements."""
    return e.te(topi.take, e.reshape(x, (-1,)), index, axis=0)


@operator("embedding")
def embedding(e: Emitter, weight: Value, indices: Value, *_: Any, **__: Any) -> Value:
    """`topi.take` of rows."""
    return e.te(topi.take, weight, indices, axis=0, mode="exact")


@operator("index.Tensor", "_unsafe_index.Tensor")
def index(e: Emitter, x: Value, indices: Sequence[Value | None]) -> Value | Counted:
    """`topi.take` by one tensor, `topi.index_get` by several; by a mask of all dimensions `topi.masked_select`."""
    mask = indices[0]
    if len(indices) == 1 and mask is not None and mask.dtype == "bool" and mask.ndim == x.ndim > 0:
        return masked_select(e, x, mask)
    x, indices = masks_as_places(e, x, indices)
    axes = [k for k, i in enumerate(indices) if i is not None]
    given = [i for i in indices if i is not None]
    if not axes:
        return x
    if len(axes) == 1:
        return e.te(topi.take, x, given[0], axis=axes[0])
    front = e.transpose(x, [*axes, *(k for k in range(x.ndim) if k not in axes)])
    y = e.te(topi.index_get, front, given)
    rank = max(i.ndim for i in given)
    return e.transpose(y, places_between(axes, rank, y.ndim))


def masks_as_places(e: Emitter, x: Value, indices: Sequence[Value | None]) -> tuple[Value, list[Value | None]]:
    """Indices without masks. Raises ImportModelError for one whose elements cannot be counted before the run."""
    for i in indices:
        if i is not None and i.dtype in ("bool", "uint8"):
            raise e.refuse("an index that is a mask has a result whose size depends on elements",
                           "use torch.where or masked_fill, or let torch.compile break the graph there")
    return x, list(indices)


def places_between(axes: Sequence[int], rank: int, ndim: int) -> list[int]:
    """The order of the axes of y[i..., j...]: those of i go where adjacent axes were, else they stay in front."""
    if list(axes) != list(range(axes[0], axes[0] + len(axes))):
        return list(range(ndim))
    rest = list(range(rank, ndim))
    return [*rest[:axes[0]], *range(rank), *rest[axes[0]:]]


@operator("nonzero")
def nonzero(e: Emitter, x: Value) -> Counted:
    """`topi.nonzero`, as a result of the graph."""
    if x.ndim == 0:
        flat = e.te(topi.nonzero, e.reshape(x, (1,)))
        return Counted(e.tensor(0, "int64", (1, 0)), flat[1])
    return Counted(*e.te(topi.nonzero, x))


@operator("masked_select")
def masked_select(e: Emitter, x: Value, mask: Value) -> Counted:
    """`topi.masked_select`, as a result of the graph."""
    return Counted(*e.te(topi.masked_select, e.lifted(x), e.lifted(mask)))


@operator("one_hot")
def one_hot(e: Emitter, x: Value, num_classes: int = -1) -> Value:
    """`topi.one_hot`."""
    return e.te(topi.one_hot, x, depth=e.shape[-1], dtype="int64")


@operator("_embedding_bag", "_embedding_bag_forward_only")
def embedding_bag(e: Emitter, weight: Value, indices: Value, offsets: Value, scale_grad_by_freq: bool = False,
                  mode: int = 0, sparse: bool = False, per_sample_weights: Value | None = None,
                  include_last_offset: bool = False, padding_idx: int = -1) -> tuple[Value | None, ...]:
    """`topi.embedding_bag`."""
    if padding_idx >= 0:
        raise e.refuse(f"embedding_bag: padding_idx {padding_idx} is not supported")
    indices = e.te(rules.exact_indices, indices, extent=weight.shape[0])
    y = e.te(topi.embedding_bag, indices, weight, offsets, per_sample_weights,
             reduction=("sum", "mean", "max")[mode])
    if include_last_offset:                              # the end of the last bag: what begins there is none
        y = e.te(topi.strided_slice, y, begin=[0], end=[-1], axes=[0])
    return y, None, None, None
