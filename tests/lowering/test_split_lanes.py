"""split_lanes: vectors of odd lengths become powers of two, and the result stays the same."""
import numpy as np
import pytest

from tilewright import te
from tilewright.driver import build
from tilewright.driver import target as resolved
from tilewright.lowering.split_lanes import MAX_LANES, split_lanes
from tilewright.script import from_source
from tilewright.tir import (
    VECTORIZED,
    Buffer,
    For,
    IfThenElse,
    IntImm,
    PrimFunc,
    Store,
    Var,
    interp,
    loop,
    structural_equal,
    walk,
)


@pytest.mark.parametrize("extent", [1, 2, 3, 7, 16, 48, 100, 255, 256, 257, 700, 1024])
def test_lengths(extent):
    a, p, i = Buffer("A", (IntImm(extent),), "int32"), Var("A", "handle"), Var("i")
    func = PrimFunc((p,), loop(i, extent, Store(a, i * 3 + 1, (i,)), VECTORIZED), {p: a})
    out = split_lanes(func)
    lengths = [n.extent.value for n in walk(out.body) if isinstance(n, For) and n.kind == VECTORIZED]
    assert all(x & (x - 1) == 0 and x <= MAX_LANES for x in lengths)
    got = np.full(extent, -1, "int32")
    interp.run(out, got)
    np.testing.assert_array_equal(got, np.arange(extent) * 3 + 1)


def test_a_loop_of_symbolic_extent_stays():
    n, p, i = Var("n"), Var("A", "handle"), Var("i")
    a = Buffer("A", (n,), "int32")
    func = PrimFunc((p, n), loop(i, n, Store(a, i * 3 + 1, (i,)), VECTORIZED), {p: a})
    assert structural_equal(split_lanes(func), func)


@pytest.mark.parametrize("extent", [3, 10, 48, 100])
def test_native_code_of_a_reduction_below_an_odd_vector(extent):
    a = te.placeholder((5, 7), name="A")
    b = te.placeholder((7, extent), name="B")
    k = te.reduce_axis((0, 7), name="k")
    c = te.compute((5, extent), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    s[c].vectorize(c.op.axis[1])
    s[c].reorder(c.op.axis[0], k, c.op.axis[1])
    x, y = np.random.rand(5, 7).astype("float32"), np.random.rand(7, extent).astype("float32")
    z = np.empty((5, extent), "float32")
    build(s, [a, b, c], "llvm", name="f")(x, y, z)
    np.testing.assert_allclose(z, x.astype("float64") @ y, rtol=1e-5)


ENDED = '''@T.prim_func
def f(a: T.handle, b: T.handle, s: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n,))
    S = T.match_buffer(s, (20,))
    for i in T.vectorized(20):
        S[i] = T.float32(0)
    for k in range((n + 19) // 20):
        for i in T.vectorized(20):
            if T.likely(k * 20 + i < n):
                B[k * 20 + i] = A[k * 20 + i] * T.float32(2)
        for i in T.vectorized(20):
            S[i] = {}
'''
TERM = "T.if_then_else(T.likely(k * 20 + i < n), A[k * 20 + i], T.float32({}))"


@pytest.mark.parametrize("step, skips", [
    ("S[i] + " + TERM.format("-0.0"), True), ("S[i] + " + TERM.format("1.0"), False),
    (f"T.Select({TERM.format('-inf')} > S[i], {TERM.format('-inf')}, S[i])".replace("T.float32(-inf)",
                                                                                   'T.float32("-inf")'), True)],
    ids=["sum", "counts", "largest"])
def test_vectors_without_a_lane_are_left_out(step, skips):
    func, target = from_source(ENDED.format(step)), resolved("llvm -mcpu=x86-64-v3")
    out = split_lanes(func, target=target)
    guarded = [n for n in walk(out.body) if isinstance(n, IfThenElse) and isinstance(n.then_case, For)]
    assert len(guarded) == (4 if skips else 2)           # two registers of 8, and 4 lanes, of which one is unrolled
    assert all(n.extent.value <= 8 for n in walk(out.body) if isinstance(n, For) and n.kind == VECTORIZED
               and any(isinstance(m, IfThenElse) for m in walk(n)))
    run = build(func, target="llvm")
    for n in (0, 1, 4, 8, 9, 16, 17, 20, 21, 39, 40, 100):
        a = np.random.default_rng(n).standard_normal(n).astype("float32")
        results = []
        for call in (lambda *x: interp.run(func, *x), lambda *x: interp.run(out, *x), run):
            b, s = np.full(n, 77, "float32"), np.full(20, 77, "float32")
            call(a, b, s)
            results.append((b, s))
        for b, s in results:
            np.testing.assert_array_equal(b, a * 2)
            np.testing.assert_array_equal(s, results[0][1])


@pytest.mark.parametrize("condition", ["i + 1 < 17", "i * i < n", "A[i] < T.float32(1)"])
def test_other_conditions_say_nothing_of_whole_vectors(condition):
    source = f"""@T.prim_func
def f(a: T.handle, n: T.int32):
    A = T.match_buffer(a, (64,))
    for i in T.vectorized(64):
        if T.likely({condition}):
            A[i] = T.float32(3)
"""
    func = from_source(source)
    assert structural_equal(split_lanes(func, target=resolved("llvm -mcpu=x86-64-v3")), func)
