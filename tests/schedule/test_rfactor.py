"""rfactor: print, meaning against NumPy, replay, native code, refusals."""
from __future__ import annotations

import textwrap

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.schedule.analysis.reducers import reduction_of
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError, unchecked
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp

from .compute_support import body_text
from .core_support import check, check_replay, matmul


def total(n=100, dtype="float32", reduce=te.sum, **more):
    """B[()] = the reduction of A."""
    a = te.placeholder((n,), dtype, name="A")
    k = te.reduce_axis((0, n), name="k")
    return create_prim_func([a, te.compute((), lambda: reduce(a[k], axis=k, **more), name="B")], name="total")


def factored(func, factors, place, axis=0, block="B"):
    """The schedule with the last loop of the block split and its part `place` factored; the new block."""
    sch = Schedule(func)
    loops = sch.split(sch.get_loops(block)[-1], factors)
    return sch, sch.rfactor(loops[place], axis)


def test_the_parts_and_their_reduction():
    sch, part = factored(matmul(4, 6, 12), [None, 4], 1, 1, "C")
    assert textwrap.dedent(body_text(sch)) == textwrap.dedent("""\
        C_rf = T.alloc_buffer((4, 4, 6), "int32")
        for i, j, r_0, r_1 in T.grid(4, 6, 3, 4):
            with T.block("C_rf"):
                vi, v_r_1, vj, v_r_0 = T.axis.remap("SSSR", [i, r_1, j, r_0])
                with T.init():
                    C_rf[vi, v_r_1, vj] = 0
                C_rf[vi, v_r_1, vj] = C_rf[vi, v_r_1, vj] + A[vi, v_r_0 * 4 + v_r_1] * B[v_r_0 * 4 + v_r_1, vj]
        for i, j, r_1 in T.grid(4, 6, 4):
            with T.block("C"):
                vi, vj, v_r_1 = T.axis.remap("SSR", [i, j, r_1])
                with T.init():
                    C[vi, vj] = 0
                C[vi, vj] = C[vi, vj] + C_rf[vi, v_r_1, vj]""")
    assert sch.get(part).name == "C_rf"
    check(sch, matmul(4, 6, 12), lambda a, b: a @ b, (4, 12), (12, 6), size=(4, 6))


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2])
def test_every_place_of_the_new_axis(axis):
    sch, part = factored(matmul(3, 4, 10), [None, 4], 0, axis, "C")
    shape = [d.value for d in sch.get(part).writes[0].buffer.shape]
    assert shape.index(3) in (axis % 3, 0) and sorted(shape) == [3, 3, 4]
    check(sch, matmul(3, 4, 10), lambda a, b: a @ b, (3, 10), (10, 4), size=(3, 4))


def test_a_ragged_split_pads_with_the_identity():
    sch, _ = factored(total(10, "int32"), [None, 4], 1)
    assert "B_rf[v_k_1] + T.if_then_else(T.likely(v_k_0 * 4 + v_k_1 < 10), A[v_k_0 * 4 + v_k_1], 0)" in str(sch)
    check(sch, total(10, "int32"), lambda a: a.sum(), (10,), size=())


def test_chunks_without_any_term():
    """Five parts of four cover ten terms with the first three."""
    sch, _ = factored(total(10, "int32", te.max), [5, 4], 0)
    check(sch, total(10, "int32", te.max), lambda a: a.max(), (10,), size=())


def test_a_whole_loop_leaves_nothing_to_reduce_in_the_parts():
    func = total(7, "int32")
    sch = Schedule(func)
    part = sch.rfactor(sch.get_loops("B")[0], 0)
    assert sch.get(part).init is None and "B_rf[vk] = A[vk]" in str(sch)
    check(sch, func, lambda a: a.sum(), (7,), size=())


