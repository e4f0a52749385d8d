"""`nnvm`: models of other frameworks as graphs, compiled to a library and a graph that calls it."""
from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tilewright import runtime
from tilewright.compat.params import load_param_dict, save_param_dict
from tilewright.frontend.keras import from_keras as import_keras
from tilewright.frontend.onnx import from_onnx as import_onnx
from tilewright.graph.compile import build_function
from tilewright.graph.ir.rebuild import Rebuild
from tilewright.graph.ir.types import TensorType
from tilewright.graph.ir.values import Function, Value, constant
from tilewright.graph.plan.executable import Executable
from tilewright.runtime import Tensor
from tilewright.runtime.dtypes import numpy_dtype
from tilewright.runtime.tensor import as_numpy
from tilewright.support.errors import ArgumentError, GraphError, described, nearest

Shapes = Mapping[str, Sequence[int]]
_ENTRY = "model"


class Graph:
    """A model: its inputs, among them its weights, which `build` makes constants where it is given them."""

    def __init__(self, make: Callable[[Shapes | None], Function], name: str = "graph") -> None:
        self._make, self.name = make, name
        self.function = make(None)

    def function_for(self, shapes: Shapes | None) -> Function:
        """The function for inputs of these shapes."""
        return self._make(shapes) if shapes else self.function

    @property
    def weights(self) -> dict[str, Value]:
        """The weights by name."""
        return weights_of(self.function)

    def list_input_names(self) -> list[str]:
        """The inputs: those of the model, then its weights."""
        return [*(p.name for p in self.function.params), *self.weights]

    def list_output_names(self) -> list[str]:
        return [v.name for v in self.function.results]

    def ir(self) -> str:
        """The graph as text."""
        return self.function.script()

    def __str__(self) -> str:
        return self.ir()


class BuiltGraph:
    """A compiled graph: `json()` is what graph_executor.create takes."""

    def __init__(self, inputs: Mapping[str, TensorType], outputs: Sequence[tuple[str, TensorType]], ir: str) -> None:
        self.inputs, self.outputs, self._ir = dict(inputs), list(outputs), ir

    def list_input_names(self) -> list[str]:
        return list(self.inputs)

    def json(self) -> str:
        """One node for each input, and one that calls the library."""
        count = len(self.inputs)
        nodes: list[dict[str, Any]] = [{"op": "null", "name": name, "inputs": []} for name in self.inputs]
        attrs = {"func_name": _ENTRY, "num_inputs": str(count), "num_outputs": str(len(self.outputs)),
                 "flatten_data": "0"}
        nodes.append({"op": "tvm_op", "name": _ENTRY, "attrs": attrs, "inputs": [[k, 0, 0] for k in range(count)]})
        types = [*self.inputs.values(), *(t for _, t in self.outputs)]
        listed = {"shape": ["list_shape", [list(t.shape) for t in types]],
                  "dltype": ["list_str", [t.dtype for t in types]],
                  "storage_id": ["list_int", list(range(len(types)))]}
        return json.dumps({"nodes": nodes, "arg_nodes": list(range(count)),
                           "heads": [[count, k, 0] for k in range(len(self.outputs))],
                           "node_row_ptr": [*range(count + 1), len(types)], "attrs": listed}, indent=2)

    def ir(self) -> str:
        """The graph as text."""
        return self._ir


class Library:
    """The code of a graph: the function `model(inputs..., outputs...)`, which a file may keep."""
    entry_name = _ENTRY

    def __init__(self, built: Executable) -> None:
        self.built = built

    def __getitem__(self, name: str) -> Callable[..., None]:
        if name != _ENTRY:
            raise ArgumentError(f"the library has no function {name!r}", f"it has {_ENTRY}")

        def run(*arrays: Tensor) -> None:
            count = len(self.built.plan.params)
            made = self.built(*arrays[:count])
            for out, result in zip(arrays[count:], made if isinstance(made, tuple) else (made,), strict=True):
                out.copyfrom(result)
        return run

    get_function = __getitem__

    def export_library(self, file_name: str, fcompile: Any = None, **options: Any) -> None:
        """Write the code and its constants to a shared library, for tvm.runtime.load_module."""
        self.built.export(file_name, _ENTRY)

    def save(self, file_name: str, fmt: str = "") -> None:
        """Write the code and its constants to an object or a shared library."""
        self.built.export(file_name, _ENTRY)


