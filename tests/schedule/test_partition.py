"""merge and loop_partition: print, meaning, replay, refusals."""
from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tests.schedule.compute_support import body_text
from tests.schedule.core_support import check, check_replay, matmul, matmul_relu
from tests.schedule.test_loops import loops_of, refused
from tilewright import driver, te
from tilewright.schedule import Schedule
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp


def chain(n=10, m=6, ahead=0):
    """C[i, j] = B[i + ahead, j] + A[i, j] with B = 3*A."""
    a = te.placeholder((n + ahead, m), "int32", name="A")
    b = te.compute((n + ahead, m), lambda i, j: a[i, j] * 3, name="B")
    c = te.compute((n, m), lambda i, j: b[i + ahead, j] + a[i, j], name="C")
    return create_prim_func([a, c], name="chain")


def check_chain(sch, func, n=10, m=6):
    check(sch, func, lambda a: a * 4, (n, m), size=(n, m))


def test_two_nests_become_one_loop():
    func = chain()
    sch = Schedule(func)
    merged = sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    assert textwrap.dedent(body_text(sch)) == textwrap.dedent("""\
        B = T.alloc_buffer((10, 6), "int32")
        for i_m in range(10):
            for j in range(6):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i_m, j])
                    B[vi, vj] = A[vi, vj] * 3
            for j in range(6):
                with T.block("C"):
                    vi, vj = T.axis.remap("SS", [i_m, j])
                    C[vi, vj] = B[vi, vj] + A[vi, vj]""")
    assert sch.get(merged).loop_var.name == "i_m"
    check_chain(sch, func)


def test_whole_nests_are_merged_down_to_the_loops_given():
    func = chain()
    sch = Schedule(func)
    inner = sch.merge(sch.get_loops("B")[1], sch.get_loops("C")[1])
    assert loops_of(sch, "B") == loops_of(sch, "C") == ["i_m:10", "j_m:6"]
    sch.parallel(inner)
    check_chain(sch, func)


