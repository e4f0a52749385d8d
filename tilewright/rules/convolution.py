"""The schedule of a convolution: a register tile of pixels by channels, over packed weights.

The result of a tile, some neighbouring pixels by some vectors of output channels, stays in registers while the input
channels and the window run (Georganas et al., Anatomy of High-Performance Deep Learning Convolutions on SIMD
Architectures, 2018). Vectors are of channels: pixels are read as scalars from where they lie, whatever stride, dilation
and width of the window are. Weights are packed so that the channels of a vector are neighbours in memory.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tilewright.arith.linear import linear
from tilewright.rules.blocking import LATENCY, registers
from tilewright.rules.contraction import is_matrix_product
from tilewright.rules.elementwise import constant_extent, parallelize
from tilewright.rules.facts import BlockFacts, facts_of, uses
from tilewright.rules.lanes import UNKNOWN
from tilewright.rules.memory import prefetch_weights
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import Load

MAX_PIXELS = 14                  # of a tile
MAX_VECTORS = 4                  # vectors of channels of a tile
OVERHEAD = 4                     # multiply-adds in the time that a step takes beside them
WRITE = 0.8                      # and in that which a result takes to be written, where squares of them are transposed
WRITE_RAGGED = 2.0               # where squares are not full
WRITTEN_OUT = 4                  # elements of windows apart whose steps are one: results stay in their registers
LINE = 16                        # weights of a channel that are packed together
STAGED = 256                     # terms of a sum beside which another store of it is nothing
AHEAD = 3072                     # bytes of weights that are asked for before they are needed


@dataclass(frozen=True)
class Roles:
    """The parts in a convolution.

    - channels, pixels: positions of two of the spatial axes. Only the weights vary with the first, only the image
      with the second.
    - lines: position of the axis before that of the pixels with which only the image varies, if there is one.
    - weights, image: the operands.
    - place: the position of the channels among the indices of the weights.
    """
    channels: int
    pixels: int
    lines: int | None
    weights: Load
    image: Load
    place: int


def roles(facts: BlockFacts) -> Roles | None:
    """The parts where the block is a convolution or another sum of products of this form; None where it is not."""
    return next(every_roles(facts), None)


def every_roles(facts: BlockFacts) -> Iterator[Roles]:
    """The parts of a convolution, by either choice of the operand that is the weights."""
    if not facts.is_contraction or 0 in (*facts.spatial, *facts.reduced):
        return
    axes = facts.spatial_axes
    for weights, image in (facts.operands, facts.operands[::-1]):
        channels = [k for k, v in enumerate(axes) if uses(weights, v) and not uses(image, v)]
        pixels = [k for k, v in enumerate(axes) if uses(image, v) and not uses(weights, v)]
        if channels and pixels and None not in (facts.spatial[channels[-1]], facts.spatial[pixels[-1]]):
            place = next((p for p, i in enumerate(weights.indices) if i is axes[channels[-1]]), None)
            if place is not None:
                lines = pixels[-2] if len(pixels) > 1 else None
                yield Roles(channels[-1], pixels[-1], lines, weights, image, place)


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


@dataclass(frozen=True)
class Tile:
    """lines x pixels results by some vectors of channels, in registers; several lines where they are whole."""
    lines: int
    pixels: int
    vectors: int


def choose_tile(lines: int, pixels: int, channels: int, terms: int, itemsize: int, target: Target) -> Tile:
    """The tile of the least estimate of cycles, for an image of lines x pixels (lines: 1 where that is not known), each
    a sum of some terms.

    The estimate of a step counts multiply-adds, or loads where they are more, accumulators that are too few to hide the
    latency of an addition, and a constant; tiles at the edges have fewer results, but all channels. Weights of a step
    and one pixel need registers beside the tile.
    """
    lanes, count = max(1, target.vector_bytes // itemsize), registers(target)

    def cycles(tile: Tile) -> float:
        width = tile.vectors * lanes
        steps = sum(max(LATENCY, i * j * tile.vectors, i * j + tile.vectors) + OVERHEAD
                    for i in parts(lines, tile.lines) for j in parts(pixels, tile.pixels))
        square = tile.pixels & (tile.pixels - 1) == 0
        write = (WRITE if square else WRITE_RAGGED) * lines * pixels * width
        return (terms * steps + write) * -(-channels // width) * (1.5 if channels % width else 1.0)

    shapes = [(1, row) for row in range(1, min(MAX_PIXELS, pixels) + 1)]
    shapes += [(down, pixels) for down in range(2, MAX_PIXELS // pixels + 1) if down <= lines]
    tiles = [Tile(down, row, vectors) for vectors in range(1, MAX_VECTORS + 1) for down, row in shapes
             if (down * row + 1) * vectors < count]
    return min(tiles, key=cycles)


def parts(extent: int, length: int) -> list[int]:
    """The lengths into which an extent is cut."""
    rest = extent % length
    return [length] * (extent // length) + [rest] * (rest > 0)


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
    lines = 1 if plan.lines is None else conv.spatial[plan.lines] or 1
    terms = math.prod(e or UNKNOWN for e in conv.reduced)
    tile = choose_tile(lines, conv.spatial[plan.pixels], conv.spatial[plan.channels], terms, itemsize, target)
    columns = tile.vectors * max(1, target.vector_bytes // itemsize)
    pack = pack_weights(sch, conv, plan, columns)
    gather_channels(sch, conv, plan)
    if epilogue is None:
        epilogue = sch.cache_write(conv.rv, 0, "local")
    else:
        sch.set_scope(conv.rv, 0, "local")
    loops = sch.get_loops(epilogue)
    loops[plan.channels], channel = sch.split(loops[plan.channels], [None, columns])
    loops[plan.pixels], pixel = sch.split(loops[plan.pixels], [None, tile.pixels])
    inside = [pixel]
    if tile.lines > 1:
        loops[plan.lines], line = sch.split(loops[plan.lines], [None, tile.lines])
        inside = [line, pixel]
    inside.insert(len(inside) if plan.channels > plan.pixels else 0, channel)
    sch.reorder(*loops, *inside)
    sch.compute_at(conv.rv, loops[-1], preserve_unit_loops=True)
    sch.transform_layout(conv.rv, ("write", 0), _blocked(plan.channels, columns))
    step = schedule_tile(sch, conv, plan, len(loops), tile.lines > 1)
    prefetch_weights(sch, conv.rv, pack, step, columns * itemsize * math.prod(e or 1 for e in conv.reduced[1:]), AHEAD)
    if inside[0] == channel and terms >= STAGED:
        stage_results(sch, conv, epilogue, len(loops))
        vectors, channel = sch.split(channel, [None, square_of(tile.pixels)])
        sch.reorder(*inside[1:-1], vectors, channel, pixel)
        inside = [channel, pixel]
    for loop in inside[:-1]:
        sch.unroll(loop)
    sch.vectorize(inside[-1])
    parallelize(sch, loops[:-1], conv.points, target)
    schedule_pack(sch, pack, plan, columns, target)


def schedule_tile(sch: Schedule, conv: BlockFacts, plan: Roles, outside: int, has_lines: bool) -> LoopRV:
    """The product below its `outside` outermost loops: reduction around pixels around a vector of channels. The
    outermost loop of the reduction."""
    inner = sch.get_loops(conv.rv)[outside:]
    axes, reduced = inner[:len(conv.spatial)], inner[len(conv.spatial):]
    tile = [plan.lines, plan.pixels, plan.channels] if has_lines else [plan.pixels, plan.channels]
    *unrolled, channel = (axes[k] for k in tile if k is not None)
    sch.reorder(*(a for k, a in enumerate(axes) if k not in tile), *reduced, *unrolled, channel)
    for loop in unrolled:
        sch.unroll(loop)
    sch.vectorize(channel)
    sch.decompose_reduction(conv.rv, reduced[0])
    if windows_are_apart(conv, plan) and 1 < math.prod(e or 0 for e in conv.reduced[1:]) <= WRITTEN_OUT:
        for loop in reduced[1:]:
            sch.unroll(loop)
    return reduced[0]


def stage_results(sch: Schedule, conv: BlockFacts, epilogue: BlockRV, outside: int) -> None:
    """Let a tile of results, below `outside` loops, go through memory on its way to rows of pixels: these are read a
    few channels at a time."""
    stage = sch.cache_read(epilogue, facts_of(sch, conv.rv).block.writes[0].buffer.name, "global", [epilogue])
    *unrolled, channel = sch.get_loops(stage)[outside:]
    for loop in unrolled:
        sch.unroll(loop)
    sch.vectorize(channel)


def square_of(pixels: int) -> int:
    """The channels whose rows of so many pixels are transposed together."""
    return next((n for n in (16, 8) if pixels >= n), 4)


def windows_are_apart(conv: BlockFacts, plan: Roles) -> bool:
    """True where neighbours of a row share no pixel. (Shared ones would be held in registers that results need.)"""
    axis = conv.spatial_axes[plan.pixels]
    for index in plan.image.indices:
        atoms, _ = linear(index)
        if axis in atoms:
            window = [e or 0 for v, e in zip(conv.reduced_axes, conv.reduced) if v in atoms]
            return atoms[axis] >= max(window, default=1)
    return False


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
        vectors, inside = sch.split(inside, [None, math.gcd(columns, LINE)])
        sch.reorder(vectors, line, inside)
        sch.unroll(line)
    sch.vectorize(inside)
    parallelize(sch, [outside], facts_of(sch, pack).points, target)
