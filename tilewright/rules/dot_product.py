"""The schedule of a matrix product of low-bit elements: tiles of dot-product instructions over packed operands.

As in `contraction` a tile of the result stays in registers while k runs. Extents are rounded up to whole tiles and
groups (pad_einsum): what is added is zero, and exists only in the packed operands, in which the elements that one
lane multiplies lie together:

    [*batch, outer // width, k // group, outer % width, k % group]        # outer: i of A, j of B

Rows that run along j (or i) are interleaved by shuffles, and groups of rows that run along k; in panels too narrow for
that, and where k has too few groups, groups are moved one by one. An A whose rows run along k is used as it is, or
copied with its padding.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tilewright.rules.blocking import choose_strips, panel_groups, registers
from tilewright.rules.contraction import PARALLEL_FLOPS
from tilewright.rules.elementwise import schedule_elementwise
from tilewright.rules.facts import BlockFacts, facts_of
from tilewright.rules.table import Match, Work, rule
from tilewright.schedule import BlockRV, Schedule
from tilewright.schedule.intrinsics import STEPS, DotIntrin, dot_intrinsics, interleave_groups_name, interleave_name
from tilewright.support import config
from tilewright.support.target import Target
from tilewright.tir import Binary, Block, Buffer, Cast, Expr, Load, Store, dtype, is_const, structural_equal

PARALLEL_COPY = 1 << 14          # elements from which on threads share a copy
LATENCY = 8                      # accumulators that hide the latency of a dot product
WASTE = 0.04                     # share of k that may be padding so that packing is fast
SYMBOLIC = 5040                  # rows that are taken for as many as there are
COPY = 0.02                      # share of the time that a copy of A takes, where else it is read in place


@dataclass(frozen=True)
class DotProduct:
    """C[*batch, i, j] += A[*batch, i, k] * B[*batch, k, j], widened to the type of C; A and B in any order of axes."""
    facts: BlockFacts
    a: Operand
    b: Operand

    @property
    def types(self) -> tuple[str, str, str]:
        return self.a.buffer.dtype, self.b.buffer.dtype, self.facts.written.dtype

    @property
    def extents(self) -> tuple[int, int, int]:
        """m, n, k; SYMBOLIC where m is not known."""
        m, n, k = (SYMBOLIC if e is None else e for e in (*self.facts.spatial[-2:], *self.facts.reduced))
        return m, n, k


def dot_product(facts: BlockFacts) -> DotProduct | None:
    """facts as a product of widened elements of two matrices, or two batches of matrices; None for anything else, and
    where another extent than m and those of the batch is symbolic."""
    extents = (*facts.spatial, *facts.reduced)
    if len(facts.spatial) < 2 or len(facts.reduced) != 1 or 0 in extents or None in extents[-2:]:
        return None
    summand = _summed(facts.block)
    if not isinstance(summand, Binary) or summand.op != "mul":
        return None
    (*batch, i, j), (k,) = facts.spatial_axes, facts.reduced_axes
    for x, y in itertools.permutations((summand.a, summand.b)):
        a, b = _operand(x, [*batch, i, k]), _operand(y, [*batch, j, k])
        if a is not None and b is not None and a.buffer is not b.buffer:
            return DotProduct(facts, a, b)
    return None


def _summed(block: Block) -> Expr | None:
    """e of a block C[i, ...] = C[i, ...] + e that starts at 0, for its spatial axes i, ... and then a reduced one."""
    store, init = block.body, block.init
    if not isinstance(store, Store) or not isinstance(init, Store) or not is_const(init.value, 0):
        return None
    in_order = [*map(id, store.indices)] == [id(v.var) for v in block.iter_vars[:-1]]
    value = store.value
    return value.b if (in_order and isinstance(value, Binary) and value.op == "add"
                       and structural_equal(value.a, Load(store.buffer, store.indices))) else None


def _operand(x: Expr, axes: list[Expr]) -> Operand | None:
    """x as a widened load at axes, in any order that ends with one of the last two."""
    load = x.value if isinstance(x, Cast) else None
    if not isinstance(load, Load) or len(load.indices) != len(axes) or {*map(id, load.indices)} != {*map(id, axes)}:
        return None
    at = [next(n for n, e in enumerate(load.indices) if e is axis) for axis in axes]
    return Operand(load, tuple(at)) if at[-1] == len(at) - 1 or at[-2] == len(at) - 1 else None


def choose_dot(product: DotProduct, target: Target) -> DotIntrin | None:
    """The best instruction that the target has for these types; None where there is none, or would multiply zeros
    for the most part: a single column leaves all lanes but one idle, and k of 1 has no sums."""
    return None if min(product.extents[1:]) < 2 else next(iter(allowed_dots(product, target)), None)


def allowed_dots(product: DotProduct, target: Target) -> list[DotIntrin]:
    """The instructions that the target has for these types, best first.

    Products of bfloat16 round in another order than the loop, and take subnormal numbers for zeros: not with
    TILEWRIGHT_STRICT_MATH.
    """
    strict = config.get("STRICT_MATH")
    return [row for row in dot_intrinsics(*product.types, target) if row.exact or not strict]


def choose_tile(m: int, n: int, lanes: int, together: int, target: Target) -> tuple[int, int]:
    """(rows, vectors) of the register tile: accumulators leave registers for operands, little lies beyond the edges.

    together: rows of a packed A that lie side by side, a multiple of the tile's; 1 where A may be read in place.
    """
    best: tuple[float, int, int] = (math.inf, 1, 1)
    for vectors in (1, 2, 3, 4):
        for rows in range(1, 15):
            if rows * vectors + vectors + 2 > registers(target) or together > 1 and together % rows:
                continue
            padded = round_up(m, max(rows, together)) * round_up(n, vectors * lanes) / (m * n)
            loads = (rows + vectors) / (rows * vectors)
            copied = COPY if m % rows else 0.0
            cost = padded * (max(1.0, LATENCY / (rows * vectors)) + 0.25 * loads) * (1.0 + copied)
            best = min(best, (cost, rows, vectors))
    return best[1:]


def depth_factor(product: DotProduct, group: int) -> int:
    """What k is rounded up to a multiple of: whole groups, and where that adds little, as many as B is packed by."""
    k, together = product.extents[2], STEPS * group
    little = product.b.runs_along_k and round_up(k, together) <= (1.0 + WASTE) * round_up(k, group)
    return together if little else group


def round_up(extent: int, factor: int) -> int:
    """The least multiple of factor that is not less than extent."""
    return -(-extent // factor) * factor


def _matches(work: Work) -> Match | None:
    """The product and the instruction for it."""
    product = dot_product(work.first) if work.kind == "reduction" else None
    row = None if product is None else choose_dot(product, work.target)
    return None if row is None else work.match(plan=(product, row))


@rule("dot_product", priority=40, with_epilogue=80, targets=("llvm",), matches=_matches)
def schedule_dot_product(sch: Schedule, match: Match, target: Target) -> None:
    """Compute tiles of the product by dot product instructions, from packed operands; then the elementwise block that
    reads it (a copy is made when there is none)."""
    plan: tuple[DotProduct, DotIntrin] = match.plan
    (product, row), epilogue = plan, match.epilogue
    rv, group, together = product.facts.rv, row.group, rows_together(product.a)
    rows, vectors = choose_tile(*product.extents[:2], row.lanes, together, target)
    width = vectors * row.lanes
    given = {p.name for p in sch.get_producers(rv)}
    epilogue = _padded(sch, product, (max(rows, together), width, depth_factor(product, group)), epilogue)
    product = _described(sch, rv)
    pads = {facts_of(sch, p).written: p for p in sch.get_producers(rv) if p.name not in given}
    m, n, k = product.extents
    itemsize = dtype.bytes_of(product.a.buffer.dtype)
    pack_columns(sch, rv, product.b, pads.get(product.b.buffer), width, group, target)
    pack_rows(sch, rv, product.a, pads.get(product.a.buffer), group, target)
    *batch, i, j = sch.get_loops(epilogue)
    blocks, strips, inner_rows = sch.split(i, [None, choose_strips(m // rows, rows * k * itemsize, target), rows])
    groups = panel_groups(n // width, m * k * itemsize, target)
    outer, panels, columns = sch.split(j, [groups, None, width])
    sch.reorder(outer, blocks, panels, strips, inner_rows, columns)
    blocks = sch.fuse(*batch, outer, blocks)
    sch.compute_at(rv, strips, preserve_unit_loops=True)
    tile_rows, tile_columns, depth = sch.get_loops(rv)[-3:]
    vector, lanes = sch.split(tile_columns, [None, row.lanes])
    steps, inside = sch.split(depth, [None, group])
    sch.reorder(steps, tile_rows, vector, lanes, inside)
    sch.unroll(tile_rows)
    sch.unroll(vector)
    start = sch.decompose_reduction(rv, steps)
    sch.vectorize(sch.get_loops(start)[-1])
    sch.tensorize(lanes, row.name)
    sch.unroll(inner_rows)
    sch.vectorize(columns)
    if 2 * product.facts.points >= PARALLEL_FLOPS and target.num_cores > 1:
        sch.parallel(blocks)


def _described(sch: Schedule, rv: BlockRV) -> DotProduct:
    found = dot_product(facts_of(sch, rv))
    assert found is not None
    return found


def _padded(sch: Schedule, product: DotProduct, factors: tuple[int, int, int], epilogue: BlockRV | None) -> BlockRV:
    """Round m, n and k up to multiples of factors; the block that writes the part of the result that is asked for."""
    rv, written = product.facts.rv, product.facts.written
    axes = [*product.facts.spatial_axes[-2:], *product.facts.reduced_axes]
    factor = {id(axis): f for axis, f in zip(axes, factors, strict=True)}
    sch.pad_einsum(rv, [factor.get(id(iv.var), 1) for iv in product.facts.block.iter_vars])
    if facts_of(sch, rv).written is written:
        return epilogue or sch.cache_write(rv, 0, "global")
    (part,) = sch.get_consumers(rv)
    if epilogue is None:
        return part
    sch.compute_inline(part)
    return epilogue


T = TypeVar("T")

SHUFFLED = (8, 16)               # columns that one interleaving takes
ROWS_TOGETHER = 8                # rows of a transposed A that are packed side by side


@dataclass(frozen=True)
class Operand:
    """One element of A or B a step; `at`: which of its indices are the batch axes, i or j, and k, in this order."""
    load: Load
    at: tuple[int, ...]

    @property
    def buffer(self) -> Buffer:
        return self.load.buffer

    @property
    def runs_along_k(self) -> bool:
        return self.at[-1] == len(self.at) - 1

    def indices(self, axes: Sequence[T]) -> tuple[T, ...]:
        """What belongs to the batch axes, i or j, and k, in the order of the buffer's indices."""
        return tuple(axis for _, axis in sorted(zip(self.at, axes, strict=True), key=lambda pair: pair[0]))


