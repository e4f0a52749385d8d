"""A schedule of the matrix product, written with the public primitives."""
from __future__ import annotations

from tilewright import Schedule


def schedule_matmul(sch: Schedule, m: int, k: int, n: int, ta: bool, tb: bool, threads: int,
                    tile: tuple[int, int] = (8, 32), rows_in_cache: int = 400 * 1024) -> None:
    """Pack B in panels as wide as the tile, keep a tile of C in registers while k runs, give row blocks to threads.

    tile: rows and columns of C in registers; rows_in_cache: bytes of A that stay in the second-level cache while
    the panels of B pass by.
    """
    rows, columns = tile[0], min(tile[1], max(16, -(-n // 16) * 16))
    product = sch.get_block("C")
    packed = sch.cache_read(product, "B", "global")
    sch.transform_layout(packed, ("write", 0), (lambda j, p: (j // columns, p, j % columns)) if tb else
                         (lambda p, j: (j // columns, p, j % columns)))
    if ta:                                          # rows of A lie k apart: a strip of them is made contiguous
        strip = sch.cache_read(product, "A", "global")
        sch.transform_layout(strip, ("write", 0), lambda p, i: (i // rows, p, i % rows))
        p, i = sch.get_loops(strip)
        outer, inner = sch.split(i, [None, rows])
        sch.reorder(outer, p, inner)
        sch.vectorize(inner)
        if threads > 1:
            sch.parallel(outer)
    result = sch.cache_write(product, 0, "local")

    tiles = -(-m // rows)
    strips = max(1, min(rows_in_cache // (4 * rows * k), -(-tiles // (4 * threads))))
    while strips > 1 and tiles % strips:
        strips -= 1
    i, j = sch.get_loops(result)
    block, strip_loop, row = sch.split(i, [None, strips, rows])
    group, panel, column = sch.split(j, [threads if -(-n // columns) % threads == 0 else 1, None, columns])
    sch.reorder(group, block, panel, strip_loop, row, column)
    block = sch.fuse(group, block)               # a thread keeps to its group of panels
    sch.compute_at(product, strip_loop, preserve_unit_loops=True)
    ci, cj, ck = sch.get_loops(product)[-3:]
    sch.reorder(ck, ci, cj)
    sch.unroll(ci)
    sch.vectorize(cj)
    sch.unroll(row)
    sch.vectorize(column)
    sch.decompose_reduction(product, ck)

    first, second = sch.get_loops(packed)
    depth, across = (second, first) if tb else (first, second)
    panel, column = sch.split(across, [None, columns])
    sch.reorder(panel, depth, column)
    sch.vectorize(column)
    if threads > 1:
        sch.parallel(block)
        sch.parallel(panel)
