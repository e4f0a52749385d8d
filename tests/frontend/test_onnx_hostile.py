"""Files in the ONNX format that are damaged or ask for too much: our own error, in bounded time and memory."""
import os
import resource
import time

import numpy as np
import pytest
from onnx import TensorProto, helper

from tests.frontend.onnx_models import BOOL, FLOAT, INT64, graph, model, node, tensor
from tests.frontend.onnx_mutants import bases, mutant, outcome, run
from tilewright.frontend.onnx import from_onnx, importer
from tilewright.support.errors import ImportModelError


def refused(proto, match, **options):
    start = time.monotonic()
    with pytest.raises(ImportModelError, match=match) as found:
        from_onnx(proto, **options)
    assert time.monotonic() - start < 20
    return str(found.value)


def relu(**changes):
    proto = model([node("Relu", "x", "y")], [tensor("x", ["n"])], [tensor("y", ["n"])])
    for k, v in changes.items():
        setattr(proto, k, v)
    return proto


def test_unsupported_operators_are_named_all_at_once():
    inner = graph([node("Missing", "x", "a")], [], [tensor("a", None)])
    proto = model([helper.make_node("StringConcat", ["x", "x"], ["s"], name="join"),
                   helper.make_node("Custom", ["x"], ["t"], name="own", domain="com.example"),
                   helper.make_node("Custom", ["t"], ["u"], name="again", domain="com.example"),
                   node("If", "c", "y", then_branch=inner, else_branch=inner)],
                  [tensor("x", ["n"]), tensor("c", [], BOOL)], [tensor("y", None)], domains=["com.example"], opset=20)
    text = refused(proto, "3 operator")
    for part in ("ai.onnx.StringConcat of version 20: 1 node(s), join", "ai.onnx.Missing of version 20: 2 node(s)",
                 "com.example.Custom of version 1: 2 node(s), own, again"):
        assert part in text


def test_problems_of_nodes_are_named_all_at_once():
    proto = model([helper.make_node("MatMul", ["x", "w"], ["a"], name="first"),
                   helper.make_node("Relu", ["a"], ["b"], name="behind"),
                   helper.make_node("Reshape", ["x", "s"], ["c"], name="second")],
                  [tensor("x", [3, 4]), tensor("s", [2], INT64)], [tensor("b", None), tensor("c", None)],
                  {"w": np.zeros((3, 4), "float32")})
    text = refused(proto, "2 node")
    assert "first (MatMul)" in text and "second (Reshape)" in text and "behind" not in text


@pytest.mark.parametrize("data", [b"", b"\x08", b"not a model", os.urandom(1000), relu().SerializeToString()[:40]])
def test_bytes_that_are_no_model(data):
    refused(data, "the bytes|no graph|no results|shape")


def test_a_file_that_is_not_there(tmp_path):
    refused(tmp_path / "missing.onnx", "No such file")
    refused(tmp_path, "not a regular file")
    refused(3, "is not a model")


def claims(dims, **fields):
    proto = relu()
    proto.graph.initializer.add(name="w", data_type=fields.pop("data_type", FLOAT), dims=dims, **fields)
    return proto


def sparse(dims, places, count=1, name="v{}"):
    proto, kind = relu(), FLOAT if 0.5 in places else INT64
    for k in range(count):
        made = proto.graph.sparse_initializer.add(dims=dims)
        made.values.CopyFrom(helper.make_tensor(name.format(k), FLOAT, [len(places)], [1.0] * len(places)))
        made.indices.CopyFrom(helper.make_tensor("i", kind, [len(places)], places))
    return proto


@pytest.mark.parametrize("proto, match", [
    (claims([2**40], raw_data=b"1234"), "claims"),
    (claims([2**62, 2**62], raw_data=b""), "claims"),
    (claims([2**20], raw_data=b"1234"), "claims 4194304 bytes, and has 4"),
    (claims([1000], float_data=[1.0]), "needs 1000 numbers in float_data, and has 1"),
    (claims([-1], raw_data=b""), "negative"),
    (claims([1] * 1000, raw_data=b"1234"), "1000 dimensions"),
    (claims([0, 2**62], raw_data=b""), "which no array has"),
    (sparse([2**62, 0], []), "which no array has"),
    (sparse([2**28], [5], count=3), "the sparse tensor 'v1' claims 268435456 elements, too many"),
    (sparse([3], [0.5]), "indices of float32, int64 is needed"),
    (sparse([3], [1], count=2, name="v"), "the name 'v' is given to two tensors"),
    (claims([2], data_type=TensorProto.STRING, string_data=[b"a", b"b"]), "STRING"),
    (claims([2], data_type=1000), "number 1000"),
    (claims([1], data_type=TensorProto.INT32, int32_data=[1], data_location=1), "not given by its path"),
])
def test_tensors_that_claim_what_is_not_there(proto, match):
    refused(proto, match)


