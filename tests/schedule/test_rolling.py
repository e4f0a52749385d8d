"""rolling_buffer: print, meaning, replay, native code, and that nothing is computed twice."""
from __future__ import annotations

import textwrap

import pytest

from tilewright import te
from tilewright.lowering import lower
from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm
from tilewright.tir.interp import evaluate

from .compute_support import body_text, refuses, stencil
from .layout_support import conv2d, conv2d_reference, pools, pools_reference, program, proven


def test_rows_of_a_stencil_are_kept():
    func = stencil()
    sch = Schedule(func)
    i, _ = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.rolling_buffer("B", 0)
    assert textwrap.dedent(body_text(sch)) == textwrap.dedent("""\
        B = T.alloc_buffer((3, 6), "int32")
        for i in range(20):
            for i_1, j in T.grid(3, 6):
                with T.block("B"):
                    vi = T.axis.opaque(22, i + i_1)
                    vj = T.axis.spatial(6, j)
                    T.where(i == 0 or i_1 >= 2)
                    B[vi % 3, vj] = A[vi, vj] * 3
            for j in range(6):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    C[vi, vj] = B[vi % 3, vj] + B[(vi + 2) % 3, vj]""")
    proven(sch, func, lambda a: 3 * a[:-2] + 3 * a[2:], (22, 6))


def shape_of(sch, block):
    return [d.value if isinstance(d, IntImm) else str(d) for d in sch.get(sch.get_block(block)).writes[0].buffer.shape]


@pytest.mark.parametrize("position, shape", [(0, [3, 5]), (1, [3, 5])])
def test_a_chain_of_poolings(position, shape):
    """At the loop over rows the window has all columns; at the loop over columns nothing is computed twice either."""
    func = pools()
    sch = Schedule(func)
    sch.compute_at("Q", sch.get_loops("C")[position])
    sch.rolling_buffer("Q", 0)
    assert shape_of(sch, "Q") == shape
    proven(sch, func, pools_reference(), (20, 7))


def test_windows_that_move_by_two_rows():
    func = pools(21, 7, 3, 2)
    sch = Schedule(func)
    sch.compute_at("Q", sch.get_loops("C")[0])
    sch.rolling_buffer("Q", 0)
    assert shape_of(sch, "Q") == [3, 5] and "i_1 >= 1" not in body_text(sch)
    proven(sch, func, pools_reference(3, 2), (21, 7))


def test_every_element_is_computed_once():
    a = te.placeholder((12,), "int32", name="A")
    b = te.compute((12,), lambda i: a[i] + 1, name="B")
    r = te.reduce_axis((0, 4), "r")
    func = program(a, b, te.compute((9,), lambda i: te.sum(b[i + r], axis=r), name="C"))
    sch = Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    outer, inner = sch.loops_above("B")
    runs = [evaluate(sch.realize("B").predicate, {outer.loop_var: x, inner.loop_var: y})
            for x in range(9) for y in range(4)]
    assert sum(runs) == 12
    proven(sch, func, lambda x: sum((x + 1)[k:k + 9] for k in range(4)), (12,))


def test_strips_in_parallel_each_keep_their_rows():
    func = stencil()
    sch = Schedule(func)
    i, _ = sch.get_loops("C")
    outer, inner = sch.split(i, [None, 5])
    sch.compute_at("B", inner)
    sch.parallel(outer)
    sch.rolling_buffer("B", 0)
    assert shape_of(sch, "B") == [3, 6]
    proven(sch, func, lambda a: 3 * a[:-2] + 3 * a[2:], (22, 6))


def test_the_circular_loop_stays_inside_of_iterations_that_keep_their_rows():
    """Outside of the parallel loop, each of its iterations would find a buffer of its own anew."""
    x = te.placeholder((20, 22), "int32", name="X")
    b = te.compute((20, 22), lambda i, j: x[i, j] * 3, name="B")
    sch = Schedule(te.create_prim_func([x, te.compute((20, 20), lambda i, j: b[i, j] + b[i, j + 2], name="C")]))
    i, j = sch.get_loops("C")
    sch.compute_at("B", j)
    sch.parallel(i)
    sch.rolling_buffer("B", 0)
    proven(sch, te.create_prim_func([x, te.compute((20, 20), lambda i, j: b[i, j] + b[i, j + 2], name="C")]),
           lambda a: 3 * a[:, :-2] + 3 * a[:, 2:], (20, 22))
    refuses(sch, lambda: sch.reorder(j, i), "each iteration of the parallel loop i would have a B of its own")


