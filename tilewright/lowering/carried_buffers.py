"""Keeps values alive that an iteration of a serial loop leaves in a buffer for the next one."""
from __future__ import annotations

from dataclasses import dataclass, field

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.regions import covers
from tilewright.lowering.conditions import conjuncts, is_likely
from tilewright.lowering.hulls import Hull, hull_of, join_hulls
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.walking import expressions, free_vars, map_stmts, uses_any
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.equal import structural_equal
from tilewright.tir.expr import Expr, Var
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import (
    SERIAL,
    UNROLLED,
    Allocate,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
)


def lift_carried_buffers(func: PrimFunc) -> PrimFunc:
    """An allocation inside a serial loop is written, in each iteration, before and wherever it is read.

    Where that is not shown, the allocation moves out of the loop. It never leaves a parallel or bound loop:
    its iterations have no order, so nothing is carried from one to the next. Expects loops with N-dimensional
    allocations (after lower_blocks).
    """
    return func.with_body(_visit(func.body, analyzer_for(func)))


def _visit(stmt: Stmt, analyzer: Analyzer) -> Stmt:
    if not isinstance(stmt, For):
        return map_stmts(stmt, lambda s: _visit(s, analyzer))
    with loop_scope(analyzer, stmt.loop_var, stmt.min, stmt.extent):
        new = map_stmts(stmt, lambda s: _visit(s, analyzer))
        return _lift(new, analyzer) if isinstance(new, For) else new


def _lift(new: For, analyzer: Analyzer) -> Stmt:
    if new.kind not in (SERIAL, UNROLLED) or not isinstance(new.body, Allocate):
        return new
    kept: list[Allocate] = []
    lifted: list[Allocate] = []
    body: Stmt = new.body
    while isinstance(body, Allocate):
        (kept if _is_fresh(body, analyzer) else lifted).append(body)
        body = body.body
    if not lifted:
        return new
    for a in reversed(kept):
        body = a.replace(body=body)
    out: Stmt = new.replace(body=body)
    for a in reversed(lifted):
        out = a.replace(body=out)
    return out


@dataclass
class _Accesses:
    """The reads of one buffer, and what is surely written ahead of the first one."""
    buffer: Buffer
    domains: dict[Var, Hull] = field(default_factory=dict)
    lets: set[Var] = field(default_factory=set)
    written: list[tuple[Expr, ...]] = field(default_factory=list)
    read: list[tuple[Expr, ...]] = field(default_factory=list)
    asked: list[Expr] = field(default_factory=list)                  # the conditions around the writes
    given: list[tuple[Expr, ...]] = field(default_factory=list)      # for each read, the conditions around it
    escapes: bool = False

    def visit(self, stmt: Stmt, sure: bool, around: tuple[Expr, ...] = ()) -> None:
        """`sure`: the statement runs in every iteration of the loops around it, likely guards (`around`) aside."""
        for e in expressions(stmt):
            for node in walk(e):
                if isinstance(node, Load) and node.buffer is self.buffer:
                    self.read.append(node.indices)
                    self.given.append(around)
                elif node is self.buffer.data:
                    self.escapes = True
        match stmt:
            case Store(buffer, _, indices):
                if buffer is self.buffer and sure and not self.read:
                    self.written.append(indices)
                    self.asked += around
            case For(var, low, extent):
                self.domains[var] = (low, extent)
                self.visit(stmt.body, sure, around)
            case LetStmt(var):
                self.lets.add(var)
                self.visit(stmt.body, sure, around)
            case IfThenElse(cond, then, other):
                self.visit(then, sure and (is_likely(cond) or self.happens(cond)), (*around, *conjuncts(cond)))
                if other is not None:
                    self.visit(other, False, around)
            case Seq(stmts):
                for s in stmts:
                    self.visit(s, sure, around)
            case Allocate():
                self.visit(stmt.body, sure, around)
            case _ if hasattr(stmt, "body"):
                self.visit(stmt.body, False, around)

    def misses_writes(self, analyzer: Analyzer) -> bool:
        """True when a read may run in an iteration in which a condition keeps all of a write from running.

        A condition lets some of it run when it holds where the inner loops begin: that is how tiles are ragged.
        """
        given = [[self.at_begin(g, analyzer) for g in around] for around in self.given]
        return not all(analyzer.prove(c) or all(any(structural_equal(c, g) for g in around) for around in given)
                       for c in (self.at_begin(c, analyzer) for c in self.asked if not self.happens(c)))

    def at_begin(self, cond: Expr, analyzer: Analyzer) -> Expr:
        """The condition in the first iteration of the inner loops."""
        lows = {v: self.domains[v][0] for v in free_vars(cond) if v in self.domains}
        return analyzer.simplify(substitute(cond, lows))

    def happens(self, cond: Expr) -> bool:
        """True for a condition on inner loops alone, such as `k == 0` around the start of a reduction."""
        return all(v in self.domains for t in conjuncts(cond) for v in free_vars(t))


def _is_fresh(s: Allocate, analyzer: Analyzer) -> bool:
    """True when each element read in an iteration was written in the same iteration."""
    found = _Accesses(s.buffer)
    found.visit(s.body, True)
    if found.escapes:
        return False
    if not found.read:
        return True
    if not found.written or found.misses_writes(analyzer):
        return False
    for d in range(s.buffer.ndim):
        written = [_along(i, d, found, analyzer) for i in found.written]
        read = [_along(i, d, found, analyzer) for i in found.read]
        known_written, known_read = [h for h in written if h], [h for h in read if h]
        if len(known_written) < len(written) or len(known_read) < len(read):
            return False
        if not covers([join_hulls(known_written, analyzer)], [join_hulls(known_read, analyzer)], analyzer):
            return False
    return True


def _along(indices: tuple[Expr, ...], d: int, found: _Accesses, analyzer: Analyzer) -> Hull | None:
    return None if uses_any(indices[d], found.lets) else hull_of(indices[d], found.domains, analyzer)
