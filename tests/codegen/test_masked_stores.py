"""Stores of some lanes only, of values that are converted to fewer bits."""
from __future__ import annotations

import numpy as np
import pytest
from kernels import numpy_of

import tilewright as tw
from tilewright import te
from tilewright.codegen.llvm.masked_stores import with_opaque_masks
from tilewright.script import from_source


@pytest.mark.parametrize("source, target", [
    ("int64", "int32"), ("int64", "int16"), ("uint64", "uint8"), ("int32", "int8"), ("int16", "int8"),
    ("float32", "int8")])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_narrowing_store_of_some_lanes_leaves_the_others_alone(source: str, target: str, count: int) -> None:
    f = tw.build(from_source(f"""
@T.prim_func
def first(A: T.Buffer((16,), "{source}"), B: T.Buffer((16,), "{target}")):
    for i in T.vectorized(16):
        if i < {count}:
            B[i] = T.cast(A[i], "{target}")
"""))
    a, b = np.arange(3, 19).astype(source), np.full(16, 99, target)
    f(a, b)
    np.testing.assert_array_equal(b, np.where(np.arange(16) < count, a, 99).astype(target))


def test_the_last_column_of_a_narrowed_product_is_one_column() -> None:
    m, n, k = 200, 257, 9                                     # LLVM finds out that one lane is left
    A, B = te.placeholder((m, k), "int64", name="A"), te.placeholder((k, n), "int64", name="B")
    r = te.reduce_axis((0, k), name="r")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((m, n), lambda i, j: C[i, j].astype("int8"), name="D")
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (m, k)), rng.integers(-9, 9, (k, n))
    d = np.zeros((m, n), "int8")
    tw.compile([A, B, D])(a, b, d)
    np.testing.assert_array_equal(d, (a @ b).astype("int8"))


@pytest.mark.parametrize("source, target", [
    ("int64", "int32"), ("int64", "int8"), ("int32", "int16"), ("float64", "bfloat16"), ("float32", "int8")])
@pytest.mark.parametrize("n", [5, 9, 17])
@pytest.mark.parametrize("level", [2, 3])
def test_a_narrowing_loop_that_llvm_makes_vectors_of_ends_with_its_last_element(
        source: str, target: str, n: int, level: int) -> None:
    f = tw.build(from_source(f"""
@T.prim_func
def narrow(A: T.Buffer((6, {n}), "{source}"), B: T.Buffer((400,), "{target}")):
    for i, j in T.grid(12, {n}):
        B[i * {n} + j] = T.cast(A[i % 6, j], "{target}")
"""), target=f"llvm -opt-level={level}")
    a, b = np.arange(3, 3 + 6 * n).reshape(6, n).astype(source), np.full(400, 99, numpy_of(target))
    f(a, b)
    np.testing.assert_array_equal(b[: 12 * n].reshape(12, n), a[np.arange(12) % 6].astype(numpy_of(target)))
    np.testing.assert_array_equal(b[12 * n :].astype("float64"), 99)


def test_masks_are_hidden_once_in_each_function_that_stores_narrow_lanes() -> None:
    store = "  tail call void @llvm.masked.store.v{0}.p0(<{1}> %v, ptr align 2 %p, <8 x i1> {2}), !tbaa !3"
    one = f"<i1 true{', i1 false' * 7}>"
    text = "\n".join([
        "define void @floats(ptr %p, <8 x float> %v) {", store.format("8f32", "8 x float", one), "  ret void", "}",
        "define void @words(ptr %p, <8 x i16> %v) {", "entry:", store.format("8i16", "8 x i16", one),
        store.format("8i16", "8 x i16", "splat (i1 true)"), "  ret void", "}", ""])
    lines = with_opaque_masks(text).splitlines()
    assert lines[:5] == text.splitlines()[:5]
    assert lines[5:] == [
        "entry:", '  %tw.ones = call i64 asm "", "=r,0"(i64 -1)',
        "  %tw.mask0.bits = trunc i64 %tw.ones to i8", "  %tw.mask0.ones = bitcast i8 %tw.mask0.bits to <8 x i1>",
        f"  %tw.mask0 = and <8 x i1> {one}, %tw.mask0.ones", store.format("8i16", "8 x i16", "%tw.mask0"),
        "  %tw.mask1.bits = trunc i64 %tw.ones to i8", "  %tw.mask1.ones = bitcast i8 %tw.mask1.bits to <8 x i1>",
        "  %tw.mask1 = and <8 x i1> splat (i1 true), %tw.mask1.ones", store.format("8i16", "8 x i16", "%tw.mask1"),
        "  ret void", "}"]
