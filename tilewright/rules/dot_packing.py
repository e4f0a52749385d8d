"""Packing of the operands of a low-bit product: the elements that one lane multiplies lie together.

    [*batch, outer // width, k // group, outer % width, k % group]        # outer: i of A, j of B

Rows that run along j (or i) are interleaved by shuffles, and groups of rows that run along k; in panels too narrow for
that, and where k has too few groups, groups are moved one by one. An A whose rows run along k is used as it is, or
copied with its padding.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tilewright.rules.contraction import PARALLEL_COPY
from tilewright.rules.elementwise import schedule_elementwise
from tilewright.rules.facts import facts_of
from tilewright.rules.table import Match
from tilewright.schedule import BlockRV, Schedule
from tilewright.schedule.intrinsics import STEPS, interleave_groups_name, interleave_name
from tilewright.support.target import Target
from tilewright.tir import Buffer, Load

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
