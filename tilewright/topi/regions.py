"""Regions of images: the values in them, how far they overlap, which of those that overlap stay."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import ceil, floor
from tilewright.te.reduction import max as te_max
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, all_of, binary, if_then_else, logical_not, maximum, minimum, select
from tilewright.tir.conversion import cast, const, convert, min_value
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.indexing import from_end
from tilewright.topi.sampling import Read, clamped, interpolated
from tilewright.topi.shapes import (
    as_shape,
    check,
    check_choice,
    check_extent,
    check_rank,
    check_tensors,
    number,
    per_axis,
    product,
)
from tilewright.topi.sorting import ordered
from tilewright.topi.statements import each, variable, written
from tilewright.topi.types import FLOAT, INDEX, accumulator, check_kind, common_type

Side = tuple[Expr, Expr]                       # where a region begins and ends along an axis
MODES = ("avg", "max", "max_corner")


# values in regions


def _check_regions(op: str, x: Any, boxes: Any, indices: Any) -> None:
    check_tensors(op, x=x, boxes=boxes, indices=indices)
    for name, t, rank in (("x", x, 4), ("boxes", boxes, 2), ("indices", indices, 1)):
        check_rank(op, name, t, rank)
    check_kind(op, "x", x.dtype, FLOAT)
    check_kind(op, "boxes", boxes.dtype, FLOAT)
    check(dt.is_integer(indices.dtype), op, f"indices are {indices.dtype}, integers are needed")
    check_extent(op, "the last extent of boxes", boxes.shape[1], 4)
    check_extent(op, "the extent of indices", indices.shape[0], boxes.shape[0])


def _region_value(read: Read, y: Expr, x: Expr, extents: Sequence[Expr], wide: str, joined: str) -> Expr:
    """The value at a place of an image: up to one pixel beyond its ends the outermost one, farther away 0."""
    zero = const(0.0, wide)
    near = [all_of(binary("ge", p, const(-1.0, wide)), binary("le", p, number(n, wide)))
            for p, n in zip((y, x), extents)]
    places = [maximum(minimum(p, number(n - 1, wide)), zero) for p, n in zip((y, x), extents)]
    return if_then_else(all_of(*near), interpolated(read, places, extents, wide, joined), zero)


def roi_align(x: Tensor, boxes: Tensor, indices: Tensor, size: Any, *, spatial_scale: float = 1.0,
              sampling_ratio: int = 0, aligned: bool = False, mode: str = "avg") -> Tensor:
    """y[r, c, i, j] = the mean of values of image x[indices[r], c] at places in bin i, j of the region boxes[r].

    x: T[b, c, h, w]; boxes: T[r, 4], x1, y1, x2, y2, times spatial_scale; indices: integers [r]; size: (bins down,
    bins across). sampling_ratio: places along each side of a bin, 0: as many as it has pixels, rounded up. aligned:
    boxes half a pixel up and left; else they are at least one pixel wide and high. mode: "avg", "max" (the largest
    value), "max_corner" (the largest of the terms whose sums the values are, which ONNX calls max).
    Source: RoIAlign, He and others (2017), as in torchvision.
    """
    op = "roi_align"
    _check_regions(op, x, boxes, indices)
    check_choice(op, "mode", mode, MODES)
    bins, (ratio,) = per_axis(op, "size", size, 2, 1), per_axis(op, "sampling_ratio", sampling_ratio, 1)
    wide, spatial, mean = accumulator(common_type(op, x, boxes)), x.shape[2:], mode == "avg"
    joined = "max" if mode == "max_corner" else "add"

    def side(box: Callable[[int], Expr], axis: int) -> Side:
        """(begin, extent of a bin) of a region down (0) or across (1)."""
        begin, end = (cast(wide, box(k)) * float(spatial_scale) - (0.5 if aligned else 0.0)
                      for k in (1 - axis, 3 - axis))
        extent = end - begin if aligned else maximum(end - begin, const(1.0, wide))
        return begin, extent / float(bins[axis])

    def sample(read: Read, sides: Sequence[Side], at: Sequence[Any], k: Sequence[Any], counts: Sequence[Any]) -> Expr:
        y, x = (begin + (cast(wide, n) + (cast(wide, m) + 0.5) / cast(wide, c)) * extent
                for (begin, extent), n, m, c in zip(sides, at, k, counts))
        return _region_value(read, y, x, spatial, wide, joined)
    shape = (boxes.shape[0], x.shape[1], *map(convert, bins))
    if ratio:
        ks = [reduce_axis((0, ratio), name=name) for name in ("ky", "kx")]

        def term(r: Any, c: Any, *at: Any) -> Expr:
            image = from_end(indices(r), x.shape[0])
            sides = [side(lambda n: boxes(r, n), axis) for axis in (0, 1)]
            value = sample(lambda *p: cast(wide, x(image, c, *p)), sides, at, [k.var for k in ks], [ratio] * 2)
            return (te_sum if mean else te_max)(value, axis=ks)
        total = compute(shape, term, name=f"{op}_sum")
        share = 1.0 / float(ratio * ratio) if mean else 1.0
        return compute(shape, lambda *i: cast(x.dtype, total(*i) * share), name=op)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (images, corners, which), (y,) = ins, outs
        with each(ib, shape) as (r, c, *at):
            image = ib.let("image", from_end(which[r], x.shape[0]))
            sides = [(ib.let("begin", begin), ib.let("extent", extent))
                     for begin, extent in (side(lambda n: corners[r, n], axis) for axis in (0, 1))]
            counts = [ib.let("count", cast("int32", ceil(extent))) for _, extent in sides]
            total = variable(ib, const(0.0, wide) if mean else min_value(wide), wide, "total")
            with each(ib, counts, "k") as k:
                value = sample(lambda *p: cast(wide, images[(image, c) + p]), sides, at, k, counts)
                total[0] = binary("add" if mean else "max", total[0], value)
            several = maximum(counts[0], 0) * maximum(counts[1], 0)
            share = total[0] / cast(wide, maximum(several, 1)) if mean else select(
                binary("gt", several, 0), total[0], const(0.0, wide))
            y[r, c, at[0], at[1]] = cast(x.dtype, share)
    return written(op, [(shape, x.dtype)], [x, boxes, indices], write)[0]


def roi_pool(x: Tensor, boxes: Tensor, indices: Tensor, size: Any, *, spatial_scale: float = 1.0) -> Tensor:
    """y[r, c, i, j] = the largest pixel of image x[indices[r], c] in bin i, j of the region boxes[r]; 0 of no pixel.

    Shapes as in `roi_align`. The region reaches from the pixel next to its first corner to that next to its last one
    (halves away from 0), at least one pixel in each direction; bin i of n begins at floor(i * extent / n) and ends
    before ceil((i + 1) * extent / n). Source: Girshick, Fast R-CNN (2015), as in torchvision; ONNX's MaxRoiPool.
    """
    op = "roi_pool"
    _check_regions(op, x, boxes, indices)
    bins, wide, spatial = per_axis(op, "size", size, 2, 1), accumulator(common_type(op, x, boxes)), x.shape[2:]
    shape = (boxes.shape[0], x.shape[1], *map(convert, bins))

    def pixel(e: Expr) -> Expr:
        size = absolute(cast(wide, e) * float(spatial_scale))
        near = cast("int32", floor(size)) + cast("int32", binary("ge", size - floor(size), const(0.5, wide)))
        return select(binary("lt", e, const(0.0, e.dtype)), binary("sub", 0, near), near)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (images, corners, which), (y,) = ins, outs
        with each(ib, shape) as (r, c, *at):
            image = ib.let("image", from_end(which[r], x.shape[0]))
            ends: list[Side] = []
            for axis, (i, n) in enumerate(zip(at, bins)):
                begin = ib.let("begin", pixel(corners[r, 1 - axis]))
                width = cast(wide, maximum(pixel(corners[r, 3 - axis]) - begin + 1, 1)) / float(n)
                first, behind = (clamped(cast("int32", f) + begin, spatial[axis] + 1) for f in (
                    floor(cast(wide, i) * width), ceil(cast(wide, i + 1) * width)))
                ends.append((ib.let("first", first), ib.let("behind", behind)))
            best = variable(ib, min_value(x.dtype), x.dtype, "best")
            (top, below), (left, right) = ends
            with ib.for_range(top, below, name="h") as h, ib.for_range(left, right, name="w") as w:
                best[0] = maximum(best[0], images[image, c, h, w])
            some = all_of(binary("gt", below, top), binary("gt", right, left))
            y[r, c, at[0], at[1]] = select(some, best[0], const(0.0, x.dtype))
    return written(op, [(shape, x.dtype)], [x, boxes, indices], write)[0]


# overlaps


def _sides(read: Callable[[int], Expr], wide: str, center: bool = False) -> list[Side]:
    """Where a box begins and ends along both axes: of two corners in any order, or of a center and extents."""
    a, b, c, d = (cast(wide, read(k)) for k in range(4))
    if center:
        return [(a - c * 0.5, a + c * 0.5), (b - d * 0.5, b + d * 0.5)]
    return [(minimum(a, c), maximum(a, c)), (minimum(b, d), maximum(b, d))]


def _areas(a: Sequence[Side], b: Sequence[Side]) -> tuple[Expr, Expr]:
    """(the area that two boxes share, the area of both)"""
    parts = []
    for (low, high), (start, end) in zip(a, b):
        shared = minimum(high, end) - maximum(low, start)
        parts.append(maximum(shared, const(0.0, shared.dtype)))
    first, second = ((s[0][1] - s[0][0]) * (s[1][1] - s[1][0]) for s in (a, b))
    both = parts[0] * parts[1]
    return both, first + second - both


def _check_boxes(op: str, name: str, boxes: Any, rank: int) -> None:
    check_tensors(op, **{name: boxes})
    check_rank(op, name, boxes, rank)
    check_kind(op, name, boxes.dtype, FLOAT)
    check_extent(op, f"the last extent of {name}", boxes.shape[-1], 4, "a box is x1, y1, x2, y2")


def box_iou(a: Tensor, b: Tensor) -> Tensor:
    """y[i, j] = the area that boxes a[i] and b[j] share, divided by the area that both cover; 0 where that is 0.

    a: T[n, 4] and b: T[m, 4], two opposite corners x1, y1, x2, y2 of each; y: T[n, m].
    """
    op = "box_iou"
    _check_boxes(op, "a", a, 2)
    _check_boxes(op, "b", b, 2)
    dtype = common_type(op, a, b)
    wide = accumulator(dtype)

    def ratio(i: Expr, j: Expr) -> Expr:
        shared, both = _areas(_sides(lambda k: a(i, k), wide), _sides(lambda k: b(j, k), wide))
        zero = const(0.0, wide)
        return cast(dtype, select(binary("gt", both, zero), shared / both, zero))
    return compute((a.shape[0], b.shape[0]), ratio, name=op)


# suppression


def _limit(op: str, most: Any, count: Any) -> Expr:
    """How many boxes are kept at most."""
    if most is None:
        return convert(count)
    extent, = as_shape(op, most, 1)
    return simplified(minimum(extent, count))


def _kept(ib: IRBuilder, order: Callable[[Expr], Expr], count: Any, most: Any, score: Callable[[Expr], Expr],
          least: float | None, sides: Callable[[Expr], list[Side]], threshold: float, kept: Callable[[Expr], Expr],
          keep: Callable[[Expr, Expr], None]) -> BufferVar:
    """Go through boxes in their order, and keep those that overlap with none that is kept; how many were kept.

    kept(k) reads and keep(k, box) writes the box that was kept as number k.
    """
    found = variable(ib, 0, INDEX, "found")
    with ib.for_range(const(0, INDEX), cast(INDEX, count), name="k") as k:
        box = ib.let("box", order(k))
        free = [binary("lt", found[0], cast(INDEX, most))]
        if least is not None:
            free.append(binary("gt", score(box), const(float(least), score(box).dtype)))
        with ib.if_scope(all_of(*free)):
            other = variable(ib, 0, INDEX, "other")
            apart = variable(ib, const(True, "bool"), "bool", "apart")
            with ib.while_loop(all_of(apart[0], binary("lt", other[0], found[0]))):
                shared, both = _areas(sides(box), sides(kept(other[0])))
                apart[0] = logical_not(binary("gt", shared, both * float(threshold)))
                other[0] = other[0] + 1
            with ib.if_scope(apart[0]):
                keep(found[0], box)
                found[0] = found[0] + 1
    return found


def nms(boxes: Tensor, scores: Tensor, *, iou_threshold: float, score_threshold: float | None = None,
        max_output: Any = None) -> tuple[Tensor, Tensor]:
    """(indices, number): the boxes that stay, by falling score, where none overlaps with one before by more than that.

    boxes: T[n, 4], two opposite corners of each; scores: T[n]. iou_threshold: of `box_iou`; score_threshold: boxes up
    to it are left out; max_output: how many stay at most. indices: int64[n] or int64[min(n, max_output)], -1 behind the
    `number`, int64[1], of them. As torchvision's nms. Raises TensorExpressionError where extents differ.
    """
    op = "nms"
    _check_boxes(op, "boxes", boxes, 2)
    check_tensors(op, scores=scores)
    check_rank(op, "scores", scores, 1)
    check_extent(op, "the extent of scores", scores.shape[0], boxes.shape[0])
    n = boxes.shape[0]
    wide, most = accumulator(boxes.dtype), _limit(op, max_output, n)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (corners, score, order), (indices, total) = ins, outs
        with ib.for_range(0, most, name="k") as k:
            indices[k] = const(-1, INDEX)

        def keep(k: Expr, box: Expr) -> None:
            indices[k] = box
        found = _kept(ib, lambda k: order[k], n, most, lambda b: score[b], score_threshold,
                      lambda b: _sides(lambda c: corners[b, c], wide), iou_threshold, lambda k: indices[k], keep)
        total[0] = found[0]
    out = written(op, [((most,), INDEX), ((IntImm(1),), INDEX)], [boxes, scores, ordered(op, scores, 0, True)], write)
    return out[0], out[1]


def non_max_suppression(boxes: Tensor, scores: Tensor, *, max_output: Any = None, iou_threshold: float = 0.0,
                        score_threshold: float | None = None, center: bool = False) -> tuple[Tensor, Tensor]:
    """(selected, number): (batch, class, box) of the boxes that `nms` keeps of each class of each batch.

    boxes: T[b, n, 4], two opposite corners, or a center and extents where `center` holds; scores: T[b, c, n];
    max_output: for each class. selected: int64[b * c * min(n, max_output), 3], batch by batch and class by class, -1
    behind the `number`, int64[1], of them. As in ONNX. Raises TensorExpressionError where extents differ.
    """
    op = "non_max_suppression"
    _check_boxes(op, "boxes", boxes, 3)
    check_tensors(op, scores=scores)
    check_rank(op, "scores", scores, 3)
    for name, found, wanted in (("first", scores.shape[0], boxes.shape[0]), ("last", scores.shape[2], boxes.shape[1])):
        check_extent(op, f"the {name} extent of scores", found, wanted,
                     f"boxes have the shape {shape_text(boxes.shape)}")
    check(isinstance(center, bool), op, f"center is {described(center)}, not a bool")
    batches, classes, n = scores.shape
    wide, most = accumulator(boxes.dtype), _limit(op, max_output, n)
    room = simplified(product((batches, classes, most)))

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (corners, score, order), (selected, total) = ins, outs
        with ib.for_range(0, room, name="k") as k, ib.for_range(0, 3, name="part") as part:
            selected[k, part] = const(-1, INDEX)
        total[0] = const(0, INDEX)
        with ib.for_range(0, batches, name="batch") as b, ib.for_range(0, classes, name="class") as c:
            start = ib.let("start", total[0])

            def keep(k: Expr, box: Expr) -> None:
                selected[start + k, 0], selected[start + k, 1] = cast(INDEX, b), cast(INDEX, c)
                selected[start + k, 2] = box
            found = _kept(ib, lambda k: order[b, c, k], n, most, lambda box: score[b, c, box], score_threshold,
                          lambda box: _sides(lambda e: corners[b, box, e], wide, center), iou_threshold,
                          lambda k: selected[start + k, 2], keep)
            total[0] = start + found[0]
    out = written(op, [((room, IntImm(3)), INDEX), ((IntImm(1),), INDEX)],
                  [boxes, scores, ordered(op, scores, 2, True)], write)
    return out[0], out[1]


__all__ = ["box_iou", "nms", "non_max_suppression", "roi_align", "roi_pool"]
