"""Parts and repetitions of tensors: slices, flipped and rolled ones, padding, tiles."""
from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.support.errors import described
from tilewright.te.conditions import state
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, all_of, binary, ceildiv, if_then_else, maximum, minimum
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr, ExprOps
from tilewright.topi.sampling import clamped
from tilewright.topi.shapes import (
    as_shape,
    axis_index,
    axis_indices,
    check,
    check_choice,
    check_tensors,
    constant,
    count,
    is_one,
    per_axis,
    product,
    replaced,
    same_extent,
    same_shape,
    summed,
)
from tilewright.topi.shaping import flatten, reshaped
from tilewright.topi.types import accumulator, rounded
from tilewright.topi.windows import padded


def _clip(e: Any, low: Any, high: Any) -> Expr:
    return simplified(maximum(minimum(e, high), low))


def _slice(extent: Expr, begin: Any, end: Any, step: int) -> tuple[Expr, Expr, int]:
    """(start, number of elements, step) of begin:end:step, as Python counts it; the step as far as it matters."""
    known = constant(extent)
    most = dt.integer_range(extent.dtype)[1] if known is None else known + 1          # which is beyond the end
    step = max(-most, min(step, most))
    last = extent - 1
    low, high = (convert(0), extent) if step > 0 else (convert(-1), last)

    def place(v: Any, default: Expr) -> Expr:
        if v is None:
            return default
        n = constant(v)
        near = convert(v) if n is None else convert(max(-most, min(n, most)))
        return _clip(binary("add", extent, near) if n is not None and n < 0 else near, low, high)
    start, stop = (place(begin, low), place(end, high)) if step > 0 else (place(begin, high), place(end, low))
    span = binary("sub", stop, start) if step > 0 else binary("sub", start, stop)
    return start, simplified(maximum(ceildiv(span, abs(step)), 0)), step


def strided_slice(x: Tensor, *, begin: Any, end: Any, strides: Any = None, axes: Any = None) -> Tensor:
    """x[begin:end:stride] along axes (default: the first ones), as Python slices: negative numbers count from the end.

    begin, end: sequences of integers, variables, or None for the ends; a step may be negative. A symbolic begin or end
    counts from the front. Raises TensorExpressionError for a step of 0 and sequences of different lengths.
    """
    op = "strided_slice"
    check_tensors(op, x=x)
    shape, starts, steps = _bounds(op, x, begin, end, strides, axes)
    return compute(shape, lambda *i: x(*(binary("add", binary("mul", v, s), b)
                                         for v, b, s in zip(i, starts, steps))), name=op)


def _is_whole(v: Any) -> bool:
    """An integer or an expression of one."""
    if isinstance(v, ExprOps):
        return dt.is_integer(convert(v).dtype)
    return isinstance(v, (int, np.integer)) and not isinstance(v, bool)


def _bounds(op: str, x: Tensor, begin: Any, end: Any, strides: Any,
            axes: Any) -> tuple[list[Any], list[Any], list[int]]:
    """(extents, first elements, steps) of a slice, for each dimension of x."""
    begins, stops = (list(v) if isinstance(v, (tuple, list)) else [v] for v in (begin, end))
    chosen = tuple(range(len(begins))) if axes is None else axis_indices(op, axes, x.ndim, "axes")
    steps = [1] * len(begins) if strides is None else list(strides) if isinstance(strides, (tuple, list)) else [strides]
    check(len(begins) == len(stops) == len(steps) == len(chosen) <= x.ndim, op, f"begin, end, strides and axes have "
          f"{len(begins)}, {len(stops)}, {len(steps)} and {len(chosen)} elements; x has {x.ndim} dimension(s)")
    shape, starts, moves = list(x.shape), [convert(0)] * x.ndim, [1] * x.ndim
    for a, b, e, s in zip(chosen, begins, stops, steps):
        for name, v in (("begin", b), ("end", e)):
            check(v is None or _is_whole(v), op, f"{name} is {described(v)}, no integer and no size")
        check(isinstance(s, (int, np.integer)) and _is_whole(s) and s != 0, op, f"the step {described(s)} is no "
              "integer or 0")
        starts[a], shape[a], moves[a] = _slice(x.shape[a], b, e, int(s))
    return shape, starts, moves


