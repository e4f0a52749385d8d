"""Expressions of the interpreter: IR to Python source. Scalars as in `scalars`; vectors are sequences of lanes."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.support.errors import InterpreterError
from tilewright.tir import dtype as dt
from tilewright.tir.constant_table import array_of
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
from tilewright.tir.interp import support as rt
from tilewright.tir.interp.scalars import V, literal, logical, scalar_binary, scalar_call, scalar_cast, wrap
from tilewright.tir.llvm_intrinsics import LLVM_CALLS, evaluate
from tilewright.tir.ops import INTRINSICS
from tilewright.tir.places import INDEXED, is_index

LONG = 160  # longer text goes into a variable of its own: Python limits nested parentheses


class ExprCompiler:
    """Writes Python statements into `lines` while it turns expressions into text."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.indent = ""
        self.env: dict[int, V] = {}  # id(Var) -> its value
        self.globals: dict[str, Any] = {
            **rt.FLOATS, **rt.FUNCTIONS, "llvm_intrinsic": evaluate, "infinity": np.inf}
        self.constants: dict[tuple[str, str], str] = {}
        self.count = 0
        self.kept: dict[str, str] = {}  # integer arithmetic that a visible variable already holds
        self.in_place = False  # what is emitted is an index: arithmetic on variables does not wrap in 32 bits

    # text --------------------------------------------------------------------------------------------------
    def line(self, text: str) -> None:
        self.lines.append(self.indent + text)

    def name(self, base: str) -> str:
        self.count += 1
        return f"{base}{self.count}"

    def constant(self, value: Any, key: tuple[str, str]) -> str:
        """The global that holds value."""
        if key not in self.constants:
            self.constants[key] = self.name("k")
            self.globals[self.constants[key]] = value
        return self.constants[key]

    def keep(self, v: V) -> V:
        """v in a variable, so that its text may be repeated."""
        if v.text.isidentifier() or v.text.isdigit() or (v.low == v.high and v.text.startswith("(-")):
            return v
        name = self.kept.get(v.text)
        if name is None:
            name = self.name("t")
            self.line(f"{name} = {v.text}")
            if "[" not in v.text:  # what reads memory may change
                self.kept[v.text] = name
        return V(name, v.low, v.high)

    def captured(self, e: Expr) -> tuple[list[str], V]:
        """(statements, value) of e, the statements one level deeper and not yet part of the program."""
        outer, indent, kept = self.lines, self.indent, dict(self.kept)
        self.lines, self.indent = [], indent + " "
        value = self.emit(e)
        lines, self.lines, self.indent, self.kept = self.lines, outer, indent, kept
        return lines, value

    # expressions -------------------------------------------------------------------------------------------
    def emit(self, e: Expr) -> V:
        """The value of e at this place of the program."""
        rule = _RULES.get(type(e))
        if rule is None:
            raise InterpreterError(f"the interpreter has no rule for {type(e).__name__}: {e}")
        v = rule(self, e)
        return self.keep(v) if len(v.text) > LONG else v

    def index(self, e: Expr, yes: bool = True) -> V:
        """The value of e where an index, a bound of a loop or the like stands; with yes=False, where a value does."""
        outer, self.in_place = self.in_place, yes
        try:
            return self.emit(e)
        finally:
            self.in_place = outer

    def element(self, e: Expr) -> str:
        """The type that arithmetic of e is done in: its own, and 64 bits for what variables alone make of an index."""
        element = dt.element_of(e.dtype)
        return "int64" if self.in_place and dt.is_integer(element) and element != "uint64" and is_index(e) else element

    def var(self, e: Var) -> V:
        v = self.env.get(id(e))
        if v is None:
            raise InterpreterError(f"{e.name} has no value: no loop, block axis, parameter or shape binds it")
        return v

    def float_const(self, e: FloatImm) -> V:
        return V(self.constant(rt.FLOATS[e.type](e.value), (e.type, repr(e.value))))

    def binary(self, e: Binary) -> V:
        dtype = e.a.dtype
        element, lanes = dt.parse(dtype)
        if lanes > 1:
            a, b = self.emit(e.a), self.emit(e.b)
            element = self.element(e) if e.dtype == dtype else element
            out = scalar_binary(e.op, V("x", a.low, a.high), V("y", b.low, b.high), element)
            return V(f"[{out.text} for x, y in zip({a.text}, {b.text})]", out.low, out.high)
        if e.op in ("and", "or"):
            return self.short_circuit(e)
        element = self.element(e) if e.dtype == dtype else element
        return scalar_binary(e.op, self.emit(e.a), self.emit(e.b), element)

    def short_circuit(self, e: Binary) -> V:
        """`and`, `or`: the right side is evaluated only when it decides."""
        a = self.emit(e.a)
        lines, b = self.captured(e.b)
        if not lines or a.text in ("True", "False"):
            self.lines += [line[1:] for line in lines] if a.text == ("True" if e.op == "and" else "False") else []
            return logical(e.op, a, b)
        name = self.name("t")
        self.line(f"{name} = {a.text}")
        self.line(f"if {name}:" if e.op == "and" else f"if not {name}:")
        self.lines += lines
        self.line(f" {name} = {b.text}")
        return V(name)

    def not_(self, e: Not) -> V:
        a = self.emit(e.a)
        if dt.lanes_of(e.dtype) > 1:
            return V(f"[not x for x in {a.text}]")
        return V({"True": "False", "False": "True"}.get(a.text, f"(not {a.text})"))

    def cast(self, e: Cast) -> V:
        (source, lanes), (target, _) = dt.parse(e.value.dtype), dt.parse(e.type)
        x = self.index(e.value, self.in_place and target == "int64")
        if lanes == 1:
            return scalar_cast(x, source, target)
        out = scalar_cast(V("x", x.low, x.high), source, target)
        return V(f"[{out.text} for x in {x.text}]", out.low, out.high)

    def select(self, e: Select) -> V:
        c, a, b = self.index(e.condition, False), self.emit(e.a), self.emit(e.b)
        low, high = min(a.low, b.low), max(a.high, b.high)
        if dt.lanes_of(e.condition.dtype) > 1:
            return V(f"[x if c else y for c, x, y in zip({c.text}, {a.text}, {b.text})]", low, high)
        return V(f"({a.text} if {c.text} else {b.text})", low, high)

    def if_then_else(self, condition: Expr, a: Expr, b: Expr) -> V:
        """Only the value chosen is evaluated (on vectors of conditions: both, lane by lane)."""
        if dt.lanes_of(condition.dtype) > 1:
            return self.select(Select(condition, a, b))
        c = self.index(condition, False)
        if c.text in ("True", "False"):
            return self.emit(a if c.text == "True" else b)
        (lines_a, x), (lines_b, y) = self.captured(a), self.captured(b)
        low, high = min(x.low, y.low), max(x.high, y.high)
        if not lines_a and not lines_b:
            return V(f"({x.text} if {c.text} else {y.text})", low, high)
        name = self.name("t")
        self.line(f"if {c.text}:")
        self.lines += lines_a
        self.line(f" {name} = {x.text}")
        self.line("else:")
        self.lines += lines_b
        self.line(f" {name} = {y.text}")
        return V(name, low, high)

    def let(self, e: Let) -> V:
        self.env[id(e.var)] = self.keep(self.index(e.value, False))
        return self.index(e.body, False)

    def ramp(self, e: Ramp) -> V:
        base, stride, n = self.keep(self.emit(e.base)), self.emit(e.stride), e.lanes
        ends = [x * (n - 1) for x in (stride.low, stride.high)]
        low, high = base.low + min(0, *ends), base.high + max(0, *ends)
        element = self.element(e)
        least, most = dt.integer_range(element)
        if low >= least and high <= most and stride.low == stride.high != 0:
            step = "" if stride.low == 1 else f", {stride.text}"
            return V(f"range({base.text}, {base.text} + {n} * {stride.text}{step})", low, high)
        lane = wrap(f"{base.text} + k * {stride.text}", low, high, element)
        return V(f"[{lane.text} for k in range({n})]", lane.low, lane.high)

    def broadcast(self, e: Broadcast) -> V:
        x = self.emit(e.value)
        return V(f"[{x.text}] * {e.lanes}", x.low, x.high)

    def shuffle(self, e: Shuffle) -> V:
        parts = [self.emit(v) for v in e.vectors]
        lanes = f"[{', '.join(f'*{x.text}' for x in parts)}]"
        text = f"[v[k] for v in ({lanes},) for k in {e.indices}]"
        return V(text if len(e.indices) > 1 else f"{text}[0]", min(x.low for x in parts), max(x.high for x in parts))

    def call(self, e: Call) -> V:
        if e.op == "if_then_else":
            return self.if_then_else(*e.args)
        if e.op in LLVM_CALLS:
            return self.llvm_intrinsic(e)
        if e.op == "reinterpret" and dt.lanes_of(e.args[0].dtype) != dt.lanes_of(e.type):
            return self.regroup(e)
        if INTRINSICS[e.op].kind == "effect" or e.op in ("access_ptr", "inside"):
            return self.effect(e)
        if e.op == "table":
            return self.table(e)
        if e.op == "unguarded":
            return self.emit(e.args[0])
        if e.op in ("some", "no_fault"):
            return V(f"any({self.emit(e.args[0]).text})" if e.args else "True")
        args = [self.index(a, e.op in INDEXED) for a in e.args]
        (source, lanes), (target, _) = dt.parse(e.args[-1].dtype), dt.parse(e.type)
        if INTRINSICS[e.op].evaluate is not None:
            self.globals[f"{e.op}_{source}"] = rt.row_function(e.op, source)
        if lanes == 1:
            kept = [self.keep(a) for a in args] if e.op in ("isnan", "checked_index") else args
            return scalar_call(e.op, kept, source, target)
        letters = "xyz"[:len(args)]
        out = scalar_call(e.op, [V(n, a.low, a.high) for n, a in zip(letters, args, strict=True)], source, target)
        lists = args[0].text if len(args) == 1 else f"zip({', '.join(a.text for a in args)})"
        return V(f"[{out.text} for {', '.join(letters)} in {lists}]", out.low, out.high)

    def table(self, e: Call) -> V:
        """An element of a constant array; at an index that is none of it, the last one."""
        data, (element, lanes) = e.args[0], dt.parse(e.type)
        assert isinstance(data, StringImm)
        values = array_of(data.value, element).tolist()
        name = f"table_{len(self.globals)}"
        self.globals[name] = values
        x = self.keep(self.index(e.args[1]))
        low, high = (min(values), max(values)) if dt.is_integer(element) else (0, 0)
        one = f"({name}[{{0}}] if 0 <= {{0}} < {len(values)} else {name}[-1])"
        return V(one.format(x.text) if lanes == 1 else f"[{one.format('k')} for k in {x.text}]", low, high)

    def llvm_intrinsic(self, e: Call) -> V:
        """By the table of meanings; an effect, if there is one, is none that the interpreter has."""
        name, dtypes = e.args[0], tuple(a.dtype for a in e.args[1:])
        assert isinstance(name, StringImm), "the first argument is the name"
        args = "".join(f"{self.emit(a).text}, " for a in e.args[1:])
        return self.ranged(f"llvm_intrinsic({name.value!r}, {e.type!r}, {dtypes}, ({args}))", e.type)

    def regroup(self, e: Call) -> V:
        """reinterpret as another number of lanes."""
        return self.ranged(f'regroup({self.emit(e.args[0]).text}, "{e.args[0].dtype}", "{e.type}")', e.type)

    def ranged(self, text: str, dtype: str) -> V:
        return V(text, *dt.integer_range(dtype)) if dt.is_integer(dtype) else V(text)

    def effect(self, e: Call) -> V:
        raise InterpreterError(f"{e.op} has an effect; it cannot be evaluated here")


_RULES: dict[type, Callable[[Any, Any], V]] = {
    Var: ExprCompiler.var,
    IntImm: lambda c, e: V(str(bool(e.value))) if e.type == "bool" else literal(e.value),
    FloatImm: ExprCompiler.float_const,
    StringImm: lambda c, e: V(repr(e.value)),
    Binary: ExprCompiler.binary,
    Not: ExprCompiler.not_,
    Cast: ExprCompiler.cast,
    Select: ExprCompiler.select,
    Call: ExprCompiler.call,
    Let: ExprCompiler.let,
    Ramp: ExprCompiler.ramp,
    Broadcast: ExprCompiler.broadcast,
    Shuffle: ExprCompiler.shuffle,
}


def expression_rule(cls: type) -> Callable[[Callable[[Any, Any], V]], Callable[[Any, Any], V]]:
    """Decorator: the rule for an expression class whose meaning needs more than values (Load needs memory)."""
    def keep(fn: Callable[[Any, Any], V]) -> Callable[[Any, Any], V]:
        _RULES[cls] = fn
        return fn
    return keep