def test_a_sum_of_everything_runs_on_all_threads_and_in_vectors():
    func = total(1003)
    sch = Schedule(func)
    chunk, _, lane = sch.split(sch.get_loops("B")[0], [4, None, 16])
    lanes = sch.rfactor(lane, 0)
    parts = sch.rfactor(sch.get_loops(lanes)[0], 0)
    chunk, steps, lane = sch.get_loops(parts)
    sch.reorder(chunk, steps, lane)
    sch.parallel(chunk)
    sch.vectorize(lane)
    sch.decompose_reduction(parts, steps)
    check_replay(sch, func)
    a, out = np.random.default_rng(0).random(1003).astype("float32"), np.zeros((), "float32")
    interp.run(sch.func, a, out)
    np.testing.assert_allclose(out, a.sum(dtype="float64"), rtol=1e-6)
    tw.build(sch.func, target="llvm")["total"](a, out)
    np.testing.assert_allclose(out, a.sum(dtype="float64"), rtol=1e-6)


def test_handles_stay_with_one_of_the_blocks():
    sch = Schedule(matmul(4, 6, 12))
    block = sch.get_block("C")
    i, j, r = sch.get_loops(block)
    ro, ri = sch.split(r, [None, 4])
    part = sch.rfactor(ri, 0)
    assert sch.get_loops(block) == [i, j, ri] and ro in sch.get_loops(part)
    assert sch.get(block).name == "C"


def test_fused_reductions_and_a_start_value():
    a = te.placeholder((5, 6, 7), "int32", name="A")
    p, q = te.reduce_axis((1, 5), name="p"), te.reduce_axis((2, 7), name="q")
    b = te.compute((6,), lambda i: te.sum(a[p, i, q] * 2, axis=[p, q], where=p + q < 9, init=i), name="B")
    func = create_prim_func([a, b])
    sch = Schedule(func)
    _, p, q = sch.get_loops("B")
    _, part = sch.split(sch.fuse(p, q), [None, 3])
    sch.rfactor(part, -1)
    allowed = np.add.outer(np.arange(1, 5), np.arange(2, 7)) < 9

    def reference(x):
        terms = x[1:5, :, 2:7] * 2
        return (terms * allowed[:, None, :]).sum(axis=(0, 2)) + np.arange(6)
    check(sch, func, reference, (5, 6, 7), size=(6,))


def test_another_reduction_axis_keeps_its_loops():
    a = te.placeholder((6, 8, 10), "int32", name="A")
    p, q = te.reduce_axis((0, 8), name="p"), te.reduce_axis((0, 10), name="q")
    func = create_prim_func([a, te.compute((6,), lambda i: te.sum(a[i, p, q], axis=[p, q]), name="B")])
    sch = Schedule(func)
    _, p, q = sch.get_loops("B")
    sch.split(p, [None, 3])
    _, qi = sch.split(q, [None, 4])
    part = sch.rfactor(qi, 1)
    assert [iv.var.name for iv in sch.get(part).iter_vars] == ["vi", "v_q_1", "vp", "v_q_0"]
    check(sch, func, lambda x: x.sum(axis=(1, 2)), (6, 8, 10), size=(6,))


def argmin(dtype):
    smaller = te.comm_reducer(
        lambda x, y: (te.select(te.any(x[1] < y[1], te.all(x[1] == y[1], x[0] < y[0])), x[0], y[0]),
                      te.select(te.any(x[1] < y[1], te.all(x[1] == y[1], x[0] < y[0])), x[1], y[1])),
        lambda i, v: (te.max_value(i), te.max_value(v)), name="argmin")
    a = te.placeholder((5, 37), dtype, name="A")
    k = te.reduce_axis((0, 37), name="k")
    index, value = te.compute((5,), lambda i: smaller((k.var, a[i, k]), axis=k), name="am")
    return create_prim_func([a, index, value])


