"""Splits loops at the point where guards below them start to fail: a body without guards and one guarded tail."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.lower.affine import relax, split_linear
from tilewright.lower.copying import (
    Copier,
    conjuncts,
    expressions,
    fresh_copy,
    guard,
    is_likely,
    is_nop,
    likely,
    map_stmts,
    specialize,
    statements,
    uses_any,
)
from tilewright.lower.scopes import analyzer_for, is_small
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Var, binary, const, maximum, minimum
from tilewright.tir.node import walk
from tilewright.tir.stmt import (
    NOP,
    PARALLEL,
    SERIAL,
    UNROLLED,
    VECTORIZED,
    Allocate,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    seq,
)

TAIL_STORES = 16            # a tail with more stores than this, unrolled, is not split again


@dataclass
class _Guard:
    """A conjunct of some `likely` below a loop: the loops from that one to it, and how many of them hold a tile."""
    term: Expr
    loops: list[For]
    outside: int                       # loops[:outside] are outside of the innermost small allocation
    stores: set[int] = field(default_factory=set)


def partition_loops(func: PrimFunc) -> PrimFunc:
    """Guards (`likely` conditions) that are linear in a loop variable no longer stand in the main part of its loop.

        for i in range(n): ... if likely(i * 8 + ii < m)   ->   for i in range(m // 8): ...            (no
        guard)
                                                                for i in range(m // 8, n): ... if
                                                                likely(...)

    A guard is split off at the loop just outside of the tile that it cuts. Serial loops become two loops,
    parallel ones branch inside. Loops whose every iteration is guarded by their own variable get a smaller
    extent instead. The code grows by one tail per axis: tails of unrolled tiles are not split again.
    """
    if not any(is_likely(e) for s in statements(func.body) for x in expressions(s) for e in walk(x)
               if type(e) is Call):
        return func
    return func.with_body(_Partition(analyzer_for(func)).visit(func.body))


class _Partition:
    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer

    def visit(self, stmt: Stmt, tighten_only: bool = False) -> Stmt:
        if type(stmt) is For:
            return self.loop(stmt, tighten_only)
        return map_stmts(stmt, lambda s: self.visit(s, tighten_only))

    def loop(self, s: For, tighten_only: bool) -> Stmt:
        guards = [g for g in _guards_below(s) if uses_any(g.term, (s.loop_var,))]
        chosen = [g for g in guards if _level(g) is s]
        if chosen and s.kind in (SERIAL, UNROLLED, VECTORIZED):
            new = self.divide(s, chosen, tighten_only)
            if new is not None:
                return new
        if chosen and s.kind == PARALLEL and not tighten_only:
            new = self.branch(s, chosen)
            if new is not None:
                return new
        self.analyzer.bind(s.loop_var, s.min, s.extent)
        body = self.visit(s.body, tighten_only)
        return s if body is s.body else NOP if is_nop(body) else s.replace(body=body)

    def divide(self, s: For, guards: list[_Guard], tighten_only: bool) -> Stmt | None:
        """The loop up to the first failing guard, and the rest; None when no guard bounds the loop variable."""
        bounds = [b for g in guards if (b := self.bound(s, g)) is not None]
        if not bounds:
            return None
        simplify, start = self.analyzer.simplify, s.min
        stop = simplify(binary("add", start, s.extent))
        last = simplify(_fold(minimum, [b.all for b in bounds]))
        own = all(b.all is b.some for b in bounds)           # no inner loop takes part: the guard cuts exactly here
        if not isinstance(last, IntImm) and s.kind != SERIAL or tighten_only and not (own and isinstance(last, IntImm)):
            return None
        covered = _covers(s, [b.guard for b in bounds])
        end = stop
        if covered:
            end = simplify(minimum(stop, simplify(_fold(maximum, [b.some for b in bounds]))))
        main = simplify(minimum(end, last))
        if self.analyzer.prove(binary("le", stop, last)):
            return self.visit(_drop(s, bounds), tighten_only)
        if self.analyzer.prove(binary("le", main, start)):
            if end is stop or not isinstance(end, IntImm):
                return None
            return self.rest(s, start, end, fresh=False, tighten_only=tighten_only)
        if not self.analyzer.prove(binary("ge", main, start)):
            main = simplify(maximum(main, start))
        if s.kind != SERIAL:
            exact = own and covered and isinstance(main, IntImm) and isinstance(start, IntImm)
            if not exact or (s.kind == VECTORIZED and not _good_lanes(main.value - start.value)):  # type: ignore[attr-defined]
                return None
        body = self.visit_loop(_drop(s, bounds), start, main, tighten_only)
        if own and covered:
            return body
        heavy = tighten_only or _weight(s.body) > TAIL_STORES
        tail = self.rest(s, main, end, fresh=True, tighten_only=heavy)
        return seq([body, tail])

    def rest(self, s: For, start: Expr, end: Expr, fresh: bool, tighten_only: bool) -> Stmt:
        """The iterations start, ..., end - 1 of s, guards kept."""
        extent = self.analyzer.simplify(binary("sub", end, start))
        if isinstance(extent, IntImm) and extent.value <= 0:
            return NOP
        var = Var(s.loop_var.name, s.loop_var.type) if fresh else s.loop_var
        one = isinstance(extent, IntImm) and extent.value == 1
        value = start if one else var
        body = fresh_copy(s.body, {s.loop_var: value}) if fresh else specialize(s.body, {s.loop_var: value} if one else {})
        if one:
            return self.visit(body, tighten_only)
        return self.visit_loop(s.replace(loop_var=var, body=body), start, end, tighten_only, inner_only=True)

    def visit_loop(self, s: For, start: Expr, end: Expr, tighten_only: bool, inner_only: bool = False) -> Stmt:
        extent = self.analyzer.simplify(binary("sub", end, start))
        if isinstance(extent, IntImm) and extent.value <= 0:
            return NOP
        if isinstance(extent, IntImm) and extent.value == 1:
            return self.visit(specialize(s.body, {s.loop_var: start}), tighten_only)
        new = s.replace(min=start, extent=extent)
        if not inner_only:
            return self.loop(new, tighten_only)
        self.analyzer.bind(s.loop_var, start, extent)
        body = self.visit(s.body, tighten_only)
        return NOP if is_nop(body) else new.replace(body=body)

    def branch(self, s: For, guards: list[_Guard]) -> Stmt | None:
        """`if every guard holds: body without them; else: body` inside a loop that stays whole."""
        holds: list[Expr] = []
        dropped: list[_Bound] = []
        for g in guards:
            worst = relax(g.term, g.loops[1:], True)
            if worst is None or not uses_any(worst, (s.loop_var,)):
                continue
            dropped.append(_Bound(g, worst, worst))
            holds.append(worst)
        if not dropped:
            return None
        self.analyzer.bind(s.loop_var, s.min, s.extent)
        terms = [t for t in map(self.analyzer.simplify, _distinct(holds)) if not isinstance(t, IntImm) or not t.value]
        main = self.visit(_drop(s, dropped).body)  # type: ignore[attr-defined]
        if not terms:
            return s.replace(body=main)
        if any(isinstance(t, IntImm) for t in terms):
            return None
        heavy = _weight(s.body) > TAIL_STORES
        tail = self.visit(fresh_copy(s.body, self.only_value(s, terms)), heavy)
        return s.replace(body=guard(likely(terms), main, tail))

    def only_value(self, s: For, terms: list[Expr]) -> dict[Var, Expr]:
        """The loop variable's value where terms fail, if there is just one."""
        stop = self.analyzer.simplify(binary("add", s.min, s.extent))
        first = _first_false(terms[0], s.loop_var) if len(terms) == 1 and isinstance(terms[0], Binary) else None
        if first is None:
            return {}
        first = self.analyzer.simplify(first)
        known = isinstance(stop, IntImm) and isinstance(first, IntImm) and stop.value - first.value == 1
        return {s.loop_var: first} if known else {}

    def bound(self, s: For, g: _Guard) -> _Bound | None:
        """The first values of the loop variable for which the guard fails somewhere, and everywhere."""
        inner = g.loops[1:]
        worst, best = relax(g.term, inner, True), relax(g.term, inner, False)
        if worst is None or best is None:
            return None
        upper = _first_false(worst, s.loop_var)
        if upper is None:
            return None
        upper = self.analyzer.simplify(upper)
        if worst is best or not uses_any(g.term, {f.loop_var for f in inner}):
            return _Bound(g, upper, upper)
        some = _first_false(best, s.loop_var)
        return None if some is None else _Bound(g, upper, self.analyzer.simplify(some))


@dataclass
class _Bound:
    """guard holds for all inner iterations when the variable is below `all`, for none from `some` on."""
    guard: _Guard
    all: Expr
    some: Expr


def _guards_below(s: For) -> list[_Guard]:
    """The conjuncts of every `likely` below s; `stores` are the ids of the statements under each."""
    out: list[_Guard] = []
    lets = {x.var for x in statements(s.body) if isinstance(x, LetStmt)}

    def found(terms: Iterable[Expr], loops: list[For], outside: int, under: Stmt | None) -> None:
        for term in terms:
            if uses_any(term, lets) or any(isinstance(n, Load) for n in walk(term)):
                continue
            stores = {id(x) for x in statements(under)} if under is not None else set()
            out.append(_Guard(term, loops, outside, stores))

    def visit(stmt: Stmt, loops: list[For], outside: int) -> None:
        match stmt:
            case For():
                inside = [*loops, stmt]
                visit(stmt.body, inside, outside)
            case IfThenElse(cond, then, other):
                if is_likely(cond):
                    found(conjuncts(cond), loops, outside, then)
                visit(then, loops, outside)
                if other is not None:
                    visit(other, loops, outside)
            case Allocate(buffer):
                visit(stmt.body, loops, len(loops) if is_small(buffer) else outside)
            case Seq(stmts):
                for x in stmts:
                    visit(x, loops, outside)
            case Store():
                for e in walk(stmt.value):
                    if type(e) is Call and e.op == "likely":
                        found(conjuncts(e), loops, outside, None)
            case _ if hasattr(stmt, "body"):
                visit(stmt.body, loops, outside)

    visit(s.body, [s], 0)
    return out


def _level(g: _Guard) -> For | None:
    """The loop at which a guard is split off, among the loops from the current one inwards."""
    involved = [(n, f) for n, f in enumerate(g.loops) if uses_any(g.term, (f.loop_var,))]
    if len(involved) == 1:
        return involved[0][1]
    candidates = list(involved)
    while candidates and candidates[-1][1].kind in (UNROLLED, VECTORIZED):
        candidates.pop()
    outside = [c for c in candidates if c[0] < g.outside]
    candidates = outside or candidates
    if not candidates:
        return None
    stripped = len(candidates) < len(involved)
    return candidates[-1 if stripped or len(candidates) == 1 else -2][1]


def _first_false(cond: Expr, var: Var) -> Expr | None:
    """The least value from which cond, true below it, is false; None when cond is no upper bound of var."""
    assert isinstance(cond, Binary)
    difference = binary("sub", cond.a, cond.b) if cond.op in ("lt", "le") else binary("sub", cond.b, cond.a)
    if cond.op in ("le", "ge"):
        difference = binary("sub", difference, 1)
    parts = split_linear(difference, var)                   # k * var + rest < 0
    if parts is None or parts[0] <= 0:
        return None
    k, rest = parts
    return binary("floordiv", binary("sub", const(k - 1, rest.dtype), rest), const(k, rest.dtype))


def _covers(s: For, guards: list[_Guard]) -> bool:
    """True when nothing but private memory is written below s outside of the guards."""
    private: set[Buffer] = set()
    guarded = set().union(*(g.stores for g in guards))
    for stmt in statements(s.body):
        if isinstance(stmt, Allocate):
            private.add(stmt.buffer)
        elif isinstance(stmt, Store) and stmt.buffer not in private and id(stmt) not in guarded:
            return False
        elif isinstance(stmt, Evaluate) and id(stmt) not in guarded:
            return False
    return True


class _Dropping(Copier):
    def __init__(self, terms: set[int]) -> None:
        super().__init__()
        self.terms = terms

    def call(self, e: Call) -> Expr:
        if e.op == "likely":
            terms = conjuncts(e)
            kept = [t for t in terms if id(t) not in self.terms]
            return e if len(kept) == len(terms) else likely(kept)
        return super().call(e)


def _drop(s: For, bounds: list[_Bound]) -> Any:
    """s without the guards of bounds."""
    body = _Dropping({id(b.guard.term) for b in bounds})(s.body)
    return s.replace(body=body)


def _fold(fn: Any, values: list[Expr]) -> Expr:
    distinct = _distinct(values)
    out = distinct[0]
    for v in distinct[1:]:
        out = fn(out, v)
    return out


def _distinct(values: list[Expr]) -> list[Expr]:
    out: list[Expr] = []
    for v in values:
        if not any(bool(v == w) for w in out):
            out.append(v)
    return out


def _good_lanes(count: int) -> bool:
    return count == 1 or count % 4 == 0


def _weight(stmt: Stmt) -> int:
    """Stores of a statement after unrolling."""
    match stmt:
        case Store() | Evaluate():
            return 1
        case For(kind=kind, extent=IntImm(count)) if kind == UNROLLED:
            return count * _weight(stmt.body)
        case Seq(stmts):
            return sum(map(_weight, stmts))
        case IfThenElse(_, then, other):
            return _weight(then) + (_weight(other) if other is not None else 0)
        case _:
            return _weight(stmt.body) if hasattr(stmt, "body") else 0

