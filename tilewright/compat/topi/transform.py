"""`tvm.topi`: shapes, slices, places, orders, under TVM's names."""
from __future__ import annotations

import re
from typing import Any

from tilewright import te, tir, topi
from tilewright.compat.topi.arguments import along, each, items, same_count, taking_numbers
from tilewright.support.errors import ArgumentError, described
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.topi.shapes import axis_index, check_extent, check_rank, constant


def expand_dims(a: Tensor, axis: int, num_newaxis: int = 1) -> Tensor:
    """a with new dimensions of extent 1 from an axis on."""
    at = axis if axis >= 0 else len(a.shape) + 1 + axis
    return topi.expand_dims(a, axis=tuple(at + n for n in range(num_newaxis)))


def transpose(a: Tensor, axes: Any = None) -> Tensor:
    """The dimensions of a in another order, by default the reverse."""
    return topi.transpose(a, None if axes is None else tuple(items("transpose", "axes", axes)) or None)


def flip(a: Tensor, axis: int = 0) -> Tensor:
    """a in reverse order along an axis."""
    return topi.flip(a, axis=axis)


def reverse_sequence(a: Tensor, seq_lengths: Tensor, seq_axis: int = 1, batch_axis: int = 0) -> Tensor:
    """a, with the first elements along seq_axis in reverse order, as many as seq_lengths says."""
    return topi.reverse_sequence(a, seq_lengths, axis=seq_axis, batch_axis=batch_axis)


def strided_slice(a: Tensor, begin: Any, end: Any, strides: Any = None, axes: Any = None,
                  slice_mode: str = "end") -> Tensor:
    """a[begin:end:strides] along the first axes, or along `axes`; slice_mode "size": end says how many elements."""
    if any(isinstance(v, Tensor) for v in (begin, end, strides)):
        raise ArgumentError("strided_slice: the bounds are tensors", "numbers and variables are taken")
    if slice_mode not in ("end", "size"):
        raise ArgumentError(f"strided_slice: slice_mode is {described(slice_mode)}", '"end" or "size"')
    op = "strided_slice"
    first, last = items(op, "begin", begin), items(op, "end", end)
    steps = None if strides is None else items(op, "strides", strides) or None
    if slice_mode == "size":
        last, steps = [_behind(b, n) for b, n in zip(first, last)], None
    if steps is not None:
        steps += [1] * (len(first) - len(steps))
    return topi.strided_slice(a, begin=first, end=last, strides=steps, axes=axes)


def _behind(begin: Any, size: Any) -> Any:
    """Where a slice ends that has `size` elements, all from begin on for a negative size; None: at the end."""
    if isinstance(size, int) and (size < 0 or isinstance(begin, int) and begin < 0 <= begin + size):
        return None
    return begin + size


def reshape(a: Tensor, newshape: Any) -> Tensor:
    """The elements of a, row by row, in another shape."""
    return topi.reshape(a, list(newshape) if isinstance(newshape, (list, tuple)) else newshape)


def squeeze(a: Tensor, axis: Any = None) -> Tensor:
    """a without dimensions of extent 1."""
    return topi.squeeze(a, axis=tuple(axis) if isinstance(axis, (list, tuple)) else axis)


def concatenate(a_tuple: Any, axis: int = 0) -> Tensor:
    """Tensors one behind the other along an axis."""
    return topi.concatenate(items("concatenate", "a_tuple", a_tuple), axis=axis)


