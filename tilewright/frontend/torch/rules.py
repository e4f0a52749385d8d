"""Rules of tensor expressions for what ATen has and topi has not under one name."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te, topi


def truncated_quotient(a: Any, b: Any) -> te.Tensor:
    """y = a / b of integers, rounded toward 0; 0 where b is 0."""
    quotient = topi.floor_divide(a, b)
    rest = topi.remainder(a, b)
    up = topi.logical_and(topi.not_equal(rest, 0), topi.less(quotient, 0))
    return topi.add(quotient, topi.astype(up, quotient.dtype))


def whole_power(a: Any, b: Any) -> te.Tensor:
    """y = a ** b of integers; for a negative b that of 1 and -1, 0 for all others."""
    odd = topi.not_equal(topi.bitwise_and(b, 1), 0)
    unit = topi.logical_or(topi.equal(a, 1), topi.equal(a, -1))
    sign = topi.where(topi.logical_and(odd, topi.less(a, 0)), -1, topi.astype(unit, a.dtype)) \
        if isinstance(a, te.Tensor) else topi.where(odd, a, int(abs(a) == 1))
    below = topi.where(unit, sign, 0) if isinstance(a, te.Tensor) else sign if abs(a) == 1 else topi.zeros_like(b)
    return topi.where(topi.less(b, 0), below, topi.power(a, b))


def floored_quotient(a: Any, b: Any) -> te.Tensor:
    """y = floor(a / b) of floats, as torch has it: from the remainder, exact where a is a multiple of b."""
    rest = topi.fmod(a, b)
    exact = topi.divide(topi.subtract(a, rest), b)
    other = topi.logical_and(topi.not_equal(rest, 0.0), topi.not_equal(topi.less(b, 0.0), topi.less(rest, 0.0)))
    low = topi.where(other, topi.subtract(exact, 1.0), exact)
    near = topi.floor(low)
    whole = topi.where(topi.greater(topi.subtract(low, near), 0.5), topi.add(near, 1.0), near)
    quotient = topi.divide(a, b)
    zero = topi.copysign(topi.zeros_like(quotient), quotient)
    return topi.where(topi.equal(b, 0.0), quotient, topi.where(topi.equal(low, 0.0), zero, whole))


def slices(x: te.Tensor, *, axis: int, start: Any, step: int, extent: Any) -> te.Tensor:
    """y[..., i, ...] = x[..., start + i * step, ...] along an axis."""
    shape = (*x.shape[:axis], extent, *x.shape[axis + 1:])
    return te.compute(shape, lambda *i: x(*i[:axis], start + i[axis] * step, *i[axis + 1:]), name="slice")


def selected(x: te.Tensor, *, axis: int, index: Any) -> te.Tensor:
    """y[...] = x[..., index, ...] along an axis."""
    return te.compute((*x.shape[:axis], *x.shape[axis + 1:]),
                      lambda *i: x(*i[:axis], index, *i[axis:]), name="select")


def steps(*, start: Any, step: Any, extent: Any, dtype: str) -> te.Tensor:
    """y[i] = start + i * step."""
    wide = "float64" if dtype in ("float64", "float32", "float16", "bfloat16") else "int64"

    def element(i: te.Var) -> Any:
        return te.cast(dtype, te.cast(wide, start) + te.cast(wide, i) * te.cast(wide, step))
    return te.compute((extent,), element, name="arange")


def put_slices(x: te.Tensor, updates: te.Tensor, *, axis: int, start: Any, step: int) -> te.Tensor:
    """x, with updates[..., i, ...] at start + i * step along an axis."""
    extent = updates.shape[axis]

    def element(*i: te.Var) -> Any:
        at = i[axis] - start
        inside = te.all(at >= 0, at < extent * step)
        if step != 1:
            inside = te.all(inside, te.floormod(at, step) == 0)
        place = te.floordiv(at, step) if step != 1 else at
        return te.if_then_else(inside, updates(*i[:axis], place, *i[axis + 1:]), x(*i))
    return te.compute(x.shape, element, name="put_slices")


def put_diagonal(x: te.Tensor, updates: te.Tensor, *, offset: int) -> te.Tensor:
    """x, with updates[..., i] on a diagonal of its last two axes."""
    down, right = max(-offset, 0), max(offset, 0)
    count = updates.shape[-1]

    def element(*i: te.Var) -> Any:
        row, column = i[-2] - down, i[-1] - right
        inside = te.all(row == column, row >= 0, row < count)
        return te.if_then_else(inside, updates(*i[:-2], row), x(*i))
    return te.compute(x.shape, element, name="put_diagonal")


def bordered(x: te.Tensor, *, shape: Sequence[Any], before: Sequence[Any], value: Any) -> te.Tensor:
    """y[i] = x[i - before] where that is an element, else value."""
    def element(*i: te.Var) -> Any:
        at = [v - b for v, b in zip(i, before)]
        inside = [c for v, n in zip(at, x.shape) for c in (v >= 0, v < n)]
        return te.if_then_else(te.all(*inside), x(*at), te.const(value, x.dtype))
    return te.compute(tuple(shape), element, name="bordered")


def window(x: te.Tensor, *, shape: Sequence[Any], begin: Sequence[Any]) -> te.Tensor:
    """y[i] = x[i + begin]."""
    return te.compute(tuple(shape), lambda *i: x(*(v + b for v, b in zip(i, begin))), name="window")
