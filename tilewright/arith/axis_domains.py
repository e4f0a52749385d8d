"""Block axes that leave their domain: found where one iteration that certainly runs gives such a value.

The iterations tried are the corners of the loops around a block. Every loop whose extent is a number for all that
stands around it is taken to run at least once: a function is not refused for what it does with sizes that leave it
nothing to do.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.linear import linear
from tilewright.tir.accesses import reads_memory
from tilewright.tir.arithmetic import binary, logical_not
from tilewright.tir.expr import Call, Expr, IntImm, Let, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import sub_statements, substitute, walk
from tilewright.tir.stmt import BlockRealize, For, IfThenElse, LetStmt, PrimFunc, Stmt, While

Step = For | LetStmt | Expr | BlockRealize          # what stands around a block; an Expr holds below it


@dataclass(frozen=True)
class Departure:
    """An axis of a block, given a value outside of its domain in one iteration."""
    realize: BlockRealize
    axis: IterVar
    bound_to: Expr                                  # the value, in loop variables
    value: Expr                                     # in that iteration
    low: Expr                                       # the domain there, low <= axis <= last
    last: Expr
    below: bool

    def __str__(self) -> str:
        return (f"axis {self.axis.var.name} of block {self.realize.block.name} reaches {self.value}, "
                f"outside its domain {self.low} to {self.last}")

    @property
    def hint(self) -> str:
        dom = self.axis.dom
        assert dom is not None
        inside = binary("ge", self.bound_to, dom.min) if self.below else binary(
            "lt", self.bound_to, binary("add", dom.min, dom.extent))
        return f"let the domain hold all values that the loops give, or keep the others out: T.where({inside})"


def departures(func: PrimFunc) -> Iterator[Departure]:
    """The axes of func that are shown to leave their domain, one for each block at most."""
    analyzer = Analyzer()
    for buffer in func.buffers:
        for e in buffer.shape:
            for n in walk(e):
                if isinstance(n, Var):
                    analyzer.assume_nonneg(n)
    for realize, around in _blocks(func.body, ()):
        yield from itertools.islice(_leaving(realize, around, analyzer), 1)


def _blocks(stmt: Stmt, around: tuple[Step, ...]) -> Iterator[tuple[BlockRealize, tuple[Step, ...]]]:
    """Each block with axes, and what stands around it; none below a While, which may not run."""
    if isinstance(stmt, While):
        return
    if isinstance(stmt, IfThenElse):
        yield from _blocks(stmt.then_case, (*around, stmt.condition))
        if stmt.else_case is not None:
            yield from _blocks(stmt.else_case, (*around, logical_not(stmt.condition)))
        return
    if isinstance(stmt, BlockRealize):
        if stmt.iter_values:
            yield stmt, around
        around = (*around, stmt)
    elif isinstance(stmt, (For, LetStmt)):
        around = (*around, stmt)
    for below in sub_statements(stmt):
        yield from _blocks(below, around)


def _leaving(realize: BlockRealize, around: Sequence[Step], analyzer: Analyzer) -> Iterator[Departure]:
    loops = {s.loop_var: s for s in around if isinstance(s, For)}
    for iv, bound_to in realize.bound:
        if _is_whole(iv, bound_to, loops.get(bound_to) if isinstance(bound_to, Var) else None) or _is_data(bound_to):
            continue
        for high in _corners(bound_to):
            with analyzer.scope():
                table = _iteration(around, high, analyzer)
                if table is None or not analyzer.prove(substitute(realize.predicate, table)):
                    continue
                value, low, extent = (analyzer.simplify(substitute(e, table))
                                      for e in (bound_to, iv.domain.min, iv.domain.extent))
                last = analyzer.simplify(binary("sub", binary("add", low, extent), 1))
                below = analyzer.prove(binary("lt", value, low))
                if below or analyzer.prove(binary("gt", value, last)):
                    yield Departure(realize, iv, bound_to, value, low, last, below)
                    break


def _is_whole(iv: IterVar, bound_to: Expr, loop: For | None) -> bool:
    """True for the common case: the variable of a loop over the domain."""
    return loop is not None and all(a is b or isinstance(a, IntImm) and isinstance(b, IntImm) and a.value == b.value
                                    for a, b in ((loop.min, iv.domain.min), (loop.extent, iv.domain.extent)))


def _is_data(e: Expr) -> bool:
    return reads_memory(e) or any(isinstance(n, (Call, Let)) for n in walk(e))


def _corners(bound_to: Expr) -> Iterator[Callable[[Var], bool]]:
    """Which variables are at their greatest value where an affine bound_to is greatest, and where it is least."""
    terms, _ = linear(bound_to)
    yield lambda v: terms.get(v, 1) > 0
    yield lambda v: terms.get(v, 1) < 0


def _iteration(around: Sequence[Step], high: Callable[[Var], bool], analyzer: Analyzer) -> dict[Var, Expr] | None:
    """The values of the variables around a block in a corner of its loops; None where it may not run there.

    analyzer learns that the loops of symbolic extent run.
    """
    table: dict[Var, Expr] = {}
    for step in around:
        if isinstance(step, For):
            low, extent = (analyzer.simplify(substitute(e, table)) for e in (step.min, step.extent))
            runs = binary("gt", extent, 0)
            fixed = not any(n in table for n in walk(step.extent)) and not _is_data(extent)
            if fixed and not isinstance(extent, IntImm):
                analyzer.assume(runs)
            elif not analyzer.prove(runs):
                return None
            table[step.loop_var] = binary("sub", binary("add", low, extent), 1) if high(step.loop_var) else low
        elif isinstance(step, LetStmt):
            if not _is_data(step.value):
                table[step.var] = substitute(step.value, table)
        elif isinstance(step, BlockRealize):
            if not analyzer.prove(substitute(step.predicate, table)):
                return None
            pairs = step.bound
            table |= {iv.var: substitute(v, table) for iv, v in pairs if not _is_data(v)}
        elif not analyzer.prove(substitute(step, table)):
            return None
    return table
