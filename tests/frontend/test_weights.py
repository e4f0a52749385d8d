"""Files of weights: what is read is what was written; what is damaged is refused."""
import json
import os
import struct
import time

import ml_dtypes
import numpy as np
import pytest

from tests.frontend.weights_files import plain, q4_0, q8_0, write_gguf, write_safetensors
from tilewright.frontend.weights import Blocks, quantized, read_gguf, read_safetensors, safetensors
from tilewright.support.errors import ArgumentError, ImportModelError, TilewrightError

RNG = np.random.default_rng(0)


def array(*shape): return RNG.standard_normal(shape).astype("float32")


TENSORS = {"a": array(3, 5), "b.c": array(7).astype("float16"), "d": array(2, 1, 3).astype(ml_dtypes.bfloat16),
           "e": np.arange(4), "none": array(0, 3), "one": np.array(True), "u": np.arange(5, dtype="uint8")}


def test_safetensors_are_read(tmp_path):
    write_safetensors(tmp_path / "model.safetensors", TENSORS, {"format": "pt"})
    for path in (tmp_path, tmp_path / "model.safetensors"):
        read = read_safetensors(path)
        assert list(read) == list(TENSORS)
        for name, a in TENSORS.items():
            assert read[name].dtype == a.dtype and not read[name].flags.writeable
            np.testing.assert_array_equal(read[name], a)


def test_an_index_names_several_files(tmp_path):
    write_safetensors(tmp_path / "1.safetensors", {"a": TENSORS["a"], "left": array(2)})
    write_safetensors(tmp_path / "2.safetensors", {"e": TENSORS["e"]})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "1.safetensors", "e": "2.safetensors"}}))
    read = read_safetensors(tmp_path)
    assert set(read) == {"a", "e"}
    np.testing.assert_array_equal(read["e"], TENSORS["e"])
    (tmp_path / "3").write_bytes((tmp_path / "1.safetensors").read_bytes())
    for bad in ({"weight_map": {"a": "../1.safetensors"}}, {"weight_map": {"z": "1.safetensors"}}, {"weight_map": 3},
                [], {"weight_map": {"a": 3}}, {"weight_map": {"a": ["1.safetensors"]}}, {"weight_map": {"a": ""}},
                {"weight_map": {"a": ".."}}):
        index.write_text(json.dumps(bad))
        with pytest.raises(ImportModelError):
            read_safetensors(tmp_path)
    for text in ('{"weight_map": {"a": "1.safetensors", "a": "3"}}', "[" * 200000, ""):
        index.write_text(text)
        with pytest.raises(ImportModelError):
            read_safetensors(tmp_path)


def header(rows, data=b"\0" * 8):
    h = json.dumps(rows).encode() if not isinstance(rows, bytes) else rows
    return struct.pack("<Q", len(h)) + h + data


