"""Writes out the iterations of unrolled loops, and of the loops that address register tiles."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.lowering.code_size import MAX_CODE, code_size
from tilewright.lowering.copying import specialize
from tilewright.lowering.options import PassOptions
from tilewright.lowering.scopes import is_small
from tilewright.lowering.walking import map_stmts
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import IntImm
from tilewright.tir.node import statements, walk
from tilewright.tir.stmt import SERIAL, UNROLLED, Allocate, Evaluate, For, PrimFunc, Stmt, Store, seq
from tilewright.tir.symbols import expressions, uses_any

MAX_STATEMENTS = 1024       # an unrolled loop that would hold more statements stays a loop
MAX_TILE_STATEMENTS = 64
AUTO_UNROLL = "pragma_auto_unroll_max_step"
EXPLICIT = "pragma_unroll_explicit"


def unroll(func: PrimFunc, options: PassOptions | None = None, target: Target | None = None) -> PrimFunc:
    """No unrolled loops are left: their iterations follow each other, the loop variable a constant in each. Nor are
    serial loops of one iteration.

    The same happens to short serial loops of vector statements that address a small private buffer: its
    indices become constants, so that it can live in registers. A loop of symbolic extent, of too many
    statements or of too much code, with that of the loops before it, becomes serial. Below a loop with the
    pragma auto_unroll_max_step, serial loops that make at most so many statements are written out as well. A serial
    loop with the pragma unroll_explicit of 0 is left to the code generator.
    """
    unrolling = _Unrolling(lambda: target.feature_set if target is not None else frozenset())
    return func.with_body(unrolling.visit(func.body, (), 0))


class _Unrolling:
    """`made`: the code of the copies so far: all that a function has count together."""

    def __init__(self, features: Callable[[], frozenset[str]]) -> None:
        self.features = features
        self.made = 0

    def visit(self, stmt: Stmt, tiles: tuple[Buffer, ...], max_step: int) -> Stmt:
        if isinstance(stmt, Allocate) and is_small(stmt.buffer):
            return map_stmts(stmt, lambda s: self.visit(s, (*tiles, stmt.buffer), max_step))
        if isinstance(stmt, For):
            max_step = stmt.annotations.get(AUTO_UNROLL, max_step)
        new = map_stmts(stmt, lambda s: self.visit(s, tiles, max_step))
        if not isinstance(new, For):
            return new
        once = isinstance(new.extent, IntImm) and new.extent.value <= 1 and not new.annotations
        if new.kind == UNROLLED or new.kind == SERIAL and once:
            return self._written_out(new, MAX_STATEMENTS)
        if new.kind == SERIAL and new.annotations.get(EXPLICIT, 1) == 0:
            return new
        if new.kind == SERIAL and max_step:
            return self._written_out(new, max_step)
        if new.kind == SERIAL and tiles and _addresses_tile(new, tiles):
            return self._written_out(new, MAX_TILE_STATEMENTS)
        return new

    def _written_out(self, s: For, limit: int) -> Stmt:
        if not isinstance(s.extent, IntImm) or s.extent.value * _size(s.body) > limit:
            return s.replace(kind=SERIAL)
        steps = [binary("add", s.min, IntImm(n, s.min.dtype)) for n in range(s.extent.value)]
        last = len(steps) - 1
        written = [specialize(s.body, {s.loop_var: at}, fresh=True) if n < last else
                   specialize(s.body, {s.loop_var: at}) for n, at in enumerate(steps)]
        # one part is left of a choice by the variable
        copies = last * code_size(written[0], self.features) if last > 0 else 0
        if self.made + copies > MAX_CODE:
            return s.replace(kind=SERIAL)
        self.made += copies
        return seq(written)


def _size(stmt: Stmt) -> int:
    return sum(isinstance(s, (Store, Evaluate)) for s in statements(stmt))


def _addresses_tile(s: For, tiles: tuple[Buffer, ...]) -> bool:
    """True when all stores below s are vectors and the loop variable addresses one of tiles."""
    found = False
    for stmt in statements(s.body):
        if isinstance(stmt, For):
            return False
        if not isinstance(stmt, Store):
            continue
        if dt.lanes_of(stmt.value.dtype) == 1:
            return False
        accesses: list[Store | Load] = [stmt]
        for e in expressions(stmt):
            accesses.extend(n for n in walk(e) if isinstance(n, Load))
        found = found or any(a.buffer in tiles and uses_any(a.indices[0], {s.loop_var}) for a in accesses)
    return found
