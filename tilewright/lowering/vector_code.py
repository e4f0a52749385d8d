"""The vector form of the body of a loop: what its statements become when lanes run at once."""
from __future__ import annotations

from typing import Any

from tilewright.lowering.affine import is_order, split_linear
from tilewright.lowering.conditions import guard, is_likely, likely, terms_of
from tilewright.lowering.copying import specialize
from tilewright.lowering.vector_expressions import LaneExpressions, NotVectorizable, broadcast, is_vector
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Load
from tilewright.tir.conversion import const
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Not, Ramp, Select, Var
from tilewright.tir.node import statements, walk
from tilewright.tir.stmt import SERIAL, Allocate, Evaluate, For, IfThenElse, LetStmt, Seq, Stmt, Store, seq


class Lanes(LaneExpressions):
    """LaneExpressions, and the statements around them."""

    def stmt(self, s: Stmt) -> Stmt:
        handler = _STATEMENTS.get(type(s))
        if handler is None:
            raise NotVectorizable
        return handler(self, s)

    def store(self, s: Store) -> Stmt:
        choice = s.value
        if (isinstance(choice, Call) and choice.op == "if_then_else" and is_likely(choice.args[0])
                and self.varies(choice.args[0]) and self.mask is None):
            first = self.first_lane(terms_of(choice.args[0]), True)
            if first is not None:
                return self.likely_store(s, choice, first)
        return self.plain_store(s, None)

    def likely_store(self, s: Store, choice: Call, first: list[Expr]) -> Stmt:
        """b[i] = likely(c) ? x : y, where lane 0 satisfies c if any lane does."""
        holds = self.mask_of(terms_of(choice.args[0]), True)
        before = self.needs_nonempty
        self.mask, self.nonempty, self.needs_nonempty = holds, True, False
        value = broadcast(self.expr(choice.args[1]), self.count)
        needed = self.needs_nonempty
        self.mask, self.needs_nonempty = None, before
        otherwise = broadcast(self.expr(choice.args[2]), self.count)
        chosen = self.plain_store(s, Select(holds, value, otherwise))
        if not needed or not first:
            return chosen
        return IfThenElse(likely(first), chosen, self.plain_store(s, otherwise))

    def plain_store(self, s: Store, value: Expr | None) -> Stmt:
        reads_itself = any(isinstance(n, Load) and n.buffer is s.buffer for n in walk(s.value))
        index = self.index(s.indices[0])
        new = self.expr(s.value) if value is None else value
        predicate = None if s.predicate is None else broadcast(self.expr(s.predicate), self.count)
        predicate = self.joined(predicate)
        expanded = self.private.get(s.buffer)
        if expanded is not None:
            return Store(expanded, broadcast(new, self.count), (self.lane_index(index),), predicate)
        if not is_vector(index):
            if is_vector(new) or predicate is not None or reads_itself:
                raise NotVectorizable
            return Store(s.buffer, new, (index,))
        moves = isinstance(index, Ramp) and isinstance(index.stride, IntImm) and index.stride.value
        if reads_itself and not moves:
            raise NotVectorizable
        return Store(s.buffer, broadcast(new, self.count), (index,), predicate)

    def loop(self, s: For) -> Stmt:
        if self.varies(s.min) or self.varies(s.extent):
            raise NotVectorizable
        kind = s.kind if s.kind != "parallel" else SERIAL
        low, extent = self.uniform(s.min), self.uniform(s.extent)
        if is_vector(low) or is_vector(extent):              # only some of the lanes may read it
            raise NotVectorizable
        return s.replace(min=low, extent=extent, kind=kind, body=self.stmt(s.body))

    def branch(self, s: IfThenElse) -> Stmt:
        same = None if self.varies(s.condition) else self.uniform(s.condition)
        if same is not None and not is_vector(same):         # it may read memory for some of the lanes only
            other = None if s.else_case is None else self.stmt(s.else_case)
            return IfThenElse(same, self.stmt(s.then_case), other)
        terms, guards = terms_of(s.condition), is_likely(s.condition)
        if s.else_case is None:
            ahead, rest = self.parted(terms)
            if ahead:
                inner = IfThenElse(_condition(rest, guards), s.then_case) if rest else s.then_case
                return IfThenElse(_condition([self.uniform(t) for t in ahead], guards), self.stmt(inner))
            late = next((k for k, t in enumerate(terms) if k and not self.varies(t)), 0)
            if late:                                         # one question for all lanes that are left then
                inner = IfThenElse(_condition(terms[late:], guards), s.then_case)
                return self.branch(IfThenElse(_condition(terms[:late], guards), inner))
        holds = self.mask_of(terms, guards)
        first = self.first_lane(terms, guards)
        if not _changes(s):
            return self.sides(s, holds, first)
        kept = Var("holds", holds.dtype)
        return LetStmt(kept, holds, self.sides(s, kept, first))

    def parted(self, terms: list[Expr]) -> tuple[list[Expr], list[Expr]]:
        """(terms that are the same in every lane and may be asked before the others, the others).

        What such a term reads may be read in any case, or no term before it stays, and some lane is sure to ask it.
        """
        ahead: list[Expr] = []
        rest: list[Expr] = []
        for t in terms:
            asked = not rest and (self.mask is None or self.nonempty)
            (ahead if not self.varies(t) and (asked or self.reads_freely(t)) else rest).append(t)
        return ahead, rest

    def sides(self, s: IfThenElse, holds: Expr, first: list[Expr] | None) -> Stmt:
        then = self.under(holds, first, s.then_case)
        if s.else_case is None:
            return then
        return seq([then, self.under(Not(holds), None, s.else_case)])

    def under(self, holds: Expr, first: list[Expr] | None, body: Stmt) -> Stmt:
        """body for the lanes where holds; first is what first_lane says of it."""
        before = (self.mask, self.nonempty, self.needs_nonempty)
        self.mask = self.joined(holds)
        self.nonempty = first is not None and before[0] is None
        self.needs_nonempty = False
        new = self.stmt(body)
        needed = self.needs_nonempty
        self.mask, self.nonempty, self.needs_nonempty = before
        return guard(likely(first), new) if needed and first else new

    def first_lane(self, terms: list[Expr], guards: bool) -> list[Expr] | None:
        """Conditions under which lane 0 satisfies terms; None unless lane 0 does whenever another lane does.

        Conditions that are proven are left out. Sides that may wrap around say nothing of lane 0; those of guards
        (terms of a `likely`) are indices.
        """
        with self.places(guards):
            return self.first_terms(terms)

    def first_terms(self, terms: list[Expr]) -> list[Expr] | None:
        out: list[Expr] = []
        for term in terms:
            if not is_order(term):
                return None
            assert isinstance(term, Binary)
            if not (self.exact(term.a) and self.exact(term.b)):
                return None
            a, b = (split_linear(x, self.var, self.exact) for x in (term.a, term.b))
            if a is None or b is None or self.varies(a[1]) or self.varies(b[1]):
                return None
            slope = a[0] - b[0]
            if slope < 0 if term.op in ("lt", "le") else slope > 0:
                return None
            at_first = self.analyzer.simplify(specialize(term, {self.var: self.min}))
            if not (isinstance(at_first, IntImm) and at_first.value):
                out.append(at_first)
        return out

    def allocate(self, s: Allocate) -> Stmt:
        for node in walk(s.body):
            if node is s.buffer.data:
                raise NotVectorizable
        size = s.buffer.shape[0]
        if self.varies(size):
            raise NotVectorizable
        new = s.buffer.replace(shape=(binary("mul", size, const(self.count, size.dtype)),),
                               data=Var(s.buffer.data.name, "handle"))
        self.private[s.buffer] = new
        self.memo.clear()
        return Allocate(new, self.stmt(s.body), s.annotations)

    def sequence(self, s: Seq) -> Stmt:
        return seq([self.stmt(x) for x in s.stmts])

    def let(self, s: LetStmt) -> Stmt:
        var, value = self.bound(s.var, s.value)
        return LetStmt(var, value, self.stmt(s.body))

    def evaluate(self, s: Evaluate) -> Stmt:
        if isinstance(s.value, Call) and s.value.op == "prefetch":
            return seq([])
        raise NotVectorizable


def _condition(terms: list[Expr], guards: bool) -> Expr:
    """The conjunction of some terms of a condition, which were those of a `likely` or not."""
    return likely(terms) if guards else all_of(*terms)


def _changes(s: IfThenElse) -> bool:
    """True when a branch writes what the condition reads: a mask stands at every store, after such a write too."""
    read = {n.buffer.data for n in walk(s.condition) if isinstance(n, Load)}
    return any(isinstance(n, Store) and n.buffer.data in read for n in statements(s))


_STATEMENTS: dict[type, Any] = {
    Store: Lanes.store, For: Lanes.loop, IfThenElse: Lanes.branch, Allocate: Lanes.allocate,
    Seq: Lanes.sequence, LetStmt: Lanes.let, Evaluate: Lanes.evaluate,
}


def vector_statement(s: For, count: int, lanes: Lanes) -> Stmt:
    """The body of s for count iterations at once. Raises NotVectorizable."""
    lanes.var, lanes.min, lanes.count = s.loop_var, s.min, count
    lanes.varying[s.loop_var] = Ramp(s.min, const(1, s.loop_var.dtype), count)
    return lanes.stmt(s.body)
