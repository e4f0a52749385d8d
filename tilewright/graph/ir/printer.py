"""Graph functions as TVMScript: `@R.function`, a dataflow block of bindings, `return`."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright.graph.ir.callees import Extern, Kernel, Operator, Slot
from tilewright.graph.ir.deferred import loaded
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.text import FunctionText, array_text
from tilewright.graph.ir.types import TensorType, size_variables
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.support.registry import register_hook
from tilewright.tir.functions import ModuleText


@register_hook("graph.lines")
def function_lines(function: Function, name: str, module: ModuleText) -> list[str]:
    """The lines of a function in the text of a module."""
    return _Printer(module).function(function, name)


def constants_in(source: Any) -> dict[str, list[Any]]:
    """What the text of a function or module names as `metadata`: `from_source(text, metadata=...)` takes it."""
    shared = ModuleText()
    functions = source.functions.items() if hasattr(source, "functions") else [("main", source)]
    for name, f in functions:
        if isinstance(f, Function):
            f.lines_in(name, shared)
    return shared.tables


class _Printer(FunctionText):
    def function(self, f: Function, name: str) -> list[str]:
        self.define_sizes(f.sizes)
        params = [f"{self.define(p, p.name)}: {self.type(p.type, True)}" for p in f.params]
        self.header(name, params, self.types([v.type for v in f.results], True))
        attrs = {k: v for k, v in f.attrs.items() if not (k == "global_symbol" and v == name)}
        if attrs:
            self.line(f"R.func_attr({self.plain(attrs)})")
        for v in f.sizes:
            self.line(f"{self.exprs.names.of(v)} = T.int64()")
        if f.called_functions:
            self.cls()
        if f.calls:
            self.line("with R.dataflow():")
            self.indent += "    "
            for c in f.calls:
                self.binding(c)
            bound = [v for v in dict.fromkeys(f.ends) if v.call is not None]
            self.line(f"R.output({', '.join(map(self.value, bound))})")
            self.indent = self.indent[4:]
        for target, value in f.updates.items():
            self.line(f"R.update({self.value(target)}, {self.value(value)})")
        results = [self.value(v) for v in f.results]
        self.line(f"return {results[0]}" if len(results) == 1 else f"return ({', '.join(results)})")
        return self.lines

    def value(self, v: Value) -> str:
        if v.held is not None:
            return array_text(loaded(v.held), self.module)
        return self.names[id(v)]

    def binding(self, c: Call) -> None:
        self.define_sizes(size_variables(d for v in c.results for d in v.shape))
        text = _CALLEES.get(type(c.callee), _any)(self, c)
        types = [v.type for v in c.results]
        if len(types) == 1:
            self.line(f"{self.define(c.results[0], c.results[0].name)}: {self.types(types)} = {text}")
            return
        both = self.define(c, "lv")
        self.line(f"{both}: {self.types(types)} = {text}")
        for k, v in enumerate(c.results):
            self.line(f"{self.define(v, v.name)}: {self.type(v.type)} = {both}[{k}]")

    # callees -----------------------------------------------------------------------------------------------
    def inputs(self, c: Call) -> str:
        return ", ".join(self.value(v) for v in c.inputs)

    def tuple(self, c: Call) -> str:
        return f"({self.inputs(c)},)" if len(c.inputs) == 1 else f"({self.inputs(c)})"

    def operator(self, c: Call) -> str:
        op: Operator = c.callee

        def leaf(x: Any) -> str | None:
            if isinstance(x, Slot):
                return self.value(c.inputs[x.index])
            return f"R.array({array_text(x, self.module)})" if isinstance(x, np.ndarray) else None
        parts = [*(self.plain(x, leaf) for x in op.args), *(f"{k}={self.plain(x, leaf)}" for k, x in op.kwargs.items())]
        if op.name.startswith("topi."):
            return f"R.{op.name.removeprefix('topi.')}({', '.join(parts)})"
        return f"R.call_te({', '.join([op.name.rpartition('.')[2], *parts])})"

    def out(self, types: Sequence[TensorType]) -> str:
        texts = [self.type(t) for t in types]
        return f"out_sinfo={texts[0]}" if len(texts) == 1 else f"out_sinfo=[{', '.join(texts)}]"

    def kernel(self, c: Call) -> str:
        k: Kernel = c.callee
        parts = [f"cls.{self.module.defined.get(id(k.func), k.name)}", self.tuple(c), self.out(k.results)]
        if k.sizes:
            parts.append(f"tir_vars=R.shape([{', '.join(map(self.dim, k.sizes))}])")
        if k.over:
            parts.append(f"over={list(k.over)}")
        return f"R.call_tir({', '.join(parts)})"

    def extern(self, c: Call) -> str:
        return f'R.call_dps_packed("{c.callee.name}", {self.tuple(c)}, {self.out(c.callee.results)})'

    def nested(self, c: Call) -> str:
        return f"cls.{self.module.defined.get(id(c.callee), c.callee.name)}({self.inputs(c)})"


    def choice(self, c: Call) -> str:
        then, orelse = (f"cls.{self.module.defined.get(id(f), f.name)}" for f in (c.callee.then, c.callee.orelse))
        condition, *rest = map(self.value, c.inputs)
        return f"R.call_if({condition}, {then}, {orelse}, [{', '.join(rest)}])"

    def loop(self, c: Call) -> str:
        body = f"cls.{self.module.defined.get(id(c.callee.body), c.callee.body.name)}"
        steps = f", steps={self.dim(c.callee.steps)}" if c.callee.steps != 0 else ""
        return f"R.call_loop({body}, [{self.inputs(c)}], carried={c.callee.carried}{steps})"


def _any(p: _Printer, c: Call) -> str:
    """A callee of a class that has no text of its own."""
    return f"R.call({p.plain(c.callee)}, {p.tuple(c)}, {p.out([v.type for v in c.results])})"


_CALLEES: dict[type, Callable[[_Printer, Call], str]] = {
    Operator: _Printer.operator, Kernel: _Printer.kernel, Extern: _Printer.extern, Function: _Printer.nested,
    If: _Printer.choice, Loop: _Printer.loop}


def register_callee_printer(cls: type, text: Callable[[Any, Call], str]) -> None:
    """Let calls of callees of a class print as text(printer, call)."""
    _CALLEES[cls] = text

