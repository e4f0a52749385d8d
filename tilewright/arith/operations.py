"""How many operations on elements a function makes: additions, multiplications and calls of functions."""
from __future__ import annotations

import math
from collections.abc import Mapping

from tilewright.arith.analyzer import Analyzer
from tilewright.tir import dtype as dt
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Call, Expr, IntImm, Let, Select, Var
from tilewright.tir.iter_var import COMM_REDUCE, IterVar
from tilewright.tir.node import children, substitute, walk
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.stmt import BlockRealize, Evaluate, For, IfThenElse, LetStmt, PrimFunc, Seq, Stmt, Store, While

ARITHMETIC = ("add", "sub", "mul", "div", "floordiv", "floormod", "truncdiv", "truncmod", "min", "max")
_WITHOUT_WORK = ("assume", "Assert", "prefetch", "sync")


class _Unknown(Exception):
    """What runs cannot be counted."""


def operations(func: PrimFunc, values: Mapping[Var, int]) -> int | None:
    """Operations of one call with these values of the variables in shapes, and of scalar parameters.

    An addition, multiplication, division, minimum, maximum or mathematical function of elements is one operation, a
    fused multiply-add two; indices, conditions, conversions and bits are none. Of two branches the larger one counts.
    Every instance of a block counts once: what a schedule computes again is no useful work. None where the number
    depends on data, or where instructions and foreign functions are called, which say nothing of what they do.
    """
    counter = _Counter({v: IntImm(n, v.dtype) for v, n in values.items()})
    try:
        return counter.statement(func.body, 1, {})
    except _Unknown:
        return None


class _Counter:
    def __init__(self, table: Mapping[Var, Expr]) -> None:
        self.table = table
        self.analyzer = Analyzer()

    def size(self, extent: Expr) -> int:
        found = self.analyzer.simplify(substitute(extent, self.table))
        if not isinstance(found, IntImm):
            raise _Unknown
        return max(0, found.value)

    def statement(self, s: Stmt | None, times: int, loops: Mapping[Var, int]) -> int:
        """Operations of `times` runs. loops: those around s, inside the innermost block, with their extents."""
        match s:
            case None:
                return 0
            case For(loop_var=v, extent=extent, body=body):
                return self.statement(body, times, {**loops, v: self.size(extent)})
            case BlockRealize():
                return self.block(s, times, loops)
            case Seq(stmts=stmts):
                return sum(self.statement(x, times, loops) for x in stmts)
            case IfThenElse(then_case=a, else_case=b):
                return max(self.statement(a, times, loops), self.statement(b, times, loops))
            case LetStmt(value=value, body=body):
                return times * math.prod(loops.values()) * self.value(value) + self.statement(body, times, loops)
            case Store(value=value):
                return times * math.prod(loops.values()) * self.value(value)
            case Evaluate(value=value):
                return times * math.prod(loops.values()) * self.value(value)
            case While():
                raise _Unknown
        return sum(self.statement(x, times, loops) for x in children(s) if isinstance(x, Stmt))

    def block(self, s: BlockRealize, times: int, loops: Mapping[Var, int]) -> int:
        """The instances of a block are the points of its domain; loops that do not drive it run all of them again."""
        block = s.block
        driving = {n for e in (*s.iter_values, s.predicate) for n in walk(e) if isinstance(n, Var)}
        again = math.prod(n for v, n in loops.items() if v not in driving)
        points = [self.size(_extent(iv)) for iv in block.iter_vars]
        starts = math.prod(n for n, iv in zip(points, block.iter_vars) if iv.iter_type != COMM_REDUCE)
        return (self.statement(block.body, times * again * math.prod(points), {})
                + self.statement(block.init, times * again * starts, {}))

    def value(self, e: Expr) -> int:
        """Operations of one evaluation."""
        match e:
            case Load():
                return 0
            case Select(a=a, b=b):
                return max(self.value(a), self.value(b))
            case Let(value=value, body=body):
                return self.value(value) + self.value(body)
            case Call(op="if_then_else", args=(_, a, b)):
                return max(self.value(a), self.value(b))
            case Call(op=op, args=args):
                return self.call(op, args, dt.lanes_of(e.dtype))
            case Binary(op=op, a=a, b=b):
                own = dt.lanes_of(e.dtype) if op in ARITHMETIC else 0
                return own + self.value(a) + self.value(b)
        return sum(self.value(x) for x in children(e) if isinstance(x, Expr))

    def call(self, op: str, args: tuple[Expr, ...], lanes: int) -> int:
        if op in _WITHOUT_WORK:
            return 0
        row = INTRINSICS[op]
        if row.arity < 0:
            raise _Unknown
        own = {"fma": 2}.get(op, int(row.kind == "math"))
        return own * lanes + sum(self.value(a) for a in args)


def _extent(iv: IterVar) -> Expr:
    return iv.domain.extent
