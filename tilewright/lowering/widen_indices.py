"""Makes index arithmetic 64 bits wide where 32 bits might overflow."""
from __future__ import annotations

import operator
from collections.abc import Sequence

from tilewright.arith.linear import linear
from tilewright.lowering.copying import Copier
from tilewright.lowering.scopes import shape_vars, size_limit
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, Load
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, IntImm, Ramp, Select, Var
from tilewright.tir.node import Node, statements, walk
from tilewright.tir.ops import trunc_div
from tilewright.tir.places import is_index
from tilewright.tir.stmt import Allocate, For, LetStmt, PrimFunc, Stmt, Store
from tilewright.tir.symbols import expressions, uses_any

Interval = tuple[int, int]
LOW, HIGH = dt.integer_range("int32")
_ARITHMETIC = ("add", "sub", "mul", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max", "shl", "shr",
               "bitand", "bitor", "bitxor")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


def widen_indices(func: PrimFunc) -> PrimFunc:
    """Index arithmetic (indices, ranges of loops, guards) cannot overflow its type.

    Where the ranges of loops and shapes do not show that 32 bits are enough, all of it is int64: loop variables are 64
    bits wide, shape variables are widened once at the top of the body. Values keep their types and wrap in them; a
    loop variable that may leave its type stands in a value for the axes that it was fused from, so what is computed
    from it alone is 64 bits wide too.
    """
    check = _checked(func)
    return _widened(func, check) if check.overflows else func


def widen_constant_indices(func: PrimFunc) -> PrimFunc:
    """widen_indices for functions of constant shape; others as they are (for reading, not for running)."""
    return func if shape_vars(func) else widen_indices(func)


def _checked(func: PrimFunc) -> _Ranges:
    """The ranges of the index arithmetic of func."""
    check = _Ranges({v: (0, size_limit(func, v)) for v in shape_vars(func) if v.type == "int32"})
    for s in statements(func.body):
        check.visit(s)
    return check


class _Ranges:
    """Intervals of index expressions; `overflows` is set when an int32 one leaves its type.

    `beyond` are the loop variables of int32 that may leave it.
    """

    def __init__(self, known: dict[Var, Interval]) -> None:
        self.known = known
        self.met: dict[int, tuple[Expr, Interval]] = {}
        self.overflows = False
        self.beyond: set[Var] = set()

    def visit(self, s: Stmt) -> None:
        self.met.clear()
        match s:
            case For(var, low, extent):
                (a, b), (_, most) = self.of(low), self.of(extent)
                span = a, max(a, b + most - 1)
                self.known[var] = self.clip(span, var.type)
                if var.type == "int32" and self.known[var] != span:
                    self.beyond.add(var)
            case Store(buffer, value, indices):
                for e in (*indices, *buffer.shape):
                    self.of(e)
                self.in_value(value)
            case LetStmt(var, value):
                if is_index(value):
                    self.known[var] = self.of(value)
                else:
                    self.in_value(value)
            case Allocate(buffer):
                for e in buffer.shape:
                    self.of(e)
            case _:
                for e in expressions(s):
                    self.in_value(e)

    def in_value(self, e: Expr) -> None:
        """The index arithmetic inside a value: in the indices of loads and tables, and in guards."""
        for node in walk(e):
            if isinstance(node, Load):
                for i in (*node.indices, *node.buffer.shape):
                    self.of(i)
            elif isinstance(node, Call) and node.op == "table":
                self.of(node.args[1])
            elif is_guard(node):
                for part in walk(node):
                    if _compares_indices(part):
                        self.compare(part)  # type: ignore[arg-type]

    def compare(self, e: Binary) -> None:
        """A comparison, whose sides passes bring together: what is left of one less the other has to fit as well. So
        does what is left without a term k * x, with k - 1 more or less: passes ask from which x on it fails."""
        whole, dtype = _arithmetic("sub", self.of(e.a), self.of(e.b)), dt.element_of(e.a.dtype)
        self.clip((whole[0] - 1, whole[1] + 1), dtype)
        terms, _ = linear(binary("sub", e.a, e.b))
        for x, k in terms.items():
            ends = [k * end for end in self.of(x)]
            self.clip((whole[0] - min(ends) - abs(k), whole[1] - max(ends) + abs(k)), dtype)

    def clip(self, span: Interval, dtype: str) -> Interval:
        if dtype != "int32":
            return span
        if span[0] < LOW or span[1] > HIGH:
            self.overflows = True
        return max(span[0], LOW), min(span[1], HIGH)

    def of(self, e: Expr) -> Interval:
        """The interval of e. Every index is looked at once: it is met again below each load around it."""
        found = self.met.get(id(e))
        if found is None:
            found = self.met[id(e)] = e, self.span(e)        # e is kept, and so is its id
        return found[1]

    def span(self, e: Expr) -> Interval:
        if isinstance(e, IntImm):
            return e.value, e.value
        if isinstance(e, Var):
            return self.known.get(e) or _type_range(e.type)
        if isinstance(e, Binary) and e.op in _ARITHMETIC:
            span = _arithmetic(e.op, self.of(e.a), self.of(e.b))
            if not is_index(e):                           # it wraps, here too
                least, most = _type_range(e.dtype)
                return span if least <= span[0] and span[1] <= most else (least, most)
            return self.clip(span, dt.element_of(e.dtype))
        if isinstance(e, Cast) and e.type == "int64":
            return self.of(e.value) if dt.is_integer(e.value.dtype) else _type_range(e.type)
        if isinstance(e, Cast) and is_index(e):
            (low, high), (least, most) = self.of(e.value), _type_range(e.dtype)
            return (low, high) if least <= low and high <= most else (least, most)
        if isinstance(e, Ramp):
            last = IntImm(e.lanes - 1, "int64")
            first, steps = self.of(e.base), _arithmetic("mul", self.of(e.stride), self.of(last))
            return self.clip((first[0] + min(0, steps[0]), first[1] + max(0, steps[1])), dt.element_of(e.dtype))
        if isinstance(e, Broadcast):
            return self.of(e.value)
        if isinstance(e, Call) and e.op == "checked_index":
            return self.of(e.args[0])
        if isinstance(e, Select) or (isinstance(e, Call) and e.op == "if_then_else"):
            cond, a, b = (e.condition, e.a, e.b) if isinstance(e, Select) else e.args
            self.in_value(cond)
            (p, q), (r, s) = self.of(a), self.of(b)
            return min(p, r), max(q, s)
        self.in_value(e)
        return _type_range(e.dtype)


