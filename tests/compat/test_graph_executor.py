"""tvm.contrib.graph_executor, files of parameters, and nnvm."""
import json
import os
import sys

import numpy as np
import pytest

from tilewright.support.errors import TilewrightError

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint16", "float16", "bool", "int64"])
def test_parameters_are_kept(tvm, dtype):
    given = {"w": RNG.integers(0, 2, (3, 4)).astype(dtype), "empty": np.empty((0, 2), dtype), "one": np.ones((), dtype)}
    data = tvm.runtime.save_param_dict({k: tvm.nd.array(v) for k, v in given.items()})
    assert bytes(data[:8]) == bytes.fromhex("b79c04054f8de5f7")               # as TVM begins
    for name, array in tvm.runtime.load_param_dict(data).items():
        np.testing.assert_array_equal(array.numpy(), given[name])
        assert array.dtype == dtype and array.shape == given[name].shape
    for end in (4, 30, len(data) - 1):
        with pytest.raises(TilewrightError, match="load_param_dict"):
            tvm.runtime.load_param_dict(data[:end])


def test_parameters_of_numpy_are_kept_in_the_order_of_bytes_that_files_have(tvm):
    given = {"swapped": np.array([1, 2], ">f4"), "columns": np.asfortranarray(np.arange(6).reshape(2, 3)), "one": 2.5}
    for name, array in tvm.runtime.load_param_dict(tvm.runtime.save_param_dict(given)).items():
        np.testing.assert_array_equal(array.numpy(), given[name])
        assert array.shape == np.shape(given[name])
    for wrong in (np.array([1j]), np.array([1], "longdouble"), np.array(["a"])):
        if wrong.dtype.itemsize > 8 or wrong.dtype.kind in "cU":       # a long double may be a double
            with pytest.raises(TilewrightError, match="are not taken"):
                tvm.runtime.save_param_dict({"w": wrong})


def test_damaged_parameters_are_refused(tvm):
    data = bytes(tvm.runtime.save_param_dict({"ab": np.ones((2, 2), "float32"), "c": np.ones(2, "int64")}))
    for k in range(len(data)):
        for byte in (0, 3, 0x80, 0xff):
            try:
                tvm.runtime.load_param_dict(data[:k] + bytes([byte]) + data[k + 1:])
            except TilewrightError:
                pass
    c = (1).to_bytes(8, "little") + b"c"
    assert data.count(c) == 1
    for wrong in (data.replace(c, (2).to_bytes(8, "little") + b"ab"), "text"):
        with pytest.raises(TilewrightError, match="load_param_dict"):
            tvm.runtime.load_param_dict(wrong)


GRAPH = {
    "nodes": [{"op": "null", "name": "x", "inputs": []}, {"op": "null", "name": "w", "inputs": []},
              {"op": "tvm_op", "name": "sum", "attrs": {"func_name": "add"}, "inputs": [[0, 0, 0], [1, 0, 0]]},
              {"op": "tvm_op", "name": "again", "attrs": {"func_name": "add"}, "inputs": [[2, 0, 0], [0, 0, 0]]}],
    "arg_nodes": [0, 1], "heads": [[3, 0, 0], [2, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4],
    "attrs": {"shape": ["list_shape", [[4], [4], [4], [4]]], "dltype": ["list_str", ["float32"] * 4]}}


DAMAGES = [
    {"nodes": [*GRAPH["nodes"][:2], {"op": "tvm_op", "name": "sum", "inputs": []}, GRAPH["nodes"][3]]},
    {"nodes": [*GRAPH["nodes"][:3], GRAPH["nodes"][3] | {"inputs": [[2, 9, 0]]}]}, {"heads": [[0, -1, 0]]},
    {"attrs": GRAPH["attrs"] | {"dltype": ["list_str", ["float32"]]}}, {"node_row_ptr": [0, 1, 2, 3, 9]},
    {"nodes": [*GRAPH["nodes"][:3], GRAPH["nodes"][3] | {"op": "other"}]}]


def test_a_graph_in_json(tvm):
    from tvm import te
    from tvm.contrib import graph_executor, graph_runtime
    a, b = te.placeholder((4,), name="a"), te.placeholder((4,), name="b")
    c = te.compute((4,), lambda i: a[i] + b[i], name="c")
    lib = tvm.build(te.create_schedule(c.op), [a, b, c], "llvm", name="add")
    assert graph_runtime.create is graph_executor.create
    module = graph_executor.create(json.dumps(GRAPH), lib, tvm.cpu(0))
    x, w = RNG.standard_normal((2, 4)).astype("float32")
    module.load_params(tvm.runtime.save_param_dict({"w": w}))
    module.run(x=tvm.nd.array(x))
    np.testing.assert_allclose(module.get_output(0).numpy(), 2 * x + w, rtol=1e-6)
    out = tvm.nd.empty((4,))
    assert module.get_output(1, out) is out
    np.testing.assert_allclose(out.numpy(), x + w, rtol=1e-6)
    assert (module.get_num_inputs(), module.get_num_outputs(), module.get_input_index("w")) == (2, 2, 1)
    np.testing.assert_array_equal(module.get_input("w").numpy(), w)
    for wrong in (lambda: module.set_input("y", x), lambda: module.get_output(2), lambda: module.set_input("x", x[:3]),
                  lambda: graph_executor.create("{}", lib, tvm.cpu(0)),
                  *(lambda d=d: graph_executor.create(json.dumps(GRAPH | d), lib, tvm.cpu(0)) for d in DAMAGES),
                  lambda: graph_executor.create(json.dumps(GRAPH), lib, tvm.gpu(0))):
        with pytest.raises(TilewrightError):
            wrong()


@pytest.mark.parametrize("constant", [True, False])
def test_a_model_of_keras_is_deployed(tvm, tmp_path, constant):
    pytest.importorskip("torch")
    os.environ.setdefault("KERAS_BACKEND", "torch")
    keras = pytest.importorskip("keras")
    nnvm = sys.modules["nnvm"]
    from tvm.contrib import graph_runtime
    model = keras.Sequential([keras.Input((8,), name="x"), keras.layers.Dense(6, activation="relu"),
                              keras.layers.Dense(3, activation="softmax")])
    graph, params = nnvm.frontend.from_keras(model)
    (data,) = [n for n in graph.list_input_names() if n not in params]
    assert len(params) == 4
    x = RNG.standard_normal((5, 8)).astype("float32")
    given = params if constant else None
    graph, lib, left = nnvm.compiler.build(graph, "llvm", shape={data: x.shape}, params=given)
    module = graph_runtime.create(graph, lib, tvm.cpu(0))
    module.set_input(**(left if constant else params))
    module.run(**{data: x})
    want = model.predict(x, verbose=0)
    np.testing.assert_allclose(module.get_output(0).numpy(), want, rtol=1e-4, atol=1e-6)
    path = str(tmp_path / "deploy.so")
    lib.export_library(path)
    again = graph_runtime.create(graph.json(), tvm.runtime.load_module(path), tvm.cpu(0))
    again.load_params(nnvm.compiler.save_param_dict(left if constant else params))
    again.run(**{data: x})
    np.testing.assert_allclose(again.get_output(0).numpy(), want, rtol=1e-4, atol=1e-6)
