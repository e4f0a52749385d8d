"""Elements that a mask, a number of them, or a name of a group chooses; results of unknown size are counted.

A counted result has room for all elements, and beside it a tensor int64[1] that says how many there are; behind them
it is 0.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import all_of, binary, if_then_else, maximum, minimum, select
from tilewright.tir.conversion import cast, const, max_value, min_value
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.indexing import from_end, gather_nd, scatter, scatter_nd, scattered, signed
from tilewright.topi.reductions import truth
from tilewright.topi.shapes import (
    Shape,
    as_shape,
    axis_index,
    broadcast_shapes,
    check,
    check_choice,
    check_extent,
    check_rank,
    check_tensors,
    constant,
    element,
    product,
    replaced,
    same_shape,
)
from tilewright.topi.shaping import broadcast_to, flatten
from tilewright.topi.statements import each, variable, written
from tilewright.topi.types import BOOL, FLOAT, INDEX, NUMBER, accumulator, check_kind, check_whole

ONE = IntImm(1)
SEGMENTS = ("sum", "mean", "prod", "min", "max")


# masks


def nonzero(x: Tensor) -> tuple[Tensor, Tensor]:
    """(places, number): the indices of the elements that are not 0, row by row.

    places: int64[n, r] for n elements of r dimensions, the indices of an element in a row. (ONNX has them in columns.)
    """
    op = "nonzero"
    check_tensors(op, x=x)
    total, rank = simplified(product(x.shape)), x.ndim

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (given,), (places, number) = ins, outs
        with ib.for_range(0, total, name="k") as k, ib.for_range(0, rank, name="part") as part:
            places[k, part] = const(0, INDEX)
        number[0] = const(0, INDEX)
        with each(ib, x.shape) as i, ib.if_scope(truth(given[i])):
            for part, v in enumerate(i):
                places[number[0], part] = cast(INDEX, v)
            number[0] = number[0] + 1
    places, number = written(op, [((total, IntImm(rank)), INDEX), ((ONE,), INDEX)], [x], write)
    return places, number


def masked_select(x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """(values, number): the elements of x where mask holds, row by row; both broadcast. values: T[n], counted.

    Raises TensorExpressionError unless mask has bools.
    """
    op = "masked_select"
    check_tensors(op, x=x, mask=mask)
    check_kind(op, "mask", mask.dtype, BOOL, "compare first: topi.not_equal(x, 0)")
    shape = broadcast_shapes(op, x.shape, mask.shape)
    chosen = compute(shape, lambda *i: element(mask, i), name=f"{op}_mask")
    total = simplified(product(shape))

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (given, wanted), (values, number) = ins, outs
        with ib.for_range(0, total, name="k") as k:
            values[k] = const(0, x.dtype)
        number[0] = const(0, INDEX)
        with each(ib, shape) as i, ib.if_scope(wanted[i]):
            values[number[0]] = given[i]
            number[0] = number[0] + 1
    values, number = written(op, [((total,), x.dtype), ((ONE,), INDEX)], [broadcast_to(x, shape), chosen], write)
    return values, number


def compress(x: Tensor, condition: Tensor, *, axis: int | None = None) -> tuple[Tensor, Tensor]:
    """(y, number): the slices of x along an axis where condition holds, counted; of all elements, row by row, for None.

    condition: bool[m]; m is at most the extent, and that of y. As in ONNX. Raises TensorExpressionError where it is
    known to be more.
    """
    op = "compress"
    check_tensors(op, x=x, condition=condition)
    check_rank(op, "condition", condition, 1)
    check_kind(op, "condition", condition.dtype, BOOL)
    source = flatten(x) if axis is None else x
    at = 0 if axis is None else axis_index(op, axis, x.ndim)
    extent = condition.shape[0]
    known, most = constant(extent), constant(source.shape[at])
    check(known is None or most is None or known <= most, op, f"condition has {extent} elements, axis {at} only {most}")
    places, number = nonzero(condition)
    shape = replaced(source.shape, at, extent)
    if known == 0 or most == 0:
        return compute(shape, lambda *i: const(0, x.dtype), name=op), number

    def at_place(*i: Any) -> Expr:
        there = binary("lt", cast(INDEX, i[at]), number(0))
        return if_then_else(there, source(*replaced(i, at, places(i[at], 0))), const(0, x.dtype))
    return compute(shape, at_place, name=op), number


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x, with the elements of source in turn, row by row, where mask holds; where source ends, x stays.

    mask: bools, broadcasts to x. (torch raises where source is too short.) Raises TensorExpressionError where types
    differ.
    """
    op = "masked_scatter"
    check_tensors(op, x=x, mask=mask, source=source)
    check_kind(op, "mask", mask.dtype, BOOL, "compare first: topi.not_equal(x, 0)")
    check(source.dtype == x.dtype, op, f"source is {source.dtype}, x is {x.dtype}",
          f'convert it: source.astype("{x.dtype}")')
    check(same_shape(broadcast_shapes(op, mask.shape, x.shape), x.shape), op, f"mask has the shape "
          f"{shape_text(mask.shape)}, x {shape_text(x.shape)}")
    chosen = compute(x.shape, lambda *i: element(mask, i), name=f"{op}_mask")
    flat, count = flatten(source), simplified(product(source.shape))

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (old, wanted, new), (y,) = ins, outs
        taken = variable(ib, 0, INDEX, "taken")
        with each(ib, x.shape) as i:
            y[i] = old[i]
            with ib.if_scope(all_of(wanted[i], binary("lt", taken[0], cast(INDEX, count)))):
                y[i] = new[taken[0]]
                taken[0] = taken[0] + 1
    return written(op, [(x.shape, x.dtype)], [x, chosen, flat], write)[0]


