"""Tensors, devices, packed functions and dtypes of the runtime."""

import ml_dtypes
import numpy as np
import pytest

from tilewright.runtime import (
    Tensor,
    array,
    cpu,
    cuda,
    device,
    empty,
    get_global_func,
    nd,
    register_func,
    remove_global_func,
    view,
)
from tilewright.runtime.dtypes import dtype_name, dtype_string
from tilewright.support.errors import ArgumentError, TargetError


def test_tensors():
    t = empty((2, 3), "float32")
    assert isinstance(t, nd.NDArray) and t.shape == (2, 3) and t.dtype == "float32" and t.device == cpu(0)
    assert t.data_ptr % 64 == 0 and t.ndim == 2 and t.size == 6 and len(t) == 2 and hash(t.shape)
    t.copyfrom(np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(t.asnumpy(), np.arange(6, dtype="float32").reshape(2, 3))
    copy = t.numpy()
    copy[:] = 0
    assert t[1, 2] == 5 and not t.numpy()[0, 0]
    np.asarray(t)[0, 0] = 7
    t[0, 1] = 8
    assert t.numpy()[0].tolist() == [7, 8, 2]
    other = t.copyto(empty((2, 3)))
    np.testing.assert_array_equal(other.numpy(), t.numpy())
    assert t.copyto(cpu(0)) is not t
    assert "shape=(2, 3), dtype=float32, cpu(0)" in repr(t)
    with pytest.raises(ArgumentError, match=r"shape \(3, 2\), this tensor \(2, 3\)"):
        t.copyfrom(np.zeros((3, 2)))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "bool", "int8", "int16",
                                   "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_every_dtype_goes_both_ways(dtype):
    values = np.array([[0, 1, 1], [1, 0, 1]]).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    t = array(values)
    assert t.dtype == dtype == dtype_string(values.dtype)
    assert t.numpy().dtype == values.dtype
    np.testing.assert_array_equal(t.numpy(), values)
    if dtype != "bfloat16":
        assert np.from_dlpack(t).dtype == values.dtype


def test_arrays_are_copies_of_anything():
    a = np.arange(12, dtype="float64").reshape(3, 4)
    t = array(a)
    a[0, 0] = 99
    assert t.numpy()[0, 0] == 0 and t.dtype == "float64"
    assert array([1, 2]).dtype == "int64" and array([1.0]).dtype == "float64" and array(3.5).item() == 3.5
    assert array(a.T[::2]).shape == (2, 3) and array(np.zeros((0, 3))).shape == (0, 3)
    assert array([1, 2], dtype="float32").dtype == "float32" and float(array(2)) == 2.0 and int(array([5])) == 5
    a.flags.writeable = False
    np.testing.assert_array_equal(array(a).numpy(), a)
    for bad in ("text", [object()], [[1], [2, 3]], np.array(["a"]), np.zeros(2, "complex64"), None):
        with pytest.raises(ArgumentError):
            array(bad)


@pytest.mark.parametrize("wrong", ["f4", "float32x0", "float32x04", "float8_e5m2x0", "float32x65536", "int٣٢", object])
def test_a_wrong_dtype_is_named(wrong):
    for made in (lambda: array([1.0], dtype=wrong), lambda: empty((1,), wrong)):
        with pytest.raises(ArgumentError, match="is not a dtype"):
            made()


def test_none_is_the_dtype_of_the_source_only():
    assert array(np.zeros(1, "int8"), dtype=None).dtype == "int8"
    with pytest.raises(ArgumentError, match="None is not a dtype"):
        empty((1,), None)


def test_views_share_compact_memory_only():
    a = np.arange(6, dtype="float32")
    assert view(a).data_ptr == a.ctypes.data
    a.flags.writeable = False
    assert view(a).data_ptr == a.ctypes.data
    np.testing.assert_array_equal(view(a[::2]).numpy(), [0, 2, 4])
    with pytest.raises(ArgumentError, match="x cannot become a tensor"):
        view(np.array(["a"]), "x")


def test_memory_outlives_the_tensor_that_made_it():
    shared = np.from_dlpack(array(np.arange(100_000)))
    assert shared[-1] == 99_999 and shared.sum() == 99_999 * 50_000


@pytest.mark.parametrize("shape", [(-1,), (2, -3), ("a",), (1.5,), None])
def test_bad_shapes(shape):
    with pytest.raises(ArgumentError, match="shape"):
        empty(shape)


def test_devices():
    assert device("llvm") == device("cpu", 0) == cpu() == device(1) and str(cpu(0)) == "cpu(0)"
    assert device("cuda:1") == cuda(1) and not cuda().exist and cpu().exist and hash(cpu(0)) == hash(device("llvm"))
    with pytest.raises(TargetError, match="'toaster' is not a device"):
        device("toaster")
    with pytest.raises(TargetError, match=r"cuda\(0\): this build of Tilewright runs on cpu only"):
        empty((1,), device=cuda(0))


def test_packed_functions():
    @register_func("tests.double")
    def double(x, factor):
        assert isinstance(x, Tensor)
        return array(x.numpy() * factor)

    try:
        result = get_global_func("tests.double")(np.arange(3.0), 2)
        assert isinstance(result, Tensor) and result.numpy().tolist() == [0, 2, 4]
        with pytest.raises(ArgumentError, match="'tests.double' already"):
            register_func("tests.double", double)
        register_func("tests.double", lambda x: 1, override=True)
        assert get_global_func("tests.double")(0) == 1
    finally:
        remove_global_func("tests.double")
    assert get_global_func("tests.double", allow_missing=True) is None
    with pytest.raises(ArgumentError, match="there is no global function 'tests.double'"):
        get_global_func("tests.double")


def test_errors_of_a_packed_function_keep_their_class():
    @register_func("tests.fail")
    def fail(kind):
        raise {"value": ValueError, "argument": ArgumentError, "target": TargetError}[kind](f"because {kind}")

    try:
        for kind, error in (("value", ValueError), ("argument", ArgumentError), ("target", TargetError)):
            with pytest.raises(error, match=f"because {kind}"):
                get_global_func("tests.fail")(kind)
    finally:
        remove_global_func("tests.fail")


def test_dtype_names():
    assert dtype_name(2, 32, 4) == "float32x4"
    assert dtype_string(np.float32) == "float32" and dtype_string(bool) == "bool"
    with pytest.raises(ArgumentError, match="is not a dtype"):
        dtype_string("float12")
    with pytest.raises(ArgumentError, match="is not a dtype"):
        dtype_string(np.dtype({"names": ["a"], "formats": ["f4"], "titles": [[1]]}))