DAMAGED = {
    "empty": b"", "short": b"\1\2", "a huge header": struct.pack("<Q", 2**62) + b"{}",
    "a header past the end": struct.pack("<Q", 50) + b"{}", "no JSON": header(b"\xff\xfe{"), "a list": header([1]),
    "a type": header({"a": {"dtype": "F31", "shape": [1], "data_offsets": [0, 4]}}),
    "a tensor of 2**40": header({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}),
    "another size": header({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}),
    "negative": header({"a": {"dtype": "F32", "shape": [-1, -2], "data_offsets": [0, 8]}}),
    "backwards": header({"a": {"dtype": "F32", "shape": [0], "data_offsets": [8, 4]}}),
    "a text for a shape": header({"a": {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]}}),
    "nested": header(b"[" * 200000), "no offsets": header({"a": {"dtype": "F32", "shape": [1]}}),
    "a name that is there twice": header(
        b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}, '
        b'"a": {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}}'),
    "a fraction": header({"a": {"dtype": "F32", "shape": [2.9], "data_offsets": [0, 8]}}),
    "infinity": header(b'{"a": {"dtype": "F32", "shape": [Infinity], "data_offsets": [0, 8]}}'),
    "digits for a shape": header({"a": {"dtype": "U8", "shape": "24", "data_offsets": [0, 8]}}),
    "a truth": header({"a": {"dtype": "F64", "shape": [True], "data_offsets": [0, 8]}}),
    "nothing of 2**70": header({"a": {"dtype": "F32", "shape": [2**70, 0], "data_offsets": [0, 0]}}, b""),
    "one over the other": header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                  "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}),
    "a hole": header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}),
    "many extents": header(b'{"a": {"dtype": "F32", "shape": [' + b",".join([b"9" * 4000] * 5000)
                           + b'], "data_offsets": [0, 0]}}', b""),
    "long texts": header({"a": {"dtype": "Q" * 10**6, "shape": [1], "data_offsets": [0, 8]}}),
    "a long name twice": header(b'{"%b": 1, "%b": 1}' % (b"a" * 10**6, b"a" * 10**6)),
    "more than the tensors": header({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_safetensors_are_refused(tmp_path, what):
    (tmp_path / "x.safetensors").write_bytes(DAMAGED[what])
    start = time.monotonic()
    with pytest.raises(ImportModelError) as found:
        read_safetensors(tmp_path / "x.safetensors")
    assert time.monotonic() - start < 10 and len(str(found.value)) < 1000


def test_a_header_beyond_the_memory_is_refused(tmp_path, monkeypatch):
    def full(_):
        raise MemoryError
    monkeypatch.setattr(safetensors, "parsed", full)
    write_safetensors(tmp_path / "x.safetensors", TENSORS)
    with pytest.raises(ImportModelError, match="x.safetensors is damaged: MemoryError"):
        read_safetensors(tmp_path / "x.safetensors")


def test_a_type_that_is_not_read_is_named(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(header({"a": {"dtype": "F8_E8M0", "shape": [8], "data_offsets": [0, 8]}}))
    with pytest.raises(ImportModelError, match="tensors of F8_E8M0, which are not read"):
        read_safetensors(tmp_path / "x.safetensors")


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(ImportModelError, match="no model.safetensors"):
        read_safetensors(tmp_path)
    for read in (read_safetensors, read_gguf):
        with pytest.raises(ImportModelError, match="cannot be read"):
            read(tmp_path / "none")
        os.mkfifo(tmp_path / f"{read.__name__}.json")
        with pytest.raises(ImportModelError, match="is not a regular file"):
            read(tmp_path / f"{read.__name__}.json")
        for no_path in (None, 3, "", "a\0b"):
            with pytest.raises(ArgumentError, match=f"{read.__name__}: .* is not a path"):
                read(no_path)


METADATA = {"general.architecture": "llama", "general.alignment": 64, "n": 7, "x": 0.5, "yes": True,
            "list": [1, 2, 3], "texts": ["a", "é", ""]}


def test_gguf_is_read(tmp_path):
    w = array(3, 64)
    made = {"f32": ((2, 3, 4), plain(array(2, 3, 4))), "f16": ((5,), plain(array(5), "float16")),
            "bf16": ((2, 2), plain(array(2, 2), "bfloat16")), "q8": (w.shape, q8_0(w)), "q4": (w.shape, q4_0(w))}
    for version in (2, 3):
        write_gguf(tmp_path / "m.gguf", METADATA, made, 64, version)
        read = read_gguf(tmp_path / "m.gguf")
        assert read.metadata == METADATA and list(read.tensors) == list(made)
        for name, (shape, (_, _, wanted)) in made.items():
            got = read.tensors[name]
            assert tuple(got.shape) == shape
            np.testing.assert_array_equal(got.dense() if isinstance(got, Blocks) else got.astype("float32"), wanted)
    assert read.tensors["q8"].bits == 8 and read.tensors["q4"].bits == 4


def test_every_truncated_gguf_is_refused(tmp_path):
    path, w = tmp_path / "m.gguf", array(1, 32)
    write_gguf(path, METADATA, {"q4": (w.shape, q4_0(w)), "f": ((3,), plain(array(3)))})
    data = path.read_bytes()
    for n in range(len(data) - 20):                         # the last bytes are padding
        path.write_bytes(data[:n])
        with pytest.raises(ImportModelError):
            read_gguf(path)


def test_mutated_gguf_is_read_or_refused(tmp_path):
    path, w = tmp_path / "m.gguf", array(2, 32)
    write_gguf(path, METADATA, {"q4": (w.shape, q4_0(w)), "q8": (w.shape, q8_0(w)), "f": ((3,), plain(array(3)))})
    data, rng, refused = path.read_bytes(), np.random.default_rng(1), 0
    for _ in range(500):
        changed = bytearray(data)
        for k in rng.integers(0, 400, rng.integers(1, 4)):
            changed[k] = rng.integers(256)
        path.write_bytes(bytes(changed))
        try:
            read_gguf(path)
        except ImportModelError:
            refused += 1
    assert 100 < refused < 500


def test_gguf_of_no_elements(tmp_path):
    made = {f"{kind}.{shape}": (shape, (kind, b"")) for kind in (2, 8) for shape in ((0, 64), (3, 0), (0, 0))}
    write_gguf(tmp_path / "m.gguf", METADATA, made, 64)
    for name, t in read_gguf(tmp_path / "m.gguf").tensors.items():
        assert t.dense().shape == t.shape == made[name][0]


def changed(data, at, new):
    return data[:at] + new + data[at + len(new):]


def gguf(value, name=b"n"):
    """A file of one value of the metadata."""
    return b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, len(name)) + name + value


def test_gguf_that_says_what_no_file_holds(tmp_path):
    path, one = tmp_path / "m.gguf", ((2,), plain(array(2)))
    write_gguf(path, {"n": 7, "m": 8}, {"a": one, "b": one})
    data = path.read_bytes()
    name = data.index(struct.pack("<Q", 1) + b"b") + 8
    wrong = {"the tensor a is there twice": changed(data, name, b"a"),
             "n is there twice": changed(data, data.index(b"\1\0\0\0\0\0\0\0m") + 8, b"n"),
             "highest byte first": changed(data, 4, struct.pack(">I", 3)), "version 4": changed(data, 4, b"\4"),
             "Error": changed(data, name + 5, struct.pack("<Q", 2**63))}
    write_gguf(path, {}, {"a": ((0, 2**63), (0, b""))})
    wrong["OverflowError|ValueError"] = path.read_bytes()
    write_gguf(path, {}, {name: ((64, 32), (8, bytes(34 * 64))) for name in "ab"})
    data = path.read_bytes()
    place = data.index(struct.pack("<Q", 34 * 64), 24)
    wrong["the tensors a and b share bytes"] = changed(data, place, struct.pack("<Q", 34 * 64 - 32))
    wrong["a value of the type 77"] = gguf(struct.pack("<I", 77))
    wrong["a name of 65536 bytes"] = gguf(b"", b"n" * 65536)
    wrong["more than 4194304 values"] = gguf(struct.pack("<IIQ", 9, 1, 2**22) + b"\x90" * 2**22)
    wrong["it has 65537 tensors"] = changed(gguf(b""), 8, struct.pack("<Q", 65537))
    wrong["RecursionError"] = gguf(struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 10**5)
    for message, bad in wrong.items():
        path.write_bytes(bad)
        with pytest.raises(ImportModelError, match=message):
            read_gguf(path)


def test_types_that_are_not_read_are_named(tmp_path):
    write_gguf(tmp_path / "m.gguf", METADATA, {"blk.0.x": ((1, 256), (12, b"\0" * 144)), "y": ((1, 256), (99, b""))})
    with pytest.raises(ImportModelError, match="2 of 2 tensors.*blk.0.x: Q4_K, y: type 99"):
        read_gguf(tmp_path / "m.gguf")


@pytest.mark.parametrize("bits, worst", [(8, 0.5 / 127), (4, 0.5 / 7)])
def test_blocks_are_near_to_the_matrix(bits, worst):
    w = array(5, 96)
    w[2, 32:64] = 0
    b = quantized(w, bits)
    most = np.abs(w.reshape(5, 3, 32)).max(2).repeat(32, 1)
    assert b.shape == w.shape and np.all(np.abs(b.dense() - w) <= most * worst * 1.001)
    assert b.nbytes == 5 * 96 * bits // 8 + 5 * 3 * 4


@pytest.mark.parametrize("bits", [4, 8])
def test_blocks_of_no_elements(bits):
    for shape in ((0, 64), (3, 0)):
        made = quantized(array(*shape), bits)
        assert made.dense().shape == made.shape == shape


def test_what_has_no_blocks_is_refused():
    for w, bits in ((array(3, 33), 8), (array(4), 4), (array(3, 32), 5)):
        with pytest.raises(ArgumentError):
            quantized(w, bits)
    assert issubclass(ImportModelError, TilewrightError)
