"""Operations counted from the IR: the same before and after a schedule, and None where nobody can know."""
import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.arith.operations import operations
from tilewright.rules import apply_rules
from tilewright.script import from_source


def product(m, n, k, dtype="float32", out="float32"):
    A, B = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    return A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r].astype(out) * B[r, j].astype(out), axis=r), name="C")


def elementwise(f, *dtypes, n=10):
    inputs = [te.placeholder((n,), dtype) for dtype in dtypes]
    return te.create_prim_func([*inputs, te.compute((n,), lambda i: f(*(x[i] for x in inputs)))])


@pytest.mark.parametrize("f, dtypes, each", [
    (lambda x: x, ["float32"], 0), (lambda x: x + 1.0, ["float32"], 1), (lambda x: te.exp(x) * x, ["float32"], 2),
    (lambda x, y, z: te.fma(x, y, z), ["float32"] * 3, 2), (lambda x: te.max(x, 0.0), ["float32"], 1),
    (lambda x: x.astype("float64"), ["float32"], 0), (lambda x: te.isnan(x), ["float32"], 0),
    (lambda x, y: te.if_then_else(x > y, x * y + x, x), ["int32"] * 2, 2), (lambda x: x & 3, ["int32"], 0),
    (lambda x: te.Select(x > 0, x, x * 2), ["int32"], 1), (lambda x: x // 3, ["int32"], 1)])
def test_of_an_element(f, dtypes, each):
    assert operations(elementwise(f, *dtypes), {}) == 10 * each


def test_indices_are_no_work():
    A = te.placeholder((64,), name="A")
    assert operations(te.create_prim_func([A, te.compute((8,), lambda i: A[i * 7 + 1])]), {}) == 0


@pytest.mark.parametrize("dtype, out", [("float32", "float32"), ("uint8", "int32")])
def test_a_product_is_two_of_each_triple_however_it_is_scheduled(dtype, out):
    func = te.create_prim_func(list(product(37, 48, 50, dtype, out)))
    assert operations(func, {}) == 2 * 37 * 48 * 50
    sch = tw.Schedule(func)
    i, j, k = sch.get_loops("C")
    i0, i1 = sch.split(i, [None, 8])                           # 37 iterations in 5 tiles of 8
    sch.parallel(i0)
    sch.decompose_reduction("C", k)
    assert operations(sch.func, {}) == 2 * 37 * 48 * 50
    if dtype == "float32":
        assert operations(apply_rules(func, tw.target("llvm")).func, {}) == 2 * 37 * 48 * 50


def test_what_a_schedule_computes_again_counts_once():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((62,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
    sch = tw.Schedule(te.create_prim_func([A, C]))
    sch.compute_at("B", sch.split(sch.get_loops("C")[0], [None, 2])[0])
    assert operations(sch.func, {}) == 64 + 2 * 62


def test_symbolic_extents_take_their_values():
    m, n, k = te.var("m"), te.var("n"), te.var("k")
    func = te.create_prim_func(list(product(m, n, k)))
    assert operations(func, {m: 3, n: 5, k: 7}) == 210 and operations(func, {m: 0, n: 5, k: 7}) == 0
    assert operations(func, {m: 3, n: 5}) is None


def test_loops_without_blocks_and_around_blocks():
    func = from_source("""
@T.prim_func
def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for t in range(5):
        for i in range(8):
            with T.block("b"):
                vi = T.axis.spatial(8, i)
                B[vi] = B[vi] + A[vi]
    for i in range(4):
        for j in T.vectorized(2):
            B[i * 2 + j] = B[i * 2 + j] * A[i * 2 + j] + 1.0
""")
    assert operations(func, {}) == 5 * 8 + 8 * 2
    flat = tw.lower(func)["f"]
    assert operations(flat, {}) == 5 * 8 + 8 * 2


def test_scans_count_each_step():
    n = 6
    X, state = te.placeholder((n, 4), name="X"), te.placeholder((n, 4))
    start = te.compute((1, 4), lambda _, i: X[0, i])
    step = te.compute((n, 4), lambda t, i: state[t - 1, i] * 0.5 + X[t, i])
    assert operations(te.create_prim_func([X, te.scan(start, step, state, inputs=[X])]), {}) == 2 * 4 * (n - 1)


@pytest.mark.parametrize("body", [
    "T.evaluate(T.call_packed('f', A[0]))", "B[0] = T.call_extern('float32', 'sinf', A[0])",
    "for i in range(n):\n        B[0] = B[0] + A[0]", "while A[0] < 3.0:\n        B[0] = A[0] + 1.0"])
def test_what_nobody_can_count(body):
    func = from_source(f"@T.prim_func\ndef f(A: T.Buffer((8,), 'float32'), B: T.Buffer((8,), 'float32'), n: T.int32):\n"
                       f"    {body}\n")
    assert operations(func, {}) is None


def test_tuples_of_results():
    A = te.placeholder((5, 9), name="A")
    k = te.reduce_axis((0, 9), name="k")
    largest = te.comm_reducer(lambda x, y: (te.Select(x[1] >= y[1], x[0], y[0]), te.Select(x[1] >= y[1], x[1], y[1])),
                              lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
    place, value = te.compute((5,), lambda i: largest((k, A[i, k]), axis=k))
    assert operations(te.create_prim_func([A, place, value]), {}) == 0
    assert operations(te.create_prim_func([A, te.compute((5,), lambda i: te.sum(A[i, k] * A[i, k], axis=k))]),
                      {}) == 2 * 45 and np.prod(A.shape) == 45