def test_a_reduction_of_tuples():
    func = argmin("int32")
    sch = Schedule(func)
    block = sch.get_blocks()[0]
    _, ki = sch.split(sch.get_loops(block)[-1], [None, 8])
    sch.rfactor(ki, 0)
    check_replay(sch, func)
    a = np.random.default_rng(1).integers(-9, 9, (5, 37)).astype("int32")
    for run in (lambda *x: interp.run(sch.func, *x), tw.build(sch.func, target="llvm")["main"]):
        index, value = np.zeros(5, "int32"), np.zeros(5, "int32")
        run(a, index, value)
        np.testing.assert_array_equal(index, a.argmin(axis=1))
        np.testing.assert_array_equal(value, a.min(axis=1))


def test_beyond_the_terms_each_component_is_left_alone():
    """What leaves a sum as it is changes a maximum; and a reducer is what it says, whatever its name is."""
    both = te.comm_reducer(lambda x, y: (x[0] + y[0], te.max(x[1], y[1])),
                           lambda s, m: (te.const(0, s), te.min_value(m)))
    named = te.comm_reducer(lambda x, y: te.max(x, y) * 1.0, te.min_value, name="add")
    a, k = te.placeholder((11,), name="A"), te.reduce_axis((0, 11), name="k")
    x = -np.random.default_rng(0).random(11, "float32") - 1
    for results, wanted in ((te.compute((1,), lambda i: both((a[k], a[k]), axis=k), name="B"), [x.sum(), x.max()]),
                            ((te.compute((1,), lambda i: named(a[k], axis=k), name="B"),), [x.max()])):
        sch = factored(create_prim_func([a, *results]), [None, 4], 1)[0]
        found = [np.zeros(1, "float32") for _ in results]
        interp.run(sch.func, x, *found)
        np.testing.assert_allclose(np.ravel(found), wanted, rtol=1e-6)


REDUCERS = {
    "sum": (te.sum, lambda a: a.sum()), "prod": (te.prod, lambda a: a.prod()),
    "max": (te.max, lambda a: a.max()), "min": (te.min, lambda a: a.min()),
    "and": (te.comm_reducer(lambda x, y: x & y, lambda t: te.const(-1, t)), np.bitwise_and.reduce),
    "or": (te.comm_reducer(lambda x, y: x | y, lambda t: te.const(0, t)), np.bitwise_or.reduce),
    "xor": (te.comm_reducer(lambda x, y: x ^ y, lambda t: te.const(0, t)), np.bitwise_xor.reduce),
    "circle": (te.comm_reducer(lambda x, y: x + y + x * y, lambda t: te.const(0, t), name="circle"),
               lambda a: np.prod(a + 1) - 1),
}


@pytest.mark.parametrize("name", REDUCERS)
def test_every_reducer(name):
    reduce, reference = REDUCERS[name]
    func = total(11, "int32", reduce)
    sch, _ = factored(func, [None, 4], 1)
    a, out = np.random.default_rng(0).integers(-3, 3, 11).astype("int32"), np.zeros((), "int32")
    interp.run(sch.func, a, out)
    assert out == reference(a)
    check_replay(sch, func)


def test_the_reduction_is_recognised_on_either_side():
    sch = Schedule(matmul())
    found = reduction_of(sch.get(sch.get_block("C")))
    assert found is not None and found.combiner.name == "add" and str(found.terms[0]) == "A[vi, vr] * B[vr, vj]"


def test_below_a_shared_loop():
    """The reduction is computed in a loop of its reader; both blocks stay there."""
    a = te.placeholder((6, 40), "int32", name="A")
    k = te.reduce_axis((0, 40), name="k")
    b = te.compute((6,), lambda i: te.sum(a[i, k], axis=k), name="B")
    c = te.compute((6,), lambda i: b[i] + 1, name="C")
    func = create_prim_func([a, c])
    sch = Schedule(func)
    sch.compute_at("B", sch.get_loops("C")[0])
    _, ki = sch.split(sch.get_loops("B")[-1], [None, 8])
    part = sch.rfactor(ki, 0)
    assert sch.get_loops(part)[0] == sch.get_loops("C")[0] == sch.get_loops("B")[0]
    check(sch, func, lambda x: x.sum(axis=1) + 1, (6, 40), size=(6,))


