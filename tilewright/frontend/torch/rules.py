"""Rules of tensor expressions for what ATen has and topi has not under one name."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import te, topi


def truncated_quotient(a: Any, b: Any) -> te.Tensor:
    """y = a / b of integers, rounded toward 0; 0 where b is 0."""
    quotient = topi.floor_divide(a, b)
    rest = topi.remainder(a, b)
    up = topi.logical_and(topi.not_equal(rest, 0), topi.less(quotient, 0))
    return topi.add(quotient, topi.astype(up, quotient.dtype))


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


def bits(x: te.Tensor, *, dtype: str) -> te.Tensor:
    """The bits of x as another type of the same size."""
    return te.compute(x.shape, lambda *i: te.reinterpret(dtype, x(*i)), name="bits")


def exact_indices(index: te.Tensor, *, extent: Any) -> te.Tensor:
    """Indices for a rule that counts those below 0 from the end: such an index stays below 0, and so out of range."""
    def element(*i: te.Var) -> Any:
        at = index(*i)
        return te.select(at < 0, at - te.cast(at.dtype, extent), at)
    return te.compute(index.shape, element, name="exact_indices")


def slices(x: te.Tensor, *, axis: int, start: Any, step: int, extent: Any) -> te.Tensor:
    """y[..., i, ...] = x[..., start + i * step, ...] along an axis."""
    shape = (*x.shape[:axis], extent, *x.shape[axis + 1:])
    return te.compute(shape, lambda *i: x(*i[:axis], start + i[axis] * step, *i[axis + 1:]), name="slice")


def selected(x: te.Tensor, *, axis: int, index: Any) -> te.Tensor:
    """y[...] = x[..., index, ...] along an axis."""
    return te.compute((*x.shape[:axis], *x.shape[axis + 1:]),
                      lambda *i: x(*i[:axis], index, *i[axis:]), name="select")


def slices_from(x: te.Tensor, start: te.Tensor, *, axis: int, step: int, extent: Any) -> te.Tensor:
    """`slices` from an element of a tensor on, which counts from the end where it is negative."""
    shape = (*x.shape[:axis], extent, *x.shape[axis + 1:])
    zero = (0,) * start.ndim

    def element(*i: te.Var) -> Any:
        first = te.cast("int64", start(*zero))
        first = te.select(first < 0, first + te.cast("int64", x.shape[axis]), first)
        return x(*i[:axis], first + te.cast("int64", i[axis] * step), *i[axis + 1:])
    return te.compute(shape, element, name="slice")


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


def weight_gradient(x: te.Tensor, dy: te.Tensor, *, kernel: Sequence[Any], stride: Sequence[int],
                    padding: Sequence[int], dilation: Sequence[int], groups: int) -> te.Tensor:
    """dw[f, c, k] = sum over b and o of dy[b, f, o] * x[b, g(f) * c' + c, o * stride + k * dilation - padding].

    x: T[b, groups * c', *spatial], 0 outside; dy: T[b, f, *o]; dw: T[f, c', *kernel].
    """
    per, depth = dy.shape[1] // groups, x.shape[1] // groups
    wide = "float32" if x.dtype in ("float16", "bfloat16") else x.dtype
    border = [(0, 0), (0, 0), *((p, p) for p in padding)]
    data = topi.pad(x, tuple(border)) if any(padding) else x
    axes = [te.reduce_axis((0, n), name=f"r{k}") for k, n in enumerate((dy.shape[0], *dy.shape[2:]))]
    b, *outs = axes

    def element(f: te.Var, c: te.Var, *k: te.Var) -> Any:
        channel = c if groups == 1 else te.floordiv(f, per) * depth + c
        at = [o * s + v * d for o, s, v, d in zip(outs, stride, k, dilation)]
        return te.sum(te.cast(wide, dy(b, f, *outs)) * te.cast(wide, data(b, channel, *at)), axis=axes)
    total = te.compute((dy.shape[1], depth, *kernel), element, name="weight_gradient")
    return topi.astype(total, x.dtype)


def _gathered(dy: te.Tensor, axis: int, extent: Any, share: Callable[[te.Var, te.Var], Any]) -> te.Tensor:
    """dx[..., i, ...] = sum over o of dy[..., o, ...] * share(o, i) along an axis, in float32 at least."""
    wide = "float64" if dy.dtype == "float64" else "float32"
    o = te.reduce_axis((0, dy.shape[axis]), name="o")

    def element(*i: te.Var) -> Any:
        part, divisor = share(o.var, i[axis])
        value = te.cast(wide, dy(*i[:axis], o, *i[axis + 1:])) / te.cast(wide, divisor)
        return te.sum(te.if_then_else(part, value, te.const(0, wide)), axis=o)
    shape = (*dy.shape[:axis], extent, *dy.shape[axis + 1:])
    return topi.astype(te.compute(shape, element, name="window_gradient"), dy.dtype)


def average_gradient(dy: te.Tensor, *, axis: int, extent: Any, kernel: int, stride: int, padding: int,
                     counted: str) -> te.Tensor:
    """The gradient of averages over windows along an axis. counted: which elements divide: "all", "inside", "none"."""
    def share(o: te.Var, i: te.Var) -> tuple[Any, Any]:
        start = o * stride - padding
        counts: dict[str, Any] = {"all": te.minimum(start + kernel, extent + padding) - start, "none": 1,
                                  "inside": te.minimum(start + kernel, extent) - te.maximum(start, 0)}
        return te.all(start <= i, i < start + kernel), counts[counted]
    return _gathered(dy, axis, extent, share)


def adaptive_average_gradient(dy: te.Tensor, *, axis: int, extent: Any) -> te.Tensor:
    """The gradient of averages over windows from floor(o * n / m) to ceil((o + 1) * n / m) along an axis."""
    m = dy.shape[axis]

    def share(o: te.Var, i: te.Var) -> tuple[Any, Any]:
        start, end = te.floordiv(o * extent, m), te.floordiv((o + 1) * extent + m - 1, m)
        return te.all(start <= i, i < end), end - start
    return _gathered(dy, axis, extent, share)


def repeated_gradient(dy: te.Tensor, *, axis: int, extent: Any, before: Any) -> te.Tensor:
    """The gradient of borders along an axis that repeat the outermost elements."""
    def share(o: te.Var, i: te.Var) -> tuple[Any, Any]:
        return te.maximum(te.minimum(o - before, extent - 1), 0).equal(i), 1
    return _gathered(dy, axis, extent, share)


def window(x: te.Tensor, *, shape: Sequence[Any], begin: Sequence[Any]) -> te.Tensor:
    """y[i] = x[i + begin]."""
    return te.compute(tuple(shape), lambda *i: x(*(v + b for v, b in zip(i, begin))), name="window")
