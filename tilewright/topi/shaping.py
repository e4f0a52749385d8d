"""Other shapes and orders of the same elements: reshape, transpose, join, split, blocks, diagonals."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.support.errors import described
from tilewright.te.conditions import state
from tilewright.te.definition import compute
from tilewright.te.extents import digits, simplified
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import all_of, binary, if_then_else, maximum, minimum
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr
from tilewright.topi.shapes import (
    as_shape,
    axis_index,
    axis_indices,
    check,
    check_choice,
    check_extent,
    check_rank,
    check_tensors,
    constant,
    count,
    element,
    is_one,
    per_axis,
    product,
    quotient,
    replaced,
    row_major,
    same_extent,
    summed,
    unequal,
)
from tilewright.topi.types import common_type


def reshape(x: Tensor, shape: Any) -> Tensor:
    """The elements of x, row by row, in another shape; an extent of -1 follows from the others.

    Dimensions are regrouped where their products agree, so that splitting one and keeping one is affine.
    States of sizes that the numbers of elements are equal; raises TensorExpressionError where they are known to differ.
    """
    op = "reshape"
    check_tensors(op, x=x)
    given = list(shape) if isinstance(shape, (tuple, list)) else [shape]
    free = [n for n, d in enumerate(given) if constant(d) == -1]
    check(len(free) <= 1, op, f"the shape {described(shape)} has several extents of -1")
    if free:
        rest = product(d for d in given if constant(d) != -1)
        check(constant(rest) != 0, op, f"the shape {described(shape)} has an extent of 0 beside -1")
        given[free[0]] = simplified(binary("floordiv", product(x.shape), rest))
    out = as_shape(op, given)
    before, after = simplified(product(x.shape)), simplified(product(out))
    if not same_extent(before, after):
        problem = f"the shape {shape_text(x.shape)} has {before} elements, {shape_text(out)} has {after}"
        check(constant(before) is None or constant(after) is None, op, problem)
        state(binary("eq", before, after), f"{op}: {problem}")
    return reshaped(x, out)


def reshaped(x: Tensor, out: tuple[Expr, ...], name: str = "reshape") -> Tensor:
    if count(x.shape) == 0:
        return compute(out, lambda *i: const(0, x.dtype), name=name)
    sources = [n for n, d in enumerate(x.shape) if not is_one(d)]
    targets = [n for n, d in enumerate(out) if not is_one(d)]

    def at(*i: Any) -> Expr:
        place: list[Any] = [0] * x.ndim
        for old, new in _groups([x.shape[n] for n in sources], [out[n] for n in targets]):
            flat = row_major([i[targets[n]] for n in new], [out[targets[n]] for n in new])
            for n, v in zip(old, digits(flat, [x.shape[sources[n]] for n in old])):
                place[sources[n]] = v
        return x(*place)
    return compute(out, at, name=name)


def _groups(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[range, range]]:
    """Runs of dimensions of both shapes with equal products, as short as constants and variables tell."""
    groups = []
    tail = 0                                          # dimensions at the end that are the same in both
    while tail < min(len(old), len(new)) and same_extent(old[-1 - tail], new[-1 - tail]):
        tail += 1
    i = j = 0
    m, n = len(old) - tail, len(new) - tail
    while i < m and j < n:
        a, b, end, stop = old[i], new[j], i + 1, j + 1
        while not same_extent(a, b):
            x, y = constant(a), constant(b)
            if x is None or y is None or end == m and stop == n:
                end, stop = m, n                      # symbolic: all that is left
                break
            if x < y and end < m or stop == n:
                a, end = simplified(product((a, old[end]))), end + 1
            else:
                b, stop = simplified(product((b, new[stop]))), stop + 1
        groups.append((range(i, end), range(j, stop)))
        i, j = end, stop
    if i < m or j < n:                                # what is left has a product of 1
        groups.append((range(i, m), range(j, n)))
    return groups + [(range(m + k, m + k + 1), range(n + k, n + k + 1)) for k in range(tail)]


def flatten(x: Tensor, *, start: int = 0, end: int = -1) -> Tensor:
    """x with its dimensions start to end as one."""
    check_tensors("flatten", x=x)
    rank = max(x.ndim, 1)                                # without dimensions it is one of extent 1
    low, high = axis_index("flatten", start, rank, "start"), axis_index("flatten", end, rank, "end")
    check(low <= high, "flatten", f"start is {start}, behind end {end}")
    return reshaped(x, (*x.shape[:low], simplified(product(x.shape[low:high + 1])), *x.shape[high + 1:]), "flatten")


def squeeze(x: Tensor, *, axis: Any = None) -> Tensor:
    """x without dimensions of extent 1: those of axis, or all whose extent is the constant 1.

    States of each symbolic extent that it is not 1, where axis is None. Raises TensorExpressionError where an extent of
    axis is not the constant 1.
    """
    check_tensors("squeeze", x=x)
    gone = [a for a in range(x.ndim) if is_one(x.shape[a])] if axis is None else axis_indices("squeeze", axis, x.ndim)
    if axis is None:
        for d in x.shape:
            if constant(d) is None:
                state(binary("ne", d, 1), f"squeeze: the extent {d} of the shape {shape_text(x.shape)} is 1, and stays")
    for a in gone:
        check_extent("squeeze", f"extent {a} of the shape {shape_text(x.shape)}", x.shape[a], 1)
    kept = [a for a in range(x.ndim) if a not in gone]
    return compute([x.shape[a] for a in kept], lambda *i: x(*_scattered(kept, i, x.ndim)), name="squeeze")


def _scattered(places: Sequence[int], values: Sequence[Any], rank: int) -> list[Any]:
    """`rank` indices: the values at their places, 0 elsewhere."""
    at = dict(zip(places, values))
    return [at.get(n, 0) for n in range(rank)]


def expand_dims(x: Tensor, *, axis: Any) -> Tensor:
    """x with new dimensions of extent 1, at positions in the result."""
    op = "expand_dims"
    check_tensors(op, x=x)
    new = axis_indices(op, axis, x.ndim + (len(axis) if isinstance(axis, (tuple, list)) else 1))
    old, rank = iter(x.shape), x.ndim + len(new)
    shape = [1 if n in new else next(old) for n in range(rank)]
    return compute(shape, lambda *i: x(*(v for n, v in enumerate(i) if n not in new)), name=op)


def transpose(x: Tensor, axes: Any = None) -> Tensor:
    """y[i[axes[0]], i[axes[1]], ...] = x[i]: the dimensions in another order, by default the reverse."""
    op = "transpose"
    check_tensors(op, x=x)
    order = tuple(reversed(range(x.ndim))) if axes is None else axis_indices(op, axes, x.ndim, "axes")
    check(len(order) == x.ndim, op, f"axes is {described(axes)}, x has {x.ndim} dimension(s)")
    return compute([x.shape[a] for a in order], lambda *i: x(*(i[order.index(a)] for a in range(x.ndim))), name=op)


def swapaxes(x: Tensor, *, axis1: int, axis2: int) -> Tensor:
    """x with two dimensions in each other's place."""
    check_tensors("swapaxes", x=x)
    a, b = axis_index("swapaxes", axis1, x.ndim, "axis1"), axis_index("swapaxes", axis2, x.ndim, "axis2")
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return transpose(x, order)


