"""Asks for a check of every index that is not proven to lie inside its buffer, for the checked build."""
from __future__ import annotations

from collections.abc import Container
from contextlib import ExitStack

from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.conditions import terms_of
from tilewright.lowering.scopes import analyzer_for, loop_scope
from tilewright.lowering.walking import map_stmts
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, logical_not
from tilewright.tir.buffer import Buffer, Load, lane_room
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, IntImm, Let, Ramp, Select, Var
from tilewright.tir.node import Node, map_children, walk
from tilewright.tir.stmt import Block, BlockRealize, For, IfThenElse, LetStmt, PrimFunc, Stmt, Store, While

_ADDRESSES = ("access_ptr", "prefetch")          # take the place of an element, which is not touched


def check_bounds(func: PrimFunc) -> PrimFunc:
    """Every index of a load or store is `checked_index(i, extent)`, or proven to be in [0, extent).

    Expects loops over N-dimensional accesses: each dimension is compared with its own extent, the lanes of a Ramp with
    the elements that follow the start of its row (lane_room).
    """
    return func.with_body(_Checking(analyzer_for(func)).stmt(func.body))


def check_views(func: PrimFunc) -> PrimFunc:
    """The indices of loads and stores of views of regions (`match_buffer`), as in check_bounds.

    Expects blocks; once views are what they view, nothing says where they end.
    """
    views = {m.buffer for n in walk(func.body) if isinstance(n, Block) for m in n.match_buffers}
    return func.with_body(_Checking(analyzer_for(func), views).stmt(func.body)) if views else func


def check_data_indices(func: PrimFunc) -> PrimFunc:
    """Every index from data is `checked_index(i, extent)` or proven: in one of several dimensions, and in any where it
    is a variable of a loop whose ends come from data.

    Code generation holds an access whose index reads data to the elements of its buffer; an index that leaves its
    dimension, and not the buffer, would be one of another row, and of loops code generation knows nothing. Expects
    loops over N-dimensional accesses.
    """
    return func.with_body(_CheckingData(analyzer_for(func)).stmt(func.body)) if _asks_data(func.body) else func


def _asks_data(body: Stmt) -> bool:
    """False for most functions, quickly: no index and no end of a loop is from data."""
    for n in walk(body):
        if isinstance(n, For) and not (type(n.min) is IntImm and type(n.extent) is IntImm):
            if any(isinstance(m, (Load, Var)) for e in (n.min, n.extent) for m in walk(e)):
                return True
        elif isinstance(n, (Load, Store)) and len(n.indices) > 1:
            if any(isinstance(m, (Load, Var)) for i in n.indices for m in walk(i)):
                return True
    return False


