"""Bindings of a relax function put into functions of their own."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.analysis import free_vars
from tilewright.compat.relax.builder import BlockBuilder
from tilewright.compat.relax.functor import PyExprMutator
from tilewright.tir import IRModule


class Group:
    """Bindings, in order, of which nothing but the last is used outside."""

    def __init__(self, name: str, bindings: Sequence[Any], attrs: Mapping[str, Any], keep_constants: bool) -> None:
        self.name, self.bindings, self.attrs, self.keep_constants = name, list(bindings), dict(attrs), keep_constants


def split(mod: IRModule, groups_of: Any) -> IRModule:
    """mod with the groups that groups_of(function, builder) finds as functions, which are called where they were."""
    builder = BlockBuilder(mod)
    for name, f in mod.functions.items():
        if isinstance(f, rx.Function) and not f.attrs.get("Primitive"):
            groups = groups_of(f)
            if groups:
                builder.update_func(name, _Split(builder, groups).visit_expr(f))
    return builder.get()


class _Split(PyExprMutator):
    def __init__(self, builder: BlockBuilder, groups: Sequence[Group]) -> None:
        super().__init__()
        self.builder_ = builder
        self.last = {g.bindings[-1].var: g for g in groups}
        self.inside = {b.var for g in groups for b in g.bindings[:-1]}

    def visit_var_binding_(self, binding: Any) -> None:
        if binding.var in self.inside:
            return
        group = self.last.get(binding.var)
        if group is None:
            super().visit_var_binding_(binding)
            return
        function, inputs = _function_of(group)
        gvar = self.builder_.add_func(function, group.name)
        call = rx.Call(gvar, [self.visit_expr(x) for x in inputs])
        super().visit_var_binding_(rx.VarBinding(binding.var, call))


class _Replaced(PyExprMutator):
    def __init__(self, table: Mapping[Any, Any]) -> None:
        super().__init__()
        self.table = table

    def visit_expr(self, expr: Any) -> Any:
        return self.table[expr] if isinstance(expr, (rx.Var, rx.Constant)) and expr in self.table else (
            super().visit_expr(expr))


def _function_of(group: Group) -> tuple[rx.Function, list[Any]]:
    """(the function of a group, what it is called with)."""
    bound = {b.var for b in group.bindings}
    inputs: dict[Any, None] = {}
    for b in group.bindings:
        constants = [] if group.keep_constants else _constants(b.value)
        inputs.update(dict.fromkeys([*(v for v in free_vars(b.value) if v not in bound), *constants]))
    table: dict[Any, Any] = {x: rx.Var(getattr(x, "name_hint", f"param_{k}"), x.struct_info_)
                             for k, x in enumerate(inputs)}
    bindings = []
    for b in group.bindings:
        last = b is group.bindings[-1]
        value = _Replaced(table).visit_expr(b.value)
        value.struct_info_ = value.struct_info_ or b.value.struct_info_ or b.var.struct_info_
        var = (rx.Var if last else rx.DataflowVar)("gv" if last else b.var.name_hint, b.var.struct_info_)
        table[b.var] = var
        bindings.append(rx.VarBinding(var, value))
    params = [table[x] for x in inputs]
    body = rx.SeqExpr([rx.DataflowBlock(bindings)], bindings[-1].var)
    return rx.Function(params, body, bindings[-1].var.struct_info_, attrs=group.attrs), list(inputs)


def _constants(value: Any) -> list[Any]:
    args = getattr(value, "args", ())
    flat = [f for a in args for f in (a.fields if isinstance(a, rx.Tuple) else [a])]
    return [c for c in flat if isinstance(c, rx.Constant)]


def uses(f: rx.Function) -> dict[Any, int]:
    """How often each variable is used."""
    found: dict[Any, int] = {}

    def note(e: Any) -> None:
        if isinstance(e, rx.Var):
            found[e] = found.get(e, 0) + 1
        for part in (*getattr(e, "args", ()), *getattr(e, "fields", ())):
            note(part)
        if isinstance(e, rx.TupleGetItem):
            note(e.tuple_value)
    for block in f.body.blocks:
        for b in block.bindings:
            note(b.value)
    note(f.body.body)
    return found
