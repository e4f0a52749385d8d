"""Lanes that a condition masks off read memory only where somebody has written all of it."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.lowering import lower
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.tir import interp
from tilewright.tir.verify import verify


def check(func, *inputs, want):
    """func, in its forms and in native code, gives `want`; the interpreter sees no element that nothing wrote."""
    flat = lower(func)
    verify(flat, stage="flat")
    for form in (func, flat):
        out = np.full_like(want, 93)
        interp.run(form, *inputs, out)
        np.testing.assert_array_equal(out, want)
    out = np.full_like(want, 93)
    tw.build(func)["main"](*inputs, out)
    np.testing.assert_array_equal(out, want)


def test_a_layout_whose_indices_share_a_loop_has_holes():
    """Rows of 23 elements lie as 12 pairs: both indices take all of their values, one pair does not occur."""
    a = te.placeholder((4, 24), "int32", "a")
    b = te.compute((4, 23), lambda i, j: a[i, j], name="b")
    c = te.compute((4, 24), lambda i, j: te.if_then_else(j < 23, b[i, j], 0), name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.transform_layout(sch.get_block("b"), ("write", 0), lambda i, j: (i, j // 2, j % 2))
    sch.split(sch.get_loops(sch.get_block("c"))[0], [None, 3])
    sch.vectorize(sch.get_loops(sch.get_block("c"))[-1])
    x = np.arange(96, dtype="int32").reshape(4, 24)
    check(sch.func, x, want=np.where(np.arange(24) < 23, x, 0).astype("int32"))


@pytest.mark.parametrize("step, shift", [(2, 0), (3, 0), (2, 1)])
def test_stores_with_steps_leave_holes(step, shift):
    @T.prim_func
    def main(a: T.Buffer((3, 8), "int32"), out: T.Buffer((3, 26), "int32")):
        b = T.alloc_buffer((3, 26), "int32")
        for r, i in T.grid(3, 8):
            with T.block("b"):
                v, w = T.axis.remap("SS", [r, i])
                b[v, w * step + shift] = a[v, w]
        for ro, ri in T.grid(2, 2):
            for i in T.vectorized(26):
                with T.block("out"):
                    v = T.axis.spatial(3, ro * 2 + ri)
                    w = T.axis.spatial(26, i)
                    T.where(ro * 2 + ri < 3)
                    out[v, w] = T.if_then_else((w - shift) % step == 0 and w < 8 * step, b[v, w], -1)

    x = np.arange(24, dtype="int32").reshape(3, 8)
    want = np.full((3, 26), -1, "int32")
    want[:, shift:8 * step:step] = x
    check(main, x, want=want)


def test_lanes_beyond_a_row_do_not_read_the_next_one():
    """Row i of the buffer is written in step i, and read under a condition that leaves two lanes out."""
    @T.prim_func
    def main(a: T.Buffer((3, 6), "int32"), out: T.Buffer((8,), "int32")):
        b = T.alloc_buffer((3, 6), "int32")
        for r in range(3):
            for i in range(6):
                with T.block("b"):
                    v, w = T.axis.remap("SS", [r, i])
                    b[v, w] = a[v, w] * 2
            for i in T.vectorized(8):
                with T.block("out"):
                    v, w = T.axis.remap("SS", [r, i])
                    T.where(r * 8 + i < 6)
                    out[w] = b[v * 2 % 4, v * 8 + w]

    x = np.arange(18, dtype="int32").reshape(3, 6)
    check(main, x, want=np.append(x[0] * 2, [93, 93]).astype("int32"))


@pytest.mark.parametrize("n", [0, 1, 3, 4, 11])
def test_rows_that_nothing_fills_are_not_read(n):
    """The second part of the partitioned loop has no store into the local copy."""
    size = te.var("n")
    a = te.placeholder((size, 17), "float32", "a")
    b = te.compute((size, 17), lambda i, j: a[i, j] * 2.0, name="b")
    c = te.compute((size, 17), lambda i, j: b[i, j] + 1.0, name="c")
    sch = Schedule(te.create_prim_func([a, c]))
    sch.pad_einsum(sch.get_block("c"), [4, 2])
    pad = sch.get_block("b_pad")
    sch.vectorize(sch.get_loops(pad)[1])
    sch.read_at(sch.get_loops(pad)[1], pad, 0, "local")
    x = np.arange(17 * n, dtype="float32").reshape(n, 17)
    check(sch.func, x, want=x * 2 + 1)


@pytest.mark.parametrize("condition", ["a[io * 16 + ii] >= 3", "12 // (6 - (io * 16 + ii)) > 2"])
def test_conditions_that_fail_behind_the_end_stay_before_it(condition):
    """b has room for whole vectors, a has not: whether b is written is asked for six elements only."""
    func = from_source(f"""
