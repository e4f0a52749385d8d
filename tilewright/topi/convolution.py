"""Convolutions over one to three spatial axes: plain, grouped, depthwise, transposed, deformable."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import all_of, binary, if_then_else
from tilewright.tir.conversion import const, convert
from tilewright.tir.expr import Expr
from tilewright.tir.iter_var import IterVar
from tilewright.topi.contraction import contraction, reduction_axis
from tilewright.topi.products import with_bias
from tilewright.topi.sampling import interpolated
from tilewright.topi.shapes import check, check_extent, check_rank, check_tensors, constant, per_axis, quotient
from tilewright.topi.types import NUMBER, check_kind, common_type, dtype_name
from tilewright.topi.windows import SPATIAL, Windows, of_rank, padded, paddings, spatial_rank, windows


def _dtype(op: str, out_dtype: Any, x: Tensor, weight: Tensor) -> str:
    common = common_type(op, x, weight)
    check_kind(op, "an operand", common, NUMBER)
    return common if out_dtype is None else dtype_name(out_dtype)


def _groups(op: str, groups: Any) -> int:
    check(isinstance(groups, int) and groups >= 1, op, f"groups is {groups}, an integer of at least 1 is needed")
    return int(groups)


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
    y = _correlated(op, (x.shape[0], filters), read, weight, w, groups, per, channels_last,
                    _dtype(op, out_dtype, x, weight))
    return with_bias(op, y, bias, -1 if channels_last else 1)


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
    Output o = stride * q + r - padding is computed as element q of phase r: a convolution of stride 1 with every
    stride-th weight; a copy interleaves the phases.
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
    pairs = paddings(op, padding, weight.shape[2:], (2,) * count, dilation)
    pads = [before for before, _ in pairs]
    spread = tuple(simplified((k - 1) * d + 1) for k, d in zip(weight.shape[2:], dilation))
    out = tuple(simplified((n - 1) * s - (before + after) + e + k)
                for n, s, (before, after), k, e in zip(x.shape[2:], stride, pairs, spread, extra))
    check(all((constant(o) or 0) >= 0 for o in out), op, f"the result has the spatial extents {shape_text(out)}")
    taps = tuple(simplified((k + s - 1) // s) for k, s in zip(spread, stride))
    phased = _phased_weight(weight, dilation, stride, spread, taps)
    steps = tuple(simplified((o + (p + s - 1)) // s) for o, p, s in zip(out, pads, stride))
    before = [simplified(t - 1) for t in taps]
    data = padded(x, [(0, 0), (0, 0), *((b, simplified(convert(q) - n)) for b, q, n in zip(
        before, steps, x.shape[2:]))], const(0, x.dtype))
    rc, ks = reduction_axis(depth, "rc"), _kernel_axes(taps)
    per = weight.shape[1]

    def factors(b: Any, g: Any, f: Any, *i: Any) -> tuple[Expr, Expr]:
        phases, at = i[:count], i[count:]
        channel = binary("add", binary("mul", g, depth), rc)
        source = [binary("sub", binary("add", q, low), k) for q, low, k in zip(at, before, ks)]
        return data(b, channel, *source), phased(channel, f, *phases, *ks)
    y = contraction(op, (x.shape[0], groups, per, *stride, *steps), factors, [rc, *ks], _dtype(op, None, x, weight))

    def interleaved(b: Any, f: Any, *o: Any) -> Expr:
        shifted = [binary("add", v, p) for v, p in zip(o, pads)]
        g, own = (0, f) if groups == 1 else (binary("floordiv", f, per), binary("floormod", f, per))
        return y(b, g, own, *(binary("floormod", v, s) for v, s in zip(shifted, stride)),
                 *(binary("floordiv", v, s) for v, s in zip(shifted, stride)))
    merged = compute((x.shape[0], simplified(per * groups), *out), interleaved, name=f"{op}_interleaved")
    return with_bias(op, merged, bias, 1)


conv_transpose1d, conv_transpose2d, conv_transpose3d = (of_rank(conv_transpose, n) for n in (1, 2, 3))


def _phased_weight(weight: Tensor, dilation: Sequence[int], stride: Sequence[int], spread: Sequence[Any],
                   taps: Sequence[Any]) -> Tensor:
    """w[c, f, r, t] = the weight at place t * stride + r of the dilated kernel, 0 between its elements and behind."""
    count = len(stride)

    def element(c: Any, f: Any, *i: Any) -> Expr:
        place = [binary("add", binary("mul", t, s), r) for r, t, s in zip(i[:count], i[count:], stride)]
        there = [c for v, k, d, s in zip(place, spread, dilation, stride) for c in (
            [binary("eq", binary("floormod", v, d), 0)] if d > 1 else []) + ([binary("lt", v, k)] if s > 1 else [])]
        value = weight(c, f, *(binary("floordiv", v, d) for v, d in zip(place, dilation)))
        return if_then_else(all_of(*there), value, const(0, weight.dtype)) if there else value
    return compute((*weight.shape[:2], *stride, *taps), element, name="phases")


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
    for name, t in (("x", x), ("offset", offset), ("weight", weight)):
        check_rank(op, name, t, 4)
    filters, depth, *kernel = weight.shape
    sizes = [constant(e) for e in (x.shape[1], depth, offset.shape[1], *kernel)]
    check(None not in sizes, op, "channels, kernel and offsets have symbolic extents")
    channels, own, moves, kh, kw = (s or 0 for s in sizes)
    parts, groups = moves // max(2 * kh * kw, 1), channels // max(own, 1)
    check(parts > 0 and moves == parts * 2 * kh * kw and channels % parts == 0 and groups * own == channels, op,
          f"x has {channels} channels, weight {own} and offset {moves}, of a kernel of {kh} by {kw}",
          "offset has 2 * kh * kw channels for each part of the channels of x")
    w = windows(op, x.shape[2:], kernel, stride=stride, padding=padding, dilation=dilation)
    for name, moved in (("offset", offset), ("mask", offset if mask is None else mask)):
        for n, e in zip((2, 3), w.out):
            check_extent(op, f"extent {n} of {name}", moved.shape[n], e)
    sampled = _moved(x, offset, mask, w, kh * kw, channels // parts)
    per = quotient(op, "the number of filters", filters, groups)
    point = Windows((kh, kw), (1, 1), ((0, 0),) * 2, (1, 1), w.out, False)

    def read(b: Any, c: Any, outs: Sequence[Any], ks: Sequence[Any]) -> Expr:
        return sampled(b, c, *ks, *outs)
    y = _correlated(op, (x.shape[0], filters), read, weight, point, groups, per, False, _dtype(op, None, x, weight))
    return with_bias(op, y, bias, 1)


def _moved(x: Tensor, offset: Tensor, mask: Tensor | None, w: Windows, taps: int, per: int) -> Tensor:
    """s[b, c, kh, kw, oh, ow]: x at the moved place of each element of each window."""
    from_, (kh, kw) = offset.dtype, w.kernel

    def element(b: Any, c: Any, i: Any, j: Any, oy: Any, ox: Any) -> Expr:
        tap = binary("add", binary("mul", binary("floordiv", c, per), taps), binary("add", binary("mul", i, kw), j))
        places = [binary("sub", s, p).astype(from_) + offset(b, binary("add", binary("mul", tap, 2), n), oy, ox)
                  for n, (s, (p, _)) in enumerate(zip(w.source((oy, ox), (i, j)), w.pads))]
        value = interpolated(lambda *at: x(b, c, *at), places, x.shape[2:], x.dtype)
        return value if mask is None else value * mask(b, tap, oy, ox)
    return compute((*x.shape[:2], kh, kw, *w.out), element, name="moved")


__all__ = ["conv", "conv1d", "conv2d", "conv3d", "conv_transpose", "conv_transpose1d", "conv_transpose2d",
           "conv_transpose3d", "deform_conv2d", "depthwise_conv"]
