"""A reduction over nothing below threads: its output gets the start value once."""
from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.lowering import lower
from tilewright.schedule import Schedule
from tilewright.tir import interp
from tilewright.tir.empty_reductions import start_empty_reductions


@pytest.mark.parametrize("axis", ["blockIdx.x", "threadIdx.x"])
@pytest.mark.parametrize("first", ["rows", "terms"])
def test_one_thread_starts_what_all_share(axis, first):
    """`terms`: the loop that never runs is around the threads, and tells nothing of the outputs."""
    a, k = te.placeholder((5, 0), name="a"), te.reduce_axis((0, 0), name="k")
    b = te.compute((5,), lambda i: te.prod(a[i, k], axis=k), name="b")
    c = te.compute((5,), lambda i: b[i] + 1.0, name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    row, term = sch.get_loops(sch.get_block("b"))
    if first == "terms":
        sch.reorder(term, row)
    sch.bind(row, axis)
    for func in (sch.func, start_empty_reductions(sch.func), lower(sch.func, simple_mode=True)):
        out = np.zeros(5, "float32")
        interp.run(func, np.zeros((5, 0), "float32"), out)
        np.testing.assert_array_equal(out, 2)
