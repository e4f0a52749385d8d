"""Kernels that write over a parameter of which elements stay as they are: those are not stored."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.graph.ir.callees import Kernel
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.graph.passes.own_results import memory_of
from tilewright.tir import BlockRealize, Buffer, Expr, IfThenElse, Load, PrimFunc, Store
from tilewright.tir import Call as TirCall
from tilewright.tir.arithmetic import logical_not
from tilewright.tir.equal import structural_equal
from tilewright.tir.node import rewrite, walk


def store_changes(function: Function) -> Function:
    """function, ordered by `order_updates`: where the new value of a parameter is its old one but where a condition
    holds, its kernel stores under that condition. A cache that gets a row costs that row.
    """
    written = {memory_of(v): p for p, v in function.updates.items()}

    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        parameter = written.get(c.results[0])
        places = [k for k, v in enumerate(c.inputs) if parameter is not None and memory_of(v) is parameter]
        if not isinstance(c.callee, Kernel) or len(places) != 1 or places[0] not in c.callee.over:
            return None
        kernel = _storing_changes(c.callee, places[0])
        return None if kernel is None else new.emit_all(kernel, inputs, [v.name for v in c.results])
    return rebuilt(function, step)


def _storing_changes(kernel: Kernel, place: int) -> Kernel | None:
    """The kernel that, with its first result in the memory of an input, stores the elements that differ from it; None
    where it is not known which these are."""
    func = kernel.func
    count = len(func.params) - len(kernel.results) - len(kernel.sizes)
    old, new = (func.buffer_map[func.params[k]] for k in (place, count))
    changed = 0

    def visit(node: object) -> BlockRealize | None:
        nonlocal changed
        if not isinstance(node, BlockRealize) or not isinstance(node.block.body, Store):
            return None
        store = node.block.body
        found = _change(store, old) if store.buffer is new else None
        if found is None:
            return None
        changed += 1
        condition, value = found
        return replace(node, block=replace(node.block, body=IfThenElse(condition, replace(store, value=value)),
                                           reads=tuple(r for r in node.block.reads if r.buffer is not old)))
    body = rewrite(func.body, visit)
    if changed != 1 or any(isinstance(n, Load) and n.buffer is old for n in walk(body)):
        return None
    made: PrimFunc = replace(func, body=body).with_attr("global_symbol", f"{kernel.name}_changes")
    return replace(kernel, func=made, inplace=place)


def _change(store: Store, old: Buffer) -> tuple[Expr, Expr] | None:
    """(condition, value) where what is stored is `condition ? value : old`, the element of old at the place written."""
    value = store.value
    if not isinstance(value, TirCall) or value.op != "if_then_else":
        return None
    condition, a, b = value.args
    if _is_element(b, old, store):
        return condition, a
    return (logical_not(condition), b) if _is_element(a, old, store) else None


def _is_element(e: Expr, old: Buffer, store: Store) -> bool:
    return isinstance(e, Load) and e.buffer is old and structural_equal(list(e.indices), list(store.indices))
