"""Loops whose bounds depend on the loops around, and loops that never run, under the primitives."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.core_support import check_replay
from tests.schedule.test_loops import refused
from tilewright import driver
from tilewright.schedule import Schedule
from tilewright.schedule.analysis.domains import domains_of
from tilewright.schedule.analysis.mixed_radix import reach
from tilewright.script import from_source
from tilewright.tir import interp
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.verify import verify


def triangle() -> PrimFunc:
    """B[i, j] is 2 * A[i, j] up to the diagonal and 7 above it; C is B transposed, + 1."""
    return from_source("""
@T.prim_func
def f(n: T.int32, A: T.Buffer((n, n), 'int32'), C: T.Buffer((n, n), 'int32')):
    B = T.alloc_buffer((n, n), 'int32')
    for i in range(n):
        for j in range(i + 1):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.spatial(n, j)
                B[vi, vj] = A[vi, vj] * 2
    for i in range(n):
        for j in range(i + 1, n):
            with T.block("B2"):
                vi = T.axis.spatial(n, i)
                vj = T.axis.spatial(n, j)
                B[vi, vj] = 7
    for i, j in T.grid(n, n):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vj, vi] + 1
""")


def check_triangle(sch: Schedule) -> None:
    """The interpreter and native code give the triangle, at sizes down to 0."""
    verify(sch.func, "block")
    check_replay(sch, triangle())
    native = driver.build(sch.func, target="llvm")
    for n in (0, 1, 5, 9):
        a = np.random.default_rng(n).integers(-9, 9, (n, n)).astype("int32")
        want = np.where(np.arange(n)[:, None] >= np.arange(n), a * 2, 7).T + 1
        for run in (lambda *args: interp.run(sch.func, *args), native):
            out = np.full((n, n), 77, "int32")
            run(n, a, out)
            np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("factors", [[None, 8], [None, 3, 2]])
def test_a_condition_stays_on_what_stands_beside_a_loop_that_implies_it(factors):
    sch = Schedule(triangle())
    _, inner = sch.split(sch.get_loops("B2")[0], [None, 4])
    sch.reverse_compute_at("C", inner)
    sch.split(inner, factors)                # loop j of B2 has iterations only where the row is inside
    check_triangle(sch)


def test_merged_loops_keep_their_conditions():
    sch = Schedule(triangle())
    outer = [sch.split(sch.get_loops(b)[0], [None, 4])[0] for b in ("B", "B2")]
    sch.merge(*outer)
    check_triangle(sch)


@pytest.mark.parametrize("stage", [
    lambda sch: sch.reindex("B2", ("write", 0)),
    lambda sch: sch.cache_write("B2", 0, "local")])
def test_a_triangle_is_no_box_when_its_rows_are_split(stage):
    sch = Schedule(triangle())
    sch.split(sch.get_loops("B2")[0], [None, 3])
    refused("there are no box|is not shown", stage, sch)
    check_triangle(sch)


def test_a_copy_of_a_triangle_with_split_rows_has_fixed_bounds():
    sch = Schedule(triangle())
    sch.split(sch.get_loops("B")[0], [None, 3])
    sch.cache_read("B", 0, "local")
    check_triangle(sch)


def test_the_axes_of_a_blockized_triangle_have_domains_of_their_own():
    sch = Schedule(triangle())
    sch.split(sch.get_loops("B2")[0], [None, 3])
    for name in ("B", "B2"):
        sch.blockize([sch.get_block(name)])
    assert "vj = T.axis.spatial(n, j)" in str(sch)
    check_triangle(sch)


def nothing_to_sum() -> PrimFunc:
    """B = 2 * A; D is a sum of no elements that starts at 5; C = B + D."""
    return from_source("""