def _type_range(dtype: str) -> Interval:
    integral = not dt.is_float(dtype) and dtype != "handle"
    return dt.integer_range(dt.element_of(dtype)) if integral else (LOW, HIGH)


def _arithmetic(op: str, a: Interval, b: Interval) -> Interval:
    match op:
        case "add":
            return a[0] + b[0], a[1] + b[1]
        case "sub":
            return a[0] - b[1], a[1] - b[0]
        case "mul":
            corners = [x * y for x in a for y in b]
            return min(corners), max(corners)
        case "min":
            return min(a[0], b[0]), min(a[1], b[1])
        case "max":
            return max(a[0], b[0]), max(a[1], b[1])
        case "shl" | "shr":
            return _shifted(op, a, b)
        case "bitand" | "bitor" | "bitxor":
            if op == "bitand" and (a[0] >= 0 or b[0] >= 0):
                return 0, min(x[1] for x in (a, b) if x[0] >= 0)
            reach = (1 << max(-1 - x if x < 0 else x for x in (*a, *b)).bit_length()) - 1
            return (0 if a[0] >= 0 and b[0] >= 0 else -1 - reach), reach
        case "floordiv" | "truncdiv":
            if b[0] > 0:
                divide = operator.floordiv if op == "floordiv" else trunc_div
                ends = [divide(x, y) for x in a for y in b]
                return min(ends), max(ends)
            most = max(abs(a[0]), abs(a[1]))
            return -most, most
        case _:
            if b[0] > 0 and (op == "floormod" or a[0] >= 0):
                return 0, min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1
            most = max(abs(b[0]), abs(b[1]))
            return -most, most


def _shifted(op: str, a: Interval, b: Interval) -> Interval:
    """By an amount of 0 to 63; others shift everything out."""
    amounts = [min(max(x, 0), 63) for x in b]
    if b[0] < 0 or b[1] > 63:
        amounts += [0, 63]
    corners = [x << n if op == "shl" else x >> n for x in a for n in amounts]
    return min(0, *corners), max(0, *corners)


def _compares_indices(e: Node) -> bool:
    return isinstance(e, Binary) and e.op in _COMPARISONS and is_index(e.a) and is_index(e.b)


def is_guard(e: Node) -> bool:
    """True for `likely(...)`: the condition of a loop that was split or fused, about indices."""
    return isinstance(e, Call) and e.op == "likely"


