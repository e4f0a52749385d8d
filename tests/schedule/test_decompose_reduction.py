"""decompose_reduction."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.core_support import check, check_replay, matmul, matmul_relu, run
from tests.schedule.test_loops import loops_of, refused
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.te.prim_func import create_prim_func


@pytest.mark.parametrize("at", [0, 1, 2])
def test_decompose_at_each_loop(at):
    func = matmul()
    sch = Schedule(func)
    block = sch.get_block("C")
    init = sch.decompose_reduction(block, sch.get_loops(block)[at])
    names = ["i:4", "j:6"]
    assert loops_of(sch, "C_init") == names[:at] + [f"{n.split(':')[0]}_init:{n.split(':')[1]}"
                                                    for n in names[at:]]
    assert loops_of(sch, "C_update") == ["i:4", "j:6", "r:5"]
    assert sch.get(init).name == "C_init"
    assert sch.get(block).name == "C_update"
    assert [r.buffer.name for r in sch.get(block).reads] == ["C", "A", "B"]
    check(sch, func, lambda a, b: a @ b, (4, 5), (5, 6), size=(4, 6))


def test_decompose_prints():
    sch = Schedule(matmul())
    i, j, r = sch.get_loops("C")
    j0, j1 = sch.split(j, [None, 4])
    sch.reorder(i, j0, r, j1)
    sch.vectorize(j1)
    sch.decompose_reduction("C", r)
    assert """
    for i, j_0 in T.grid(4, 2):
        for j_1_init in T.vectorized(4):
            with T.block("C_init"):
                vi_init = T.axis.spatial(4, i)
                vj_init = T.axis.spatial(6, j_0 * 4 + j_1_init)
                T.where(j_0 * 4 + j_1_init < 6)
                T.reads()
                T.writes(C[vi_init, vj_init])
                C[vi_init, vj_init] = 0
        for r in range(5):
            for j_1 in T.vectorized(4):
                with T.block("C_update"):
""".strip() in str(sch)


def test_guards_of_the_reduction_stay_with_the_update():
    func = matmul(3, 5, 7)
    sch = Schedule(func)
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    r0, r1 = sch.split(r, [None, 4])
    j0, j1 = sch.split(j, [None, 3])
    sch.reorder(i, r0, j0, r1, j1)
    sch.decompose_reduction(block, r0)
    assert loops_of(sch, "C_init") == ["i:3", "j_0_init:2", "j_1_init:3"]
    text = str(sch)
    assert "T.where(j_0_init * 3 + j_1_init < 5)" in text
    assert "T.where(r_0 * 4 + r_1 < 7 and j_0 * 3 + j_1 < 5)" in text
    check(sch, func, lambda a, b: a @ b, (3, 7), (7, 5), size=(3, 5))


def test_the_update_can_be_scheduled_on():
    func = matmul_relu()
    sch = Schedule(func)
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    sch.decompose_reduction(block, i)
    sch.reorder(r, i, j)
    sch.parallel(i)
    r0, r1 = sch.split(r, factors=[None, 2])
    sch.unroll(r1)
    sch.parallel(sch.fuse(*sch.get_loops(sch.get_block("C_init"))))
    check(sch, func, lambda a, b: (a @ b).clip(0), (4, 5), (5, 6), size=(4, 6))


def test_tuple_reduction():
    a = te.placeholder((4, 5), "int32", name="A")
    k = te.reduce_axis((0, 5), name="k")
    argmax = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.if_then_else(x[1] >= y[1], x[1], y[1])),
        lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
    index, value = te.compute((4,), lambda i: argmax((k, a[i, k]), axis=k), name="T")
    func = create_prim_func([a, index, value])
    sch = Schedule(func)
    i, kk = sch.get_loops("T")
    sch.reorder(kk, i)
    sch.decompose_reduction("T", kk)
    sch.parallel(i)
    refused("reduction", sch.parallel, kk)
    x = np.random.default_rng(1).permutation(20).reshape(4, 5).astype("int32")
    got = run(sch.func, [x], [np.zeros(4, "int32"), np.zeros(4, "int32")])
    np.testing.assert_array_equal(got[0], x.argmax(1))
    np.testing.assert_array_equal(got[1], x.max(1))
    check_replay(sch, func)


def test_decompose_refuses():
    sch = Schedule(matmul_relu())
    i, j, r = sch.get_loops("C")
    k, _ = sch.get_loops("D")
    refused("block D is not a reduction with an init", sch.decompose_reduction, "D", k)
    refused("loop i is not around block C", sch.decompose_reduction, "C", k)
    r0, r1 = sch.split(r, [None, 2])
    sch.reorder(r0, j)
    refused("loop r_0, outside of j, drives a reduction axis of block C", sch.decompose_reduction, "C", j)
    refused("loop r_0, outside of r_1, drives a reduction axis", sch.decompose_reduction, "C", r1)
    sch.decompose_reduction("C", r0)
    refused("is not a reduction with an init", sch.decompose_reduction, "C_update", r0)
    text = refused("function main has no block 'C'", sch.get_block, "C")
    assert "it is called C_update now" in text


def test_decompose_refuses_a_fused_output_and_reduction():
    sch = Schedule(matmul())
    i, j, r = sch.get_loops("C")
    fused = sch.fuse(j, r)
    refused("loop j_r_fused drives output and reduction axes", sch.decompose_reduction, "C", fused)
    refused("loop j_r_fused drives output and reduction axes", sch.decompose_reduction, "C", i)


def test_second_reduction_of_a_name_gets_its_own():
    sch = Schedule(matmul())
    i, j, r = sch.get_loops("C")
    init = sch.decompose_reduction("C", r)
    assert sch.block_names("main") == ["root", "C_init", "C_update"]
    assert sch.fresh_block("C") == "C_1" and sch.fresh_block("C_init") == "C_init_1"
    assert sch.get_consumers(init) == [sch.get_block("C_update")]


def test_the_init_of_an_empty_fused_loop_does_not_run():
    func = matmul(0, 0, 3)
    sch = Schedule(func)
    i, j, _ = sch.get_loops("C")
    sch.decompose_reduction("C", sch.fuse(i, j))
    run(sch.func, [np.zeros((0, 3), "int32"), np.zeros((3, 0), "int32")], [np.zeros((0, 0), "int32")])
    check_replay(sch, func)


@pytest.mark.parametrize("n", [0, 1, 3])
def test_the_start_keeps_to_the_domain_where_the_steps_did(n):
    """Below a loop of n steps n is at least 1, so row 0 exists; before it n may be 0."""
    size = te.var("n")
    k = te.reduce_axis((0, size), name="k")
    a = te.placeholder((size, size), name="A")
    b = te.compute((size,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((2,), lambda j: te.if_then_else(te.all(j >= 1, j - 1 < size), b[j - 1], 7.0), name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    sch.transform_block_layout("B", lambda i, k: (k, i))
    sch.compute_at("B", sch.get_loops("C")[0])
    sch.decompose_reduction("B", sch.get_loops("B")[-1])
    values = np.arange(n * n, dtype="float32").reshape(n, n) + 1
    out, = run(sch.func, [values], [np.zeros(2, "float32")])
    np.testing.assert_array_equal(out, [7, values[0].sum() if n else 7])
