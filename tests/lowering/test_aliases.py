"""Memory that several buffers lead to, through the passes that look at buffers one by one."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering import lower
from tilewright.script import from_source
from tilewright.support.errors import LowerError
from tilewright.tir import interp

A = np.arange(64, dtype="int32")
PIPELINE = ', annotations={"software_pipeline_stage": [0, 1, 1], "software_pipeline_order": [0, 1, 2]}'


def check(body, want):
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((64,), "int32"), n: T.int32, C: T.Buffer((64,), "int32")):
{body}""")
    flat = lower(func)
    for run in (lambda *a: interp.run(func, *a), lambda *a: interp.run(flat, *a), tw.build(func)["main"]):
        out = np.zeros(64, "int32")
        run(A, 5, out)
        np.testing.assert_array_equal(out, want)
    return flat


def test_memory_is_as_large_as_its_other_name_uses_it():
    """Of P itself 16 elements are used; Q fills all 64."""
    want = np.where(np.arange(64) < 16, np.arange(64) + 16, 0)
    flat = check("""
    for t in range(2):
        P = T.decl_buffer((64,), "int32")
        Q = T.Buffer((8, 8), "int32", data=P.data)
        for i in range(8):
            for j in range(8):
                Q[i, j] = A[i * 8 + j]
        for i in range(16):
            C[i] = P[i + 16]
""", want)
    assert "Q" not in str(flat)


def test_what_the_other_name_reads_is_not_written_beside():
    """All reads of P are under i < n, those of Q are not."""
    check("""
    for t in range(2):
        P = T.decl_buffer((64,), "int32")
        Q = T.Buffer((64,), "int32", data=P.data)
        for i in range(64):
            P[i] = 7
        for i in T.vectorized(64):
            if T.likely(i < n):
                P[i] = i
        for i in T.vectorized(64):
            if T.likely(i < n):
                C[i] = P[i]
        for i in range(64):
            C[i] = C[i] + Q[i]
""", np.where(np.arange(64) < 5, 2 * np.arange(64), 14))


@pytest.mark.parametrize("loop", [f"T.serial(0, 8{PIPELINE})", "T.unroll(8)", "T.vectorized(8)", "T.parallel(8)"])
def test_copies_of_memory_have_both_names(loop):
    check(f"""
    for t in {loop}:
        P = T.decl_buffer((8,), "int32")
        Q = T.Buffer((2, 4), "int32", data=P.data)
        for i in range(8):
            P[i] = A[i * 8 + t]
        for i in range(4):
            C[i * 8 + t] = Q[1, i]
        for i in range(4):
            C[i * 8 + t + 32] = Q[0, i]
""", np.roll(A, 32))


def test_steps_of_a_pipeline_keep_their_order_for_an_argument_with_two_names():
    """The second step reads, as D, what the first one of the next iteration writes as C."""
    with pytest.raises(LowerError, match="statement 0 of the next iteration would run before statement 1"):
        check("""
    D = T.Buffer((64,), "int32", data=C.data)
    for t in T.serial(0, 8, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
        C[0] = A[t]
        C[t + 1] = D[0]
""", A)
