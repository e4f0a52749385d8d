"""Models in files: their tensors stay there until they are used, and are the same as those of the whole message."""
import os
import pickle
import tracemalloc

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from onnx import ModelProto, TensorProto, helper, numpy_helper, save_model

import tilewright as tw
from tests.frontend.onnx_models import FLOAT, model, node, tensor
from tests.frontend.onnx_mutants import bases, mutant
from tilewright.frontend.onnx import files, from_onnx, stretches
from tilewright.frontend.onnx.backend import backend
from tilewright.frontend.onnx.optional import onnx
from tilewright.graph.ir.deferred import Deferred
from tilewright.support.errors import ImportModelError

ROWS = np.random.default_rng(0).standard_normal((300, 200)).astype("float32")
X = np.random.default_rng(1).standard_normal((3, 300)).astype("float32")


def product(w=ROWS):
    return model([node("MatMul", "x w", "y")], [tensor("x", ["n", w.shape[0]])], [tensor("y", ["n", w.shape[1]])],
                 {"w": w})


def stored(folder, proto, **options):
    path = folder / "model.onnx"
    save_model(proto, str(path), **options)
    return path


def results(path):
    return np.asarray(tw.compile(str(path))(X))


def close(got, wanted):
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [
    TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.INT8,
    TensorProto.UINT16, TensorProto.INT64, TensorProto.BOOL, TensorProto.INT4, TensorProto.UINT2,
    TensorProto.FLOAT8E4M3FN])
def test_elements_of_every_type_are_those_of_the_message(tmp_path, kind):
    bits = {TensorProto.INT4: 4, TensorProto.UINT2: 2}.get(kind, 8 * helper.tensor_dtype_to_np_dtype(kind).itemsize)
    raw = np.random.default_rng(kind).integers(0, 2 if kind == TensorProto.BOOL else 60, bits << 15, "uint8")
    proto = product()
    proto.graph.initializer.add(name="v", data_type=kind, dims=[1 << 15, 8], raw_data=raw.tobytes())
    proto.graph.node.append(node("Identity", "v", "z"))
    proto.graph.output.append(tensor("z", None, kind))
    found, whole = (from_onnx(m).results[1] for m in (stored(tmp_path, proto), proto))
    assert isinstance(found.held, Deferred) and isinstance(whole.held, np.ndarray)
    assert found.type == whole.type and found.held.dtype == whole.held.dtype == found.data.dtype
    np.testing.assert_array_equal(found.data.view("uint8"), whole.data.view("uint8"))


