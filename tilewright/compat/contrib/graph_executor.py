"""`tvm.contrib.graph_executor`: a graph in JSON whose nodes call functions of a library."""
from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright import runtime
from tilewright.compat.params import load_param_dict
from tilewright.runtime import Device, Tensor
from tilewright.runtime.tensor import as_numpy
from tilewright.runtime.timing import BenchmarkResult
from tilewright.support.errors import ArgumentError, LoadError, described, nearest


def create(graph_json_str: Any, libmod: Any, device: Device | list[Device]) -> GraphModule:
    """What runs a graph, in JSON or as nnvm.compiler.build gave it, by the functions of a library."""
    text = graph_json_str if isinstance(graph_json_str, str) else graph_json_str.json()
    for d in device if isinstance(device, (list, tuple)) else [device]:
        if not isinstance(d, Device) or d.kind != "cpu":
            raise ArgumentError(f"graph_executor.create: {described(d)} runs no code here", "tvm.cpu(0)")
    return GraphModule(_Graph(text, libmod))


class _Graph:
    """Nodes, arrays for what goes between them, and the order of inputs."""

    def __init__(self, text: str, lib: Any) -> None:
        try:
            graph = json.loads(text)
            self.nodes: list[dict[str, Any]] = graph["nodes"]
            self.inputs = {self.nodes[k]["name"]: k for k in graph["arg_nodes"]}
            rows: list[int] = graph["node_row_ptr"]
            shapes, dtypes = graph["attrs"]["shape"][1], graph["attrs"]["dltype"][1]
            self.heads = [rows[n] + i for n, i, *_ in graph["heads"]]
            self.calls = [(node["attrs"]["func_name"], [rows[n] + i for n, i, *_ in node["inputs"]],
                           slice(rows[k], rows[k + 1])) for k, node in enumerate(self.nodes) if _calls(node)]
        except (ValueError, KeyError, TypeError, IndexError) as why:
            raise LoadError(f"graph_executor: this is no graph in JSON: {why!r}") from None
        self.lib, self.rows = lib, rows
        used = [*self.heads, *(rows[k] for k in self.inputs.values()), *(k for _, read, _ in self.calls for k in read)]
        if len(shapes) != len(dtypes) or rows[-1] != len(shapes) or not all(0 <= k < len(shapes) for k in used):
            raise LoadError(f"graph_executor: the graph has {len(shapes)} shapes, {len(dtypes)} dtypes and "
                            f"{rows[-1]} values")
        self.arrays = [runtime.empty(shape, dtype) for shape, dtype in zip(shapes, dtypes)]

    def steps(self) -> list[tuple[Any, list[Tensor]]]:
        """The functions with what they are called with."""
        return [(self.lib[name], [*(self.arrays[k] for k in read), *self.arrays[written]])
                for name, read, written in self.calls]


def _calls(node: Mapping[str, Any]) -> bool:
    """True for a node that calls a function, False for an input. Raises LoadError for another."""
    if node["op"] not in ("null", "tvm_op"):
        raise LoadError(f"graph_executor: the node {node['name']} is a {node['op']}")
    return bool(node["op"] == "tvm_op")


class GraphModule:
    """Runs a graph: set_input, run, get_output."""

    def __init__(self, module: Any) -> None:
        if not isinstance(module, _Graph):
            raise ArgumentError(f"GraphModule takes what graph_executor.create makes, not {described(module)}",
                                "graph_executor.create(graph_json, lib, tvm.cpu(0))")
        self._graph = module
        self._steps = module.steps()

    def set_input(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Copy arrays into inputs, by name or by number."""
        if key is not None:
            self._input(key).copyfrom(_array(value, key))
        for name, given in params.items():
            self._input(name).copyfrom(_array(given, name))

    def set_input_zero_copy(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """set_input: arrays are copied."""
        self.set_input(key, value, **params)

    def load_params(self, params_bytes: bytes | bytearray) -> None:
        """Copy the arrays that save_param_dict kept into inputs."""
        for name, value in load_param_dict(params_bytes).items():
            self.set_input(name, value)

    def run(self, **input_dict: Any) -> None:
        """Run the graph, on inputs that are set first."""
        self.set_input(**input_dict)
        for function, arrays in self._steps:
            function(*arrays)

    def get_output(self, index: int, out: Any = None) -> Any:
        """Output number `index`: a new array, or copied into the one given, which is the result."""
        if not 0 <= index < self.get_num_outputs():
            raise ArgumentError(f"get_output({index}): there are {self.get_num_outputs()} outputs")
        found = self._graph.arrays[self._graph.heads[index]]
        if out is None:
            return runtime.array(found)
        out.copyfrom(found)
        return out

    def get_input(self, index: str | int, out: Any = None) -> Any:
        """An input: a new array, or copied into the one given."""
        found = self._input(index)
        if out is None:
            return runtime.array(found)
        out.copyfrom(found)
        return out

    def get_num_outputs(self) -> int:
        return len(self._graph.heads)

    def get_num_inputs(self) -> int:
        return len(self._graph.inputs)

    def get_input_index(self, name: str) -> int:
        """The number of an input; -1 where there is none."""
        return next((k for k, n in enumerate(self._graph.inputs) if n == name), -1)

    def get_input_info(self) -> tuple[Mapping[str, tuple[int, ...]], Mapping[str, str]]:
        """(the shapes of inputs, their dtypes) by name."""
        arrays = {name: self._input(name) for name in self._graph.inputs}
        return {n: a.shape for n, a in arrays.items()}, {n: a.dtype for n, a in arrays.items()}

    def benchmark(self, device: Any = None, func_name: str = "run", repeat: int = 5, number: int = 5,
                  **input_dict: Any) -> BenchmarkResult:
        """Times of a run in seconds."""
        self.run(**input_dict)
        results = []
        for _ in range(repeat):
            start = time.perf_counter()
            for _ in range(number):
                self.run()
            results.append((time.perf_counter() - start) / number)
        return BenchmarkResult(tuple(results))

    def __getitem__(self, key: str) -> Any:
        return getattr(self, key)

    def _input(self, key: str | int) -> Tensor:
        names = list(self._graph.inputs)
        name = names[key] if isinstance(key, int) and 0 <= key < len(names) else key
        if name not in self._graph.inputs:
            raise ArgumentError(f"the graph has no input {key!r}", nearest(str(key), names) or ", ".join(names))
        return self._graph.arrays[self._graph.rows[self._graph.inputs[str(name)]]]


def _array(value: Any, key: Any) -> np.ndarray:
    if value is None:
        raise ArgumentError(f"set_input: {key!r} has no value")
    return as_numpy(value) if isinstance(value, Tensor) else np.asarray(value)


NAMES: dict[str, Any] = {"create": create, "GraphModule": GraphModule}