def stack(tensors: Any, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    return topi.stack(items("stack", "tensors", tensors), axis=axis)


def split(ary: Tensor, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    """Equal parts along an axis, or the parts between indices."""
    at = axis_index("split", axis, len(ary.shape))
    if isinstance(indices_or_sections, int):
        return list(topi.split(ary, indices_or_sections, axis=at))
    ends = [0, *items("split", "indices_or_sections", indices_or_sections), ary.shape[at]]
    return [topi.strided_slice(ary, begin=[a], end=[b], axes=(at,)) for a, b in zip(ends, ends[1:])]


def take(a: Tensor, indices: Tensor, axis: Any = None, batch_dims: int = 0, mode: str = "clip") -> Tensor:
    """Elements of a at indices along an axis; mode: "clip", "wrap", "fast" (an index out of range is an error)."""
    if batch_dims:
        raise ArgumentError("take: batch_dims", "topi.gather_nd has batch_dims")
    return topi.take(a, indices, axis=axis, mode="raise" if mode == "fast" else mode)


def gather(data: Tensor, axis: int, indices: Tensor) -> Tensor:
    """data, with indices in the place of the index along an axis."""
    return topi.gather(data, indices, axis=axis)


def gather_nd(a: Tensor, indices: Tensor, batch_dims: int = 0) -> Tensor:
    """y[i..., j...] = a[indices[0, i...], indices[1, i...], ..., j...]."""
    rank = len(indices.shape)
    if batch_dims:
        raise ArgumentError("gather_nd: batch_dims", "tilewright.topi.gather_nd has it")
    return topi.gather_nd(a, topi.transpose(indices, (*range(1, rank), 0)))


def scatter_nd(data: Tensor, indices: Tensor, updates: Tensor, mode: str = "update") -> Tensor:
    """data, with updates[i..., j...] at (indices[0, i...], indices[1, i...], ..., j...)."""
    rank = len(indices.shape)
    return topi.scatter_nd(data, topi.transpose(indices, (*range(1, rank), 0)), updates, reduction=_reduction(mode))


def scatter_elements(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0,
                     reduction: str = "update") -> Tensor:
    """data, with updates at indices along an axis."""
    return topi.scatter(data, indices, updates, axis=axis, reduction=_reduction(reduction))


def _reduction(name: str) -> str:
    return "none" if name == "update" else name


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """The product of matrices."""
    return topi.matmul(a, b, transpose_a=transp_a, transpose_b=transp_b)


def tensordot(a: Tensor, b: Tensor, axes: Any) -> Tensor:
    """The sum of products over axes of both."""
    if isinstance(axes, (list, tuple)) and len(axes) == 2 and isinstance(axes[0], int):
        axes = ([axes[0]], [axes[1]])
    return topi.tensordot(a, b, axes=axes)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: str = "float32") -> Tensor:
    """start, start + step, ... below stop."""
    return topi.arange(start, stop, step, dtype=dtype)


def meshgrid(a_tuple: Any, indexing: str) -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid."""
    return tuple(topi.meshgrid(*items("meshgrid", "a_tuple", a_tuple), indexing=indexing))


def repeat(a: Tensor, repeats: int, axis: Any = None) -> Tensor:
    """Every element along an axis several times in a row."""
    return topi.repeat(a, repeats, axis=axis)


def tile(a: Tensor, reps: Any) -> Tensor:
    """a side by side with itself."""
    return topi.tile(a, reps)


def where(condition: Tensor, x: Any, y: Any) -> Tensor:
    """x where condition is not 0, else y."""
    chosen = condition if condition.dtype == "bool" else topi.not_equal(condition, 0)
    return topi.where(chosen, x, y)


def one_hot(indices: Tensor, on_value: Any, off_value: Any, depth: int, axis: int, dtype: str) -> Tensor:
    """on_value where a new axis has the index, else off_value."""
    return topi.one_hot(indices, depth=depth, on=on_value, off=off_value, axis=axis, dtype=dtype)


def shape(array: Tensor, dtype: str = "int32") -> Tensor:
    """The extents of a tensor, as a vector."""
    extents = array.shape or (0,)                            # a scalar has none: y is empty

    def at(i: tir.Expr) -> tir.Expr:
        out = tir.convert(extents[-1]).astype(dtype)
        for n in range(len(extents) - 2, -1, -1):
            out = te.if_then_else(i == n, tir.convert(extents[n]).astype(dtype), out)
        return out
    return te.compute((len(array.shape),), at, name="shape")


def ndarray_size(array: Tensor, dtype: str = "int32") -> Tensor:
    """The number of elements, a scalar."""
    total: Any = tir.const(1, dtype)
    for n in array.shape:
        total = total * tir.convert(n).astype(dtype)
    return te.compute((), lambda: total, name="ndarray_size")


def sequence_mask(data: Tensor, valid_length: Tensor, mask_value: float = 0, axis: int = 0) -> Tensor:
    """data, and mask_value behind the end of each sequence; axis: that of the steps, 0 or 1."""
    check_rank("sequence_mask", "data", data, 2, 100)
    if axis not in (0, 1):
        raise ArgumentError(f"sequence_mask: axis is {described(axis)}", "0 or 1; the other one counts the sequences")
    along("sequence_mask", "valid_length", valid_length, data, 1 - axis)
    wide = "float64" if dt.is_float(valid_length.dtype) else "int64"

    def at(*i: Any) -> tir.Expr:
        inside = i[axis].astype(wide) < valid_length(i[1 - axis]).astype(wide)
        return te.if_then_else(inside, data(*i), tir.const(mask_value, data.dtype))
    return te.compute(data.shape, at, name="sequence_mask")


def adv_index(data: Tensor, indices: Any) -> Tensor:
    """data[indices], by tensors of integers."""
    return topi.index_get(data, items("adv_index", "indices", indices))


def sliding_window(data: Tensor, axis: int, window_shape: Any, strides: Any) -> Tensor:
    """Windows over the axes from `axis` on: data[lead..., windows..., elements of a window...]."""
    first = axis_index("sliding_window", axis, len(data.shape))
    sizes = list(window_shape) if isinstance(window_shape, (list, tuple)) else [window_shape]
    steps, y = each(strides, len(sizes)), data
    same_count("sliding_window", len(sizes), strides=steps)
    for n, (size, step) in enumerate(zip(sizes, steps)):
        y = topi.sliding_window(y, size=size, step=step, axis=first + n)
    return y


def trilu(data: Tensor, k: Any, upper: bool) -> Tensor:
    """The upper or the lower triangle."""
    return (topi.triu if upper else topi.tril)(data, k=k)


def layout_transform(array: Tensor, src_layout: str, dst_layout: str, schedule_rule: str = "None") -> Tensor:
    """The elements in another layout: "NCHW" to "NHWC" or "NCHW16c". Blocks divide the extents."""
    op = "layout_transform"
    source, target = (_layout(op, text) for text in (src_layout, dst_layout))
    names = {c for c, _ in source if c.isupper()}
    if {c for c, _ in target if c.isupper()} != names or len(source) != len(array.shape):
        raise ArgumentError(f"{op}: {src_layout} to {dst_layout} of {len(array.shape)} dimension(s)")
    inner, outer = ({c.upper(): f for c, f in axes if c.islower()} for axes in (source, target))
    for (c, f), n in zip(source, array.shape):
        if c.islower():
            check_extent(op, f"the extent of {c} in {src_layout}", n, f)
    whole = {c: n * inner.get(c, 1) for (c, _), n in zip(source, array.shape) if c.isupper()}
    for c, f in outer.items():
        size = constant(whole[c])
        if size is not None and size % f:
            raise ArgumentError(f"{op}: the extent of {c} in {src_layout} of {shape_text(array.shape)} is {size}, no "
                                f"multiple of {f} in {dst_layout}", "topi.nn.pad first")
    shape = [f if c.islower() else tir.floordiv(whole[c], outer.get(c, 1)) for c, f in target]

    def at(*i: Any) -> tir.Expr:
        parts = {c: v for (c, _), v in zip(target, i)}
        place = {c: parts[c] * outer[c] + parts[c.lower()] if c in outer else parts[c] for c in names}
        return array(*(tir.floormod(place[c.upper()], f) if c.islower() else tir.floordiv(place[c], inner[c])
                       if c in inner else place[c] for c, f in source))
    return te.compute(shape, at, name=op)


def _layout(op: str, text: str) -> list[tuple[str, int]]:
    """The axes of a layout: a letter for each, and for the small ones, which are blocks, their extent."""
    found = re.findall(r"([A-Z])|([1-9][0-9]*)([a-z])", text)
    axes = [(big or small, int(size or 0)) for big, size, small in found]
    letters = [c for c, _ in axes]
    if "".join(f"{size or ''}{c}" for c, size in axes) != text or len(set(letters)) < len(letters) or any(
            c.upper() not in letters for c in letters):
        raise ArgumentError(f"{op}: {text!r} is no layout", 'each axis is one capital, and at most one block of it, '
                            'with its extent, a small letter: "NCHW16c"')
    return axes


# orders


def sort(data: Tensor, axis: int = -1, is_ascend: bool = True) -> Tensor:
    """The elements along an axis in order."""
    return topi.sort(data, axis=axis, descending=not is_ascend)


def argsort(data: Tensor, valid_count: Any = None, axis: int = -1, is_ascend: bool = True,
            dtype: str = "float32") -> Tensor:
    """The places of the elements along an axis in order."""
    if valid_count is not None:
        raise ArgumentError("argsort: valid_count", "mask the elements first")
    return topi.argsort(data, axis=axis, descending=not is_ascend, dtype=dtype)


def topk(data: Tensor, k: Any = 1, axis: int = -1, ret_type: str = "both", is_ascend: bool = False,
         dtype: str = "int64") -> Any:
    """The k largest elements along an axis, all for k < 1, and their places: ret_type "both", "values", "indices"."""
    if ret_type not in ("both", "values", "indices"):
        raise ArgumentError(f"topk: ret_type is {described(ret_type)}", '"both", "values" or "indices"')
    if isinstance(k, int) and k < 1:
        k = data.shape[axis_index("topk", axis, len(data.shape))]
    values, places = topi.topk(data, k=k, axis=axis, largest=not is_ascend, dtype=dtype)
    return [values, places] if ret_type == "both" else values if ret_type == "values" else places


def cumsum(data: Tensor, axis: Any = None, dtype: Any = None, exclusive: Any = None) -> Tensor:
    """Running sums along an axis; of all elements for None."""
    source = topi.flatten(data) if axis is None else data
    return topi.cumsum(source, axis=axis or 0, exclusive=bool(exclusive), dtype=dtype or data.dtype)


def cumprod(data: Tensor, axis: Any = None, dtype: Any = None, exclusive: Any = None) -> Tensor:
    """Running products along an axis; of all elements for None."""
    source = topi.flatten(data) if axis is None else data
    return topi.cumprod(source, axis=axis or 0, exclusive=bool(exclusive), dtype=dtype or data.dtype)


def searchsorted(sorted_sequence: Tensor, values: Tensor, right: bool = False, out_dtype: str = "int64") -> Tensor:
    """Where values belong in rows that are in order."""
    return topi.searchsorted(sorted_sequence, values, side="right" if right else "left", dtype=out_dtype)


def broadcast_to(data: Tensor, shape: Any) -> Tensor:
    """data repeated to a shape."""
    return topi.broadcast_to(data, items("broadcast_to", "shape", shape))


def einsum(subscripts: str, *operand: Tensor) -> Tensor:
    """The sum of products that the subscripts say."""
    return topi.einsum(subscripts, *operand)


def eye(n: int, m: int | None = None, k: int = 0, dtype: str = "float32") -> Tensor:
    """1 on a diagonal, else 0."""
    return topi.eye(n, m, k=k, dtype=dtype)


NAMES: dict[str, Any] = {f.__name__: taking_numbers(f) for f in (
    expand_dims, transpose, flip, reverse_sequence, strided_slice, reshape, squeeze, concatenate, stack, split, take,
    gather, gather_nd, scatter_nd, scatter_elements, matmul, tensordot, arange, meshgrid, repeat, tile, where, one_hot,
    shape, ndarray_size, sequence_mask, adv_index, sliding_window, trilu, layout_transform, sort, argsort, topk, cumsum,
    cumprod, searchsorted, broadcast_to, einsum, eye)}
