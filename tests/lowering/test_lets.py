"""Names that lets give: what passes move or ask for elsewhere has none of them in it."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering import lower
from tilewright.script import from_source
from tilewright.tir import interp
from tilewright.tir.verify import verify

A = np.arange(64, dtype="int32")


@pytest.mark.parametrize("body, want", [
    ("""for i in range(32):
        C[i] = T.Let(T.if_then_else(T.likely(i + x < 20), A[i], 7), where={x: n * 2})""",
     np.where(np.arange(32) + 6 < 20, A[:32], 7)),
    ("""for i in T.vectorized(32):
        if T.likely(T.Let(i + x < 20, where={x: n * 2})):
            C[i] = T.Let(T.if_then_else(T.likely(y < 12), A[y], 7), where={y: i + n})""",
     np.where(np.arange(32) + 6 < 20, np.where(np.arange(32) + 3 < 12, np.arange(32) + 3, 7), 0)),
    ("""for i in T.serial(32, annotations={"prefetch": [["A", 2]]}):
        z: T.int32 = n * 2
        C[i] = A[i + z]""", A[6:38]),
    ("""for i in T.serial(32, annotations={"prefetch": [["A", 2]]}):
        C[i] = T.Let(A[i + x], where={x: n * 2})""", A[6:38]),
    ("""for i in T.serial(32, annotations={"prefetch": [["A", 2]]}):
        for j in range(A[i], A[i] + 1):
            C[i] = A[j + 2]""", A[2:34]),
    ("""P = T.decl_buffer((64,), "int32")
    for i in range(32):
        P[i] = A[i]
    for i in range(32):
        C[i] = T.Let(P[x] + P[x + 1], where={x: i // 2})""", np.arange(32) // 2 * 2 + 1)],
    ids=["guard", "lanes", "prefetch of a name", "prefetch below a let", "prefetch by data", "private memory"])
def test_names_stay_where_they_are_known(body, want):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), n: T.int32, C: T.Buffer((32,), "int32")):
    x = T.int32()
    y = T.int32()
    {body}
""")
    flat = lower(func)
    verify(flat, stage="flat")
    for run in (lambda *a: interp.run(flat, *a), tw.build(func)["main"]):
        out = np.zeros(32, "int32")
        run(A, 3, out)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("body", [
    "B[I[0]] = A[I[1]]", "B[k] = A[I[0]] + A[I[I[1]]]", "if I[k] < 3:\n            B[I[0]] = A[I[1]]",
    "for j in range(2):\n            B[I[j]] = B[I[j]] + A[I[1]]"])
def test_copies_of_a_store_at_an_index_from_data_have_variables_of_their_own(body):
    func = from_source("@T.prim_func\ndef f(A: T.Buffer((8,), 'float32'), I: T.Buffer((4,), 'int32'), "
                       f"B: T.Buffer((8,), 'float32')):\n    for k in T.unroll(4):\n        {body}\n")
    a, i, k, want = np.arange(8, dtype="float32"), np.array([3, 1, 2, 0], "int32"), range(4), np.zeros(8, "float32")
    for at, value in {"B[I[0]]": [(3, 1)], "B[k]": [(n, 4) for n in k], "if": [(3, 1)],
                      "for": [(3, 4), (1, 4)]}[body.split(" ")[0]]:
        want[at] = value
    out = np.zeros(8, "float32")
    tw.build(func)(a, i, out)
    np.testing.assert_array_equal(out, want)
