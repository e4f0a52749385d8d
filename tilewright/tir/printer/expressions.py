"""Expressions, buffers and names as TVMScript text.

Names are unique among those visible at one place: a sibling scope may use a name again, as in Python.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tilewright.support.names import identifier
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import result_type
from tilewright.tir.buffer import Buffer, BufferRegion, Load, MatchBuffer
from tilewright.tir.expr import (
    Binary,
    Broadcast,
    Call,
    Cast,
    Expr,
    FloatImm,
    IntImm,
    Let,
    Not,
    Ramp,
    Select,
    Shuffle,
    StringImm,
    Var,
)
from tilewright.tir.iter_var import IterVar, Range
from tilewright.tir.node import Node
from tilewright.tir.ops import BINARY, GPU_DTYPE_FIRST, INTRINSICS, NOT_PRECEDENCE
from tilewright.tir.slices import stop_of

NEGATION = 11  # precedence of -x: above those of binary operators
ATOM = 100  # precedence of names, literals and calls
_RESERVED = {"T", "I", "R", "range", "float"}
_DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
_ITER_TYPES = ("DataPar", "ThreadIndex", "CommReduce", "Ordered", "Opaque")
# T.call_extern("int32", "symbol", ...)
DTYPE_FIRST = {"call_extern", "call_function", "reinterpret", "call_llvm_pure_intrin", "call_llvm_intrin", "table",
               *GPU_DTYPE_FIRST}


class Names:
    """The printed name of every Var and Buffer, by identity, in nested scopes."""

    def __init__(self) -> None:
        self._taken: set[str] = set(_RESERVED)
        self._of: dict[int, tuple[str, object]] = {}  # holds the object too, so that ids stay unique
        self._scopes: list[list[str]] = []

    def push(self) -> None:
        self._scopes.append([])

    def pop(self) -> None:
        """End a scope: its names are free again."""
        self._taken.difference_update(self._scopes.pop())

    def fresh(self, base: str) -> str:
        """A valid name that nothing visible has; it belongs to the innermost scope."""
        base = identifier(base)
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        if self._scopes:
            self._scopes[-1].append(name)
        return name

    def define(self, thing: object, base: str) -> str:
        """Give thing a fresh name in the innermost scope."""
        name = self.fresh(base)
        self._of[id(thing)] = (name, thing)
        return name

    def alias(self, thing: object, text: str) -> None:
        """thing prints as text, which is no new name (`A.data`)."""
        self._of[id(thing)] = (text, thing)

    def knows(self, thing: object) -> bool:
        return id(thing) in self._of

    def of(self, thing: Any) -> str:
        """The name of a Var or Buffer; one that nothing defined gets a name for good."""
        entry = self._of.get(id(thing))
        if entry is not None:
            return entry[0]
        scopes, self._scopes = self._scopes, []
        name = self.define(thing, thing.name)
        self._scopes = scopes
        return name


class ExprPrinter:
    """Text of expressions under one set of names."""

    def __init__(self) -> None:
        self.names = Names()

    def expr(self, e: Any, outer: int = 0) -> str:
        """Text of e, in parentheses where it binds weaker than `outer`."""
        text, precedence = _EXPR[type(e)](self, e)
        return f"({text})" if precedence < outer else text

    def items(self, values: Iterable[Any]) -> str:
        return ", ".join([self.expr(x) for x in values])

    def shape(self, values: tuple[Any, ...]) -> str:
        return f"({self.items(values)},)" if len(values) == 1 else f"({self.items(values)})"

    def index(self, indices: tuple[Expr, ...]) -> str:
        """The text between the brackets of an access: vectors of constant stride print as slices."""
        parts = []
        for i in indices:
            stride = i.stride if isinstance(i, Ramp) and i.lanes > 1 else None
            if isinstance(i, Ramp) and isinstance(stride, IntImm) and stride.value > 0:
                stop = stop_of(i.base, IntImm(i.lanes * stride.value, stride.type))
                step = f":{stride.value}" if stride.value != 1 else ""
                parts.append(f"{self.expr(i.base)}:{self.expr(stop)}{step}")
            else:
                parts.append(self.expr(i))
        return ", ".join(parts) or "()"

    def region(self, r: BufferRegion) -> str:
        parts = []
        for axis in r.region:
            if isinstance(axis.extent, IntImm) and axis.extent.value == 1:
                parts.append(self.expr(axis.min))
            else:
                parts.append(f"{self.expr(axis.min)}:{self.expr(stop_of(axis.min, axis.extent))}")
        return f"{self.names.of(r.buffer)}[{', '.join(parts) or '()'}]"

    def buffer_args(self, b: Buffer, *, always_dtype: bool = False, scope: bool = True) -> str:
        """The arguments of T.Buffer, T.alloc_buffer, ...: shape, dtype, then what differs from the default."""
        parts = [self.shape(b.shape)]
        if always_dtype or b.dtype != "float32":
            parts.append(f'"{b.dtype}"')
        if b.strides:
            parts.append(f"strides={self.shape(b.strides)}")
        if b.elem_offset is not None:
            parts.append(f"elem_offset={self.expr(b.elem_offset)}")
        elif b.offset_factor:
            parts.append("elem_offset=None")                    # with a factor alone there would be a variable
        if scope and b.scope != "global":
            parts.append(f'scope="{b.scope}"')
        if b.data_alignment != 64:
            parts.append(f"align={b.data_alignment}")
        if b.offset_factor != 0:
            parts.append(f"offset_factor={b.offset_factor}")
        if b.axis_separators:
            parts.append(f"axis_separators={list(b.axis_separators)}")
        return ", ".join(parts)

    def value(self, x: Any) -> str:
        """An attribute or annotation value as Python: constants of the IR keep their type."""
        if isinstance(x, IntImm) and x.type == "int32":
            return f"T.int32({x.value})"
        if isinstance(x, StringImm):
            return f"T.StringImm({quote(x.value)})"
        if isinstance(x, Node):
            return self.expr(x)
        if isinstance(x, dict) or hasattr(x, "items"):
            return "{" + ", ".join(f"{quote(str(k))}: {self.value(v)}" for k, v in x.items()) + "}"
        if isinstance(x, (list, tuple)):
            inner = ", ".join(self.value(v) for v in x)
            return f"[{inner}]" if isinstance(x, list) else f"({inner},)" if len(x) == 1 else f"({inner})"
        if isinstance(x, (np.bool_, np.integer, np.floating)):
            x = x.item()
        if isinstance(x, float):
            return float.__repr__(x) if math.isfinite(x) else f'float("{float(x)}")'
        if x is None or isinstance(x, (bool, int)):
            return repr(x)
        return f"T.target({quote(str(x))})" if isinstance(x, Target) else quote(str(x))


def quote(text: str) -> str:
    """A Python string literal in double quotes."""
    if '"' in text:
        return repr(text)
    return '"' + repr(f'{text}"')[1:-2] + '"'


def _float(x: FloatImm) -> str:
    value = float(x.value)
    if not math.isfinite(value):
        return f'T.{x.type}("{value}")'
    whole = value.is_integer() and abs(value) < 1e15 and not (value == 0 and math.copysign(1, value) < 0)
    return f"T.{x.type}({int(value) if whole else repr(value)})"


def _int(x: IntImm) -> str:
    if x.type == "int32":
        return str(x.value)
    return f"T.bool({bool(x.value)})" if x.type == "bool" else f"T.{x.type}({x.value})"


def _binary(p: ExprPrinter, e: Binary) -> tuple[str, int]:
    row = BINARY[e.op]
    if e.op == "sub" and _is_negative_zero(e.a) and not isinstance(e.b, FloatImm):
        return f"-{p.expr(e.b, NEGATION + 1)}", NEGATION                # as `negate` makes it
    left = row.precedence + (1 if row.compares else 0)  # a < b < c would be a chain
    if isinstance(e.a, IntImm) and isinstance(e.b, IntImm) and e.a.type == "int32":
        a = f"T.int32({e.a.value})"  # two bare numbers would be one number
    else:
        a = p.expr(e.a, left if row.infix else 0)
    if isinstance(e.b, IntImm) and e.b.value == 0 and e.b.type == "int32" and e.op in _DIVISIONS:
        b = "T.int32(0)"  # the parser refuses a bare zero
    else:
        b = p.expr(e.b, row.precedence + 1 if row.infix else 0)
    return (f"{a} {row.symbol} {b}", row.precedence) if row.infix else (f"{row.symbol}({a}, {b})", ATOM)


def _is_negative_zero(e: Expr) -> bool:
    return isinstance(e, FloatImm) and e.value == 0 and math.copysign(1, e.value) < 0


def _call(p: ExprPrinter, e: Call) -> tuple[str, int]:
    args = [p.expr(a) for a in e.args]
    if e.op in DTYPE_FIRST:
        args.insert(0, f'"{e.type}"')
    elif e.op not in INTRINSICS or e.type != result_type(e.op, e.args):
        args.append(f'dtype="{e.type}"')
    return f"T.{e.op}({', '.join(args)})", ATOM


def _load(p: ExprPrinter, e: Load) -> tuple[str, int]:
    if e.predicate is not None:
        return f"{p.names.of(e.buffer)}.vload([{p.items(e.indices)}], predicate={p.expr(e.predicate)})", ATOM
    return f"{p.names.of(e.buffer)}[{p.index(e.indices)}]", ATOM


def _let(p: ExprPrinter, e: Let) -> tuple[str, int]:
    value = p.expr(e.value)
    p.names.push()
    var = p.names.define(e.var, e.var.name)
    text = f"T.Let({p.expr(e.body)}, where={{{var}: {value}}})"
    p.names.pop()
    return text, ATOM


def _iter_var(p: ExprPrinter, e: IterVar) -> tuple[str, int]:
    dom = "None" if e.dom is None else p.expr(e.dom)
    return f'T.iter_var({p.expr(e.var)}, {dom}, "{_ITER_TYPES[e.iter_type]}", "{e.thread_tag}")', ATOM


_EXPR: dict[type, Callable[[Any, Any], tuple[str, int]]] = {
    Var: lambda p, e: (p.names.of(e), ATOM),
    Buffer: lambda p, e: (p.names.of(e), ATOM),
    IntImm: lambda p, e: (_int(e), ATOM),
    FloatImm: lambda p, e: (_float(e), ATOM),
    StringImm: lambda p, e: (quote(e.value), ATOM),
    Binary: _binary,
    Not: lambda p, e: (f"not {p.expr(e.a, NOT_PRECEDENCE)}", NOT_PRECEDENCE),
    Cast: lambda p, e: (f'T.Cast("{e.type}", {p.expr(e.value)})', ATOM),
    Select: lambda p, e: (f"T.Select({p.expr(e.condition)}, {p.expr(e.a)}, {p.expr(e.b)})", ATOM),
    Call: _call,
    Let: _let,
    Ramp: lambda p, e: (f"T.Ramp({p.expr(e.base)}, {p.expr(e.stride)}, {e.lanes})", ATOM),
    Broadcast: lambda p, e: (f"T.Broadcast({p.expr(e.value)}, {e.lanes})", ATOM),
    Shuffle: lambda p, e: (f"T.Shuffle([{', '.join(map(p.expr, e.vectors))}], {[*e.indices]})", ATOM),
    Load: _load,
    Range: lambda p, e: (f"T.Range({p.expr(e.min)}, {p.expr(stop_of(e.min, e.extent))})", ATOM),
    IterVar: _iter_var,
    BufferRegion: lambda p, e: (p.region(e), ATOM),
    MatchBuffer: lambda p, e: (f"T.match_buffer({p.region(e.source)}, {p.buffer_args(e.buffer)})", ATOM),
}


def register_expr_printer(cls: type, fn: Callable[[ExprPrinter, Any], str]) -> None:
    """Make nodes of cls (of a higher floor, such as a te reduction) print as fn(printer, node)."""
    _EXPR[cls] = lambda p, e: (fn(p, e), ATOM)


def is_expression(node: object) -> bool:
    """True for what ExprPrinter prints: expressions, buffers, ranges, regions."""
    return type(node) in _EXPR


def symbols(e: Node | None) -> list[Var]:
    """The Vars that e mentions, in order of first appearance."""
    found: list[Var] = []
    stack = [e] if e is not None else []
    while stack:
        top = stack.pop()
        if isinstance(top, Var):
            if not any(top is v for v in found):
                found.append(top)
        else:
            from_fields = [getattr(top, k) for k in type(top).__dataclass_fields__]
            flat = [y for x in from_fields for y in (x if isinstance(x, tuple) else (x,))]
            stack.extend(reversed([y for y in flat if isinstance(y, Expr)]))
    return found


def type_text(dtype: str) -> str:
    """The constructor of a dtype: T.int32, T.handle, T.float32x4."""
    return f"T.{dt.canonical(dtype)}"
