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
@pytest.mark.parametrize("scope", ["global", "local"])
def test_one_thread_starts_what_all_share(axis, first, scope):
    """`terms`: the loop that never runs is around the threads. No thread has b for itself: c is outside of them."""
    a, k = te.placeholder((5, 0), name="a"), te.reduce_axis((0, 0), name="k")
    b = te.compute((5,), lambda i: te.prod(a[i, k], axis=k), name="b")
    c = te.compute((5,), lambda i: b[i] + 1.0, name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    row, term = sch.get_loops(sch.get_block("b"))
    if first == "terms":
        sch.reorder(term, row)
    sch.set_scope(sch.get_block("b"), 0, scope)
    sch.bind(row, axis)
    for func in (sch.func, start_empty_reductions(sch.func), lower(sch.func, simple_mode=True)):
        out = np.zeros(5, "float32")
        interp.run(func, np.zeros((5, 0), "float32"), out)
        np.testing.assert_array_equal(out, 2)


@pytest.mark.parametrize("scope", ["global", "local"])
def test_one_thread_starts_outputs_that_no_loop_drives(scope):
    """Of the rows, threads have the outer half of a split, around which a loop never runs."""
    a, k = te.placeholder((6, 0), name="a"), te.reduce_axis((0, 0), name="k")
    b = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="b")
    c = te.compute((6,), lambda i: b[i] + 1.0, name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    row, term = sch.get_loops(sch.get_block("b"))
    outer, inner = sch.split(row, [3, 2])
    sch.reorder(term, outer, inner)
    sch.set_scope(sch.get_block("b"), 0, scope)
    sch.bind(outer, "threadIdx.x")
    for func in (sch.func, start_empty_reductions(sch.func), lower(sch.func, simple_mode=True)):
        out = np.zeros(6, "float32")
        interp.run(func, np.zeros((6, 0), "float32"), out)
        np.testing.assert_array_equal(out, 1)
