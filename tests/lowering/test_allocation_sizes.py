"""Allocations whose sizes change while the function runs."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering import lower
from tilewright.script import from_source
from tilewright.tir import interp
from tilewright.tir.node import statements
from tilewright.tir.stmt import Allocate, For, LetStmt

PARAMETERS = 'M: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")'


def results(func, m):
    """C, of the interpreter and of native code."""
    for run in (lambda *a: interp.run(func, *a), lambda *a: interp.run(lower(func), *a), tw.build(func)["main"]):
        out = np.zeros(8, "int32")
        run(np.array(m, "int32"), out)
        yield out


@pytest.mark.parametrize("m, want", [([1] * 8, [0, 1, 2, 3, 4]), ([0] * 8, [0] * 5)])
def test_memory_whose_size_the_loop_decides_stays_in_it(m, want):
    """Whether an iteration writes what it reads is not known, but no other one could."""
    func = from_source(f"""
@T.prim_func
def main({PARAMETERS}):
    for i in range(5):
        P = T.decl_buffer((i + 1, 2000), "int32")
        for j in range(i + 1):
            if M[j] > 0:
                P[j, 0] = i + j
        if M[0] > 0:
            C[i] = P[0, 0]
""")
    for out in results(func, m):
        np.testing.assert_array_equal(out, [*want, 0, 0, 0])


def test_memory_is_as_large_as_its_iteration_asks_for():
    """Each of the iterations writes more rows than the one before."""
    func = from_source(f"""
@T.prim_func
def main({PARAMETERS}):
    for i in range(5):
        P = T.decl_buffer((M[0], 2000), "int32")
        for j in range(M[0]):
            P[j, i] = i + j
        C[i] = P[M[0] - 1, i]
        M[0] = M[0] + 100
""")
    around = [s for s in statements(lower(func).body) if isinstance(s, (For, LetStmt, Allocate))]
    assert [type(s) for s in around][:3] == [For, LetStmt, Allocate]
    for out in results(func, [2] * 8):
        np.testing.assert_array_equal(out, [1, 102, 203, 304, 405, 0, 0, 0])


def test_memory_is_as_large_as_its_block_asked_for():
    func = from_source(f"""
@T.prim_func
def main({PARAMETERS}):
    P = T.alloc_buffer((M[0],), "int32")
    M[0] = 1
    for i in range(2):
        for j in range(M[1]):
            P[j] = i + j
        C[i] = P[M[1] - 1]
""")
    assert [type(s) for s in statements(lower(func).body)][:2] == [LetStmt, Allocate]
    for out in results(func, [6] * 8):
        np.testing.assert_array_equal(out, [5, 6, 0, 0, 0, 0, 0, 0])
