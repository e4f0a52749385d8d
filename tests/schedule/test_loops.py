"""split, fuse and reorder: what they print, what they mean, what they refuse."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.core_support import check, check_replay, matmul, matmul_relu, run, scale
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import ArgumentError, ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir.expr import IntImm
from tilewright.tir.stmt import For


def triple(a: np.ndarray) -> np.ndarray:
    return a * 3


def loops_of(sch: Schedule, block: str) -> list[str]:
    """The loops around block as `name:extent`."""
    loops = [sch.get(rv) for rv in sch.get_loops(sch.get_block(block))]
    return [f"{loop.loop_var.name}:{loop.extent}" for loop in loops if isinstance(loop, For)]


@pytest.mark.parametrize(("n", "factors", "extents", "guarded"), [
    (10, [None, 4], [3, 4], True), (12, [None, 4], [3, 4], False), (12, [4, None], [4, 3], False),
    (10, [4, None], [4, 3], True), (10, [2, 5], [2, 5], False), (10, [3, 5], [3, 5], True),
    (24, [2, None, 3], [2, 4, 3], False), (7, [None], [7], False), (1, [None, 4], [1, 4], True),
    (1, [1, 1], [1, 1], False), (5, [1, 5, 1], [1, 5, 1], False),
])
def test_split_covers_the_loop(n, factors, extents, guarded):
    func = scale(n)
    sch = Schedule(func)
    i, = sch.get_loops(sch.get_block("B"))
    parts = sch.split(i, factors=factors)
    assert [sch.get(p).extent.value for p in parts] == extents
    assert ("T.where" in str(sch)) == guarded
    assert loops_of(sch, "B") == [f"i_{k}:{e}" for k, e in enumerate(extents)]
    check(sch, func, triple, (n,), size=(n,))


def test_split_prints():
    sch = Schedule(scale(10))
    sch.split(sch.get_loops("B")[0], [None, 4])
    assert """
    for i_0, i_1 in T.grid(3, 4):
        with T.block("B"):
            vi = T.axis.spatial(10, i_0 * 4 + i_1)
            T.where(i_0 * 4 + i_1 < 10)
            T.reads(A[vi])
            T.writes(B[vi])
            B[vi] = A[vi] * 3