def weights_of(function: Function) -> dict[str, Value]:
    """The constants with more than one element, by their names, which are made to differ."""
    found: dict[str, Value] = {}
    for v in function.constants:
        if v.data is not None and v.data.size > 1:
            name, count = v.name, 0
            while name in found:
                count += 1
                name = f"{v.name}_{count}"
            found[name] = v
    return found


def build(graph: Graph, target: Any = None, shape: Shapes | None = None, dtype: Any = "float32",
          params: Mapping[str, Any] | None = None, target_host: Any = None, layout: Any = None
          ) -> tuple[BuiltGraph, Library, dict[str, Tensor]]:
    """(the graph in JSON, the library, parameters that are still to be set).

    Weights that params has are constants of the library, so that what depends on them alone is computed here; those
    that it lacks stay inputs. Raises GraphError where the shape of an input is not known.
    """
    if not isinstance(graph, Graph):
        raise ArgumentError(f"nnvm.compiler.build takes a graph, not {described(graph)}", "nnvm.frontend.from_keras")
    given = dict(params or {})
    shapes = {k: tuple(v) for k, v in (shape or {}).items() if k not in graph.weights}
    function = graph.function_for(shapes)
    weights = weights_of(function)
    unknown = next((k for k in given if k not in weights), None)
    if unknown is not None:
        raise ArgumentError(f"build: the model has no parameter {unknown!r}", nearest(unknown, weights))
    open_ = next((p for p in function.params if not p.type.is_constant), None)
    if open_ is not None:
        raise GraphError(f"build: the input {open_.name} is of the type {open_.type}",
                         f"shape={{{open_.name!r}: ...}} says its extents")
    function = _with_weights(function, weights, given)
    built = build_function(function, str(target) if target is not None else None)
    outputs = [(v.name, v.type) for v in function.results]
    return BuiltGraph({p.name: p.type for p in function.params}, outputs, function.script()), Library(built), {}


def _with_weights(function: Function, weights: Mapping[str, Value], given: Mapping[str, Any]) -> Function:
    """function with other values of weights, and with those that are not given as parameters."""
    new = Rebuild()
    params = list(function.params)
    for name, v in weights.items():
        if name not in given:
            params.append(Value(v.type, name))
            new.map[v] = params[-1]
            continue
        array = as_numpy(given[name])
        if tuple(array.shape) != tuple(v.shape):
            raise ArgumentError(f"build: the parameter {name} has the shape {array.shape}, not {tuple(v.shape)}")
        if array is not v.held:
            new.map[v] = constant(array.astype(numpy_dtype(v.dtype), copy=False), name)
    for c in function.calls:
        new.source = c.source
        made = new.emit_all(c.callee, [new[v] for v in c.inputs], [v.name for v in c.results])
        new.map.update(zip(c.results, made, strict=True))
    return function.replace(params=tuple(params), calls=tuple(new.calls),
                            results=tuple(new[v] for v in function.results))


@contextlib.contextmanager
def build_config(**options: Any) -> Iterator[None]:
    """Options of NNVM's passes; they change nothing: every pass runs that applies."""
    yield


def from_keras(model: Any) -> tuple[Graph, dict[str, Tensor]]:
    """(the graph of a model of Keras, its weights)."""
    return _imported(Graph(lambda shapes: import_keras(model, shapes), getattr(model, "name", "model")))


def from_onnx(model: Any) -> tuple[Graph, dict[str, Tensor]]:
    """(the graph of a model in the ONNX format, its weights)."""
    return _imported(Graph(lambda shapes: import_onnx(model, shapes=dict(shapes) if shapes else None)))


def _imported(graph: Graph) -> tuple[Graph, dict[str, Tensor]]:
    return graph, {name: runtime.array(v.data) for name, v in graph.weights.items()}


_COMPILER = {"build": build, "build_config": build_config, "save_param_dict": save_param_dict,
             "load_param_dict": load_param_dict}
_FRONTEND = {"from_keras": from_keras, "from_onnx": from_onnx}
MODULES: dict[str, tuple[dict[str, Any], str]] = {
    "nnvm": ({}, "Graphs of models, 2018 spelling."),
    "nnvm.compiler": (_COMPILER, "Graphs compiled."),
    "nnvm.frontend": (_FRONTEND, "Models of other frameworks."),
    "nnvm.graph": ({"Graph": Graph}, "Graphs."),
}
