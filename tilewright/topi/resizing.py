"""Images in other sizes, and values at places between pixels: resizing and sampling by grids."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import FUNCTIONS, ceil, floor
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import (
    absolute,
    all_of,
    any_of,
    binary,
    ceildiv,
    if_then_else,
    maximum,
    minimum,
    select,
)
from tilewright.tir.conversion import cast, const, convert
from tilewright.tir.expr import Expr
from tilewright.topi.sampling import clamped, inside, interpolated
from tilewright.topi.shapes import (
    as_shape,
    axis_indices,
    check,
    check_choice,
    check_extent,
    check_numbers,
    check_rank,
    check_tensors,
    constant,
    index_type,
    number,
    replaced,
    same_extent,
)
from tilewright.topi.types import FLOAT, accumulator, check_kind, common_type

COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric",
               "tf_half_pixel_for_nn", "tf_crop_and_resize")
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@dataclass(frozen=True)
class Ratio:
    """A place p / q between elements, of integers."""
    p: Expr
    q: Expr

    def low(self) -> Expr:
        return binary("floordiv", self.p, self.q)

    def share(self, dtype: str) -> Expr:
        """How far it is above the element below it: from 0 to 1."""
        return cast(dtype, binary("floormod", self.p, self.q)) / cast(dtype, self.q)

    def nearest(self, rounding: str) -> Expr:
        if rounding == "round_prefer_floor":
            return ceildiv(self.p * 2 - self.q, self.q * 2)
        if rounding == "round_prefer_ceil":
            return binary("floordiv", self.p * 2 + self.q, self.q * 2)
        return self.low() if rounding == "floor" else ceildiv(self.p, self.q)

    def outside(self, extent: Expr) -> Expr:
        return any_of(binary("lt", self.p, 0), binary("gt", self.p, (extent - 1) * self.q))


@dataclass(frozen=True)
class Real:
    """A place between elements, as a float64."""
    x: Expr

    def low(self) -> Expr:
        return cast("int32", floor(self.x))

    def share(self, dtype: str) -> Expr:
        return cast(dtype, self.x - floor(self.x))

    def nearest(self, rounding: str) -> Expr:
        half = {"round_prefer_floor": -0.5, "round_prefer_ceil": 0.5}.get(rounding, 0.0)
        x = self.x + half if half else self.x
        return cast("int32", floor(x) if rounding in ("round_prefer_ceil", "floor") else ceil(x))

    def outside(self, extent: Expr) -> Expr:
        return any_of(binary("lt", self.x, const(0.0, "float64")),
                      binary("gt", self.x, number(extent - 1, "float64")))


def _place(i: Any, n: Expr, m: Expr, scale: float | None, coordinates: str,
           region: tuple[float, float]) -> Ratio | Real:
    """Where element i of m lies among n elements."""
    if coordinates == "tf_crop_and_resize":
        start, end = region
        last, parts = number(n - 1, "float64"), number(maximum(m - 1, 1), "float64")
        across = cast("float64", i) * ((end - start) * last / parts) + start * last
        return Real(select(binary("gt", m, 1), across, 0.5 * (start + end) * last))
    kind = index_type(8, n, m)
    i, n, m = (cast(kind, convert(v)) for v in (i, n, m))
    if coordinates == "align_corners":
        return Ratio(i * (n - 1), maximum(m - 1, 1))
    if scale is None or scale == 1:
        if coordinates == "asymmetric":
            return Ratio(i * n, m)
        if coordinates == "tf_half_pixel_for_nn":
            return Ratio((i * 2 + 1) * n, m * 2)
        at = (i * 2 + 1) * n - m
        return Ratio(select(binary("gt", m, 1), at, const(0, kind)) if coordinates == "pytorch_half_pixel" else at,
                     m * 2)
    x = cast("float64", i)
    if coordinates == "asymmetric":
        return Real(x / scale)
    if coordinates == "tf_half_pixel_for_nn":
        return Real((x + 0.5) / scale)
    center = (x + 0.5) / scale - 0.5
    if coordinates == "half_pixel_symmetric":
        extent = cast("float64", n)
        center = center + extent / 2.0 * (1.0 - cast("float64", m) / (extent * scale))
    if coordinates == "pytorch_half_pixel":
        center = select(binary("gt", m, 1), center, const(0.0, "float64"))
    return Real(center)


def _near(d: Expr, a: float) -> Expr:
    """Keys' convolution with the coefficient a, at a distance of up to 1."""
    return ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0


