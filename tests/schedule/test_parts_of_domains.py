"""Blocks whose loops run a part of their domains only: dissolved or moved, they run for no other points."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.schedule.core_support import check_replay
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.verify import verify

WHOLE = "for i, j in T.grid(8, 8):"
NESTS = {                                          # loops, and the values of the two axes, of domain 8
    "part": ("for i, j in T.grid(8, 5):", "i", "j"),
    "tail": ("for i, j in T.grid(8, 5):", "i", "j + 3"),
    "backwards": ("for i, j in T.grid(8, 5):", "i", "6 - j"),
    "window": ("for i, t, j in T.grid(8, 3, 3):", "i", "t * 2 + j"),
    "halves": ("for i, j in T.grid(10, 4):", "i // 2", "j"),
    "first n": ("for i, j in T.grid(8, n):", "i", "j"),
    "last n": ("for i in range(8):\n        for j in range(8 - n, 8):", "i", "j"),
    "at most 6": ("for i, j in T.grid(8, T.min(n, 6)):", "i", "j"),
    "n times": ("for i, t, j in T.grid(8, n, 8):", "i", "j"),
    "windows of n": ("for i, t, j in T.grid(8, T.min(n, 3), 3):", "i", "t * 2 + j"),
    "triangle": ("for i in range(8):\n        for j in range(i):", "i", "j"),
    "every other": ("for i, j in T.grid(8, 4):", "i", "j * 2"),
    "diagonal": ("for i in range(8):", "i", "i"),
    "skewed": ("for i, j in T.grid(4, 5):", "i", "i + j"),
    "fused": ("for i, j in T.grid(2, 20):", "i * 4 + j // 8", "j % 8"),
    "uneven": ("for i, j in T.grid(8, 4):", "i", "j + j // 2"),
}
BOXES = ("part", "tail", "backwards", "window", "halves", "first n", "last n", "at most 6", "n times",
         "windows of n")


def nest(block: str, loops: str, vi: str, vj: str, stmt: str) -> str:
    """A block of two axes below loops."""
    deep = " " * (8 if "\n" in loops else 4)
    return f"""
    {loops}
    {deep}with T.block("{block}"):
    {deep}    vi = T.axis.spatial(8, {vi})
    {deep}    vj = T.axis.spatial(8, {vj})
    {deep}    {stmt}
"""


def three(*nests: tuple[str, str, str]) -> PrimFunc:
    """X = A * 2, Y = X + 3, C = Y + 1, each for the points of its nest."""
    stmts = ("X[vi, vj] = A[vi, vj] * 2", "Y[vi, vj] = X[vi, vj] + 3", "C[vi, vj] = Y[vi, vj] + 1")
    return from_source("""
@T.prim_func
def main(A: T.Buffer((8, 8), "int32"), C: T.Buffer((8, 8), "int32"), n: T.int32):
    X = T.alloc_buffer((8, 8), "int32")
    Y = T.alloc_buffer((8, 8), "int32")
""" + "".join(nest(name, *of, stmt) for name, of, stmt in zip("XYC", nests, stmts, strict=True)))


def result(func: PrimFunc, n: int) -> np.ndarray:
    """C, which holds -7 where it is not written."""
    a, c = np.arange(64, dtype="int32").reshape(8, 8), np.full((8, 8), -7, "int32")
    interp.run(func, a, c, n)
    return c


def accepted(func: PrimFunc, move: Callable[[Schedule], object]) -> bool:
    """Whether move is accepted; if so, it changes nothing for any n."""
    sch = Schedule(func)
    try:
        move(sch)
    except ScheduleError:
        return False
    verify(sch.func, "block")
    check_replay(sch, func)
    for n in (0, 1, 4, 8):
        np.testing.assert_array_equal(result(sch.func, n), result(func, n), err_msg=f"n = {n}\n{sch}")
    return True


@pytest.mark.parametrize("name", NESTS)
def test_a_consumer_of_a_part_is_dissolved_where_that_is_a_box(name):
    whole = (WHOLE, "i", "j")
    func = three(whole, whole, NESTS[name])
    assert accepted(func, lambda s: s.reverse_compute_inline("C")) == (name in BOXES)


@pytest.mark.parametrize("name", NESTS)
def test_a_consumer_is_dissolved_into_a_producer_that_runs_like_it(name):
    func = three(NESTS[name], NESTS[name], NESTS[name])
    assert accepted(func, lambda s: s.reverse_compute_inline("C"))
    assert accepted(func, lambda s: s.reverse_compute_inline("Y"))


@pytest.mark.parametrize("name", NESTS)
def test_a_moved_block_runs_for_no_other_points(name):
    alike, some = three(NESTS[name], NESTS[name], NESTS[name]), three((WHOLE, "i", "j"), NESTS[name], NESTS[name])
    for func in (alike, some):
        for depth in (0, -1):
            accepted(func, lambda s, at=depth: s.compute_at("Y", s.get_loops("C")[at]))
            accepted(func, lambda s, at=depth: s.reverse_compute_at("C", s.get_loops("Y")[at]))
            accepted(func, lambda s, at=depth: s.reverse_compute_at("Y", s.get_loops("X")[at]))


@pytest.mark.parametrize("name", ["part", "tail", "first n", "last n", "at most 6", "windows of n"])
def test_a_block_that_runs_a_part_is_computed_at_its_consumer(name):
    func = three(NESTS[name], NESTS[name], NESTS[name])
    assert accepted(func, lambda s: s.compute_at("Y", s.get_loops("C")[-1]))


@pytest.mark.parametrize("n", [0, 5, 8, 13])
def test_a_copy_of_a_padded_copy_is_dissolved_into_the_padding(n):
    """The middle one of three copies of padded extent runs for n elements only, once it is computed at the last one."""
    size = te.var("n")
    a = te.placeholder((size,), "int32", "a")
    b = te.compute((size,), lambda i: a[i] * 2, name="b")
    func = create_prim_func([a, te.compute((size,), lambda i: b[i] + 1, name="c")])
    sch = Schedule(func)
    sch.cache_write("b", 0, "global")
    sch.pad_einsum("b_global", [8])
    sch.compute_at("b_global", sch.get_loops("b_pad")[0])
    sch.reverse_compute_inline("b_pad")
    sch.reverse_compute_inline("b_global")
    x, got = np.arange(n, dtype="int32"), np.zeros(n, "int32")
    interp.run(sch.func, x, got)
    np.testing.assert_array_equal(got, x * 2 + 1)
    check_replay(sch, func)
