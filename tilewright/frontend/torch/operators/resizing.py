"""Images in other sizes, values at places between pixels."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch.emit import Emitter
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.values import Value


def _resized(e: Emitter, x: Value, scales: Sequence[float | None], **attributes: Any) -> Value:
    """x in the size of the result; places follow from the scales where all are given, else from the sizes.

    Along an axis that keeps its extent PyTorch copies where it is linear, whatever the scale.
    """
    axes, size = list(range(2, x.ndim)), e.shape
    factors = {a: float(s) for a, s in zip(axes, scales) if s is not None}
    if attributes["mode"] == "linear" and not attributes.get("antialias"):
        axes = [a for a in axes if not (size[a] is x.shape[a] or isinstance(size[a], int) and size[a] == x.shape[a])]
    by_scales = len(factors) == x.ndim - 2 and attributes.get("coordinates") != "align_corners"
    return e.te(topi.resize, x, tuple(size[a] for a in axes), axes=tuple(axes), **attributes,
                scales=tuple(factors[a] for a in axes) if by_scales else None) if axes else x


def _scales(x: Value, rest: Sequence[Any]) -> list[float | None]:
    """The scales among the last arguments, a list or one for each axis."""
    if len(rest) == 1 and (rest[0] is None or isinstance(rest[0], (list, tuple))):
        return list(rest[0] or [None])
    return [*rest, *[None] * (x.ndim - 2 - len(rest))]


_NEAREST = [f"upsample_nearest{n}d{kind}" for n in (1, 2, 3) for kind in ("", ".vec")]
_EXACT = [f"_upsample_nearest_exact{n}d{kind}" for n in (1, 2, 3) for kind in ("", ".vec")]
_LINEAR = [f"upsample_{name}{kind}" for name in ("linear1d", "bilinear2d", "trilinear3d") for kind in ("", ".vec")]


@operator(*_NEAREST)
def nearest(e: Emitter, x: Value, output_size: Any, *scales: Any, **named: Any) -> Value:
    """`topi.resize`, the element at floor(i / scale)."""
    return _resized(e, x, _scales(x, [*scales, *named.values()]), mode="nearest", coordinates="asymmetric",
                    rounding="floor")


@operator(*_EXACT)
def nearest_exact(e: Emitter, x: Value, output_size: Any, *scales: Any, **named: Any) -> Value:
    """`topi.resize`, the element at floor((i + 1/2) / scale)."""
    return _resized(e, x, _scales(x, [*scales, *named.values()]), mode="nearest", coordinates="half_pixel",
                    rounding="round_prefer_ceil")


@operator(*_LINEAR)
def linear(e: Emitter, x: Value, output_size: Any, align_corners: bool, *scales: Any, **named: Any) -> Value:
    """`topi.resize`, linear between elements."""
    return _resized(e, x, _scales(x, [*scales, *named.values()]), mode="linear", coordinates=_places(align_corners))


@operator("upsample_bicubic2d", "upsample_bicubic2d.vec")
def cubic(e: Emitter, x: Value, output_size: Any, align_corners: bool, *scales: Any, **named: Any) -> Value:
    """`topi.resize`, cubic between elements."""
    return _resized(e, x, _scales(x, [*scales, *named.values()]), mode="cubic", coordinates=_places(align_corners))


@operator("_upsample_bilinear2d_aa", "_upsample_bilinear2d_aa.vec")
def linear_antialiased(e: Emitter, x: Value, output_size: Any, align_corners: bool, *scales: Any,
                       **named: Any) -> Value:
    """`topi.resize`, linear with antialiasing, by the elements inside alone."""
    return _antialiased(e, x, align_corners, _scales(x, [*scales, *named.values()]), mode="linear")


@operator("_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa.vec")
def cubic_antialiased(e: Emitter, x: Value, output_size: Any, align_corners: bool, *scales: Any,
                      **named: Any) -> Value:
    """`topi.resize`, cubic with antialiasing and the coefficient -1/2, by the elements inside alone."""
    return _antialiased(e, x, align_corners, _scales(x, [*scales, *named.values()]), mode="cubic", cubic_a=-0.5)


def _antialiased(e: Emitter, x: Value, align_corners: bool, scales: Sequence[float | None],
                 **attributes: Any) -> Value:
    """x resized with antialiasing. With align_corners PyTorch only takes another scale, (m - 1) / (n - 1)."""
    if align_corners:
        sides = list(zip(x.shape[2:], e.shape[2:]))
        if any(not isinstance(n, int) or not isinstance(m, int) or m == 1 < n for n, m in sides):
            raise e.refuse(f"antialiasing with align_corners from {x.shape[2:]} to {e.shape[2:]}",
                           "align_corners=False is what antialiasing is for")
        scales = [(m - 1) / (n - 1) if n > 1 else float(m) for n, m in sides]  # type: ignore[operator, arg-type]
    return _resized(e, x, scales, coordinates="half_pixel", antialias=True, exclude_outside=True, **attributes)


def _places(align_corners: bool) -> str:
    return "align_corners" if align_corners else "half_pixel"


@operator("grid_sampler_2d", "grid_sampler_3d", "grid_sampler")
def grid_sampler(e: Emitter, x: Value, grid: Value, interpolation_mode: int, padding_mode: int,
                 align_corners: bool) -> Value:
    """`topi.grid_sample`."""
    return e.te(topi.grid_sample, x, grid, mode=("bilinear", "nearest", "bicubic")[interpolation_mode],
                padding_mode=("zeros", "border", "reflection")[padding_mode], align_corners=align_corners)


@operator("affine_grid_generator")
def affine_grid(e: Emitter, theta: Value, size: Sequence[Any], align_corners: bool) -> Value:
    """`topi.affine_grid`."""
    return e.te(topi.affine_grid, theta, tuple(size)[2:], align_corners=align_corners)
