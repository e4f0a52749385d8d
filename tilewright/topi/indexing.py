"""Elements at places that other tensors say: gathers, scatters, rows of tables.

An index below 0 counts from the end. Where none of the modes "wrap", "clip" and "exact" says otherwise, an index out of
range is an error of the kernel while it runs.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, if_then_else, maximum, minimum, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr, Var
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.sampling import clamped
from tilewright.topi.shapes import (
    as_shape,
    axis_index,
    check,
    check_choice,
    check_extent,
    check_rank,
    check_tensors,
    constant,
    replaced,
)
from tilewright.topi.shaping import flatten
from tilewright.topi.statements import each, written
from tilewright.topi.types import accumulator, dtype_name, rounded

MODES = ("raise", "wrap", "clip", "exact")


def signed(e: Expr) -> Expr:
    """An index as int32 or int64; what uint64 holds beyond int64 becomes its largest number."""
    if e.dtype == "uint64":
        e = minimum(e, const((1 << 63) - 1, "uint64"))
    return e if e.dtype in ("int32", "int64") else cast("int32" if dt.bits_of(e.dtype) < 32 else "int64", e)


def from_end(index: Expr, extent: Any) -> Expr:
    """index, counted from the end where it is negative."""
    i = signed(index)
    return select(binary("lt", i, 0), binary("add", i, extent), i)


def _placed(index: Expr, extent: Any, mode: str) -> Expr:
    if mode == "exact":
        return signed(index)
    if mode == "wrap":
        own = index if index.dtype == "uint64" else signed(index)
        return signed(binary("floormod", own, cast(own.dtype, extent)))
    return clamped(signed(index), extent) if mode == "clip" else from_end(index, extent)


def _check_indices(op: str, indices: Any) -> None:
    check_tensors(op, indices=indices)
    check(dt.is_integer(indices.dtype), op, f"indices are {indices.dtype}, integers are needed",
          'convert them: indices.astype("int64")')


def take(x: Tensor, indices: Tensor, *, axis: int | None = None, mode: str = "raise") -> Tensor:
    """y[..., j..., ...] = x[..., indices[j...], ...] along an axis; of all elements, row by row, for None.

    mode, for indices out of range: "raise", "wrap" (the remainder), "clip" (the nearest one; a negative one is 0),
    "exact" (as "raise", and one below 0 is out of range too).
    """
    op = "take"
    check_tensors(op, x=x)
    _check_indices(op, indices)
    check_choice(op, "mode", mode, MODES)
    source = flatten(x) if axis is None else x
    at, rank = 0 if axis is None else axis_index(op, axis, x.ndim), indices.ndim
    empty = constant(source.shape[at]) == 0

    def read(*i: Any) -> Expr:
        if empty:
            return const(0, x.dtype)
        place = _placed(indices(*i[at:at + rank]), source.shape[at], mode)
        return source(*i[:at], place, *i[at + rank:])
    shape = (*source.shape[:at], *indices.shape, *source.shape[at + 1:])
    check(not empty or any(constant(n) == 0 for n in shape), op, f"x has the shape {shape_text(x.shape)}, without an "
          "element to take")
    return compute(shape, read, name=op)


def _check_along(op: str, x: Tensor, indices: Tensor, at: int) -> None:
    check_rank(op, "indices", indices, x.ndim)
    for n, (own, most) in enumerate(zip(indices.shape, x.shape)):
        a, b = constant(own), constant(most)
        check(n == at or a is None or b is None or a <= b, op, f"extent {n} of indices is {own}, that of x only {most}")


def gather(x: Tensor, indices: Tensor, *, axis: int = 0, mode: str = "raise") -> Tensor:
    """y[i] = x[i], with indices[i] in the place of the index along an axis (NumPy's take_along_axis).

    y: the shape of indices, whose other extents are at most those of x. mode: as in `take`.
    Raises TensorExpressionError where an extent is known to be larger.
    """
    op = "gather"
    check_tensors(op, x=x)
    _check_indices(op, indices)
    check_choice(op, "mode", mode, MODES)
    at = axis_index(op, axis, x.ndim)
    _check_along(op, x, indices, at)
    if constant(x.shape[at]) == 0:
        check(any(constant(n) == 0 for n in indices.shape), op, f"x has the shape {shape_text(x.shape)}, without an "
              "element to gather")
        return compute(indices.shape, lambda *i: const(0, x.dtype), name=op)
    return compute(indices.shape, lambda *i: x(*replaced(i, at, _placed(indices(*i), x.shape[at], mode))), name=op)


def _depth(op: str, x: Tensor, indices: Tensor, batch: int = 0) -> int:
    """The number of dimensions of x that the last axis of indices says."""
    check_rank(op, "indices", indices, batch + 1, 100)
    depth = constant(indices.shape[-1])
    check(depth is not None and batch + depth <= x.ndim, op, f"the last extent of indices is {indices.shape[-1]}, a "
          f"number from 0 to {x.ndim - batch} is needed")
    return depth or 0


def _point(read: Callable[..., Expr], lead: Sequence[Any], extents: Sequence[Any]) -> tuple[Expr, ...]:
    return tuple(from_end(read(*lead, k), n) for k, n in enumerate(extents))


def gather_nd(x: Tensor, indices: Tensor, *, batch_dims: int = 0) -> Tensor:
    """y[b..., i..., j...] = x[b..., indices[b..., i..., 0], indices[b..., i..., 1], ..., j...].

    The last extent of indices is constant; batch_dims: the number of dimensions b that x and indices share.
    """
    op = "gather_nd"
    check_tensors(op, x=x)
    _check_indices(op, indices)
    check(isinstance(batch_dims, int) and 0 <= batch_dims <= min(x.ndim, indices.ndim - 1), op,
          f"batch_dims is {described(batch_dims)}, x has {x.ndim} dimension(s), indices {indices.ndim}")
    depth = _depth(op, x, indices, batch_dims)
    for n in range(batch_dims):
        check_extent(op, f"extent {n} of indices", indices.shape[n], x.shape[n])
    inner, lead = batch_dims + depth, indices.ndim - 1
    chosen = x.shape[batch_dims:inner]
    shape = (*indices.shape[:-1], *x.shape[inner:])
    if any(constant(n) == 0 for n in chosen):
        check(any(constant(n) == 0 for n in shape), op, f"x has the shape {shape_text(x.shape)}, without an element to "
              "gather")
        return compute(shape, lambda *i: const(0, x.dtype), name=op)
    return compute(shape, lambda *i: x(*i[:batch_dims], *_point(indices, i[:lead], chosen), *i[lead:]), name=op)


# scatters


def _both(number: str, logic: str) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: binary(logic if dt.is_bool(a.dtype) else number, a, b)


_COMBINE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "none": lambda a, b: b, "add": _both("add", "or"), "mul": _both("mul", "and"),
    "min": lambda a, b: binary("and", a, b) if dt.is_bool(a.dtype) else minimum(a, b),
    "max": lambda a, b: binary("or", a, b) if dt.is_bool(a.dtype) else maximum(a, b),
}
Place = Callable[[BufferVar, tuple[Expr, ...]], tuple[Expr, ...]]


def scattered(op: str, x: Tensor, indices: Tensor, updates: Tensor, reduction: str, place: Place) -> Tensor:
    """x, changed at place(indices, i) for each index i of updates, row by row."""
    check_choice(op, "reduction", reduction, _COMBINE)
    check(updates.dtype == x.dtype, op, f"updates are {updates.dtype}, x is {x.dtype}",
          f'convert them: updates.astype("{x.dtype}")')
    wide = accumulator(x.dtype) if reduction in ("add", "mul") else x.dtype

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (old, where, new), (y,) = ins, outs
        with each(ib, x.shape) as i:
            y[i] = cast(wide, old[i])
        with each(ib, updates.shape, "j") as j:
            at = tuple(e if isinstance(e, Var) else ib.let("at", e) for e in place(where, j))
            y[at] = _COMBINE[reduction](y[at], cast(wide, new[j]))
    y, = written(op, [(x.shape, wide)], [x, indices, updates], write)
    return rounded(y, x.dtype, f"{op}_rounded")


def scatter(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "none") -> Tensor:
    """x, with updates[i] at i for each i, where indices[i] is in the place of the index along an axis.

    reduction: "none" (of several updates of an element the last one stays), or how an element and its updates, row by
    row, are combined: "add", "mul", "min", "max". indices and updates have one shape, whose other extents are at most
    those of x. Raises TensorExpressionError where shapes or types differ.
    """
    op = "scatter"
    check_tensors(op, x=x, updates=updates)
    _check_indices(op, indices)
    at = axis_index(op, axis, x.ndim)
    _check_along(op, x, indices, at)
    check_rank(op, "updates", updates, indices.ndim)
    for n, (a, b) in enumerate(zip(updates.shape, indices.shape)):
        check_extent(op, f"extent {n} of updates", a, b)
    return scattered(op, x, indices, updates, reduction,
                      lambda where, i: replaced(i, at, from_end(where[i], x.shape[at])))


def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, *, reduction: str = "none") -> Tensor:
    """x, with updates[i..., j...] at (indices[i..., 0], indices[i..., 1], ..., j...).

    The last extent of indices is constant. reduction: as in `scatter`.
    Raises TensorExpressionError where shapes or types differ.
    """
    op = "scatter_nd"
    check_tensors(op, x=x, updates=updates)
    _check_indices(op, indices)
    depth, lead = _depth(op, x, indices), indices.ndim - 1
    wanted = (*indices.shape[:-1], *x.shape[depth:])
    check_rank(op, "updates", updates, len(wanted))
    for n, (a, b) in enumerate(zip(updates.shape, wanted)):
        check_extent(op, f"extent {n} of updates", a, b)
    return scattered(op, x, indices, updates, reduction,
                      lambda where, i: (*_point(lambda *k: where[k], i[:lead], x.shape[:depth]), *i[lead:]))


# tables


def embedding(indices: Tensor, weight: Tensor, *, padding_idx: int | None = None) -> Tensor:
    """y[i..., :] = weight[indices[i...], :]; 0 where the index is padding_idx.

    weight: T[n, d]. (torch leaves the row padding_idx to its owner, who keeps it at 0.)
    """
    op = "embedding"
    check_tensors(op, weight=weight)
    _check_indices(op, indices)
    check_rank(op, "weight", weight, 2)
    count = weight.shape[0]
    if padding_idx is None:
        return take(weight, indices, axis=0)
    check(isinstance(padding_idx, int), op, f"padding_idx is {described(padding_idx)}, not an integer")
    known = constant(count)
    check(known is None or -known <= padding_idx < known, op, f"padding_idx is {padding_idx}, weight has {count} rows")
    padding = padding_idx if padding_idx >= 0 else binary("add", count, padding_idx)

    def read(*i: Any) -> Expr:
        row = from_end(indices(*i[:-1]), count)
        return if_then_else(binary("eq", row, padding), const(0, weight.dtype), weight(row, i[-1]))
    return compute((*indices.shape, weight.shape[1]), read, name=op)


def one_hot(indices: Tensor, *, depth: Any, on: Any = 1, off: Any = 0, axis: int = -1,
            dtype: Any = "float32") -> Tensor:
    """y[..., k, ...] = on where k is indices[...], else off; a new axis of extent depth, at a position of the result.

    An index that is not in [0, depth) gives off everywhere.
    """
    op = "one_hot"
    _check_indices(op, indices)
    extent, = as_shape(op, depth, 1)
    at, kind = axis_index(op, axis, indices.ndim + 1), dtype_name(dtype)

    def element(*i: Any) -> Expr:
        k = signed(indices(*i[:at], *i[at + 1:]))
        return select(binary("eq", k, i[at]), const(on, kind), const(off, kind))
    return compute((*indices.shape[:at], extent, *indices.shape[at:]), element, name=op)


__all__ = ["embedding", "gather", "gather_nd", "one_hot", "scatter", "scatter_nd", "take"]
