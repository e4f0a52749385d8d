"""Vectors of several registers of which a condition masks off whole ones: nothing of these is read."""
from __future__ import annotations

import mmap

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.script import from_source

TARGETS = ["llvm", "llvm -mcpu=haswell", "llvm -mcpu=haswell -opt-level=0", "llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v4",
           "llvm -mcpu=sandybridge", "c -mcpu=haswell"]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("width", [7, 8, 9, 15, 16, 22, 23, 24, 25, 31, 39, 70])
def test_padded_rows(width, target):
    a = te.placeholder((3, 36, width), name="a")
    p = topi.pad(a, ((0, 0), (1, 1), (1, 1)))
    x, out = np.random.RandomState(0).rand(3, 36, width).astype("float32"), tw.nd.empty((3, 38, width + 2), "float32")
    tw.compile(te.create_prim_func([a, p]), target=target)(tw.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), np.pad(x, ((0, 0), (1, 1), (1, 1))))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("lanes", [5, 16, 31, 32, 64])
def test_the_end_of_an_array(lanes, dtype, target):
    """What lies behind the end of an array is not taken for it."""
    for kept in {1, lanes // 4, lanes // 2, lanes - 1}:
        func = from_source(f"""
from tilewright.script import tir as T
@T.prim_func
def main(x: T.Buffer(({kept},), "{dtype}"), on: T.int32, out: T.Buffer(({lanes},), "{dtype}")):
    for i in T.vectorized({lanes}):
        out[i] = T.if_then_else(on > 0 and i < {kept}, x[i], T.cast(7, "{dtype}"))
""")
        memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
        page = np.frombuffer(memory, "uint8")
        size = kept * np.dtype(dtype).itemsize
        x = page[mmap.PAGESIZE - size:mmap.PAGESIZE].view(dtype)
        x[...] = np.arange(kept) + 1
        page[mmap.PAGESIZE:] = 85
        kernel = tw.build(func, target=target)
        for on in (1, 0):
            out = np.zeros(lanes, dtype)
            kernel(x, on, out)
            want = np.full(lanes, 7, dtype)
            want[:kept * on] = x[:kept * on]
            np.testing.assert_array_equal(out, want)