def _far(d: Expr, a: float) -> Expr:
    """Keys' convolution at a distance from 1 to 2."""
    return ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a


def cubic_weights(t: Expr, a: float) -> list[Expr]:
    """Of the elements at -1, 0, 1 and 2 for a place t between 0 and 1: Keys' convolution with the coefficient a."""
    return [_far(t + 1.0, a), _near(t, a), _near(1.0 - t, a), _far(2.0 - t, a)]


def _taps(place: Ratio | Real, extent: Expr, mode: str, wide: str, rounding: str, a: float,
          exclude: bool) -> list[tuple[Expr, Expr | None]]:
    """(index, weight) of the elements that make up the one at a place."""
    if mode == "nearest":
        return [(clamped(place.nearest(rounding), extent), None)]
    t, low = place.share(wide), place.low()
    if mode == "linear":
        return [(clamped(low, extent), 1.0 - t), (clamped(low + 1, extent), t)]
    weights, at = cubic_weights(t, a), [low + k for k in (-1, 0, 1, 2)]
    if exclude:
        weights = [select(inside(k, extent), w, const(0.0, wide)) for k, w in zip(at, weights)]
        total = weights[0] + weights[1] + weights[2] + weights[3]
        weights = [w / total for w in weights]
    return [(clamped(k, extent), w) for k, w in zip(at, weights)]


def _regions(op: str, given: Any, count: int, crop: bool) -> list[tuple[float, float]]:
    """The part [start, end] of each axis that "tf_crop_and_resize" reads."""
    if given is None:
        return [(0.0, 1.0)] * count
    check(crop and isinstance(given, (tuple, list)) and len(given) == count and all(
        isinstance(p, (tuple, list)) and len(p) == 2 for p in given), op, f"regions is {described(given)}, {count} "
          "pair(s) for the coordinates tf_crop_and_resize are needed")
    for end in (v for p in given for v in p):
        check_numbers(op, regions=end)
        check(math.isfinite(end), op, f"regions is {described(given)}, which is not finite")
    return [(float(start), float(end)) for start, end in given]


def _sizes(op: str, x: Tensor, axes: Sequence[int], size: Any, scales: Any) -> tuple[list[Expr], list[float | None]]:
    """(the new extents, the scales that are given) of axes."""
    check(size is not None or scales is not None, op, "size, scales or both are needed, none of them is given")
    factors = list(scales) if isinstance(scales, (tuple, list)) else [scales] * len(axes)
    if scales is not None:
        check_numbers(op, **{f"scales[{n}]": f for n, f in enumerate(factors)})
        check(len(factors) == len(axes) and all(0 < f < math.inf for f in factors), op, f"scales is "
              f"{described(scales)}, {len(axes)} positive number(s) are needed")
    if size is not None:
        out = as_shape(op, size)
        check(len(out) == len(axes), op, f"size is {described(size)}, {len(axes)} number(s) are needed")
        return list(out), [None if f is None else float(f) for f in factors]
    extents = []
    for a, f in zip(axes, factors):
        n = constant(x.shape[a])
        check(n is not None or float(f).is_integer(), op, f"the extent {x.shape[a]} of axis {a} is symbolic, and the "
              f"scale {f} no integer", "give the size")
        extents.append(simplified(x.shape[a] * int(f)) if n is None else convert(int(n * f)))
    return extents, [float(f) for f in factors]


