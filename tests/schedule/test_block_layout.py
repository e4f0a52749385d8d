"""transform_block_layout: print, meaning, replay, native code."""
from __future__ import annotations

import textwrap

import pytest

from tilewright.schedule import Schedule
from tilewright.schedule.index_map import IndexMap
from tilewright.script import from_source

from .compute_support import body_text, chain, refuses
from .layout_support import conv2d, conv2d_reference, matmul, proven
from .test_layout import grid, grid_reference


def test_two_loops_become_one():
    func = grid(6, 8)
    sch = Schedule(func)
    sch.transform_block_layout("B", lambda i, j: (i * 8 + j,))
    assert textwrap.dedent(body_text(sch)).startswith(textwrap.dedent("""\
        B = T.alloc_buffer((6, 8), "int32")
        for ax0 in range(48):
            with T.block("B"):
                v0 = T.axis.spatial(48, ax0)
                B[v0 // 8, v0 % 8] = A[v0 // 8, v0 % 8] * 3
        """))
    proven(sch, func, grid_reference, (6, 8))


@pytest.mark.parametrize("index_map", [
    lambda i, j, k: (j, i, k), lambda i, j, k: (k // 5, j // 7, i, k % 5, j % 7), lambda i, j, k: (i * 14 + j, k),
    lambda i, j, k: (10 - i, 13 - j, 24 - k), lambda *i: i[::-1], lambda i, j, k: (j % 2, i, j // 2, k)])
def test_forms_of_maps_of_a_product(index_map):
    func = matmul(11, 14, 25)
    sch = Schedule(func)
    sch.transform_block_layout("C", index_map)
    proven(sch, func, lambda a, b: a @ b, (11, 25), (25, 14))


def test_a_convolution_as_a_matrix_product():
    """The implicit GEMM: output pixels, output channels, and the window with the input channels."""
    func = conv2d()
    sch = Schedule(func)
    sch.transform_block_layout("C", lambda o, y, x, c, i, j: (o, y * 9 + x, c * 9 + i * 3 + j))
    assert [str(loop.extent) for loop in sch.loops_above("C")] == ["5", "81", "27"]
    m, n, k = sch.get_loops("C")
    sch.split(n, [None, 8])
    sch.decompose_reduction("C", k)
    proven(sch, func, conv2d_reference, (3, 9, 9), (5, 3, 3, 3))


def test_a_map_of_no_variables_and_back():
    func = chain(12)
    sch = Schedule(func)
    there = IndexMap.from_func(lambda i: (i // 4, i % 4))
    sch.transform_block_layout("B", there)
    sch.transform_block_layout("B", there.inverse([12]))
    assert [str(loop.extent) for loop in sch.loops_above("B")] == ["12"]
    proven(sch, func, lambda a: a * 3 - 1, (12,))


def test_prime_extents_do_not_split():
    sch = Schedule(matmul(11, 13, 7))
    refuses(sch, lambda: sch.transform_block_layout("C", lambda i, j, k: (i // 4, i % 4, j, k)), "onto a box")


def test_a_block_that_may_not_run_at_all_is_not_laid_out_as_one_that_runs_once():
    """Of an axis that is 0 or nothing no index says whether there is one."""
    func = from_source("""
@T.prim_func
def main(n: T.int32, A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(T.min(n, 1)):
        with T.block("B"):
            v = T.axis.spatial(T.min(n, 1), i)
            B[v] = A[v]
""")
    sch = Schedule(func)
    refuses(sch, lambda: sch.transform_block_layout("B", lambda i: (i // 2, i % 2)),
            "does not take the domain of block B onto a box")
