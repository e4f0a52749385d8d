"""GraphModules of ATen operators as functions of the graph, and how arguments and results of both belong together."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.frontend.torch.arrays import empty_array, shared, tensor_of
from tilewright.frontend.torch.dtypes import dtype_name
from tilewright.frontend.torch.emit import Counted, Scalar
from tilewright.frontend.torch.fx import Importer
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

    tensors: which arguments of the GraphModule the first parameters of the function are. sizes: the size variables that
    the other parameters have as first of two extents, the second one 0, since no tensor has them as extents.
    numbers: for each argument that is a number its expression. results: for each result of the GraphModule a Result of
    the function, an expression, or None. checks: what must hold of the sizes, and what to say where it does not.
    """
    function: Function
    tensors: tuple[int, ...]
    sizes: tuple[Var, ...]
    numbers: Mapping[int, Number]
    shapes: Mapping[int, tuple[Number, ...]]
    results: tuple[Any, ...]
    checks: tuple[tuple[Expr, str], ...] = ()

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
        """The arguments of the function. Raises GraphError where what the program says of its sizes does not hold."""
        for condition, message in self.checks:
            if not evaluate(condition, values):
                where = ", ".join(f"{v.name} = {n}" for v, n in values.items())
                raise GraphError(f"{self.function.name}: {message} ({where})")
        tensors = [runtime.view(shared(given[k])) if given[k].numel() else empty_array(given[k]) for k in self.tensors]
        return [*tensors, *(np.empty((values[v], 0), "bool") for v in self.sizes)]

    def returned(self, results: Any, values: Mapping[Var, int]) -> list[Any]:
        """The results of the GraphModule for those of the function."""
        results = results if isinstance(results, tuple) else (results,)
        return [r.of(results) if isinstance(r, Result) else evaluate(r, values) if isinstance(r, Expr) else r
                for r in self.results]


@dataclass(frozen=True)
class Result:
    """A result of the function, by its number: as many rows as result `rows` says, or its element as a number."""
    index: int
    rows: int | None = None
    number: bool = False

    def of(self, results: Sequence[Any]) -> Any:
        """The result of PyTorch among those of the function."""
        tensor = tensor_of(results[self.index])
        if self.rows is not None:
            tensor = tensor[:tensor_of(results[self.rows]).item()].contiguous()
        return tensor.item() if self.number else tensor


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
                 known: Mapping[str, int] | None = None) -> Imported:
    """The function of a GraphModule. weights: placeholders, by number, with tensors that are constants.

    known: values of symbols that are numbers in this function. Raises ImportModelError that names every node that is
    not supported.
    """
    bb = BlockBuilder()
    importer = Importer(bb, known)
    names = NameSupply()
    inputs: list[Any] = []
    params: list[Value] = []
    tensors: list[int] = []
    numbers: dict[int, Number] = {}
    shapes: dict[int, tuple[Number, ...]] = {}
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    for k, node in enumerate(placeholders):
        fake = node.meta.get("val")
        if k in weights:
            inputs.append(importer.constant(weights[k], node.name))
        elif hasattr(fake, "shape"):
            shapes[k] = tuple(number(d, known) for d in fake.shape)
            params.append(bb.param(names.fresh(identifier(node.name)), shapes[k], dtype_name(fake.dtype)))
            tensors.append(k)
            inputs.append(params[-1])
        elif fake is None or isinstance(fake, str):
            inputs.append(fake)
        else:
            numbers[k] = number(fake, known)
            inputs.append(numbers[k])
    sizes = _free([*numbers.values(), *(d for p in params for d in p.shape)], params)
    params += [bb.param(names.fresh(v.name), (v, 0), "bool") for v in sizes]
    with bb.function(name, params):
        made = importer.run(module, inputs)
        values: list[Value] = []
        results = tuple(_result(v, values) for v in made)
        bb.emit_func_output(values)
    return Imported(bb.get()[name], tuple(tensors), sizes, numbers, shapes, results,
                    tuple(importer.checks))


def _result(made: Any, values: list[Value]) -> Any:
    """The Result of what a node has become, whose values are entered; numbers stay."""
    if isinstance(made, Counted):
        values += [made.value, made.number]
        return Result(len(values) - 2, rows=len(values) - 1)
    if isinstance(made, (Value, Scalar)):
        values.append(made if isinstance(made, Value) else made.value)
        return Result(len(values) - 1, number=isinstance(made, Scalar))
    return made


def _free(numbers: Sequence[Any], params: Sequence[Value]) -> tuple[Var, ...]:
    """The size variables that are no extent of a parameter by themselves."""
    bound = {d for p in params for d in p.shape if isinstance(d, Var)}
    return tuple(v for v in size_variables(numbers) if v not in bound)
