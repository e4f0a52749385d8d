"""decompose_padding: print, meaning, replay, native code."""
from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.tir.interp import evaluate

from .compute_support import body_text
from .layout_support import conv2d, conv2d_reference, program, proven


def padded(where, value=0, inside=None):
    """P[i] = A[i - 6] or the like where `where` holds, else value; C = P + 1."""
    a = te.placeholder((128,), "int32", name="A")
    p = te.compute((140,), lambda i: te.if_then_else(where(i), (inside or (lambda i: a[i - 6]))(i), value), name="P")
    return program(a, p, te.compute((140,), lambda i: p[i] + 1, name="C"))


def test_a_padded_row():
    func = padded(lambda i: te.all(i >= 6, i < 134))
    sch = Schedule(func)
    fill = sch.decompose_padding("P", sch.get_loops("P")[0])
    assert fill.name == "P_pad_const"
    assert textwrap.dedent(body_text(sch)) == textwrap.dedent("""\
        P = T.alloc_buffer((140,), "int32")
        for i in range(140):
            with T.block("P_pad_const"):
                vi = T.axis.spatial(140, i)
                P[vi] = 0
        for i in range(128):
            with T.block("P"):
                vi = T.axis.spatial(128, i)
                P[vi + 6] = A[vi]
        for i in range(140):
            with T.block("C"):
                vi = T.axis.spatial(140, i)
                C[vi] = P[vi] + 1""")
    proven(sch, func, lambda a: np.pad(a, 6) + 1, (128,))


@pytest.mark.parametrize("where, extent", [
    (lambda i: te.all(6 <= i, i <= 133), 128), (lambda i: te.all(i > 5, 134 > i), 128),
    (lambda i: te.all(i - 6 >= 0, i - 6 < 128), 128), (lambda i: te.all(i >= 6, i < 134, i % 2 < 1), 128),
    (lambda i: te.all(te.all(i >= 6, i < 100), i < 70), 64), (lambda i: te.all(i >= 6, i < 6), 0),
    (lambda i: te.all(i >= 6, i < 134, te.any(i < 9, i > 20)), 128), (lambda i: te.all(139 - i >= 6, i >= 6), 128),
])
def test_forms_of_conditions(where, extent):
    func = padded(where, 3)
    sch = Schedule(func)
    sch.decompose_padding("P", sch.get_loops("P")[0])
    assert str(sch.loops_above("P")[0].extent) == str(extent)
    index = np.arange(140)
    inside = np.array([bool(eval_where(where, i)) for i in index])
    proven(sch, func, lambda a: np.where(inside, a[np.clip(index - 6, 0, 127)], 3) + 1, (128,))


def eval_where(where, i):
    from_var = te.var("i")
    return evaluate(where(from_var), {from_var: i})


def test_the_constant_may_stand_first():
    a = te.placeholder((10,), "int32", name="A")
    p = te.compute((12,), lambda i: te.if_then_else(te.any(i < 1, i > 10), 7, a[i - 1]), name="P")
    func = program(a, p, te.compute((12,), lambda i: p[i] + 1, name="C"))
    sch = Schedule(func)
    sch.decompose_padding("P", sch.get_loops("P")[0])
    assert str(sch.loops_above("P")[0].extent) == "10"
    proven(sch, func, lambda x: np.pad(x, 1, constant_values=7) + 1, (10,))


@pytest.mark.parametrize("position", range(3))
def test_the_input_of_a_convolution(position):
    """At an inner loop the filling of a row stands before the copy of it."""
    func = conv2d()
    sch = Schedule(func)
    sch.decompose_padding("P", sch.get_loops("P")[position])
    assert [str(loop.extent) for loop in sch.loops_above("P")] == [
        "3", "11" if position > 1 else "9", "9"] or position
    proven(sch, func, conv2d_reference, (3, 9, 9), (5, 3, 3, 3))


def test_a_block_that_was_moved_keeps_its_tile():
    func = conv2d()
    sch = Schedule(func)
    o, y, x, *_ = sch.get_loops("C")
    yo, yi = sch.split(y, [None, 4])
    sch.reorder(yo, o)
    sch.compute_at("P", yo)
    sch.decompose_padding("P", sch.get_loops("P")[1])
    proven(sch, func, conv2d_reference, (3, 9, 9), (5, 3, 3, 3))


def test_an_output_that_is_padded_in_parallel():
    a = te.placeholder((10, 6), "int32", name="A")
    func = program(a, te.compute((14, 8), lambda i, j: te.if_then_else(
        te.all(i >= 2, i < 12, j < 6), a[i - 2, j] * 5, -1), name="P"))
    sch = Schedule(func)
    i, j = sch.get_loops("P")
    sch.parallel(i)
    sch.decompose_padding("P", i)
    sch.vectorize(sch.get_loops("P")[1])
    proven(sch, func, lambda x: np.pad(x * 5, ((2, 2), (0, 2)), constant_values=-1), (10, 6))


def test_a_loop_that_a_predicate_uses_as_well_keeps_its_iterations():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    P = T.alloc_buffer((8, 8), "int32")
    for i, j in T.grid(8, 8):
        with T.block("P"):
            vi, vj = T.axis.remap("SS", [i, j])
            T.where(j <= i + 5)
            P[vi, vj] = T.if_then_else(2 <= vi and vi < 6, A[vi - 2, vj], 0)
    for i, j in T.grid(4, 8):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = P[vi + 2, vj] + 1
""")
    sch = Schedule(func)
    sch.decompose_padding("P", sch.get_loops("P")[0])
    proven(sch, func, lambda a: a + 1, (4, 8))