@pytest.mark.parametrize("kind", ["parallel", "vectorize"])
def test_iterations_inside_of_a_loop_that_moves_the_window_too_each_keep_their_rows(kind):
    """The window moves with i and k, is circular along k, and the iterations of j between them overlap."""
    a, k, m = te.placeholder((6, 6), "int32", name="A"), te.reduce_axis((0, 2), "k"), te.reduce_axis((0, 2), "m")
    b = te.compute((6, 6), lambda i, j: a[i, j] * 3, name="B")
    func = program(a, b, te.compute((4, 4), lambda i, j: te.sum(b[i + k, j + m] - b[i + k + 1, j + m + 1], axis=[k, m]),
                                    name="C"))
    sch = Schedule(func)
    _, lanes, _, inner = sch.get_loops("C")
    getattr(sch, kind)(lanes)
    sch.compute_at("B", inner)
    sch.rolling_buffer("B", 0)
    proven(sch, func, lambda x: sum(3 * (x[p:p + 4, q:q + 4] - x[p + 1:p + 5, q + 1:q + 5])
                                    for p in range(2) for q in range(2)), (6, 6))
    read = lower(sch.func, simple_mode=True)
    assert 0 <= str(read).index("for j in") < str(read).index("B = T.decl_buffer") < str(read).index("for k in")


def test_the_padded_input_of_a_convolution():
    func = conv2d()
    sch = Schedule(func)
    o, y, x, c, i, j = sch.get_loops("C")
    sch.reorder(y, o)
    sch.compute_at("P", y)
    sch.rolling_buffer("P", 0)
    assert shape_of(sch, "P") == [3, 3, 11]
    proven(sch, func, conv2d_reference, (3, 9, 9), (5, 3, 3, 3))


def test_a_chain_is_rolled_from_its_end():
    a = te.placeholder((24,), "int32", name="A")
    b = te.compute((24,), lambda i: a[i] * 3, name="B")
    c = te.compute((22,), lambda i: b[i] + b[i + 2], name="C")
    func = program(a, b, c, te.compute((20,), lambda i: c[i] - c[i + 2], name="D"))
    sch = Schedule(func)
    i, = sch.get_loops("D")
    sch.compute_at("C", i)
    sch.compute_at("B", i)
    sch.rolling_buffer("C", 0)
    sch.rolling_buffer("B", 0)
    assert shape_of(sch, "C") == [3] and shape_of(sch, "B") == [5]
    proven(sch, func, lambda x: 3 * (x[:20] + x[2:22]) - 3 * (x[2:22] + x[4:24]), (24,))


def test_ragged_strips():
    func = stencil(19)
    sch = Schedule(func)
    outer, inner = sch.split(sch.get_loops("C")[0], [None, 4])
    sch.compute_at("B", inner)
    sch.rolling_buffer("B", 0)
    proven(sch, func, lambda a: 3 * a[:-2] + 3 * a[2:], (21, 6))


def test_an_unknown_number_of_rows():
    n = te.var("n")
    a = te.placeholder((n + 2, 6), "int32", name="A")
    b = te.compute((n + 2, 6), lambda i, j: a[i, j] * 3, name="B")
    func = program(a, b, te.compute((n, 6), lambda i, j: b[i, j] + b[i + 2, j], name="C"))
    sch = Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.rolling_buffer("B", 0)
    assert shape_of(sch, "B") == [3, 6]
    proven(sch, func, lambda x: 3 * x[:-2] + 3 * x[2:], (22, 6))


def test_what_is_rolled_stays_in_order():
    sch = Schedule(stencil())
    i, j = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.rolling_buffer("B", 0)
    refuses(sch, lambda: sch.parallel(i), "ordered")
    refuses(sch, lambda: sch.rolling_buffer("B", 0), "must run in order")
    refuses(sch, lambda: sch.compute_inline("B"), "must run in order")
