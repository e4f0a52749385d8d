"""Loops that the body of a block names: each becomes an axis of the block."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.script.round_trip import assert_round_trip
from tilewright import tir
from tilewright.script import tir as T
from tilewright.support.errors import ScheduleError
from tilewright.tir import assert_structural_equal

a = np.arange(32, dtype="float32").reshape(4, 8)


def ran(func, *arrays):
    native, oracle = ([x.copy() for x in arrays] for _ in range(2))
    tw.build(func)(*native)
    tir.interp.run(func, *oracle)
    for x, y in zip(native, oracle, strict=True):
        np.testing.assert_array_equal(x, y)
    return native


def axes_of(func, name):
    realize = next(n for n in tir.walk(func.body) if isinstance(n, tir.BlockRealize) and n.block.name == name)
    return [(iv.var.name, iv.iter_type, str(v)) for iv, v in zip(realize.block.iter_vars, realize.iter_values)]


def test_a_loop_is_the_axis_that_is_bound_to_it_or_one_more():
    @T.prim_func
    def f(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                T.reads(A[vi, j])
                T.writes(B[i, j])
                B[i, j] = A[vi, j] + T.cast(i, "float32")

    @T.prim_func
    def written(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4, 8), "float32")):
        T.func_attr({"global_symbol": "f"})
        for i, j in T.grid(4, 8):
            with T.block("B"):
                vi, v_j = T.axis.remap("SS", [i, j])
                B[vi, v_j] = A[vi, v_j] + T.cast(vi, "float32")

    assert_structural_equal(f, written)
    assert_round_trip(f)
    assert (ran(f, a, np.zeros_like(a))[1] == a + np.arange(4)[:, None]).all()


def test_a_loop_around_calls_alone_is_opaque():
    @T.prim_func
    def calls(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("call"):
                T.call_packed("any", A.access_ptr("r"), i)

    assert axes_of(calls, "call") == [("v_i", tir.iter_var.OPAQUE, "i")]
    sch = tw.Schedule(calls)
    for primitive in (sch.parallel, sch.vectorize):
        with pytest.raises(ScheduleError, match="carries the ordered axis of block call"):
            primitive(sch.get_loops("call")[0])


def test_what_a_store_does_not_name_is_opaque_and_keeps_its_order():
    @T.prim_func
    def last(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i, j in T.grid(4, 8):
            with T.block("B"):
                B[i] = A[i, j]
                C[i] = T.if_then_else(j == 0, T.float32(0), C[i]) * T.float32(2) + A[i, j]

    assert axes_of(last, "B") == [("v_i", tir.DATA_PARALLEL, "i"), ("v_j", tir.OPAQUE, "j")]
    horner = [[float(np.polyval(row, 2))] for row in a]
    for func in (last, _reordered(last)):
        _, b, c = ran(func, a, *np.zeros((2, 4), "float32"))
        assert (b == a[:, -1]).all() and (c == np.ravel(horner)).all()


def _reordered(func):
    sch = tw.Schedule(func)
    i, j = sch.get_loops("B")
    with pytest.raises(ScheduleError):
        sch.parallel(j)
    with pytest.raises(ScheduleError):
        sch.reorder(*reversed(sch.split(j, [2, None])))
    sch.reorder(sch.get_loops("B")[1], i)
    return sch.func


def test_blocks_inside_blocks_see_the_axes_of_those_around():
    @T.prim_func
    def nested(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("row"):
                for j in range(8):
                    with T.block("B"):
                        v = T.axis.spatial(4, i)
                        with T.init():
                            B[i] = T.float32(0)
                        k = T.axis.reduce(8, j)
                        B[v] = B[v] + A[i, k] * T.cast(j, "float32")

    assert axes_of(nested, "row") == [("v_i", tir.DATA_PARALLEL, "i")]
    assert axes_of(nested, "B") == [("v", tir.DATA_PARALLEL, "v_i"), ("k", tir.COMM_REDUCE, "j")]
    assert_round_trip(nested)
    assert (ran(nested, a, np.zeros(4, "float32"))[1] == a @ np.arange(8)).all()


def test_loops_over_other_loops_and_memory_of_the_block():
    @T.prim_func
    def triangle(B: T.Buffer((4, 8), "int32")):
        for i in range(4):
            for j in range(i, 8):
                with T.block("B"):
                    W = T.alloc_buffer((i + 1,), "int32")
                    W[i] = i * 10 + j
                    B[i, j] = W[i]

    sch = tw.Schedule(triangle)
    assert [iv.dom.extent.value for iv in sch.get(sch.get_block("B")).iter_vars] == [4, 8]
    assert_round_trip(triangle)
    i, j = np.mgrid[:4, :8]
    assert (ran(triangle, np.zeros((4, 8), "int32"))[0] == np.where(j >= i, i * 10 + j, 0)).all()


def test_threads_are_loops_too():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        tx = T.launch_thread("threadIdx.x", 8)
        with T.block("B"):
            B[tx] = A[tx]

    assert axes_of(f, "B") == [("v_tx", tir.DATA_PARALLEL, "tx")]
    x, y = a[0], np.zeros(8, "float32")
    tir.interp.run(f, x, y)
    assert (x == y).all()
