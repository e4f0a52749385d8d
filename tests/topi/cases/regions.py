"""Samples of regions of images."""
from __future__ import annotations

import itertools
import math

import numpy as np

from tests.topi.agreement import Draw, Sample, case, wide
from tilewright import topi


def terms(image, y, x):
    """The products whose sum the value at a place is."""
    h, w = image.shape
    if y < -1 or y > h or x < -1 or x > w:
        return [0.0]
    y, x = min(max(y, 0), h - 1), min(max(x, 0), w - 1)
    corners = itertools.product((math.floor(y), math.floor(y) + 1), (math.floor(x), math.floor(x) + 1))
    return [image[i, j] * (1 - abs(y - i)) * (1 - abs(x - j)) if i < h and j < w else 0.0 for i, j in corners]


def drawn(draw: Draw):
    """(x, boxes, the image of each)"""
    dtype, count = draw.dtype("float32", "float32", "float64"), draw.extent(3)
    x = draw.array((draw.integer(1, 2), draw.extent(2), draw.integer(1, 6), draw.integer(1, 6)), dtype)
    begin, extent = draw.array((count, 2), dtype, -2, 8), draw.array((count, 2), dtype, 0, 9)
    which = draw.rng.integers(0, x.shape[0], count).astype(draw.choice("int32", "int64"))
    return x, np.concatenate([begin, begin + extent], 1), which, (draw.integer(1, 3), draw.integer(1, 3))


@case
def roi_align(draw: Draw) -> Sample:
    x, boxes, which, size = drawn(draw)
    ratio, scale, aligned, mode = draw.choice(0, 1, 2), draw.choice(1.0, 0.5), draw.flag(), draw.choice(
        "avg", "avg", "max", "max_corner")
    y = np.zeros((len(boxes), x.shape[1], *size))
    for r, c, *at in np.ndindex(*y.shape):
        starts, bins, counts = [], [], []
        for axis in (1, 0):
            low, high = (wide(boxes)[r, k] * scale - (0.5 if aligned else 0) for k in (axis, axis + 2))
            starts.append(low)
            bins.append((high - low if aligned else max(high - low, 1.0)) / size[1 - axis])
            counts.append(ratio or math.ceil(bins[-1]))
        places = [[s + (n + (k + 0.5) / m) * e for k in range(m)] for s, e, n, m in zip(starts, bins, at, counts)]
        values = [terms(wide(x)[which[r], c], *p) for p in itertools.product(*places)]
        y[(r, c, *at)] = 0 if not values else np.mean([sum(v) for v in values]) if mode == "avg" else max(
            sum(v) if mode == "max" else max(v) for v in values)
    attrs = {"spatial_scale": scale, "sampling_ratio": ratio, "aligned": aligned, "mode": mode}
    return Sample(lambda *a: topi.roi_align(*a, size, **attrs), [x, boxes, which], y, str(x.dtype),
                  [(0, 1, 2, 3), (0,), (0,)], tolerance=8)