def test_symbolic_extents():
    n = te.var("n")
    func = total(n)
    sch, part = factored(func, [None, 8], 1)
    check_replay(sch, func)
    for size in (1, 7, 8, 100):
        a, out = np.arange(size, dtype="float32"), np.zeros((), "float32")
        interp.run(sch.func, a, out)
        assert out == a.sum()


def test_a_refused_call_changes_nothing():
    sch = Schedule(matmul())
    before = str(sch)
    with pytest.raises(ScheduleError, match="loop j drives no reduction axis of block C"):
        sch.rfactor(sch.get_loops("C")[1], 0)
    assert str(sch) == before and len(sch.trace) == 1


def test_without_the_checks_it_still_builds():
    sch = Schedule(matmul())
    with unchecked():
        sch.rfactor(sch.get_loops("C")[2], 0)
    assert "C_rf" in str(sch)


ARGMAX = '''
@T.prim_func
def f(A: T.Buffer((8, 30), "int32"), I: T.Buffer((8,), "int32"), V: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 30):
        with T.block("am"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = -1
                V[vi] = T.min_value("int32")
'''


@pytest.mark.parametrize("index, value, known", [
    ("T.Select(V[vi] > A[vi, vk] or (V[vi] == A[vi, vk] and I[vi] < vk), I[vi], vk)", "T.max(V[vi], A[vi, vk])", True),
    ("T.if_then_else(A[vi, vk] > V[vi], vk, I[vi])", "T.max(V[vi], A[vi, vk])", True),
    ("T.Select(V[vi] >= A[vi, vk], I[vi], vk)", "T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])", True),
    ("T.Select(A[vi, vk] >= V[vi], vk, I[vi])", "T.max(V[vi], A[vi, vk])", False),   # -1 is no identity of the last one
    ("T.Select(V[vi] >= A[vi, vk], I[vi], vk)", "T.min(V[vi], A[vi, vk])", False),
])
def test_an_argmax_of_a_script(index, value, known):
    func = from_source(f"{ARGMAX}            I[vi] = {index}\n            V[vi] = {value}\n")
    sch = Schedule(func)
    _, inner = sch.split(sch.get_loops("am")[1], [None, 7])
    if not known:
        with pytest.raises(ScheduleError, match="not known to combine terms"):
            sch.rfactor(inner, 0)
        return
    sch.rfactor(inner, 0)
    a = np.random.default_rng(0).permuted(np.tile(np.arange(30, dtype="int32"), (8, 1)), axis=1)
    found, best = np.zeros(8, "int32"), np.zeros(8, "int32")
    tw.build(sch.func)(a, found, best)
    assert (found == a.argmax(1)).all() and (best == a.max(1)).all()


@pytest.mark.parametrize("second, first", [
    ("C[0, 0] = C[0, 0] + A[vk]", "B[0] = B[0] + A[vk]"),            # elements at different indices
    ("C[0, 0] = C[0, 0] + B[0, 0]", "B[0, 0] = B[0, 0] + A[vk]"),    # sums of sums: in order
])
def test_what_is_no_tuple_of_sums(first, second):
    rank = 1 if "B[0]" in first else 2
    sch = Schedule(from_source(f"""
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer({(1,) * rank}, "int32"), C: T.Buffer((1, 1), "int32")):
    for k in range(8):
        with T.block("C"):
            vk = T.axis.reduce(8, k)
            with T.init():
                C[0, 0] = 0
                {first.split(" = ")[0]} = 0
            {second}
            {first}
"""))
    assert reduction_of(sch.get(sch.get_block("C"))) is None