def as_strided(x: Tensor, shape: Any, *, strides: Any, offset: int = 0) -> Tensor:
    """y[i, j, ...] = element number offset + i * strides[0] + j * strides[1] + ... of x, row by row.

    strides: integers of at least 0, as many as shape has extents. Raises TensorExpressionError where constants say that
    an element is beyond x.
    """
    op = "as_strided"
    check_tensors(op, x=x)
    out, flat = as_shape(op, shape), flatten(x)
    steps, (first,) = per_axis(op, "strides", strides, len(out)), per_axis(op, "offset", offset, 1)
    sizes, have = [constant(n) for n in out], constant(flat.shape[0])
    if None not in sizes and have is not None and 0 not in sizes:
        last = first + sum((n - 1) * s for n, s in zip(sizes, steps) if n is not None)
        check(last < have, op, f"element number {last} is read, x has {have}")
    if count(x.shape) == 0 or 0 in sizes:
        return compute(out, lambda *i: const(0, x.dtype), name=op)

    def at(*i: Any) -> Expr:
        place: Any = convert(first)
        for v, s in zip(i, steps):
            far = cast("int64", v) if have is not None and have >= 1 << 31 else v
            place = binary("add", place, binary("mul", far, convert(s)))
        return flat(place)
    return compute(out, at, name=op)


def diff(x: Tensor, *, axis: int = -1, n: int = 1) -> Tensor:
    """y[i] = x[i + 1] - x[i] along an axis, n times; of bools whether they differ.

    Raises TensorExpressionError where there are fewer than n elements.
    """
    op = "diff"
    check_tensors(op, x=x)
    at, (times,) = axis_index(op, axis, x.ndim), per_axis(op, "n", n, 1)
    most = constant(x.shape[at])
    check(most is None or most >= times, op, f"n is {n}, there are {most} elements along axis {axis}")
    y, wide = x, accumulator(x.dtype)
    for _ in range(times):
        def step(*i: Any, y: Tensor = y) -> Expr:
            a, b = cast(wide, y(*replaced(i, at, binary("add", i[at], 1)))), cast(wide, y(*i))
            return binary("ne" if x.dtype == "bool" else "sub", a, b)
        y = compute(replaced(y.shape, at, simplified(y.shape[at] - 1)), step, name=op)
    return rounded(y, x.dtype) if times else compute(x.shape, lambda *i: x(*i), name=op)


def slice_scatter(x: Tensor, updates: Tensor, *, begin: Any, end: Any, strides: Any = None, axes: Any = None) -> Tensor:
    """x, with updates in the place of `strided_slice` by the same bounds.

    Raises TensorExpressionError where the slice and updates have other shapes or types.
    """
    op = "slice_scatter"
    check_tensors(op, x=x, updates=updates)
    check(updates.dtype == x.dtype, op, f"updates are {updates.dtype}, x is {x.dtype}",
          f'convert them: updates.astype("{x.dtype}")')
    shape, starts, steps = _bounds(op, x, begin, end, strides, axes)
    check(same_shape(updates.shape, shape), op, f"updates have the shape {shape_text(updates.shape)}, the slice "
          f"{shape_text(tuple(map(convert, shape)))}")
    if count(updates.shape) == 0 or count(x.shape) == 0:
        return compute(x.shape, lambda *i: x(*i), name=op)

    def at(*i: Any) -> Expr:
        places, inside = [], []
        for v, n, extent, first, step in zip(i, shape, x.shape, starts, steps):
            if step == 1 and constant(first) == 0 and same_extent(n, extent):
                places.append(v)
                continue
            far = binary("sub", v, first) if step > 0 else binary("sub", first, v)
            places.append(binary("floordiv", far, abs(step)))
            inside += [binary("ge", far, 0), binary("lt", places[-1], n)]
            inside += [binary("eq", binary("floormod", far, abs(step)), 0)] if abs(step) > 1 else []
        return if_then_else(all_of(*inside), updates(*places), x(*i)) if inside else updates(*places)
    return compute(x.shape, at, name=op)


