"""A row's operator as an ONNX model."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ValueInfoProto, helper, numpy_helper

from kernel_cases.rows import Row, Shape, several

OPSET, IR_VERSION = 21, 10


class Graph:
    """Nodes in the order in which they were added: `node("Softmax", x, axis=1)` gives the name of its result.

    shapes: of the inputs, by name.
    """

    def __init__(self, shapes: Mapping[str, Shape]) -> None:
        self.shapes = shapes
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def __call__(self, kind: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        names = [f"{kind}_{len(self.nodes)}_{k}" for k in range(results)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if results == 1 else names

    def constant(self, values: Any, dtype: str) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype), name))
        return name


def model(row: Row) -> bytes | None:
    """The model, whose operands are all inputs; None where the operator has none."""
    names = [f"x{k}" for k in range(len(row.operands))]
    graph = Graph(dict(zip(names, row.shapes)))
    found = row.operator.onnx(graph, *names)
    if found is None:
        return None
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(x.dtype)), x.shape)
              for name, x in zip(names, row.operands)]
    outputs = [ValueInfoProto(name=name) for name in several(found)]       # their types are inferred
    made = helper.make_model(helper.make_graph(graph.nodes, "row", inputs, outputs, graph.constants), opset_imports=[
        helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)])
    made.ir_version = IR_VERSION
    return made.SerializeToString()
