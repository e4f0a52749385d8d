"""The schedule of a convolution: a register tile of pixels by channels, over packed weights.

The result of a tile, some neighbouring pixels by some vectors of output channels, stays in registers while the input
channels and the window run (Georganas et al., Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures, 2018). Vectors are of channels: pixels are read as scalars from where they lie, whatever stride, dilation
and width of the window are. Weights are packed so that the channels of a vector are neighbours in memory.
"""
from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.rules.blocking import LATENCY, registers
from tilewright.rules.contraction import is_matrix_product
from tilewright.rules.elementwise import constant_extent, parallelize
from tilewright.rules.facts import BlockFacts, facts_of, uses
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import BlockRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import Load

MAX_ROW = 14                     # pixels of a tile
MAX_VECTORS = 4                  # vectors of channels of a tile
LINE = 16                        # weights of a channel that are packed together


@dataclass(frozen=True)
class Roles:
    """The parts in a convolution.

    - channels, pixels: positions of two of the spatial axes. Only the weights vary with the first, only the image
      with the second.
    - weights, image: the operands.
    - place: the position of the channels among the indices of the weights.
    """
    channels: int
    pixels: int
    weights: Load
    image: Load
    place: int


def roles(facts: BlockFacts) -> Roles | None:
    """The parts where the block is a convolution or another sum of products of this form; None where it is not, or
    its channels do not fill half a vector."""
    if not facts.is_contraction or 0 in (*facts.spatial, *facts.reduced):
        return None
    axes = facts.spatial_axes
    for weights, image in (facts.operands, facts.operands[::-1]):
        channels = [k for k, v in enumerate(axes) if uses(weights, v) and not uses(image, v)]
        pixels = [k for k, v in enumerate(axes) if uses(image, v) and not uses(weights, v)]
        if channels and pixels and None not in (facts.spatial[channels[-1]], facts.spatial[pixels[-1]]):
            place = next((p for p, i in enumerate(weights.indices) if i is axes[channels[-1]]), None)
            if place is not None:
                return Roles(channels[-1], pixels[-1], weights, image, place)
    return None


def roles_of_planes(facts: BlockFacts) -> Roles | None:
    """The parts of y[n, o, i, j] = sum over c, r, q of w[o, c, ...] * x[n, c, ...] in four dimensions, with any number
    of images n, and all other extents known; None for anything else."""
    parts = roles(facts) if facts.is_reduction and not facts.is_opaque else None
    if parts is None or len(facts.spatial) != 4 or len(facts.reduced) != 3:
        return None
    (n, o, _, _), (c, _, _) = facts.spatial_axes, facts.reduced_axes
    x, w = parts.image.indices, parts.weights.indices
    planes = len(x) == len(w) == 4 and x[0] is n and x[1] is c and w[0] is o and w[1] is c
    return parts if planes and None not in (*facts.spatial[1:], *facts.reduced) else None


