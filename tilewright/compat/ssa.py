"""Names that are defined twice become two: `tvm.tir.transform.ConvertSSA`."""
from __future__ import annotations

from typing import Any

from tilewright.tir import PrimFunc, Stmt, map_children
from tilewright.tir.symbols import defined, fresh_copy


def convert_ssa(func: PrimFunc) -> PrimFunc:
    """func, in which no loop, let or allocation defines what another one, or a parameter, defines."""
    seen: set[Any] = {*func.params, *(b.data for b in func.buffers)}

    def visit(node: Any) -> Any:
        if isinstance(node, Stmt):
            if not seen.isdisjoint(defined(node)):
                node = fresh_copy(node)
            seen.update(defined(node))
        return map_children(node, visit)

    return func.with_body(visit(func.body))
