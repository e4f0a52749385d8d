"""Images in other sizes, samples at grids, regions."""
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.frontend.onnx.node import Node, Unsupported, checked_axis
from tilewright.frontend.onnx.operators.elementwise import emit_floats
from tilewright.frontend.onnx.operators.shaping import kept
from tilewright.frontend.onnx.registry import operator
from tilewright.frontend.onnx.values import Held, holds
from tilewright.graph.ir.values import Value
from tilewright.tir import Expr


def _scaled(n: Node, scales: list[float], mode: str) -> Value:
    """x by a factor for each axis; of two elements around a place the lower one where it grows, else the upper one.

    Source: ONNX Runtime, which the versions below 11 were written after.
    """
    x = n.value(0)
    if len(scales) != x.ndim:
        raise Unsupported(f"{len(scales)} scales for {x.ndim} dimensions")
    grown, shrunk = [k for k, s in enumerate(scales) if s > 1], [k for k, s in enumerate(scales) if s < 1]
    if mode != "nearest":
        return _moved(n, x, scales, sorted(grown + shrunk), mode="linear")
    return _moved(n, _moved(n, x, scales, grown, mode=mode, rounding="floor"), scales, shrunk, mode=mode,
                  rounding="ceil")


def _moved(n: Node, x: Value, scales: Sequence[float], moved: Sequence[int], **options: Any) -> Value:
    if not moved:
        return x
    extents = scaled_extents([x.shape[k] for k in moved], [scales[k] for k in moved])
    return n.emit(topi.resize, x, extents, scales=tuple(scales[k] for k in moved), axes=tuple(moved),
                  coordinates="asymmetric", **options)


def scaled_extents(extents: Sequence[Any], scales: Sequence[float]) -> tuple[Any, ...] | None:
    """floor(scale * extent), a product of float32, as scales are: 0.7 of 10 are 7. None where an extent is a size."""
    if not all(isinstance(d, int) for d in extents):
        return None
    return tuple(int(np.float32(s) * np.float32(d)) for s, d in zip(scales, extents))


@operator("Upsample")
def upsample(n: Node) -> Value:
    """`topi.resize`."""
    scales = [float(s) for s in (n.attr("scales") or n.numbers(1, "the scales"))]
    return _scaled(n, scales, n.attr("mode", "nearest"))


@operator("Resize", until=10)
def resize_by_scales(n: Node) -> Value:
    """`topi.resize`, by scales alone."""
    return _scaled(n, [float(s) for s in n.numbers(1, "the scales")], n.attr("mode", "nearest"))


@operator("Resize", since=11)
def resize(n: Node) -> Held:
    """`topi.resize`."""
    x = n.value(0)
    axes = [checked_axis(a, x.ndim) for a in n.attr("axes") or range(x.ndim)]
    coordinates = n.attr("coordinate_transformation_mode", "half_pixel")
    options: dict[str, Any] = {
        "mode": n.attr("mode", "nearest"), "rounding": n.attr("nearest_mode", "round_prefer_floor"),
        "cubic_a": n.attr("cubic_coeff_a", -0.75), "exclude_outside": bool(n.attr("exclude_outside", 0)),
        "antialias": bool(n.attr("antialias", 0)), "extrapolation": n.attr("extrapolation_value", 0.0),
        "coordinates": coordinates}
    regions = None
    if coordinates == "tf_crop_and_resize":
        given = [float(v) for v in n.numbers(1, "the regions")]
        regions = list(zip(given[:len(axes)], given[len(axes):], strict=True))
    if n.has(2) and n.held(2).shape != (0,):
        scales = [float(s) for s in n.numbers(2, "the scales")]
        keep = [k for k, s in enumerate(scales) if s != 1 or regions and regions[k] != (0.0, 1.0)]
        options["scales"] = tuple(scales[k] for k in keep)
        options["size"] = scaled_extents([x.shape[axes[k]] for k in keep], options["scales"])
        count = len(scales)
    elif n.has(3):
        sizes, scale = _sizes(n, n.numbers(3, "the sizes"), [x.shape[a] for a in axes])
        keep = [k for k, s in enumerate(sizes) if not holds("eq", s, x.shape[axes[k]])
                or scale not in (None, 1) or regions and regions[k] != (0.0, 1.0)]
        options["size"] = tuple(sizes[k] for k in keep)
        options["scales"] = scale
        count = len(sizes)
    else:
        raise Unsupported("neither scales nor sizes are given")
    if count != len(axes):
        raise Unsupported(f"{count} numbers for {len(axes)} axes")
    if not keep:
        return kept(n, x)
    if regions:
        options["regions"] = [regions[k] for k in keep]
    emit = n.emit if options["mode"] == "nearest" else functools.partial(emit_floats, n)
    return kept(n, emit(topi.resize, x, axes=tuple(axes[k] for k in keep), **options))


def _sizes(n: Node, sizes: list[Any], extents: list[Any]) -> tuple[list[Any], float | None]:
    """(the sizes, changed so that the shares of the axes stay where the policy says so; the scale of all axes then)."""
    policy = n.attr("keep_aspect_ratio_policy", "stretch")
    sizes = [s if isinstance(s, Expr) else int(s) for s in sizes]
    if policy == "stretch":
        return sizes, None
    if any(not isinstance(d, int) for d in (*sizes, *extents)):
        raise Unsupported(f"the policy {policy} for sizes that are not known")
    ratios = [s / e for s, e in zip(sizes, extents)]
    ratio = min(ratios) if policy == "not_larger" else max(ratios)
    return [math.floor(ratio * e + 0.5) for e in extents], ratio


@operator("GridSample")
def grid_sample(n: Node) -> Value:
    """`topi.grid_sample`."""
    mode = n.attr("mode", "bilinear" if n.version < 20 else "linear")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    return emit_floats(n, topi.grid_sample, n.value(0), n.value(1), mode=mode,
                       padding_mode=n.attr("padding_mode", "zeros"), align_corners=bool(n.attr("align_corners", 0)))


@operator("AffineGrid")
def affine_grid(n: Node) -> Value:
    """`topi.affine_grid`."""
    return n.emit(topi.affine_grid, n.value(0), tuple(n.numbers(1, "the size")[2:]),
                  align_corners=bool(n.attr("align_corners", 0)))


@operator("RoiAlign")
def roi_align(n: Node) -> Value:
    """`topi.roi_align`."""
    aligned = n.attr("coordinate_transformation_mode", "half_pixel" if n.version >= 16 else "output_half_pixel")
    size = (n.attr("output_height", 1), n.attr("output_width", 1))
    return n.emit(topi.roi_align, n.value(0), n.value(1), n.value(2), size, aligned=aligned == "half_pixel",
                  spatial_scale=n.attr("spatial_scale", 1.0), sampling_ratio=n.attr("sampling_ratio", 0),
                  mode="max_corner" if n.attr("mode", "avg") == "max" else "avg")
