"""Copies of statements with variables replaced, constants folded and dead branches dropped."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import tir
from tilewright.lowering.conditions import guard, is_nop
from tilewright.lowering.walking import same_items
from tilewright.tir.arithmetic import binary, logical_not
from tilewright.tir.node import map_children
from tilewright.tir.ops import BINARY
from tilewright.tir.stmt import seq
from tilewright.tir.symbols import map_scoped


def fold_binary(op: str, a: tir.Expr, b: tir.Expr) -> tir.Expr:
    """`a op b` on operands of one dtype, folded where both are constants or one is neutral."""
    if type(a) is tir.IntImm or type(b) is tir.IntImm or BINARY[op].logical:
        return binary(op, a, b)
    return tir.Binary(op, a, b)


def renamed(buffer: tir.Buffer, **changed: Any) -> tir.Buffer:
    """A new buffer like this one behind a new pointer."""
    return buffer.replace(data=tir.Var(buffer.data.name, "handle"), **changed)


# The nodes that are folded, and the most frequent ones; `map_scoped` copies the rest.
_METHODS: dict[type, str] = {
    tir.Var: "var", tir.IntImm: "leaf", tir.FloatImm: "leaf", tir.StringImm: "leaf", tir.Binary: "binary",
    tir.Not: "negation", tir.Select: "select", tir.Call: "call", tir.Load: "load", tir.Store: "store", tir.For: "loop",
    tir.IfThenElse: "branch", tir.Seq: "seq", tir.While: "while_loop", tir.Allocate: "allocate",
}


class Copier:
    """Copies IR under a substitution of variables and buffers.

    `fresh` gives every loop, let and allocation of the copy an identity of its own: needed whenever the
    original stays in the program or is copied again. Buffer shapes are rewritten for allocations only.
    """

    def __init__(self, variables: Mapping[tir.Var, tir.Expr] | None = None,
                 buffers: Mapping[tir.Buffer, tir.Buffer] | None = None, fresh: bool = False) -> None:
        self.variables: dict[tir.Var, tir.Expr] = dict(variables or {})
        self.buffers: dict[tir.Buffer, tir.Buffer] = dict(buffers or {})
        self.fresh = fresh

        self._handlers = {cls: getattr(self, name) for cls, name in _METHODS.items()}

    def __call__(self, node: Any) -> Any:
        handler = self._handlers.get(type(node))
        return handler(node) if handler is not None else map_scoped(node, self, self.define, self.use)

    def use(self, symbol: Any) -> Any:
        return self.buffers.get(symbol, symbol)

    def define(self, x: Any) -> Any:
        if isinstance(x, tir.Var):
            return self.new_var(x)
        return self.new_buffer(x) if isinstance(x, tir.Buffer) else self(x)

    def new_var(self, var: tir.Var) -> tir.Var:
        if not self.fresh:
            return var
        copy = tir.Var(var.name, var.type)
        self.variables[var] = copy
        return copy

    def new_buffer(self, old: tir.Buffer) -> tir.Buffer:
        """What is allocated in the place of a buffer."""
        buffer = self.buffers.get(old, old)
        shape = tuple([self(d) for d in buffer.shape])
        if self.fresh:
            self.buffers[old] = new = renamed(buffer, shape=shape)
            self.variables[buffer.data] = new.data
            return new
        if not same_items(shape, buffer.shape):
            self.buffers[old] = buffer = buffer.replace(shape=shape)
        return buffer

    # expressions

    def var(self, e: tir.Var) -> tir.Expr:
        return self.variables.get(e, e)

    def leaf(self, e: tir.Expr) -> tir.Expr:
        return e

    def binary(self, e: tir.Binary) -> tir.Expr:
        a, b = self(e.a), self(e.b)
        return e if a is e.a and b is e.b else fold_binary(e.op, a, b)

    def negation(self, e: tir.Not) -> tir.Expr:
        a = self(e.a)
        return e if a is e.a else logical_not(a)

    def select(self, e: tir.Select) -> tir.Expr:
        new = map_children(e, self)
        condition = new.condition.value if type(new.condition) is tir.Broadcast else new.condition
        if type(condition) is tir.IntImm:
            return new.a if condition.value else new.b
        return new

    def call(self, e: tir.Call) -> tir.Expr:
        new = map_children(e, self)
        first = new.args[0] if new is not e and new.args else None
        if isinstance(first, tir.IntImm):
            if new.op == "likely":
                return first
            if new.op == "if_then_else":
                return new.args[1] if first.value else new.args[2]
        return new

    def access(self, buffer: tir.Buffer, indices: Sequence[tir.Expr]) -> tuple[tir.Buffer, tuple[tir.Expr, ...]]:
        """The buffer and the indices of the copy of a load or a store."""
        return self.buffers.get(buffer, buffer), tuple([self(i) for i in indices])

    def load(self, e: tir.Load) -> tir.Expr:
        buffer, indices = self.access(e.buffer, e.indices)
        predicate = None if e.predicate is None else self(e.predicate)
        if buffer is e.buffer and predicate is e.predicate and same_items(indices, e.indices):
            return e
        return tir.Load(buffer, indices, predicate)

    # statements

    def store(self, s: tir.Store) -> tir.Stmt:
        value = self(s.value)
        buffer, indices = self.access(s.buffer, s.indices)
        predicate = None if s.predicate is None else self(s.predicate)
        if buffer is s.buffer and value is s.value and predicate is s.predicate and same_items(indices, s.indices):
            return s
        return tir.Store(buffer, value, indices, predicate)

    def loop(self, s: tir.For) -> tir.Stmt:
        low, extent = self(s.min), self(s.extent)
        if type(extent) is tir.IntImm and extent.value <= 0:
            return tir.NOP
        if type(extent) is tir.IntImm and extent.value == 1 and s.kind != tir.THREAD_BINDING:
            self.variables[s.loop_var] = low
            return self(s.body)
        var = self.new_var(s.loop_var)
        body = self(s.body)
        if is_nop(body):
            return tir.NOP
        if var is s.loop_var and low is s.min and extent is s.extent and body is s.body:
            return s
        return tir.For(var, low, extent, s.kind, body, s.thread_tag, s.annotations)

    def branch(self, s: tir.IfThenElse) -> tir.Stmt:
        cond = self(s.condition)
        if type(cond) is tir.IntImm:
            return self(s.then_case) if cond.value else tir.NOP if s.else_case is None else self(s.else_case)
        then = self(s.then_case)
        other = None if s.else_case is None else self(s.else_case)
        if cond is s.condition and then is s.then_case and other is s.else_case and not is_nop(then):
            return s
        return guard(cond, then, other)

    def seq(self, s: tir.Seq) -> tir.Stmt:
        new = [self(x) for x in s.stmts]
        return s if same_items(new, s.stmts) else seq(new)

    def while_loop(self, s: tir.While) -> tir.Stmt:
        cond = self(s.condition)
        if type(cond) is tir.IntImm and not cond.value:
            return tir.NOP
        body = self(s.body)
        return s if cond is s.condition and body is s.body else tir.While(cond, body)

    def allocate(self, s: tir.Allocate) -> tir.Stmt:
        new = self.new_buffer(s.buffer)
        body = self(s.body)
        if is_nop(body):
            return tir.NOP
        return s if new is s.buffer and body is s.body else tir.Allocate(new, body, s.annotations)


def specialize(node: Any, variables: Mapping[tir.Var, tir.Expr], fresh: bool = False) -> Any:
    """node under a substitution, folded; with `fresh` its loops, lets and allocations are new objects."""
    return Copier(variables, fresh=fresh)(node) if variables or fresh else node