def resize(x: Tensor, size: Any = None, *, scales: Any = None, axes: Any = None, mode: str = "linear",
           coordinates: str = "half_pixel", rounding: str = "round_prefer_floor", cubic_a: float = -0.75,
           exclude_outside: bool = False, antialias: bool = False, regions: Any = None,
           extrapolation: float = 0.0) -> Tensor:
    """x in another size along axes (default: as many at the end as there are numbers): size, or floor(scale * extent).

    Where both are given, size says how many elements there are, and scales where they lie.

    mode: "nearest", "linear", "cubic" (Keys' convolution with the coefficient cubic_a; exclude_outside: the weights of
    elements inside alone, scaled to the sum 1). coordinates, where element i of m lies among n = m / scale:
    "half_pixel" (i + 1/2) / scale - 1/2, "pytorch_half_pixel" the same and 0 for m = 1, "half_pixel_symmetric" the same
    about the middle, "align_corners" i * (n - 1) / (m - 1), "asymmetric" i / scale, "tf_half_pixel_for_nn"
    (i + 1/2) / scale, "tf_crop_and_resize" in the part [start, end] of each axis that `regions` gives, with the value
    extrapolation outside of x. rounding: for "nearest",
    "round_prefer_floor", "round_prefer_ceil", "floor" or "ceil". Beyond the ends the outermost elements repeat.
    antialias: where x shrinks, the weights of "linear" and "cubic" reach over 1 / scale as many elements.
    Raises TensorExpressionError for integers, but with "nearest". Source: Resize of ONNX 1.16.
    """
    op = "resize"
    check_tensors(op, x=x)
    for name, value, choices in (("mode", mode, ("nearest", "linear", "cubic")), ("rounding", rounding, ROUNDINGS),
                                 ("coordinates", coordinates, COORDINATES)):
        check_choice(op, name, value, choices)
    if mode != "nearest":
        check_kind(op, "x", x.dtype, FLOAT, 'convert it, or mode="nearest"')
    several = size if size is not None else scales
    count = len(several) if isinstance(several, (tuple, list)) else 1
    check(count <= x.ndim, op, f"{count} sizes are given, x has {x.ndim} dimension(s)")
    chosen = tuple(range(x.ndim - count, x.ndim)) if axes is None else axis_indices(op, axes, x.ndim, "axes")
    extents, factors = _sizes(op, x, chosen, size, scales)
    crop = coordinates == "tf_crop_and_resize"
    parts = _regions(op, regions, len(chosen), crop)
    check(not antialias or mode != "nearest" and not crop, op, "antialias is for the modes linear and cubic, and not "
          "for the coordinates tf_crop_and_resize")
    wide = x.dtype if mode == "nearest" else accumulator(x.dtype)
    places: dict[int, Callable[[Any], Ratio | Real]] = {}
    y = x

    def taps(axis: int, i: Any) -> list[tuple[Expr, Expr | None]]:
        return _taps(places[axis](i), x.shape[axis], mode, wide, rounding, cubic_a, exclude_outside)
    for a, m, f, part in zip(chosen, extents, factors, parts):
        n = x.shape[a]
        check(constant(n) != 0 or constant(m) == 0, op, f"extent {a} of x is 0, there is no element for {m}")
        if same_extent(n, m) and (f is None or f == 1) and not crop:
            continue
        places[a] = partial(_place, n=n, m=m, scale=f, coordinates=coordinates, region=part)
        shrinks = _shrinks(op, n, m, f) if antialias else 1.0
        y = _resized(y, a, m, wide, partial(taps, a)) if shrinks >= 1 or constant(m) == 0 else _averaged(
            y, a, m, wide, places[a], shrinks, None if mode == "linear" else cubic_a, exclude_outside)

    def at(*i: Any) -> Expr:
        value = cast(x.dtype, y(*i))
        if not crop:
            return value
        return select(any_of(*(p(i[a]).outside(x.shape[a]) for a, p in places.items())),
                      const(extrapolation, x.dtype), value)
    return compute(y.shape, at, name=op)


def _resized(x: Tensor, axis: int, extent: Expr, wide: str, taps: Callable[[Any], Any]) -> Tensor:
    def at(*i: Any) -> Expr:
        terms = [(cast(wide, x(*replaced(i, axis, k))), w) for k, w in taps(i[axis])]
        total: Expr | None = None
        for value, weight in terms:
            term = value if weight is None else value * weight
            total = term if total is None else total + term
        assert total is not None
        return total
    shape = replaced(x.shape, axis, extent)
    if constant(extent) == 0 or constant(x.shape[axis]) == 0:
        return compute(shape, lambda *i: const(0, wide), name="resize_empty")
    return compute(shape, at, name="resize_axis")