from tilewright.script import tir as T
@T.prim_func
def main(a: T.Buffer((6,), "int32"), out: T.Buffer((6,), "int32")):
    b = T.alloc_buffer((48,), "int32")
    for i in range(6):
        with T.block("start"):
            v = T.axis.spatial(6, i)
            b[v] = 0
    for io in range(3):
        for ii in T.vectorized(16):
            with T.block("b"):
                v = T.axis.spatial(6, io * 16 + ii)
                T.where(io * 16 + ii < 6 and {condition})
                T.reads(a[v], b[v])
                T.writes(b[v])
                b[v] = b[v] + a[v]
    for io in range(3):
        for ii in T.vectorized(16):
            with T.block("out"):
                v = T.axis.spatial(6, io * 16 + ii)
                T.where(io * 16 + ii < 6)
                out[v] = b[v]
""")
    x = np.array([5, 1, 3, -4, 2, 7], "int32")
    held = x >= 3 if "a[" in condition else 12 // (6 - np.arange(6)) > 2
    check(func, x, want=np.where(held, x, 0).astype("int32"))


def test_an_index_that_is_checked_is_asked_for_in_lanes_that_are_on():
    """What follows from it is always inside of A: the check is not."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "int32"), C: T.Buffer((24,), "int32"), n: T.int32):
    for i in range(3):
        for k in T.vectorized(8):
            C[i * 8 + k] = T.if_then_else((i * 8 + k) * 3 < n, A[(T.checked_index((i * 8 + k) * 3, n) + 2) % 16], 7)
""")
    a = np.arange(16, dtype="int32")
    at = np.arange(24) * 3
    for run in (lambda *arrays: interp.run(lower(func), *arrays), tw.build(func)["main"],
                tw.build(func, target="c")["main"]):
        out = np.zeros(24, "int32")
        run(a, out, 20)
        np.testing.assert_array_equal(out, np.where(at < 20, a[(at + 2) % 16], 7))


def test_a_condition_of_what_an_index_reads_has_checks_of_its_own():
    """The index of a row's element is from data, which is read in the lanes for which a condition with another checked
    index holds; in the second vector, no lane is asked for."""
    @T.prim_func
    def main(given: T.handle, at: T.Buffer((31,), "int32"), out: T.Buffer((31,), "int32")):
        n = T.int32()
        a = T.match_buffer(given, (31, n), "int32")
        for io in range(2):
            for ii in T.vectorized(16):
                with T.block("out"):
                    i = T.axis.spatial(31, io * 16 + ii)
                    T.where(io * 16 + ii < 31)
                    out[i] = T.if_then_else(i * 4 + 2 < n, T.if_then_else(
                        at[i] + T.checked_index(i * 4 + 2, n) < n, a[i, T.max(T.min(at[i], 6), 0)], 7), 1)

    a, at = np.arange(31 * 8, dtype="int32").reshape(31, 8), np.array([3, -1, *[9] * 29], "int32")
    want = np.ones(31, "int32")
    want[:2] = a[0, 3], a[1, 0]
    check(main, a, at, want=want)
