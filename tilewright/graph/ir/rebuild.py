"""Functions made of functions: calls replaced one by one, calls left out."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.graph.ir.values import Call, Function, Value, call


class Rebuild:
    """The calls of a new function, made while those of an old one are visited in order."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.map: dict[Value, Value] = {}
        self.source = ""

    def __getitem__(self, value: Value) -> Value:
        """What an old value has become."""
        return self.map.get(value, value)

    def emit(self, callee: Any, *inputs: Value, name: str = "lv") -> Value:
        """The only result of a new call."""
        return self.emit_all(callee, inputs, [name])[0]

    def emit_all(self, callee: Any, inputs: Sequence[Value], names: Sequence[str] = ()) -> tuple[Value, ...]:
        """The results of a new call."""
        made = call(callee, inputs, names, self.source)
        self.calls.append(made)
        return made.results


Step = Callable[[Rebuild, Call, tuple[Value, ...]], "Sequence[Value] | None"]


def rebuilt(function: Function, step: Step) -> Function:
    """function with each call replaced: step(new, call, inputs) gives what its results become, or None to keep it.

    Calls of which nothing is needed any more are left out.
    """
    new = Rebuild()
    for c in function.calls:
        inputs = tuple(new[v] for v in c.inputs)
        new.source = c.source
        made = step(new, c, inputs)
        if made is None:
            if all(a is b for a, b in zip(inputs, c.inputs)):
                new.calls.append(c)
                continue
            made = new.emit_all(c.callee, inputs, [v.name for v in c.results])
        new.map.update((old, v) for old, v in zip(c.results, made, strict=True) if old is not v)
    return without_dead_calls(function.replace(
        calls=tuple(new.calls), results=tuple(new[v] for v in function.results),
        updates={p: new[v] for p, v in function.updates.items()}))


def without_dead_calls(function: Function) -> Function:
    """function without calls of which no result is needed."""
    needed = set(function.ends)
    kept: list[Call] = []
    for c in reversed(function.calls):
        if any(v in needed for v in c.results):
            needed.update(c.inputs)
            kept.append(c)
    return function.replace(calls=tuple(reversed(kept)))
