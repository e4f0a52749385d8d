"""What orders, runs and counts of elements tell: medians, quantiles, runs of equals, histograms; covariances."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.support.errors import described
from tilewright.te.constant import constant as te_constant
from tilewright.te.definition import compute
from tilewright.te.math import FUNCTIONS, floor, isnan
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, any_of, binary, if_then_else, minimum, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.contraction import contraction, reduction_axis
from tilewright.topi.indexing import signed
from tilewright.topi.reductions import wide_mean
from tilewright.topi.shapes import (
    as_shape,
    axis_index,
    check,
    check_choice,
    check_numbers,
    check_rank,
    check_tensors,
    constant,
    number,
    same_shape,
)
from tilewright.topi.shaping import flatten, reshape
from tilewright.topi.sorting import ordered
from tilewright.topi.statements import each, variable, written
from tilewright.topi.types import FLOAT, INDEX, NUMBER, accumulator, check_kind, check_whole, floating, rounded

METHODS = ("linear", "lower", "higher", "nearest", "midpoint")


class _Ordered:
    """A tensor whose elements along an axis are in order, and the shape of what is one element for each line."""

    def __init__(self, op: str, x: Any, axis: Any, keepdims: bool) -> None:
        check_tensors(op, x=x)
        self.x = flatten(x) if axis is None else x
        self.at = axis_index(op, 0 if axis is None else axis, self.x.ndim)
        self.extent = self.x.shape[self.at]
        check(constant(self.extent) != 0, op, f"there is no element along axis {axis} of the shape "
              f"{shape_text(x.shape)}")
        self.order = ordered(op, self.x, self.at, False)
        self.keepdims = keepdims
        rest = (*self.x.shape[:self.at], *self.x.shape[self.at + 1:])
        own = (*self.x.shape[:self.at], 1, *self.x.shape[self.at + 1:])
        self.shape = rest if not keepdims else tuple(IntImm(1) for _ in x.shape) if axis is None else own

    def line(self, i: Sequence[Any]) -> tuple[Any, ...]:
        """The indices of a line, of those of the result."""
        if not self.keepdims:
            return tuple(i)
        return (*i[:self.at], *i[self.at + 1:]) if len(i) == self.x.ndim else ()

    def place(self, line: Sequence[Any], k: Any) -> Expr:
        """Where element number k of a line stands."""
        return self.order(*line, k)

    def value(self, line: Sequence[Any], k: Any) -> Expr:
        return self.x(*line[:self.at], self.place(line, k), *line[self.at:])

    def last(self) -> Expr:
        return cast(INDEX, self.extent) - 1

    def has_nan(self, line: Sequence[Any]) -> Expr | None:
        """NaN is the last one; None where the type has none."""
        return isnan(self.value(line, self.last())) if dt.is_float(self.x.dtype) else None

    def pair(self, op: str, rank: Any) -> tuple[Tensor, Tensor]:
        """(values, places) of the elements of number rank(indices of the line)."""
        return (compute(self.shape, lambda *i: self.value(self.line(i), rank(self.line(i))), name=op),
                compute(self.shape, lambda *i: self.place(self.line(i), rank(self.line(i))), name=f"{op}_places"))


def median(x: Tensor, *, axis: int | None = None, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """(values, places) of the element in the middle of the order along an axis, the lower of two; of all for None.

    A line with NaN gives NaN, and a place of one. Places: int64. Raises TensorExpressionError for an axis without
    elements.
    """
    lines = _Ordered("median", x, axis, keepdims)

    def rank(line: Sequence[Any]) -> Expr:
        middle, nan = binary("floordiv", lines.last(), 2), lines.has_nan(line)
        return middle if nan is None else select(nan, lines.last(), middle)
    return lines.pair("median", rank)


def kthvalue(x: Tensor, *, k: int, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """(values, places) of the k-th smallest element along an axis, k from 1; NaN counts as the largest.

    Of equals the first come first. Raises TensorExpressionError for a k below 1 or above the extent.
    """
    op = "kthvalue"
    lines = _Ordered(op, x, axis, keepdims)
    most = constant(lines.extent)
    check(isinstance(k, int) and 1 <= k <= (most or k), op, f"k is {described(k)}, there are {lines.extent} elements "
          f"along axis {axis}")
    return lines.pair(op, lambda line: const(k - 1, INDEX))


def quantile(x: Tensor, *, q: Any, axis: int | None = None, keepdims: bool = False, method: str = "linear") -> Tensor:
    """The value of which a share q of the elements along an axis is not above; of all elements for None.

    Between elements number floor(q * (n - 1)) and the next one of the order, by method: "linear", "lower", "higher",
    "nearest" (the even one of two), "midpoint". q: a number from 0 to 1, or several of them, a new first axis of y.
    NaN gives NaN; integers are computed in float32. As numpy.quantile. Raises TensorExpressionError for another q.
    """
    op = "quantile"
    check_choice(op, "method", method, METHODS)
    given = q.tolist() if isinstance(q, np.ndarray) else q
    several = isinstance(given, (tuple, list))
    for value in given if several else [given]:
        check_numbers(op, q=value)
    shares = np.asarray(given, "float64")
    check(shares.ndim <= 1 and bool(np.all((shares >= 0) & (shares <= 1))), op, f"q is {described(q)}, not made of "
          "numbers from 0 to 1")
    lines = _Ordered(op, x, axis, keepdims)
    result, table = floating(x.dtype), te_constant(shares) if several else None
    wide = accumulator(result)

    def at(*i: Any) -> Expr:
        share = const(float(shares), "float64") if table is None else table(i[0])
        line = lines.line(i[1:] if several else i)
        place = share * (number(lines.extent, "float64") - 1.0)
        low = floor(place)
        above = {"linear": place - low, "lower": const(0.0, "float64"), "midpoint": select(
            binary("eq", place, low), const(0.0, "float64"), const(0.5, "float64"))}.get(method)
        if method in ("higher", "nearest"):
            low, above = (FUNCTIONS["ceil"] if method == "higher" else FUNCTIONS["round"])(place), const(0.0, "float64")
        first = cast(INDEX, low)
        a, b = (cast(wide, lines.value(line, k)) for k in (first, minimum(first + 1, lines.last())))
        part = cast(wide, above)
        value = if_then_else(binary("eq", part, const(0.0, wide)), a, a + (b - a) * part)
        nan = lines.has_nan(line)
        return cast(result, value if nan is None else select(nan, const(float("nan"), wide), value))
    return compute((len(shares), *lines.shape) if several else lines.shape, at, name=op)


def mode(x: Tensor, *, axis: int = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """(values, counts): what comes most often along an axis, the smallest of several, and how often; NaN equals NaN."""
    op = "mode"
    lines = _Ordered(op, x, axis, keepdims)
    at, rest = lines.at, (*lines.x.shape[:lines.at], *lines.x.shape[lines.at + 1:])

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (given, order), (places, counts) = ins, outs

        def value(row: tuple[Expr, ...], k: Any) -> Expr:
            return given[row[:at] + (order[row + (k,)],) + row[at:]]
        with each(ib, rest, "row") as row:
            run = variable(ib, 0, INDEX, "run")
            counts[row], places[row] = const(0, INDEX), const(0, INDEX)
            with ib.for_range(const(0, INDEX), cast(INDEX, lines.extent), name="k") as k:
                before = value(row, binary("max", k - 1, const(0, INDEX)))
                new = binary("ne", value(row, k), before)
                if dt.is_float(x.dtype):
                    new = binary("and", new, any_of(binary("eq", before, before), binary(
                        "eq", value(row, k), value(row, k))))
                run[0] = select(new, const(1, INDEX), run[0] + 1)
                with ib.if_scope(binary("gt", run[0], counts[row])):
                    counts[row], places[row] = run[0], k
    places, counts = written(f"{op}_runs", [(rest, INDEX), (rest, INDEX)], [lines.x, lines.order], write)
    return (compute(lines.shape, lambda *i: lines.value(lines.line(i), places(*lines.line(i))), name=op),
            compute(lines.shape, lambda *i: counts(*lines.line(i)), name=f"{op}_counts"))


def unique_consecutive(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(values, inverse, counts, number): x, row by row, with each run of equal elements as one.

    Of n elements: values T[n] and counts int64[n] (how long each run is), `number` of them, int64[1], and 0 behind
    them; inverse: int64 of the shape of x, x = values[inverse]. NaN differs from NaN.
    """
    op = "unique_consecutive"
    check_tensors(op, x=x)
    flat = flatten(x)
    extent = flat.shape[0]

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (given,), (values, inverse, counts, number) = ins, outs
        with ib.for_range(0, extent, name="k") as k:
            values[k], counts[k] = const(0, x.dtype), const(0, INDEX)
        number[0] = const(0, INDEX)
        with ib.for_range(0, extent, name="k") as k:
            own = given[k]
            new = if_then_else(binary("gt", k, 0), binary("ne", given[binary("sub", k, 1)], own), const(True, "bool"))
            with ib.if_scope(new):
                values[number[0]] = own
                number[0] = number[0] + 1
            at = ib.let("at", number[0] - 1)
            counts[at] = counts[at] + 1
            inverse[k] = at
    values, inverse, counts, found = written(
        op, [((extent,), x.dtype), ((extent,), INDEX), ((extent,), INDEX), ((IntImm(1),), INDEX)], [flat], write)
    return values, reshape(inverse, x.shape), counts, found


