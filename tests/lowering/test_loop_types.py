"""Guards in 64-bit arithmetic around 32-bit loops: the loops that partition makes keep their type."""
import numpy as np
import pytest

import tilewright as tw
from tilewright.script import from_source
from tilewright.tir import interp
from tilewright.tir.verify import verify

FUNC = from_source("""
    @T.prim_func
    def f(A: T.Buffer((40,), "float32"), B: T.Buffer((17,), "float32"), m: T.int64):
        for i in range(17):
            if T.likely(T.Cast("int64", i) * T.int64(2) < m - T.int64(3)):
                B[i] = A[i * 2]
        for i in range(17):
            if T.likely(T.Cast("int64", i) < m):
                B[i] = B[i] + T.float32(1)
""")


@pytest.mark.parametrize("m", [-(2**40), -1, 0, 3, 4, 5, 16, 17, 36, 38, 2**33, 2**40])
def test_a_loop_keeps_its_type(m):
    flat = tw.lower(FUNC)["f"]
    verify(flat, "flat")
    a = np.arange(40, dtype="float32")
    want = np.array([(a[2 * i] if 2 * i < m - 3 else -5) + (i < m) for i in range(17)], "float32")
    for run in (lambda b: interp.run(flat, a, b, m), lambda b: tw.build(FUNC, target="llvm")["f"](a, b, m)):
        b = np.full(17, -5, "float32")
        run(b)
        np.testing.assert_array_equal(b, want)
