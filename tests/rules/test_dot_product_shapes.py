"""Products of low-bit matrices of any extents, in either layout, and of batches of matrices."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.rules.products import (
    ALDERLAKE,
    BF,
    HASWELL,
    HOST,
    NEOVERSE,
    NEOVERSE_V1,
    S8,
    SU,
    U8,
    ZEN4,
    compiled,
    einsum,
    extremes,
    multiplied,
    product,
)
from tilewright import te
from tilewright.rules import apply_rules
from tilewright.rules.dot_product import choose_tile, round_up
from tilewright.script import tir as T
from tilewright.tir import run, verify


@pytest.mark.parametrize("m, n, k", [(1, 3, 7), (3, 7, 1), (7, 17, 31), (17, 1, 64), (31, 127, 3), (64, 100, 17),
                                     (100, 31, 127), (127, 64, 100)])
@pytest.mark.parametrize("a_transposed, b_transposed, types", [
    (False, False, U8), (False, True, S8), (True, False, SU), (True, True, S8)])
def test_ragged_extents_and_both_layouts(m, n, k, a_transposed, b_transposed, types):
    """Extents that no tile, lane or group divides, both operands in either layout: exact at the extremes."""
    a = extremes(types[0], (k, m) if a_transposed else (m, k))
    b = extremes(types[1], (n, k) if b_transposed else (k, n), 1)
    got = compiled(product(m, n, k, types, b_transposed, a_transposed=a_transposed), a, b)
    np.testing.assert_array_equal(got, multiplied(a.T if a_transposed else a, b.T if b_transposed else b))


@pytest.mark.parametrize("of_a, of_b, types", [
    ("bik", "bkj", U8), ("bki", "bjk", S8), ("ibk", "kbj", SU), ("bik", "jkb", S8)])
def test_batches(of_a, of_b, types):
    """The batch axis anywhere but last among B's takes the instruction; there it does not, with the same result."""
    extents = {"b": 3, "i": 13, "j": 37, "k": 30}
    func = einsum(of_a, of_b, extents, types)
    a, b = (extremes(t, [extents[x] for x in of]) for t, of in zip(types, (of_a, of_b)))
    want = np.einsum(f"{of_a},{of_b}->bij", a.astype("int64"), b.astype("int64"))
    for target in (HOST, "llvm -num-cores=2"):
        np.testing.assert_array_equal(compiled(func, a, b, target=target), want)
    assert uses_instruction(func) == (of_b[-1] != "b")


def uses_instruction(func, target=ZEN4):
    return "tensorize" in str(apply_rules(func, tw.Target(target)).trace)


@pytest.mark.parametrize("of_a, of_b, types", [("ik", "kj", S8), ("ki", "jk", S8), ("ik", "jk", U8), ("bik", "bjk", S8),
                                               ("bki", "bkj", SU), ("ik", "kj", BF)])
def test_rows_and_matrices_of_unknown_number(of_a, of_b, types):
    """m and the number of matrices are known at the call only."""
    result = "bij" if "b" in of_a else "ij"
    func = einsum(of_a, of_b, {"b": te.var("b"), "i": te.var("m"), "j": 37, "k": 30}, types)
    assert uses_instruction(func, ZEN4)
    module = tw.compile(func, target=HOST)
    for rows, matrices in ((0, 2), (1, 1), (13, 3), (64, 2), (5, 0)):
        extents = {"b": matrices, "i": rows, "j": 37, "k": 30}
        a, b = (extremes(t, [extents[x] for x in of]) for t, of in zip(types, (of_a, of_b)))
        out = np.zeros([extents[x] for x in result], types[2])
        module(a, b, out)
        want = np.einsum(f"{of_a},{of_b}->{result}", a.astype("float64"), b.astype("float64"))
        np.testing.assert_allclose(out.astype("float64"), want, rtol=1e-6 if types[2] == "float32" else 0)


@pytest.mark.parametrize("unknown", ["j", "k"])
def test_other_extents_that_are_unknown_leave_the_product_to_another_rule(unknown):
    func = einsum("ik", "kj", {"i": 13, "j": 37, "k": 30, unknown: te.var("n")}, S8)
    assert not uses_instruction(func)
    out, (a, b) = np.zeros((13, 37), "int32"), (extremes("int8", shape) for shape in ((13, 30), (30, 37)))
    tw.compile(func, target=HOST)(a, b, out)
    np.testing.assert_array_equal(out, multiplied(a, b))


def test_a_matrix_times_its_own_transpose():
    """One buffer in both roles: another rule, the same result."""
    a = te.placeholder((13, 30), "int8", name="A")
    r = te.reduce_axis((0, 30), name="k")
    c = te.compute((13, 13), lambda i, j: te.sum(a[i, r].astype("int32") * a[j, r].astype("int32"), axis=r), name="C")
    x = extremes("int8", (13, 30))
    np.testing.assert_array_equal(compiled(te.create_prim_func([a, c]), x), multiplied(x, x.T))