def moveaxis(x: Tensor, *, source: Any, destination: Any) -> Tensor:
    """x with dimensions moved to other positions; the others stay in order."""
    op = "moveaxis"
    check_tensors(op, x=x)
    old, new = axis_indices(op, source, x.ndim, "source"), axis_indices(op, destination, x.ndim, "destination")
    check(len(old) == len(new), op, f"source names {len(old)} axes, destination {len(new)}")
    order = [n for n in range(x.ndim) if n not in old]
    for to, from_ in sorted(zip(new, old)):
        order.insert(to, from_)
    return transpose(x, order)


def broadcast_to(x: Tensor, shape: Any) -> Tensor:
    """x repeated to a shape, by NumPy's rules. Raises TensorExpressionError where it does not fit."""
    op = "broadcast_to"
    check_tensors(op, x=x)
    out = as_shape(op, shape)
    check(len(out) >= x.ndim, op, f"the shape {shape_text(out)} has fewer dimensions than {shape_text(x.shape)}")
    for n, (own, wanted) in enumerate(zip(x.shape, out[len(out) - x.ndim:])):
        if not is_one(own) and not same_extent(own, wanted):
            raise unequal(op, own, wanted, f"extent {n} of {shape_text(x.shape)} does not fit {shape_text(out)}")
    return compute(out, lambda *i: element(x, i), name=op)


# joining and splitting


def concatenate(tensors: Sequence[Tensor], *, axis: int = 0) -> Tensor:
    """Tensors one behind the other along an axis; the other extents are the same.

    Raises TensorExpressionError where they differ.
    """
    op = "concatenate"
    given = _several(op, tensors)
    rank = given[0].ndim
    at, dtype = axis_index(op, axis, rank), common_type(op, *given)
    for n, x in enumerate(given):
        check_rank(op, f"tensor {n}", x, rank)
        for k in range(rank):
            if k != at:
                check_extent(op, f"extent {k} of tensor {n} of shape {shape_text(x.shape)}", x.shape[k],
                             given[0].shape[k])
    ends = [convert(0)]
    for x in given:
        ends.append(summed(ends[-1], x.shape[at]))

    def join(*i: Any) -> Expr:
        out: Expr | None = None
        for x, start, end in reversed(list(zip(given, ends, ends[1:]))):
            part = cast(dtype, x(*replaced(i, at, binary("sub", i[at], start))))
            out = part if out is None else if_then_else(binary("lt", i[at], end), part, out)
        assert out is not None
        return out
    return compute(replaced(given[0].shape, at, ends[-1]), join, name=op)


