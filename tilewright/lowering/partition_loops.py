"""Splits loops where guards below them start to fail: a body without guards, and one guarded tail."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright import tir
from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.affine import relax
from tilewright.lowering.conditions import guard, is_likely, is_nop, likely
from tilewright.lowering.copying import specialize
from tilewright.lowering.guards import Guard, covers, first_false, guards_below, split_level, without_guards
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.walking import map_stmts
from tilewright.tir.arithmetic import all_of, binary, maximum, minimum
from tilewright.tir.conversion import cast
from tilewright.tir.interp.threads import has_barrier
from tilewright.tir.node import Node, rewrite, statements, walk
from tilewright.tir.stmt import seq
from tilewright.tir.symbols import expressions, uses_any

TAIL_STORES = 16            # a tail with more stores than this, unrolled, is not split again
LARGE_TAIL_STORES = 128     # and one with more than this is not unrolled


def partition_loops(func: tir.PrimFunc) -> tir.PrimFunc:
    """Guards (`likely` conditions) linear in a loop variable are gone from the main part of its loop.

        for i in range(n):                     for i in range(m // 8): ...             (no guard)
            ... if likely(i * 8 + ii < m)  ->  for i in range(m // 8, n): ... if likely(i * 8 + ii < m)

    A guard is split off at the loop just outside of the tile that it cuts. Serial loops become two loops, or a loop
    and a branch where the second one would run once at most; parallel ones (and serial ones where the guard is not
    linear in the variable) branch inside. Loops whose every iteration is guarded by their own variable get a smaller
    extent instead. The code grows by one tail per axis: tails of unrolled tiles are not split again, and those of very
    large ones are loops.
    """
    if not any(is_likely(e) for s in statements(func.body) for x in expressions(s) for e in walk(x)
               if type(e) is tir.Call):
        return func
    return func.with_body(_Partition(analyzer_for(func, settled=True)).visit(func.body))


@dataclass
class _Bound:
    """guard holds for all inner iterations when the variable is below `all`, for none from `some` on."""
    guard: Guard
    all: tir.Expr
    some: tir.Expr


class _Partition:
    """Rewrites statements top-down. In a tail (`tail` is true) loops are only made shorter, never split."""

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def visit(self, stmt: tir.Stmt, tail: bool = False) -> tir.Stmt:
        if type(stmt) is tir.For:
            return self.loop(stmt, tail)
        return map_stmts(stmt, lambda s: self.visit(s, tail))

    def loop(self, s: tir.For, tail: bool) -> tir.Stmt:
        chosen = [g for g in guards_below(s) if uses_any(g.term, {s.loop_var}) and split_level(g) is s]
        if chosen and s.kind != tir.THREAD_BINDING and not has_barrier(s):      # which all threads must meet alike
            new = self.divide(s, chosen, tail)
            if new is None and s.kind in (tir.SERIAL, tir.PARALLEL) and not tail:
                new = self.branch(s, chosen)
            if new is not None:
                return new
        return self.inside(s, tail)

    def inside(self, s: tir.For, tail: bool) -> tir.Stmt:
        with loop_scope(self.analyzer, s.loop_var, s.min, s.extent):
            body = self.visit(s.body, tail)
        return s if body is s.body else tir.NOP if is_nop(body) else s.replace(body=body)

    def divide(self, s: tir.For, guards: list[Guard], tail: bool) -> tir.Stmt | None:
        """The loop up to the first failing guard, and the rest; None where that is not to be done."""
        bounds = [b for g in guards if (b := self.bound(s, g)) is not None]
        if not bounds:
            return None
        simplify, prove, start = self.analyzer.simplify, self.analyzer.prove, s.min
        last = simplify(_fold(minimum, [b.all for b in bounds]))
        own = all(b.all is b.some for b in bounds)           # no inner loop takes part: all cut exactly here
        covered = covers(s, [b.guard for b in bounds])
        exact = own and covered and prove(binary("le", self.nothing_after(s, bounds), last))
        stop = simplify(binary("add", start, s.extent))
        if tail and not (own and (exact or isinstance(last, tir.IntImm))):
            return self.shortened(s, bounds, stop) if covered and s.kind == tir.SERIAL else None
        if s.kind == tir.PARALLEL and not exact:
            return None
        if prove(binary("le", stop, last)):
            return self.loop(self.freed(s, bounds), tail)
        end = simplify(minimum(stop, self.nothing_after(s, bounds))) if covered else stop
        main = simplify(minimum(end, last))
        if prove(binary("le", main, start)):
            shorter = covered and isinstance(end, tir.IntImm) and end is not stop
            return self.part(s, start, end, tail, again=False) if shorter else None
        if not prove(binary("ge", main, start)):
            main = simplify(maximum(main, start))
        if s.kind in (tir.UNROLLED, tir.VECTORIZED) and not (exact and _fits(s, start, main)):
            return None
        body = self.part(self.freed(s, bounds), start, main, tail, again=True)
        if exact:
            return body
        once = self.at_most_once(s, bounds, last, main, end, tail)
        if once is not None:
            return seq([body, once])
        var = tir.Var(s.loop_var.name, s.loop_var.type)
        rest = s.replace(loop_var=var, body=_tail_of(specialize(s.body, {s.loop_var: var}, fresh=True)))
        return seq([body, self.part(rest, main, end, tail or _weight(s.body) > TAIL_STORES, again=False)])

    def at_most_once(self, s: tir.For, bounds: list[_Bound], last: tir.Expr, main: tir.Expr, end: tir.Expr,
                     tail: bool) -> tir.Stmt | None:
        """The iterations main, ..., end - 1 of s, of which `last` alone may be one and this depends on loops outside;
        None where that is not so. Guards below are seen to hold or not once the variable has a value."""
        once = binary("le", self.nothing_after(s, bounds), binary("add", last, 1))
        constant = isinstance(self.analyzer.simplify(binary("sub", end, main)), tir.IntImm)
        if constant or last.dtype != s.loop_var.type or not self.analyzer.prove(once) \
                or not covers(s, [b.guard for b in bounds]):
            return None
        inside = [t for t in (binary("le", s.min, last), binary("lt", last, end)) if not self.analyzer.prove(t)]
        rest = _tail_of(specialize(s.body, {s.loop_var: last}, fresh=True))
        return guard(all_of(*inside), self.visit(rest, tail or _weight(s.body) > TAIL_STORES))

    def shortened(self, s: tir.For, bounds: list[_Bound], stop: tir.Expr) -> tir.Stmt | None:
        """The loop without the iterations that have no effect, in a tail; None where there are none."""
        simplify, prove = self.analyzer.simplify, self.analyzer.prove
        end = simplify(minimum(stop, self.nothing_after(s, bounds)))
        if end is stop or prove(binary("le", stop, end)):
            return None
        if not prove(binary("ge", end, s.min)):
            end = simplify(maximum(end, s.min))
        return self.part(s, s.min, end, True, again=False)

    def nothing_after(self, s: tir.For, bounds: list[_Bound]) -> tir.Expr:
        """From here on no iteration of s has an effect: all of it is under the guards of bounds."""
        alone = [b.some for b in bounds if covers(s, [b.guard])]
        return _fold(minimum, alone) if alone else _fold(maximum, [b.some for b in bounds])

    def part(self, s: tir.For, start: tir.Expr, end: tir.Expr, tail: bool, again: bool) -> tir.Stmt:
        """Iterations start, ..., end - 1 of s; `again`: look for other guards to split off at this loop."""
        extent = self.analyzer.simplify(binary("sub", end, start))
        own = s.loop_var.type
        if extent.dtype != own:                              # a guard of another width cut the loop, inside its range
            start, extent = cast(own, start), cast(own, maximum(extent, 0))
        if isinstance(extent, tir.IntImm) and extent.value <= 0:
            return tir.NOP
        if isinstance(extent, tir.IntImm) and extent.value == 1:
            return self.visit(specialize(s.body, {s.loop_var: start}), tail)
        new = s.replace(min=start, extent=extent)
        return self.loop(new, tail) if again else self.inside(new, tail)

    def branch(self, s: tir.For, guards: list[Guard]) -> tir.Stmt | None:
        """`if all guards hold: body without them; else: body` inside a loop that stays whole."""
        dropped: list[_Bound] = []
        for g in guards:
            inner = g.loops[1:]
            worst = relax(g.term, inner, True)
            if worst is not None and uses_any(g.term, {f.loop_var for f in inner}):
                dropped.append(_Bound(g, worst, worst))
        if not dropped:
            return None
        with loop_scope(self.analyzer, s.loop_var, s.min, s.extent):
            return self.branched(s, dropped)

    def branched(self, s: tir.For, dropped: list[_Bound]) -> tir.Stmt | None:
        terms: list[tir.Expr] = []
        for b in _distinct([b.all for b in dropped]):
            term = self.analyzer.simplify(b)
            if not isinstance(term, tir.IntImm):
                terms.append(term)
            elif not term.value:
                return None
        main = self.visit(self.freed(s, dropped).body)
        if not terms:
            return s.replace(body=main)
        tail = _tail_of(specialize(s.body, self.only_value(s, terms), fresh=True))
        rest = self.visit(tail, _weight(s.body) > TAIL_STORES)
        return s.replace(body=guard(likely(terms), main, rest))

    def only_value(self, s: tir.For, terms: list[tir.Expr]) -> dict[tir.Var, tir.Expr]:
        """The loop variable's value where terms fail, if there is just one."""
        first = first_false(terms[0], s.loop_var) if len(terms) == 1 else None
        if first is None:
            return {}
        first = self.analyzer.simplify(first)
        stop = self.analyzer.simplify(binary("add", s.min, s.extent))
        known = isinstance(stop, tir.IntImm) and isinstance(first, tir.IntImm) and stop.value - first.value == 1
        return {s.loop_var: first} if known else {}

    @staticmethod
    def freed(s: tir.For, bounds: list[_Bound]) -> tir.For:
        """s without the guards of bounds."""
        return s.replace(body=without_guards(s.body, [b.guard for b in bounds]))

    def bound(self, s: tir.For, g: Guard) -> _Bound | None:
        """The first values of the loop variable for which the guard fails somewhere, and everywhere."""
        inner = g.loops[1:]
        worst, best = relax(g.term, inner, True), relax(g.term, inner, False)
        if worst is None or best is None:
            return None
        upper = first_false(worst, s.loop_var)
        if upper is None:
            return None
        upper = self.analyzer.simplify(upper)
        if worst is best or not uses_any(g.term, {f.loop_var for f in inner}):
            return _Bound(g, upper, upper)
        some = first_false(best, s.loop_var)
        return None if some is None else _Bound(g, upper, self.analyzer.simplify(some))


def _fold(fn: Callable[[tir.Expr, tir.Expr], tir.Expr], values: list[tir.Expr]) -> tir.Expr:
    distinct = _distinct(values)
    out = distinct[0]
    for v in distinct[1:]:
        out = fn(out, v)
    return out


def _distinct(values: list[tir.Expr]) -> list[tir.Expr]:
    out: list[tir.Expr] = []
    for v in values:
        if not any(bool(v == w) for w in out):
            out.append(v)
    return out


def _fits(s: tir.For, start: tir.Expr, end: tir.Expr) -> bool:
    """True when an unrolled or vectorised loop may get the constant extent end - start."""
    if not isinstance(start, tir.IntImm) or not isinstance(end, tir.IntImm):
        return False
    count = end.value - start.value
    return s.kind == tir.UNROLLED or count == 1 or count % 4 == 0


def _tail_of(body: tir.Stmt) -> tir.Stmt:
    """The body of a loop, which runs rarely: unrolled loops of many stores are serial in it."""
    if _weight(body) <= LARGE_TAIL_STORES:
        return body

    def change(node: Node) -> Node | None:
        return node.replace(kind=tir.SERIAL) if isinstance(node, tir.For) and node.kind == tir.UNROLLED else None

    out = rewrite(body, change)
    assert isinstance(out, tir.Stmt)
    return out


def _weight(stmt: tir.Stmt) -> int:
    """Stores of a statement after unrolling."""
    match stmt:
        case tir.Store() | tir.Evaluate():
            return 1
        case tir.For(kind=kind, extent=tir.IntImm(count)) if kind == tir.UNROLLED:
            return count * _weight(stmt.body)
        case tir.Seq(stmts):
            return sum(map(_weight, stmts))
        case tir.IfThenElse(_, then, other):
            return _weight(then) + (_weight(other) if other is not None else 0)
        case _:
            return _weight(stmt.body) if hasattr(stmt, "body") else 0

