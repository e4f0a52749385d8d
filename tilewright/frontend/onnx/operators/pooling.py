"""Pooling."""
from __future__ import annotations

from typing import Any

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported
from tilewright.frontend.onnx.operators.convolution import bordered, pads, spatial, window, window_of
from tilewright.frontend.onnx.operators.elementwise import unary
from tilewright.frontend.onnx.registry import CONTRIB, operator
from tilewright.graph.ir.values import Value
from tilewright.tir import dtype as dt

for _name, _rule in {"GlobalAveragePool": topi.global_avg_pool, "GlobalMaxPool": topi.global_max_pool}.items():
    operator(_name, text=f"`topi.{_rule.__name__}`")(unary(_rule))


@operator("GlobalLpPool")
def global_lp_pool(n: Node) -> Value:
    """`topi.global_lp_pool`."""
    return n.emit(topi.global_lp_pool, n.value(0), p=float(n.attr("p", 2)))


def kernel_of(n: Node) -> list[int]:
    return list(n.required("kernel_shape"))


def rounds_up(n: Node) -> bool:
    return bool(n.attr("ceil_mode", 0)) and n.attr("auto_pad", "NOTSET") == "NOTSET"


@operator("AveragePool")
def average_pool(n: Node) -> Value:
    """`topi.avg_pool`."""
    kernel = kernel_of(n)
    return n.emit(topi.avg_pool, n.value(0), kernel, ceil_mode=rounds_up(n),
                  count_include_pad=bool(n.attr("count_include_pad", 0)), **window(n, kernel))


@operator("MaxPool")
def max_pool(n: Node) -> Any:
    """`topi.max_pool`."""
    kernel = kernel_of(n)
    if not n.wants(1) and dt.is_float(n.held(0).dtype):
        x, options = bordered(n, kernel, float("-inf"))
    else:
        x, options = n.value(0), window(n, kernel)
    options["ceil_mode"] = rounds_up(n)
    if not n.wants(1):
        return n.emit(topi.max_pool, x, kernel, **options)
    y, places = n.emit(topi.max_pool, x, kernel, return_indices=True, **options)
    if n.attr("storage_order", 0):
        places = n.emit(by_columns, places, tuple(x.shape[2:]))
    return y, n.emit(in_tensor, places, tuple(x.shape[2:]))


def by_columns(places: Any, extents: tuple[Any, ...]) -> Any:
    """The places in an image counted column by column, of those counted row by row."""
    left, out, step = places, None, 1
    digits = []
    for d in reversed(extents):
        digits.append(topi.remainder(left, d))
        left = topi.floor_divide(left, d)
    for digit, d in zip(reversed(digits), extents):
        term = topi.multiply(digit, step)
        out = term if out is None else topi.add(out, term)
        step = step * d
    return out


def in_tensor(places: Any, extents: tuple[Any, ...]) -> Any:
    """The places in the whole tensor, of those in each channel's image."""
    size = 1
    for d in extents:
        size = size * d
    b, c = places.shape[:2]
    channel = topi.reshape(topi.arange(0, b * c), (b, c, *(1,) * len(extents)))
    return topi.add(places, topi.multiply(channel, size))


@operator("NhwcMaxPool", domain=CONTRIB, inputs=1, attributes=(
    "auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"))
def max_pool_channels_last(n: Node) -> Value:
    """`topi.max_pool`, with the channels last."""
    kernel = kernel_of(n)
    x = channels_second(n, n.value(0))
    return channels_last(n, n.emit(topi.max_pool, x, kernel, ceil_mode=rounds_up(n), **window_of(n, x.shape, kernel)))


def channels_second(n: Node, x: Value) -> Value:
    """T[b, ..., c] as T[b, c, ...]."""
    moved: Value = n.emit(topi.moveaxis, x, source=-1, destination=1)
    return moved


def channels_last(n: Node, x: Value) -> Value:
    """T[b, c, ...] as T[b, ..., c]."""
    moved: Value = n.emit(topi.moveaxis, x, source=1, destination=-1)
    return moved


@operator("LpPool")
def lp_pool(n: Node) -> Value:
    """`topi.lp_pool`."""
    kernel = kernel_of(n)
    return n.emit(topi.lp_pool, n.value(0), kernel, p=float(n.attr("p", 2)), ceil_mode=rounds_up(n),
                  **window(n, kernel))


@operator("MaxUnpool")
def max_unpool(n: Node) -> Value:
    """`topi.max_unpool`."""
    x, count, kernel = n.value(0), spatial(n), kernel_of(n)
    steps = n.attr("strides") or [1] * count
    border = pads(n, count)
    plain = tuple((d - 1) * s + k - a - b for d, s, k, (a, b) in zip(x.shape[2:], steps, kernel, border))
    size = tuple(n.numbers(2, "the shape of the result")[2:]) if n.has(2) else plain
    if len(size) != count:
        raise Unsupported(f"the shape of the result has {len(size)} spatial extents, {count} are needed")
    return n.emit(unpooled, x, n.value(1), plain, size)


def unpooled(x: Any, places: Any, plain: tuple[Any, ...], size: tuple[Any, ...]) -> Any:
    """`topi.max_unpool` of places in the whole tensor of spatial extents `plain`; zeros behind them up to `size`."""
    area = 1
    for d in plain:
        area = area * d
    y = topi.max_unpool(x, topi.remainder(places, area), plain)
    border = [(0, 0), (0, 0), *((0, wanted - have) for wanted, have in zip(size, plain))]
    return y if plain == size else topi.pad(y, border)


@operator("MaxRoiPool")
def max_roi_pool(n: Node) -> Value:
    """`topi.roi_pool`."""
    return n.emit(rois, n.value(0), n.value(1), tuple(n.required("pooled_shape")), n.attr("spatial_scale", 1.0))


def rois(x: Any, regions: Any, size: tuple[int, ...], scale: float) -> Any:
    """`topi.roi_pool` of regions whose first element is the image."""
    which, boxes = topi.split(regions, [1, 4], axis=1)
    indices = topi.astype(topi.squeeze(which, axis=1), "int64")
    return topi.roi_pool(x, boxes, indices, size, spatial_scale=scale)