def external(folder, **entries):
    proto = claims([2], data_location=1)
    for k, v in entries.items():
        proto.graph.initializer[0].external_data.add(key=k, value=v)
    path = folder / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    return path


def test_tensors_of_other_files_stay_in_the_folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(bytes(8))
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "weights").write_bytes(np.array([0, 3, 4], "float32").tobytes())
    for location in ("../secret", str(tmp_path / "secret"), "link", "", "a/../../secret", "..\\secret"):
        refused(external(folder, location=location), "folder")
    refused(external(folder, location="missing"), "No such file")
    refused(external(folder, location="weights"), "needs 8 bytes, and 12")
    refused(external(folder, location="weights", offset="8", length="8"), "which has 12")
    refused(external(folder, location="weights", offset="-8"), "not a number")
    refused(external(folder, location="weights", length="9" * 30), "not a number")
    assert from_onnx(external(folder, location="weights", offset="4")).name == "g"


def test_files_of_a_cache_are_links_into_one_folder(tmp_path):
    names, held = tmp_path / "names", tmp_path / "held"
    names.mkdir(), held.mkdir()
    (held / "b").write_bytes(bytes(8))
    (tmp_path / "secret").write_bytes(bytes(8))
    external(held, location="weights").rename(held / "a")
    for name, place in (("model.onnx", "a"), ("weights", "b")):
        (names / name).symlink_to(f"../held/{place}")
    assert from_onnx(names / "model.onnx").name == "g"
    (names / "weights").unlink()
    (names / "weights").symlink_to(tmp_path / "secret")
    refused(names / "model.onnx", "a link out of the model's folder")


def test_memory_for_constants_that_is_not_there_is_an_error(monkeypatch):
    def full(*_):
        raise MemoryError
    monkeypatch.setattr(importer, "tensor_of", full)
    refused(claims([2], float_data=[1.0, 2.0]), "no memory for the constants of the model")