def cov(x: Tensor, *, correction: float = 1.0) -> Tensor:
    """y[i, j] = sum over k of (x[i, k] - mean of x[i]) * (x[j, k] - mean of x[j]), divided by n - correction.

    x: T[m, n], n observations of m variables; y: T[m, m].
    """
    op = "cov"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 2)
    check_kind(op, "x", x.dtype, FLOAT)
    check_numbers(op, correction=correction)
    center, wide = wide_mean(f"{op}_mean", x, 1), accumulator(x.dtype)
    apart = compute(x.shape, lambda i, k: cast(wide, x(i, k)) - center(i, 0), name=f"{op}_apart")
    k = reduction_axis(x.shape[1], "k")
    total = contraction(f"{op}_sum", (x.shape[0], x.shape[0]), lambda i, j: (apart(i, k), apart(j, k)), [k], wide)
    n = number(x.shape[1], wide) - float(correction)
    return rounded(compute(total.shape, lambda i, j: total(i, j) / n, name=op), x.dtype, f"{op}_rounded")


# how many lie where


def bincount(x: Tensor, weights: Tensor | None = None, *, size: Any) -> Tensor:
    """y[v] = how many elements of x are v, 0 <= v < size, or the sum of their weights; others are left out.

    x: integers; weights: of the same shape; y: int64[size], or of the type of weights. Raises TensorExpressionError
    where shapes differ.
    """
    op = "bincount"
    check_whole(op, "x", x)
    extent, = as_shape(op, size, 1)
    if weights is not None:
        check_tensors(op, weights=weights)
        check(same_shape(weights.shape, x.shape), op, f"weights have the shape {shape_text(weights.shape)}, x "
              f"{shape_text(x.shape)}")
        check_kind(op, "weights", weights.dtype, NUMBER)
    kind = INDEX if weights is None else weights.dtype
    wide = accumulator(kind)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (values, *more), (y,) = ins, outs
        with ib.for_range(0, extent, name="v") as v:
            y[v] = const(0, wide)
        with each(ib, x.shape) as i:
            at = ib.let("at", signed(values[i]))
            with ib.if_scope(all_of(binary("ge", at, 0), binary("lt", at, extent))):
                y[at] = binary("add", y[at], cast(wide, more[0][i]) if more else const(1, wide))
    y, = written(op, [((extent,), wide)], [x] if weights is None else [x, weights], write)
    return rounded(y, kind, f"{op}_rounded")


