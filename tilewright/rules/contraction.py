"""The schedule of a matrix product: packed operand, register tile, threads over panels and blocks of rows.

The structure is Goto and van de Geijn's (Anatomy of High-Performance Matrix Multiplication, 2008): a tile of the
result stays in registers while k runs; the panel of B that it reads is packed so that vectors are contiguous and
stays in the second-level cache while the rows of A pass by. Panels are the outer part of the parallel loop, so that
a thread keeps to its columns of B: in training these are weights that the same thread updated a step before.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.rules.facts import BlockFacts, facts_of, uses
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import BlockRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import dtype, walk

PARALLEL_FLOPS = 1 << 20         # below it a product runs on one thread
CACHE_BYTES = 400 * 1024         # share of the second-level cache for rows of A
BLOCKS_PER_THREAD = 8            # so that threads finish at about the same time
IN_PLACE_ROW = 4096              # bytes between rows of B from which on its lines compete for the same cache sets
IN_PLACE_USES = 256              # rows of A below which packing B costs more than it saves
FEWEST_ROWS = 4                  # of each product of a batch: with fewer, packing B costs more than it saves
PARALLEL_COPY = 1 << 14          # elements from which on threads share a copy
SYMBOLIC = 1024                  # what an extent that is not known is taken for
LATENCY = 10                     # accumulators that hide the latency of a multiply-add


@dataclass(frozen=True)
class Tile:
    """rows x columns of the result in registers; `strips`: row tiles that share a panel of B in cache."""
    rows: int
    columns: int
    strips: int


def registers(target: Target) -> int:
    """Vector registers of the target."""
    return 32 if target.vector_bytes == 64 else 16


def choose_tile(m: int, n: int, k: int, itemsize: int, target: Target) -> Tile:
    """The register tile for an m x n result, by an estimate of cycles per useful multiply-add.

    The estimate counts work on elements beyond the edges, operand loads per multiply-add, too few accumulators to
    hide the latency of an addition, and the code for ragged edges.
    """
    lanes = max(1, target.vector_bytes // itemsize)
    budget = 3 * registers(target) // 4
    best: tuple[float, int, int] = (math.inf, 1, 1)
    for vectors in (1, 2, 3, 4):
        for rows in range(1, 15):
            if rows * vectors > budget:
                continue
            columns = vectors * lanes
            padded = -(-m // rows) * rows * (-(-n // columns) * columns)
            loads = (0.4 * rows + vectors) / (rows * vectors)    # scalars of A come from the nearest cache
            latency = max(1.0, LATENCY / (rows * vectors))
            ragged = 1.0 + (0.12 if m % rows else 0.0) + (0.03 if n % columns else 0.0)
            cost = padded / max(m * n, 1) * (latency + 0.25 * loads) * ragged
            best = min(best, (cost, rows, vectors))
    _, rows, vectors = best
    return Tile(rows, vectors * lanes, choose_strips(-(-m // rows), rows * k * itemsize, target))


def choose_strips(tiles: int, tile_bytes: int, target: Target) -> int:
    """Row tiles per parallel block: their rows of A fit the cache, every thread gets several blocks, and the
    number divides the tiles where one near it does."""
    most = max(1, min(CACHE_BYTES // max(tile_bytes, 1), -(-tiles // (BLOCKS_PER_THREAD * target.num_cores))))
    return next((s for s in range(most, most // 2, -1) if tiles % s == 0), most)


def panel_groups(panels: int, bytes_of_a: int, target: Target) -> int:
    """Groups of panels that threads may keep to: one a thread where they divide evenly; every panel by itself where
    A stays in cache; else all in one group, and threads share the rows only."""
    if panels % target.num_cores == 0:
        return target.num_cores
    return panels if bytes_of_a <= CACHE_BYTES else 1


def is_matrix_product(facts: BlockFacts) -> bool:
    """True for C[*batch, i, j] += A[.., i, k] * B[.., k, j], whatever of the batch the operands have: one varies with
    the rows i, of which there are some, the other with the columns j. None of the extents is the constant 0."""
    extents = (*facts.spatial, *facts.reduced)
    if not facts.is_contraction or len(facts.spatial) < 2 or len(facts.reduced) != 1 or 0 in extents:
        return False
    *batch, m, _ = facts.spatial
    if batch and m is not None and m < FEWEST_ROWS:
        return False
    rows, columns = ([uses(x, axis) for x in facts.operands] for axis in facts.spatial_axes[-2:])
    return rows != columns and sum(rows) == sum(columns) == 1


def _matches(work: Work) -> Match | None:
    return work.match() if work.kind == "reduction" and is_matrix_product(work.first) else None


@rule("contraction", priority=30, with_epilogue=70, targets=CPU, matches=_matches)
def schedule_contraction(sch: Schedule, match: Match, target: Target) -> None:
    """Keep a tile of the product in registers while k runs, over packed columns in cache; then compute the elementwise
    block that reads it (a copy is made when there is none)."""
    product, epilogue = match.first, match.epilogue
    m, n, k = (SYMBOLIC if e is None else e for e in (*product.spatial[-2:], *product.reduced))
    itemsize = dtype.bytes_of(product.written.dtype)
    tile = choose_tile(m, n, k, product.register_bytes, target)
    pack = pack_operand(sch, product, tile, m <= IN_PLACE_USES or n * itemsize < IN_PLACE_ROW)
    if epilogue is None:
        epilogue = sch.cache_write(product.rv, 0, "local")
    else:
        sch.set_scope(product.rv, 0, "local")
    *batch, i, j = sch.get_loops(epilogue)
    blocks, strips, rows = sch.split(i, [None, tile.strips, tile.rows])
    known = product.spatial[-1] is not None           # the first panel of a group is a product of loops and sizes, else
    groups = panel_groups(-(-n // tile.columns), m * k * itemsize, target) if known else 1
    group, panels, columns = sch.split(j, [groups, None, tile.columns])
    sch.reorder(group, blocks, panels, strips, rows, columns)
    blocks = sch.fuse(*batch, group, blocks)
    sch.compute_at(product.rv, strips, preserve_unit_loops=True)
    row, column, step = sch.get_loops(product.rv)[-3:]
    sch.reorder(step, row, column)
    sch.unroll(row)
    sch.vectorize(column)
    sch.unroll(rows)
    sch.vectorize(columns)
    if 2 * product.points >= PARALLEL_FLOPS and target.num_cores > 1:
        sch.parallel(blocks)
    sch.decompose_reduction(product.rv, step)
    if pack is not None:
        schedule_pack(sch, pack, tile, target)


def pack_operand(sch: Schedule, product: BlockFacts, tile: Tile, in_place: bool) -> BlockRV | None:
    """A copy of the operand that varies with the columns, when it is transposed or may not be read in place."""
    columns, depth, width = product.spatial_axes[-1], product.reduced_axes[0], tile.columns
    operand = next((x for x in product.operands if uses(x, columns)), None)
    if operand is None or len(operand.indices) < 2 or {*operand.indices[-2:]} != {columns, depth} \
            or not {*operand.indices[:-2]} <= {*product.spatial_axes[:-2]}:
        return None
    transposed = operand.indices[-2] is columns
    if not transposed and in_place:
        return None
    copy = sch.cache_read(product.rv, operand.buffer.name, "global")
    if transposed:
        sch.transform_layout(copy, ("write", 0), lambda *v: (*v[:-2], v[-2] // width, v[-1], v[-2] % width))
    else:
        sch.transform_layout(copy, ("write", 0), lambda *v: (*v[:-2], v[-1] // width, v[-2], v[-1] % width))
    return copy


def schedule_pack(sch: Schedule, pack: BlockRV, tile: Tile, target: Target) -> None:
    """Copy panel by panel, panels on all threads."""
    *batch, first, second = sch.get_loops(pack)
    transposed = _writes_first_axis_last(facts_of(sch, pack))
    columns, depth = (first, second) if transposed else (second, first)
    panels, inner = sch.split(columns, [None, tile.columns])
    sch.reorder(panels, depth, inner)
    sch.vectorize(inner)
    if target.num_cores > 1 and facts_of(sch, pack).points >= PARALLEL_COPY:
        sch.parallel(sch.fuse(*batch, panels) if batch else panels)


def _writes_first_axis_last(facts: BlockFacts) -> bool:
    first = facts.block.iter_vars[-2].var
    return any(n is first for n in walk(facts.block.writes[0].region[-1].min))
