"""Convolutions over one to three spatial axes: plain, grouped, depthwise, transposed, deformable."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import all_of, binary, if_then_else
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr
from tilewright.tir.iter_var import IterVar
from tilewright.topi.contraction import contraction, reduction_axis
from tilewright.topi.products import before_bias, with_bias
from tilewright.topi.sampling import interpolated
from tilewright.topi.shapes import check, check_extent, check_rank, check_tensors, constant, pairs, per_axis, quotient
from tilewright.topi.types import FLOAT, NUMBER, accumulator, check_kind, common_type, dtype_name
from tilewright.topi.windows import SPATIAL, Windows, amounts, of_rank, padded, spatial_rank, windows


def _dtype(op: str, out_dtype: Any, x: Tensor, weight: Tensor) -> str:
    common = common_type(op, x, weight)
    check_kind(op, "an operand", common, NUMBER)
    return common if out_dtype is None else dtype_name(out_dtype)


def _groups(op: str, groups: Any) -> int:
    several, = per_axis(op, "groups", groups, 1, 1)
    return several


def _kernel_axes(kernel: Sequence[Any]) -> list[IterVar]:
    return [reduction_axis(k, f"k{c}") for c, k in zip(SPATIAL[len(kernel) - 1], kernel)]


def conv(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: Any = 1, padding: Any = 0,
         dilation: Any = 1, groups: int = 1, channels_last: bool = False, out_dtype: Any = None) -> Tensor:
    """y[b, f, o] = sum over c and k of x[b, g(f) * c' + c, o * stride + k * dilation - padding] * weight[f, c, k].

    x: T[b, g * c', *spatial], 1 to 3 spatial axes (T[b, *spatial, g * c'] with channels_last, as is y then);
    weight: T[f, c', *kernel]; bias: T[f]. Filter f is of group f // (filters / groups). What lies outside of x is 0.
    padding: a number, one or a pair (before, after) for each axis, "valid", "same" (for stride 1), or "same_upper" or
    "same_lower" (of constant extents: as many windows as extent / stride, rounded up).
    out_dtype: the type in which products are made and added up.
    Raises TensorExpressionError where channels and groups do not fit, or the kernel does not fit the padded x.
    """
    return _conv("conv", x, weight, bias, stride, padding, dilation, groups, channels_last, out_dtype)


def _conv(op: str, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Any, padding: Any, dilation: Any,
          groups: int, channels_last: bool, out_dtype: Any) -> Tensor:
    check_tensors(op, x=x, weight=weight)
    count, groups = spatial_rank(op, x), _groups(op, groups)
    check_rank(op, "weight", weight, x.ndim)
    filters, depth, *kernel = weight.shape
    first = 1 if channels_last else 2
    channels = x.shape[-1 if channels_last else 1]
    check_extent(op, f"the number of channels of x of shape {shape_text(x.shape)}", channels,
                 simplified(depth * groups), f"weight has the shape {shape_text(weight.shape)}, groups is {groups}")
    per = quotient(op, "the number of filters", filters, groups)
    w = windows(op, x.shape[first:first + count], kernel, stride=stride, padding=padding, dilation=dilation)
    data = w.bordered(x, first, const(0, x.dtype))

    def read(b: Any, c: Any, outs: Sequence[Any], ks: Sequence[Any]) -> Expr:
        at = w.source(outs, ks)
        return data(b, *at, c) if channels_last else data(b, c, *at)
    dtype = _dtype(op, out_dtype, x, weight)
    y = _correlated(op, (x.shape[0], filters), read, weight, w, groups, per, channels_last, before_bias(bias, dtype))
    return with_bias(op, y, bias, -1 if channels_last else 1, dtype)


def _correlated(op: str, lead: tuple[Any, Any], read: Any, weight: Tensor, w: Windows, groups: int, per: Any,
                channels_last: bool, dtype: str) -> Tensor:
    """The contraction of windows and weights; several groups are an axis of their own, and are merged by a copy."""
    depth = weight.shape[1]
    ks, rc = _kernel_axes(w.kernel), reduction_axis(depth, "rc")
    batch, filters = lead

    def order(b: Any, f: Sequence[Any], outs: Sequence[Any]) -> tuple[Any, ...]:
        return (b, *outs, *f) if channels_last else (b, *f, *outs)

    def split(i: Sequence[Any], own: int) -> tuple[Sequence[Any], Sequence[Any]]:
        """(the filter's indices, those of the window) of the indices behind the batch."""
        return (i[-own:], i[:-own]) if channels_last else (i[:own], i[own:])

    if groups == 1 or constant(per) == 1:
        alone = groups > 1 and constant(depth) == 1         # depthwise: no sum over channels

        def plain(b: Any, *i: Any) -> tuple[Expr, Expr]:
            (f,), outs = split(i, 1)
            c = 0 if alone else rc
            source = f if alone else rc if groups == 1 else binary("add", binary("mul", f, depth), rc)
            return read(b, source, outs, ks), weight(f, c, *ks)
        axes = ks if alone else [rc, *ks]
        return contraction(op, order(batch, (filters,), w.out), plain, axes, dtype)

    def grouped(b: Any, *i: Any) -> tuple[Expr, Expr]:
        (g, f), outs = split(i, 2)
        return (read(b, binary("add", binary("mul", g, depth), rc), outs, ks),
                weight(binary("add", binary("mul", g, per), f), rc, *ks))
    y = contraction(op, order(batch, (groups, per), w.out), grouped, [rc, *ks], dtype)

    def merged(b: Any, *i: Any) -> Expr:
        (f,), outs = split(i, 1)
        return y(*order(b, (binary("floordiv", f, per), binary("floormod", f, per)), outs))
    return compute(order(batch, (filters,), w.out), merged, name=f"{op}_merged")


conv1d, conv2d, conv3d = (of_rank(conv, n) for n in (1, 2, 3))


def depthwise_conv(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: Any = 1, padding: Any = 0,
                   dilation: Any = 1) -> Tensor:
    """`conv` of each channel by filters of its own: x: T[b, c, *spatial], weight: T[c * m, 1, *kernel].

    Filter f reads channel f // m. Raises TensorExpressionError as `conv` does, and for a symbolic number of channels.
    """
    op = "depthwise_conv"
    check_tensors(op, x=x, weight=weight)
    spatial_rank(op, x)
    channels = constant(x.shape[1])
    check(channels is not None, op, f"x has the shape {shape_text(x.shape)}, its number of channels is a constant")
    return _conv(op, x, weight, bias, stride, padding, dilation, channels or 1, False, None)


def conv_transpose(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, stride: Any = 1, padding: Any = 0,
                   output_padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The adjoint of `conv`: y[b, f, o] = sum of x[b, c, i] * weight[c, f, k], i * stride + k * dilation - padding = o.

    x: T[b, c, *spatial]; weight: T[c, f / groups, *kernel]; bias: T[f]; the extent of an axis of y is
    (n - 1) * stride - 2 * padding + dilation * (kernel - 1) + output_padding + 1. padding: a number, one or a pair
    (before, after) for each axis: a pair takes `before` off the front and `after` off the end.
    Output o = stride * q + r - padding is computed as element q of a phase: a convolution of stride 1 with the weights
    whose k * dilation has the rest r; a copy interleaves the phases.
    Raises TensorExpressionError where channels and groups do not fit or the result has a negative extent.
    """
    op = "conv_transpose"
    check_tensors(op, x=x, weight=weight)
    count, groups = spatial_rank(op, x), _groups(op, groups)
    check_rank(op, "weight", weight, x.ndim)
    check_extent(op, f"the number of channels of x of shape {shape_text(x.shape)}", x.shape[1], weight.shape[0],
                 f"weight has the shape {shape_text(weight.shape)}")
    depth = quotient(op, "the number of channels", x.shape[1], groups)
    stride, dilation = per_axis(op, "stride", stride, count, 1), per_axis(op, "dilation", dilation, count, 1)
    extra = per_axis(op, "output_padding", output_padding, count)
    borders = amounts(op, "padding", 0 if isinstance(padding, str) and padding == "valid" else padding, count)
    pads = [before for before, _ in borders]
    check(all(constant(k) != 0 for k in weight.shape[2:]), op, "the kernel has no element")
    spread = tuple(simplified((k - 1) * d + 1) for k, d in zip(weight.shape[2:], dilation))
    out = tuple(simplified((n - 1) * s - (before + after) + e + k)
                for n, s, (before, after), k, e in zip(x.shape[2:], stride, borders, spread, extra))
    check(all((constant(o) or 0) >= 0 for o in out), op, f"the result has the spatial extents {shape_text(out)}")
    steps = tuple(simplified((o + (p + s - 1)) // s) for o, p, s in zip(out, pads, stride))
    before = [simplified((k - 1) // s) for k, s in zip(spread, stride)]
    data = padded(x, [(0, 0), (0, 0), *((b, simplified(convert(q) - n)) for b, q, n in zip(
        before, steps, x.shape[2:]))], const(0, x.dtype))
    per, dtype = weight.shape[1], _dtype(op, None, x, weight)
    kind = before_bias(bias, dtype)
    parts = [(chosen, _phase_sums(op, data, weight, chosen, (groups, depth), before, steps, kind))
             for chosen in product(*(_phases(k, s, d) for k, s, d in zip(weight.shape[2:], stride, dilation)))]

    def interleaved(b: Any, f: Any, *o: Any) -> Expr:
        shifted = [binary("add", v, p) for v, p in zip(o, pads)]
        g, own = (0, f) if groups == 1 else (binary("floordiv", f, per), binary("floormod", f, per))
        rests = [binary("floormod", v, s) for v, s in zip(shifted, stride)]
        at = [binary("floordiv", v, s) for v, s in zip(shifted, stride)]
        value: Expr = const(0, kind)
        for chosen, y in parts:
            there = [c for p, r in zip(chosen, rests) for c in p.conditions(r)]
            found = y(b, g, own, *(binary("sub", p.phase(r), p.first) for p, r in zip(chosen, rests)), *at)
            value = if_then_else(all_of(*there), found, value) if there else found
        return value
    merged = compute((x.shape[0], simplified(per * groups), *out), interleaved, name=f"{op}_interleaved")
    return with_bias(op, merged, bias, 1, dtype)


conv_transpose1d, conv_transpose2d, conv_transpose3d = (of_rank(conv_transpose, n) for n in (1, 2, 3))


@dataclass(frozen=True)
class Phases:
    """Phases first <= r < first + count along an axis of a transposed convolution, which read `taps` weights each.

    They are the weights k = r + t * period: all those whose k * dilation has the same rest by the stride.
    """
    first: Any
    count: Any
    taps: Any
    stride: int
    dilation: int

    @property
    def period(self) -> int:
        return self.stride // math.gcd(self.stride, self.dilation)

    def back(self, r: Any, t: Any) -> Expr:
        """k * dilation // stride: how many steps before that of the output the element lies that weight k reads."""
        start = binary("floordiv", binary("mul", r, self.dilation), self.stride)
        return binary("add", start, binary("mul", t, self.dilation * self.period // self.stride))

    def phase(self, rest: Any) -> Expr:
        """The phase whose weights have this rest of k * dilation, where one has."""
        shared = self.stride // self.period
        inverse = pow(self.dilation // shared, -1, self.period)
        return binary("floormod", binary("mul", binary("floordiv", rest, shared), inverse), self.period)

    def conditions(self, rest: Any) -> list[Expr]:
        """What holds of a rest that one of these phases has."""
        shared, found = self.stride // self.period, []
        if shared > 1:
            found.append(binary("eq", binary("floormod", rest, shared), 0))
        if constant(self.count) != self.period:
            phase = self.phase(rest)
            found += [binary("ge", phase, self.first), binary("lt", phase, binary("add", self.first, self.count))]
        return found


def _phases(kernel: Any, stride: int, dilation: int) -> list[Phases]:
    """The phases of an axis by the number of their weights: those with one more, then the others; none without any."""
    period = stride // math.gcd(stride, dilation)
    taps, more = simplified(kernel // period), simplified(kernel % period)
    return [Phases(first, count, n, stride, dilation)
            for first, count, n in ((0, more, simplified(taps + 1)), (more, simplified(period - more), taps))
            if constant(count) != 0 and constant(n) != 0]


def _phase_sums(op: str, data: Tensor, weight: Tensor, phases: Sequence[Phases], channels: tuple[int, Any],
                before: Sequence[Any], steps: Sequence[Any], dtype: str) -> Tensor:
    """y[b, g, f, *r, *q]: the outputs of phases at steps q, convolutions with stride 1 by the weights of each phase."""
    groups, depth = channels
    counts, taps = [p.count for p in phases], [p.taps for p in phases]

    def own(c: Any, f: Any, *i: Any) -> Expr:
        return weight(c, f, *(binary("add", binary("add", r, p.first), binary("mul", t, p.period))
                              for p, r, t in zip(phases, i[:len(phases)], i[len(phases):])))
    weights = compute((*weight.shape[:2], *counts, *taps), own, name="phases")
    rc, ks = reduction_axis(depth, "rc"), _kernel_axes(taps)

    def factors(b: Any, g: Any, f: Any, *i: Any) -> tuple[Expr, Expr]:
        channel, numbers = binary("add", binary("mul", g, depth), rc), i[:len(phases)]
        source = [binary("sub", binary("add", q, low), p.back(binary("add", r, p.first), k))
                  for p, q, low, r, k in zip(phases, i[len(phases):], before, numbers, ks)]
        return data(b, channel, *source), weights(channel, f, *numbers, *ks)
    return contraction(op, (data.shape[0], groups, weight.shape[1], *counts, *steps), factors, [rc, *ks], dtype)


def deform_conv2d(x: Tensor, offset: Tensor, weight: Tensor, bias: Tensor | None = None, mask: Tensor | None = None,
                  *, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Tensor:
    """`conv2d` that reads x at places moved by offset, between elements bilinearly, times mask.

    x: T[b, c, h, w]; weight: T[f, c / groups, kh, kw]; offset: T[b, n * kh * kw * 2, oh, ow] (along h, then w);
    mask: T[b, n * kh * kw, oh, ow]; n divides c: that many parts of the channels have offsets of their own. The
    groups follow from c. What lies outside of x is 0. Source: Zhu and others, "Deformable ConvNets v2" (2019).
    Raises TensorExpressionError where extents do not fit or are symbolic where groups follow from them.
    """
    op = "deform_conv2d"
    check_tensors(op, x=x, offset=offset, weight=weight)
    for name, t in pairs(("x", "offset", "weight", "mask"), (x, offset, weight, mask)):
        check_rank(op, name, t, 4)
        check_kind(op, name, t.dtype, FLOAT)
    filters, depth, *kernel = weight.shape
    sizes = [constant(e) for e in (x.shape[1], depth, offset.shape[1], *kernel)]
    check(None not in sizes, op, "channels, kernel and offsets have symbolic extents")
    channels, own, moves, kh, kw = (s or 0 for s in sizes)
    parts, groups = moves // max(2 * kh * kw, 1), channels // max(own, 1)
    check(parts > 0 and moves == parts * 2 * kh * kw and channels % parts == 0 and groups * own == channels, op,
          f"x has {channels} channels, weight {own} and offset {moves}, of a kernel of {kh} by {kw}",
          "offset has 2 * kh * kw channels for each part of the channels of x")
    w = windows(op, x.shape[2:], kernel, stride=stride, padding=padding, dilation=dilation)
    for name, t in pairs(("offset", "mask"), (offset, mask)):
        for n, e in enumerate((x.shape[0], moves if t is offset else moves // 2, *w.out)):
            check_extent(op, f"extent {n} of {name}", t.shape[n], e)
    sampled = _moved(x, offset, mask, w, kh * kw, channels // parts)
    per = quotient(op, "the number of filters", filters, groups)
    point = Windows((kh, kw), (1, 1), ((0, 0),) * 2, (1, 1), w.out, False)

    def read(b: Any, c: Any, outs: Sequence[Any], ks: Sequence[Any]) -> Expr:
        return sampled(b, c, *ks, *outs)
    dtype = _dtype(op, None, x, weight)
    y = _correlated(op, (x.shape[0], filters), read, weight, point, groups, per, False, before_bias(bias, dtype))
    return with_bias(op, y, bias, 1, dtype)


def _moved(x: Tensor, offset: Tensor, mask: Tensor | None, w: Windows, taps: int, per: int) -> Tensor:
    """s[b, c, kh, kw, oh, ow]: x at the moved place of each element of each window, not rounded to its type."""
    wide, (kh, kw) = accumulator(common_type("deform_conv2d", x, offset)), w.kernel

    def element(b: Any, c: Any, i: Any, j: Any, oy: Any, ox: Any) -> Expr:
        tap = binary("add", binary("mul", binary("floordiv", c, per), taps), binary("add", binary("mul", i, kw), j))
        moves = [offset(b, binary("add", binary("mul", tap, 2), n), oy, ox) for n in range(2)]
        places = [cast(wide, binary("sub", s, p)) + cast(wide, m)
                  for s, (p, _), m in zip(w.source((oy, ox), (i, j)), w.pads, moves)]
        value = interpolated(lambda *at: cast(wide, x(b, c, *at)), places, x.shape[2:], wide)
        return value if mask is None else value * cast(wide, mask(b, tap, oy, ox))
    return compute((*x.shape[:2], kh, kw, *w.out), element, name="moved")


__all__ = ["conv", "conv1d", "conv2d", "conv3d", "conv_transpose", "conv_transpose1d", "conv_transpose2d",
           "conv_transpose3d", "deform_conv2d", "depthwise_conv"]