@T.prim_func
def from_five(A: T.Buffer((16, 32), "int8"), B: T.Buffer((32, 16), "int8"), C: T.Buffer((16, 16), "int32")):
    for i, j, k in T.grid(16, 16, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 5
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])


@T.prim_func
def onto_c(A: T.Buffer((16, 32), "int8"), B: T.Buffer((32, 16), "int8"), C: T.Buffer((16, 16), "int32")):
    for i, j, k in T.grid(16, 16, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            C[vi, vj] = C[vi, vj] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])


@T.prim_func
def doubling(A: T.Buffer((16, 32), "int8"), B: T.Buffer((32, 16), "int8"), C: T.Buffer((16, 16), "int32")):
    for i, j, k in T.grid(16, 16, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = 0
            C[vi, vj] = C[vi, vj] * 2 + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])


@T.prim_func
def other_way_round(A: T.Buffer((16, 32), "int8"), B: T.Buffer((32, 16), "int8"), C: T.Buffer((16, 16), "int32")):
    for i, j, k in T.grid(16, 16, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vj, vi] = 0
            C[vj, vi] = C[vj, vi] + T.Cast("int32", A[vi, vk]) * T.Cast("int32", B[vk, vj])


def test_what_is_almost_such_a_product():
    """Sums that start elsewhere than at 0, are no plain sums, or lie transposed: other rules, and what is written."""
    a, b = extremes("int8", (16, 32)), extremes("int8", (32, 16), 1)
    x, y = a.astype("int64"), b.astype("int64")
    powers = 2 ** np.arange(31, -1, -1)
    wanted = {from_five: x @ y + 5, onto_c: x @ y + 7, doubling: (x * powers) @ y, other_way_round: (x @ y).T}
    for func, want in wanted.items():
        assert not uses_instruction(func)
        out = np.full((16, 16), 7, "int32")
        tw.compile(func, target=HOST)(a, b, out)
        np.testing.assert_array_equal(out, want.astype("int32"))


def test_a_ragged_epilogue():
    """Elements beyond the edge of the result are computed in the tile, and not written."""
    func = product(13, 37, 30, S8, True, epilogue=lambda x: (te.round(x.astype("float32") * 0.002)).astype("int8"))
    a, b = extremes("int8", (13, 30)), extremes("int8", (37, 30), 1)
    want = np.clip(np.rint(multiplied(a, b.T).astype("float32") * np.float32(0.002)), -128, 127)
    np.testing.assert_array_equal(compiled(func, a, b), want)
    assert uses_instruction(func)


@pytest.mark.parametrize("target", [ZEN4, ALDERLAKE, HASWELL, NEOVERSE_V1])
@pytest.mark.parametrize("types", [S8, U8, SU, BF])
@pytest.mark.parametrize("a_transposed, b_transposed", [(False, True), (True, False)])
def test_a_ragged_schedule_means_the_same(target, types, a_transposed, b_transposed):
    """Interpreted, so for targets that are not this machine as well, and with a look at every index."""
    func = product(5, 19, 7, types, b_transposed, a_transposed=a_transposed)
    sch = apply_rules(func, tw.Target(target.replace("cores=1", "cores=2")))
    verify(sch.func)
    shapes = (7, 5) if a_transposed else (5, 7), (19, 7) if b_transposed else (7, 19)
    if types is BF:
        random = np.random.default_rng(0)
        a, b = (random.integers(-8, 8, shape).astype(tw.tir.dtype.numpy_dtype("bfloat16")) for shape in shapes)
    else:
        a, b = (extremes(t, shape) for t, shape in zip(types, shapes))
    out = np.zeros((5, 19), types[2])
    run(sch.func, a, b, out)
    x, y = a.astype("float64"), b.astype("float64")
    np.testing.assert_array_equal(out, (x.T if a_transposed else x) @ (y.T if b_transposed else y))
    assert uses_instruction(func, target) == (types is not BF or target is ZEN4)


def test_tiles_of_ragged_results_waste_little():
    """Of the products that the tiles make, nine tenths and more are asked for, from 100 rows and columns on."""
    for lanes, target in ((16, tw.Target(ZEN4)), (8, tw.Target(HASWELL)), (4, tw.Target(NEOVERSE))):
        for m, n in ((127, 500), (1009, 997), (100, 784), (113, 127)):
            for together in (1, 8):
                rows, vectors = choose_tile(m, n, lanes, together, target)
                made = round_up(m, max(rows, together)) * round_up(n, vectors * lanes)
                assert m * n >= 0.9 * made and 1 <= rows and (together == 1 or together % rows == 0)
