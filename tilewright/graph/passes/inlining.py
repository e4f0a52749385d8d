"""Calls of functions of the graph: their own calls stand in the place of each."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.graph.ir.rebuild import Rebuild, rebuilt
from tilewright.graph.ir.values import Call, Function, Value
from tilewright.te.conditions import Condition


def inline_functions(function: Function) -> Function:
    """function that calls no other one, and takes for granted what those do that it called; branches and bodies of
    loops are not called, but run."""
    def step(new: Rebuild, c: Call, inputs: tuple[Value, ...]) -> Sequence[Value] | None:
        return _results(new, c.callee, inputs) if isinstance(c.callee, Function) else None
    if not any(isinstance(c.callee, Function) for c in function.calls):
        return function
    made, conditions = rebuilt(function, step), tuple(_conditions(function))
    return made.replace(attrs={**made.attrs, "conditions": conditions}) if conditions else made


def _conditions(function: Function) -> Iterator[Condition]:
    """What a function and those that it calls take for granted of sizes, which have one name in all of them."""
    yield from function.attrs.get("conditions", ())
    for c in function.calls:
        if isinstance(c.callee, Function):
            yield from _conditions(c.callee)


def _results(new: Rebuild, callee: Function, inputs: Sequence[Value]) -> Sequence[Value]:
    """What the results of a function are, with its calls made anew: it may be called several times."""
    known = dict(zip(callee.params, inputs, strict=True))
    outer = new.source
    for c in callee.calls:
        given = [known.get(v, v) for v in c.inputs]
        if isinstance(c.callee, Function):
            made = _results(new, c.callee, given)
        else:
            new.source = c.source or outer
            made = new.emit_all(c.callee, given, [v.name for v in c.results])
        known.update(zip(c.results, made, strict=True))
    new.source = outer
    return [known.get(v, v) for v in callee.results]