def test_three_nests_and_native_code():
    a = te.placeholder((32,), "float32", name="A")
    b = te.compute((32,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((32,), lambda i: b[i] * 2.0, name="C")
    d = te.compute((32,), lambda i: c[i] - b[i], name="D")
    func = create_prim_func([a, d], name="three")
    sch = Schedule(func)
    loop = sch.merge(*[sch.get_loops(block)[0] for block in ("D", "B", "C")])
    sch.vectorize(sch.split(loop, [None, 8])[1])
    check_replay(sch, func)
    x = np.random.default_rng(0).standard_normal(32).astype("float32")
    out = np.empty_like(x)
    driver.build(sch.func, target="llvm")(x, out)
    np.testing.assert_allclose(out, x.astype("float64") + 1, rtol=1e-6)


def test_a_reader_of_what_later_iterations_write_is_not_merged():
    func = chain(ahead=1)
    sch = Schedule(func)
    text = refused("loop i has extent 11, and loop i has 10", sch.merge, sch.get_loops("B")[0], sch.get_loops("C")[0])
    assert "split them to a common factor" in text
    sch.loop_partition(sch.get_loops("B")[0], [10, 1])
    refused("a later iteration of one loop touches elements of B|other statements stand", sch.merge,
            sch.get_loops("B_i0")[0], sch.get_loops("C")[0])


def test_a_reader_of_what_earlier_iterations_write_is_merged():
    a = te.placeholder((10,), "int32", name="A")
    b = te.compute((10,), lambda i: a[i] * 3, name="B")
    c = te.compute((10,), lambda i: te.if_then_else(i > 0, b[i - 1], 0) + a[i], name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    sch.merge(sch.get_loops("B")[0], sch.get_loops("C")[0])
    check(sch, func, lambda a: np.append(0, 3 * a[:-1]) + a, (10,), size=(10,))


def test_a_sum_is_not_read_before_it_is_complete():
    sch = Schedule(matmul_relu(4, 6, 4))
    _, _, r = sch.get_loops("C")
    sch.reorder(r, *sch.get_loops("C")[:2])
    refused("a later iteration of one loop touches elements of C", sch.merge, r, sch.get_loops("D")[0])


def test_a_loop_is_cut_into_consecutive_ones():
    func = matmul(4, 6, 5)
    sch = Schedule(func)
    first, second = sch.loop_partition(sch.get_loops("C")[2], [2, None])
    assert textwrap.dedent(body_text(sch)) == textwrap.dedent("""\
        for i, j in T.grid(4, 6):
            for r0 in range(2):
                with T.block("C_r0"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    vr = T.axis.reduce(5, r0)
                    with T.init():
                        C[vi, vj] = 0
                    C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]
            for r1 in range(2, 5):
                with T.block("C_r1"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    vr = T.axis.reduce(5, r1)
                    C[vi, vj] = C[vi, vj] + A[vi, vr] * B[vr, vj]""")
    check(sch, func, np.matmul, (4, 5), (5, 6), size=(4, 6))
    sch.unroll(first)
    sch.split(second, [None, 2])
    check(sch, func, np.matmul, (4, 5), (5, 6), size=(4, 6))


def test_what_the_factors_leave_over_is_a_loop_too():
    func = chain()
    sch = Schedule(func)
    loops = sch.loop_partition(sch.get_loops("C")[1], [1, 2], preserve_unit_iters=False)
    assert [(sch.get(x).min.value, sch.get(x).extent.value) for x in loops] == [(0, 1), (1, 2), (3, 3)]
    assert [b.name for b in sch.get_child_blocks(sch.get_loops("C_j0")[0])] == ["C_j0", "C_j1", "C_j2"]
    assert "vj = T.axis.spatial(6, 0)" in str(sch)
    sch.parallel(loops[1])
    check_chain(sch, func)


def test_parts_have_loops_and_buffers_of_their_own():
    func = chain()
    sch = Schedule(func)
    i, j = sch.get_loops("C")
    sch.compute_at("B", i)
    sch.loop_partition(i, [4, None])
    assert [b.name for b in sch.get_blocks()] == ["B_i0", "C_i0", "B_i1", "C_i1"]
    refused("loop_partition consumed it", sch.unroll, j)
    check_chain(sch, func)
    sch.loop_partition(sch.get_loops("B_i1")[1], [3, 3])
    check_chain(sch, func)


def test_parts_of_a_symbolic_loop_are_guarded():
    n = te.var("n")
    a = te.placeholder((n,), "int32", name="A")
    b = te.compute((n,), lambda i: a[i] * 3, name="B")
    func = create_prim_func([a, b])
    sch = Schedule(func)
    sch.loop_partition(sch.get_loops("B")[0], [4, None])
    assert "T.where(i0 < n)" in str(sch)
    check_replay(sch, func)
    for size in (0, 3, 4, 9):
        x, out = np.arange(size, dtype="int32"), np.full(size, 7, "int32")
        interp.run(sch.func, x, out)
        np.testing.assert_array_equal(out, x * 3)


@pytest.mark.parametrize("cut", [
    lambda sch, k: sch.loop_partition(k, [1, 1], preserve_unit_iters=False),
    lambda sch, k: sch.split(sch.loop_partition(k, [1, None])[0], [1, 1], preserve_unit_iters=False)])
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_sums_of_nothing_start_in_the_part_of_one_step_too(cut, n):
    """The part of one step runs under a condition, so its loop still says where the sum would have its steps."""
    size = te.var("n")
    a, k = te.placeholder((4, size), name="A"), te.reduce_axis((0, size), name="k")
    func = create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")])
    sch = Schedule(func)
    cut(sch, sch.get_loops("B")[1])
    x = np.arange(4 * n, dtype="float32").reshape(4, n)
    for run in (lambda *args: interp.run(sch.func, *args), driver.build(sch)["main"]):
        out = np.full(4, 7, "float32")
        run(x, out)
        np.testing.assert_array_equal(out, x.sum(axis=1))
