"""Modules and tensors in pickles: they arrive whole, in this process and in others; what is damaged is refused."""
import copy
import io
import multiprocessing
import pickle

import ml_dtypes
import numpy as np
import pytest
import runtime_kernels as kernels

from tilewright import runtime
from tilewright.runtime import array, load_module
from tilewright.runtime.signature_table import encode
from tilewright.support.errors import ArgumentError


def tables(module):
    return {name: encode(s) for name, s in module.signatures.items()}


def doubled(module, values):
    """What `scale`, in a process of its own, makes of values."""
    out = np.zeros_like(values)
    module(C=out, A=values)
    return out


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_module_comes_back(protocol):
    module = kernels.scale()
    module.aliases["main"] = "scale"
    again = pickle.loads(pickle.dumps(module, protocol))
    assert (tables(again), again.entry_name, again.triple) == (tables(module), "scale", module.triple)
    assert again.objects == module.objects and again.aliases == module.aliases
    c = np.zeros(3, "float32")
    again["main"](np.ones(3, "float32"), c)
    np.testing.assert_array_equal(c, 2)


def test_the_modules_that_a_module_imports_come_back_too():
    module = kernels.scale()
    module.import_module(kernels.cover())
    again = pickle.loads(pickle.dumps(module))
    hits = np.zeros((3, 2), "int32")
    again["cover"](hits)
    assert (hits == 1).all() and [m.names for m in again.imported_modules] == [("cover",)]


def test_a_module_and_a_tensor_in_a_new_process():
    values = np.arange(5, dtype="float32")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        np.testing.assert_array_equal(pool.apply(doubled, (kernels.scale(), values)), 2 * values)
        same = pool.apply(copy.copy, (array(values),))
    np.testing.assert_array_equal(same.numpy(), values)


def test_copies_share_code_which_does_not_change():
    module = kernels.scale()
    assert copy.deepcopy({"f": module})["f"] is module and copy.copy(module) is module


def test_every_damaged_byte_is_noticed():
    """A changed byte makes a pickle that does not load, or a module that is the same; never one of other code."""
    module = kernels.scale()
    data = pickle.dumps(module)
    state = (module.objects, tables(module), module.entry_name, module.triple, module.aliases)
    refused = 0
    for at in np.random.RandomState(0).choice(len(data), 300, replace=False):
        wrong = bytearray(data)
        wrong[at] ^= 0x10
        try:
            found = _Own(io.BytesIO(bytes(wrong))).load()
        except Exception:
            refused += 1
        else:
            assert state == (found.objects, tables(found), found.entry_name, found.triple, found.aliases)
    assert refused > 290


class _Own(pickle.Unpickler):
    """Loads nothing but ours: a damaged pickle may name anything."""

    def find_class(self, module, name):
        if module != "tilewright.runtime.module":
            raise pickle.UnpicklingError(f"{module}.{name}")
        return super().find_class(module, name)


def test_a_module_of_a_library_says_why_not(tmp_path):
    pytest.importorskip("ziglang")
    path = tmp_path / "f.so"
    kernels.scale().export_library(path)
    with pytest.raises(ArgumentError, match="is in the shared library"):
        pickle.dumps(load_module(path))
    kernels.scale().save(tmp_path / "f.o")
    assert pickle.loads(pickle.dumps(load_module(tmp_path / "f.o"))).names == ("scale",)


@pytest.mark.parametrize("dtype", ["float32", "bool", "int64", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_a_tensor_comes_back(dtype, shape):
    t = array(np.ones(shape), dtype=dtype)
    for again in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), copy.copy(t)):
        assert (again.shape, again.dtype, again.device) == (t.shape, dtype, t.device)
        np.testing.assert_array_equal(again.numpy(), t.numpy())
        assert again.data_ptr != t.data_ptr and again.data_ptr % 64 == 0


def test_views_and_16_bit_floats_keep_their_values():
    values = np.arange(12, dtype="float32").reshape(3, 4)
    t = runtime.from_dlpack(values.T)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(t)).numpy(), values.T)
    halves = np.arange(4).astype(ml_dtypes.bfloat16)
    assert pickle.loads(pickle.dumps(array(halves))).numpy().tobytes() == halves.tobytes()