def _several(op: str, tensors: Any) -> list[Tensor]:
    check(isinstance(tensors, (tuple, list)) and len(tensors) > 0, op, f"{described(tensors)} is not a list of tensors")
    check_tensors(op, **{f"tensor {n}": x for n, x in enumerate(tensors)})
    return list(tensors)


def stack(tensors: Sequence[Tensor], *, axis: int = 0) -> Tensor:
    """Tensors of one shape along a new axis."""
    given = _several("stack", tensors)
    at = axis_index("stack", axis, given[0].ndim + 1)
    return concatenate([expand_dims(x, axis=at) for x in given], axis=at)


def split(x: Tensor, sections: Any, *, axis: int = 0) -> tuple[Tensor, ...]:
    """x in parts along an axis: `sections` equal ones, or parts of these sizes.

    Raises TensorExpressionError where the parts are known not to make up the extent.
    """
    op = "split"
    check_tensors(op, x=x)
    at = axis_index(op, axis, x.ndim)
    extent = x.shape[at]
    if isinstance(sections, (tuple, list)):
        sizes = list(as_shape(op, sections))
        total = summed(0, *sizes)
        check_extent(op, "the sum of the sizes", total, extent, f"x has the shape {shape_text(x.shape)}")
    else:
        several, = per_axis(op, "sections", sections, 1, 1)
        sizes = [quotient(op, f"extent {at} of the shape {shape_text(x.shape)}", extent, several)] * several
    out, start = [], convert(0)
    for size in sizes:
        def part(*i: Any, start: Expr = start) -> Expr:
            return x(*replaced(i, at, binary("add", i[at], start)))
        out.append(compute(replaced(x.shape, at, size), part, name=op))
        start = summed(start, size)
    return tuple(out)


