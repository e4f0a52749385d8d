"""Pooling over one to three spatial axes: windows, windows that adapt to a size, all of an image."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.support.errors import described
from tilewright.te.arg_reducers import arg_reducer
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.reduction import max as te_max
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import absolute, all_of, binary, ceildiv, if_then_else, power, select
from tilewright.tir.conversion import cast, const, max_value, min_value
from tilewright.tir.expr import Expr
from tilewright.topi.reductions import max, norm, wide_mean
from tilewright.topi.shapes import (
    as_shape,
    check,
    check_tensors,
    constant,
    index_type,
    number,
    per_axis,
    product,
    row_major,
)
from tilewright.topi.types import FLOAT, INDEX, NUMBER, accumulator, check_kind, rounded
from tilewright.topi.windows import SPATIAL, Windows, of_rank, spatial_rank, windows


class _Pool:
    """The windows of a pooling, and where batch, channels and space stand in x and in the result."""

    def __init__(self, op: str, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
                 channels_last: bool, kind: str) -> None:
        check_tensors(op, x=x)
        check_kind(op, "x", x.dtype, kind)
        self.op, self.x, self.last, count = op, x, channels_last, spatial_rank(op, x)
        kernel = per_axis(op, "kernel", kernel, count, 1)
        self.first = 1 if channels_last else 2
        self.extents = x.shape[self.first:self.first + count]
        self.windows = windows(op, self.extents, kernel, stride=kernel if stride is None else stride, padding=padding,
                               dilation=dilation, ceil_mode=ceil_mode)
        for k, d, pads in zip(kernel, self.windows.dilation, self.windows.pads):
            check(all(p <= (k - 1) * d for p in pads), op, f"padding {pads} reaches over a whole window of {k} "
                  f"elements with dilation {d}")
        space = self.windows.out
        self.shape = (x.shape[0], *space, x.shape[-1]) if channels_last else (*x.shape[:2], *space)
        self.axes = [reduce_axis((0, k), name=f"k{c}") for c, k in zip(SPATIAL[count - 1], kernel)]

    def outs(self, i: Sequence[Any]) -> Sequence[Any]:
        """The spatial indices of those of the result."""
        return i[self.first:self.first + len(self.extents)]

    def read(self, data: Tensor, i: Sequence[Any]) -> Expr:
        """The element of the bordered tensor that the reduction axes choose in the window of i."""
        at = self.windows.source(self.outs(i), self.axes)
        return data(i[0], *at, i[-1]) if self.last else data(*i[:2], *at)


def _place(at: Sequence[Any], extents: Sequence[Any]) -> Expr:
    """The number of a pixel, row by row."""
    kind = index_type(*extents)
    return cast(INDEX, row_major([cast(kind, v) for v in at], extents))


def max_pool(x: Tensor, kernel: Any, *, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False, return_indices: bool = False, channels_last: bool = False) -> Any:
    """y[b, c, o] = the largest of x[b, c, o * stride + k * dilation - padding] over k; what lies outside never is.

    x: T[b, c, *spatial], 1 to 3 spatial axes (T[b, *spatial, c] with channels_last). stride: default kernel.
    ceil_mode: windows that reach over the end count. return_indices: (y, the places in the image, row by row), the
    first of equals. Raises TensorExpressionError where no window fits.
    """
    p = _Pool("max_pool", x, kernel, stride, padding, dilation, ceil_mode, channels_last, NUMBER)
    low = min_value(x.dtype)
    data = p.windows.bordered(x, p.first, low)
    if not return_indices:
        return compute(p.shape, lambda *i: te_max(p.read(data, i), axis=p.axes), name=p.op)

    def pair(*i: Any) -> Any:
        at = [binary("sub", s, b) for s, (b, _) in zip(p.windows.source(p.outs(i), p.axes), p.windows.pads)]
        there = all_of(*(c for s, n in zip(at, p.extents) for c in (binary("ge", s, 0), binary("lt", s, n))))
        place = select(there, _place(at, p.extents), max_value(INDEX))
        return arg_reducer(True)((place, p.read(data, i)), axis=p.axes)
    place, value = compute(p.shape, pair, name=p.op)
    return value, place


def avg_pool(x: Tensor, kernel: Any, *, stride: Any = None, padding: Any = 0, dilation: Any = 1,
             ceil_mode: bool = False, count_include_pad: bool = True, divisor: float | None = None,
             channels_last: bool = False) -> Tensor:
    """y[b, c, o] = the mean of x[b, c, o * stride + k * dilation - padding] over k.

    Shapes as in `max_pool`. count_include_pad: the padding counts as zeros, else the mean is of what is in x.
    What lies beyond the padding (ceil_mode) never counts. divisor: takes the place of the count.
    Raises TensorExpressionError where no window fits, and for a divisor of 0.
    """
    check(divisor is None or abs(divisor) > 0, "avg_pool", f"divisor is {divisor}")
    p = _Pool("avg_pool", x, kernel, stride, padding, dilation, ceil_mode, channels_last, FLOAT)
    wide = accumulator(x.dtype)
    data = p.windows.bordered(x, p.first, const(0.0, x.dtype))
    total = compute(p.shape, lambda *i: te_sum(cast(wide, p.read(data, i)), axis=p.axes), name="avg_pool_sum")
    whole = divisor if divisor is not None else product(p.windows.kernel)
    padded = any(pads != (0, 0) for pads in p.windows.pads)
    if divisor is not None or not p.windows.ragged and (count_include_pad or not padded):
        n = const(float(getattr(whole, "value", whole)), wide)
        return compute(p.shape, lambda *i: cast(x.dtype, total(*i) / n), name=p.op)

    def mean(*i: Any) -> Expr:
        counted = [_counted(p.windows, n, o, extent, count_include_pad)
                   for n, (o, extent) in enumerate(zip(p.outs(i), p.extents))]
        return cast(x.dtype, total(*i) / number(product(counted), wide))
    return compute(p.shape, mean, name=p.op)


def _counted(w: Windows, axis: int, o: Any, extent: Any, padding_too: bool) -> Expr:
    """How many elements of window o along an axis lie in x, or in x and its padding."""
    (before, after), s, d, k = w.pads[axis], w.stride[axis], w.dilation[axis], w.kernel[axis]
    start = binary("sub", binary("mul", o, s), before)
    low, end = (-before, binary("add", extent, after)) if padding_too else (0, extent)
    first = binary("max", ceildiv(binary("sub", low, start), d), 0)
    behind = binary("min", ceildiv(binary("sub", end, start), d), k)
    return binary("sub", behind, first)


def lp_pool(x: Tensor, kernel: Any, *, p: float = 2.0, stride: Any = None, padding: Any = 0, dilation: Any = 1,
            ceil_mode: bool = False, channels_last: bool = False) -> Tensor:
    """y[b, c, o] = (sum over k of |x[b, c, o * stride + k * dilation - padding]| ** p) ** (1 / p).

    Shapes as in `max_pool`. Raises TensorExpressionError where no window fits, and unless p is positive and finite.
    """
    check(0 < p < math.inf, "lp_pool", f"p is {p}, a positive number is needed", "the largest elements: topi.max_pool")
    pool = _Pool("lp_pool", x, kernel, stride, padding, dilation, ceil_mode, channels_last, FLOAT)
    wide = accumulator(x.dtype)
    data = pool.windows.bordered(x, pool.first, const(0.0, x.dtype))

    def term(i: Sequence[Any]) -> Expr:
        e = cast(wide, pool.read(data, i))
        return binary("mul", e, e) if p == 2 else power(absolute(e), float(p))
    total = compute(pool.shape, lambda *i: te_sum(term(i), axis=pool.axes), name="lp_pool_sum")
    return compute(pool.shape, lambda *i: cast(x.dtype, power(total(*i), 1.0 / p)), name=pool.op)


# windows that adapt


class _Adaptive:
    """Windows floor(o * n / size) <= i < ceil((o + 1) * n / size) along each spatial axis of x, of extents n."""

    def __init__(self, op: str, x: Any, size: Any, kind: str) -> None:
        check_tensors(op, x=x)
        check_kind(op, "x", x.dtype, kind)
        count = spatial_rank(op, x)
        given = as_shape(op, size)
        out = given * count if len(given) == 1 else given
        check(len(out) == count, op, f"size is {described(size)}, {count} extent(s) are needed")
        check(all(constant(o) != 0 for o in out), op, f"size is {described(size)}, numbers of at least 1 are needed")
        check(all(constant(n) != 0 for n in x.shape[2:]), op, f"x has the shape {shape_text(x.shape)}, without a pixel")
        self.extents, self.out, self.shape = x.shape[2:], out, (*x.shape[:2], *out)
        self.lengths = list(map(_even, self.extents, out))
        self.axes = [reduce_axis((0, simplified(ceildiv(n, o) + 1) if length is None else length), name=f"k{c}")
                     for c, n, o, length in zip(SPATIAL[count - 1], self.extents, out, self.lengths)]

    def bounds(self, axis: int, v: Any) -> tuple[Expr, Expr]:
        """(first element, first one behind) of window v of an axis whose windows differ."""
        n, o = self.extents[axis], self.out[axis]
        v = cast(index_type(binary("add", n, 1), binary("add", o, 1)), v)
        return binary("floordiv", binary("mul", v, n), o), ceildiv(binary("mul", binary("add", v, 1), n), o)

    def source(self, outs: Sequence[Any]) -> tuple[list[Expr], list[Expr]]:
        """(the elements of windows that the reduction axes choose, the conditions that there are such)."""
        at, inside = [], []
        for axis, (v, k, length) in enumerate(zip(outs, self.axes, self.lengths)):
            if length is not None:
                at.append(binary("add", binary("mul", v, length), k))
                continue
            first, behind = self.bounds(axis, v)
            at.append(binary("add", first, k))
            inside.append(binary("lt", at[-1], behind))
        return at, inside

    def count(self, outs: Sequence[Any]) -> Expr:
        """The number of elements of windows."""
        def along(axis: int, v: Any) -> Any:
            first, behind = self.bounds(axis, v)
            return binary("sub", behind, first)
        return product(along(axis, v) if length is None else length
                       for axis, (v, length) in enumerate(zip(outs, self.lengths)))


def _even(extent: Any, size: Any) -> int | None:
    """The number of elements of every window, where all are known to have the same."""
    n, o = constant(extent), constant(size)
    return None if n is None or o is None or n % o else n // o


def adaptive_max_pool(x: Tensor, size: Any, *, return_indices: bool = False) -> Any:
    """y[b, c, o] = the largest of x[b, c, i], floor(o * n / size) <= i < ceil((o + 1) * n / size).

    x: T[b, c, *spatial], 1 to 3 spatial axes of extents n; size: the spatial extents of the result, or one for all.
    return_indices: (y, the places in the image, row by row). Raises TensorExpressionError for a size below 1, and an x
    without a pixel.
    """
    op = "adaptive_max_pool"
    w = _Adaptive(op, x, size, NUMBER)
    low = min_value(x.dtype)

    def value(i: Sequence[Any]) -> tuple[Expr, Expr]:
        at, inside = w.source(i[2:])
        read, place = x(*i[:2], *at), _place(at, x.shape[2:])
        if not inside:
            return place, read
        return select(all_of(*inside), place, max_value(INDEX)), if_then_else(all_of(*inside), read, low)
    if not return_indices:
        return compute(w.shape, lambda *i: te_max(value(i)[1], axis=w.axes), name=op)
    place, largest = compute(w.shape, lambda *i: arg_reducer(True)(value(i), axis=w.axes), name=op)
    return largest, place


def adaptive_avg_pool(x: Tensor, size: Any) -> Tensor:
    """y[b, c, o] = the mean of x[b, c, i], floor(o * n / size) <= i < ceil((o + 1) * n / size).

    x: T[b, c, *spatial], 1 to 3 spatial axes of extents n; size: the spatial extents of the result, or one for all.
    Raises TensorExpressionError for a size below 1, and an x without a pixel.
    """
    op = "adaptive_avg_pool"
    w = _Adaptive(op, x, size, FLOAT)
    wide = accumulator(x.dtype)

    def term(*i: Any) -> Expr:
        at, inside = w.source(i[2:])
        read = cast(wide, x(*i[:2], *at))
        return te_sum(if_then_else(all_of(*inside), read, const(0.0, wide)) if inside else read, axis=w.axes)
    total = compute(w.shape, term, name="adaptive_avg_pool_sum")
    return compute(w.shape, lambda *i: cast(x.dtype, total(*i) / number(w.count(i[2:]), wide)), name=op)


def global_avg_pool(x: Tensor) -> Tensor:
    """The mean of each channel: T[b, c, *spatial] to T[b, c, 1, ...]."""
    check_tensors("global_avg_pool", x=x)
    check_kind("global_avg_pool", "x", x.dtype, FLOAT)
    axes = tuple(range(2, 2 + spatial_rank("global_avg_pool", x)))
    return rounded(wide_mean("global_avg_pool", x, axes), x.dtype)


def global_max_pool(x: Tensor) -> Tensor:
    """The largest element of each channel: T[b, c, *spatial] to T[b, c, 1, ...]."""
    check_tensors("global_max_pool", x=x)
    return max(x, axis=tuple(range(2, 2 + spatial_rank("global_max_pool", x))), keepdims=True)


def global_lp_pool(x: Tensor, *, p: float = 2.0) -> Tensor:
    """(sum of |x| ** p) ** (1 / p) of each channel: T[b, c, *spatial] to T[b, c, 1, ...]; p: a positive number."""
    op = "global_lp_pool"
    check_tensors(op, x=x)
    check(p > 0, op, f"p is {p}, a positive number is needed")
    return norm(x, axis=tuple(range(2, 2 + spatial_rank(op, x))), keepdims=True, ord=p)


max_pool1d, max_pool2d, max_pool3d = (of_rank(max_pool, n) for n in (1, 2, 3))
avg_pool1d, avg_pool2d, avg_pool3d = (of_rank(avg_pool, n) for n in (1, 2, 3))

__all__ = ["adaptive_avg_pool", "adaptive_max_pool", "avg_pool", "avg_pool1d", "avg_pool2d", "avg_pool3d",
           "global_avg_pool", "global_lp_pool", "global_max_pool", "lp_pool", "max_pool", "max_pool1d",
           "max_pool2d", "max_pool3d"]