def test_what_is_no_file_beside_a_model(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    refused(external(tmp_path, location="pipe"), "not a regular file")
    (tmp_path / "folder").mkdir()
    refused(external(tmp_path, location="folder"), "directory|regular")


def test_tensors_that_share_a_file_fill_no_memory(tmp_path):
    (tmp_path / "weights").write_bytes(bytes(1 << 20))
    proto = relu()
    for k in range(50):
        t = proto.graph.initializer.add(name=f"w{k}", data_type=FLOAT, dims=[1 << 18], data_location=1)
        t.external_data.add(key="location", value="weights")
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    refused(path, "of whose 1048576 bytes tensors claim")
    del proto.graph.initializer[4:]
    path.write_bytes(proto.SerializeToString())
    assert from_onnx(path).name == "g"


def test_names_and_orders():
    refused(model([node("Relu", "b", "a"), node("Relu", "a", "b")], [tensor("x", [3])], [tensor("a", None)]),
            "nothing before it makes")
    refused(model([node("Relu", "x", "y")], [tensor("x", [3])], [tensor("z", None)]), "'z', which nothing")
    refused(model([node("Relu", "x", "y"), node("Exp", "x", "y")], [tensor("x", [3])], [tensor("y", None)]),
            "given to two tensors")
    refused(model([node("Relu", "x", "x")], [tensor("x", [3])], [tensor("x", None)]), "given to two tensors")
    refused(model([node("Relu", "x", "y")], [tensor("x", [3]), tensor("x", [3])], [tensor("y", None)]), "one name")


def test_functions_that_call_themselves():
    calls = helper.make_function("own", "F", ["x"], ["y"], [helper.make_node("F", ["x"], ["y"], domain="own")],
                                 [helper.make_opsetid("own", 1)])
    refused(model([helper.make_node("F", ["x"], ["y"], domain="own")], [tensor("x", [3])], [tensor("y", None)],
                  functions=[calls], domains=["own"]), "calls itself")


def test_functions_that_grow_without_bound():
    functions = [helper.make_function("own", "F0", ["x"], ["y"], [node("Relu", "x", "y")],
                                      [helper.make_opsetid("", 18)])]
    for k in range(1, 40):
        functions.append(helper.make_function("own", f"F{k}", ["x"], ["y"], [
            helper.make_node(f"F{k - 1}", ["x"], ["t"], domain="own"),
            helper.make_node(f"F{k - 1}", ["t"], ["y"], domain="own")], [helper.make_opsetid("own", 1)]))
    refused(model([helper.make_node("F39", ["x"], ["y"], domain="own")], [tensor("x", [3])], [tensor("y", None)],
                  functions=functions, domains=["own"]), "nodes, functions written out")


def test_graphs_that_are_nested_deeply():
    other = graph([node("Relu", "x", "b")], [], [tensor("b", None)])
    inner = graph([node("Relu", "x", "a")], [], [tensor("a", None)])
    for _ in range(20):
        inner = graph([node("If", "c", "a", then_branch=inner, else_branch=other)], [], [tensor("a", None)])
    proto = model(inner.node, [tensor("x", [3])], [tensor("a", None)], {"c": np.array(True)})
    assert from_onnx(proto.SerializeToString()).results[0].shape == (3,)
    data = b""
    for _ in range(3000):
        for field in (6, 5, 1):                                # the graph of an attribute of a node of a graph
            data = bytes([field << 3 | 2]) + _varint(len(data)) + data
    refused(b"\x3a" + _varint(len(data)) + data, "cut off")


def test_functions_that_are_nested_deeply():
    functions = [helper.make_function("own", "F0", ["x"], ["y"], [node("Relu", "x", "y")],
                                      [helper.make_opsetid("", 18)])]
    functions += [helper.make_function("own", f"F{k}", ["x"], ["y"], [
        helper.make_node(f"F{k - 1}", ["x"], ["y"], domain="own")], [helper.make_opsetid("own", 1)])
        for k in range(1, 1000)]
    for depth, match in ((40, None), (999, "nested more than")):
        proto = model([helper.make_node(f"F{depth}", ["x"], ["y"], domain="own")], [tensor("x", [3])],
                      [tensor("y", None)], functions=functions, domains=["own"])
        if match:
            refused(proto, match)
        else:
            assert from_onnx(proto).results[0].shape == (3,)


def test_a_million_nodes():
    proto = relu()
    one = proto.graph.node[0].SerializeToString()
    piece = b"\x0a" + bytes([len(one)]) + one
    data = proto.SerializeToString() + b"\x3a" + _varint(len(piece) * 10**6) + piece * 10**6
    refused(data, "1000001 nodes")


def test_a_million_inputs_and_results():
    proto = relu()
    proto.graph.node.add(op_type="Sum", output=["z"], name="all").input.extend(["x"] * 10**6)
    refused(proto, "all has 1000000 inputs")
    proto = relu()
    proto.graph.output.extend([proto.graph.output[0]] * 5000)
    refused(proto, "5001 results")
    proto = relu()
    proto.graph.input.extend([proto.graph.input[0]] * 5000)
    refused(proto, "5001 inputs")


def test_sizes_of_sizes():
    nodes = [node("Shape", "x", "s0"), *(node("Mul", f"s{k} s{k}", f"s{k + 1}") for k in range(40)),
             node("ConstantOfShape", "s40", "y")]
    refused(model(nodes, [tensor("x", ["n"])], [tensor("y", None)]), "an expression of sizes has more than 512 terms")


@pytest.mark.parametrize("step", [
    lambda k: [node("Mul", f"s{k} s{k}", f"t{k}"), node("Add", f"t{k} three", f"s{k + 1}")],
    lambda k: [node("Mul", f"s{k} s{k}", f"t{k}"), node("Div", f"t{k} three", f"u{k}"),
               node("Max", f"u{k} three", f"s{k + 1}")],
    lambda k: [node("Expand", f"x s{k}", f"t{k}"), node("Shape", f"t{k}", f"u{k}"), node("Size", f"t{k}", f"v{k}"),
               node("Mul", f"v{k} u{k}", f"w{k}"), node("Add", f"w{k} three", f"s{k + 1}")]])
def test_expressions_of_sizes_that_share_their_parts(step):
    for count in (12, 18, 40):
        nodes = [node("Shape", "z", "s0"), *(n for k in range(count) for n in step(k)),
                 node("Identity", f"s{count}", "y")]
        refused(model(nodes, [tensor("x", [1]), tensor("z", ["n"])], [tensor("y", None)], {"three": np.array([3])}),
                "an expression of sizes has more than 512 terms")


def test_numbers_beside_sizes_beyond_64_bits():
    nodes = [node("Shape", "x", "s0"), *(node("Mul", f"s{k} s{k}", f"s{k + 1}") for k in range(8))]
    refused(model([*nodes, node("Identity", "s8", "y")], [tensor("x", ["n", 1000])], [tensor("y", None)]),
            "a number among sizes is beyond 64 bits")


@pytest.mark.parametrize("op, kinds", [("Where", "bii"), ("Add", "ii"), ("Less", "ii"), ("And", "bb")])
def test_results_of_constants_that_broadcast_are_not_made(op, kinds):
    count = 4096
    shapes = [(count, 1, 1), (1, count, 1), (1, 1, count)]
    dtypes = {"b": "bool", "i": "int64"}
    constants = {f"c{k}": np.ones(s, dtypes[d]) for k, (s, d) in enumerate(zip(shapes, kinds))}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = from_onnx(model([node(op, " ".join(constants), "w"), node("Cast", "w", "v", to=1),
                            node("ReduceSum", "v", "y", keepdims=0)], [], [tensor("y", None)], constants))
    assert len(made.calls) == 3 and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**15


@pytest.mark.parametrize("op, shape", [("Gather", (1, 4096)), ("GatherND", (1, 4096))])
def test_elements_that_are_taken_many_times_are_not_made(op, shape):
    index = np.zeros((4096, 1), "int64")
    constants = {"c": np.ones(shape, "float32"), "k": index if op == "GatherND" else index[:, 0]}
    made = from_onnx(model([node(op, "c k", "y")], [], [tensor("y", None)], constants))
    assert len(made.calls) == 1


def test_memory_that_is_not_there_is_an_error_of_the_node(monkeypatch):
    def full(*_):
        raise MemoryError("no room")
    monkeypatch.setattr(np, "concatenate", full)
    refused(model([node("Concat", "a a", "y", axis=0)], [], [tensor("y", None)], {"a": np.ones(3)}),
            "Concat_0 .Concat.: there is no memory for its results")


def _varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


@pytest.mark.parametrize("nodes, constants, match", [
    ([node("ConstantOfShape", "s", "y")], {"s": np.array([2**20, 2**20, 2**10])}, "bytes"),
    ([node("Tile", "x s", "y")], {"s": np.array([2**45])}, "bytes|extent|32"),
    ([node("Expand", "x s", "y")], {"s": np.array([2**15, 2**15, 2**15, 3])}, "bytes"),
    ([node("Pad", "x s", "y")], {"s": np.array([2**50, 2**50])}, "bytes|extent|32"),
    ([node("Div", "a b", "s"), node("Reshape", "x s", "y")], {"a": np.array([3]), "b": np.array([0])}, "to be known"),
    ([node("Split", "x", "y", axis=0, num_outputs=10**9)], {}, "parts"),
])
def test_results_that_no_machine_holds(nodes, constants, match):
    refused(model(nodes, [tensor("x", [3])], [tensor("y", None)], constants), match)


def test_a_loop_without_an_end():
    body = graph([node("Identity", "c", "d"), node("Add", "v v", "w")],
                 [tensor("i", [], INT64), tensor("c", [], BOOL), tensor("v", None)],
                 [tensor("d", [], BOOL), tensor("w", None), tensor("w", None)])
    for turns in (2**62, 2**40):
        proto = model([helper.make_node("Loop", ["m", "", "x"], ["y", "z"], body=body)], [tensor("x", [3])],
                      [tensor("y", None)], {"m": np.int64(turns)})
        refused(proto, "bytes")


def test_every_base_of_the_mutants_is_imported():
    assert [outcome(data) for data in bases()] == ["imported"] * len(bases())


def test_some_mutants():
    counts, wrong = run(300, 10**6, processes=1, size=100)
    assert not wrong and counts["imported"] > 20 and counts["refused"] > 100


def test_mutants_are_repeatable():
    data = bases()
    assert [mutant(k, data) for k in range(5)] == [mutant(k, data) for k in range(5)]
