"""Calls that act, in the interpreter: pointers into buffers, functions from outside, assumptions, barriers."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.runtime.printing import PRINT, print_values
from tilewright.support.errors import InterpreterError
from tilewright.tir import dtype as dt
from tilewright.tir.assertion import failure
from tilewright.tir.buffer import Load, pointer_layout
from tilewright.tir.expr import Call, StringImm
from tilewright.tir.interp.memory import MemoryCompiler
from tilewright.tir.interp.scalars import V, scalar_binary
from tilewright.tir.stmt import PrimFunc


class EffectCompiler(MemoryCompiler):
    """Calls of one function; `externs` are the functions from outside that it may call."""

    def __init__(self, func: PrimFunc, externs: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__(func.name, func)
        self.func, self.externs = func, externs
        self.results: list[Any] = []  # of the run that goes on
        self.in_group = False  # inside a generator that is one thread of a block

    def effect(self, e: Call) -> V:
        if e.op == "prefetch":
            return V("0")
        if e.op == "assume":
            c = self.keep(self.emit(e.args[0]))
            self.line(f"if not {c.text}: assumption({self.site()})")
            return V("0")
        if e.op == "Assert":
            c = self.keep(self.emit(e.args[0]))
            self.line(f"if not {c.text}: assertion({self.site()}, {failure(e.args[1], e.args[0])!r})")
            return V("0")
        if e.op == "inside":
            return self.is_inside(e)
        if e.op == "ret":
            self.line(f"{self.constant(self.results, ('results', ''))}.append({self.emit(e.args[0]).text})")
            return V("0")
        if e.op == "access_ptr":
            return self.pointer(e)
        if e.op in ("call_extern", "call_packed"):
            return self.external(e)
        if e.op == "sync":
            return self.barrier(e)
        raise InterpreterError(f"{self.func.name}: the interpreter has no rule for {e}")

    def is_inside(self, e: Call) -> V:
        """The lanes that are asked about, all of which are inside."""
        lanes, (index, extent), text = self.keep(self.emit(e.args[0])), map(self.index, e.args[1:3]), e.args[3]
        assert isinstance(text, StringImm), "the last argument of inside is a message"
        at, many = self.keep(index).text, dt.lanes_of(e.type) > 1
        of = (at, extent.text, lanes.text) if many else (f"[{at}]", extent.text, f"[{lanes.text}]")
        self.line(f"if lanes_outside({', '.join(of)}): not_inside({self.site()}, {text.value!r}, {', '.join(of)})")
        return lanes

    def barrier(self, e: Call) -> V:
        scope = e.args[0]
        if not isinstance(scope, StringImm) or scope.value not in ("shared", "shared.dyn", "global"):
            raise InterpreterError(f"{self.func.name}: {e}: the interpreter knows barriers of the threads of a block")
        if not self.in_group:
            raise InterpreterError(f"{self.func.name}: {e} stands outside of the threads of a block")
        self.line("yield")
        return V("0")

    def pointer(self, e: Call) -> V:
        first, (extents, steps) = e.args[0], pointer_layout(e)
        if not isinstance(first, Load):
            raise InterpreterError(f"{e}: the first argument of access_ptr is an element")
        shape = [self.index(x) for x in extents]
        m = self.find(first.buffer)
        at = m.offset
        for i, stride in zip(first.indices, m.strides, strict=True):
            at = scalar_binary("add", at, scalar_binary("mul", self.index(i), stride, "int64"), "int64")
        strides = m.strides if len(m.strides) == len(shape) else []
        if steps is not None:
            strides = [self.index(x) for x in steps]
        extent, step = ("".join(n.text + ", " for n in x) for x in (shape, strides))
        sets, made = self.track.get(m.data), self.name("p")
        self.line(f'{made} = Pointer({m.name}, {at.text}, ({extent}), "{m.dtype}", ({step}))')
        if sets is not None:
            self.line(f"{sets[0]}.update({made}.places)")
        return V(made)

    def external(self, e: Call) -> V:
        symbol = e.args[0]
        assert isinstance(symbol, StringImm), "the first argument of an external call is its name"
        printing = e.op == "call_packed" and symbol.value == PRINT
        function = self.externs.get(symbol.value, print_values if printing else None)
        if function is None:
            raise InterpreterError(f"{self.func.name}: the external function {symbol.value!r} was not given to the "
                                   f"interpreter; pass externs={{{symbol.value!r}: function}}")
        name = self.name("k")
        self.globals[name] = function
        args = "".join(f", {self.emit(a).text}" for a in e.args[1:])
        out = self.name("t")
        self.line(f"{out} = call_external({name}{args})")
        low, high = dt.integer_range(e.type) if dt.is_integer(e.type) else (0, 0)
        return V(out, low, high)
