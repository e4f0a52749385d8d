"""Instances of blocks that run again: seen where one stores other values, and only there."""
from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError, unchecked
from tilewright.tir import interp

from .steadiness import Instances, Points, Unsteady, repeats
from .symbolic_memory import Unsupported


def sum_and_double(twice):
    """D = 2 * C, or the sum of 2 * C over an axis, of C, the sums of the rows of A."""
    a = te.placeholder((4, 6), "float32", name="A")
    k, r = te.reduce_axis((0, 6), name="k"), te.reduce_axis((0, 3), name="r")
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="C")
    d = te.compute((4,), lambda i: te.sum(c[i] * 2.0, axis=r) if twice else c[i] * 2.0, name="D")
    return te.create_prim_func([a, d])


@pytest.mark.parametrize("twice", [False, True])
def test_a_consumer_of_parts_of_a_sum_is_not_steady(twice):
    sch = Schedule(sum_and_double(twice))
    assert not repeats(sch.func.body, Points(1, {}, {}))
    with pytest.raises(ScheduleError, match="not all computed in one iteration of loop k"):
        sch.reverse_compute_at("D", sch.get_loops("C")[1])
    with unchecked():
        sch.reverse_compute_at("D", sch.get_loops("C")[1])
    assert repeats(sch.func.body, Points(1, {}, {}))
    with pytest.raises(Unsteady):
        Instances(sch.func, {}, {})


def test_what_runs_again_on_parts_of_a_sum_has_no_readers_beside_it():
    """E[i, k] = B[i, k] * D[i] below the loop k that sums B to C, where all of D is written, each time otherwise."""
    a = te.placeholder((4, 6), "int32", name="A")
    b = te.compute((4, 6), lambda i, j: a[i, j] + 1, name="B")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((4,), lambda i: te.sum(b[i, k], axis=k), name="C")
    d = te.compute((4,), lambda i: c[i] * 2, name="D")
    sch = Schedule(te.create_prim_func([a, te.compute((4, 6), lambda i, j: b[i, j] * d[i], name="E")]))
    data = np.arange(24, dtype="int32").reshape(4, 6)
    expected = (data + 1) * 2 * (data + 1).sum(axis=1, keepdims=True)

    def result():
        out = np.zeros((4, 6), "int32")
        interp.run(sch.func, data, out)
        return out

    loop = sch.get_loops("C")[1]
    sch.compute_at("B", loop)
    with unchecked():
        sch.reverse_compute_at("D", loop)
    assert (result() == expected).all()
    with pytest.raises(ScheduleError, match="is not all computed in one iteration of loop k"):
        sch.reverse_compute_at("E", loop)
    with unchecked():
        sch.reverse_compute_at("E", loop)
    assert (result() != expected).any()


def test_windows_that_overlap_are_steady():
    """Elements that two iterations need are computed twice, each time the same."""
    a = te.placeholder((10, 5), "float32", name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((10,), lambda i: te.sum(a[i, k], axis=k), name="B")
    sch = Schedule(te.create_prim_func([a, te.compute((8,), lambda i: b[i] + b[i + 2], name="C")]))
    sch.compute_at("B", sch.get_loops("C")[0])
    assert repeats(sch.func.body, Points(1, {}, {}))
    Instances(sch.func, {}, {})


def test_an_index_that_depends_on_data_has_the_given_value():
    a, at = te.placeholder((4,), "float32", name="A"), te.placeholder((4,), "int32", name="I")
    b = te.compute((4,), lambda i: a[at[i]], name="B")
    func = te.create_prim_func([a, at, b])
    with pytest.raises(Unsupported):
        Instances(func, {}, {})
    Instances(func, {}, {("argument", 1, n): 3 - n for n in range(4)})