@pytest.mark.parametrize("external", [False, True])
def test_importing_takes_no_memory_for_tensors(tmp_path, external):
    many = {f"w{k}": np.full((1000, 1000), k, "float32") for k in range(8)}
    nodes = [node("Add", f"{'x' if k == 0 else f's{k}'} w{k}", f"s{k + 1}") for k in range(8)]
    path = stored(tmp_path, model(nodes, [tensor("x", [1000, 1000])], [tensor("s8", None)], many),
                  save_as_external_data=external)
    onnx()
    tracemalloc.start()
    try:
        function = from_onnx(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(v.type.nbytes() for v in function.constants) == 32_000_000 and peak < 4_000_000
    np.testing.assert_array_equal(np.asarray(tw.compile(function)(np.zeros((1000, 1000), "float32"))), 28.0)


@pytest.mark.parametrize("external", [False, True])
def test_files_that_go_or_change_behind_the_import(tmp_path, external):
    def again(folder):
        folder.mkdir()
        path = stored(folder, product(), save_as_external_data=external, location="weights")
        return from_onnx(path), path.parent / ("weights" if external else "model.onnx")
    function, file = again(tmp_path / "a")
    file.unlink()
    close(np.asarray(tw.compile(function)(X)), X @ ROWS)
    function, file = again(tmp_path / "b")
    os.replace(stored(tmp_path, product(ROWS * 2)), file)
    close(np.asarray(tw.compile(function)(X)), X @ ROWS)
    for k, change in enumerate((lambda f: f.write_bytes(b"short"), lambda f: f.write_bytes(bytes(f.stat().st_size)),
                                lambda f: os.truncate(f, f.stat().st_size - 1))):
        function, file = again(tmp_path / f"c{k}")
        before = file.stat()
        change(file)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
        with pytest.raises(ImportModelError, match="was changed after it was opened"):
            tw.compile(function)


def test_functions_are_pickled_with_their_elements(tmp_path):
    path = stored(tmp_path, product())
    text = pickle.dumps(from_onnx(path).calls[0].inputs[1])
    path.write_bytes(b"")
    np.testing.assert_array_equal(pickle.loads(text).data, ROWS)


def test_more_files_than_stay_open(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_OPEN", 3)
    many = {f"w{k}": np.full((200, 200), k, "float32") for k in range(6)}
    nodes = [node("Add", f"{'x' if k == 0 else f's{k}'} w{k}", f"s{k + 1}") for k in range(6)]
    path = stored(tmp_path, model(nodes, [tensor("x", [200, 200])], [tensor("s6", None)], many),
                  save_as_external_data=True, all_tensors_to_one_file=False)
    function = from_onnx(path)
    assert sum(isinstance(v.held, Deferred) for v in function.constants) == 2
    np.testing.assert_array_equal(np.asarray(tw.compile(function)(np.zeros((200, 200), "float32"))), 15.0)


def test_the_backend_of_onnx_takes_paths(tmp_path):
    for external in (False, True):
        path = stored(tmp_path, product(), save_as_external_data=external, location=f"weights{external}")
        close(backend().prepare(str(path)).run([X])[0], X @ ROWS)


def test_normalisation_behind_a_convolution_in_a_file(tmp_path):
    rng = np.random.default_rng(3)
    w = rng.standard_normal((64, 32, 3, 3)).astype("float32")
    moments = {k: rng.uniform(0.5, 1.5, 64).astype("float32") for k in ("scale", "shift", "mean", "var")}
    proto = model([node("Conv", "x w", "c", pads=[1, 1, 1, 1]),
                   node("BatchNormalization", "c scale shift mean var", "y")],
                  [tensor("x", [1, 32, 9, 7])], [tensor("y", None)], {"w": w, **moments})
    x = rng.standard_normal((1, 32, 9, 7)).astype("float32")
    from onnx.reference import ReferenceEvaluator
    wanted = ReferenceEvaluator(proto).run(None, {"x": x})[0]
    np.testing.assert_allclose(np.asarray(tw.compile(str(stored(tmp_path, proto)))(x)), wanted, rtol=1e-3, atol=1e-3)


def restored(data, whole):
    """The message of a file whose tensors were left out, with these in it again."""
    proto = ModelProto()
    proto.ParseFromString(data)
    for t in proto.graph.initializer:
        places = {e.key: e.value for e in t.external_data}
        if places.get("location") == stretches.OWN:
            begin, length = int(places["offset"]), int(places["length"])
            t.ClearField("external_data")
            t.ClearField("data_location")
            t.raw_data = whole[begin:begin + length]
    return proto.SerializeToString(deterministic=True)


@pytest.mark.parametrize("seed", range(5))
def test_damaged_messages_mean_the_same_without_their_tensors(tmp_path, monkeypatch, seed):
    """Of 400 changed files; those that are no message are told by the whole file."""
    monkeypatch.setattr(stretches, "LARGE", 12)
    models = bases()
    path, replaced = tmp_path / "model", 0
    for k in range(400):
        whole = mutant(400 * seed + k, models)
        path.write_bytes(whole)
        data = stretches.message_without_tensors(stretches.OpenFile(path, "model"))
        if data is None:
            continue
        replaced += b"location" in data
        proto = ModelProto()
        try:
            proto.ParseFromString(whole)
        except DecodeError:
            with pytest.raises(DecodeError):
                restored(data, whole)
            continue
        assert restored(data, whole) == proto.SerializeToString(deterministic=True)
    assert replaced > 50



def test_messages_in_parts_and_fields_that_are_there_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(stretches, "LARGE", 12)
    path = tmp_path / "model"
    first, second = product(np.ones((4, 5), "float32")), ModelProto()
    second.graph.initializer.append(numpy_helper.from_array(np.zeros((3, 7), "float32"), "other"))
    twice = TensorProto(name="twice", data_type=FLOAT, dims=[4], raw_data=bytes(16)).SerializeToString()
    twice += TensorProto(raw_data=b"1234" * 4).SerializeToString()
    third = ModelProto()
    third.graph.initializer.add().ParseFromString(twice)
    inner = bytes([5 << 3 | 2, len(twice)]) + twice
    parts = (first.SerializeToString(), second.SerializeToString(), bytes([7 << 3 | 2, len(inner)]) + inner)
    whole = b"".join(parts)
    path.write_bytes(whole)
    data = stretches.message_without_tensors(stretches.OpenFile(path, "model"))
    proto = ModelProto()
    proto.ParseFromString(whole)
    assert len(proto.graph.initializer) == 3 and data.count(b"location") == 2
    assert restored(data, whole) == proto.SerializeToString(deterministic=True)


def test_a_message_of_many_fields_is_read_as_a_whole(tmp_path, monkeypatch):
    path = stored(tmp_path, product())
    assert stretches.message_without_tensors(stretches.OpenFile(path, "model")) is not None
    monkeypatch.setattr(stretches, "MOST_FIELDS", 3)
    assert stretches.message_without_tensors(stretches.OpenFile(path, "model")) is None
    close(results(path), X @ ROWS)
