"""The schedule of a matrix product of low-bit elements: tiles of dot-product instructions over an interleaved operand.

As in `contraction` a tile of the result stays in registers while k runs. B is packed so that the elements that one
lane multiplies lie together: [panels, k // group, columns, group], by shuffles where its rows run along j.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.rules.contraction import (
    PARALLEL_COPY,
    PARALLEL_FLOPS,
    choose_strips,
    is_matrix_product,
    panel_groups,
    registers,
)
from tilewright.rules.kinds import BlockFacts, facts_of
from tilewright.schedule import BlockRV, Schedule
from tilewright.schedule.intrinsics import DotIntrin, dot_intrinsics, interleave_name
from tilewright.support import config
from tilewright.support.target import Target
from tilewright.tir import Binary, Cast, Load, Store, dtype

LATENCY = 8                      # accumulators that hide the latency of a dot product
SHUFFLED = (8, 16)               # columns that one interleaving takes


@dataclass(frozen=True)
class DotProduct:
    """C[i, j] += A[i, k] * B[k, j] (or B[j, k]: `transposed`), widened to the type of C."""
    facts: BlockFacts
    a: Load
    b: Load
    transposed: bool

    @property
    def types(self) -> tuple[str, str, str]:
        return self.a.buffer.dtype, self.b.buffer.dtype, self.facts.written.dtype


def dot_product(facts: BlockFacts) -> DotProduct | None:
    """facts as a product of widened elements whose rows of A run along k; None for anything else."""
    body = facts.block.body
    if not is_matrix_product(facts) or not isinstance(body, Store):
        return None
    total = body.value
    if not (isinstance(total, Binary) and total.op == "add" and isinstance(total.b, Binary) and total.b.op == "mul"):
        return None
    factors = [x.value for x in (total.b.a, total.b.b) if isinstance(x, Cast) and isinstance(x.value, Load)]
    (i, j), (k,) = facts.spatial_axes, facts.reduced_axes
    for a, b in (factors, factors[::-1]) if len(factors) == 2 else ():
        at = [(tuple(map(id, x.indices))) for x in (a, b)]
        if at[0] == (id(i), id(k)) and at[1] in ((id(k), id(j)), (id(j), id(k))):
            return DotProduct(facts, a, b, at[1][0] == id(j))
    return None


def choose_dot(product: DotProduct, target: Target) -> DotIntrin | None:
    """The widest instruction of the target whose lanes and groups divide the extents; None where there is none.

    Products of bfloat16 round in another order than the loop, and take subnormal numbers for zeros: not with
    TILEWRIGHT_STRICT_MATH.
    """
    n, k = product.facts.spatial[1] or 0, product.facts.reduced[0] or 0
    for row in dot_intrinsics(*product.types, target):
        if n % row.lanes == 0 and k % row.group == 0 and (row.exact or not config.get("STRICT_MATH")):
            return row
    return None


def choose_tile(m: int, n: int, lanes: int, target: Target) -> tuple[int, int]:
    """(rows, vectors) of the register tile: both divide the result, accumulators leave registers for operands."""
    best: tuple[float, int, int] = (math.inf, 1, 1)
    for vectors in (1, 2, 3, 4):
        for rows in range(1, 15):
            if m % rows or n % (vectors * lanes) or rows * vectors + vectors + 2 > registers(target):
                continue
            loads = (rows + vectors) / (rows * vectors)
            best = min(best, (max(1.0, LATENCY / (rows * vectors)) + 0.25 * loads, rows, vectors))
    return best[1:]


def schedule_dot_product(sch: Schedule, product: DotProduct, row: DotIntrin, epilogue: BlockRV | None,
                         target: Target) -> None:
    """Schedule the product and the elementwise block that reads it (a copy is made when there is none)."""
    facts = product.facts
    m, n, k = (e or 0 for e in (*facts.spatial, *facts.reduced))
    rows, vectors = choose_tile(m, n, row.lanes, target)
    width, group = vectors * row.lanes, row.group
    pack = _packed(sch, product, width, group)
    if epilogue is None:
        epilogue = sch.cache_write(facts.rv, 0, "global")
    itemsize = dtype.bytes_of(product.a.buffer.dtype)
    i, j = sch.get_loops(epilogue)
    blocks, strips, inner_rows = sch.split(i, [None, choose_strips(m // rows, rows * k * itemsize, target), rows])
    groups = panel_groups(n // width, m * k * itemsize, target)
    outer, panels, columns = sch.split(j, [groups, None, width])
    sch.reorder(outer, blocks, panels, strips, inner_rows, columns)
    blocks = sch.fuse(outer, blocks)
    sch.compute_at(facts.rv, strips, preserve_unit_loops=True)
    tile_rows, tile_columns, depth = sch.get_loops(facts.rv)[3:]
    vector, lanes = sch.split(tile_columns, [None, row.lanes])
    steps, inside = sch.split(depth, [None, group])
    sch.reorder(steps, tile_rows, vector, lanes, inside)
    sch.unroll(tile_rows)
    sch.unroll(vector)
    start = sch.decompose_reduction(facts.rv, steps)
    sch.vectorize(sch.get_loops(start)[-1])
    sch.tensorize(lanes, row.name)
    sch.unroll(inner_rows)
    sch.vectorize(columns)
    if 2 * facts.points >= PARALLEL_FLOPS and target.num_cores > 1:
        sch.parallel(blocks)
    _schedule_pack(sch, pack, product, width, group, target)


def _packed(sch: Schedule, product: DotProduct, width: int, group: int) -> BlockRV:
    copy = sch.cache_read(product.facts.rv, product.b.buffer.name, "global", [product.facts.rv])
    if product.transposed:
        sch.transform_layout(copy, ("write", 0), lambda j, p: (j // width, p // group, j % width, p % group))
    else:
        sch.transform_layout(copy, ("write", 0), lambda p, j: (j // width, p // group, j % width, p % group))
    return copy


def _schedule_pack(sch: Schedule, pack: BlockRV, product: DotProduct, width: int, group: int, target: Target) -> None:
    """Panel after panel: rows are interleaved by shuffles; of a transposed operand, and of panels too narrow for a
    shuffle, groups are moved one by one."""
    points = facts_of(sch, pack).points                   # asked for here: tensorize consumes the block
    first, second = sch.get_loops(pack)
    columns, depth = (first, second) if product.transposed else (second, first)
    steps, inside = sch.split(depth, [None, group])
    taken = max((c for c in SHUFFLED if width % c == 0), default=0)
    if product.transposed or not taken:
        panels, column = sch.split(columns, [None, width])
        sch.reorder(panels, steps, column, inside)
        sch.vectorize(inside)
    else:
        panels, part, column = sch.split(columns, [None, width // taken, taken])
        sch.reorder(panels, steps, part, inside, column)
        sch.unroll(part)
        sch.tensorize(inside, interleave_name(product.b.buffer.dtype, group, taken))
    if target.num_cores > 1 and points >= PARALLEL_COPY:
        sch.parallel(panels)