def _shrinks(op: str, n: Expr, m: Expr, scale: float | None) -> float:
    """The scale of an axis."""
    if scale is not None:
        return scale
    have, wanted = constant(n), constant(m)
    check(have is not None and wanted is not None, op, f"antialias from the extent {n} to {m}, which is symbolic",
          "give the scales")
    return (wanted or 0) / (have or 1)


def _averaged(x: Tensor, axis: int, extent: Expr, wide: str, place: Callable[[Any], Ratio | Real], scale: float,
              a: float | None, exclude: bool) -> Tensor:
    """x in a smaller size along an axis: weights of the distances times scale, linear, or cubic with a coefficient."""
    n, start = x.shape[axis], math.floor(-(1 if a is None else 2) / scale) + 1
    zero, one, two = (const(float(v), wide) for v in (0, 1, 2))

    def weight(i: Any, k: Any) -> Expr:
        at = place(i)
        d = absolute(cast(wide, k + start) - at.share(wide)) * scale
        w = maximum(one - d, zero) if a is None else select(
            binary("le", d, one), _near(d, a), select(binary("lt", d, two), _far(d, a), zero))
        return select(inside(at.low() + (k + start), n), w, zero) if exclude else w
    weights = compute((extent, 2 - 2 * start), weight, name="resize_weights")
    r, k = (reduce_axis((0, 2 - 2 * start), name="k") for _ in range(2))
    sums = compute((extent,), lambda i: te_sum(weights(i, r), axis=r), name="resize_weight_sums")
    shares = compute(weights.shape, lambda i, k: weights(i, k) / sums(i), name="resize_shares")

    def at(*i: Any) -> Expr:
        source = clamped(place(i[axis]).low() + (k.var + start), n)
        share = shares(i[axis], k)                       # of 0: no element of the window, whatever it is
        value = cast(wide, x(*replaced(i, axis, source))) * share
        return te_sum(select(binary("eq", share, zero), zero, value), axis=k)
    return compute(replaced(x.shape, axis, extent), at, name="resize_average")


# grids


def _reflected(x: Expr, low: Expr, span: Expr) -> Expr:
    """x mirrored at low and low + span until it lies between them."""
    distance = absolute(x - low)
    extra, flips = FUNCTIONS["fmod"](distance, span), floor(distance / span)
    even = binary("eq", floor(flips / 2.0) * 2.0, flips)
    return low + select(even, extra, span - extra)


def _inward(x: Expr, extent: Expr, padding: str, align_corners: bool) -> Expr:
    """A place as "border" and "reflection" bring it into the image."""
    if padding == "zeros":
        return x
    n, zero = number(extent, x.dtype), const(0.0, x.dtype)
    if padding == "reflection":
        if align_corners:
            mirrored = _reflected(x, zero, maximum(n - 1.0, const(1.0, x.dtype)))
            x = select(binary("gt", n, const(1.0, x.dtype)), mirrored, zero)
        else:
            x = _reflected(x, const(-0.5, x.dtype), n)
    return select(binary("gt", x, zero), minimum(x, n - 1.0), zero)          # of what is no number the first one


def affine_grid(theta: Tensor, size: Any, *, align_corners: bool = False) -> Tensor:
    """y[b, i..., :] = theta[b] times the place of pixel i, from -1 to 1 along each axis, the last first, and a 1.

    theta: T[b, 2, 3] for images of size (h, w), T[b, 3, 4] for (d, h, w); y: T[b, *size, 2] or T[b, *size, 3], as
    `grid_sample` takes it. align_corners: as there; an axis of one pixel has it in the middle.
    Raises TensorExpressionError where theta does not fit.
    """
    op = "affine_grid"
    check_tensors(op, theta=theta)
    check_rank(op, "theta", theta, 3)
    check_kind(op, "theta", theta.dtype, FLOAT)
    space, wide = as_shape(op, size), accumulator(theta.dtype)
    dims = len(space)
    check(dims in (2, 3), op, f"size is {described(size)}, 2 or 3 extents are needed")
    check_extent(op, "extent 1 of theta", theta.shape[1], dims)
    check_extent(op, "extent 2 of theta", theta.shape[2], dims + 1)

    def place(v: Any, n: Any) -> Expr:
        k, count = cast(wide, v), number(n, wide)
        if align_corners:
            spread = k * 2.0 / maximum(count - 1.0, const(1.0, wide)) - 1.0
            return if_then_else(binary("gt", n, 1), spread, const(0.0, wide))
        return (k * 2.0 + 1.0) / count - 1.0

    def at(b: Expr, *i: Expr) -> Expr:
        row, total = i[-1], cast(wide, theta(b, i[-1], dims))
        for axis, (v, n) in enumerate(zip(i[:-1], space)):
            total = total + cast(wide, theta(b, row, dims - 1 - axis)) * place(v, n)
        return cast(theta.dtype, total)
    return compute((theta.shape[0], *space, dims), at, name=op)


