"""Models in the ONNX format that tests make."""
from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tilewright.frontend.onnx.backend import backend

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def tensor(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def graph(nodes, inputs, outputs, constants=None, name="g"):
    held = [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()]
    return helper.make_graph(nodes, name, inputs, outputs, held)


def model(nodes, inputs, outputs, constants=None, opset=18, functions=(), domains=()):
    return helper.make_model(graph(nodes, inputs, outputs, constants), functions=list(functions), opset_imports=[
        helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)])


def transformer():
    """One block of a transformer over named sizes, its shapes computed as exporters write them."""
    rng = np.random.default_rng(1)
    width, heads = 16, 4
    weights = {f"w{k}": rng.standard_normal((width, width)).astype("float32") * 0.3 for k in "qkvo"}
    constants = {**weights, "gamma": np.ones(width, "float32"), "beta": np.zeros(width, "float32"),
                 "zero": np.int64(0), "one": np.int64(1), "heads": np.array([heads]), "each": np.array([4]),
                 "front": np.array([0]), "width": np.array([width]), "root": np.float32(np.sqrt(width // heads)),
                 "table": rng.standard_normal((50, width)).astype("float32")}
    nodes = [node("Gather", "table ids", "x"), node("Shape", "x", "shape"),
             node("Gather", "shape zero", "batch"), node("Gather", "shape one", "length"),
             node("Unsqueeze", "batch front", "batch1"), node("Unsqueeze", "length front", "length1"),
             node("Concat", "batch1 length1 heads each", "split", axis=0),
             node("Concat", "batch1 length1 width", "merged", axis=0)]
    for k in "qkv":
        nodes += [node("MatMul", f"x w{k}", f"{k}0"), node("Reshape", f"{k}0 split", f"{k}1"),
                  node("Transpose", f"{k}1", f"{k}2", perm=[0, 2, 3, 1] if k == "k" else [0, 2, 1, 3])]
    nodes += [node("MatMul", "q2 k2", "s0"), node("Div", "s0 root", "s1"), node("Softmax", "s1", "s2", axis=-1),
              node("MatMul", "s2 v2", "y0"), node("Transpose", "y0", "y1", perm=[0, 2, 1, 3]),
              node("Reshape", "y1 merged", "y2"), node("MatMul", "y2 wo", "y3"), node("Add", "x y3", "y4"),
              node("LayerNormalization", "y4 gamma beta", "y", axis=-1)]
    return model(nodes, [tensor("ids", ["batch", "length"], INT64)], [tensor("y", ["batch", "length", width])],
                 constants)


def reference(proto, *inputs):
    """The results by the evaluator of the onnx package."""
    from onnx.reference import ReferenceEvaluator
    return ReferenceEvaluator(proto).run(None, {i.name: v for i, v in zip(proto.graph.input, inputs)})


def results(op, inputs, version, constants=(), count=1, domain="", **attributes):
    """The results of a node; constants: the numbers of the inputs that are; count: how many results, or which."""
    names, infos, held = [], [], []
    for k, given in enumerate(inputs):
        array = None if given is None else np.asarray(given)
        names.append("" if array is None else f"x{k}")
        if array is not None and k in constants:
            held.append(numpy_helper.from_array(array, names[-1]))
        elif array is not None:
            infos.append(helper.make_tensor_value_info(
                names[-1], helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
    asked = range(count) if isinstance(count, int) else count
    outs = [f"y{k}" if k in asked else "" for k in range(max(asked) + 1)]
    node = helper.make_node(op, names, outs, domain=domain, **attributes)
    graph = helper.make_graph([node], "node", infos, [helper.make_empty_tensor_value_info(y) for y in outs if y], held)
    imports = [helper.make_opsetid("", version), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports)
    feed = {i.name: np.asarray(inputs[int(i.name[1:])]) for i in infos}
    return backend().prepare(model).run(feed)


def check(got, wanted, tolerance=1e-6):
    wanted = np.asarray(wanted)
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance)