# places of several tensors


def index_put(x: Tensor, indices: Any, updates: Tensor, *, accumulate: bool = False) -> Tensor:
    """x, with updates[i..., j...] at (indices[0][i...], indices[1][i...], ..., j...); added where accumulate holds.

    indices: one tensor of integers for each of the first dimensions; they broadcast, updates too. Of several updates
    of an element the last one stays. Raises TensorExpressionError where shapes or types differ.
    """
    op = "index_put"
    check_tensors(op, x=x, updates=updates)
    lead, places = _places(op, x, indices)
    wanted = (*lead, *x.shape[constant(places.shape[-1]):])
    check(same_shape(broadcast_shapes(op, updates.shape, wanted), wanted), op, f"updates have the shape "
          f"{shape_text(updates.shape)}, {shape_text(wanted)} is needed")
    return scatter_nd(x, places, broadcast_to(updates, wanted), reduction="add" if accumulate else "none")


def _places(op: str, x: Tensor, indices: Any) -> tuple[Shape, Tensor]:
    """(the shape that several indices have together, the tensor of their points)."""
    given: list[Tensor] = list(indices) if isinstance(indices, (tuple, list)) else [indices]
    check(1 <= len(given) <= x.ndim, op, f"{len(given)} indices are given, x has {x.ndim} dimension(s)")
    for n, index in enumerate(given):
        check_whole(op, f"indices[{n}]", index)
    lead = broadcast_shapes(op, *(index.shape for index in given))

    def part(*i: Any) -> Expr:
        values = [cast(INDEX, signed(element(index, i[:-1]))) for index in given]
        out = values[-1]
        for n in range(len(values) - 2, -1, -1):
            out = select(binary("eq", i[-1], n), values[n], out)
        return out
    return lead, compute((*lead, len(given)), part, name=f"{op}_places")


def index_get(x: Tensor, indices: Any) -> Tensor:
    """y[i..., j...] = x[indices[0][i...], indices[1][i...], ..., j...]: x[indices] of NumPy, by tensors of integers.

    indices: one tensor for each of the first dimensions; they broadcast.
    """
    op = "index_get"
    check_tensors(op, x=x)
    return gather_nd(x, _places(op, x, indices)[1])