def unstack(x: Tensor, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The parts of x along an axis of constant extent, without that axis."""
    op = "unstack"
    check_tensors(op, x=x)
    at = axis_index(op, axis, x.ndim)
    extent = constant(x.shape[at])
    check(extent is not None, op, f"extent {at} of the shape {shape_text(x.shape)} is symbolic")
    shape = x.shape[:at] + x.shape[at + 1:]
    return tuple(compute(shape, lambda *i, n=n: x(*i[:at], n, *i[at:]), name=op) for n in range(extent or 0))


# blocks of images


def depth_to_space(x: Tensor, *, block: int, mode: str = "DCR") -> Tensor:
    """y[b, c, h * block + i, w * block + j] = x[b, k, h, w]: channels as blocks of pixels.

    x: T[b, block * block * c, h, w]; k is (i * block + j) * c' + c of c' channels of y ("DCR"), or c * block * block +
    i * block + j ("CRD", torch's pixel_shuffle). Raises TensorExpressionError where the channels do not divide.
    """
    op = "depth_to_space"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 4)
    check_choice(op, "mode", mode, ("DCR", "CRD"))
    size, = per_axis(op, "block", block, 1, 1)
    depth = quotient(op, "the number of channels", x.shape[1], size * size)

    def at(b: Any, c: Any, h: Any, w: Any) -> Expr:
        inner = (h % size) * size + w % size
        k = inner * depth + c if mode == "DCR" else c * (size * size) + inner
        return x(b, k, h // size, w // size)
    return compute((x.shape[0], depth, *(simplified(product((n, size))) for n in x.shape[2:])), at, name=op)


def space_to_depth(x: Tensor, *, block: int, mode: str = "DCR") -> Tensor:
    """y[b, k, h, w] = x[b, c, h * block + i, w * block + j], the inverse of `depth_to_space`.

    Raises TensorExpressionError where the block does not divide height and width.
    """
    op = "space_to_depth"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 4)
    check_choice(op, "mode", mode, ("DCR", "CRD"))
    size, = per_axis(op, "block", block, 1, 1)
    depth = x.shape[1]
    shape = (x.shape[0], simplified(product((depth, size * size))), quotient(op, "the height", x.shape[2], size),
             quotient(op, "the width", x.shape[3], size))
    if count(x.shape) == 0:
        return compute(shape, lambda *i: const(0, x.dtype), name=op)

    def at(b: Any, k: Any, h: Any, w: Any) -> Expr:
        inner, c = (k // depth, k % depth) if mode == "DCR" else (k % (size * size), k // (size * size))
        return x(b, c, h * size + inner // size, w * size + inner % size)
    return compute(shape, at, name=op)


def pixel_shuffle(x: Tensor, *, factor: int) -> Tensor:
    """y[b, c, h * factor + i, w * factor + j] = x[b, c * factor ** 2 + i * factor + j, h, w]."""
    return depth_to_space(x, block=factor, mode="CRD")


def pixel_unshuffle(x: Tensor, *, factor: int) -> Tensor:
    """y[b, c * factor ** 2 + i * factor + j, h, w] = x[b, c, h * factor + i, w * factor + j]."""
    return space_to_depth(x, block=factor, mode="CRD")


def channel_shuffle(x: Tensor, *, groups: int, axis: int = 1) -> Tensor:
    """y[..., j * groups + g, ...] = x[..., g * n + j, ...] along an axis of groups * n channels.

    Source: Zhang and others, ShuffleNet (2017). Raises TensorExpressionError where groups does not divide them.
    """
    op = "channel_shuffle"
    check_tensors(op, x=x)
    at, (several,) = axis_index(op, axis, x.ndim), per_axis(op, "groups", groups, 1, 1)
    per = quotient(op, "the number of channels", x.shape[at], several)

    def source(c: Any) -> Expr:
        return binary("add", binary("mul", binary("floormod", c, several), per), binary("floordiv", c, several))
    return compute(x.shape, lambda *i: x(*replaced(i, at, source(i[at]))), name=op)


# diagonals


def _triangle(op: str, x: Tensor, k: int, lower: bool) -> Tensor:
    check_tensors(op, x=x)
    check_rank(op, "x", x, 2, 100)
    zero, most = const(0, x.dtype), convert(k)
    return compute(x.shape, lambda *i: if_then_else(binary("le" if lower else "ge", binary("sub", i[-1], i[-2]), most),
                                                    x(*i), zero), name=op)


def tril(x: Tensor, *, k: int = 0) -> Tensor:
    """y[..., i, j] = x[..., i, j] where j <= i + k, else 0."""
    return _triangle("tril", x, k, True)


def triu(x: Tensor, *, k: int = 0) -> Tensor:
    """y[..., i, j] = x[..., i, j] where j >= i + k, else 0."""
    return _triangle("triu", x, k, False)


def diagonal(x: Tensor, *, offset: int = 0) -> Tensor:
    """y[..., i] = x[..., i, i + offset], or x[..., i - offset, i] for a negative offset; as many as there are."""
    op = "diagonal"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 2, 100)
    offset, = per_axis(op, "offset", offset, 1, -(1 << 31))
    rows, columns = x.shape[-2] + min(offset, 0), x.shape[-1] - max(offset, 0)
    extent = simplified(maximum(minimum(rows, columns), 0))
    return compute((*x.shape[:-2], extent), lambda *i: x(*i[:-1], i[-1] + max(-offset, 0), i[-1] + max(offset, 0)),
                   name=op)


def diag_embed(x: Tensor, *, offset: int = 0) -> Tensor:
    """y[..., i, i + offset] = x[..., i] (y[..., i - offset, i] for a negative offset), 0 elsewhere."""
    op = "diag_embed"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 1, 100)
    offset, = per_axis(op, "offset", offset, 1, -(1 << 31))
    size = summed(x.shape[-1], abs(offset))
    zero = const(0, x.dtype)

    def at(*i: Any) -> Expr:
        row, column = i[-2], i[-1]
        own = row if offset >= 0 else column
        there = all_of(binary("eq", binary("add", row, offset), column), binary("lt", own, x.shape[-1]))
        return if_then_else(there, x(*i[:-2], own), zero)
    return compute((*x.shape[:-1], size, size), at, name=op)


def meshgrid(*vectors: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid: y_k[i_0, i_1, ...] = vectors[k][i_k]; the first two swapped for "xy"."""
    op = "meshgrid"
    given = _several(op, list(vectors))
    check_choice(op, "indexing", indexing, ("xy", "ij"))
    for n, v in enumerate(given):
        check_rank(op, f"vector {n}", v, 1)
    order = list(range(len(given)))
    if indexing == "xy" and len(given) > 1:
        order[:2] = 1, 0
    shape = [given[n].shape[0] for n in order]
    return tuple(compute(shape, lambda *i, n=n: given[n](i[order.index(n)]), name=op) for n in range(len(given)))


__all__ = ["broadcast_to", "channel_shuffle", "concatenate", "depth_to_space", "diag_embed", "diagonal",
           "expand_dims", "flatten", "meshgrid", "moveaxis", "pixel_shuffle", "pixel_unshuffle", "reshape",
           "space_to_depth", "split", "squeeze", "stack", "swapaxes", "transpose", "tril", "triu", "unstack"]
