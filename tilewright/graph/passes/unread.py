"""Inputs of which only the type is used are no inputs: nothing waits for them, and nothing keeps them."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.graph.ir.callees import Like, Operator
from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.graph.passes.access import unread
from tilewright.graph.passes.views import is_view_call


def drop_unread(function: Function) -> Function:
    """function in which operators have no inputs but those whose elements they read."""
    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        if not isinstance(c.callee, Operator) or is_view_call(c):
            return None
        types = [v.type for v in inputs]
        traced = c.callee.traced(*types)
        idle = unread(traced.inputs, traced.outputs)
        if not idle:
            return None
        read = [v for k, v in enumerate(inputs) if k not in idle]
        return new.emit_all(c.callee.without(idle, *types), read, [v.name for v in c.results])
    return rebuilt(function, step)


def uses_types(callee: Operator) -> bool:
    """True for an operator that has lost inputs of which it uses the types."""
    return any(isinstance(x, Like) for x in callee.leaves)
