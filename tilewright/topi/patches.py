"""Windows as columns and back, blocks as batches and back, pooling undone."""
from __future__ import annotations

from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.extents import digits, simplified
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, binary, if_then_else
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr
from tilewright.topi.indexing import scatter
from tilewright.topi.shapes import (
    as_shape,
    axis_index,
    check,
    check_extent,
    check_rank,
    check_tensors,
    constant,
    per_axis,
    product,
    quotient,
    row_major,
    same_shape,
)
from tilewright.topi.shaping import reshape
from tilewright.topi.types import NUMBER, accumulator, check_kind
from tilewright.topi.windows import SPATIAL, amounts, padded, spatial_rank, windows


def unfold(x: Tensor, kernel: Any, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """y[b, c * k' + k, o] = x[b, c, o * stride + k * dilation - padding], windows o and their k' elements row by row.

    x: T[b, c, *spatial], 1 to 3 spatial axes; 0 outside of x. Also called im2col. Raises TensorExpressionError where
    no window fits.
    """
    op = "unfold"
    check_tensors(op, x=x)
    count = spatial_rank(op, x)
    sizes = per_axis(op, "kernel", kernel, count, 1)
    w = windows(op, x.shape[2:], sizes, stride=stride, padding=padding, dilation=dilation)
    data = w.bordered(x, 2, const(0, x.dtype))
    shape = (x.shape[0], simplified(product((x.shape[1], *sizes))), simplified(product(w.out)))

    def at(b: Expr, row: Expr, column: Expr) -> Expr:
        c, *k = digits(row, (x.shape[1], *sizes))
        return data(b, c, *w.source(digits(column, w.out), k))
    return compute(shape, at, name=op)


def fold(x: Tensor, size: Any, kernel: Any, *, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """y[b, c, i] = the sum of x[b, c * k' + k, o] over all k and o with i = o * stride + k * dilation - padding.

    x: T[b, c * k', o'], windows and their elements row by row; size: the spatial extents of y: T[b, c, *size]. The
    adjoint of `unfold`, ONNX's Col2Im. Raises TensorExpressionError where x has another number of windows.
    """
    op = "fold"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 3)
    check_kind(op, "x", x.dtype, NUMBER)
    space = as_shape(op, size)
    check(1 <= len(space) <= 3, op, f"size is {described(size)}, 1 to 3 extents are needed")
    sizes = per_axis(op, "kernel", kernel, len(space), 1)
    w = windows(op, space, sizes, stride=stride, padding=padding, dilation=dilation)
    check_extent(op, "the last extent of x", x.shape[2], simplified(product(w.out)),
                 "that is how many windows there are")
    channels = quotient(op, "extent 1 of x", x.shape[1], simplified(product(sizes)))
    wide = accumulator(x.dtype)
    ks = [reduce_axis((0, k), name=f"k{c}") for c, k in zip(SPATIAL[len(space) - 1], sizes)]

    def term(b: Expr, c: Expr, *i: Expr) -> Expr:
        places, inside = [], []
        for v, k, s, d, (before, _), n in zip(i, ks, w.stride, w.dilation, w.pads, w.out):
            far = binary("sub", binary("add", v, before), binary("mul", k, d))
            places.append(binary("floordiv", far, s))
            inside += [binary("ge", far, 0), binary("lt", places[-1], n)]
            inside += [binary("eq", binary("floormod", far, s), 0)] if s > 1 else []
        value = cast(wide, x(b, row_major((c, *ks), (channels, *sizes)), row_major(places, w.out)))
        return te_sum(if_then_else(all_of(*inside), value, const(0, wide)), axis=ks)
    total = compute((x.shape[0], channels, *space), term, name=f"{op}_sum")
    return total if wide == x.dtype else compute(total.shape, lambda *i: cast(x.dtype, total(*i)), name=op)


def sliding_window(x: Tensor, *, size: int, step: int = 1, axis: int = -1) -> Tensor:
    """y[..., o, ..., k] = x[..., o * step + k, ...] along an axis: each window as a new last axis (torch's unfold).

    Raises TensorExpressionError where no window fits.
    """
    op = "sliding_window"
    check_tensors(op, x=x)
    at = axis_index(op, axis, x.ndim)
    (span,), (by,) = per_axis(op, "size", size, 1, 1), per_axis(op, "step", step, 1, 1)
    w = windows(op, (x.shape[at],), (span,), stride=by, padding=0)
    shape = (*x.shape[:at], w.out[0], *x.shape[at + 1:], convert(span))
    return compute(shape, lambda *i: x(*i[:at], *w.source((i[at],), (i[-1],)), *i[at + 1:-1]), name=op)


def max_unpool(x: Tensor, indices: Tensor, size: Any) -> Tensor:
    """y[b, c, indices[b, c, o]] = x[b, c, o], 0 elsewhere: `max_pool` undone, by the places that it gave.

    x: T[b, c, *spatial]; indices: integers of this shape, into images of the spatial extents `size`, row by row.
    Raises TensorExpressionError where shapes differ.
    """
    op = "max_unpool"
    check_tensors(op, x=x, indices=indices)
    count, space = spatial_rank(op, x), as_shape(op, size)
    check(len(space) == count, op, f"size is {described(size)}, {count} extent(s) are needed")
    check(same_shape(indices.shape, x.shape), op, f"indices have the shape {shape_text(indices.shape)}, x "
          f"{shape_text(x.shape)}")
    check(dt.is_integer(indices.dtype), op, f"indices are {indices.dtype}, integers are needed")
    lead, pixels = x.shape[:2], simplified(product(space))
    flat = (*lead, simplified(product(x.shape[2:])))
    empty = compute((*lead, pixels), lambda *i: const(0, x.dtype), name=f"{op}_empty")
    y = scatter(empty, reshape(indices, flat), reshape(x, flat), axis=2)
    return reshape(y, (*lead, *space))


def space_to_batch(x: Tensor, *, block: Any, padding: Any = 0) -> Tensor:
    """y[k * b' + b, c, o] = x[b, c, o * block + k - padding]: the k-th pixels of all blocks as an image of their own.

    x: T[b', c, *spatial]; padding: a number, or pairs (before, after), of zeros. Raises TensorExpressionError where
    blocks do not divide the padded extents.
    """
    op = "space_to_batch"
    check_tensors(op, x=x)
    count = spatial_rank(op, x)
    blocks = per_axis(op, "block", block, count, 1)
    pads = amounts(op, "padding", padding, count)
    data = padded(x, [(0, 0), (0, 0), *pads], const(0, x.dtype))
    out = [quotient(op, f"the padded extent {n}", data.shape[2 + n], k) for n, k in enumerate(blocks)]
    batch = x.shape[0]

    def at(b: Expr, c: Expr, *o: Expr) -> Expr:
        *k, image = digits(b, (*blocks, batch))
        return data(image, c, *(binary("add", binary("mul", v, s), e) for v, s, e in zip(o, blocks, k)))
    return compute((simplified(product((*blocks, batch))), x.shape[1], *out), at, name=op)


def batch_to_space(x: Tensor, *, block: Any, crop: Any = 0) -> Tensor:
    """y[b, c, o * block + k - crop] = x[k * b' + b, c, o], the inverse of `space_to_batch`.

    x: T[k' * b', c, *spatial]; crop: a number, or pairs (before, after), of pixels that are left out.
    Raises TensorExpressionError where the batch is no multiple of the pixels of a block.
    """
    op = "batch_to_space"
    check_tensors(op, x=x)
    count = spatial_rank(op, x)
    blocks = per_axis(op, "block", block, count, 1)
    batch = quotient(op, "the batch of x", x.shape[0], simplified(product(blocks)))
    whole = [simplified(product((n, k))) for n, k in zip(x.shape[2:], blocks)]
    cuts = amounts(op, "crop", crop, count)
    out = [simplified(n - (a + b)) for n, (a, b) in zip(whole, cuts)]
    check(all((constant(n) or 0) >= 0 for n in out), op, f"crop is {described(crop)}, more than the extents "
          f"{shape_text(tuple(whole))}")

    def at(b: Expr, c: Expr, *i: Expr) -> Expr:
        places = [binary("add", v, a) for v, (a, _) in zip(i, cuts)]
        k = [binary("floormod", v, s) for v, s in zip(places, blocks)]
        return x(row_major((*k, b), (*blocks, batch)), c, *(binary("floordiv", v, s) for v, s in zip(places, blocks)))
    return compute((batch, x.shape[1], *out), at, name=op)


__all__ = ["batch_to_space", "fold", "max_unpool", "sliding_window", "space_to_batch", "unfold"]
