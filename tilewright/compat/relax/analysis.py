"""`relax.analysis`: what functions use, and functions without what they do not."""
from __future__ import annotations

from typing import Any

from tilewright.compat.relax import expr as rx
from tilewright.compat.relax.functor import post_order_visit
from tilewright.compat.relax.printer import dims_in
from tilewright.graph.ir.types import size_variables
from tilewright.support.errors import ArgumentError, described
from tilewright.tir import IRModule


def remove_all_unused(func: rx.Function) -> rx.Function:
    """func without bindings whose variable nothing uses."""
    if not isinstance(func, rx.Function):
        raise ArgumentError(f"remove_all_unused takes a relax function, not {described(func)}")
    used = set(_variables(func.body.body))
    blocks = []
    for block in reversed(func.body.blocks):
        kept = []
        for b in reversed(block.bindings):
            if b.var in used or (not isinstance(block, rx.DataflowBlock) and _has_effect(b.value)):
                used.update(_variables(b.value))
                kept.append(b)
        if kept:
            blocks.append(type(block)(kept[::-1]))
    return func.replace(body=rx.SeqExpr(blocks[::-1], func.body.body))


def _has_effect(value: Any) -> bool:
    return isinstance(value, rx.Call) and isinstance(value.op, rx.ExternFunc)


def _variables(expr: Any) -> list[Any]:
    found: list[Any] = []

    def note(e: Any) -> None:
        if isinstance(e, rx.Var):
            found.append(e)
    post_order_visit(expr, note)
    return found


def free_vars(expr: Any) -> list[Any]:
    """The variables that an expression uses and does not bind."""
    bound: set[Any] = set()

    def note(e: Any) -> None:
        if isinstance(e, rx.Function):
            bound.update(e.params)
        if isinstance(e, rx.SeqExpr):
            bound.update(b.var for block in e.blocks for b in block.bindings)
    post_order_visit(expr, note)
    return [v for v in dict.fromkeys(_variables(expr)) if v not in bound]


def all_vars(expr: Any) -> list[Any]:
    """The variables that an expression uses."""
    return list(dict.fromkeys(_variables(expr)))


def bound_vars(expr: Any) -> list[Any]:
    """The variables that an expression binds."""
    free = set(free_vars(expr))
    return [v for v in all_vars(expr) if v not in free]


def all_global_vars(expr: Any) -> list[Any]:
    """The functions of the module that an expression names."""
    found: list[Any] = []

    def note(e: Any) -> None:
        if isinstance(e, rx.Call):
            found.extend(x for x in (e.op, *e.args) if hasattr(x, "name_hint") and not isinstance(x, rx.Var))
    post_order_visit(expr, note)
    return list(dict.fromkeys(found))


def name_to_binding(func: rx.Function) -> dict[str, list[Any]]:
    """The bindings of a function by the names of their variables."""
    found: dict[str, list[Any]] = {}
    for block in func.body.blocks:
        for b in block.bindings:
            found.setdefault(b.var.name_hint, []).append(b)
    return found


def udchain(block: Any) -> dict[Any, list[Any]]:
    """For each variable of a block the variables whose bindings use it."""
    found: dict[Any, list[Any]] = {}
    for b in block.bindings:
        for v in dict.fromkeys(_variables(b.value)):
            found.setdefault(v, []).append(b.var)
        found.setdefault(b.var, [])
    return found


def get_var2val(func: rx.Function) -> dict[Any, Any]:
    """What each variable of a function is bound to."""
    return {b.var: b.value for block in func.body.blocks for b in block.bindings}


def defined_symbolic_vars(func: rx.Function) -> list[Any]:
    """The size variables that the parameters of a function define."""
    return list(size_variables(d for p in func.params for d in dims_in(p.struct_info_)))


def tir_vars_in_struct_info(sinfo: Any) -> list[Any]:
    """The size variables in a struct info."""
    return list(size_variables(dims_in(sinfo)))


def well_formed(mod: Any, check_struct_info: bool = True) -> bool:
    """True where every variable is bound once, before it is used, and every function that is named is there."""
    functions = mod.functions if isinstance(mod, IRModule) else {"main": mod}
    for f in functions.values():
        if isinstance(f, rx.Function):
            known = set(f.params)
            for block in f.body.blocks:
                for b in block.bindings:
                    if b.var in known or not set(free_vars(b.value)) <= known:
                        return False
                    known.add(b.var)
            if not set(free_vars(f.body.body)) <= known:
                return False
            if isinstance(mod, IRModule) and any(g not in functions for g in all_global_vars(f.body)):
                return False
    return True


NAMES: dict[str, Any] = {f.__name__: f for f in (
    remove_all_unused, free_vars, all_vars, bound_vars, all_global_vars, name_to_binding, udchain, get_var2val,
    defined_symbolic_vars, tir_vars_in_struct_info, well_formed, post_order_visit)}
