"""How primitives take part in random schedules: each registers a move in its file in tests/schedule/primitives.

A call is data: an action names blocks, and loops by their position around a block.
"""
from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright.schedule import LoopRV, Schedule
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import UNROLLED, VECTORIZED, For

SCOPES = ("local", "shared", "global")
FAVOURED = "FUZZ_FAVOURED"                             # variable of the environment: primitives for half of all moves
MOST_BLOCKS = 10                                       # of a function to which another copy is added
MOST_COPIES = 64                                       # of a statement, through unrolled and vectorized loops

Action = tuple[Any, ...]                               # (move, arguments...); a loop is (block name, position)
Draw = Callable[["Chooser", Schedule, list[str]], "Action | None"]


@dataclass(frozen=True)
class Move:
    """How a primitive takes part in random schedules: weights of its draw early and late in a schedule (others where
    the schedule binds loops to threads), the draw itself, and how an action is run: `run(sch, *arguments)`."""
    early: float
    late: float
    draw: Draw
    run: Callable[..., None]
    last: float                                        # how likely it is to be tried when the schedule is done
    on_threads: tuple[float, float]


MOVES: dict[str, Move] = {}                            # filled by the modules of tests/schedule/primitives

# The order in which moves are drawn. Seeds stand for programs as long as it stays; moves that it does not have follow,
# by name.
BASIC = ("split", "fuse", "reorder", "compute_at", "reverse_compute_at", "compute_inline", "reverse_compute_inline",
         "cache_read", "cache_write", "set_scope", "transform_layout", "decompose_reduction", "parallel", "vectorize",
         "unroll", "annotate", "unannotate", "bind")
BASIC_LATE = ("split", "fuse", "reorder", "decompose_reduction", "parallel", "vectorize", "unroll", "annotate", "bind",
              "compute_at", "reverse_compute_at", "set_scope", "cache_read", "cache_write", "transform_layout")
MORE = ("rfactor", "reindex", "reindex_cache_read", "reindex_cache_write", "cache_index", "cache_inplace", "read_at",
        "write_at", "cache_write_for", "unsafe_set_dtype", "transform_block_layout", "padded_layout",
        "decompose_padding", "pad_einsum", "rolling_buffer", "merge", "loop_partition", "add_unit_loop",
        "reorder_block_iter_var", "storage_align", "set_axis_separator", "software_pipeline", "double_buffer",
        "prefetch", "sample_perfect_tile", "sample_partitioned_tile", "sample_categorical", "sample_compute_location",
        "blockize", "tensorize")


def move(name: str, early: float, late: float, run: Callable[..., None], last: float = 0.0,
         on_threads: tuple[float, float] | None = None) -> Callable[[Draw], Draw]:
    """Decorator: draw(chooser, sch, names) -> Action | None draws arguments for the move `name`."""
    def keep(draw: Draw) -> Draw:
        MOVES[name] = Move(early, late, draw, run, last, on_threads or (early, late))
        return draw
    return keep


def in_order(late: bool = False) -> list[str]:
    """The names of the moves."""
    first = (*BASIC_LATE, *BASIC) if late else BASIC
    return list(dict.fromkeys((*first, *MORE, *sorted(MOVES))))


class Unresolved(Exception):
    """An action names a block or loop that the schedule does not have."""


def find_loop(sch: Schedule, where: tuple[str, int]) -> LoopRV:
    block, position = where
    if block not in sch.index.realizes:
        raise Unresolved(f"block {block}")
    loops = sch.loops_above(block)
    if position >= len(loops):
        raise Unresolved(f"loop {position} of {block}")
    return sch.loop_rv(loops[position])


def find_block(sch: Schedule, name: str) -> Any:
    if name not in sch.index.realizes:
        raise Unresolved(f"block {name}")
    return sch.block_rv(name)


class Chooser:
    """Draws actions that fit the schedule as it stands."""

    def __init__(self, rng: random.Random, threads: bool) -> None:
        self.rng, self.threads = rng, threads
        self.late = False                              # from now on mostly annotations of loops

    def action(self, sch: Schedule) -> Action | None:
        """One action, or None where the drawn primitive has nothing to act on."""
        rng = self.rng
        names = [b for b in sch.index.realizes if b != "root"]
        if not names:
            return None
        weights: dict[str, float] = {}
        for name in in_order(self.late):
            m = MOVES[name]
            weights[name] = (m.on_threads if self.threads else (m.early, m.late))[self.late]
        favoured = os.environ.get(FAVOURED)
        if favoured and rng.random() < 0.5:
            weights = dict.fromkeys(favoured.split(","), 1)
        drawn = rng.choices(list(weights), list(weights.values()))[0]
        return MOVES[drawn].draw(self, sch, names)

    def nest(self, sch: Schedule, names: list[str]) -> tuple[str, list[For]]:
        """A block and the loops around it."""
        name = self.rng.choice(names)
        return name, sch.loops_above(name)

    def loop(self, sch: Schedule, names: list[str]) -> tuple[tuple[str, int], For] | None:
        """A loop around a block, as actions name it, and itself."""
        name, loops = self.nest(sch, names)
        if not loops:
            return None
        position = self.rng.randrange(len(loops))
        return (name, position), loops[position]

    def block_and_place(self, sch: Schedule, names: list[str], partners: Callable[[str], list[str]]) -> Action | None:
        """(block, a loop mostly of its partners, whether to keep unit loops, an index) of a block to move."""
        rng = self.rng
        fitting = [n for n in names if partners(n)]
        if not fitting and rng.random() < 0.9:
            return None
        block = rng.choice(fitting or names)
        near = partners(block)
        name = rng.choice(near if near and rng.random() < 0.95 else names)
        loops = sch.loops_above(name)
        where = (name, rng.randrange(len(loops))) if loops else None
        index = rng.choice([-1, -1, -1, -2, 0, 1])
        return where and (block, where, rng.random() < 0.3, index)


def may_copy(sch: Schedule, loop: For) -> bool:
    """True where statements are not copied too often when the loop is vectorized or unrolled."""
    if not isinstance(loop.extent, IntImm):
        return True
    index, copies = sch.index, loop.extent.value
    above = [s for s in index.path_to(loop) if isinstance(s, For) and s is not loop]
    below = [s for s in index.loops.values() if loop in index.path_to(s) and s is not loop]
    for s in (*above, *below):
        if s.kind in (UNROLLED, VECTORIZED) and isinstance(s.extent, IntImm):
            copies *= max(s.extent.value, 1)
    return copies <= MOST_COPIES


def allocated(sch: Schedule, names: list[str]) -> list[tuple[str, str, int]]:
    """(block, "read" or "write", position) of the buffers that the function allocates."""
    arguments = {id(b) for b in sch.func.buffers}
    return [(n, kind, k) for n in names for kind in ("read", "write")
            for k, r in enumerate(getattr(sch.realize(n).block, f"{kind}s")) if id(r.buffer) not in arguments]