""".strip() in str(sch)


def test_split_of_a_split_and_its_names():
    func = scale(30)
    sch = Schedule(func)
    outer, inner = sch.split(sch.get_loops("B")[0], [None, 8], names=["i.outer", "i.inner"])
    sch.split(inner, [None, 3])
    assert loops_of(sch, "B") == ["i.outer:4", "i.inner_0:3", "i.inner_1:3"]
    check(sch, func, triple, (30,), size=(30,))


def test_split_without_unit_iters():
    sch = Schedule(scale(12))
    sch.split(sch.get_loops("B")[0], [1, 12], preserve_unit_iters=False)
    assert "T.axis.spatial(12, i_1)" in str(sch)
    kept = Schedule(scale(12))
    kept.split(kept.get_loops("B")[0], [1, 12])
    assert "T.axis.spatial(12, i_0 * 12 + i_1)" in str(kept)


@pytest.mark.parametrize("n", [0, 1, 3, 4, 9])
def test_symbolic_split_and_fuse(n):
    size = te.var("n")
    func = scale(size)
    sch = Schedule(func)
    outer, inner = sch.split(sch.get_loops("B")[0], [None, 4])
    assert loops_of(sch, "B") == ["i_0:(n + 3) // 4", "i_1:4"]
    fused = sch.fuse(outer, inner)
    sch.parallel(fused)
    a = np.arange(n, dtype="int32")
    got, = run(sch.func, [a], [a])
    np.testing.assert_array_equal(got, a * 3)
    check_replay(sch, func)


def test_symbolic_extents_of_two_dimensions_fuse():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, m), "int32", name="A")
    b = te.compute((n, m), lambda i, j: a[i, j] + 1, name="B")
    func = create_prim_func([a, b])
    sch = Schedule(func)
    fused = sch.fuse(*sch.get_loops("B"))
    sch.parallel(fused)
    sch2 = Schedule(func)
    sch2.split(sch2.fuse(*sch2.get_loops("B")), [None, 4])
    for s in (sch, sch2):
        for shape in ((2, 3), (0, 3), (3, 0), (1, 1)):
            x = np.arange(np.prod(shape), dtype="int32").reshape(shape)
            got, = run(s.func, [x], [x])
            np.testing.assert_array_equal(got, x + 1)


def test_divisible_symbolic_split_has_no_guard():
    n = te.var("n")
    a = te.placeholder((n * 8,), "int32", name="A")
    sch = Schedule(create_prim_func([n, a, te.compute((n * 8,), lambda i: a[i] * 3, name="B")]))
    sch.split(sch.get_loops("B")[0], [None, 4])
    assert "T.where" not in str(sch)
    assert loops_of(sch, "B") == ["i_0:n * 2", "i_1:4"]


def test_zero_extent_loops():
    func = matmul(0, 3, 2)
    sch = Schedule(func)
    i, j, r = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    sch.reorder(r, j, i0, i1)
    sch.parallel(j)
    check(sch, func, lambda a, b: a @ b, (0, 2), (2, 3), size=(0, 3))


def test_an_empty_reduction_gives_nothing_to_run():
    sch = Schedule(matmul(2, 3, 0))
    i, j, r = sch.get_loops("C")
    assert [sch.get(part).extent.value for part in sch.split(r, [None, 4])] == [0, 4]


def test_fuse_prints_and_means_the_same():
    func = matmul()
    sch = Schedule(func)
    i, j, r = sch.get_loops("C")
    fused = sch.fuse(i, j, r)
    assert loops_of(sch, "C") == ["i_j_r_fused:120"]
    assert "T.axis.spatial(4, i_j_r_fused // 30)" in str(sch)
    assert "T.axis.spatial(6, i_j_r_fused // 5 % 6)" in str(sch)
    assert "T.axis.reduce(5, i_j_r_fused % 5)" in str(sch)
    sch.split(fused, [None, 7])
    check(sch, func, lambda a, b: a @ b, (4, 5), (5, 6), size=(4, 6))


def test_fuse_of_a_split_gives_the_loop_back():
    sch = Schedule(scale(12))
    parts = sch.split(sch.get_loops("B")[0], [None, 4])
    sch.fuse(*parts, name="i")
    assert "T.axis.remap(\"S\", [i])" in str(sch) or "T.axis.spatial(12, i)" in str(sch)


def test_reorder_keeps_the_places_of_other_loops():
    func = matmul()
    sch = Schedule(func)
    i, j, r = sch.get_loops("C")
    sch.reorder(r, i)
    assert loops_of(sch, "C") == ["r:5", "j:6", "i:4"]
    sch.reorder(j, r)
    assert loops_of(sch, "C") == ["j:6", "r:5", "i:4"]
    sch.reorder(j)
    check(sch, func, lambda a, b: a @ b, (4, 5), (5, 6), size=(4, 6))


def test_tiled_matmul():
    func = matmul(7, 9, 5)
    sch = Schedule(func)
    i, j, r = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 4])
    j0, j1 = sch.split(j, [None, 4])
    r0, r1 = sch.split(r, [None, 2])
    sch.reorder(i0, j0, r0, i1, r1, j1)
    sch.parallel(sch.fuse(i0, j0))
    sch.vectorize(j1)
    sch.unroll(r1)
    check(sch, func, lambda a, b: a @ b, (7, 5), (5, 9), size=(7, 9))


def refused(match: str, act, *args, **kwargs) -> str:
    """act(...) raises a ScheduleError that matches; its text."""
    with pytest.raises(ScheduleError, match=match) as why:
        act(*args, **kwargs)
    return str(why.value)


def test_split_refuses():
    sch = Schedule(scale(10))
    i, = sch.get_loops("B")
    text = refused("the factors cover 6 iterations, loop i has 10", sch.split, i, [2, 3])
    assert text.startswith("split(loop=i, factors=[2, 3]): ")
    assert "for i in range(10):  # <-- here" in text
    assert text.endswith("hint: [None, 3] infers the outer factor")
    refused("more than one factor is None", sch.split, i, [None, None])
    refused("the factor 0 is not positive", sch.split, i, [None, 0])
    refused("the factor -2 is not positive", sch.split, i, [-2, None])
    refused("the factor 2.5 is not an integer", sch.split, i, [None, 2.5])
    refused("not a list", sch.split, i, 4)
    refused("not a list", sch.split, i, [])
    refused("2 factors, 1 names", sch.split, i, [None, 2], names=["a"])
    refused("expected a loop", sch.split, sch.get_block("B"), [None, 2])
    with pytest.raises(ArgumentError, match=r"split\(loop, factors"):
        sch.split(i)
    sch.vectorize(i)
    refused("loop i is vectorized; only a serial loop can be split", sch.split, i, [None, 2])


def test_split_needs_to_cover_a_symbolic_extent():
    sch = Schedule(scale(te.var("n")))
    refused("the factors cover 8 iterations, loop i has n", sch.split, sch.get_loops("B")[0], [2, 4])


def test_annotated_loops_are_not_split_or_fused():
    sch = Schedule(matmul())
    i, j, r = sch.get_loops("C")
    sch.annotate(i, "pragma", 1)
    refused("loop i is annotated with pragma", sch.split, i, [None, 2])
    refused("loop i is annotated with pragma", sch.fuse, i, j)
    sch.unannotate(i, "pragma")
    sch.split(i, [None, 2])


def test_fuse_refuses():
    sch = Schedule(matmul_relu())
    i, j, r = sch.get_loops("C")
    k, _ = sch.get_loops("D")
    refused("loop i is not the whole body of loop j", sch.fuse, j, i)
    refused("loop r is not the whole body of loop i", sch.fuse, i, r)
    refused("loop i is not the whole body of loop i", sch.fuse, i, k)
    refused("no loop to fuse", sch.fuse)
    sch.bind(i, "blockIdx.x")
    refused("loop i is bound to blockIdx.x", sch.fuse, i, j)


def test_reorder_refuses():
    sch = Schedule(matmul_relu())
    i, j, r = sch.get_loops("C")
    k, _ = sch.get_loops("D")
    refused("given twice", sch.reorder, i, j, i)
    refused("not nested in one another", sch.reorder, i, k)
    refused("no loop to reorder", sch.reorder)
    sch.decompose_reduction("C", r)
    refused("holds more than the loop down to r", sch.reorder, r, j)


def test_consumed_loops_are_named():
    sch = Schedule(matmul())
    i, j, r = sch.get_loops("C")
    parts = sch.split(i, [None, 2])
    text = refused("loop i does not exist any more: split consumed it", sch.vectorize, i)
    assert "use what split returned" in text
    sch.fuse(*parts)
    refused("fuse consumed it", sch.parallel, parts[0])
    with pytest.raises(ScheduleError, match="fuse consumed it"):
        sch.get(parts[1])


def test_a_refusal_changes_nothing():
    sch = Schedule(matmul())
    i, j, r = sch.get_loops("C")
    sch.split(i, [None, 2])
    before, trace = sch.func, str(sch.trace)
    refused("reduction", sch.parallel, r)
    refused("cover", sch.split, j, [2, 2])
    assert sch.func is before and str(sch.trace) == trace


def test_factors_may_be_constants_of_the_ir_or_numpy():
    sch = Schedule(scale(12))
    a, b = sch.split(sch.get_loops("B")[0], [None, IntImm(4)])
    sch.split(a, [np.int64(3), 1])
    check_replay(sch, scale(12))


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0), (1, 1), (1, 3), (3, 1)])
def test_fuse_of_empty_and_unit_loops(n, m):
    a = te.placeholder((n, m), "int32", name="A")
    func = create_prim_func([a, te.compute((n, m), lambda i, j: a[i, j] * 3, name="B")])
    sch = Schedule(func)
    fused = sch.fuse(*sch.get_loops("B"))
    sch.split(fused, [None, 2])
    sch.fuse(*sch.get_loops("B"))
    check(sch, func, triple, (n, m), size=(n, m))


def test_fuse_counts_in_64_bits_where_32_do_not_reach():
    sch = Schedule(from_source("""
        @T.prim_func
        def f(A: T.Buffer((65536, 65537), "int8")):
            for i, j in T.grid(65536, 65537):
                with T.block("S"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    A[vi, vj] = T.int8(1)
    """))
    loop = sch.get(sch.fuse(*sch.get_loops("S")))
    assert loop.loop_var.dtype == "int64" and loop.extent.value == 65536 * 65537
    assert "T.Cast(\"int32\", i_j_fused // T.int64(65537))" in str(sch.func)


def test_loops_of_a_sum_that_also_drive_its_output_keep_their_order_around_a_loop_between_them():
    a, k = te.placeholder((4, 5, 6), "int32", name="A"), te.reduce_axis((0, 6), name="k")
    c = te.compute((4, 5), lambda i, j: te.sum(a[i, j, k], axis=k), name="C")
    sch = Schedule(create_prim_func([a, c]))
    i, j, k = sch.get_loops("C")
    sch.reorder(i, k, j)
    outer, inner = sch.split(sch.fuse(i, k), [None, 4])
    refused("breaks a dependence of block C on C", sch.reorder, inner, j, outer)
