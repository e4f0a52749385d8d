"""Parts of tensors: slices, what replaces them, borders, windows."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te, topi
from tilewright.frontend.torch import rules
from tilewright.frontend.torch.emit import Emitter, axis_of
from tilewright.frontend.torch.layouts import layout
from tilewright.frontend.torch.operators.shapes import last
from tilewright.frontend.torch.sizes import number
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value
from tilewright.tir import Expr, Var


def position(at: Any, extent: Any, default: Any) -> Any:
    """A bound of a slice as an index: counted from the end where it is negative, inside of the extent.

    One that is an expression may be beyond the end: what is behind it there has no elements.
    """
    if at is None:
        return default
    if isinstance(at, int) and isinstance(extent, int):
        return min(max(at + extent if at < 0 else at, 0), extent)
    if isinstance(at, Var) or isinstance(at, int) and at >= 0:
        return at
    return te.maximum(_index(at, extent), 0)


@operator("slice.Tensor", "slice_copy.Tensor")
def slice_(e: Emitter, x: Value, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Value:
    """x[start:end:step] along a dimension; start may be an element of a tensor, if the extent follows from shapes."""
    axis = axis_of(dim, x.ndim)
    if isinstance(start, Value):
        return e.te(rules.slices_from, x, start, axis=axis, step=step, extent=e.shape[axis])
    extent, start = e.shape[axis], position(start, x.shape[axis], 0)
    if extent is x.shape[axis] or isinstance(extent, int) and extent == x.shape[axis]:
        return x
    return e.te(rules.slices, x, axis=axis, start=start, step=step, extent=extent)


@operator("narrow")
def narrow(e: Emitter, x: Value, dim: int, start: Any, length: Any) -> Value:
    """x[start:start + length] along a dimension."""
    return slice_(e, x, dim, start, None)


@operator("select.int", "select_copy.int")
def select(e: Emitter, x: Value, dim: int, index: Any) -> Value:
    """x[..., index, ...] along a dimension; the index may be an element of a tensor."""
    axis = axis_of(dim, x.ndim)
    if isinstance(index, Value):
        return e.reshape(e.te(rules.slices_from, x, index, axis=axis, step=1, extent=1), e.shape)
    return e.te(rules.selected, x, axis=axis, index=_index(index, x.shape[axis]))


def _index(index: Any, extent: Any) -> Any:
    """An index, counted from the end where it is negative; variables of sizes are not."""
    if isinstance(index, Expr) and not isinstance(index, Var):
        return te.select(index < 0, index + extent, index)
    return index + extent if isinstance(index, int) and index < 0 else index


@operator("split.Tensor", "split_with_sizes", "split.sizes", "split", "chunk", "tensor_split.sections",
          "tensor_split.indices", "split_copy.Tensor", "split_with_sizes_copy", "hsplit.int", "unsafe_split.Tensor",
          "unsafe_split_with_sizes", "unsafe_chunk")
def split(e: Emitter, x: Value, sizes: Any, dim: int = 0) -> tuple[Value, ...]:
    """The parts along a dimension, as slices."""
    axis, parts = axis_of(dim, x.ndim), []
    start: Any = 0
    for fake in e.meta:
        extent = e.shape_of(fake)[axis]
        whole = len(e.meta) == 1
        parts.append(x if whole else e.te(rules.slices, x, axis=axis, start=start, step=1, extent=extent))
        start = start + extent
    return tuple(parts)


@operator("unbind.int", "unbind_copy.int")
def unbind(e: Emitter, x: Value, dim: int = 0) -> tuple[Value, ...]:
    """The parts of extent 1 along a dimension, without it."""
    axis = axis_of(dim, x.ndim)
    return tuple(e.te(rules.selected, x, axis=axis, index=k) for k in range(len(e.meta)))


@operator("slice_scatter")
def slice_scatter(e: Emitter, x: Value, src: Value, dim: int = 0, start: Any = None, end: Any = None,
                  step: int = 1) -> Value:
    """x, with `src` in the place of x[start:end:step]."""
    axis = axis_of(dim, x.ndim)
    start = position(start, x.shape[axis], 0)
    src = e.cast(src, x.dtype)
    if src.shape[axis] is x.shape[axis] or isinstance(src.shape[axis], int) and src.shape[axis] == x.shape[axis]:
        return e.broadcast(src, x.shape)
    if isinstance(src.shape[axis], int) and src.shape[axis] == 0:
        return x
    src = e.broadcast(src, (*x.shape[:axis], src.shape[axis], *x.shape[axis + 1:]))
    return e.te(rules.put_slices, x, src, axis=axis, start=start, step=step)


@operator("select_scatter")
def select_scatter(e: Emitter, x: Value, src: Value, dim: int, index: Any) -> Value:
    """x, with `src` in the place of x[..., index, ...]."""
    axis = axis_of(dim, x.ndim)
    shape = (*x.shape[:axis], *x.shape[axis + 1:])
    src = e.broadcast(e.cast(src, x.dtype), shape)
    src = e.reshape(src, (*x.shape[:axis], 1, *x.shape[axis + 1:]))
    return e.te(rules.put_slices, x, src, axis=axis, start=_index(index, x.shape[axis]), step=1)


@operator("diagonal_scatter")
def diagonal_scatter(e: Emitter, x: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """x, with `src` on a diagonal."""
    axes = [axis_of(dim1, x.ndim), axis_of(dim2, x.ndim)]
    order = [*(k for k in range(x.ndim) if k not in axes), *axes]
    if 0 in src.shape:
        return x
    y = e.te(rules.put_diagonal, last(e, x, dim1, dim2), e.cast(src, x.dtype), offset=offset)
    return e.transpose(y, [order.index(k) for k in range(x.ndim)])


@operator("constant_pad_nd")
def constant_pad(e: Emitter, x: Value, pad: Sequence[Any], value: Any = 0) -> Value:
    """`topi.pad` with a number."""
    return _padded(e, x, pad, "constant", value)


@operator("pad")
def pad(e: Emitter, x: Value, pad: Sequence[Any], mode: str = "constant", value: Any = None) -> Value:
    """`topi.pad`."""
    return _padded(e, x, pad, mode, 0 if value is None else value)


@operator("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(e: Emitter, x: Value, padding: Sequence[Any]) -> Value:
    """`topi.pad`, mirrored."""
    return _padded(e, x, padding, "reflect")


@operator("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(e: Emitter, x: Value, padding: Sequence[Any]) -> Value:
    """`topi.pad` by the outermost elements."""
    return _padded(e, x, padding, "edge")


@operator("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward")
def replication_pad_backward(e: Emitter, dy: Value, x: Value, padding: Sequence[Any]) -> Value:
    """Each element of dy to the one that it repeats; axis by axis."""
    for k in range(len(padding) // 2):
        axis = x.ndim - 1 - k
        dy = e.te(rules.repeated_gradient, dy, axis=axis, extent=x.shape[axis], before=padding[2 * k])
    return dy


def _grown(width: Any) -> Any:
    """What a border adds: nothing where its width is negative and cuts."""
    return max(width, 0) if isinstance(width, int) else width


def _padded(e: Emitter, x: Value, padding: Sequence[Any], mode: str, value: Any = 0) -> Value:
    ends = [(padding[k], padding[k + 1]) for k in range(0, len(padding), 2)]
    widths = [(0, 0)] * (x.ndim - len(ends)) + ends[::-1]
    if mode == "constant" and any(isinstance(p, Expr) for pair in widths for p in pair):
        return e.te(rules.bordered, x, shape=e.shape, before=[a for a, _ in widths], value=e.operand(value, x.dtype))
    if mode != "constant" and any(isinstance(p, int) and p < 0 for pair in widths for p in pair):
        x = e.te(topi.pad, x, tuple((_grown(a), _grown(b)) for a, b in widths), mode=mode)
        return e.te(rules.window, x, shape=e.shape, begin=[_grown(a) - a for a, _ in widths])
    return e.te(topi.pad, x, tuple(widths), mode=mode, value=e.operand(value, x.dtype))


@operator("unfold", "unfold_copy")
def unfold(e: Emitter, x: Value, dimension: int, size: int, step: int) -> Value:
    """`topi.sliding_window`."""
    x = e.lifted(x)
    return e.te(topi.sliding_window, x, size=size, step=step, axis=axis_of(dimension, x.ndim))


@operator("as_strided", "as_strided_copy")
def as_strided(e: Emitter, x: Value, size: Sequence[Any], stride: Sequence[Any], storage_offset: Any = None) -> Value:
    """`topi.as_strided`, of the elements as they lie in PyTorch's memory."""
    if x in e.memory and storage_offset is not None:
        return e.te(topi.as_strided, e.memory[x], tuple(size), strides=tuple(stride), offset=storage_offset)
    x, first = in_memory_order(e, x)
    offset = 0 if storage_offset is None else storage_offset - first
    return e.te(topi.as_strided, x, tuple(size), strides=tuple(stride), offset=offset)


def in_memory_order(e: Emitter, x: Value) -> tuple[Value, Any]:
    """The first argument with its axes as they lie in memory, and the place where it begins there.

    Raises ImportModelError for a tensor with gaps: what lies there is no part of it.
    """
    fake = e.given[0]
    order = layout(fake, e.known)
    if order is None:
        raise e.refuse(f"{e.target} of a tensor with strides {tuple(fake.stride())}: what lies between its elements is "
                       "no part of it", "call .contiguous() first, or index the tensor that it is a view of")
    return e.transpose(x, order), number(fake.storage_offset(), e.known)