def _widened(func: PrimFunc, check: _Ranges) -> PrimFunc:
    params = [v for v in (*func.params, *shape_vars(func)) if v not in func.buffer_map and v.type == "int32"]
    params = list(dict.fromkeys(params))
    pass_ = _Widening(params, check.beyond)
    body = pass_(func.body)
    for v in reversed(params):
        if v in pass_.used:
            body = LetStmt(pass_.wide[v], Cast("int64", v), body)
    return func.with_body(body)


def _wide(e: Expr) -> Expr:
    return cast(dt.with_lanes("int64", dt.lanes_of(e.dtype)), e)


class _Widening(Copier):
    """Calling it rewrites a value or statement in its own types; `index` rewrites an expression to int64."""

    def __init__(self, params: list[Var], beyond: set[Var]) -> None:
        super().__init__()
        self.beyond = beyond
        self.in_guard = False
        self.wide: dict[Var, Var] = {v: Var(v.name, "int64") for v in params}
        self.used: set[Var] = set()
        self.loops: set[Var] = set()

    def index(self, e: Expr) -> Expr:
        """e in 64 bits, with as many lanes as it has."""
        if isinstance(e, IntImm):
            return IntImm(e.value, "int64")
        if isinstance(e, Var):
            if e in self.wide:
                self.used.add(e)
                return self.wide[e]
            return _wide(self.variables.get(e, e))
        exact = is_index(e)
        if isinstance(e, Binary) and e.op in _ARITHMETIC and (exact or dt.element_of(e.dtype) in ("int32", "int64")):
            out = binary(e.op, self.index(e.a), self.index(e.b))
            return out if exact or dt.element_of(e.dtype) == "int64" else _wide(Cast(e.dtype, out))
        if isinstance(e, Cast) and e.type == "int64" and dt.is_integer(e.value.dtype):
            return self.index(e.value) if exact or e.value.dtype == "int32" else cast("int64", self(e.value))
        if isinstance(e, Call) and e.op == "checked_index":
            return Call(e.op, tuple([self.index(a) for a in e.args]), dt.with_lanes("int64", dt.lanes_of(e.dtype)))
        if isinstance(e, Ramp):
            return Ramp(self.index(e.base), self.index(e.stride), e.lanes)
        if isinstance(e, Broadcast):
            return Broadcast(self.index(e.value), e.lanes)
        if isinstance(e, Select):
            return Select(self(e.condition), self.index(e.a), self.index(e.b))
        if isinstance(e, Call) and e.op == "if_then_else":
            return Call(e.op, (self(e.args[0]), self.index(e.args[1]), self.index(e.args[2])), "int64")
        return _wide(self(e))

    def flat(self, buffer: Buffer) -> Buffer:
        """An argument's buffer: its shape is stated outside of the body, in terms of the parameters."""
        known = self.buffers.get(buffer)
        if known is None:
            known = buffer
            if not isinstance(buffer.shape[0], IntImm):
                outside = _Widening([], set())
                known = buffer.replace(shape=tuple([outside.index(d) for d in buffer.shape]))
            self.buffers[buffer] = known
        return known

    def var(self, e: Var) -> Expr:
        return Cast("int32", self.wide[e]) if e in self.loops else self.variables.get(e, e)

    def binary(self, e: Binary) -> Expr:
        if self.in_guard and _compares_indices(e):
            return binary(e.op, self.index(e.a), self.index(e.b))
        if self.beyond and is_index(e) and uses_any(e, self.beyond):
            return Cast(e.dtype, self.index(e))
        return super().binary(e)

    def call(self, e: Call) -> Expr:
        if e.op == "table":
            return Call(e.op, (e.args[0], self.index(e.args[1])), e.type)
        outer, self.in_guard = self.in_guard, self.in_guard or is_guard(e)
        try:
            return super().call(e)
        finally:
            self.in_guard = outer

    def access(self, buffer: Buffer, indices: Sequence[Expr]) -> tuple[Buffer, tuple[Expr, ...]]:
        return self.flat(buffer), tuple([self.index(i) for i in indices])

    def loop(self, s: For) -> Stmt:
        var = Var(s.loop_var.name, "int64") if s.loop_var.type == "int32" else s.loop_var
        if var is not s.loop_var:
            self.wide[s.loop_var] = var
            self.loops.add(s.loop_var)
        low, extent = self.index(s.min), self.index(s.extent)
        return For(var, low, extent, s.kind, self(s.body), s.thread_tag, s.annotations)

    def allocate(self, s: Allocate) -> Stmt:
        size = s.buffer.shape[0]
        if not isinstance(size, IntImm):
            self.buffers[s.buffer] = s.buffer.replace(shape=(self.index(size),))
        return Allocate(self.buffers.get(s.buffer, s.buffer), self(s.body), s.annotations)