def grid_sample(x: Tensor, grid: Tensor, *, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool = False) -> Tensor:
    """y[b, c, i...] = x[b, c] at the place grid[b, i..., :], from -1 to 1 along each axis of the image, the last first.

    x: T[b, c, h, w] or T[b, c, d, h, w]; grid: [b, i..., 2] or [b, i..., 3]. mode: "bilinear", "nearest" (the even one
    of two), "bicubic" (of pictures). padding_mode, beyond the image: "zeros", "border" (the outermost pixels),
    "reflection". align_corners: -1 and 1 are the centers of the outermost pixels, else their outer edges.
    """
    op = "grid_sample"
    check_tensors(op, x=x, grid=grid)
    check_rank(op, "x", x, 4, 5)
    check_rank(op, "grid", grid, x.ndim)
    dims = x.ndim - 2
    check_choice(op, "mode", mode, ("bilinear", "nearest", "bicubic")[:3 if dims == 2 else 2])
    check_choice(op, "padding_mode", padding_mode, ("zeros", "border", "reflection"))
    for name, t in (("x", x), ("grid", grid)):
        check_kind(op, name, t.dtype, FLOAT)
    check_extent(op, "the first extent of grid", grid.shape[0], x.shape[0])
    check_extent(op, "the last extent of grid", grid.shape[-1], dims)
    wide, spatial = accumulator(common_type(op, x, grid)), x.shape[2:]

    def place(i: tuple[Any, ...], axis: int) -> Expr:
        g, n = cast(wide, grid(i[0], *i[2:], dims - 1 - axis)), number(spatial[axis], wide)
        return (g + 1.0) * 0.5 * (n - 1.0) if align_corners else ((g + 1.0) * n - 1.0) * 0.5

    def at(*i: Any) -> Expr:
        def read(*k: Any) -> Expr:
            return cast(wide, x(*i[:2], *k))

        def pixel(*k: Expr) -> Expr:
            """The element at whole places, 0 outside."""
            index = [cast("int32", _inward(v, n, padding_mode, align_corners)) for v, n in zip(k, spatial)]
            return if_then_else(all_of(*(inside(v, n) for v, n in zip(index, spatial))), read(*index),
                                const(0.0, wide))
        places = [place(i, a) for a in range(dims)]
        if mode == "bicubic":
            lows = [floor(p) for p in places]
            weights = [cubic_weights(p - low, -0.75) for p, low in zip(places, lows)]
            total: Expr = const(0.0, wide)
            for r, s in product(range(4), repeat=2):
                total = total + pixel(lows[0] + float(r - 1), lows[1] + float(s - 1)) * (weights[0][r] * weights[1][s])
            return cast(x.dtype, total)
        places = [_inward(p, n, padding_mode, align_corners) for p, n in zip(places, spatial)]
        if mode == "bilinear":
            return cast(x.dtype, interpolated(read, places, spatial, wide))
        nearest = [FUNCTIONS["nearbyint"](p) for p in places]
        there = (inside(p, number(n, wide)) for p, n in zip(nearest, spatial))   # NaN is nowhere
        return cast(x.dtype, if_then_else(all_of(*there), read(*(cast("int32", p) for p in nearest)), const(0.0, wide)))
    if any(constant(n) == 0 for n in spatial):
        check(False, op, f"x has the shape {shape_text(x.shape)}, without a pixel")
    return compute((*x.shape[:2], *grid.shape[1:-1]), at, name=op)


__all__ = ["affine_grid", "grid_sample", "resize"]
