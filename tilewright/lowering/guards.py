"""The guards (`likely` conjuncts) below a loop: where they stand and where to split loops for them."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tilewright.lowering.affine import is_order, split_linear
from tilewright.lowering.conditions import is_likely, likely, terms_of
from tilewright.lowering.copying import Copier
from tilewright.lowering.scopes import is_small
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.conversion import const
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Let, Var
from tilewright.tir.node import Node, children, statements, walk
from tilewright.tir.stmt import (
    SERIAL,
    UNROLLED,
    VECTORIZED,
    Allocate,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Seq,
    Stmt,
    Store,
)
from tilewright.tir.symbols import uses_any


@dataclass
class Guard:
    """A conjunct of some `likely` below a loop.

    `loops` are those from that loop down to it, loops[:outside] the ones outside of the innermost small
    allocation; `stores` are the ids of the statements that it guards.
    """
    term: Expr
    loops: list[For]
    outside: int
    stores: set[int] = field(default_factory=set)


def guards_below(s: For) -> list[Guard]:
    """Every guard below s that could be evaluated at s: it reads neither memory nor variables set inside."""
    out: list[Guard] = []
    lets = {x.var for x in statements(s.body) if isinstance(x, LetStmt)}

    def found(terms: Iterable[Expr], loops: list[For], outside: int, under: Stmt | None) -> None:
        for term in terms:
            if uses_any(term, lets) or any(isinstance(n, Load) for n in walk(term)):
                continue
            stores = {id(x) for x in statements(under)} if under is not None else set()
            out.append(Guard(term, loops, outside, stores))

    def visit(stmt: Stmt, loops: list[For], outside: int) -> None:
        match stmt:
            case For():
                inside = [*loops, stmt]
                visit(stmt.body, inside, outside)
            case IfThenElse(cond, then, other):
                if is_likely(cond):
                    found(terms_of(cond), loops, outside, then)
                visit(then, loops, outside)
                if other is not None:
                    visit(other, loops, outside)
            case Allocate(buffer):
                visit(stmt.body, loops, len(loops) if is_small(buffer) else outside)
            case Seq(stmts):
                for x in stmts:
                    visit(x, loops, outside)
            case Store():
                for e in _outside_of_lets(stmt.value):
                    if type(e) is Call and e.op == "likely":
                        found(terms_of(e), loops, outside, None)
            case _ if hasattr(stmt, "body"):
                visit(stmt.body, loops, outside)

    visit(s.body, [s], 0)
    return out


def _outside_of_lets(e: Expr) -> Iterator[Node]:
    """What is in e, but for the bodies of lets: what stands there is about variables that nobody else knows."""
    stack: list[Node] = [e]
    while stack:
        top = stack.pop()
        yield top
        stack += (top.value,) if isinstance(top, Let) else children(top)[::-1]


LONG_LOOP = 16               # iterations from which on it costs little that they are not known


def split_level(g: Guard) -> For | None:
    """The loop at which a guard is split off, among the loops from the current one inwards.

    That is the one outside of the tile that the guard cuts. Loops of two or more loops, and long ones of unrolled or
    vectorised ones, are no tiles: they are made shorter themselves.
    """
    involved = [(n, f) for n, f in enumerate(g.loops) if uses_any(g.term, {f.loop_var})]
    if len(involved) == 1:
        return involved[0][1]
    candidates = list(involved)
    while candidates and candidates[-1][1].kind in (UNROLLED, VECTORIZED):
        candidates.pop()
    if candidates and is_shortened(candidates[-1][1]):
        return candidates[-1][1]
    outside = [c for c in candidates if c[0] < g.outside]
    candidates = outside or candidates
    if not candidates:
        return None
    stripped = len(candidates) < len(involved)
    return candidates[-1 if stripped or len(candidates) == 1 else -2][1]


def is_shortened(s: For) -> bool:
    """True for a loop that may as well run any number of times: its body has loops that are no tile, or it is long."""
    inner = [x for x in statements(s.body) if isinstance(x, For)]
    tile = all(x.kind in (UNROLLED, VECTORIZED) for x in inner)
    long = not isinstance(s.extent, IntImm) or s.extent.value > LONG_LOOP
    return s.kind == SERIAL and bool(inner) and (not tile or long)


def first_false(cond: Expr, var: Var) -> Expr | None:
    """The least value from which cond, true below it, is false; None when cond is no upper bound of var."""
    if not is_order(cond):
        return None
    assert isinstance(cond, Binary)
    difference = binary("sub", cond.a, cond.b) if cond.op in ("lt", "le") else binary("sub", cond.b, cond.a)
    if cond.op in ("le", "ge"):
        difference = binary("sub", difference, 1)
    parts = split_linear(difference, var)                   # k * var + rest < 0
    if parts is None or parts[0] <= 0:
        return None
    k, rest = parts
    return binary("floordiv", binary("sub", const(k - 1, rest.dtype), rest), const(k, rest.dtype))


def covers(s: For, guards: list[Guard]) -> bool:
    """True when nothing but private memory is written below s outside of the guards.

    Asking for what is read later is no effect: where nothing is read, nobody misses it.
    """
    private: set[Buffer] = set()
    guarded = set().union(*(g.stores for g in guards))
    for stmt in statements(s.body):
        if isinstance(stmt, Allocate):
            private.add(stmt.buffer)
        elif isinstance(stmt, Store) and stmt.buffer not in private and id(stmt) not in guarded:
            return False
        elif isinstance(stmt, Evaluate) and id(stmt) not in guarded and not _is_prefetch(stmt):
            return False
    return True


def _is_prefetch(stmt: Evaluate) -> bool:
    return isinstance(stmt.value, Call) and stmt.value.op == "prefetch"


class _Dropping(Copier):
    def __init__(self, terms: set[int]) -> None:
        super().__init__()
        self.terms = terms

    def call(self, e: Call) -> Expr:
        if e.op == "likely":
            terms = terms_of(e)
            kept = [t for t in terms if id(t) not in self.terms]
            return e if len(kept) == len(terms) else likely(kept)
        return super().call(e)


def without_guards(body: Stmt, guards: Iterable[Guard]) -> Stmt:
    """body with some of its guards taken off."""
    return _Dropping({id(g.term) for g in guards})(body)