def index_reduce(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "add") -> Tensor:
    """x, with updates[..., k, ...] at index indices[k] along an axis for each k (torch's index_copy, index_add).

    indices: integers [n]; updates: the shape of x, but n along the axis; reduction: as in `scatter`.
    Raises TensorExpressionError where shapes or types differ.
    """
    op = "index_reduce"
    check_tensors(op, x=x, updates=updates)
    check_whole(op, "indices", indices, 1)
    at = axis_index(op, axis, x.ndim)
    check_rank(op, "updates", updates, x.ndim)
    for n, (a, b) in enumerate(zip(updates.shape, replaced(x.shape, at, indices.shape[0]))):
        check_extent(op, f"extent {n} of updates", a, b, f"x has the shape {shape_text(x.shape)}")
    return scattered(op, x, indices, updates, reduction,
                     lambda where, i: replaced(i, at, from_end(where[i[at]], x.shape[at])))


def scatter_reduce(x: Tensor, indices: Tensor, updates: Tensor, *, axis: int = 0, reduction: str = "sum",
                   include_self: bool = True) -> Tensor:
    """x, with its elements and the updates that `scatter` puts there reduced: "sum", "mean", "prod", "min", "max".

    Without include_self only the updates count, where there are any. As torch's scatter_reduce.
    Raises TensorExpressionError where shapes or types differ, and for a mean of integers.
    """
    op = "scatter_reduce"
    check_tensors(op, x=x, updates=updates)
    check_choice(op, "reduction", reduction, SEGMENTS)
    check_kind(op, "x", x.dtype, FLOAT if reduction == "mean" else NUMBER)
    check_whole(op, "indices", indices, x.ndim)
    check(updates.dtype == x.dtype, op, f"updates are {updates.dtype}, x is {x.dtype}",
          f'convert them: updates.astype("{x.dtype}")')
    at = axis_index(op, axis, x.ndim)
    name = {"sum": "add", "mean": "add", "prod": "mul"}.get(reduction, reduction)
    wide = accumulator(x.dtype)
    ones = compute(updates.shape, lambda *i: const(1, "int32"), name=f"{op}_ones")
    none = compute(x.shape, lambda *i: const(0, "int32"), name=f"{op}_none")
    counts = scatter(none, indices, ones, axis=at, reduction="add")
    own = compute(x.shape, lambda *i: cast(wide, x(*i)) if include_self else select(
        binary("gt", counts(*i), 0), _neutral(reduction, wide), cast(wide, x(*i))), name=f"{op}_own")
    new = compute(updates.shape, lambda *i: cast(wide, updates(*i)), name=f"{op}_updates")
    total = scatter(own, indices, new, axis=at, reduction=name)

    def finished(*i: Any) -> Expr:
        if reduction != "mean":
            return cast(x.dtype, total(*i))
        several = maximum(counts(*i) + (1 if include_self else 0), const(1, "int32"))
        return cast(x.dtype, total(*i) / cast(wide, several))
    return compute(x.shape, finished, name=op)