def histogram(x: Tensor, *, bins: Any, low: float, high: float) -> Tensor:
    """y[k] = how many elements of x lie in bin k of `bins` equal ones from low to high, which the last one includes.

    x: floats; the bin is floor((x - low) * bins / (high - low)) in their type; y: int64[bins]. Elements outside, and
    NaN, are left out. Raises TensorExpressionError unless low < high, both finite.
    """
    op = "histogram"
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, FLOAT)
    check_numbers(op, low=low, high=high)
    check(low < high and math.isfinite(high - low), op, f"low is {low}, high is {high}", "finite numbers, low < high")
    several, = as_shape(op, bins, 1)
    wide = accumulator(x.dtype)

    def bin_of(*i: Any) -> Expr:
        e = cast(wide, x(*i))
        there = all_of(binary("ge", e, const(float(low), wide)), binary("le", e, const(float(high), wide)))
        inside = select(there, e, const(float(low), wide))
        at = cast(INDEX, (inside - float(low)) * cast(wide, several) / float(high - low))
        return select(there, minimum(at, cast(INDEX, several) - 1), const(-1, INDEX))
    return bincount(compute(x.shape, bin_of, name=f"{op}_bins"), size=several)


__all__ = ["bincount", "cov", "histogram", "kthvalue", "median", "mode", "quantile", "unique_consecutive"]
