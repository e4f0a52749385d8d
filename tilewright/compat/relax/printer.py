"""Relax functions and expressions as TVMScript."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.ops import CALL_DPS, CALL_PACKED, CALL_TIR, OPS, RelaxOp
from tilewright.compat.relax.struct_info import (
    FuncStructInfo,
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tilewright.graph.ir.text import FunctionText, array_text
from tilewright.graph.ir.types import size_variables
from tilewright.support.registry import register_hook
from tilewright.tir.functions import GlobalVar, ModuleText
from tilewright.tir.printer.expressions import quote


@register_hook("relax.lines")
def function_lines(function: rx.Function, name: str, module: ModuleText) -> list[str]:
    """The lines of a function in the text of a module."""
    return _Printer(module).function(function, name)


@register_hook("relax.text")
def text_of(expr: Any) -> str:
    """An expression on one line."""
    return _Printer(ModuleText()).expr(expr)


@register_hook("relax.info_text")
def text_of_info(info: StructInfo) -> str:
    """What is known of a value, as an annotation."""
    return _Printer(ModuleText()).info(info)


def dims_in(info: StructInfo | None) -> list[Any]:
    """The extents that a struct info names."""
    if isinstance(info, TupleStructInfo):
        return [d for f in info.fields for d in dims_in(f)]
    return list(getattr(info, "dims", None) or getattr(info, "values", None) or ())


class _Printer(FunctionText):
    def function(self, f: rx.Function, name: str) -> list[str]:
        sizes = size_variables(d for p in f.params for d in dims_in(p.struct_info_))
        self.define_sizes(sizes)
        params = [f"{self.define(p, p.name_hint)}: {self.info(p.struct_info_, True)}" for p in f.params]
        result = f.ret_struct_info
        self.header(name, params, self.info(result, True), "global_symbol" not in f.attrs)
        attrs = {k: v for k, v in f.attrs.items() if not (k == "global_symbol" and v == name)}
        if attrs:
            self.line(f"R.func_attr({self.plain(attrs)})")
        for v in sizes:
            self.line(f"{self.exprs.names.of(v)} = T.int64()")
        if self.module.called and any(isinstance(x, GlobalVar) for x in _callees(f.body)):
            self.cls()
        self.sequence(f.body)
        return self.lines

    def sequence(self, body: rx.SeqExpr, into: str = "") -> None:
        bound = [b for block in body.blocks for b in block.bindings]
        last = bound[-1] if into and bound and bound[-1].var is body.body else None
        for block in body.blocks:
            inside = isinstance(block, rx.DataflowBlock) and bool(block.bindings)
            if inside:
                self.line("with R.dataflow():")
                self.indent += "    "
            for b in block.bindings:
                if b is not last:
                    self.binding(b)
            if inside:
                out = [b.var for b in block.bindings if not isinstance(b.var, rx.DataflowVar)]
                self.line(f"R.output({', '.join(map(self.expr, out))})")
                self.indent = self.indent[4:]
        text = self.expr(body.body if last is None else last.value)
        self.line(f"{into} = {text}" if into else f"return {text}")

    def binding(self, b: rx.VarBinding) -> None:
        self.define_sizes(size_variables(dims_in(b.var.struct_info_)))
        if isinstance(b.value, rx.If):
            self.branches(b)
            return
        if isinstance(b.value, rx.Function):
            inner = _Printer(self.module)
            inner.names, inner.kept, inner.supply, inner.exprs = self.names, self.kept, self.supply, self.exprs
            inner.indent = self.indent
            self.lines += inner.function(b.value, self.define(b.var, b.var.name_hint))
            return
        value = self.expr(b.value)
        if isinstance(b, rx.MatchCast):
            value = f"R.match_cast({value}, {self.info(b.struct_info)})"
        stated = "" if b.var.struct_info_ is None else f": {self.info(b.var.struct_info_)}"
        self.line(f"{self.define(b.var, b.var.name_hint)}{stated} = {value}")

    def branches(self, b: rx.VarBinding) -> None:
        name = self.define(b.var, b.var.name_hint)
        for text, branch in ((f"if {self.expr(b.value.cond)}:", b.value.true_branch),
                             ("else:", b.value.false_branch)):
            self.line(text)
            self.indent += "    "
            self.sequence(branch if isinstance(branch, rx.SeqExpr) else rx.SeqExpr([], branch), name)
            self.indent = self.indent[4:]

    # struct infos ------------------------------------------------------------------------------------------
    def info(self, info: StructInfo | None, quoted: bool = False) -> str:
        if isinstance(info, TensorStructInfo):
            parts = [] if info.dims is None else [self.shape(info.dims, quoted)]
            parts += [f'dtype="{info.dtype}"'] if info.dtype else []
            parts += [f"ndim={info.ndim}"] if info.dims is None and info.ndim >= 0 else []
            return f"R.Tensor({', '.join(parts)})"
        if isinstance(info, TupleStructInfo):
            return f"R.Tuple({', '.join(self.info(f, quoted) for f in info.fields)})"
        if isinstance(info, ShapeStructInfo):
            dims = [self.dim(d, quoted) for d in info.values or ()]
            said = f"ndim={info.ndim}" if info.values is None else f"[{', '.join(dims)}]"
            return f"R.Shape({said if info.ndim >= 0 else ''})"
        if isinstance(info, PrimStructInfo):
            return f'R.Prim("{info.dtype}")'
        return "R.Callable()" if isinstance(info, FuncStructInfo) else "R.Object()"

    # expressions -------------------------------------------------------------------------------------------
    def expr(self, e: Any) -> str:
        if isinstance(e, rx.Var):
            return self.names.get(id(e)) or self.define(e, e.name_hint)
        if isinstance(e, GlobalVar):
            return f"cls.{self.module.methods.get(e, e)}"
        for kind, text in _EXPRS.items():
            if isinstance(e, kind):
                return text(self, e)
        return self.plain(e)

    def several(self, items: Sequence[Any]) -> str:
        inner = ", ".join(map(self.expr, items))
        return f"({inner},)" if len(items) == 1 else f"({inner})"

    def call(self, c: rx.Call) -> str:
        if c.op in (CALL_TIR, CALL_DPS):
            func = c.args[0]
            name = quote(func.global_symbol) if isinstance(func, rx.ExternFunc) else self.expr(func)
            parts = [name, *map(self.expr, c.args[1:2]), f"out_sinfo={self.infos(c.sinfo_args)}"]
            parts += [f"tir_vars={self.expr(v)}" for v in c.args[2:]]
            return f"R.{c.op.removeprefix('relax.')}({', '.join(parts)})"
        if c.op == CALL_PACKED or isinstance(c.op, rx.ExternFunc):
            func, *rest = c.args if c.op == CALL_PACKED else [c.op, *c.args]
            parts = [quote(func.global_symbol), *map(self.expr, rest)]
            parts += [f"sinfo_args=({', '.join(map(self.info, c.sinfo_args))},)"] if c.sinfo_args else []
            return f"R.{'call_pure_packed' if c.op == CALL_PACKED else 'call_packed'}({', '.join(parts)})"
        args = [self.expr(a) for a in c.args]
        if isinstance(c.op, RelaxOp):
            row = OPS.get(c.op)
            stated = row.stated(c.attrs) if row else c.attrs
            args += [f"{k}={self.plain(v)}" for k, v in stated.items()]
            return f"R.{c.op.removeprefix('relax.')}({', '.join(args)})"
        return f"{self.expr(c.op)}({', '.join(args)})"

    def infos(self, infos: Sequence[StructInfo]) -> str:
        texts = [self.info(i) for i in infos]
        return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"

    def shape_expr(self, e: ShapeExpr) -> str:
        self.define_sizes(size_variables(e.values))
        return f"R.shape([{', '.join(self.dim(d) for d in e.values)}])"

    def closure(self, f: rx.Function) -> str:
        return f"<function of {len(f.params)} parameters>"


_EXPRS: dict[type, Callable[[Any, Any], str]] = {
    rx.Constant: lambda p, e: array_text(e.array, p.module),
    rx.Call: _Printer.call,
    rx.Tuple: lambda p, e: p.several(e.fields),
    rx.TupleGetItem: lambda p, e: f"{p.expr(e.tuple_value)}[{e.index}]",
    ShapeExpr: _Printer.shape_expr,
    rx.ExternFunc: lambda p, e: f"R.ExternFunc({quote(e.global_symbol)})",
    rx.PrimValue: lambda p, e: f"R.prim_value({p.plain(e.value)})",
    rx.DataTypeImm: lambda p, e: f"R.dtype({quote(e.value)})",
    rx.StringImm: lambda p, e: f"R.str({quote(e.value)})",
    rx.Function: _Printer.closure,
}


def _callees(e: Any) -> list[Any]:
    """What is called, or named, in a sequence."""
    found: list[Any] = []
    stack: list[Any] = [e]
    while stack:
        x = stack.pop()
        if isinstance(x, rx.SeqExpr):
            stack += [b.value for block in x.blocks for b in block.bindings] + [x.body]
        elif isinstance(x, rx.Call):
            found.append(x.op)
            stack += x.args
        elif isinstance(x, rx.Tuple):
            stack += x.fields
        elif isinstance(x, rx.If):
            stack += [x.true_branch, x.false_branch]
        else:
            found.append(x)
    return found