def repeat_interleave(x: Tensor, repeats: Tensor, *, size: Any, axis: int = 0) -> Tensor:
    """Element k of x along an axis repeats[k] times in a row, up to `size` elements; 0 behind the last one.

    repeats: integers [n]; numbers below 0 count as 0. Raises TensorExpressionError where the extents differ.
    """
    op = "repeat_interleave"
    check_tensors(op, x=x)
    check_whole(op, "repeats", repeats, 1)
    at, (extent,) = axis_index(op, axis, x.ndim), as_shape(op, size, 1)
    n = repeats.shape[0]
    check_extent(op, "the extent of repeats", n, x.shape[at], f"x has the shape {shape_text(x.shape)}")

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (times,), (places,) = ins, outs
        with ib.for_range(0, extent, name="k") as k:
            places[k] = const(-1, INDEX)
        end = variable(ib, 0, INDEX, "end")
        with ib.for_range(0, n, name="k") as k:
            room = cast(INDEX, extent) - end[0]
            stop = ib.let("stop", end[0] + maximum(minimum(cast(INDEX, signed(times[k])), room), 0))
            with ib.for_range(end[0], stop, name="at") as where:
                places[where] = cast(INDEX, k)
            end[0] = stop
    places, = written(f"{op}_places", [((extent,), INDEX)], [repeats], write)
    shape = replaced(x.shape, at, extent)
    if constant(n) == 0:
        return compute(shape, lambda *i: const(0, x.dtype), name=op)
    return compute(shape, lambda *i: if_then_else(binary("ge", places(i[at]), 0), x(*replaced(i, at, places(i[at]))),
                                                  const(0, x.dtype)), name=op)


# groups


def _neutral(reduction: str, dtype: str) -> Expr:
    values: dict[str, Callable[[], Expr]] = {"min": lambda: max_value(dtype), "max": lambda: min_value(dtype),
                                             "prod": lambda: const(1, dtype)}
    return values.get(reduction, lambda: const(0, dtype))()


def _joined(reduction: str, a: Expr, b: Expr) -> Expr:
    if reduction in ("min", "max"):
        return (minimum if reduction == "min" else maximum)(a, b)
    return binary("mul" if reduction == "prod" else "add", a, b)