def center_crop_pad(x: Tensor, shape: Any, *, axes: Any = None, value: float | bool = 0.0) -> Tensor:
    """x in another shape along axes (default: all): what is too much is cut at both ends, what lacks is `value`.

    Where the difference is odd, the end gets or loses one more. Extents are constants. As in ONNX.
    """
    op = "center_crop_pad"
    check_tensors(op, x=x)
    chosen = axis_indices(op, axes, x.ndim, "axes")
    sizes = per_axis(op, "shape", shape, len(chosen))
    widths = [(0, 0)] * x.ndim
    for a, n in zip(chosen, sizes):
        extent = constant(x.shape[a])
        check(extent is not None, op, f"extent {a} is {x.shape[a]}, a constant is needed",
              "topi.strided_slice and topi.pad")
        more = n - (extent or 0)
        before = more // 2 if more >= 0 else -(-more // 2)
        widths[a] = before, more - before
    return pad(x, widths, value=value)


def flip(x: Tensor, *, axis: Any = None) -> Tensor:
    """x in reverse order along axes, by default all."""
    check_tensors("flip", x=x)
    axes = axis_indices("flip", axis, x.ndim)
    return compute(x.shape, lambda *i: x(*(binary("sub", n - 1, v) if a in axes else v
                                           for a, (v, n) in enumerate(zip(i, x.shape)))), name="flip")


def roll(x: Tensor, shift: Any, *, axis: Any = None) -> Tensor:
    """x moved along axes by shift; what leaves at one end comes back at the other. Without axes as if flat.

    shift: integers or expressions of them, one for each axis or one for all.
    """
    op = "roll"
    check_tensors(op, x=x)
    given = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    check(all(map(_is_whole, given)), op, f"shift is {described(shift)}, not made of integers")
    if axis is None:
        if x.ndim == 0:
            return compute((), lambda: x(), name=op)
        return reshaped(roll(flatten(x), shift, axis=0), x.shape, op)
    axes = axis_indices(op, axis, x.ndim)
    shifts = given if isinstance(shift, (tuple, list)) else given * len(axes)
    check(len(shifts) == len(axes), op, f"shift has {len(shifts)} element(s), axis {len(axes)}")
    if count(x.shape) == 0:
        return compute(x.shape, lambda *i: const(0, x.dtype), name=op)
    sizes = [constant(x.shape[a]) for a in axes]
    by = {a: s if isinstance(s, ExprOps) or n is None else int(s) % n for a, s, n in zip(axes, shifts, sizes)}
    return compute(x.shape, lambda *i: x(*(binary("floormod", binary("sub", v, by[a]), n) if a in by else v
                                           for a, (v, n) in enumerate(zip(i, x.shape)))), name=op)


