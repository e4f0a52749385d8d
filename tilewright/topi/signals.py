"""Signals: Fourier transforms through products, of whole signals and of frames; windows.

Complex numbers are pairs (real, imaginary) along the last axis, as in ONNX and torch.view_as_real. The number of
elements that is transformed may be symbolic; where it is constant and has factors, a transform is made of those of its
factors: O(n * (a + b + ...)) products for n = a * b * ... (Cooley and Tukey, 1965), each a product of matrices.
norm: "backward" (the inverse is divided by n), "forward" (the transform is), "ortho" (both by sqrt(n)).
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.support.errors import described
from tilewright.te.constant import constant as te_constant
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import cos, sin, sqrt
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import all_of, binary, if_then_else, maximum, negate, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.topi.contraction import contraction, reduction_axis
from tilewright.topi.shapes import (
    as_shape,
    axis_index,
    check,
    check_choice,
    check_extent,
    check_numbers,
    check_rank,
    check_tensors,
    constant,
    number,
    per_axis,
)
from tilewright.topi.types import FLOAT, accumulator, check_kind, dtype_name

NORMS = ("backward", "forward", "ortho")
RADIX = 32                     # up to so many elements are transformed by one product
LARGEST = 1 << 24              # elements of a table that is written into the kernel


# transforms


def _factor(n: int) -> int:
    """The radix of the first step: the largest divisor up to RADIX, or the least above it; n where n is small."""
    if n <= RADIX:
        return n
    small = [d for d in range(2, RADIX + 1) if n % d == 0]
    return small[-1] if small else next((d for d in range(RADIX + 1, math.isqrt(n) + 1) if n % d == 0), n)


def _turns(op: str, n: Any, inverse: bool, wide: str) -> Tensor:
    """[n, 2]: (cos, sin) of the n-th parts of a turn, clockwise unless inverse."""
    known, sign = constant(n), 1.0 if inverse else -1.0
    if known is not None:
        angles = 2 * np.pi * np.arange(known) / max(known, 1)
        return te_constant(np.stack([np.cos(angles), sign * np.sin(angles)], -1).astype(wide))

    def at(m: Expr, part: Expr) -> Expr:
        angle = cast(wide, m) * (2.0 * math.pi) / number(n, wide)
        return select(binary("eq", part, 0), cos(angle), sin(angle) * sign)
    return compute((n, 2), at, name=f"{op}_turns")


def _multiple(j: Any, k: Any, n: Any) -> Expr:
    """j * k, brought into [0, n) in integers that hold the product."""
    wide = constant(n) is None or (constant(n) or 0) > 46340
    j, k = (cast("int64", v) for v in (j, k)) if wide else (j, k)
    return binary("floormod", binary("mul", j, k), n)


def _product(op: str, x: Tensor, n: Any, inverse: bool, bins: Any, wide: str) -> Tensor:
    """[lead..., bins, 2]: the first elements of the transform of x: [lead..., n, 1 or 2], by one product."""
    turns, parts = _turns(op, n, inverse, wide), x.shape[-1]

    def coefficient(j: Expr, d: Expr, k: Expr, c: Expr) -> Expr:
        m = _multiple(j, k, n)
        if constant(parts) == 1:
            return turns(m, c)
        same = binary("eq", d, c)
        value = turns(m, select(same, 0, 1))
        return select(all_of(binary("eq", d, 1), binary("eq", c, 0)), negate(value), value)
    matrix = compute((n, parts, bins, 2), coefficient, name=f"{op}_matrix")
    j, d = reduction_axis(n, "j"), reduction_axis(parts, "d")
    return contraction(f"{op}_product", (*x.shape[:-2], bins, 2), lambda *i: (
        x(*i[:-2], j, d), matrix(j, d, *i[-2:])), [j, d], wide)


def _transformed(op: str, x: Tensor, inverse: bool, wide: str) -> Tensor:
    """The transform of x: [lead..., n, 1 or 2] along the axis before the last, without a factor."""
    n = x.shape[-2]
    known = constant(n)
    first = None if known is None else _factor(known)
    if known is None or first == known or not known or first is None:
        return _product(op, x, n, inverse, n, wide)
    rest, lead = known // first, x.shape[:-2]
    split = compute((*lead, rest, first, x.shape[-1]), lambda *i: x(*i[:-3], binary(
        "add", binary("mul", i[-2], rest), i[-3]), i[-1]), name=f"{op}_split")
    small, turns = _product(op, split, first, inverse, first, wide), _turns(op, known, inverse, wide)

    def turned(*i: Any) -> Expr:
        own, k, j, c = i[:-3], i[-3], i[-2], i[-1]
        m = binary("mul", j, k)
        real, imaginary = (small(*own, j, k, part) for part in (0, 1))
        return select(binary("eq", c, 0), real * turns(m, 0) - imaginary * turns(m, 1),
                      real * turns(m, 1) + imaginary * turns(m, 0))
    twisted = compute((*lead, first, rest, 2), turned, name=f"{op}_turned")
    y = _transformed(op, twisted, inverse, wide)
    return compute((*lead, known, 2), lambda *i: y(*i[:-2], binary("floormod", i[-2], first), binary(
        "floordiv", i[-2], first), i[-1]), name=f"{op}_joined")


def _scale(norm: str, inverse: bool, n: Any, wide: str) -> Expr | None:
    """What a transform of n elements is multiplied by; None for 1."""
    if norm == "ortho":
        return 1.0 / sqrt(maximum(number(n, wide), const(1.0, wide)))
    return 1.0 / maximum(number(n, wide), const(1.0, wide)) if (norm == "backward") == inverse else None


def _checked(op: str, x: Any, norm: str) -> str:
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, FLOAT)
    check_choice(op, "norm", norm, NORMS)
    return accumulator(x.dtype)


def _resized(op: str, x: Tensor, at: int, size: Any, wide: str, parts: int) -> Tensor:
    """[rest..., size, parts]: x with an axis moved before the complex one, cut or filled up with zeros."""
    extent = x.shape[at]
    n, = (extent,) if size is None else as_shape(op, size, 1)
    known = constant(n) or 0
    check(known <= LARGEST, op, f"{known} elements are transformed, at most {LARGEST} are taken",
          "a symbolic extent has no such limit: its angles are computed while the kernel runs")
    rest = [a for a in range(x.ndim - (parts == 2)) if a != at]
    have, wanted = constant(extent), constant(n)
    enough = size is None or have is not None and wanted is not None and wanted <= have

    def read(*i: Any) -> Expr:
        place = dict(zip(rest, i)) | {at: i[-2]} | ({x.ndim - 1: i[-1]} if parts == 2 else {})
        value = cast(wide, x(*(place[a] for a in range(x.ndim))))
        return value if enough else if_then_else(binary("lt", i[-2], extent), value, const(0.0, wide))
    if have == 0:
        return compute((*(x.shape[a] for a in rest), n, parts), lambda *i: const(0.0, wide), name=f"{op}_resized")
    return compute((*(x.shape[a] for a in rest), n, parts), read, name=f"{op}_resized")


def _moved_back(at: int, i: Sequence[Any]) -> tuple[Any, ...]:
    """Indices of a result with an axis at its place as those of one that has it before the complex one."""
    return (*i[:at], *i[at + 1:-1], i[at], i[-1])


def fft(x: Tensor, *, axis: int = -2, size: Any = None, inverse: bool = False, norm: str = "backward") -> Tensor:
    """y[k] = sum over j of x[j] * exp(-2 * pi * i * j * k / n) along an axis; with + and divided by n for the inverse.

    x, y: complex T[..., 2]. size: the number n of elements, of which x gives the first ones, and zeros behind them.
    Raises TensorExpressionError for a last extent that is not 2, and for the last axis.
    """
    op = "fft"
    wide = _checked(op, x, norm)
    check_rank(op, "x", x, 2, 100)
    check_extent(op, "the last extent of x", x.shape[-1], 2, "complex numbers are pairs; topi.rfft takes real ones")
    at = axis_index(op, axis, x.ndim)
    check(at != x.ndim - 1, op, f"axis is {axis}, that of the pairs")
    data = _resized(op, x, at, size, wide, 2)
    y = _transformed(op, data, inverse, wide)
    shape, scale = (*x.shape[:at], data.shape[-2], *x.shape[at + 1:]), _scale(norm, inverse, data.shape[-2], wide)

    def element(*i: Any) -> Expr:
        e: Expr = y(*_moved_back(at, i))
        return cast(x.dtype, e if scale is None else e * scale)
    return compute(shape, element, name=op)


def _bins(n: Any) -> Expr:
    """How many elements the transform of n real numbers has that no other one repeats."""
    return simplified(binary("floordiv", n, 2) + 1)


def rfft(x: Tensor, *, axis: int = -1, size: Any = None, norm: str = "backward") -> Tensor:
    """y[..., k, ..., :] = sum over j of x[..., j, ...] * exp(-2 * pi * i * j * k / n) of real x, 0 <= k <= n / 2.

    x: T[..., n, ...]; y: complex T[..., n // 2 + 1, ..., 2]; size as in `fft`. Raises TensorExpressionError for no
    element.
    """
    op = "rfft"
    wide = _checked(op, x, norm)
    at = axis_index(op, axis, x.ndim)
    data = _resized(op, x, at, size, wide, 1)
    n = data.shape[-2]
    check(constant(n) != 0, op, "there is no element to transform")
    known, bins = constant(n), _bins(n)
    direct = known is None or _factor(known) == known
    y = _product(op, data, n, False, bins, wide) if direct else _transformed(op, data, False, wide)
    shape, scale = (*x.shape[:at], bins, *x.shape[at + 1:], 2), _scale(norm, False, n, wide)

    def element(*i: Any) -> Expr:
        e: Expr = y(*_moved_back(at, i))
        return cast(x.dtype, e if scale is None else e * scale)
    return compute(shape, element, name=op)


def irfft(x: Tensor, *, size: Any, axis: int = -2, norm: str = "backward") -> Tensor:
    """The `size` real numbers of which x is the `rfft`: x: complex T[..., size // 2 + 1, ..., 2]; y: T[..., size, ...].

    The imaginary parts of x[0], and of x[size / 2] for an even size, count as 0. A missing element of x counts as 0.
    Raises TensorExpressionError for a last extent that is not 2, and for the last axis.
    """
    op = "irfft"
    wide = _checked(op, x, norm)
    check_rank(op, "x", x, 2, 100)
    check_extent(op, "the last extent of x", x.shape[-1], 2, "complex numbers are pairs")
    at, (n,) = axis_index(op, axis, x.ndim), as_shape(op, size, 1)
    check(at != x.ndim - 1, op, f"axis is {axis}, that of the pairs")
    half = _resized(op, x, at, _bins(n), wide, 2)

    def mirrored(*i: Any) -> Expr:
        k, part = i[-2], i[-1]
        above = binary("gt", binary("mul", k, 2), n)
        e = half(*i[:-2], select(above, binary("sub", n, k), k), part)
        single = binary("or", binary("eq", k, 0), binary("eq", binary("mul", k, 2), n))
        other = select(single, const(0.0, wide), select(above, negate(e), e))
        return select(binary("eq", part, 0), e, other)
    full = compute((*half.shape[:-2], n, 2), mirrored, name=f"{op}_mirrored")
    y, scale = _transformed(op, full, True, wide), _scale(norm, True, n, wide)

    def element(*i: Any) -> Expr:
        e: Expr = y(*_moved_back(at, (*i, 0)))
        return cast(x.dtype, e if scale is None else e * scale)
    return compute((*x.shape[:at], n, *x.shape[at + 1:-1]), element, name=op)


# frames


def _window(op: str, window: Tensor | None, length: Any) -> None:
    if window is not None:
        check_tensors(op, window=window)
        check_rank(op, "window", window, 1)
        check_kind(op, "window", window.dtype, FLOAT)
        check_extent(op, "the extent of window", window.shape[0], length)


def stft(x: Tensor, window: Tensor | None = None, *, length: int, step: int, onesided: bool = True,
         norm: str = "backward") -> Tensor:
    """y[..., f, k, :] = the `rfft` of x[..., f * step + j] * window[j], 0 <= j < length: of frames of a real signal.

    x: T[..., n]; window: T[length], else ones; y: complex T[..., 1 + (n - length) // step, length // 2 + 1, 2], or all
    `length` elements unless onesided. Frames around the ends of x: topi.pad first. Raises TensorExpressionError where
    no frame fits.
    """
    op = "stft"
    wide = _checked(op, x, norm)
    check_rank(op, "x", x, 1, 100)
    (size,), (by,) = per_axis(op, "length", length, 1, 1), per_axis(op, "step", step, 1, 1)
    _window(op, window, size)
    n = constant(x.shape[-1])
    check(n is None or n >= size, op, f"x has {n} elements, a frame {size}")
    frames = simplified(binary("floordiv", x.shape[-1] - size, by) + 1)

    def sample(*i: Any) -> Expr:
        e = cast(wide, x(*i[:-2], binary("add", binary("mul", i[-2], by), i[-1])))
        return e if window is None else e * cast(wide, window(i[-1]))
    data = compute((*x.shape[:-1], frames, size), sample, name=f"{op}_frames")
    if onesided:
        y = rfft(data, norm=norm)
    else:
        pairs = compute((*data.shape, 2), lambda *i: select(binary("eq", i[-1], 0), data(*i[:-1]), const(0.0, wide)),
                        name=f"{op}_pairs")
        y = fft(pairs, norm=norm)
    return y if wide == x.dtype else compute(y.shape, lambda *i: cast(x.dtype, y(*i)), name=op)


def istft(x: Tensor, window: Tensor | None = None, *, length: int, step: int, norm: str = "backward") -> Tensor:
    """The signal of which x is the `stft`: frames times window, added up, divided by the sum of the windows' squares.

    x: complex T[..., f, length // 2 + 1, 2]; window: T[length], else ones; y: T[..., (f - 1) * step + length]; 0 where
    the sum is 0. Source: Griffin and Lim (1984). Raises TensorExpressionError where the frames have gaps.
    """
    op = "istft"
    wide = _checked(op, x, norm)
    check_rank(op, "x", x, 3, 100)
    (size,), (by,) = per_axis(op, "length", length, 1, 1), per_axis(op, "step", step, 1, 1)
    check(by <= size, op, f"step is {by}, above the length {size} of a frame")
    _window(op, window, size)
    check_extent(op, "the number of bins of x", x.shape[-2], size // 2 + 1, f"x has the shape {shape_text(x.shape)}")
    count = x.shape[-3]
    check(constant(count) != 0, op, "there is no frame")
    data = compute(x.shape, lambda *i: cast(wide, x(*i)), name=f"{op}_wide")
    frames = irfft(data, size=size, norm=norm)
    several = -(-size // by)

    def weight(j: Any) -> Expr:
        return const(1.0, wide) if window is None else cast(wide, window(j))

    def summed(name: str, shape: Sequence[Any], term: Any) -> Tensor:
        q = reduction_axis(several, "q")

        def at(*i: Any) -> Expr:
            f = binary("sub", binary("floordiv", i[-1], by), q)
            j = binary("add", binary("floormod", i[-1], by), binary("mul", q, by))
            there = all_of(binary("ge", f, 0), binary("lt", f, count), binary("lt", j, size))
            return te_sum(if_then_else(there, term(i[:-1], f, j), const(0.0, wide)), axis=q)
        return compute(shape, at, name=name)
    total = simplified((count - 1) * by + size)
    y = summed(f"{op}_sum", (*x.shape[:-3], total), lambda lead, f, j: frames(*lead, f, j) * weight(j))
    squares = summed(f"{op}_squares", (total,), lambda lead, f, j: weight(j) * weight(j))

    def finished(*i: Any) -> Expr:
        s, zero = squares(i[-1]), const(0.0, wide)
        return cast(x.dtype, select(binary("eq", s, zero), zero, y(*i) / select(binary("eq", s, zero), const(
            1.0, wide), s)))
    return compute(y.shape, finished, name=op)


# windows


def _cosines(op: str, size: Any, terms: Sequence[float], periodic: bool, dtype: Any) -> Tensor:
    """y[i] = the sum over k of (-1) ** k * terms[k] * cos(2 * pi * k * i / n), in float64: at the ends they cancel."""
    kind = dtype_name(dtype)
    check_kind(op, "dtype", kind, FLOAT)
    check(isinstance(periodic, bool), op, f"periodic is {described(periodic)}, not a bool")
    (extent,), wide = as_shape(op, size, 1), "float64"
    if constant(extent) == 1:
        return compute((1,), lambda i: const(1.0, kind), name=op)
    n = number(extent if periodic else extent - 1, wide)

    def at(i: Expr) -> Expr:
        e = const(terms[0], wide)
        for k, term in enumerate(terms[1:], 1):
            e = e + cos(cast(wide, i) * (2.0 * math.pi * k) / n) * (term if k % 2 == 0 else -term)
        return cast(kind, select(binary("eq", extent, 1), const(1.0, wide), e))
    return compute((extent,), at, name=op)


def hann_window(size: Any, *, periodic: bool = True, dtype: Any = "float32") -> Tensor:
    """y[i] = 0.5 - 0.5 * cos(2 * pi * i / n), n: size, or size - 1 for one that is not periodic; 1 of one element."""
    return _cosines("hann_window", size, (0.5, 0.5), periodic, dtype)


def hamming_window(size: Any, *, alpha: float = 0.54, periodic: bool = True, dtype: Any = "float32") -> Tensor:
    """y[i] = alpha - (1 - alpha) * cos(2 * pi * i / n), n as in `hann_window`. (ONNX's alpha is 25 / 46.)"""
    check_numbers("hamming_window", alpha=alpha)
    return _cosines("hamming_window", size, (alpha, 1.0 - alpha), periodic, dtype)


def blackman_window(size: Any, *, periodic: bool = True, dtype: Any = "float32") -> Tensor:
    """y[i] = 0.42 - 0.5 * cos(2 * pi * i / n) + 0.08 * cos(4 * pi * i / n), n as in `hann_window`."""
    return _cosines("blackman_window", size, (0.42, 0.5, 0.08), periodic, dtype)


def mel_weights(*, bins: int, length: int, rate: float, low: float, high: float, dtype: Any = "float32") -> Tensor:
    """T[length // 2 + 1, bins]: by how much an element of the `rfft` of `length` samples counts in each mel bin.

    Triangles between frequencies that are (high - low) / (bins + 2) apart in mel, 2595 * log10(1 + f / 700), from low
    on, each moved to an element of the transform: floor((length + 1) * f / rate). rate: samples per second. As in ONNX.
    """
    op, kind = "mel_weights", dtype_name(dtype)
    check_kind(op, "dtype", kind, FLOAT)
    (several,), (size,) = per_axis(op, "bins", bins, 1, 1), per_axis(op, "length", length, 1, 1)
    check_numbers(op, rate=rate, low=low, high=high)
    check(0 <= low < high <= rate / 2 < math.inf, op, f"low is {low}, high is {high}", f"0 <= low < high <= {rate / 2}")
    check(several * (size // 2 + 1) <= LARGEST, op, f"bins is {several}, length is {size}", f"a table of at most "
          f"{LARGEST} elements")
    first, last = (2595 * math.log10(1 + f / 700) for f in (low, high))
    mels = first + np.arange(several + 2) * (last - first) / (several + 2)
    edges = ((size + 1) * (700 * (10 ** (mels / 2595) - 1)) / rate).astype(int)
    table = np.zeros((size // 2 + 1, several))
    for k, (start, middle, end) in enumerate(zip(edges, edges[1:], edges[2:])):
        table[middle, k] = 1
        for i in range(start, middle):
            table[i, k] = (i - start) / (middle - start)
        for i in range(middle, end):
            table[i, k] = (end - i) / (end - middle)
    values = te_constant(table.astype(accumulator(kind)))
    return compute(table.shape, lambda i, k: cast(kind, values(i, k)), name=op)


__all__ = ["blackman_window", "fft", "hamming_window", "hann_window", "irfft", "istft", "mel_weights", "rfft", "stft"]
