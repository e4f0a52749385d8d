"""The vector form of expressions in the body of a loop whose iterations become lanes."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.arith.analyzer import Analyzer
from tilewright.lowering.affine import split_linear
from tilewright.lowering.conditions import is_likely, terms_of
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, IntImm, Let, Not, Ramp, Select, Var
from tilewright.tir.llvm_intrinsics import LLVM_CALLS
from tilewright.tir.node import children, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.places import INDEXED, is_index


class NotVectorizable(Exception):
    """The body has no vector form; it must run lane by lane."""


def lane_count(e: Expr) -> int:
    return dt.lanes_of(e.dtype)


def broadcast(e: Expr, count: int) -> Expr:
    """e as a vector of count lanes; e itself when it is a vector already."""
    return e if lane_count(e) > 1 else Broadcast(e, count)


def is_vector(e: Expr) -> bool:
    return type(e) in (Ramp, Broadcast) or dt.lanes_of(e.dtype) > 1


class LaneExpressions:
    """The state while one loop becomes vectors.

    `mask` is the condition on the lanes around the current expression. `nonempty` tells that some lane of
    it holds, so that loads which do not depend on the lane may be made; `needs_nonempty` is set when that
    was made use of.
    `in_place` tells that the current expression is an index, whose arithmetic on variables is exact; a value
    may wrap around in some lanes and not in others.
    """

    def __init__(self, analyzer: Analyzer, readable: set[Var]) -> None:
        self.analyzer = analyzer
        self.readable = readable                       # pointers behind which masked-off lanes may be read
        self.var = Var("lane")
        self.min: Expr = IntImm(0)
        self.count = 1
        self.varying: dict[Var, Expr] = {}
        self.private: dict[Buffer, Buffer] = {}
        self.memo: dict[int, tuple[Expr, bool]] = {}
        self.mask: Expr | None = None
        self.nonempty = True
        self.needs_nonempty = False
        self.in_place = False

    @contextmanager
    def places(self, yes: bool) -> Iterator[None]:
        """Within the `with`, expressions are indices (yes) or values."""
        outer, self.in_place = self.in_place, yes
        try:
            yield
        finally:
            self.in_place = outer

    def index(self, e: Expr) -> Expr:
        """expr of an index."""
        with self.places(True):
            return self.expr(e)

    def value(self, e: Expr) -> Expr:
        """expr of a value, which may stand within an index."""
        with self.places(False):
            return self.expr(e)

    def exact(self, e: Expr) -> bool:
        """True when e cannot wrap around, in any lane."""
        return self.in_place and is_index(e) or self.analyzer.exact(e)

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
        if self.mask is None or self.reads_freely(e):
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
        """The Ramp of an expression affine in the loop variable: it wraps around where e does."""
        if not dt.is_integer(e.dtype) or e.dtype not in ("int32", "int64"):
            return None
        parts = split_linear(e, self.var, self.exact)
        if parts is None or self.varies(parts[1]):
            return None
        k, rest = parts
        least, most = dt.integer_range(e.dtype)
        if not least <= k <= most or any(isinstance(n, Load) for n in walk(rest)):
            return None
        base = binary("add", rest, binary("mul", cast(rest.dtype, self.min), k))
        return Ramp(base, const(k, rest.dtype), self.count) if k else base

    def joined(self, other: Expr | None) -> Expr | None:
        if self.mask is None or other is None:
            return self.mask if other is None else other
        return Binary("and", self.mask, broadcast(other, self.count))

    def reads_freely(self, e: Expr) -> bool:
        """True when e may be evaluated whatever the mask says."""
        return all(self.in_bounds(n) for n in walk(e) if isinstance(n, Load))

    def in_bounds(self, e: Load) -> bool:
        """True when the element may be read whatever the mask says."""
        index, size = e.indices[0], e.buffer.shape[0]
        if e.predicate is not None or dt.lanes_of(index.dtype) > 1 or not isinstance(size, IntImm):
            return False
        if e.buffer.data not in self.readable or any(isinstance(n, Call) and n.op == "checked_index"
                                                     for n in walk(index)):         # which is asked of these lanes
            return False
        prove = self.analyzer.prove
        return (prove(Binary("ge", index, const(0, index.dtype)))
                and prove(Binary("lt", index, const(size.value, index.dtype))))

    def var_expr(self, e: Var) -> Expr:
        return self.varying[e]

    def binary_expr(self, e: Binary) -> Expr:
        if e.op in ("and", "or"):
            return self.decided(e.op, self.expr(e.a), e.b)
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
        with self.places(self.in_place and e.type == "int64"):
            value = self.expr(e.value)
        if not is_vector(value):
            return Cast(e.type, value)
        if isinstance(value, Ramp) and e.type == "int64" and self.exact(e.value):
            return Ramp(cast("int64", value.base), cast("int64", value.stride), value.lanes)
        return Cast(dt.with_lanes(e.type, self.count), value)

    def select_expr(self, e: Select) -> Expr:
        parts = [self.value(e.condition), self.expr(e.a), self.expr(e.b)]
        return Select(*[broadcast(x, self.count) for x in parts])

    def call_expr(self, e: Call) -> Expr:
        if e.op == "if_then_else":
            return self.choice(e)
        if e.op == "likely":
            return self.index(e.args[0])
        if INTRINSICS[e.op].kind == "effect" or e.op == "access_ptr":
            raise NotVectorizable
        if e.op == "table" and dt.lanes_of(e.type) == 1:
            index = self.index(e.args[1])
            return Call(e.op, (e.args[0], index), dt.with_lanes(e.type, self.count) if is_vector(index) else e.type)
        if e.op in LLVM_CALLS or dt.lanes_of(e.type) > 1 or any(dt.lanes_of(a.dtype) > 1 for a in e.args):
            return self.whole_call(e)
        with self.places(e.op in INDEXED):
            args = [self.expr(a) for a in e.args]
        if not any(is_vector(a) for a in args):
            return Call(e.op, tuple(args), e.type)
        return Call(e.op, tuple([broadcast(a, self.count) for a in args]), dt.with_lanes(e.type, self.count))

    def whole_call(self, e: Call) -> Expr:
        """A call on vectors, or whose name fixes the lanes: it has no form for several iterations at once."""
        if self.varies(e):
            raise NotVectorizable
        return self.uniform(e)

    def choice(self, e: Call) -> Expr:
        cond, then, other = e.args
        same = None if self.varies(cond) else self.uniform(cond)
        if same is not None and not is_vector(same):         # it may read memory for some of the lanes only
            a, b = self.expr(then), self.expr(other)
            if is_vector(a) or is_vector(b):
                a, b = broadcast(a, self.count), broadcast(b, self.count)
            return Call(e.op, (same, a, b), a.dtype)
        terms = terms_of(cond)
        holds = self.mask_of(terms, is_likely(cond))
        a, b = self.where(holds, then), self.where(Not(holds), other)
        return Select(holds, broadcast(a, self.count), broadcast(b, self.count))

    def where(self, holds: Expr, e: Expr) -> Expr:
        """e in the lanes where holds, of which there may be none."""
        before = (self.mask, self.nonempty)
        self.mask, self.nonempty = self.joined(holds), False
        out = self.expr(e)
        self.mask, self.nonempty = before
        return out

    def decided(self, op: str, a: Expr, b: Expr) -> Expr:
        """a and b, a or b: memory is read for b in the lanes only that a does not decide.

        A condition that reads gets a name: it stands at every load of b, and once more with each term of a chain.
        """
        a = broadcast(a, self.count)
        named = not self.reads_freely(b) and any(isinstance(n, Load) for n in walk(a))
        left = Var("left", a.dtype) if named else a
        both = Binary(op, left, broadcast(self.where(left if op == "and" else Not(left), b), self.count))
        return Let(left, a, both) if named and isinstance(left, Var) else both

    def mask_of(self, terms: list[Expr], guards: bool) -> Expr:
        """All of terms, lane by lane; each is evaluated in the lanes only where those before it hold.

        `guards`: they are those of a `likely`, and so about indices.
        """
        with self.places(guards):
            out = broadcast(self.expr(terms[0]), self.count)
            for term in terms[1:]:
                out = self.decided("and", out, term)
        return out

    def let_expr(self, e: Let) -> Expr:
        var, value = self.bound(e.var, e.value)
        return Let(var, value, self.expr(e.body))

    def bound(self, var: Var, value: Expr) -> tuple[Var, Expr]:
        new = self.value(value)
        if not is_vector(new):
            return var, new
        vector = Var(var.name, new.dtype)
        self.varying[var] = vector
        self.memo.clear()
        return vector, new

    def load_expr(self, e: Load) -> Expr:
        predicate = None if e.predicate is None else broadcast(self.value(e.predicate), self.count)
        index = self.index(e.indices[0])
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


_EXPRESSIONS: dict[type, Any] = {
    Var: LaneExpressions.var_expr, Binary: LaneExpressions.binary_expr, Not: LaneExpressions.not_expr,
    Cast: LaneExpressions.cast_expr, Select: LaneExpressions.select_expr, Call: LaneExpressions.call_expr,
    Let: LaneExpressions.let_expr, Load: LaneExpressions.load_expr,
}