def pad(x: Tensor, pad_width: Any, *, mode: str = "constant", value: float | bool = 0.0) -> Tensor:
    """x with borders: pad_width is a number, a pair, or a pair (before, after) for each dimension, of sizes too.

    mode: "constant" (of value; negative amounts cut), "edge" (the outermost element), "reflect" (mirrored at the
    outermost element), "symmetric" (mirrored behind it), "circular" (the other end). Names of torch and NumPy
    ("replicate", "wrap") are taken too. Raises TensorExpressionError where x is too small to be mirrored.
    """
    op = "pad"
    check_tensors(op, x=x)
    mode = {"replicate": "edge", "wrap": "circular"}.get(mode, mode)
    check_choice(op, "mode", mode, ("constant", "edge", "reflect", "symmetric", "circular"))
    widths = _widths(op, pad_width, x.ndim)
    if mode == "constant":
        y = padded(x, widths, const(value if x.dtype != "bool" else bool(value), x.dtype))
        return y if y is not x else compute(x.shape, lambda *i: x(*i), name=op)
    for n, (extent, pair) in enumerate(zip(x.shape, widths)):
        for p in pair:
            if isinstance(p, Expr):
                state(binary("ge", p, 0), f"{op}: a negative amount {p} with mode {mode!r}")
                if mode in ("reflect", "symmetric"):
                    state(binary("le", p, extent - int(mode == "reflect")),
                          f"{op}: extent {n} is {extent}, too small for a {mode} border of {p}")
        numbers = [p for p in pair if isinstance(p, int)]
        known, most = constant(extent), max(numbers, default=0)
        check(min(numbers, default=0) >= 0, op, f"a negative amount with mode {mode!r}")
        check(known is None or most == 0 or known > 0 and (mode in ("edge", "circular") or most < known + (
            mode == "symmetric")), op, f"extent {n} is {extent}, too small for a {mode} border of {most}")
    if count(x.shape) == 0:
        shape = [summed(n, b, a) for n, (b, a) in zip(x.shape, widths)]
        return compute(shape, lambda *i: const(0, x.dtype), name=op)

    def source(v: Any, n: Expr, pair: tuple[Any, Any]) -> Expr:
        at, last = binary("sub", v, pair[0]), n - 1
        if all(constant(p) == 0 for p in pair):
            return convert(v)
        if mode == "edge":
            return clamped(at, n)
        if mode == "circular":
            return binary("floormod", at, n)
        if mode == "reflect":
            return binary("sub", last, absolute(binary("sub", last, absolute(at))))
        below = maximum(at, binary("sub", -1, at))
        return minimum(below, binary("sub", n + last, below))
    shape = [summed(n, b, a) for n, (b, a) in zip(x.shape, widths)]
    return compute(shape, lambda *i: x(*(source(v, n, w) for v, n, w in zip(i, x.shape, widths))), name=op)


def _widths(op: str, given: Any, rank: int) -> list[tuple[Any, Any]]:
    """A pair (before, after) for each dimension."""
    low = -(1 << 31)
    if isinstance(given, (tuple, list)) and given and isinstance(given[0], (tuple, list)):
        check(len(given) in (1, rank), op, f"pad_width is {described(given)}, x has {rank} dimension(s)")
        pairs = given if len(given) == rank else list(given) * rank
        rows = [per_axis(op, "pad_width", p, 2, low, sizes=True) for p in pairs]
    else:
        rows = [per_axis(op, "pad_width", given, 2, low, sizes=True)] * rank
    return [(r[0], r[1]) for r in rows]


def tile(x: Tensor, repetitions: Any) -> Tensor:
    """x side by side with itself: repetitions of each dimension, the last ones first counted (as in NumPy).

    Repetitions may be sizes.
    """
    op = "tile"
    check_tensors(op, x=x)
    times = tuple(repetitions) if isinstance(repetitions, (tuple, list)) else (repetitions,)
    rank = max(len(times), x.ndim)
    times = per_axis(op, "repetitions", (1,) * (rank - len(times)) + times, rank, sizes=True)
    own = (convert(1),) * (rank - x.ndim) + x.shape
    shape = [simplified(product((n, t))) for n, t in zip(own, times)]
    if count(x.shape) == 0:
        return compute(shape, lambda *i: const(0, x.dtype), name=op)
    return compute(shape, lambda *i: x(*(
        v if is_one(t) else 0 if is_one(n) else binary("floormod", v, n)
        for v, n, t in list(zip(i, own, times))[rank - x.ndim:])), name=op)


def repeat(x: Tensor, repeats: int, *, axis: int | None = None) -> Tensor:
    """Every element of x along an axis `repeats` times in a row; of all elements for None."""
    op = "repeat"
    check_tensors(op, x=x)
    if axis is None:
        return repeat(flatten(x), repeats, axis=0)
    at = axis_index(op, axis, x.ndim)
    times, = per_axis(op, "repeats", repeats, 1)
    return compute(replaced(x.shape, at, simplified(product((x.shape[at], times)))),
                   lambda *i: x(*replaced(i, at, binary("floordiv", i[at], times or 1))), name=op)


__all__ = ["as_strided", "center_crop_pad", "diff", "flip", "pad", "repeat", "roll", "slice_scatter", "strided_slice",
           "tile"]