class _Checking:
    def __init__(self, analyzer: Analyzer, only: Container[Buffer] | None = None) -> None:
        self.analyzer, self.only = analyzer, only

    def stmt(self, s: Stmt) -> Stmt:
        match s:
            case For(var, low, extent):
                ends = self.expr(low), self.expr(extent)
                with loop_scope(self.analyzer, var, low, extent):
                    return s.replace(min=ends[0], extent=ends[1], body=self.stmt(s.body))
            case IfThenElse(condition, then, other):
                checked = self.expr(condition)
                with self.analyzer.branch(condition):
                    new = self.stmt(then)
                if other is not None:
                    with self.analyzer.branch(logical_not(_plain(condition))):
                        other = self.stmt(other)
                return s.replace(condition=checked, then_case=new, else_case=other)
            case While(condition, body):
                return s.replace(condition=self.expr(condition), body=self.stmt(body))
            case Store():
                predicate = None if s.predicate is None else self.expr(s.predicate)
                return s.replace(value=self.expr(s.value), indices=self.indices(s.buffer, s.indices),
                                 predicate=predicate)
            case BlockRealize():
                return s.replace(block=self.block(s.block))
        below = map_stmts(s, self.stmt)
        return map_children(below, lambda n: self.expr(n) if isinstance(n, Expr) else n)

    def block(self, b: Block) -> Block:
        with ExitStack() as scope:
            for iv in b.iter_vars:
                scope.enter_context(loop_scope(self.analyzer, iv.var, iv.domain.min, iv.domain.extent))
            return b.replace(init=None if b.init is None else self.stmt(b.init), body=self.stmt(b.body))

    def expr(self, e: Expr) -> Expr:
        out = self.visit(e)
        assert isinstance(out, Expr)
        return out

    def visit(self, e: Node) -> Node:
        match e:
            case Load():
                predicate = None if e.predicate is None else self.expr(e.predicate)
                return Load(e.buffer, self.indices(e.buffer, e.indices), predicate)
            case Call(op="if_then_else", args=(condition, a, b)):
                return e.replace(args=(self.expr(condition), self.under(condition, a),
                                       self.under(logical_not(condition), b)))
            case Select(condition, a, b):
                return e.replace(condition=self.expr(condition), a=self.expr(a), b=self.expr(b))
            case Binary(op="and", a=a, b=b):
                return e.replace(a=self.expr(a), b=self.under(a, b))
            case Call() if e.op in _ADDRESSES and e.args and isinstance(e.args[0], Load):
                first = map_children(e.args[0], self.visit)
                return e.replace(args=(first, *map(self.expr, e.args[1:])))
        return map_children(e, self.visit)

    def under(self, condition: Expr, e: Expr) -> Expr:
        """e, which is evaluated only where condition holds."""
        if dt.lanes_of(condition.dtype) > 1:
            return self.expr(e)
        with self.analyzer.branch(condition):
            return self.expr(e)

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        if self.only is not None and buffer not in self.only:
            return tuple(map(self.expr, indices))
        limits = list(buffer.shape)
        if indices and isinstance(indices[-1], Ramp):
            limits[-1] = lane_room(buffer, indices[:-1])
        return tuple(self.checked(i, n) for i, n in zip(indices, limits, strict=True))

    def checked(self, index: Expr, extent: Expr) -> Expr:
        inner = self.expr(index)
        small = all(dt.element_of(e.dtype) == "int32" or dt.bits_of(e.dtype) < 32 for e in (index, extent))
        lanes, element = dt.lanes_of(index.dtype), "int32" if small else "int64"
        if lanes == 1 and self.inside(cast(element, index), cast(element, extent)):
            return inner
        if isinstance(index, Call) and index.op == "checked_index":
            return inner
        if isinstance(index, Ramp) and self.ramp_inside(index, cast(dt.element_of(index.dtype), extent)):
            return inner
        n = cast(element, extent)
        wide = inner if dt.element_of(inner.dtype) == element else Cast(dt.with_lanes(element, lanes), inner)
        return Call("checked_index", (wide, Broadcast(n, lanes) if lanes > 1 else n), wide.dtype)

    def inside(self, index: Expr, extent: Expr) -> bool:
        prove = self.analyzer.prove
        return prove(binary("ge", index, 0)) and prove(binary("lt", index, extent))

    def ramp_inside(self, ramp: Ramp, extent: Expr) -> bool:
        last = binary("add", ramp.base, binary("mul", ramp.stride, ramp.lanes - 1))
        return self.inside(ramp.base, extent) and self.inside(last, extent)


class _CheckingData(_Checking):
    """Checks the indices from data alone, those aside that read data in one dimension."""

    def __init__(self, analyzer: Analyzer) -> None:
        super().__init__(analyzer)
        self.dependent: set[Var] = set()
        self.loops: set[Var] = set()                        # those of dependent that follow from loops with such ends

    def stmt(self, s: Stmt) -> Stmt:
        if isinstance(s, LetStmt):
            self.bind(s.var, s.value)
        elif isinstance(s, For) and (self.from_data(s.min) or self.from_data(s.extent)):
            self.dependent.add(s.loop_var)
            self.loops.add(s.loop_var)
        return super().stmt(s)

    def visit(self, e: Node) -> Node:
        if isinstance(e, Let):
            self.bind(e.var, e.value)
        return super().visit(e)

    def bind(self, var: Var, value: Expr) -> None:
        if self.from_data(value):
            self.dependent.add(var)
        if self.from_loops(value):
            self.loops.add(var)

    def from_data(self, e: Expr) -> bool:
        return any(isinstance(n, Load) or n in self.dependent for n in walk(e))

    def from_loops(self, e: Expr) -> bool:
        return bool(self.loops) and any(n in self.loops for n in walk(e))

    def indices(self, buffer: Buffer, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        plain = tuple(map(self.expr, indices))
        if not any(map(self.from_data if len(indices) > 1 else self.from_loops, indices)):
            return plain
        checked = super().indices(buffer, indices)
        return tuple(c if self.from_data(i) else p for i, p, c in zip(indices, plain, checked, strict=True))


def _plain(condition: Expr) -> Expr:
    """The condition without `likely`, as the analyzer takes it."""
    terms = terms_of(condition)
    if not terms:
        return condition
    out = terms[0]
    for term in terms[1:]:
        out = binary("and", out, term)
    return out