def segment_reduce(x: Tensor, indices: Tensor, *, segments: Any, reduction: str = "sum") -> Tensor:
    """y[s, ...] = the sum of x[k, ...] over all k with indices[k] == s; 0 of none.

    x: T[n, ...]; indices: integers [n], below 0 they count from the end; segments: the extent of y along the first
    axis. reduction: "sum", "mean", "prod", "min", "max". An index out of range is an error of the kernel.
    Raises TensorExpressionError for a mean of integers.
    """
    op = "segment_reduce"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 1, 100)
    check_kind(op, "x", x.dtype, FLOAT if reduction == "mean" else NUMBER)
    check_whole(op, "indices", indices, 1)
    check_choice(op, "reduction", reduction, SEGMENTS)
    check_extent(op, "the extent of indices", indices.shape[0], x.shape[0], f"x has the shape {shape_text(x.shape)}")
    several, = as_shape(op, segments, 1)
    shape, rest = (several, *x.shape[1:]), x.shape[1:]
    wide = x.dtype if reduction in ("min", "max") else accumulator(x.dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (rows, where), (y, counts) = ins, outs
        with ib.for_range(0, several, name="segment") as s:
            counts[s] = const(0, INDEX)
            with each(ib, rest) as i:
                y[(s,) + i] = _neutral(reduction, wide)
        with ib.for_range(0, x.shape[0], name="k") as k:
            s = ib.let("s", from_end(where[k], several))
            counts[s] = counts[s] + 1
            with each(ib, rest) as i:
                y[(s,) + i] = _joined(reduction, y[(s,) + i], cast(wide, rows[(k,) + i]))
    y, counts = written(f"{op}_{reduction}", [(shape, wide), ((several,), INDEX)], [x, indices], write)

    def finished(s: Any, *i: Any) -> Expr:
        value: Expr = y(s, *i)
        if reduction == "mean":
            value = binary("div", value, cast(wide, maximum(counts(s), const(1, INDEX))))
        return cast(x.dtype, select(binary("gt", counts(s), const(0, INDEX)), value, const(0, wide)))
    return compute(shape, finished, name=op)


def embedding_bag(indices: Tensor, weight: Tensor, offsets: Tensor, weights: Tensor | None = None, *,
                  reduction: str = "mean") -> Tensor:
    """y[b, :] = the mean of the rows weight[indices[k], :] over offsets[b] <= k < offsets[b + 1]; 0 of none.

    indices: integers [n]; weight: T[rows, d]; offsets: integers [b], ascending; the last bag ends at n. weights: T[n],
    which multiply the rows of a "sum". reduction: "mean", "sum", "max". As torch's embedding_bag.
    Raises TensorExpressionError for weights with another reduction.
    """
    op = "embedding_bag"
    check_tensors(op, weight=weight)
    check_rank(op, "weight", weight, 2)
    check_kind(op, "weight", weight.dtype, FLOAT)
    check_whole(op, "indices", indices, 1)
    check_whole(op, "offsets", offsets, 1)
    check_choice(op, "reduction", reduction, ("mean", "sum", "max"))
    check(weights is None or reduction == "sum", op, f"weights are given, and reduction is {reduction!r}", '"sum"')
    if weights is not None:
        check_tensors(op, weights=weights)
        check_rank(op, "weights", weights, 1)
        check_extent(op, "the extent of weights", weights.shape[0], indices.shape[0])
    (rows, width), bags, n = weight.shape, offsets.shape[0], indices.shape[0]
    wide = accumulator(weight.dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (which, table, starts, *more), (y,) = ins, outs
        with ib.for_range(0, bags, name="bag") as b, ib.for_range(0, width, name="column") as d:
            start = ib.let("start", cast(INDEX, starts[b]))
            last = binary("eq", b, binary("sub", bags, 1))
            end = ib.let("end", if_then_else(last, cast(INDEX, n), cast(INDEX, starts[b + 1])))
            total = variable(ib, _neutral(reduction, wide), wide, "total")
            with ib.for_range(start, end, name="k") as k:
                value = cast(wide, table[from_end(which[k], rows), d])
                total[0] = _joined(reduction, total[0], value * cast(wide, more[0][k]) if more else value)
            found = total[0] / cast(wide, maximum(end - start, const(1, INDEX))) if reduction == "mean" else total[0]
            y[b, d] = cast(weight.dtype, select(binary("gt", end, start), found, const(0.0, wide)))
    given = [indices, weight, offsets] + ([weights] if weights is not None else [])
    return written(op, [((bags, width), weight.dtype)], given, write)[0]


# lengths


def sequence_mask(lengths: Tensor, *, size: Any) -> Tensor:
    """y[..., j] = j < lengths[...]: bools of a new last axis of extent size."""
    op = "sequence_mask"
    check_whole(op, "lengths", lengths)
    extent, = as_shape(op, size, 1)
    return compute((*lengths.shape, extent), lambda *i: binary("lt", cast(INDEX, i[-1]), cast(INDEX, signed(lengths(
        *i[:-1])))), name=op)


def reverse_sequence(x: Tensor, lengths: Tensor, *, axis: int = 0, batch_axis: int = 1) -> Tensor:
    """x, with the first lengths[b] elements along an axis in reverse order, b: the index along batch_axis.

    lengths: integers [b], up to the extent. Raises TensorExpressionError where both axes are one.
    """
    op = "reverse_sequence"
    check_tensors(op, x=x)
    check_whole(op, "lengths", lengths, 1)
    at, batch = axis_index(op, axis, x.ndim), axis_index(op, batch_axis, x.ndim, "batch_axis")
    check(at != batch, op, f"axis and batch_axis are both {at}")
    check_extent(op, "the extent of lengths", lengths.shape[0], x.shape[batch])

    def read(*i: Any) -> Expr:
        n, k = cast(INDEX, lengths(i[batch])), cast(INDEX, i[at])
        return x(*replaced(i, at, select(binary("lt", k, n), n - 1 - k, k)))
    return compute(x.shape, read, name=op)


__all__ = ["compress", "embedding_bag", "index_get", "index_put", "index_reduce",
           "masked_scatter", "masked_select", "nonzero", "repeat_interleave", "reverse_sequence", "scatter_reduce",
           "segment_reduce", "sequence_mask"]
