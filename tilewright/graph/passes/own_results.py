"""Results in memory of their own."""
from __future__ import annotations

from tilewright import te
from tilewright.graph.ir.callees import operator
from tilewright.graph.ir.values import Call, Function, Value, call
from tilewright.graph.passes.views import is_view_call


def copy(x: te.Tensor) -> te.Tensor:
    """y = x."""
    return te.compute(x.shape, lambda *i: x(*i), name="copy")


def own_results(function: Function) -> Function:
    """function with a copy for each result whose memory is that of a parameter, a constant, or another result."""
    taken: set[Value] = set()
    calls: list[Call] = list(function.calls)
    results = []
    for v in function.results:
        root = memory_of(v)
        if root.call is None or root in taken:
            op, inputs = operator(copy, (v,), {}, Value)
            made = call(op, inputs, [v.name])
            calls.append(made)
            v = root = made.results[0]
        taken.add(root)
        results.append(v)
    return function.replace(calls=tuple(calls), results=tuple(results))


def memory_of(value: Value) -> Value:
    """The value whose memory a view is; the value itself where it is none."""
    while value.call is not None and is_view_call(value.call):
        value = value.call.inputs[0]
    return value
