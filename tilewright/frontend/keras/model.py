"""`from_keras`: a functional or sequential model as a function of the graph, layer by layer."""
from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.frontend.keras import activations, merging, moving, windows
from tilewright.frontend.keras.layer import Layer, row_of, rows
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import size
from tilewright.graph.ir.values import Function, Value
from tilewright.support.errors import GraphError, ImportModelError, described, nearest
from tilewright.support.names import NameSupply, identifier

TABLES = (activations, merging, moving, windows)          # each enters its layers in layer.rows


def from_keras(model: Any, shapes: Mapping[str, Sequence[int]] | None = None) -> Function:
    """The function of a model: inputs as parameters, weights as constants under the names `layer.weight`.

    An extent that the model leaves open is a size: the first is `batch` for all inputs. shapes: those of inputs by
    name, where they are to be constant. Raises ImportModelError for a layer that there is not, with its name.
    """
    graph = getattr(model, "_functional", None) or model
    if not hasattr(graph, "_nodes_by_depth"):
        what = type(model).__name__ if hasattr(model, "layers") else described(model)
        raise ImportModelError(f"from_keras: {what} is no functional or sequential model that is built",
                               "call a sequential model once, or begin it with keras.Input(shape)")
    return _Import(graph, dict(shapes or {})).function()


class _Import:
    def __init__(self, graph: Any, shapes: dict[str, Sequence[int]]) -> None:
        self.graph, self.shapes = graph, shapes
        self.builder = BlockBuilder()
        self.names = NameSupply()
        self.weights: dict[tuple[int, str], Value] = {}

    def function(self) -> Function:
        given = [self.parameter(t, layer) for t, layer in _inputs(self.graph)]
        unknown = next((n for n in self.shapes if n not in [v.name for v in given]), None)
        if unknown is not None:
            raise ImportModelError(f"from_keras: the model has no input {unknown!r}",
                                   nearest(unknown, [v.name for v in given]) or ", ".join(v.name for v in given))
        with self.builder.function("main", given):
            results = self.run(self.graph, given)
            self.builder.emit_func_output(results)
        return self.builder.get()["main"]

    def parameter(self, tensor: Any, layer: Any) -> Value:
        name = self.names.fresh(identifier(layer.name))
        shape: Sequence[Any] | None = self.shapes.get(name)
        if shape is None:
            shape = [d if d is not None else size("batch" if k == 0 else f"{name}_{k}")
                     for k, d in enumerate(tensor.shape)]
        elif len(shape) != len(tensor.shape) or any(d is not None and d != n for d, n in zip(tensor.shape, shape)):
            raise ImportModelError(f"from_keras: {name} is of the shape {tuple(tensor.shape)}, not {tuple(shape)}")
        return self.builder.param(name, shape, tensor.dtype)

    def run(self, graph: Any, inputs: Sequence[Value]) -> list[Value]:
        """What a model gives; models may be layers of others."""
        env = dict(zip([id(t) for t, _ in _inputs(graph)], inputs))
        for node in _nodes(graph):
            tensors = list(node.input_tensors)
            if all(id(t) in env for t in node.output_tensors):
                continue
            missing = next((t for t in tensors if id(t) not in env), None)
            if missing is not None:
                raise ImportModelError(f"from_keras: {node.operation.name} reads a tensor that no layer makes")
            made = self.layer(node, [env[id(t)] for t in tensors])
            env.update(zip([id(t) for t in node.output_tensors], made, strict=True))
        return [env[id(t)] for t in graph.outputs]

    def layer(self, node: Any, inputs: list[Value]) -> list[Value]:
        """What a layer gives."""
        op = node.operation
        kind = type(op).__name__
        inner = getattr(op, "_functional", None) or op
        if hasattr(inner, "_nodes_by_depth"):
            return self.run(inner, inputs)
        row = row_of(op)
        if row is None:
            home = f" of {type(op).__module__}" if kind in rows else ""
            raise ImportModelError(f"from_keras: the layer {op.name} is a {kind}{home}, which is not supported",
                                   "" if home else nearest(kind, rows))
        layer = Layer(op, kind, self.builder, self.weight, node.arguments)
        if node.arguments.kwargs.get("training"):
            raise layer.refuse("a call with training=True")
        try:
            inspect.signature(row).bind(layer, *inputs)
        except TypeError:
            raise layer.refuse(f"a call with {len(inputs)} tensors") from None
        try:
            with self.builder.source(op.name):
                made = row(layer, *inputs)
        except GraphError as why:
            raise ImportModelError(f"from_keras: the layer {op.name} ({kind}): {why}") from why
        return list(made) if isinstance(made, (list, tuple)) else [made]

    def weight(self, layer: Any, name: str, array: np.ndarray) -> Value:
        """A constant; one of a layer that is used twice is one constant."""
        key = id(layer), name
        if key not in self.weights:
            self.weights[key] = self.builder.const(np.ascontiguousarray(array), f"{layer.name}.{name}", share=True)
        return self.weights[key]


def _inputs(graph: Any) -> list[tuple[Any, Any]]:
    """The inputs of a model with the layers that stand for them."""
    layers = {id(t): n.operation for n in _nodes(graph) if not n.input_tensors for t in n.output_tensors}
    return [(t, layers.get(id(t), t)) for t in graph.inputs]


def _nodes(graph: Any) -> Iterator[Any]:
    """The uses of layers, producers first."""
    for depth in sorted(graph._nodes_by_depth, reverse=True):
        yield from graph._nodes_by_depth[depth]
