"""Tensors of floats of 8 bits: stored, shared, checked at calls; kernels that cast them."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.runtime.dtypes import dl_dtype, dtype_name
from tilewright.support.errors import ArgumentError, CodegenError, TilewrightError

TYPES = ["float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", TYPES)
def test_tensors(dtype):
    kind = getattr(ml_dtypes, dtype)
    x = np.array([[1, 2.5, -3], [0.1, 448, -0.0]], kind)
    t = tw.nd.array(x)
    assert t.dtype == dtype and t.numpy().dtype == kind and repr(t)
    np.testing.assert_array_equal(t.numpy().view("uint8"), x.view("uint8"))
    np.testing.assert_array_equal(tw.nd.array(x.astype("float32"), dtype=dtype).numpy().view("uint8"), x.view("uint8"))
    t[0, 1] = 7
    assert float(t[0, 1]) == 7.0
    read_only = x.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(tw.nd.array(read_only).numpy().view("uint8"), x.view("uint8"))


@pytest.mark.parametrize("dtype", TYPES)
def test_dlpack_numbers(dtype):
    """kDLFloat8_e4m3fn is 10, kDLFloat8_e5m2 is 12."""
    assert dl_dtype(dtype) == ({"float8_e4m3fn": 10, "float8_e5m2": 12}[dtype], 8, 1)
    assert dtype_name(*dl_dtype(dtype)) == dtype and dtype_name(*dl_dtype(f"{dtype}x4")) == f"{dtype}x4"
    with pytest.raises(ArgumentError):
        dl_dtype("float8")


@pytest.mark.parametrize("dtype", TYPES)
def test_weights_that_are_widened(dtype):
    """f32 = f32 @ fp8, the sum in float32; and a result stored as fp8."""
    kind = getattr(ml_dtypes, dtype)
    a, w = te.placeholder((5, 24), name="A"), te.placeholder((24, 33), dtype, name="W")
    r = te.reduce_axis((0, 24), name="k")
    c = te.compute((5, 33), lambda i, j: te.sum(a[i, r] * w[r, j].astype("float32"), axis=r), name="C")
    d = te.compute((5, 33), lambda i, j: c[i, j].astype(dtype), name="D")
    random = np.random.default_rng(0)
    x, y = random.integers(-4, 5, (5, 24)).astype("float32"), random.integers(-4, 5, (24, 33)).astype(kind)
    out = np.zeros((5, 33), kind)
    tw.compile(te.create_prim_func([a, w, d]))(x, y, out)
    want = (x @ y.astype("float32")).astype(kind)
    np.testing.assert_array_equal(out.astype("float32"), want.astype("float32"))


@pytest.mark.parametrize("dtype", TYPES)
def test_wrong_arguments_are_named(dtype):
    a = te.placeholder((4,), dtype, name="A")
    b = te.compute((4,), lambda i: a[i].astype("float32"), name="B")
    f = tw.compile(te.create_prim_func([a, b]))
    with pytest.raises(TilewrightError, match=f"argument A.dtype is int8, expected {dtype}"):
        f(np.zeros(4, "int8"), np.zeros(4, "float32"))
    v = te.var("v", dtype)
    c = te.compute((4,), lambda i: a[i] * v, name="C")
    with pytest.raises(CodegenError, match=f"scalar parameter v is a {dtype}"):
        tw.compile(te.create_prim_func([a, v, c]))


def test_the_largest_value_has_no_infinity_above_it():
    assert float(te.max_value("float8_e4m3fn")) == 448.0 and float(te.min_value("float8_e4m3fn")) == -448.0
    assert float(te.max_value("float8_e5m2")) == np.inf
