"""The vector form of the body of a loop: what expressions and statements become when lanes run at once."""
from __future__ import annotations

from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.lower.affine import split_linear
from tilewright.lower.copying import broadcast, conjuncts, guard, is_likely, is_vector, likely, specialize
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.expr import (
    Binary,
    Call,
    Cast,
    Expr,
    IntImm,
    Let,
    Not,
    Ramp,
    Select,
    Var,
    binary,
    cast,
    const,
)
from tilewright.tir.node import children, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import (
    SERIAL,
    Allocate,
    Evaluate,
    For,
    IfThenElse,
    LetStmt,
    Seq,
    Stmt,
    Store,
    seq,
)


class NotVectorizable(Exception):
    """The body has no vector form; it must run lane by lane."""


class Lanes:
    """The state while one loop becomes vectors.

    `mask` is the condition on the lanes around the current expression. `nonempty` tells that some lane of
    it holds, so that loads which do not depend on the lane may be made; `needs_nonempty` is set when that
    was made use of.
    """

    def __init__(self, analyzer: Analyzer) -> None:
        self.analyzer = analyzer
        self.var = Var("lane")
        self.min: Expr = IntImm(0)
        self.count = 1
        self.varying: dict[Var, Expr] = {}
        self.private: dict[Buffer, Buffer] = {}
        self.memo: dict[int, tuple[Expr, bool]] = {}
        self.mask: Expr | None = None
        self.nonempty = True
        self.needs_nonempty = False

    # ------------------------------------------------------------------------------------------ expressions

    def expr(self, e: Expr) -> Expr:
        """e for all lanes: a vector, or e itself (a scalar) when it is the same in every lane."""
        if not self.varies(e):
            return self.uniform(e)
        if type(e) in (Var, Binary, Cast):
            ramp = self.ramp(e)
            if ramp is not None:
                return ramp
        handler = _EXPRESSIONS.get(type(e))
        if handler is None:
            raise NotVectorizable
        return handler(self, e)

    def varies(self, e: Expr) -> bool:
        known = self.memo.get(id(e))
        if known is None:
            if type(e) is Var:
                result = e in self.varying
            else:
                result = type(e) is Load and e.buffer in self.private or any(
                    map(self.varies, children(e)))  # type: ignore[arg-type]
            known = self.memo[id(e)] = (e, result)
        return known[1]

    def uniform(self, e: Expr) -> Expr:
        """A scalar; loads in it that the mask may protect are noted, or become masked gathers."""
        if self.mask is None or not any(isinstance(n, Load) and not self.in_bounds(n) for n in walk(e)):
            return e
        if self.nonempty:
            self.needs_nonempty = True
            return e
        if isinstance(e, Load):
            index = broadcast(self.uniform(e.indices[0]), self.count)
            return Load(e.buffer, (index,), self.joined(None if e.predicate is None else e.predicate))
        handler = _EXPRESSIONS.get(type(e))
        if handler is None:
            raise NotVectorizable
        return handler(self, e)

    def ramp(self, e: Expr) -> Expr | None:
        """The Ramp of an expression affine in the loop variable."""
        if not dt.is_integer(e.dtype) or e.dtype not in ("int32", "int64"):
            return None
        parts = split_linear(e, self.var)
        if parts is None or self.varies(parts[1]):
            return None
        k, rest = parts
        if any(isinstance(n, Load) for n in walk(rest)):
            return None
        base = binary("add", rest, binary("mul", cast(rest.dtype, self.min), k))
        return Ramp(base, const(k, rest.dtype), self.count) if k else base

    def joined(self, other: Expr | None) -> Expr | None:
        if self.mask is None or other is None:
            return self.mask if other is None else other
        return Binary("and", self.mask, broadcast(other, self.count))

    def in_bounds(self, e: Load | Store) -> bool:
        """True when the element is inside its buffer whatever the mask says."""
        index, size = e.indices[0], e.buffer.shape[0]
        if e.predicate is not None or dt.lanes_of(index.dtype) > 1 or not isinstance(size, IntImm):
            return False
        prove = self.analyzer.prove
        return (prove(Binary("ge", index, const(0, index.dtype)))
                and prove(Binary("lt", index, const(size.value, index.dtype))))

    def var_expr(self, e: Var) -> Expr:
        return self.varying[e]

    def binary_expr(self, e: Binary) -> Expr:
        a, b = self.expr(e.a), self.expr(e.b)
        if not is_vector(a) and not is_vector(b):
            return Binary(e.op, a, b)
        if e.op in ("add", "sub") and isinstance(a, Ramp) and not is_vector(b):
            return Ramp(binary(e.op, a.base, b), a.stride, a.lanes)
        if e.op == "add" and isinstance(b, Ramp) and not is_vector(a):
            return Ramp(binary("add", a, b.base), b.stride, b.lanes)
        return Binary(e.op, broadcast(a, self.count), broadcast(b, self.count))

    def not_expr(self, e: Not) -> Expr:
        return Not(self.expr(e.a))

    def cast_expr(self, e: Cast) -> Expr:
        value = self.expr(e.value)
        if not is_vector(value):
            return Cast(e.type, value)
        if isinstance(value, Ramp) and e.type == "int64":
            return Ramp(cast("int64", value.base), cast("int64", value.stride), value.lanes)
        return Cast(dt.with_lanes(e.type, self.count), value)

    def select_expr(self, e: Select) -> Expr:
        parts = [self.expr(x) for x in (e.condition, e.a, e.b)]
        return Select(*[broadcast(x, self.count) for x in parts])

    def call_expr(self, e: Call) -> Expr:
        if e.op == "if_then_else":
            return self.choice(e)
        if e.op == "likely":
            return self.expr(e.args[0])
        if INTRINSICS[e.op].kind == "effect" or e.op == "access_ptr":
            raise NotVectorizable
        args = [self.expr(a) for a in e.args]
        if not any(is_vector(a) for a in args):
            return Call(e.op, tuple(args), e.type)
        return Call(e.op, tuple([broadcast(a, self.count) for a in args]), dt.with_lanes(e.type, self.count))

    def choice(self, e: Call) -> Expr:
        cond, then, other = e.args
        if not self.varies(cond):
            a, b = self.expr(then), self.expr(other)
            if is_vector(a) or is_vector(b):
                a, b = broadcast(a, self.count), broadcast(b, self.count)
            return Call(e.op, (self.uniform(cond), a, b), a.dtype)
        terms = conjuncts(cond)
        holds = self.mask_of(terms)
        before = (self.mask, self.nonempty)
        self.mask, self.nonempty = self.joined(holds), False
        a = self.expr(then)
        self.mask = before[0]
        self.mask = self.joined(Not(holds))
        b = self.expr(other)
        self.mask, self.nonempty = before
        return Select(holds, broadcast(a, self.count), broadcast(b, self.count))

    def mask_of(self, terms: list[Expr]) -> Expr:
        out: Expr | None = None
        for t in terms:
            term = broadcast(self.expr(t), self.count)
            out = term if out is None else Binary("and", out, term)
        assert out is not None
        return out

    def let_expr(self, e: Let) -> Expr:
        var, value = self.bound(e.var, e.value)
        return Let(var, value, self.expr(e.body))

    def bound(self, var: Var, value: Expr) -> tuple[Var, Expr]:
        new = self.expr(value)
        if not is_vector(new):
            return var, new
        vector = Var(var.name, new.dtype)
        self.varying[var] = vector
        self.memo.clear()
        return vector, new

    def load_expr(self, e: Load) -> Expr:
        predicate = None if e.predicate is None else broadcast(self.expr(e.predicate), self.count)
        index = self.expr(e.indices[0])
        masked = predicate if self.mask is None or self.in_bounds(e) else self.joined(predicate)
        expanded = self.private.get(e.buffer)
        if expanded is not None:
            return Load(expanded, (self.lane_index(index),), masked)
        return Load(e.buffer, (broadcast(index, self.count),), masked)

    def lane_index(self, index: Expr) -> Expr:
        """The element of a private buffer that each lane owns: index * lanes + lane."""
        step = const(self.count, dt.element_of(index.dtype))
        if isinstance(index, Ramp):
            return Ramp(binary("mul", index.base, step),
                        binary("add", binary("mul", index.stride, step), const(1, step.dtype)), self.count)
        if not is_vector(index):
            return Ramp(binary("mul", index, step), const(1, step.dtype), self.count)
        lane = Ramp(const(0, step.dtype), const(1, step.dtype), self.count)
        return Binary("add", Binary("mul", index, broadcast(step, self.count)), lane)

    # ------------------------------------------------------------------------------------------ statements

    def stmt(self, s: Stmt) -> Stmt:
        handler = _STATEMENTS.get(type(s))
        if handler is None:
            raise NotVectorizable
        return handler(self, s)

    def store(self, s: Store) -> Stmt:
        choice = s.value
        if (isinstance(choice, Call) and choice.op == "if_then_else" and is_likely(choice.args[0])
                and self.varies(choice.args[0]) and self.mask is None):
            first = self.first_lane(conjuncts(choice.args[0]))
            if first is not None:
                return self.likely_store(s, choice, first)
        return self.plain_store(s, None)

    def likely_store(self, s: Store, choice: Call, first: list[Expr]) -> Stmt:
        """b[i] = likely(c) ? x : y, where lane 0 satisfies c if any lane does."""
        holds = self.mask_of(conjuncts(choice.args[0]))
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
        index = self.expr(s.indices[0])
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
        return s.replace(min=low, extent=extent, kind=kind, body=self.stmt(s.body))

    def branch(self, s: IfThenElse) -> Stmt:
        if not self.varies(s.condition):
            other = None if s.else_case is None else self.stmt(s.else_case)
            return IfThenElse(self.uniform(s.condition), self.stmt(s.then_case), other)
        terms = conjuncts(s.condition)
        same = [t for t in terms if not self.varies(t)]
        if same and s.else_case is None:
            inner = IfThenElse(likely([t for t in terms if self.varies(t)]), s.then_case)
            return IfThenElse(likely([self.uniform(t) for t in same]), self.branch(inner))
        holds = self.mask_of(terms)
        then = self.under(holds, terms, s.then_case)
        if s.else_case is None:
            return then
        return seq([then, self.under(Not(holds), None, s.else_case)])

    def under(self, holds: Expr, terms: list[Expr] | None, body: Stmt) -> Stmt:
        """body for the lanes where holds; terms are its conjuncts before they became vectors."""
        first = None if terms is None else self.first_lane(terms)
        before = (self.mask, self.nonempty, self.needs_nonempty)
        self.mask = self.joined(holds)
        self.nonempty = first is not None and before[0] is None
        self.needs_nonempty = False
        new = self.stmt(body)
        needed = self.needs_nonempty
        self.mask, self.nonempty, self.needs_nonempty = before
        return guard(likely(first), new) if needed and first else new

    def first_lane(self, terms: list[Expr]) -> list[Expr] | None:
        """Conditions under which lane 0 satisfies terms; None unless lane 0 does whenever another lane does.

        Conditions that are proven are left out.
        """
        out: list[Expr] = []
        for term in terms:
            if not isinstance(term, Binary) or term.op not in ("lt", "le", "gt", "ge"):
                return None
            a, b = split_linear(term.a, self.var), split_linear(term.b, self.var)
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


_EXPRESSIONS: dict[type, Any] = {
    Var: Lanes.var_expr, Binary: Lanes.binary_expr, Not: Lanes.not_expr, Cast: Lanes.cast_expr,
    Select: Lanes.select_expr, Call: Lanes.call_expr, Let: Lanes.let_expr, Load: Lanes.load_expr,
}
_STATEMENTS: dict[type, Any] = {
    Store: Lanes.store, For: Lanes.loop, IfThenElse: Lanes.branch, Allocate: Lanes.allocate,
    Seq: Lanes.sequence, LetStmt: Lanes.let, Evaluate: Lanes.evaluate,
}


def vector_statement(s: For, count: int, lanes: Lanes) -> Stmt:
    """The body of s for count iterations at once. Raises NotVectorizable."""
    lanes.var, lanes.min, lanes.count = s.loop_var, s.min, count
    lanes.varying[s.loop_var] = Ramp(s.min, const(1, s.loop_var.dtype), count)
    return lanes.stmt(s.body)

