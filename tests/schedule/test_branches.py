"""Blocks under `if`: what a block computes only under a condition is not taken for granted outside of it."""
from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.core_support import check_replay
from tests.schedule.test_loops import refused
from tilewright.schedule import Schedule
from tilewright.script import tir as T
from tilewright.tir import PrimFunc, interp


@T.prim_func
def kept(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32")):
    """B is made by the first iteration and read by all."""
    B = T.alloc_buffer((8,), "int32")
    for t in range(4):
        for i in range(8):
            if t == 0:
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    B[vi] = A[vt, vi]
        for i in range(8):
            with T.block("C"):
                vt, vi = T.axis.remap("SS", [t, i])
                C[vt, vi] = B[vi]


@pytest.mark.parametrize("how", ["parallel", "vectorize", "bind"])
def test_what_one_iteration_writes_under_a_condition_is_not_its_own(how):
    sch = Schedule(kept)
    t = sch.get_loops("C")[0]
    refused("two of its iterations may touch the same element of B", getattr(sch, how), t,
            *(["blockIdx.x"] if how == "bind" else []))
    a, c = np.arange(32, dtype="int32").reshape(4, 8), np.zeros((4, 8), "int32")
    interp.run(sch.func, a, c)
    assert (c == a[0]).all()


@T.prim_func
def partial(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        if i < n:
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2
    for i in range(8):
        if i < n:
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi] + 1


def run_partial(func: PrimFunc) -> None:
    """C is computed up to n, and the interpreter finds no element that is read unwritten."""
    for n in (0, 3, 8):
        a, c = np.arange(8, dtype="int32"), np.full(8, -1, "int32")
        interp.run(func, a, c, n)
        assert (c == np.where(np.arange(8) < n, 2 * a + 1, -1)).all()


@pytest.mark.parametrize("copy", [
    lambda sch: sch.cache_read("C", 0, "local"),
    lambda sch: sch.reindex("C", ("read", 0)),
    lambda sch: sch.reindex_cache_read("C", 0, "local", lambda i: i),
])
def test_a_copy_does_not_read_what_a_condition_leaves_unwritten(copy):
    run_partial(partial)
    refused("the copy would read elements of B that may not be written by then", copy, Schedule(partial))


@T.prim_func
def inplace(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        if n > 3:
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi]
    for i in range(8):
        if n > 3:
            with T.block("D"):
                vi = T.axis.spatial(8, i)
                B[vi] = B[vi] + 1
    for i in range(8):
        if n > 3:
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = B[vi]


def test_cache_inplace_does_not_read_what_a_condition_leaves_unwritten():
    sch = Schedule(inplace)
    refused("written", sch.cache_inplace, "D", 0, "local")


@T.prim_func
def chosen(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32):
    B = T.alloc_buffer((8,), "int32")
    for i in range(8):
        if n > 3:
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * 2
    for i in range(8):
        with T.block("C"):
            vi = T.axis.spatial(8, i)
            C[vi] = T.if_then_else(n > 3, B[vi], -5)


def test_a_consumer_is_not_dissolved_into_a_producer_that_a_condition_may_skip():
    sch = Schedule(chosen)
    refused("block B is not shown to run for all its elements", sch.reverse_compute_inline, "C")
    for n in (0, 5):
        a, c = np.arange(8, dtype="int32"), np.zeros(8, "int32")
        interp.run(chosen, a, c, n)
        assert (c == (2 * a if n > 3 else -5)).all()


@T.prim_func
def window(A: T.Buffer((12,), "int32"), C: T.Buffer((8,), "int32"), n: T.int32):
    B = T.alloc_buffer((10,), "int32")
    for t in range(4):
        for i in range(4):
            if t >= n:
                with T.block("B"):
                    vi = T.axis.spatial(10, t * 2 + i)
                    B[vi] = A[vi] * 2
        for i in range(2):
            if t >= n:
                with T.block("C"):
                    vi = T.axis.spatial(8, t * 2 + i)
                    C[vi] = B[vi] + B[vi + 2]


def test_a_buffer_rolls_only_where_each_iteration_computes():
    """Where the first iterations compute nothing, a later one does not find what they would have left."""
    refused("block B stands below a condition", Schedule(window).rolling_buffer, "B", 0)


@T.prim_func
def rows(A: T.Buffer((4, 8), "int32"), C: T.Buffer((4, 8), "int32"), n: T.int32):
    B = T.alloc_buffer((4, 8), "int32")
    for t in range(4):
        if t >= n:
            for i in range(8):
                with T.block("B"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    B[vt, vi] = A[vt, vi] * 2
            for j, k in T.grid(2, 4):
                with T.block("C"):
                    vt = T.axis.spatial(4, t)
                    vi = T.axis.spatial(8, j * 4 + k)
                    C[vt, vi] = B[vt, vi] + 1
        else:
            for i in range(8):
                with T.block("Z"):
                    vt, vi = T.axis.remap("SS", [t, i])
                    C[vt, vi] = 7


def run_rows(func: PrimFunc) -> None:
    rng = np.random.default_rng(0)
    for n in (-1, 0, 2, 4):
        a, c = rng.integers(0, 100, (4, 8)).astype("int32"), np.zeros((4, 8), "int32")
        interp.run(func, a, c, n)
        assert (c == np.where(np.arange(4)[:, None] >= n, 2 * a + 1, 7)).all()


@pytest.mark.parametrize("index", [-1, -2, 0])
def test_compute_at_within_one_branch(index):
    sch = Schedule(rows)
    sch.compute_at("B", sch.get_loops("C")[1], index=index)
    run_rows(sch.func)
    check_replay(sch, rows)
    sch.compute_at("B", sch.get_loops("C")[2])
    run_rows(sch.func)
    assert [loop.var.name for loop in sch.get_loops("B")] == ["t", "j", "k"]


def test_reverse_compute_at_within_one_branch():
    sch = Schedule(rows)
    t, i = sch.get_loops("B")
    outer, _ = sch.split(i, [None, 4])
    sch.reverse_compute_at("C", outer)
    run_rows(sch.func)
    check_replay(sch, rows)


def test_a_block_does_not_leave_its_branch():
    sch = Schedule(rows)
    refused("block B stands below a condition", sch.compute_at, "B", sch.get_loops("Z")[1])
    refused("block B shares a branch with other blocks", sch.cache_write, "B", 0, "local")
    sch = Schedule(partial)
    refused("block B stands below a condition", sch.compute_at, "B", sch.get_loops("C")[0])
    refused("block C stands below a condition", sch.reverse_compute_at, "C", sch.get_loops("B")[0])


@T.prim_func
def mirrored(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32"), D: T.Buffer((4,), "int32"), n: T.int32):
    B = T.alloc_buffer((4,), "int32")
    for t in range(4):
        with T.block("Z"):
            vt = T.axis.spatial(4, t)
            B[vt] = 5
    for t in range(4):
        if t < n:
            for _ in range(1):
                with T.block("B"):
                    vt = T.axis.spatial(4, 3 - t)
                    B[vt] = A[vt] * 2
            for _ in range(1):
                with T.block("C"):
                    vt = T.axis.spatial(4, 3 - t)
                    C[vt] = B[vt]
    for t in range(4):
        with T.block("D"):
            vt = T.axis.spatial(4, t)
            D[vt] = B[vt]


def run_mirrored(func: PrimFunc) -> None:
    for n in range(5):
        a, c, d = np.arange(4, dtype="int32"), np.zeros(4, "int32"), np.zeros(4, "int32")
        interp.run(func, a, c, d, n)
        made = np.arange(4) >= 4 - n
        assert (c == np.where(made, 2 * a, 0)).all() and (d == np.where(made, 2 * a, 5)).all()


def test_a_condition_chooses_the_iterations_of_what_moves_below_it():
    run_mirrored(mirrored)
    sch = Schedule(mirrored)
    sch.compute_at("B", sch.get_loops("C")[1])
    run_mirrored(sch.func)


@T.prim_func
def neighbours(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32"), n: T.int32):
    B = T.alloc_buffer((4,), "int32")
    for t in range(4):
        if t >= n:
            for _ in range(1):
                with T.block("B"):
                    vt = T.axis.spatial(4, t)
                    B[vt] = A[vt] * 2
            for _ in range(1):
                with T.block("C"):
                    vt = T.axis.spatial(4, t)
                    C[vt] = B[T.max(vt - 1, n)]


def test_under_a_condition_each_iteration_runs_the_part_that_it_ran():
    """B of the iteration before would be computed here, where the condition holds, and not there, where it may not."""
    sch = Schedule(neighbours)
    refused("under|below a condition", sch.compute_at, "B", sch.get_loops("C")[1])