@T.prim_func
def f(A: T.Buffer((8,), 'int32'), C: T.Buffer((8,), 'int32'), D: T.Buffer((8,), 'int32')):
    B = T.alloc_buffer((8,), 'int32')
    for i in range(8):
        with T.block("B"):
            vi = T.axis.spatial(8, i)
            B[vi] = A[vi] * 2
    for i, k in T.grid(8, 0):
        with T.block("S"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                D[vi] = 5
            D[vi] = D[vi] + B[vk]
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = B[vi] + D[vi]
""")


def check_nothing(sch: Schedule) -> None:
    a = np.arange(8, dtype="int32")
    check_replay(sch, nothing_to_sum())
    for run in (lambda *args: interp.run(sch.func, *args), driver.build(sch.func, target="llvm")):
        c, d = np.full(8, 77, "int32"), np.full(8, 77, "int32")
        run(a, c, d)
        np.testing.assert_array_equal(d, 5)
        np.testing.assert_array_equal(c, a * 2 + 5)


def test_a_sum_of_nothing_starts_wherever_it_is_computed():
    sch = Schedule(nothing_to_sum())
    i, = sch.get_loops("B")
    sch.reverse_compute_at("S", i, index=-2)
    sch.split(i, [3, 3])
    check_nothing(sch)


def test_a_part_of_an_output_axis_is_not_fused_with_a_sum_of_nothing():
    sch = Schedule(nothing_to_sum())
    i, k = sch.get_loops("S")
    outer, inner = sch.split(i, [None, 2])
    refused("would not tell which elements block S starts", sch.fuse, inner, k)
    sch.fuse(outer, inner, k)
    check_nothing(sch)


UNGUARDED = {
    "extent": ["for j in range(I[i]):"],
    "branch": ["if I[i] < 9:", "    for j in range(I[i]):"],
    "variable": ["x: T.int32 = I[i]", "for j in range(x):"],
    "assertion of memory": ["assert I[i] < 9", "for j in range(I[i]):"],
    "assertion of the loop": ["assert i < 7", "for j in range(I[i]):"],
    "store": ["C[i, 8] = 1", "for j in range(I[i]):"],
}


@pytest.mark.parametrize("lines", UNGUARDED.values(), ids=UNGUARDED)
def test_what_stands_beside_blocks_keeps_to_the_loop_that_was_split(lines):
    indent = " " * (8 + len(lines[-1]) - len(lines[-1].lstrip()))
    func = from_source("""
@T.prim_func
def f(I: T.Buffer((7,), 'int32'), C: T.Buffer((7, 9), 'int32')):
    for i in range(7):
""" + "\n".join(f"        {line}" for line in lines) + f"""
{indent}    with T.block("C"):
{indent}        vi = T.axis.spatial(7, i)
{indent}        vj = T.axis.spatial(9, j)
{indent}        T.where(I[i] != 3)
{indent}        C[vi, vj] = vi + vj
""")
    sch = Schedule(func)
    sch.split(sch.get_loops("C")[0], [2, 4])
    verify(sch.func, "block")
    check_replay(sch, func)
    sizes = np.array([3, 0, 8, 1, 3, 8, 5], "int32")
    i, j = np.indices((7, 9))
    want = np.where((j < sizes[:, None]) & (sizes[:, None] != 3), i + j, 77)
    if lines[0].startswith("C"):
        want[:, 8] = 1
    for run in (lambda *args: interp.run(sch.func, *args), driver.build(sch.func, target="llvm")):
        out = np.full((7, 9), 77, "int32")
        run(sizes, out)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("act", [
    lambda sch: sch.decompose_reduction("C", sch.get_loops("C")[0]),
    lambda sch: sch.cache_write("C", 0, "local"),
    lambda sch: sch.reindex("C", ("write", 0))])
def test_a_block_below_a_branch_keeps_its_condition(act):
    sch = Schedule(from_source("""
@T.prim_func
def f(n: T.int32, A: T.Buffer((8,), 'int32'), C: T.Buffer((8,), 'int32')):
    for i in range(8):
        if n > 3:
            for k in range(8):
                with T.block("C"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = 0
                    C[vi] = C[vi] + A[vk]
"""))
    refused("block C stands below a condition", act, sch)
    sch.decompose_reduction("C", sch.get_loops("C")[1])
    for n, want in ((2, 77), (5, 28)):
        out = np.full(8, 77, "int32")
        interp.run(sch.func, n, np.arange(8, dtype="int32"), out)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("extent, together", [("3", True), ("i + 1", False)])
def test_loops_that_a_condition_cuts_stay_apart_where_another_runs_as_far_as_one(extent, together):
    sch = Schedule(from_source(f"""
@T.prim_func
def main(P: T.Buffer((10, 3), "int32")):
    for i, j in T.grid(3, 4):
        for k in range({extent}):
            with T.block("P"):
                v = T.axis.spatial(10, i * 4 + j)
                w = T.axis.spatial(3, k)
                T.where(i * 4 + j < 10)
                P[v, w] = v
"""))
    realize, loops = sch.realize("P"), sch.index.loops_above(sch.realize("P"))
    _, ranges = reach(realize, domains_of(loops))
    assert len(ranges) == (2 if together else 3)
