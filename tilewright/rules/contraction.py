"""The schedule of a matrix product: a tile of the result in registers, a slab of B in cache, threads over blocks.

The structure is Goto and van de Geijn's (Anatomy of High-Performance Matrix Multiplication, 2008): a tile of the
result stays in registers while k runs; the slab of B that it reads is packed so that vectors are contiguous, and stays
in the second-level cache while the rows of A pass by. Where k is long, slabs have a part of its steps, and what tiles
sum up is added to the result; each part is summed on its own (Suriana, Adams and Kamil, CGO 2017).
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.rules.attempt import attempt
from tilewright.rules.blocking import FEW_ROWS, Blocks, Tile, choose_blocks, choose_blocks_in_place, choose_tile
from tilewright.rules.facts import SYMBOLIC, BlockFacts, facts_of, is_constant, uses
from tilewright.rules.lanes import is_reorderable
from tilewright.rules.memory import prefetch_weights
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import Buffer, Expr, IntImm, walk

PARALLEL_FLOPS = 1 << 20         # below it a product runs on one thread
FEW_VECTORS = 7                  # of columns, up to which they are filled up with zeros
FEWEST_FOR_PANELS = 16           # rows for which constant columns are packed; fewer read them once, as they lie
FEWEST_ROWS = 4                  # of each product of a batch: with fewer, packing B costs more than it saves
SQUARE = 16                      # rows and columns that are transposed in registers
AHEAD = 6144                     # bytes of constant columns that are asked for before they are needed


def is_matrix_product(facts: BlockFacts) -> bool:
    """True for a product whose rows are worth to be tiled."""
    if not is_product(facts):
        return False
    *batch, m, _ = facts.spatial
    return not batch or m is None or m >= FEWEST_ROWS


def is_product(facts: BlockFacts) -> bool:
    """True for C[*batch, i, j] += A[.., i, k] * B[.., k, j], whatever of the batch the operands have: one varies with
    the rows i, the other with the columns j. None of the extents is the constant 0."""
    extents = (*facts.spatial, *facts.reduced)
    if not facts.is_contraction or len(facts.spatial) < 2 or len(facts.reduced) != 1 or 0 in extents:
        return False
    rows, columns = ([uses(x, axis) for x in facts.operands] for axis in facts.spatial_axes[-2:])
    return rows != columns and sum(rows) == sum(columns) == 1


def _matches(work: Work) -> Match | None:
    return work.match() if work.kind == "reduction" and is_matrix_product(work.first) else None


@rule("contraction", priority=30, with_epilogue=70, targets=CPU, matches=_matches)
def schedule_contraction(sch: Schedule, match: Match, target: Target) -> None:
    """Keep a tile of the product in registers while k runs, over columns in cache; then compute the elementwise block
    that reads it (a copy is made when there is none)."""
    product, epilogue, pad = filled_up(sch, match, target)
    columns = columns_of(product)
    constant = columns is not None and is_constant(sch, columns.buffer)
    rows = product.spatial[-2]
    plan = plan_of(product, pad is not None or constant and (rows is None or rows >= FEWEST_FOR_PANELS), target)
    tile, blocks, b = plan.tile, plan.blocks, plan.packed
    if plan.cut:
        inner, reader = cut_depth(sch, product, blocks.depth)
    else:
        inner, reader = product.rv, result_in_registers(sch, product.rv, epilogue)
    pack = pack_columns(sch, inner, b, tile.columns) if b is not None else None
    if pad is not None:
        sch.compute_inline(pad)
    loops = sch.get_loops(reader)
    steps = [loops.pop()] if plan.cut else []
    *batch, i, j = loops
    slabs, panels, columns = sch.split(j, [None, blocks.columns // tile.columns, tile.columns])
    shares, strips, rows = sch.split(i, row_shares(product, plan, target))
    shared = rows_outside(product)
    outside = [loop for loop, is_shared in zip(batch, shared, strict=True) if not is_shared]
    below = [loop for loop, is_shared in zip(batch, shared, strict=True) if is_shared]
    first, place = (shares, slabs) if plan.is_shared_by_rows else (slabs, shares)
    tiles = (panels, strips) if blocks.panels_outside else (strips, panels)
    sch.reorder(*outside, first, place, *steps, *below, *tiles, rows, columns)
    step = schedule_tile(sch, inner, tiles[-1])
    sch.unroll(rows)
    sch.vectorize(columns)
    if b is not None and pack is not None:
        if constant:
            prefetch_weights(sch, inner, pack, step, tile.columns * product.register_bytes, AHEAD)
        schedule_pack(sch, pack, steps[0] if plan.cut else place, b, target)
    if plan.cut:
        sch.decompose_reduction(product.rv, *steps)
        if epilogue is not None:
            sch.reverse_compute_at(epilogue, place)
            _, lane = sch.split(sch.get_loops(epilogue)[-1], [None, tile.columns])
            sch.vectorize(lane)
    if 2 * product.points >= PARALLEL_FLOPS and target.num_cores > 1:
        sch.parallel(sch.fuse(*outside, first) if outside else first)


@dataclass(frozen=True)
class Columns:
    """The operand that varies with the columns: its buffer, and whether it lies transposed, k last."""
    buffer: Buffer
    transposed: bool


@dataclass(frozen=True)
class Plan:
    """Sizes; packed: B, where slabs of it are copied; cut: slabs have a part of the steps of k."""
    tile: Tile
    blocks: Blocks
    packed: Columns | None
    cut: bool
    is_shared_by_rows: bool


def plan_of(product: BlockFacts, is_packed: bool, target: Target) -> Plan:
    """The sizes for a product; is_packed: packing B costs nothing, since it is a copy already, or constant."""
    m, n, k = (SYMBOLIC if e is None else e for e in (*product.spatial[-2:], *product.reduced))
    products = (e for e, is_shared in zip(product.spatial, rows_outside(product)) if not is_shared)
    batch = math.prod(SYMBOLIC if e is None else e for e in products)
    rows, columns = product.spatial[-2:]
    tile = choose_tile(rows, columns if len(product.spatial) > 2 else n, product.register_bytes, target)
    b = columns_of(product)
    if b is not None and not b.transposed and m <= FEW_ROWS and not is_packed:
        b = None
    sizes = batch, m, n, k, tile, product.register_bytes, target
    in_place = b is None and m <= FEW_ROWS
    blocks = choose_blocks_in_place(*sizes) if in_place else choose_blocks(*sizes, packs=not is_packed)
    return Plan(tile, blocks, b, blocks.depth < k and is_reorderable(product), blocks.rows < m)


def row_shares(product: BlockFacts, plan: Plan, target: Target) -> list[int | None]:
    """The factors of the rows: shares, tiles of a share, rows of a tile. Where nobody knows how many rows there are,
    each thread gets as many."""
    if product.spatial[-2] is None:
        return [target.num_cores if plan.is_shared_by_rows else 1, None, plan.tile.rows]
    return [None, plan.blocks.rows // plan.tile.rows, plan.tile.rows]


def filled_up(sch: Schedule, match: Match, target: Target) -> tuple[BlockFacts, BlockRV | None, BlockRV | None]:
    """(the product, the block that reads it, the one that fills B up): few columns become whole vectors."""
    product, epilogue = match.first, match.epilogue
    lanes, n = product.lanes(target), product.spatial[-1]
    if n is None or n % lanes == 0 or n > FEW_VECTORS * lanes or columns_of(product) is None:
        return product, epilogue, None
    given = {p.name for p in sch.get_producers(product.rv)}
    if not attempt(sch, lambda: sch.pad_einsum(product.rv, [*(1 for _ in product.spatial[1:]), lanes, 1])):
        return product, epilogue, None
    (pad,) = (p for p in sch.get_producers(product.rv) if p.name not in given)
    (part,) = sch.get_consumers(product.rv)
    if epilogue is None:
        return facts_of(sch, product.rv), part, pad
    sch.compute_inline(part)
    return facts_of(sch, product.rv), epilogue, pad


def rows_outside(product: BlockFacts) -> list[bool]:
    """Which of the batch axes only say more rows: B has none of them."""
    b = next(x for x in product.operands if uses(x, product.spatial_axes[-1]))
    return [not uses(b, axis) for axis in product.spatial_axes[:-2]]


def result_in_registers(sch: Schedule, product: BlockRV, epilogue: BlockRV | None) -> BlockRV:
    """The block that reads the product, which is a tile of registers from now on: the epilogue, or a copy."""
    if epilogue is None:
        return sch.cache_write(product, 0, "local")
    sch.set_scope(product, 0, "local")
    return epilogue


def cut_depth(sch: Schedule, product: BlockFacts, depth: int) -> tuple[BlockRV, BlockRV]:
    """(the block that sums `depth` steps of k, the one that adds such sums to the result)."""
    outer, _ = sch.split(sch.get_loops(product.rv)[-1], [None, depth])
    return sch.rfactor(outer, 0, "local"), product.rv


def schedule_tile(sch: Schedule, inner: BlockRV, place: LoopRV) -> LoopRV:
    """The sums of a tile below a loop: k around unrolled rows of vectors. The loop over k."""
    sch.compute_at(inner, place, preserve_unit_loops=True)
    row, column, step = sch.get_loops(inner)[-3:]
    sch.reorder(step, row, column)
    sch.unroll(row)
    sch.vectorize(column)
    sch.decompose_reduction(inner, step)
    return step


def columns_of(product: BlockFacts) -> Columns | None:
    """The operand that varies with the columns, where it is a matrix or a batch of them."""
    columns, depth = product.spatial_axes[-1], product.reduced_axes[0]
    operand = next(x for x in product.operands if uses(x, columns))
    matrix = {*operand.indices[-2:]} == {columns, depth} and len(operand.indices) > 1
    if not matrix or any(n in (columns, depth) for i in operand.indices[:-2] for n in walk(i)):
        return None
    return Columns(operand.buffer, operand.indices[-2] is columns)


def pack_columns(sch: Schedule, inner: BlockRV, b: Columns, width: int) -> BlockRV:
    """A copy of B in panels of `width` columns, the last one filled up with zeros."""
    def panels(*v: Expr) -> tuple[Expr, ...]:
        column, step = v[-2:] if b.transposed else v[:-3:-1]
        return (*v[:-2], column // width, step, column % width)

    copy = sch.cache_read(inner, b.buffer.name, "global")
    extent = b.buffer.shape[-2 if b.transposed else -1]
    if isinstance(extent, IntImm) and extent.value % width == 0:
        sch.transform_layout(copy, ("write", 0), panels)
        sch.transform_block_layout(copy, panels)
    else:
        sch.transform_layout(copy, ("write", 0), panels, pad_value=0)
    return copy


def schedule_pack(sch: Schedule, pack: BlockRV, place: LoopRV, b: Columns, target: Target) -> None:
    """Copy a slab panel by panel; squares of a transposed one are transposed in registers."""
    sch.compute_at(pack, place, preserve_unit_loops=True)
    *_, step, lane = sch.get_loops(pack)
    if b.transposed:
        square = min(SQUARE, facts_of(sch, pack).lanes(target))
        vectors, lane = sch.split(lane, [None, square])
        steps, line = sch.split(step, [None, square])
        sch.reorder(vectors, steps, line, lane)
        sch.unroll(line)
    sch.vectorize(lane)
