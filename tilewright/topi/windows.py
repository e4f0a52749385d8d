"""Windows that slide over the spatial axes: padding, extents of results, the guarded reads of the border."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import all_of, binary, ceildiv, if_then_else
from tilewright.tir.conversion import cast, convert
from tilewright.tir.expr import Expr
from tilewright.topi.shapes import check, check_rank, check_tensors, constant, per_axis, summed

Pads = tuple[tuple[int, int], ...]
SPATIAL = ("w", "hw", "dhw")              # names of the spatial axes by their number


def padded(x: Tensor, pads: Sequence[tuple[Any, Any]], value: Any, name: str = "pad") -> Tensor:
    """x with `before` and `after` more elements along each axis; they have the value. x itself without any.

    An amount may be negative: it cuts. value: a number or an expression.
    """
    if all(constant(p) == 0 for pair in pads for p in pair):
        return x
    shape = tuple(summed(n, b, a) for n, (b, a) in zip(x.shape, pads))
    return _bordered(x, shape, [b for b, _ in pads], [constant(a) for _, a in pads], value, name)


def _bordered(x: Tensor, shape: Sequence[Any], before: Sequence[Any], after: Sequence[int | None], value: Any,
              name: str) -> Tensor:
    """y[i] = x[i - before] inside of x, else the value. after: the constants below 1 need no upper guard."""
    fill = cast(x.dtype, value if isinstance(value, Expr) else convert(value, x.dtype))

    def at(*i: Any) -> Expr:
        source = tuple(binary("sub", v, b) for v, b in zip(i, before))
        inside = [c for s, n, b, a in zip(source, x.shape, before, after) for c in (
            [binary("ge", s, 0)] if (constant(b) or 0) > 0 or constant(b) is None else []) + (
            [binary("lt", s, n)] if a is None or a > 0 else [])]
        return if_then_else(all_of(*inside), x(*source), fill) if inside else x(*source)
    return compute(tuple(shape), at, name=name)


@dataclass(frozen=True)
class Windows:
    """Where windows lie: element k of window o of spatial axis n is element o * stride + k * dilation - before of x."""
    kernel: tuple[Any, ...]
    stride: tuple[int, ...]
    pads: Pads
    dilation: tuple[int, ...]
    out: tuple[Expr, ...]
    ragged: bool                          # the last window may reach beyond the padding

    def source(self, outs: Sequence[Any], ks: Sequence[Any]) -> tuple[Expr, ...]:
        """The indices of elements ks of windows outs in the bordered tensor."""
        return tuple(binary("add", binary("mul", o, s), binary("mul", k, d))
                     for o, k, s, d in zip(outs, ks, self.stride, self.dilation))

    def bordered(self, x: Tensor, first: int, value: Any) -> Tensor:
        """x with the border that its windows read, along the spatial axes from number `first` on."""
        if not self.ragged and all(p == (0, 0) for p in self.pads):
            return x
        shape, before, after = list(x.shape), [0] * x.ndim, [0 if not self.ragged else None] * x.ndim
        for n, (o, k, s, d, (b, a)) in enumerate(zip(self.out, self.kernel, self.stride, self.dilation, self.pads)):
            at = first + n
            if self.ragged:
                shape[at] = simplified((o - 1) * s + (convert(k) - 1) * d + 1)
            else:
                shape[at] = summed(x.shape[at], b, a)
                after[at] = a
            before[at] = b
        for n in range(x.ndim):
            if not first <= n < first + len(self.out):
                after[n] = 0
        return _bordered(x, shape, before, after, value, "pad")


def windows(op: str, extents: Sequence[Expr], kernel: Sequence[Any], *, stride: Any, padding: Any, dilation: Any = 1,
            ceil_mode: bool = False) -> Windows:
    """The windows over spatial axes of these extents.

    padding: a number, one for each axis, a pair (before, after) for each axis, "valid", "same" (for stride 1), or, of
    constant extents, "same_upper" and "same_lower": as many windows as extent / stride, rounded up, with one more
    element of an odd number of them behind x or before it.
    ceil_mode: a last window that is not whole counts where it begins inside of x or the padding before it, be it the
    only one.
    Raises TensorExpressionError where no window fits.
    """
    count = len(extents)
    stride, dilation = per_axis(op, "stride", stride, count, 1), per_axis(op, "dilation", dilation, count, 1)
    if isinstance(padding, str) and padding in ("same_upper", "same_lower"):
        padding = _same(op, extents, kernel, stride, dilation, padding == "same_upper")
    pads = _paddings(op, padding, kernel, stride, dilation)
    out = []
    for n, k, s, d, (b, a) in zip(extents, kernel, stride, dilation, pads):
        room = simplified(n + (b + a) - (convert(k) - 1) * d - 1)
        check(constant(k) != 0, op, "the kernel has no element")
        several = (ceildiv(room, s) if ceil_mode else binary("floordiv", room, s)) + 1
        if ceil_mode:                                       # no window lies in the padding behind x alone
            several = binary("min", several, binary("floordiv", n + (b - 1), s) + 1)
        out.append(simplified(several))
        fit = constant(out[-1])
        check(fit is None or fit >= 1, op, f"a window of {k} elements with dilation {d} does not fit the extent {n} "
              f"with padding {b} and {a}")
    return Windows(tuple(kernel), stride, pads, dilation, tuple(out), ceil_mode)


def _same(op: str, extents: Sequence[Any], kernel: Sequence[Any], stride: Sequence[int], dilation: Sequence[int],
          upper: bool) -> Pads:
    """The padding with which ceil(extent / stride) windows fit."""
    out = []
    for extent, k, s, d in zip(extents, kernel, stride, dilation):
        n, size = constant(extent), constant(k)
        check(n is not None and size is not None, op, f"the padding depends on the extents {extent} and {k}",
              "pass the amounts")
        total = max((-(-(n or 0) // s) - 1) * s + ((size or 1) - 1) * d + 1 - (n or 0), 0)
        out.append((total // 2, total - total // 2) if upper else (total - total // 2, total // 2))
    return tuple(out)


def _paddings(op: str, padding: Any, kernel: Sequence[Any], stride: Sequence[int], dilation: Sequence[int]) -> Pads:
    """The padding as pairs (before, after), one for each spatial axis."""
    count = len(kernel)
    if isinstance(padding, str):
        check(padding in ("valid", "same"), op, f"padding is {padding!r}",
              '"valid", "same", "same_upper", "same_lower" or numbers')
        if padding == "valid":
            return ((0, 0),) * count
        check(all(s == 1 for s in stride), op, f'padding "same" with stride {tuple(stride)}', "pass the amounts")
        spans = [constant((convert(k) - 1) * d) for k, d in zip(kernel, dilation)]
        check(None not in spans, op, 'padding "same" with a symbolic kernel', "pass the amounts")
        return tuple((s // 2, s - s // 2) for s in spans if s is not None)
    return amounts(op, "padding", padding, count)


def amounts(op: str, name: str, value: Any, count: int) -> Pads:
    """Pairs (before, after) of a number, of one for each of `count` axes, or of a pair for each."""
    if isinstance(value, (tuple, list)) and value and all(isinstance(p, (tuple, list)) for p in value):
        check(len(value) == count, op, f"{name} is {described(value)}, {count} pair(s) are needed")
        ends = [per_axis(op, name, p, 2) for p in value]
        return tuple((e[0], e[1]) for e in ends)
    return tuple((p, p) for p in per_axis(op, name, value, count))


def spatial_rank(op: str, x: Tensor, least: int = 1) -> int:
    """The number of dimensions after batch and channels: 1 to 3."""
    check(2 + least <= x.ndim <= 5, op, f"x has the shape {shape_text(x.shape)}, batch, channels and {least} to 3 "
          "spatial dimensions are needed")
    return x.ndim - 2


def of_rank(general: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The function `general` for `count` spatial axes only: conv2d of conv."""
    name = f"{general.__name__}{count}d"

    @functools.wraps(general)
    def function(x: Tensor, *args: Any, **attrs: Any) -> Any:
        check_tensors(name, x=x)
        check_rank(name, "x", x, count + 2)
        return general(x, *args, **attrs)
    function.__signature__ = inspect.signature(general)                      # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""`{general.__name__}` over {count} spatial ax{'is' if count == 1 else 'es'}: x: T[b, c, {
        ', '.join(SPATIAL[count - 1])}].

    Raises TensorExpressionError as `{general.__name__}` does, and for an x of another rank.
    """
    return function
