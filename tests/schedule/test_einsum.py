"""pad_einsum: print, meaning, replay, native code."""
from __future__ import annotations

import textwrap

import numpy as np
import pytest

from tilewright import te
from tilewright.schedule import Schedule
from tilewright.script import from_source

from .compute_support import body_text, matmul_bias, matmul_bias_reference, refuses
from .layout_support import matmul, program, proven


def test_a_product_of_prime_sizes():
    func = matmul(11, 13, 7)
    sch = Schedule(func)
    sch.pad_einsum("C", [4, 8, 1])
    assert textwrap.dedent(body_text(sch)) == textwrap.dedent("""\
        C_pad = T.alloc_buffer((12, 16), "int32")
        A_pad = T.alloc_buffer((12, 7), "int32")
        B_pad = T.alloc_buffer((7, 16), "int32")
        for i, k in T.grid(12, 7):
            with T.block("A_pad"):
                vi, vk = T.axis.remap("SS", [i, k])
                A_pad[vi, vk] = T.if_then_else(vi < 11, A[vi, vk], 0)
        for k, j in T.grid(7, 16):
            with T.block("B_pad"):
                vk, vj = T.axis.remap("SS", [k, j])
                B_pad[vk, vj] = T.if_then_else(vj < 13, B[vk, vj], 0)
        for i, j, k in T.grid(12, 16, 7):
            with T.block("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C_pad[vi, vj] = 0
                C_pad[vi, vj] = C_pad[vi, vj] + A_pad[vi, vk] * B_pad[vk, vj]
        for i, j in T.grid(11, 13):
            with T.block("C_pad"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = C_pad[vi, vj]""")
    proven(sch, func, lambda a, b: a @ b, (11, 7), (7, 13))


@pytest.mark.parametrize("padding", [[4, 4, 4], [1, 1, 4], [16, 1, 1], [3, 5, 2], [1, 1, 1]])
def test_padding_of_each_axis(padding):
    func = matmul(11, 13, 7)
    sch = Schedule(func)
    sch.pad_einsum("C", padding)
    extents = [loop.extent.value for loop in sch.loops_above("C")]
    assert extents == [-(-n // f) * f for n, f in zip((11, 13, 7), padding)]
    proven(sch, func, lambda a, b: a @ b, (11, 7), (7, 13))


def test_floats_are_padded_with_zeros_in_every_factor():
    func = matmul(5, 7, 11, "float32")
    sch = Schedule(func)
    sch.pad_einsum("C", [4, 4, 4])
    proven(sch, func, lambda a, b: a @ b, (5, 11), (11, 7), dtype="float32")


def test_the_padded_product_is_tiled_without_guards():
    func = matmul_bias(23, 17, 13)
    sch = Schedule(func)
    sch.pad_einsum("C", [8, 8, 4])
    i, j, k = sch.get_loops("C")
    io, ii = sch.split(i, [None, 8])
    jo, ji = sch.split(j, [None, 8])
    ko, ki = sch.split(k, [None, 4])
    sch.reorder(io, jo, ko, ii, ki, ji)
    sch.vectorize(ji)
    assert "T.where" not in body_text(sch)
    sch.compute_inline("A_pad")
    proven(sch, func, matmul_bias_reference, (23, 13), (13, 17))


def test_a_batch_of_products():
    a, b = te.placeholder((3, 5, 7), "int32", name="A"), te.placeholder((3, 7, 11), "int32", name="B")
    k = te.reduce_axis((0, 7), "k")
    func = program(a, b, te.compute((3, 5, 11), lambda n, i, j: te.sum(a[n, i, k] * b[n, k, j], axis=k), name="C"))
    sch = Schedule(func)
    sch.pad_einsum("C", [2, 4, 4, 4])
    proven(sch, func, lambda x, y: x @ y, (3, 5, 7), (3, 7, 11))


@pytest.mark.parametrize("reduce, reference", [(te.max, np.max), (te.min, np.min), (te.prod, np.prod)])
def test_padding_is_the_identity_of_the_reduction(reduce, reference):
    a = te.placeholder((5, 3), "int32", name="A")
    k = te.reduce_axis((0, 3), "k")
    func = program(a, te.compute((5,), lambda i: reduce(a[i, k], axis=k), name="C"))
    sch = Schedule(func)
    sch.pad_einsum("C", [2, 4])
    proven(sch, func, lambda x: reference(x, axis=1), (5, 3))


def test_a_sum_that_starts_elsewhere_is_padded_with_zeros():
    a = te.placeholder((5, 3), "int32", name="A")
    k = te.reduce_axis((0, 3), "k")
    func = program(a, te.compute((5,), lambda i: te.sum(a[i, k], axis=k, init=2), name="C"))
    sch = Schedule(func)
    sch.pad_einsum("C", [2, 4])
    proven(sch, func, lambda x: x.sum(axis=1) + 2, (5, 3))


def test_a_sum_over_an_unknown_extent():
    n = te.var("n")
    a, b = te.placeholder((5, n), "int32", name="A"), te.placeholder((n, 6), "int32", name="B")
    k = te.reduce_axis((0, n), "k")
    func = program(a, b, te.compute((5, 6), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C"))
    sch = Schedule(func)
    sch.pad_einsum("C", [4, 4, 4])
    proven(sch, func, lambda x, y: x @ y, (5, 7), (7, 6))


def test_infinity_times_padding_is_refused():
    """sum of A[i, k] * B[i]: 0 * B[i] is no 0 where B[i] is infinite."""
    a, b = te.placeholder((5, 7), name="A"), te.placeholder((5,), name="B")
    k = te.reduce_axis((0, 7), "k")
    sch = Schedule(program(a, b, te.compute((5,), lambda i: te.sum(a[i, k] * b[i], axis=k), name="C")))
    refuses(sch, lambda: sch.pad_einsum("C", [1, 4]), "a step on padding is not known to change nothing")
    sch.pad_einsum("C", [4, 1])


def test_a_step_that_is_greater_on_padding_is_refused():
    a, k = te.placeholder((5,), "int32", name="A"), te.reduce_axis((0, 7), "k")
    func = program(a, te.compute((5,), lambda i: te.max(a[i] + k, axis=k), name="C"))
    sch = Schedule(func)
    refuses(sch, lambda: sch.pad_einsum("C", [1, 4]), "a step on padding is not known to change nothing")
    sch.pad_einsum("C", [4, 1])
    proven(sch, func, lambda x: x + 6, (5,))


def test_an_operand_of_which_only_what_is_read_was_written():
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((5, 7), "int32"), W: T.Buffer((7,), "int32"), C: T.Buffer((5,), "int32")):
    X = T.alloc_buffer((7, 3), "int32")
    for k in range(7):
        with T.block("X"):
            vk = T.axis.spatial(7, k)
            X[vk, 1] = W[vk] * 3
    for i, k in T.grid(5, 7):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = 0
            C[vi] = C[vi] + A[vi, vk] * X[vk, 1]
""")
    sch = Schedule(func)
    sch.pad_einsum("C", [4, 4])
    proven(sch, func, lambda x, y: x @ y * 3, (5, 7), (7,))