def rows_together(a: Operand) -> int:
    """How many rows of A are packed side by side; 1 where its rows run along k, and stay as they are."""
    return 1 if a.runs_along_k else ROWS_TOGETHER


def pack_rows(sch: Schedule, rv: BlockRV, a: Operand, pad: BlockRV | None, group: int, target: Target) -> None:
    """Pack A if its rows do not run along k; else its padding, if any, is all that is written."""
    if not a.runs_along_k:
        _pack(sch, rv, a, pad, (-3, ROWS_TOGETHER), group, target)
    elif pad is not None:
        schedule_elementwise(sch, Match((facts_of(sch, pad),)), target)


def pack_columns(sch: Schedule, rv: BlockRV, b: Operand, pad: BlockRV | None, width: int, group: int,
                 target: Target) -> None:
    """Pack B in panels of `width` columns."""
    _pack(sch, rv, b, pad, (-2, width), group, target)


def _pack(sch: Schedule, rv: BlockRV, x: Operand, pad: BlockRV | None, panel: tuple[int, int], group: int,
          target: Target) -> None:
    """Panel after panel: (axis of the product, width). pad, the block that pads x, joins in: it runs where a group is
    moved, or where rows are loaded to be interleaved."""
    axis, width = panel
    depth = facts_of(sch, rv).reduced[0] or 0
    taken = max((c for c in SHUFFLED if width % c == 0), default=0)
    few = STEPS if x.runs_along_k and taken and depth % (STEPS * group) == 0 else 1
    if x.runs_along_k:
        taken = taken if few > 1 else 0
        width = taken or width                            # what one interleaving writes lies in one piece
    pack = sch.reindex_cache_read(rv, x.buffer.name, "global", lambda *v: (
        *v[:-3], v[axis] // width, v[-1] // group, v[axis] % width, v[-1] % group))
    if pad is not None and not taken:
        sch.compute_inline(pad)
    points = facts_of(sch, pack).points                   # asked for here: tensorize consumes the block
    sch.transform_block_layout(pack, lambda *v: (*v[:-1], v[-1] // group, v[-1] % group))
    *batch, outer, groups, inside = sch.get_loops(pack)
    steps, step = sch.split(groups, [None, few])
    panels, part, column = sch.split(outer, [None, width // (taken or width), taken or width])
    panels = sch.fuse(*batch, panels)
    if not taken:
        sch.reorder(panels, steps, part, step, column, inside)
        sch.vectorize(inside)
    else:
        sch.reorder(panels, steps, part, *((column, step, inside) if few > 1 else (step, inside, column)))
        sch.unroll(part)
        if pad is not None:
            sch.compute_at(pad, part)
            sch.vectorize(sch.get_loops(pad)[-1])
        if few > 1:
            sch.tensorize(column, interleave_groups_name(x.buffer.dtype, group, taken))
        else:
            sch.tensorize(inside, interleave_name(x.buffer.dtype, group, taken))
    if target.num_cores > 1 and points >= PARALLEL_COPY:
        sch.parallel(panels)
