"""Sizes of the blocks of a matrix product: the tile in registers, the slab of B in cache, the share of a thread."""
from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.support.target import Target

SLAB_BYTES = 512 * 1024          # of packed B that is reused from the second-level cache
DEPTH = 512                      # steps of k in a slab
DEEPEST = 640                    # steps of k that are taken in one
FEW_ROWS = 128                   # of A, for which B is read in place
FEWEST_FOR_TILES = 8             # of which a tile needs rows of B as seldom as the second-level cache gives them
NEAR_BYTES = 4 << 20             # of B that are taken to be in a cache
FEW_STEPS = 32                   # rows of B that are read side by side otherwise; twice as many for many rows of A
CACHE_BYTES = 400 * 1024         # share of the second-level cache for rows of A
BLOCKS_PER_THREAD = 8            # so that threads finish at about the same time
UNEVEN = 1.08                    # times the mean that a thread may have of the columns
FEWEST_BLOCK_ROWS = 240          # of a thread's share: with fewer, packing B costs more than threads gain
STREAM = 5.3                     # multiply-adds in the time in which a vector comes from the second-level cache
SCALAR = 0.5                     # and in that which a scalar of A takes
MOST_VECTORS = 7                 # of a row of a tile
LATENCY = 10                     # accumulators that hide the latency of a multiply-add
TYPICAL = (16, 64, 128, 200, 1000)   # rows, or columns, of which it is not known how many there are


@dataclass(frozen=True)
class Tile:
    """rows x columns of the result in registers."""
    rows: int
    columns: int


@dataclass(frozen=True)
class Blocks:
    """The blocks of a product outside of tiles.

    - depth: steps of k in a slab of B; columns: those of a slab.
    - rows: of the result that one iteration of the parallel loop computes.
    - panels_outside: a panel of a slab stays in the first-level cache while rows pass by, not the other way round.
    """
    depth: int
    columns: int
    rows: int
    panels_outside: bool = False


def registers(target: Target) -> int:
    """Vector registers of the target."""
    return 32 if target.vector_bytes == 64 else 16


def choose_tile(m: int | None, n: int | None, itemsize: int, target: Target) -> Tile:
    """The register tile for an m x n result, by an estimate of cycles per useful multiply-add; by the mean of those of
    some extents in the place of one that is not known (None).

    The estimate counts work on elements beyond the edges, the loads of a step, columns from the second-level cache and
    scalars from the first, too few accumulators to hide the latency of an addition, and the code for ragged edges.
    """
    lanes = max(1, target.vector_bytes // itemsize)
    budget = 3 * registers(target) // 4
    best: tuple[float, int, int] = (math.inf, 1, 1)
    for vectors in range(1, MOST_VECTORS + 1):
        for rows in range(1, 15):
            tile, columns = rows * vectors, vectors * lanes
            if tile > budget or n is not None and columns > max(n, lanes):
                continue
            cycles = max(tile, LATENCY, vectors * STREAM) + SCALAR * rows
            cost = cycles / tile * _beyond(m, rows, 0.01) * _beyond(n, columns, 0.03)
            best = min(best, (cost, rows, vectors))
    _, rows, vectors = best
    return Tile(rows, vectors * lanes)


def _beyond(extent: int | None, unit: int, ragged: float) -> float:
    """How many times an extent all of its units are, the last one whole, and what a ragged edge costs."""
    extents = TYPICAL if extent is None else (extent,)
    shares = [-(-e // unit) * unit / max(e, 1) + (ragged if e % unit else 0.0) for e in extents]
    return sum(shares) / len(shares)


def choose_blocks(batch: int, m: int, n: int, k: int, tile: Tile, itemsize: int, target: Target,
                  packs: bool = True) -> Blocks:
    """Blocks of about equal size: a packed slab fits its cache; threads get several where that is little work more.

    packs: threads pack the slabs that they need, so that they share columns rather than rows of a small A.
    """
    narrow = n <= tile.columns and k * n * itemsize <= SLAB_BYTES
    depth = k if k <= DEEPEST or narrow else even(k, DEPTH)
    columns = even(n, max(tile.columns, SLAB_BYTES // (depth * itemsize)), tile.columns)
    slabs, cores, rows = batch * -(-n // columns), target.num_cores, m
    if _most(batch, n, columns, cores) > UNEVEN and slabs < BLOCKS_PER_THREAD * cores:
        panels = -(-n // tile.columns)
        if packs and slabs == 1 and panels % cores == 0 and m * k * itemsize <= SLAB_BYTES:
            return Blocks(depth, panels // cores * tile.columns, even(m, m, tile.rows))
        rows = max(min(FEWEST_BLOCK_ROWS, -(-m * batch // cores)), m * batch // (BLOCKS_PER_THREAD * cores))
        shares = -(-m // rows)
        even_shares = [s for s in range(shares, 0, -1) if batch * s % cores == 0]
        if even_shares and slabs * shares < BLOCKS_PER_THREAD * cores:
            rows = -(-m // even_shares[0])                             # as many for each thread
    return Blocks(depth, columns, even(m, rows, tile.rows))


def choose_blocks_in_place(batch: int, m: int, n: int, k: int, tile: Tile, itemsize: int, target: Target) -> Blocks:
    """Blocks of a product that does not pay for a copy of B: tiles read it as it lies. A large B, or that of very few
    rows of A, which take it as fast as it comes, is read from end to end, some of its rows at a time."""
    short = n <= 2 * tile.columns                         # rows of B, which follow each other closely
    far = m < FEWEST_FOR_TILES or k * n * itemsize > NEAR_BYTES
    streams = far and k > 4 * FEW_STEPS and not short
    depth = even(k, FEW_STEPS if 2 * m < FEW_ROWS else 2 * FEW_STEPS) if streams else k
    columns, rows = even(n, max(tile.columns, SLAB_BYTES // (m * itemsize)), tile.columns), even(m, m, tile.rows)
    cores, panels, strips = target.num_cores, -(-n // tile.columns), rows // tile.rows
    if batch < cores:
        if _share(strips, cores) < _share(panels, cores):
            rows = -(-strips // cores) * tile.rows
        else:
            slabs = cores * -(-n // (cores * columns))
            columns = even(n, -(-n // slabs), tile.columns)
    return Blocks(depth, columns, rows, panels_outside=streams)


def _most(batch: int, n: int, columns: int, cores: int) -> float:
    """How many times the mean of all threads that thread has of the columns which has most, in slabs of `columns`."""
    slabs = -(-n // columns)
    products, rest = divmod(-(-batch * slabs // cores), slabs)
    return (products * n + min(rest * columns, n)) * cores / (batch * n)


def _share(parts: int, cores: int) -> float:
    """Of the work in equal parts, what the thread has that has most."""
    return -(-parts // cores) / parts


def even(extent: int, most: int, unit: int = 1) -> int:
    """A multiple of unit, `most` rounded up at most, that cuts an extent into parts of nearly the same size."""
    units, most = -(-extent // unit), -(-most // unit)
    return unit * -(-units // -(-units // most))


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