@case
def roi_pool(draw: Draw) -> Sample:
    x, boxes, which, size = drawn(draw)
    scale = draw.choice(1.0, 0.5)
    boxes = np.asarray(np.round(boxes * 4) / 4).astype(x.dtype)
    y = np.zeros((len(boxes), x.shape[1], *size), x.dtype)
    for r, c, *at in np.ndindex(*y.shape):
        ranges = []
        for axis, (i, n) in enumerate(zip(at, size)):
            corner = boxes[r, [1 - axis, 3 - axis]] * scale
            low, high = (int(math.copysign(math.floor(abs(v) + 0.5), v)) for v in corner)
            width = max(high - low + 1, 1)
            ends = [low + i * width // n, low - (-(i + 1) * width // n)]
            ranges.append(slice(*(min(max(e, 0), x.shape[2 + axis]) for e in ends)))
        part = x[which[r], c][tuple(ranges)]
        y[(r, c, *at)] = part.max() if part.size else 0
    return Sample(lambda *a: topi.roi_pool(*a, size, spatial_scale=scale), [x, boxes, which], y,
                  symbolic=[(0, 1, 2, 3), (0,), (0,)])


def corners(box, center=False):
    box = [float(v) for v in box]
    if center:
        return [(box[k] - box[k + 2] / 2, box[k] + box[k + 2] / 2) for k in (0, 1)]
    return [(min(box[k], box[k + 2]), max(box[k], box[k + 2])) for k in (0, 1)]


def overlap(a, b):
    shared = math.prod(max(min(p[1], q[1]) - max(p[0], q[0]), 0.0) for p, q in zip(a, b))
    both = sum(math.prod(e - s for s, e in box) for box in (a, b)) - shared
    return shared / both if both > 0 else 0.0


def drawn_boxes(draw: Draw, shape, dtype):
    """Boxes near each other, some of them given by their other corners."""
    low, size = draw.array((*shape, 2), dtype, 0, 4), draw.array((*shape, 2), dtype, 0, 4)
    boxes = np.concatenate([low, low + size], -1)
    swapped = draw.rng.random(shape) < 0.2
    boxes[swapped] = boxes[swapped][:, [2, 1, 0, 3]]
    return boxes


@case
def box_iou(draw: Draw) -> Sample:
    dtype = draw.dtype()
    a, b = (drawn_boxes(draw, (draw.extent(5),), dtype) for _ in "ab")
    y = [[overlap(corners(p), corners(q)) for q in b] for p in a]
    return Sample(topi.box_iou, [a, b], np.reshape(np.array(y, "float64"), (len(a), len(b))), dtype,
                  [(0,), (0,)], tolerance=2)


def suppressed(boxes, scores, most, threshold, least, center=False):
    kept = []
    for k in np.argsort(-wide(scores), kind="stable"):
        own = corners(boxes[k], center)
        if len(kept) < most and (least is None or scores[k] > least) and all(
                overlap(own, corners(boxes[o], center)) <= threshold for o in kept):
            kept.append(int(k))
    return kept


def ranked(draw: Draw, shape, dtype):
    """Scores, some of them equal."""
    return np.asarray(draw.rng.integers(0, 12, shape) / 12).astype(dtype)


@case
def nms(draw: Draw) -> Sample:
    n, dtype, most, least = draw.extent(9), draw.dtype("float32", "float64"), draw.choice(None, 0, 3), draw.choice(
        None, 0.3)
    boxes, scores, threshold = drawn_boxes(draw, (n,), dtype), ranked(draw, n, dtype), draw.choice(0.1, 0.4, 0.7)
    room = n if most is None else min(most, n)
    kept = suppressed(boxes, scores, room, threshold, least)
    y = np.pad(np.array(kept, "int64"), (0, room - len(kept)), constant_values=-1)
    attrs = {"iou_threshold": threshold, "score_threshold": least, "max_output": most}
    return Sample(lambda *a: topi.nms(*a, **attrs), [boxes, scores], [y, np.array([len(kept)])], symbolic=[(0,), (0,)])


@case
def non_max_suppression(draw: Draw) -> Sample:
    b, c, n, dtype = draw.extent(2), draw.extent(3), draw.extent(7), draw.dtype("float32", "float64")
    boxes, scores, center = drawn_boxes(draw, (b, n), dtype), ranked(draw, (b, c, n), dtype), draw.flag(0.4)
    boxes = np.abs(boxes) if center else boxes
    most, least, threshold = draw.choice(None, 0, 2), draw.choice(None, 0.3), draw.choice(0.0, 0.3, 0.6)
    room = n if most is None else min(most, n)
    rows = [(i, j, k) for i in range(b) for j in range(c)
            for k in suppressed(boxes[i], scores[i, j], room, threshold, least, center)]
    y = np.full((b * c * room, 3), -1)
    y[:len(rows)] = np.reshape(rows, (-1, 3))
    attrs = {"iou_threshold": threshold, "score_threshold": least, "max_output": most, "center": center}
    return Sample(lambda *a: topi.non_max_suppression(*a, **attrs), [boxes, scores], [y, np.array([len(rows)])],
                  symbolic=[(0, 1), (0, 1, 2)])
