"""Results, and what parameters are updated to, in memory of their own."""
from __future__ import annotations

from tilewright import te
from tilewright.graph.ir.callees import operator
from tilewright.graph.ir.values import Call, Function, Value, call
from tilewright.graph.passes.views import is_view_call


def copy(x: te.Tensor) -> te.Tensor:
    """y = x."""
    return te.compute(x.shape, lambda *i: x(*i), name="copy")


def own_results(function: Function) -> Function:
    """function with a copy for each result, and each new value of a parameter, whose memory is that of a parameter, a
    constant, or another of them. Parameters that keep their values are not updated."""
    taken: set[Value] = set()
    calls: list[Call] = list(function.calls)

    def own(v: Value) -> Value:
        root = memory_of(v)
        if root.call is None or root in taken:
            calls.append(copied(v))
            v = root = calls[-1].results[0]
        taken.add(root)
        return v

    updates = {p: own(v) for p, v in function.updates.items() if memory_of(v) is not p}
    results = tuple(own(v) for v in function.results)
    return function.replace(calls=tuple(calls), updates=updates, results=results)


def copied(v: Value) -> Call:
    """The call that copies a value."""
    op, inputs = operator(copy, (v,), {}, Value)
    return call(op, inputs, [v.name])


def memory_of(value: Value) -> Value:
    """The value whose memory a view is; the value itself where it is none."""
    while value.call is not None and is_view_call(value.call):
        value = value.call.inputs[0]
    return value
