"""Convolutions by 3x3 windows with stride 1, by Winograd's algorithm: half of the multiplications, or a quarter.

Lavin and Gray, Fast Algorithms for Convolutional Neural Networks (CVPR 2016), F(4x4, 3x3): a tile of 4 x 4 results
comes from 6 x 6 elements of the image. Image and weights are transformed, multiplied element by element and added up
over the channels, which is a product of matrices for each of 36 elements, and transformed back:

    Y = transpose(A) ((G W transpose(G)) * (transpose(B) D B)) A

The interpolation points are 0, 1, -1, 2 and -2. Results are as exact as those of a sum in another order, but for a
factor of about 10: an error of some 1e-6 of the greatest results. Sums over a whole tile stand between: an element
that is inf or NaN makes all results of the tiles that read it NaN, not only those whose window it lies in, and elements
or products within a factor of 1e5 of the greatest number of the type do the same. TILEWRIGHT_STRICT_MATH leaves the
convolution alone.

Few tiles do not use the transformed weights often enough for the time in which memory gives these. Then tiles are of
2 x 2 results: they are four times as many, and share 16 elements of each filter in the place of 36. Where memory is
still slower than the convolution itself on all cores, that is computed as it is.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import te, tir
from tilewright.arith.linear import linear
from tilewright.lowering.unroll import EXPLICIT
from tilewright.rules.blocking import even, registers
from tilewright.rules.convolution import AHEAD, roles_of_planes
from tilewright.rules.elementwise import constant_extent, parallelize, vectorize_last
from tilewright.rules.facts import OWNER, BlockFacts, is_constant, names_of
from tilewright.rules.lanes import is_reorderable
from tilewright.rules.memory import prefetch_weights
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.support.target import Target
from tilewright.tir.symbols import replace_buffers

TAPS = 3
FEWEST_TILES = 9                 # of an image: with fewer, memory does not give the transformed weights in time
PRODUCTS_A_WEIGHT = 16           # multiply-adds of a core while memory gives one transformed weight to all cores
FEWEST_FOR_ANY_WEIGHTS = 49      # with fewer, the weights' transformation takes longer than it saves
FEWEST_CHANNELS = 32
CACHE_BYTES = 640 * 1024         # of transformed tiles that stay in the second-level cache beside weights and images
MOST_BYTES = 8 << 20             # of those that are worked on at a time
SPILL = 4                        # how often they are moved between caches where they are more
STAGES = ("image", "image_rows", "image_tiles", "weights", "weights_rows", "weights_tiles", "product", "result_rows",
          "result_tiles", "result")                    # in program order


Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Algorithm:
    """F(tile x tile, 3x3): the matrices by which image, weights and products are transformed."""
    image: Matrix                                      # transpose(B)
    weights: Matrix                                    # G
    result: Matrix                                     # transpose(A)

    @property
    def tile(self) -> int:
        return len(self.result)

    @property
    def window(self) -> int:
        return len(self.image)


F4 = Algorithm(
    image=((4, 0, -5, 0, 1, 0), (0, -4, -4, 1, 1, 0), (0, 4, -4, -1, 1, 0), (0, -2, -1, 2, 1, 0), (0, 2, -1, -2, 1, 0),
           (0, 4, 0, -5, 0, 1)),
    weights=((1 / 4, 0, 0), (-1 / 6, -1 / 6, -1 / 6), (-1 / 6, 1 / 6, -1 / 6), (1 / 24, 1 / 12, 1 / 6),
             (1 / 24, -1 / 12, 1 / 6), (0, 0, 1)),
    result=((1, 1, 1, 1, 1, 0), (0, 1, -1, 2, -2, 0), (0, 1, 1, 4, 4, 0), (0, 1, -1, 8, -8, 1)))
F2 = Algorithm(
    image=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, -1, 0, 1)),
    weights=((1, 0, 0), (1 / 2, 1 / 2, 1 / 2), (1 / 2, -1 / 2, 1 / 2), (0, 0, 1)),
    result=((1, 1, 1, 0), (0, 1, -1, 1)))


@dataclass(frozen=True)
class Convolution:
    """y[n, o, i, j] = sum over c, r, q of x[n, c, i + r, j + q] * w[o, c, r, q]."""
    facts: BlockFacts
    x: tir.Buffer
    w: tir.Buffer
    images: tir.Expr
    shape: tuple[int, int, int, int]                   # channels, channels of the result, rows, columns


def convolution(facts: BlockFacts) -> Convolution | None:
    """facts as a convolution by 3x3 windows; None for anything else."""
    parts = roles_of_planes(facts)
    if parts is None:
        return None
    (n, _, i, j), (_, r, q), x, w = facts.spatial_axes, facts.reduced_axes, parts.image, parts.weights
    plain = w.indices[2] is r and w.indices[3] is q
    windows = all(linear(index) == ({a: 1, b: 1}, 0) for index, a, b in zip(x.indices[2:], (i, j), (r, q)))
    filters, rows, columns = (e or 0 for e in facts.spatial[1:])
    if not plain or not windows or facts.reduced[1:] != (TAPS, TAPS):
        return None
    images = next(iv.domain.extent for iv in facts.block.iter_vars if iv.var is n)
    return Convolution(facts, x.buffer, w.buffer, images, (facts.reduced[0] or 0, filters, rows, columns))


def _matches(work: Work) -> Match | None:
    """A convolution of float32 with many channels and tiles, of which both fill vectors."""
    found, lanes = convolution(work.first), work.target.vector_bytes // 4
    if found is None or lanes < 8 or {found.x.dtype, found.w.dtype, work.first.written.dtype} != {"float32"}:
        return None
    channels, filters, rows, columns = found.shape
    algorithm = algorithm_for(found, is_constant(work.schedule, found.w), work.target.num_cores)
    many = min(channels, filters) >= FEWEST_CHANNELS and channels % lanes == filters % lanes == 0
    fits = many and algorithm is not None and is_reorderable(work.first) and work.may_be_replaced
    return work.match(plan=(found, algorithm)) if fits else None


def algorithm_for(found: Convolution, constant: bool, cores: int) -> Algorithm | None:
    """The algorithm of the largest tiles of which an image has enough; constant: the weights are."""
    channels, filters, rows, columns = found.shape

    def has(fewest: int, a: Algorithm) -> bool:
        return (rows // a.tile) * (columns // a.tile) >= fewest

    def in_time(a: Algorithm) -> bool:
        few = 4 * a.window**2 * channels * filters <= CACHE_BYTES
        return few or rows * columns * TAPS**2 >= PRODUCTS_A_WEIGHT * cores * a.window**2
    if not constant:
        return F4 if has(FEWEST_FOR_ANY_WEIGHTS, F4) else None
    return next((a for a in (F4, F2) if has(FEWEST_TILES, a) and in_time(a)), None)


@rule("winograd_form", phase="rewrite", priority=30, targets=CPU, matches=_matches)
def transform_convolution(sch: Schedule, match: Match, target: Target) -> tir.PrimFunc:
    """Compute a convolution by 3x3 windows as products of transformed tiles."""
    found, algorithm = match.plan
    func, block = sch.func, found.facts.block
    lanes = target.vector_bytes // 4
    x, w = (te.placeholder(b.shape, b.dtype, b.name) for b in (found.x, found.w))
    prefix = _free_prefix(block.name, names_of(func))
    y = definition(algorithm, x, w, found.images, found.shape, lanes, prefix, block.name)
    made = te.create_prim_func([x, w, y])
    new, root = made.body, func.body
    assert isinstance(new, tir.BlockRealize) and isinstance(root, tir.BlockRealize)
    given = dict(zip(made.buffers, (found.x, found.w, found.facts.written), strict=True))
    inside = replace_buffers(new.block, given)
    nest = sch.loops_above(sch.realize(found.facts.rv))[0]
    stages = tir.rewrite(inside.body, _owned_block)
    body = tir.rewrite(root.block.body, lambda s: stages if s is nest else None)
    block = root.block.replace(body=body, alloc_buffers=root.block.alloc_buffers + inside.alloc_buffers)
    return func.with_body(root.replace(block=block))


def _free_prefix(name: str, taken: set[str]) -> str:
    prefixes = itertools.chain([name], (f"{name}_{k}" for k in itertools.count(1)))
    return next(p for p in prefixes if not taken & {f"{p}_{stage}" for stage in STAGES})


def _owned_block(n: tir.Node) -> tir.Node | None:
    return n.replace(annotations={**n.annotations, OWNER: "winograd"}) if isinstance(n, tir.Block) else None


def definition(algorithm: Algorithm, x: Any, w: Any, n: Any, shape: Sequence[int], lanes: int, prefix: str,
               name: str) -> Any:
    """The convolution in stages. Channels are the lanes of vectors: `lanes` of the image, twice as many of the results
    where that divides them."""
    channels, filters, rows, columns = shape
    size, window = algorithm.tile, algorithm.window
    wide = lanes * (2 if filters % (2 * lanes) == 0 else 1)
    down, across, blocks = -(-rows // size), -(-columns // size), filters // wide

    def stage(what: str, extents: Sequence[int], element: Callable[..., Any]) -> Any:
        return te.compute(extents, element, f"{prefix}_{what}")

    def pixel(b: Any, k: Any, i: Any, j: Any, lane: Any) -> Any:
        element = x[b, k * lanes + lane, i, j]
        inside = [at < end for at, end, tiles in zip((i, j), x.shape[2:], (down, across)) if end < tiles * size + 2]
        return te.if_then_else(te.all(*inside), element, 0.0) if inside else element

    image = stage("image", (n, channels // lanes, down * size + 2, across * size + 2, lanes), pixel)
    weights = stage("weights", (blocks, channels, TAPS, TAPS, wide),
                    lambda m, c, r, q, lane: w[m * wide + lane, c, r, q])
    weights_rows = stage("weights_rows", (blocks, channels, window, TAPS, wide), lambda m, c, a, q, lane: row_of(
        algorithm.weights, a, lambda r: weights[m, c, r, q, lane]))
    weights_tiles = stage("weights_tiles", (window, window, blocks, channels, wide), lambda a, e, m, c, lane: row_of(
        algorithm.weights, e, lambda q: weights_rows[m, c, a, q, lane]))
    image_rows = stage("image_rows", (n, down, across, channels // lanes, window, window, lanes),
                       lambda b, i, j, k, a, s, lane: row_of(
                           algorithm.image, a, lambda r: image[b, k, i * size + r, j * size + s, lane]))
    image_tiles = stage("image_tiles", (n, down, window, window, channels // lanes, across, lanes),
                        lambda b, i, a, e, k, j, lane: row_of(
                            algorithm.image, e, lambda s: image_rows[b, i, j, k, a, s, lane]))
    c = te.reduce_axis((0, channels), "c")
    product = stage("product", (n, down, window, window, blocks, across, wide), lambda b, i, a, e, m, j, lane: te.sum(
        image_tiles[b, i, a, e, c // lanes, j, c % lanes] * weights_tiles[a, e, m, c, lane], axis=c))
    result_rows = stage("result_rows", (n, down, blocks, across, size, window, wide),
                        lambda b, i, m, j, o, e, lane: row_of(
                            algorithm.result, o, lambda a: product[b, i, a, e, m, j, lane]))
    result_tiles = stage("result_tiles", (n, blocks, down * size, across * size, wide), lambda b, m, i, j, lane: row_of(
        algorithm.result, j % size, lambda e: result_rows[b, i // size, m, j // size, i % size, e, lane]))
    return te.compute((n, filters, rows, columns), lambda b, o, i, j: result_tiles[b, o // wide, i, j, o % wide], name)


def row_of(matrix: Sequence[Sequence[float]], row: Any, element: Callable[[int], Any]) -> Any:
    """The sum of elements weighted by a row of the matrix; the row is known once loops are unrolled."""
    values = [weighted(weights, element) for weights in matrix]
    out = values[-1]
    for k in range(len(matrix) - 2, -1, -1):
        out = tir.Select(row == k, values[k], out)
    return out


def weighted(weights: Sequence[float], element: Callable[[int], Any]) -> Any:
    """sum of weights[k] * element(k), without the products by 0 and 1."""
    out: Any = None
    for k, weight in sorted(enumerate(weights), key=lambda pair: pair[1] <= 0):      # begins with a positive one
        if weight:
            term = element(k) if abs(weight) == 1 else element(k) * float(abs(weight))
            out = (term if weight > 0 else term * -1.0) if out is None else out + term if weight > 0 else out - term
    return out


def _owned(work: Work) -> Match | None:
    blocks = work.blocks[:len(STAGES)]
    if len(blocks) < len(STAGES) or any(b.block.annotations.get(OWNER) != "winograd" for b in blocks):
        return None
    result = Work(work.schedule, work.target, work.blocks[len(STAGES) - 1:])
    return work.match(len(STAGES) + (result.reader is not None))


@rule("winograd", priority=97, targets=CPU, matches=_owned)
def schedule_winograd(sch: Schedule, match: Match, target: Target) -> None:
    """Transform some rows of tiles, multiply them in registers, and transform them back while they are in cache."""
    stages = {name: b.rv for name, b in zip(STAGES, match.blocks)}
    facts, epilogues = match.blocks[len(STAGES) - 1], match.blocks[len(STAGES):]
    lanes, product = target.vector_bytes // 4, match.blocks[STAGES.index("product")]
    size = (product.spatial[2] or 0) - TAPS + 1
    group, tiles, lines = schedule_result(sch, stages["result"], product, lanes, size, tile_rows(product, target))
    tile = schedule_results(sch, stages["result_tiles"], tiles, size)
    write_rows(sch, sch_at(sch, stages["result_rows"], tile), -3)
    channels = schedule_product(sch, stages["product"], group, registers(target) // 2 - 2)
    prefetch_weights(sch, stages["product"], stages["weights_tiles"], channels, 8 * lanes, AHEAD)
    sch.compute_at(stages["image_tiles"], group, preserve_unit_loops=True)
    row, a, e, block, across, lane = sch.get_loops(stages["image_tiles"])[-6:]
    sch.reorder(row, across, block, a, e, lane)
    write_rows(sch, stages["image_tiles"], -2)
    write_rows(sch, sch_at(sch, stages["image_rows"], block), -3)
    schedule_weights(sch, stages)
    sch.vectorize(sch.get_loops(sch_at(sch, stages["image"], group))[-1])
    for reader in epilogues:
        sch.reverse_compute_at(reader.rv, lines, preserve_unit_loops=True)
        vectorize_last(sch, sch.get_loops(reader.rv)[-1], reader.lanes(target))
    outside = sch.get_loops(stages["result"])
    parallelize(sch, outside[:2], facts.points, target)


def tile_rows(product: BlockFacts, target: Target) -> int:
    """How many rows of tiles are worked on at a time, which read all weights: those for which the fewest bytes come
    from beyond the second-level cache, and every thread gets some."""
    _, down, window, _, blocks, across, wide = (e or 1 for e in product.spatial)
    channels, filters = product.reduced[0] or 1, blocks * wide
    weights, row = (4 * window * window * n for n in (channels * filters, across * (channels + filters)))

    def moved(rows: int) -> int:
        return -(-down // rows) * weights + (SPILL * down * row if rows * row > CACHE_BYTES else 0)

    most = max(1, min(MOST_BYTES // row, -(-down // target.num_cores)))
    return even(down, min(range(1, most + 1), key=moved))


def schedule_result(sch: Schedule, result: BlockRV, product: BlockFacts, lanes: int, size: int,
                    rows: int) -> tuple[LoopRV, LoopRV, LoopRV]:
    """The copy to the layout of the program, some rows of tiles after the other: vectors across channels, transposed in
    registers. The loops over these rows, over each of them, and over the vectors of its channels."""
    _, channel, row, column = sch.get_loops(result)
    group, tiles, row = sch.split(row, [None, rows, size])
    blocks, vectors, lane = sch.split(channel, [None, (product.spatial[-1] or 1) // lanes, lanes])
    columns, line = sch.split(column, [None, line_of(constant_extent(sch, column) or 1)])
    sch.reorder(group, blocks, tiles, vectors, row, columns, line, lane)
    sch.unroll(line)
    sch.vectorize(lane)
    return group, tiles, vectors


def line_of(extent: int) -> int:
    """The elements of a row that are transposed together."""
    return next((n for n in (16, 8, 4) if extent % n == 0), 8)


def schedule_results(sch: Schedule, tiles: BlockRV, group: LoopRV, size: int) -> LoopRV:
    """Tile after tile of the results; the loop over the tiles of a row."""
    sch.compute_at(tiles, group, preserve_unit_loops=True)
    filters, row, column, lane = sch.get_loops(tiles)[-4:]
    down, i = sch.split(row, [None, size])
    across, j = sch.split(column, [None, size])
    sch.reorder(down, filters, across, i, j, lane)
    write_rows(sch, tiles, -2)
    return across


def schedule_product(sch: Schedule, product: BlockRV, group: LoopRV, most: int) -> LoopRV:
    """For each element of a window: a tile of neighbours, `most` of them, by filters in registers, while the channels
    run. Neighbours are those of a row, and of as many rows as there is room for. The loop over the channels."""
    copy = sch.cache_write(product, 0, "local")
    sch.compute_at(copy, group, preserve_unit_loops=True)
    row, a, e, filters, across, lane = sch.get_loops(copy)[-6:]
    length = even(constant_extent(sch, across) or 1, most)
    strips, tiles = sch.split(across, [None, length])
    rows, down = sch.split(row, [None, even(constant_extent(sch, row) or 1, max(1, most // length))])
    sch.reorder(a, e, filters, rows, strips, down, tiles, lane)
    sch.unroll(down)
    sch.unroll(tiles)
    sch.vectorize(lane)
    sch.compute_at(product, strips, preserve_unit_loops=True)
    *_, down, _, _, _, tiles, lane, channel = sch.get_loops(product)
    sch.reorder(channel, down, tiles, lane)
    sch.unroll(down)
    sch.unroll(tiles)
    sch.vectorize(lane)
    sch.decompose_reduction(product, channel)
    return channel


def schedule_weights(sch: Schedule, stages: Mapping[str, BlockRV]) -> None:
    """The weights: transposed, so that filters are neighbours, then transformed channel by channel."""
    a, e, filters, channel, lane = sch.get_loops(stages["weights_tiles"])
    sch.reorder(filters, channel, a, e, lane)
    write_rows(sch, stages["weights_tiles"], -2)
    write_rows(sch, sch_at(sch, stages["weights_rows"], channel), -3)
    _, *line, lane = sch.get_loops(stages["weights"])
    _, line_at_once = sch.split(sch.fuse(*line), [None, 16])
    vectors, lane = sch.split(lane, [None, math.gcd(constant_extent(sch, lane) or 1, 16)])
    sch.reorder(vectors, line_at_once, lane)
    sch.unroll(line_at_once)
    sch.vectorize(lane)


def sch_at(sch: Schedule, block: BlockRV, place: LoopRV) -> BlockRV:
    """The block, computed at a place."""
    sch.compute_at(block, place, preserve_unit_loops=True)
    return block


def write_rows(sch: Schedule, block: BlockRV, row: int) -> None:
    """Vectors of the last loop of a block that multiplies by a matrix. Its rows, which the loop at `row` numbers, are
    written out below the other of the two loops before, so that their weights are known; that stays a loop."""
    *_, lane = loops = sch.get_loops(block)
    around, = (loop for loop in loops[-3:-1] if loop != loops[row])
    sch.reorder(around, loops[row], lane)
    sch.annotate(around, EXPLICIT, 0)
    sch.unroll(loops[row])
    sch.vectorize(lane)
