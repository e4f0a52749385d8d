"""GraphModules of ATen operators as functions of the graph, and how arguments and results of both belong together."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import runtime, topi
from tilewright.frontend.torch.arrays import empty_array, memory_of, shared
from tilewright.frontend.torch.dtypes import dtype_name
from tilewright.frontend.torch.emit import Counted, Scalar
from tilewright.frontend.torch.fx import Importer, output_nodes
from tilewright.frontend.torch.layouts import layout, memory_read
from tilewright.frontend.torch.results import Result, View, returned, views
from tilewright.frontend.torch.sizes import Number, number
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import size_variables
from tilewright.graph.ir.values import Function, Value
from tilewright.support.errors import GraphError
from tilewright.support.names import NameSupply, identifier
from tilewright.tir import Expr, Var
from tilewright.tir.interp.execute import evaluate


@dataclass(frozen=True)
class Imported:
    """A function of the graph made of a GraphModule.

    tensors: which arguments of the GraphModule the first parameters of the function are. memories: those of which the
    next ones are the memory. sizes: the size variables that the other parameters have as first of two extents, the
    second one 0, since no tensor has them as extents.
    numbers: for each argument that is a number its expression. results: for each result of the GraphModule a Result, a
    View, an expression, or None.
    """
    function: Function
    tensors: tuple[int, ...]
    memories: tuple[int, ...]
    sizes: tuple[Var, ...]
    numbers: Mapping[int, Number]
    shapes: Mapping[int, tuple[Number, ...]]
    results: tuple[Any, ...]

    def values(self, given: Sequence[Any]) -> dict[Var, int]:
        """The values of the sizes. Raises GraphError for one that follows from no argument of the GraphModule."""
        values: dict[Var, int] = {}
        for k, e in self.numbers.items():
            if isinstance(e, Var):
                values[e] = int(given[k])
        found = [(e, extent) for k, shape in self.shapes.items() for e, extent in zip(shape, given[k].shape)
                 if isinstance(e, Expr)]
        for e, extent in found:
            if isinstance(e, Var):
                values.setdefault(e, extent)
        for e, extent in found:
            if not isinstance(e, Var):
                _solve(e, extent, values)
        missing = [v.name for v in self.sizes if v not in values]
        if missing:
            raise GraphError(f"{self.function.name}: the size {missing[0]} follows from no argument")
        return values

    def arguments(self, given: Sequence[Any], values: Mapping[Var, int]) -> list[Any]:
        """The arguments of the function."""
        tensors = [runtime.view(shared(given[k])) if given[k].numel() else empty_array(given[k]) for k in self.tensors]
        tensors += [runtime.view(memory_of(given[k])) for k in self.memories]
        return [*tensors, *(np.empty((values[v], 0), "bool") for v in self.sizes)]

    def returned(self, made: Any, given: Sequence[Any], values: Mapping[Var, int]) -> list[Any]:
        """The results of the GraphModule for those of the function."""
        return returned(self.results, given, made if isinstance(made, tuple) else (made,), values)


def _solve(e: Expr, extent: int, values: dict[Var, int]) -> None:
    """Enter the value of the only unknown of an extent that is a linear expression of it."""
    unknown = [v for v in size_variables([e]) if v not in values]
    if len(unknown) != 1:
        return
    v = unknown[0]
    at = [int(evaluate(e, {**values, v: n})) for n in (1, 2, 3)]
    slope = at[1] - at[0]
    if slope and at[2] - at[1] == slope and (extent - at[0]) % slope == 0:
        values[v] = 1 + (extent - at[0]) // slope


def import_graph(module: Any, weights: Mapping[int, Any], name: str = "main",
                 known: Mapping[str, int] | None = None, share: bool = False) -> Imported:
    """The function of a GraphModule. weights: placeholders, by number, with tensors that are constants.

    known: values of symbols that are numbers in this function. share: results that share memory with arguments or other
    results in PyTorch are no results of the function, and all others lie in memory as PyTorch has them.
    Raises ImportModelError that names every node that is not supported.
    """
    bb, known = BlockBuilder(), known or {}
    importer = Importer(bb, known)
    names = NameSupply()
    inputs: list[Any] = []
    params: list[Value] = []
    tensors: list[int] = []
    numbers: dict[int, Number] = {}
    shapes: dict[int, tuple[Number, ...]] = {}
    memories: dict[int, Value] = {}
    for k, node in enumerate(n for n in module.graph.nodes if n.op == "placeholder"):
        fake = node.meta.get("val")
        if k in weights:
            inputs.append(importer.constant(weights[k], node.name))
        elif hasattr(fake, "shape"):
            shapes[k] = tuple(number(d, known) for d in fake.shape)
            params.append(bb.param(names.fresh(identifier(node.name)), shapes[k], dtype_name(fake.dtype)))
            tensors.append(k)
            inputs.append(params[-1])
            count = memory_read(node, known)
            if count is not None:
                memories[k] = bb.param(names.fresh(f"{identifier(node.name)}_memory"), (count,), params[-1].dtype)
                importer.memory[params[-1]] = memories[k]
        elif fake is None or isinstance(fake, str):
            inputs.append(fake)
        else:
            numbers[k] = number(fake, known)
            inputs.append(numbers[k])
    sizes = _free([*numbers.values(), *(d for p in params for d in p.shape)], params)
    params += [*memories.values(), *(bb.param(names.fresh(v.name), (v, 0), "bool") for v in sizes)]
    with bb.function(name, params):
        made = importer.run(module, inputs)
        results = _Results(bb, known)
        results.enter(made, output_nodes(module), views(module, known) if share else {}, share)
        bb.emit_func_output(results.values)
    function = bb.get()[name]
    function = function.replace(attrs={**function.attrs, "conditions": tuple(importer.conditions)})
    return Imported(function, tuple(tensors), tuple(memories), sizes, numbers, shapes, tuple(results.found))


class _Results:
    """The results of a GraphModule, and the values of the function that they are made of."""

    def __init__(self, bb: BlockBuilder, known: Mapping[str, int]) -> None:
        self.bb, self.known = bb, known
        self.found: list[Any] = []
        self.values: list[Value] = []

    def enter(self, made: Sequence[Any], nodes: Sequence[Any], shared: Mapping[int, View], laid_out: bool) -> None:
        """What nodes have become. shared: views that take the place of some."""
        for k, (result, node) in enumerate(zip(made, nodes)):
            order = layout(node.meta["val"], self.known) if laid_out and isinstance(result, Value) else None
            self.found.append(shared[k] if k in shared else self._result(result, order))

    def _result(self, made: Any, order: tuple[int, ...] | None) -> Any:
        """The Result of what a node has become, whose values are entered; numbers stay."""
        if isinstance(made, Counted):
            return Result(self._entered(made.value), rows=self._entered(made.number))
        if isinstance(made, Scalar):
            return Result(self._entered(made.value), number=True)
        if not isinstance(made, Value):
            return made
        if order is None or order == tuple(range(made.ndim)):
            return Result(self._entered(made))
        return Result(self._entered(self.bb.emit_te(topi.transpose, made, order)), order=order)

    def _entered(self, value: Value) -> int:
        self.values.append(value)
        return len(self.values) - 1


def _free(numbers: Sequence[Any], params: Sequence[Value]) -> tuple[Var, ...]:
    """The size variables that are no extent of a parameter by themselves."""
    bound = {d for p in params for d in p.shape if isinstance(d, Var)}
    return tuple(v for v in size_variables(numbers) if v not in bound)
