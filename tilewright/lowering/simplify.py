"""Simplifies the expressions of a flat function under its loop ranges and the conditions around them."""
from __future__ import annotations

from tilewright import tir
from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.conditions import guard, is_likely, is_nop, likely, terms_of
from tilewright.lowering.copying import specialize
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.walking import map_stmts, same_items
from tilewright.tir.node import walk
from tilewright.tir.stmt import seq


def simplify(func: tir.PrimFunc) -> tir.PrimFunc:
    """Indices, extents, conditions and values are in the analyzer's canonical form.

    Conjuncts of a guard that are proven vanish, branches never taken and loops without iterations as well;
    a loop proven to run once becomes its body.
    """
    return func.with_body(_Simplifier(analyzer_for(func, settled=True)).visit(func.body))


_DECIDABLE = ("if_then_else", "floordiv", "floormod", "min", "max", "likely")


class _Simplifier:
    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def visit(self, stmt: tir.Stmt) -> tir.Stmt:
        match stmt:
            case tir.Store():
                return self.store(stmt)
            case tir.For():
                return self.loop(stmt)
            case tir.IfThenElse():
                return self.branch(stmt)
            case tir.Seq(stmts):
                new = [self.visit(s) for s in stmts]
                return stmt if same_items(new, stmts) else seq(new)
            case tir.Evaluate(value):
                simple = self.value(value)
                return stmt if simple is value else tir.Evaluate(simple)
            case tir.LetStmt(var, value, body):
                simple, new_body = self.value(value), self.visit(body)
                return stmt if simple is value and new_body is body else tir.LetStmt(var, simple, new_body)
            case tir.While(cond, body):
                new_body = self.visit(body)
                return stmt if new_body is body else tir.While(cond, new_body)
            case _:
                return map_stmts(stmt, self.visit)

    def value(self, e: tir.Expr) -> tir.Expr:
        with self.analyzer.places(False):
            return self.analyzer.simplify(e)

    def store(self, s: tir.Store) -> tir.Stmt:
        simplify = self.analyzer.simplify
        value, index = self.value(s.value), tuple([simplify(i) for i in s.indices])
        predicate = None if s.predicate is None else simplify(s.predicate)
        if value is s.value and predicate is s.predicate and same_items(index, s.indices):
            return s
        return tir.Store(s.buffer, value, index, predicate)

    def loop(self, s: tir.For) -> tir.Stmt:
        low, extent = self.analyzer.simplify(s.min), self.analyzer.simplify(s.extent)
        if isinstance(extent, tir.IntImm):
            if extent.value <= 0:
                return tir.NOP
            if extent.value == 1 and s.kind != tir.THREAD_BINDING:
                return self.visit(specialize(s.body, {s.loop_var: low}))
        with loop_scope(self.analyzer, s.loop_var, low, extent):
            body = self.visit(s.body)
        if is_nop(body):
            return tir.NOP
        return s if low is s.min and extent is s.extent and body is s.body else s.replace(
            min=low, extent=extent, body=body)

    def branch(self, s: tir.IfThenElse) -> tir.Stmt:
        terms: list[tir.Expr] = []
        guards = is_likely(s.condition)                  # of a loop that was split: about its variables, not values
        for old in terms_of(s.condition):
            term = self.analyzer.simplify(old) if guards else self.value(old)
            if isinstance(term, tir.IntImm):
                if term.value:
                    continue
                return tir.NOP if s.else_case is None else self.visit(s.else_case)
            terms.append(term)
        if not terms:
            return self.visit(s.then_case)
        marked = likely(terms)
        cond = marked if guards else marked.args[0]  # type: ignore[attr-defined]
        if s.else_case is None and isinstance(s.then_case, tir.Store) and not _mentions(s.then_case, terms):
            then = self.visit(s.then_case)
        else:
            with self.analyzer.branch(cond):
                then = self.visit(s.then_case)
        other = None if s.else_case is None else self.visit(s.else_case)
        return guard(cond, then, other)


def _mentions(store: tir.Store, terms: list[tir.Expr]) -> bool:
    """True when a condition inside the store could be decided by terms: it holds divisions or choices."""
    for e in (store.value, *store.indices):
        for node in walk(e):
            name = getattr(node, "op", "")
            if name in _DECIDABLE or hasattr(node, "condition"):
                return True
    return False

