"""The primitive prefetch: print, meaning, replay, native code."""
from __future__ import annotations

import numpy as np

import tilewright as tw
from tilewright.schedule import Schedule

from .core_support import check, matmul
from .test_loops import refused


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


def test_prefetch_of_a_buffer_by_its_name():
    by_name, by_number = Schedule(matmul()), Schedule(matmul())
    by_name.prefetch("C", "B", by_name.get_loops("C")[2], 2)
    by_number.prefetch("C", 1, by_number.get_loops("C")[2], 2)
    assert str(by_name) == str(by_number)
    check(by_name, matmul(), np.matmul, (4, 5), (5, 6), size=(4, 6))
    sch = Schedule(matmul())
    text = refused("block C reads no buffer 'Q'", sch.prefetch, "C", "Q", sch.get_loops("C")[2])
    assert "it reads A, B" in text


def test_prefetch_step_by_step():
    """Each step of a loop that takes its part of the buffer asks for that part of the next iteration; where it would
    ask again for each j, all is asked for at the start."""
    sch = Schedule(matmul())
    i, j, r = sch.get_loops("C")
    sch.prefetch("C", 0, i, spread=True)
    assert 'T.serial(4, annotations={"prefetch": [["A", 1, "spread"]]})' in str(sch)
    assert "T.prefetch(A_1[i * 5 + 5])" in str(tw.lower(sch.func))
    sch.reorder(r, j)
    assert "T.prefetch(A_1[i * 5 + r + 5])" in str(tw.lower(sch.func))
    check(sch, matmul(), np.matmul, (4, 5), (5, 6), size=(4, 6))