def choose_tile(pixels: int, channels: int, itemsize: int, target: Target) -> tuple[int, int]:
    """(pixels, vectors of channels) of a tile in registers, by the least estimate of cycles for a useful multiply-add.

    The estimate counts work beyond the edges, the code for ragged edges, operand loads, and accumulators that are too
    few to hide the latency of an addition. Weights of a step and one pixel need registers beside the tile.
    """
    lanes, count = max(1, target.vector_bytes // itemsize), registers(target)
    best = (math.inf, 1, 1)
    for vectors in range(1, MAX_VECTORS + 1):
        for row in range(1, MAX_ROW + 1):
            tile, columns = row * vectors, vectors * lanes
            if tile > 3 * count // 4 or tile + vectors >= count:
                continue
            padded = -(-pixels // row) * row * (-(-channels // columns) * columns)
            cycles = max(1.0, LATENCY / tile) + 0.25 * (0.4 * row + vectors) / tile
            ragged = (1.04 if pixels % row else 1.0) * (1.5 if channels % columns else 1.0)
            best = min(best, (padded / (pixels * channels) * cycles * ragged, row, vectors))
    return best[1], best[2]


def _matches(work: Work) -> Match | None:
    found = roles(work.first) if work.kind == "reduction" and not is_matrix_product(work.first) else None
    if found is None or 2 * (work.first.spatial[found.channels] or 0) < work.first.lanes(work.target):
        return None
    return work.match(plan=found)


@rule("convolution", priority=25, with_epilogue=65, targets=CPU, matches=_matches)
def schedule_convolution(sch: Schedule, match: Match, target: Target) -> None:
    """Keep a tile of pixels by channels in registers while input channels and window run, over packed weights; then
    compute the elementwise block that reads it (a copy is made when there is none)."""
    conv, epilogue, plan = match.first, match.epilogue, match.plan
    itemsize = conv.register_bytes
    row, vectors = choose_tile(conv.spatial[plan.pixels], conv.spatial[plan.channels], itemsize, target)
    columns = vectors * max(1, target.vector_bytes // itemsize)
    pack = pack_weights(sch, conv, plan, columns)
    gather_channels(sch, conv, plan)
    if epilogue is None:
        epilogue = sch.cache_write(conv.rv, 0, "local")
    else:
        sch.set_scope(conv.rv, 0, "local")
    loops = sch.get_loops(epilogue)
    loops[plan.channels], channel = sch.split(loops[plan.channels], [None, columns])
    loops[plan.pixels], pixel = sch.split(loops[plan.pixels], [None, row])
    last = plan.channels > plan.pixels
    sch.reorder(*loops, *((pixel, channel) if last else (channel, pixel)))
    sch.compute_at(conv.rv, loops[-1], preserve_unit_loops=True)
    sch.transform_layout(conv.rv, ("write", 0), _blocked(plan.channels, columns))
    schedule_tile(sch, conv, plan, len(loops))
    sch.unroll(pixel if last else channel)
    sch.vectorize(channel if last else pixel)
    parallelize(sch, loops[:-1], conv.points, target)
    schedule_pack(sch, pack, plan, columns, target)


def schedule_tile(sch: Schedule, conv: BlockFacts, plan: Roles, outside: int) -> None:
    """The product below its `outside` outermost loops: reduction around pixels around a vector of channels."""
    inner = sch.get_loops(conv.rv)[outside:]
    axes, reduced = inner[:len(conv.spatial)], inner[len(conv.spatial):]
    others = [a for k, a in enumerate(axes) if k not in (plan.channels, plan.pixels)]
    pixel, channel = axes[plan.pixels], axes[plan.channels]
    sch.reorder(*others, *reduced, pixel, channel)
    sch.unroll(pixel)
    sch.vectorize(channel)
    sch.decompose_reduction(conv.rv, reduced[0])


def _blocked(place: int, columns: int) -> Callable[..., tuple[Any, ...]]:
    """The layout in which `columns` neighbours of the index at a place are the last dimension."""
    return lambda *v: (v[place] // columns, *v[:place], *v[place + 1:], v[place] % columns)


def pack_weights(sch: Schedule, conv: BlockFacts, plan: Roles, columns: int) -> BlockRV:
    """A copy of the weights in which the channels of a tile are neighbours."""
    copy = sch.cache_read(conv.rv, plan.weights.buffer.name, "global")
    sch.transform_layout(copy, ("write", 0), _blocked(plan.place, columns))
    return copy


def gather_channels(sch: Schedule, conv: BlockFacts, plan: Roles) -> None:
    """Lay out an image that the function computes, with padding for example, so that a row has all of its channels
    before the next row begins: a tile reads neighbours then, where it would read a line of each plane."""
    image, reduced = plan.image, conv.reduced_axes
    moved = [k for k, i in enumerate(image.indices[:-2]) if any(i is v for v in reduced)]
    if not moved or any(image.buffer is b for b in sch.func.buffers):
        return
    kept = [k for k in range(len(image.indices) - 1) if k not in moved]
    sch.transform_layout(conv.rv, image.buffer.name, lambda *v: (*(v[k] for k in kept), *(v[k] for k in moved), v[-1]))


def schedule_pack(sch: Schedule, pack: BlockRV, plan: Roles, columns: int, target: Target) -> None:
    """Copy block by block of channels, on all threads; some weights of every channel are read as a line of memory."""
    loops = sch.get_loops(pack)
    outside, inside = sch.split(loops.pop(plan.place), [None, columns])
    sch.reorder(outside, *loops, inside)
    extents = [constant_extent(sch, loop) for loop in loops]
    if plan.place == 0 and loops and None not in extents and math.prod(e or 0 for e in extents) % LINE == 0:
        _, line = sch.split(sch.fuse(*loops) if len(loops) > 1 else loops[0], [None, LINE])
        sch.unroll(line)
    sch.vectorize(inside)
    parallelize(sch, [outside], facts_of(sch, pack).points, target)
