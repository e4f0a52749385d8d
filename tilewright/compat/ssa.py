"""Names that are defined twice become two: `tvm.tir.transform.ConvertSSA`."""
from __future__ import annotations

from typing import Any

from tilewright.tir import Allocate, For, LetStmt, PrimFunc, Var, map_children, substitute
from tilewright.tir.symbols import fresh_copy


def convert_ssa(func: PrimFunc) -> PrimFunc:
    """func, in which no loop, let or allocation defines what another one, or a parameter, defines."""
    seen: set[Any] = {*func.params, *(b.data for b in func.buffers)}

    def visit(node: Any) -> Any:
        if isinstance(node, Allocate) and node.buffer.data in seen:
            node = fresh_copy(node)
        elif isinstance(node, (For, LetStmt)):
            var = node.loop_var if isinstance(node, For) else node.var
            if var in seen:
                new = Var(var.name, var.type)
                changed = {"loop_var" if isinstance(node, For) else "var": new}
                node = node.replace(body=substitute(node.body, {var: new}), **changed)
        if isinstance(node, (For, LetStmt, Allocate)):
            seen.add(node.loop_var if isinstance(node, For) else node.var if isinstance(node, LetStmt)
                     else node.buffer.data)
        return map_children(node, visit)

    return func.with_body(visit(func.body))
