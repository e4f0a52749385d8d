"""Convolutions."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.activations import activated
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.frontend.onnx.values import simple
from tilewright.graph.ir.types import canonical
from tilewright.graph.ir.values import Value
from tilewright.tir import Expr
from tilewright.tir.arithmetic import binary, maximum


def spatial(n: Node, k: int = 0) -> int:
    """The number of axes behind batch and channels."""
    count = n.rank(k) - 2
    if count < 1:
        raise Unsupported(f"x has {n.rank(k)} dimensions, at least 3 are needed")
    return count


def numbers(n: Node, name: str, count: int, default: int = 1) -> list[int]:
    """An attribute with a number for each spatial axis."""
    found = n.attr(name) or [default] * count
    if len(found) != count:
        raise Unsupported(f"the attribute {name} has {len(found)} numbers, {count} are needed")
    return list(found)


def pads(n: Node, count: int) -> list[tuple[int, int]]:
    """(before, after) of each spatial axis, by the attribute `pads`."""
    given = numbers(n, "pads", 2 * count, 0)
    return list(zip(given[:count], given[count:]))


def padding(n: Node, extents: Sequence[Any], kernel: Sequence[int], stride: Sequence[int],
            dilation: Sequence[int]) -> list[tuple[Any, Any]]:
    """(before, after) of each spatial axis, by `auto_pad` or `pads`; expressions where sizes decide."""
    auto, count = n.attr("auto_pad", "NOTSET"), len(kernel)
    if auto == "NOTSET":
        return pads(n, count)
    if auto == "VALID":
        return [(0, 0)] * count
    if auto not in ("SAME_UPPER", "SAME_LOWER"):
        raise Unsupported(f"auto_pad is {auto!r}")
    out = []
    for extent, k, s, d in zip(extents, kernel, stride, dilation):
        reach = (k - 1) * d + 1
        if s == 1:
            amount = reach - 1
        elif isinstance(extent, int):
            amount = max((-(-extent // s) - 1) * s + reach - extent, 0)
        else:
            amount = simple(maximum(binary("floordiv", extent - 1, s) * s + reach - extent, 0))
        small = simple(binary("floordiv", amount, 2)) if isinstance(amount, Expr) else amount // 2
        large = amount - small
        out.append((small, large) if auto == "SAME_UPPER" else (large, small))
    return out


def window(n: Node, kernel: Sequence[Any]) -> dict[str, Any]:
    """stride, padding and dilation."""
    return window_of(n, n.held(0).shape, kernel)


def window_of(n: Node, shape: Sequence[Any], kernel: Sequence[Any]) -> dict[str, Any]:
    """stride, padding and dilation, of x with the channels second."""
    count = spatial(n)
    stride, dilation = numbers(n, "strides", count), numbers(n, "dilations", count)
    around = padding(n, shape[2:], list(kernel), stride, dilation)
    if any(isinstance(p, Expr) for pair in around for p in pair):
        raise Unsupported(f"auto_pad is {n.attr('auto_pad')}, and the extents {tuple(shape[2:])} are no numbers")
    return {"stride": stride, "dilation": dilation, "padding": around}


def bordered(n: Node, kernel: Sequence[Any], value: float) -> tuple[Value, dict[str, Any]]:
    """(x, its `window`); a border whose width sizes decide is a part of x, with a value."""
    x, count = n.value(0), spatial(n)
    stride, dilation = numbers(n, "strides", count), numbers(n, "dilations", count)
    around = padding(n, x.shape[2:], list(kernel), stride, dilation)
    if any(isinstance(p, Expr) for pair in around for p in pair):
        x, around = n.emit(topi.pad, x, [(0, 0), (0, 0), *around], value=value), [(0, 0)] * count
    return x, {"stride": stride, "dilation": dilation, "padding": around}


@operator("Conv")
def conv(n: Node) -> Value:
    """`topi.conv`."""
    weight = n.value(1)
    x, options = bordered(n, weight.shape[2:], 0.0)
    return n.emit(topi.conv, x, weight, n.optional(2), groups=n.attr("group", 1), **options)


_PARAMETERS = {"LeakyRelu": ("alpha",), "Clip": ("min", "max"), "HardSigmoid": ("alpha", "beta")}


@operator("FusedConv", domain=CONTRIB, inputs=4, attributes=(
    "activation", "activation_params", "auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"))
def fused_conv(n: Node) -> Value:
    """As Conv; then a sum and an activation."""
    y = conv(n)
    if n.has(3):
        y = n.emit(topi.add, y, n.value(3))
    name, given = n.attr("activation"), n.attr("activation_params") or []
    if not name:
        return y
    names = _PARAMETERS.get(name, ())
    if len(given) != len(names):
        raise Unsupported(f"the attribute activation_params has {len(given)} numbers, {name} takes {len(names)}")
    return activated(n, y, name, dict(zip(names, given)))


@operator("ConvInteger")
def conv_integer(n: Node) -> Value:
    """`topi.conv_integer`."""
    weight = n.value(1)
    zeros = [n.operand(k) if n.has(k) else 0 for k in (2, 3)]
    return n.emit(topi.conv_integer, n.value(0), weight, *zeros, groups=n.attr("group", 1),
                  **window(n, weight.shape[2:]))


@operator("ConvTranspose")
def conv_transpose(n: Node) -> Value:
    """`topi.conv_transpose`."""
    x, weight, count = n.value(0), n.value(1), spatial(n)
    stride, dilation = numbers(n, "strides", count), numbers(n, "dilations", count)
    extra = numbers(n, "output_padding", count, 0)
    auto, size = n.attr("auto_pad", "NOTSET"), n.attr("output_shape")
    if size is not None and len(size) == count + 2:
        size = size[2:]
    if size is None and auto in ("SAME_UPPER", "SAME_LOWER"):
        size = [canonical(d * s) for d, s in zip(x.shape[2:], stride)]
    border = pads(n, count) if auto != "VALID" else [(0, 0)] * count
    if size is not None:
        border = []
        for d, k, s, t, e, wanted in zip(x.shape[2:], weight.shape[2:], stride, dilation, extra, size, strict=True):
            amount = canonical_difference(d, k, s, t, e, wanted)
            half = amount // 2
            border.append((half, amount - half) if auto == "SAME_UPPER" else (amount - half, half))
        if any(a < 0 for pair in border for a in pair):
            extra = [e + max(-(a + b), 0) for e, (a, b) in zip(extra, border)]
            border = [(max(a, 0), max(b, 0)) if a + b >= 0 else (0, 0) for a, b in border]
    return n.emit(topi.conv_transpose, x, weight, n.optional(2), stride=stride, padding=border,
                  output_padding=extra, dilation=dilation, groups=n.attr("group", 1))


def canonical_difference(d: Any, k: int, s: int, t: int, extra: int, wanted: Any) -> int:
    """How much of the full result of one axis has to be cut so that it has the extent that is wanted."""
    amount = canonical((d - 1) * s + extra + (k - 1) * t + 1 - wanted + 2**20)
    if not isinstance(amount, int):
        raise Unsupported(f"what is cut of an extent of {d} depends on it")
    return amount - 2**20


@operator("DeformConv")
def deform_conv(n: Node) -> Value:
    """`topi.deform_conv2d`."""
    weight = n.value(1)
    if n.rank() != 4:
        raise Unsupported(f"x has {n.rank()} dimensions, 4 are supported")
    return n.emit(topi.deform_conv2d, n.value(0), n.value(2), weight, n.optional(3), n.optional(4),
                  **window(n, weight.shape[2:]))


@operator("Col2Im")
def col2im(n: Node) -> Value:
    """`topi.fold`."""
    size, kernel = n.constants(1, "the shape of the image"), n.constants(2, "the shape of the blocks")
    count = len(size)
    return n.emit(topi.fold, n.value(0), tuple(size), tuple(kernel), stride=numbers(n, "strides", count),
                  padding=pads(n, count), dilation=numbers(n, "dilations", count))
