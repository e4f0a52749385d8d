"""transform_layout with padding values, buffers given as objects, separators and regions; IndexMap by itself."""
from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.schedule.index_map import IndexMap
from tilewright.script import tir as T
from tilewright.support.errors import ArgumentError
from tilewright.tir import interp
from tilewright.tir.symbols import replace_buffers

from .compute_support import body_text, matmul_bias, matmul_bias_reference, refuses
from .layout_support import conv2d, conv2d_reference, matmul, pools, pools_reference, program, proven
from .test_layout import grid, grid_reference


def test_the_block_that_makes_the_buffer_chooses():
    func = grid()
    sch = Schedule(func)
    sch.transform_layout("B", ("write", 0), lambda i, j: (i, j // 4, j % 4), pad_value=7)
    assert textwrap.dedent(body_text(sch)) == textwrap.dedent("""\
        B = T.alloc_buffer((5, 2, 4), "int32")
        for ax0, ax1, ax2 in T.grid(5, 2, 4):
            with T.block("B"):
                v0, v1, v2 = T.axis.remap("SSS", [ax0, ax1, ax2])
                B[v0, v1, v2] = T.if_then_else(v1 * 4 + v2 < 7, A[v0, v1 * 4 + v2] * 3, 7)
        for i, j in T.grid(5, 7):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj // 4, vj % 4] - vj""")
    proven(sch, func, grid_reference, (5, 7))


def test_the_padding_of_a_reduction_is_filled_ahead():
    func = matmul_bias(11, 13, 7)
    sch = Schedule(func)
    sch.transform_layout("C", "C", lambda i, j: (i // 4, j // 8, i % 4, j % 8), pad_value=lambda a, b, c, d: a + b * d)
    text = textwrap.dedent(body_text(sch))
    assert textwrap.dedent("""\
        for ax0, ax1, ax2, ax3 in T.grid(3, 2, 4, 8):
            with T.block("C_pad"):
                v0, v1, v2, v3 = T.axis.remap("SSSS", [ax0, ax1, ax2, ax3])
                T.where(ax0 * 4 + ax2 >= 11 or ax1 * 8 + ax3 >= 13)
                C[v0, v1, v2, v3] = v0 + v1 * v3
        """) in text
    proven(sch, func, matmul_bias_reference, (11, 7), (7, 13))


@pytest.mark.parametrize("value", [0, -3, 1.5, float("-inf"), float("nan"), "lambda a, b: a * 3 - b", True])
def test_forms_of_padding_values(value):
    a = te.placeholder((7,), name="A")
    b = te.compute((7,), lambda i: a[i] * 2, name="B")
    func = program(a, b, te.compute((7,), lambda i: b[i] + 1, name="C"))
    sch = Schedule(func)
    sch.transform_layout("B", "B", lambda i: (i // 4, i % 4), pad_value=value)
    proven(sch, func, lambda x: x * 2 + 1, (7,), dtype="float32")


def test_padding_in_the_loop_that_owns_the_buffer():
    func = matmul_bias(11, 13, 7)
    sch = Schedule(func)
    i, _ = sch.get_loops("D")
    sch.compute_at("C", i)
    sch.parallel(i)
    sch.transform_layout("C", "C", lambda i, j: (j // 4, i, j % 4), pad_value=0)
    assert sch.loops_above("C_pad")[0].loop_var is i.var
    proven(sch, func, matmul_bias_reference, (11, 7), (7, 13))


def test_a_shift_leaves_padding_in_front():
    func = grid()
    sch = Schedule(func)
    sch.transform_layout("B", "B", lambda i, j: (i + 2, j), pad_value=1)
    assert "T.if_then_else(v0 >= 2, A[v0 - 2, v1] * 3, 1)" in body_text(sch)
    proven(sch, func, grid_reference, (5, 7))


def test_a_buffer_may_be_given_itself():
    func = grid()
    sch = Schedule(func)
    sch.transform_layout("C", sch.get(sch.get_block("B")).writes[0].buffer, lambda i, j: (j, i))
    assert "buffer=['read', 0]" in str(sch.trace)
    proven(sch, func, grid_reference, (5, 7))


def test_separators_keep_physical_dimensions_apart():
    func = grid()
    sch = Schedule(func)
    sch.transform_layout("B", "B", lambda i, j: (j // 4, te.AXIS_SEPARATOR, i, j % 4))
    buffer = sch.get(sch.get_block("B")).writes[0].buffer
    assert [str(d) for d in buffer.shape] == ["2", "5", "4"] and buffer.axis_separators == (1,)
    assert "index_map=lambda i, j: (j // 4, 'axis_separator', i, j % 4)" in str(sch.trace)
    again = Schedule(func)
    sch.trace.apply_to_schedule(again)
    assert again.get(again.get_block("B")).writes[0].buffer.axis_separators == (1,)


def test_every_use_of_a_convolutions_input():
    """Channels innermost, as vectors: the padding block, the convolution and its regions follow."""
    func = conv2d(channels=6)
    sch = Schedule(func)
    sch.transform_layout("C", ("read", 0), lambda c, y, x: (c // 4, y, x, c % 4), pad_value=0)
    assert "P[vc // 4, " in body_text(sch) and "T.grid(2, 11, 11, 4)" in body_text(sch)
    proven(sch, func, conv2d_reference, (6, 9, 9), (5, 6, 3, 3))


def test_a_chain_of_poolings_in_tiles():
    func = pools()
    sch = Schedule(func)
    sch.transform_layout("C", ("read", 0), lambda y, x: (y // 4, x // 4, y % 4, x % 4), pad_value=-9)
    proven(sch, func, pools_reference(), (20, 7))


def test_packed_operands_of_prime_sizes():
    func = matmul(11, 13, 7)
    sch = Schedule(func)
    packed_a, packed_b = sch.cache_read("C", "A", "global"), sch.cache_read("C", "B", "global")
    sch.transform_layout(packed_a, ("write", 0), lambda i, k: (i // 4, k, i % 4), pad_value=0)
    sch.transform_layout(packed_b, ("write", 0), lambda k, j: (j // 8, k, j % 8), pad_value=0)
    proven(sch, func, lambda a, b: a @ b, (11, 7), (7, 13))


def test_a_map_that_is_only_promised_to_be_one_to_one():
    """i * 3 + j * 5 of i < 5, j < 3: different for different pairs, but no mixed-radix number."""
    func = grid(5, 3)
    sch = Schedule(func)
    refuses(sch, lambda: sch.transform_layout("B", "B", lambda i, j: (i * 3 + j * 5,)), "a place of its own")
    sch.transform_layout("B", "B", lambda i, j: (i * 3 + j * 16,), assume_injective_transform=True)
    assert "assume_injective_transform=True" in str(sch.trace)
    proven(sch, func, grid_reference, (5, 3))


def test_index_maps_as_objects():
    tiles = IndexMap.from_func(lambda i, j: (i // 4, j, i % 4))
    assert tiles.as_text() == "lambda i, j: (i // 4, j, i % 4)" == str(IndexMap.from_text(tiles.as_text()))
    assert [str(e) for e in tiles.map_shape([14, 3])] == ["4", "3", "4"]
    assert [str(e) for e in tiles.map_indices([13, 2])] == ["3", "2", "1"]
    assert tiles.inverse([16, 3]).as_text() == "lambda i0, i1, i2: (i0 * 4 + i2, i1)"
    assert IndexMap.from_func(lambda *i: i[::-1], ndim=3) == "lambda i0, i1, i2: (i2, i1, i0)"


@pytest.mark.parametrize("call, message", [
    (lambda m: m.inverse([14, 3]), "is not one to one from"), (lambda m: m.inverse([14]), "the shape has 1 dimensions"),
    (lambda m: m.map_indices([1]), "takes 2 indices, not 1"),
    (lambda m: IndexMap.from_func(lambda *i: i), "takes any number of indices"),
    (lambda m: IndexMap.from_text("__import__('os')"), "is not the text of an index map"),
    (lambda m: IndexMap.from_text("lambda i: (i.real,)"), "an index map has no i.real"),
    (lambda m: IndexMap.from_text("lambda i: [x for x in i]"), "an index map has no"),
    (lambda m: IndexMap.from_text("lambda i=1: (i,)"), "is not the text of an index map"),
])
def test_wrong_uses_of_index_maps(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(IndexMap.from_func(lambda i, j: (i // 4, j, i % 4)))


def test_padding_is_what_was_asked_for():
    """The block alone, with its buffer as an output."""
    func = grid(3, 6)
    sch = Schedule(func)
    sch.transform_layout("B", "B", lambda i, j: (i, j // 4, j % 4), pad_value=lambda i, a, b: i * 100 + b)
    a = np.arange(18, dtype="int32").reshape(3, 6)
    root = sch.root.block
    made, used = root.body.stmts
    shown = func.buffers[1].replace(name="B", shape=root.alloc_buffers[0].shape, data=None)
    body = replace_buffers(sch.root.replace(block=root.replace(body=made, alloc_buffers=())),
                           {root.alloc_buffers[0]: shown})
    out = np.full((3, 2, 4), 77, "int32")
    interp.run(func.replace(body=body, buffer_map=dict(zip(func.params, (func.buffers[0], shown)))), a, out)
    want = np.empty((3, 8), "int64")
    want[:, :6] = a * 3
    want[:, 6:] = np.arange(3)[:, None] * 100 + np.array([2, 3])
    np.testing.assert_array_equal(out.reshape(3, 8), want)


@T.prim_func
def tiles(A: T.Buffer((16, 16), "int32"), B: T.Buffer((16, 16), "int32")):
    for io, jo in T.grid(4, 4):
        with T.block("tile"):
            vio, vjo = T.axis.remap("SS", [io, jo])
            S = T.alloc_buffer((4, 4), "int32")
            for i, j in T.grid(4, 4):
                with T.block("S"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    S[vj, vi] = A[vio * 4 + vi, vjo * 4 + vj]
            for i, j in T.grid(4, 4):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vjo * 4 + vi, vio * 4 + vj] = S[vi, vj]


def test_the_buffer_of_a_nested_block():
    sch = Schedule(tiles)
    sch.transform_layout("S", ("write", 0), lambda i, j: (j // 3, i, j % 3), pad_value=7)
    assert sch.get(sch.get_block("S_pad")).name_hint == "S_pad"
    a, o = np.arange(256, dtype="int32").reshape(16, 16), np.zeros((16, 16), "int32")
    interp.run(sch.func, a, o)
    np.testing.assert_array_equal(o, a.T)


def test_a_writer_of_no_axes_leaves_the_padding_to_a_block_of_its_own():
    @T.prim_func
    def first(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
        B = T.alloc_buffer((1,), "int32")
        with T.block("B"):
            B[0] = A[2]
        for i in range(4):
            with T.block("C"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] + B[0]
    sch = Schedule(first)
    sch.transform_layout("B", "B", lambda i: (i + 2,), pad_value=7)
    a, got = np.arange(4, dtype="int32"), np.zeros(4, "int32")
    interp.run(sch.func, a, got)
    assert got.tolist() == (a + 2).tolist()
