"""torch.cond and while_loop: their graphs become functions of their own, which choices and loops of the graph call."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.callees import Operator
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.types import size_variables
from tilewright.graph.ir.values import Function, Value
from tilewright.support.errors import ImportModelError
from tilewright.support.names import NameSupply
from tilewright.tir import Expr

_FOREVER = 2 ** 63 - 1


def emit_cond(importer: Any, predicate: Any, then: Any, orelse: Any, operands: Sequence[Any]) -> tuple[Value, ...]:
    """The results of the graph `then` where the predicate holds, else those of `orelse`."""
    if isinstance(predicate, bool):
        return tuple(importer.graph(then if predicate else orelse, operands))
    def branch(name: str, graph: Any) -> Function:
        return _function(importer, name, operands, lambda inner, given: inner.graph(graph, given))
    choice = If(branch("then", then), branch("orelse", orelse))
    read = [x for x in operands if isinstance(x, Value)]
    made: tuple[Value, ...] = importer.bb.emit_call(choice, [_one(importer, predicate, "bool"), *read], "cond")
    return made


def emit_while(importer: Any, condition: Any, body: Any, carried: Sequence[Any],
               read: Sequence[Any] = ()) -> tuple[Value, ...]:
    """The carried values after `body` has run on them as long as `condition` holds."""
    if not all(isinstance(x, Value) for x in carried):
        raise ImportModelError("while_loop carries numbers, and only tensors are carried", "make tensors of them")

    def step(inner: Any, given: Sequence[Any]) -> list[Value]:
        states, others = given[1:1 + len(carried)], given[1 + len(carried):]
        new = [inner.bb.emit_te(topi.astype, v, s.dtype) if v.dtype != s.dtype else v
               for v, s in zip(inner.graph(body, [*states, *others]), states)]
        return [_one(inner, inner.graph(condition, [*new, *others])[0], "bool"), *new]
    first = importer.bb.const(np.int64(0))
    loop = Loop(_function(importer, "body", [first, *carried, *read], step), len(carried))
    proceed = _one(importer, importer.graph(condition, [*carried, *read])[0], "bool")
    given = [importer.bb.const(np.int64(_FOREVER)), proceed, *carried, *(x for x in read if isinstance(x, Value))]
    made: tuple[Value, ...] = importer.bb.emit_call(loop, given, "while_loop")
    return made


def _one(importer: Any, x: Any, dtype: str) -> Value:
    """A tensor of one element as one without dimensions; of a number the same."""
    if not isinstance(x, Value):
        made: Value = importer.bb.emit_te(topi.full, (), x, dtype=dtype)
        return made
    x = x if x.dtype == dtype else importer.bb.emit_te(topi.astype, x, dtype)
    return x if x.ndim == 0 else importer.bb.emit_te(topi.reshape, x, ())


def _function(importer: Any, name: str, operands: Sequence[Any],
              make: Callable[[Any, Sequence[Any]], Sequence[Any]]) -> Function:
    """The function that make(importer, operands) emits, with a parameter for each operand that is a tensor.

    Raises ImportModelError for results that are no tensors, and for a size that is an extent of no operand.
    """
    names, inner = NameSupply(), importer.within(BlockBuilder())
    given = [BlockBuilder.param(names.fresh(x.name), x.shape, x.dtype) if isinstance(x, Value) else x for x in operands]
    params = [p for p in given if isinstance(p, Value)]
    with inner.bb.function(name, params):
        results = list(make(inner, given))
        if not all(isinstance(r, Value) for r in results):
            raise ImportModelError("a graph within it gives what is no tensor")
        inner.bb.emit_func_output(results)
    function: Function = inner.bb.get()[name]
    bound = {d for p in params for d in p.shape}
    missing = [v.name for v in size_variables(_extents(function)) if v not in bound]
    if missing:
        raise ImportModelError(f"a graph within it needs the size {missing[0]}, which is an extent of no operand",
                               "pass a tensor with this extent as an operand")
    return function


def _extents(function: Function) -> list[Expr]:
    """The expressions of sizes in types and attributes of a function's calls."""
    found: list[Any] = [d for v in function.results for d in v.shape]
    for c in function.calls:
        found += [d for v in c.results for d in v.shape]
        if isinstance(c.callee, Operator):
            found += c.callee.sizes
    return [d for d in found if isinstance(d, Expr)]
