"""What memory decides where a statement begins stays so, whatever the statement then does to that memory."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering import lower
from tilewright.script import from_source
from tilewright.support.errors import LowerError
from tilewright.tir import interp


def leaves(body, a, **want):
    """The arguments after the body ran: A as in a, C and D of 8 zeros; by the interpreter, lowered, and native."""
    head = 'A: T.Buffer((3,), "int32"), C: T.Buffer((8,), "int32"), D: T.Buffer((8,), "int32")'
    func = from_source(f"@T.prim_func\ndef f({head}):\n{body}")
    flat, built = lower(func), tw.build(func)
    for run in (lambda *x: interp.run(func, *x), lambda *x: interp.run(flat, *x), built):
        arrays = {"A": np.array(a, "int32"), "C": np.zeros(8, "int32"), "D": np.zeros(8, "int32")}
        run(*arrays.values())
        assert {n: arrays[n].tolist() for n in want} == want


def test_axes():
    leaves("""
    for t in range(3):
        with T.block("R"):
            vi = T.axis.spatial(8, A[t])
            A[0] = 5
            A[1] = 6
            A[2] = 7
            C[vi] = vi + 1
""", [1, 2, 3], A=[5, 6, 7], C=[0, 2, 0, 0, 0, 0, 7, 8])


def test_an_axis_below_a_condition_that_keeps_it_in_bounds():
    leaves("""
    for t in range(8):
        with T.block("R"):
            vi = T.axis.spatial(8, A[t])
            T.where(t < 3)
            A[t] = 7
            C[vi] = vi + 1
""", [1, 2, 3], C=[0, 2, 3, 4, 0, 0, 0, 0])


@pytest.mark.parametrize("loop, want", [
    ("range(A[0], A[0] + 1)", [0, 11, 0, 0, 0, 0, 0, 0]),
    ("range(A[0], A[0] + 3)", [0, 11, 12, 13, 0, 0, 0, 0]),
    ("T.unroll(A[0], A[0] + 3)", [0, 11, 12, 13, 0, 0, 0, 0]),
    ("range(A[0] + 2)", [10, 11, 12, 0, 0, 0, 0, 0]),
])
def test_bounds_of_loops(loop, want):
    leaves(f"""
    for i in {loop}:
        A[0] = 5
        C[i] = i + 10
""", [1, 2, 3], C=want)


def test_a_loop_that_is_cut_where_a_condition_below_ends():
    leaves("""
    for i in range(A[0]):
        with T.block("X"):
            vi = T.axis.opaque(8, i)
            D[vi] = 1
            A[0] = 0
        with T.block("Y"):
            vi = T.axis.opaque(8, i)
            T.where(i < 4)
            C[vi] = 1
""", [7, 0, 0], C=[1, 1, 1, 1, 0, 0, 0, 0], D=[1] * 7 + [0])


@pytest.mark.parametrize("size", ["vi + 1", "A[0] + vi"])
def test_an_allocation_of_a_lane_whose_size_the_lane_decides(size):
    leaves(f"""
    for i in T.vectorized(8):
        with T.block("X"):
            vi = T.axis.spatial(8, i)
            B = T.alloc_buffer(({size},), "int32")
            B[vi] = vi + 2
            C[vi] = B[vi]
""", [1, 0, 0], C=[2, 3, 4, 5, 6, 7, 8, 9])


def test_what_an_allocation_is_placed_by():
    leaves("""
    B = T.alloc_buffer((16,), "int32")
    for i in range(A[0], A[0] + 4):
        B[i] = i + 10
    A[0] = A[0] + 1
    for i in range(A[0], A[0] + 3):
        C[i] = B[i]
""", [2, 0, 0], C=[0, 0, 0, 13, 14, 15, 0, 0])


def test_the_extent_of_a_parallel_loop_that_is_read_twice_over():
    leaves("""
    for i in T.parallel(A[A[0]]):
        C[i] = 1
""", [2, 0, 5], C=[1, 1, 1, 1, 1, 0, 0, 0])


def test_stages_of_a_pipeline():
    leaves("""
    for i in T.serial(A[0], annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        for u in range(1):
            A[0] = 3
        for u in range(1):
            D[i] = i + 2
""", [5, 0, 0], D=[2, 3, 4, 5, 6, 0, 0, 0])


def test_views():
    leaves("""
    with T.block("X"):
        T.reads(A[0:3])
        T.writes(A[0:3], C[0:8])
        V = T.match_buffer(C[A[0]:A[0] + 4], (4,), "int32")
        A[0] = 4
        V[0] = 5
        V[1] = 6
""", [1, 0, 0], C=[0, 5, 6, 0, 0, 0, 0, 0])


def test_a_view_whose_place_the_init_changes_is_refused():
    func = from_source("""@T.prim_func
def f(A: T.Buffer((3,), "int32"), C: T.Buffer((8,), "int32")):
    for k in range(3):
        with T.block("X"):
            vk = T.axis.reduce(3, k)
            T.reads(A[0:3], C[0:8])
            T.writes(A[0:3], C[0:8])
            V = T.match_buffer(C[A[0]:A[0] + 4], (4,), "int32")
            with T.init():
                A[0] = 4
            V[vk] = 5
""")
    with pytest.raises(LowerError, match="the init of block X writes what says where a view of the block begins"):
        lower(func)
