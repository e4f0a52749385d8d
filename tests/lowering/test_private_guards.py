"""Guards that stay around stores into private memory, since what they keep from being written is read elsewhere."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering import lower
from tilewright.script import from_source
from tilewright.tir import interp


def test_a_condition_on_memory_that_changes_says_something_else_later():
    """The second loop over P leaves what the first one wrote where M[0] was 10 for it, and is again for the reader."""
    func = from_source("""
@T.prim_func
def main(M: T.Buffer((1,), "int32"), C: T.Buffer((16,), "int32")):
    P = T.alloc_buffer((16,), "int32")
    for i in range(16):
        if T.likely(i < M[0]):
            P[i] = i * 10
    M[0] = 5
    for i in range(16):
        if T.likely(i < M[0]):
            P[i] = i * 10 + 1
    M[0] = 10
    for i in range(16):
        if T.likely(i < M[0]):
            C[i] = P[i]
""")
    want = np.arange(16) * 10 + (np.arange(16) < 5)
    want[10:] = 0
    for run in (lambda *a: interp.run(lower(func), *a), tw.build(func)["main"]):
        out = np.zeros(16, "int32")
        run(np.array([10], "int32"), out)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("pointers, size", [("C.data, P.data", 64),
                                            ("T.address_of(C[k * 4]), T.address_of(P[k * 4])", 16)])
def test_what_a_call_reads_through_a_pointer_is_not_written_beside(pointers, size):
    func = from_source(f"""
@T.prim_func
def main(n: T.int32, C: T.Buffer((16,), "int32")):
    P = T.alloc_buffer((16,), "int32")
    for i in range(16):
        P[i] = 7
    for i in range(16):
        if T.likely(i < n):
            P[i] = i * 10
    for k in range({64 // size}):
        if T.likely(k * 4 < n):
            T.evaluate(T.call_extern("int32", "memcpy", {pointers}, {size}))
    for i in range(16):
        if T.likely(i < n):
            C[i] = P[i] + 1
""")
    out = np.zeros(16, "int32")
    tw.build(func)["main"](5, out)
    np.testing.assert_array_equal(out, [1, 11, 21, 31, 41, 7, 7, 7, *[7 * (size == 64)] * 8])


def test_lanes_that_are_off_load_no_private_memory_that_was_not_written():
    """m < 2 follows from m * 2 + k < 3, which is said of the lanes: their vector is loaded for each m of m < 6."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32"), D: T.Buffer((12,), "int32")):
    for i, j in T.grid(3, 4):
        D[i * 4 + j] = 1
        for k in T.vectorized(2):
            P = T.decl_buffer((1,), "int32")
            if T.likely(i * 4 + j < 2 and i * 4 + j < 6):
                P[0] = A[i * 8 + j * 2 + k] * 10
            if T.likely(i * 8 + j * 2 + k < 3 and i * 4 + j < 6):
                C[i * 8 + j * 2 + k] = P[0]
""")
    a = np.arange(16, dtype="int32")
    for run in (lambda *arrays: interp.run(lower(func), *arrays), tw.build(func)["main"]):
        out = np.zeros(16, "int32")
        run(a, out, np.zeros(12, "int32"))
        np.testing.assert_array_equal(out, [0, 10, 20, *[0] * 13])
