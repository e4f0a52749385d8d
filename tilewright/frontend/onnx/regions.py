"""Graphs within nodes as functions of their own: what they read from outside becomes parameters of them."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.frontend.onnx.node import Unsupported
from tilewright.frontend.onnx.values import Held
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.callees import Operator
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.types import size_variables
from tilewright.graph.ir.values import Function, Value, call
from tilewright.support.names import NameSupply, identifier
from tilewright.tir import Expr, Var


@dataclass(eq=False)
class Region:
    """A function, and the values around it that it reads; `closed` makes these its last parameters."""
    function: Function
    outside: tuple[Value, ...]

    def closed(self, outside: Sequence[Value]) -> Function:
        """The function with parameters for values around it."""
        names = NameSupply(p.name for p in self.function.params)
        new = {v: BlockBuilder.param(names.fresh(v.name), v.shape, v.dtype) for v in outside}
        calls = []
        for c in self.function.calls:
            made = call(c.callee, [new.get(v, v) for v in c.inputs], [v.name for v in c.results], c.source)
            new.update(zip(c.results, made.results))
            calls.append(made)
        return Function(self.function.name, (*self.function.params, *(new[v] for v in outside)), tuple(calls),
                        tuple(new.get(v, v) for v in self.function.results))


def region(importer: Any, name: str, params: Sequence[Value], make: Callable[[], Sequence[Value]]) -> Region:
    """The function whose results make() emits. Raises Unsupported where its sizes are extents of no input."""
    outer, importer.builder = importer.builder, BlockBuilder()
    symbolic, importer.symbolic = importer.symbolic, {}
    name = identifier(name)
    try:
        with importer.builder.function(name, params):
            importer.builder.emit_func_output(list(make()))
        function = importer.builder.get()[name]
    finally:
        importer.builder, importer.symbolic = outer, symbolic
    inside = {*params, *(v for c in function.calls for v in c.results)}
    read = (v for c in function.calls for v in c.inputs)
    outside = list(dict.fromkeys(v for v in (*read, *function.results) if v not in inside and not v.is_constant))
    bound = {d for v in (*params, *outside) for d in v.shape if isinstance(d, Var)}
    for size in _sizes(function):
        if size not in bound:
            found = next((p for p in importer.parameters if size in p.shape), None)
            if found is None:
                raise Unsupported(f"a graph within it needs the size {size.name}, which is an extent of no input")
            outside.append(found)
            bound.update(d for d in found.shape if isinstance(d, Var))
    return Region(function, tuple(outside))


def _sizes(function: Function) -> Iterable[Var]:
    """The size variables in types and attributes of a function's calls."""
    dims: list[Any] = [d for v in function.results for d in v.shape]
    for c in function.calls:
        dims += [d for v in c.results for d in v.shape]
        if isinstance(c.callee, Operator):
            dims += c.callee.sizes
    return size_variables(d for d in dims if isinstance(d, Expr))


def values_of(importer: Any, entries: Sequence[Any]) -> list[Value]:
    """What entries are in the graph. Raises Unsupported for sequences."""
    if any(not isinstance(e, Held) for e in entries):
        raise Unsupported("sequences and optional values in a choice or a loop that runs with the model")
    return [importer.value(e) for e in entries]


def emit_choice(importer: Any, label: str, condition: Value, branches: Sequence[Region]) -> tuple[Value, ...]:
    """The results of the first branch where the condition holds, else of the second one."""
    outside = list(dict.fromkeys(v for b in branches for v in b.outside))
    then, orelse = (b.closed(outside) for b in branches)
    results: tuple[Value, ...] = importer.builder.emit_call(If(then, orelse), [condition, *outside], label)
    return results


def emit_loop(importer: Any, label: str, count: Value, proceed: Value, states: Sequence[Value], body: Region,
              steps: Any) -> tuple[Value, ...]:
    """The last states of a loop, and what its steps give, stacked."""
    loop = Loop(body.closed(body.outside), len(states), steps)
    results: tuple[Value, ...] = importer.builder.emit_call(loop, [count, proceed, *states, *body.outside], label)
    importer.check_sizes(results)
    return results
