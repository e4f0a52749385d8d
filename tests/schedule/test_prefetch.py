"""The primitive prefetch: print, meaning, replay, native code."""
from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright.schedule import Schedule

from .core_support import check, matmul


def test_prefetch():
    func = matmul()
    sch = Schedule(func)
    i, j, r = sch.get_loops("C")
    sch.prefetch("C", 1, r, 2)
    sch.prefetch("C", 0, i)
    assert 'T.serial(4, annotations={"prefetch": [["A", 1]]})' in str(sch)
    assert 'T.serial(5, annotations={"prefetch": [["B", 2]]})' in str(sch)
    check(sch, func, np.matmul, (4, 5), (5, 6), size=(4, 6))
    text = str(tw.lower(sch.func))
    assert "T.prefetch(B_1[" in text and "T.prefetch(A_1[" in text
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (4, 5)).astype("int32"), rng.integers(-9, 9, (5, 6)).astype("int32")
    out = np.zeros((4, 6), "int32")
    tw.build(sch.func)["matmul"](a, b, out)
    np.testing.assert_array_equal(out, a @ b)
