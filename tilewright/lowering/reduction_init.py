"""Turns the init statement of reduction blocks into ordinary code."""
from __future__ import annotations

from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.expr import Expr, IntImm
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import Node, map_children
from tilewright.tir.stmt import Block, IfThenElse, PrimFunc, seq


def lower_reduction_init(func: PrimFunc) -> PrimFunc:
    """No block has an `init`: it runs ahead of the body where every reduction axis is at its first value."""
    return func.replace(body=_visit(func.body))


def _visit(node: Node) -> Node:
    if isinstance(node, Expr):
        return node
    new = map_children(node, _visit)
    if not isinstance(new, Block) or new.init is None:
        return new
    first = all_of(*[binary("eq", axis.var, axis.domain.min)
                     for axis in new.iter_vars if axis.iter_type == COMM_REDUCE])
    init = new.init if isinstance(first, IntImm) else IfThenElse(first, new.init)
    return new.replace(init=None, body=seq([init, new.body]))
