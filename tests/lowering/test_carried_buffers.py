"""Values that a guarded write leaves for later iterations stay alive."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright.lowering.pipeline import lower
from tilewright.script import from_source
from tilewright.tir import interp

SOURCE = '''@T.prim_func
def f(A: T.Buffer((1,), "int32"), B: T.Buffer((4,), "int32")):
    S = T.alloc_buffer((1,), "int32")
    for i in range(4):
        with T.block("S"):
            v = T.axis.spatial(1, 0)
            T.where(i < 1)
            S[v] = A[v]
        with T.block("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = S[0] + vi
'''


def test_a_write_in_the_first_iteration_only():
    func, a = from_source(SOURCE), np.array([7], "int32")
    flat, built = lower(func), tw.build(func)
    for run in (lambda b: interp.run(func, a, b), lambda b: interp.run(flat, a, b), lambda b: built(a, b)):
        b = np.zeros(4, "int32")
        run(b)
        assert b.tolist() == [7, 8, 9, 10]


GUARDED = '''@T.prim_func
def f(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    S = T.alloc_buffer((4,), "int32")
    for i in range(3):
        for j in range(4):
            with T.block("pad"):
                v = T.axis.spatial(4, j)
                T.where(j >= 3)
                S[v] = 1
        with T.block("S"):
            v = T.axis.spatial(3, i)
            S[v] = A[v]
        with T.block("B"):
            v = T.axis.spatial(3, i)
            B[v] = S[0] + S[3] * v
'''
BETWEEN = '''@T.prim_func
def f(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    S = T.alloc_buffer((3,), "int32")
    C = T.alloc_buffer((3,), "int32")
    for i in range(3):
        with T.block("C"):
            v = T.axis.spatial(3, i)
            C[v] = v
        for j in range(2):
            with T.block("S"):
                v = T.axis.spatial(3, i)
                S[v] = A[v]
            with T.block("B"):
                v = T.axis.spatial(3, i)
                B[v] = S[0] + C[v]
'''
STRIDED = '''@T.prim_func
def f(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
    S = T.alloc_buffer((5,), "int32")
    for i in range(3):
        with T.block("first"):
            T.where(i < 1)
            for j in range(5):
                S[j] = A[0]
        for j in range(3):
            with T.block("even"):
                v = T.axis.spatial(3, j)
                S[v * 2] = 0
        with T.block("B"):
            v = T.axis.spatial(3, i)
            B[v] = S[3] + v
'''


@pytest.mark.parametrize("source", [GUARDED, BETWEEN, STRIDED], ids=["guarded", "between", "strided"])
def test_what_other_writes_of_the_iteration_leave_out(source):
    """B is A[0] + its index: the element that an earlier iteration wrote, which the writes beside it do not touch."""
    func, a = from_source(source), np.array([7, 5, 3], "int32")
    flat, built = lower(func), tw.build(func)
    for run in (lambda b: interp.run(func, a, b), lambda b: interp.run(flat, a, b), lambda b: built(a, b)):
        b = np.zeros(3, "int32")
        run(b)
        assert b.tolist() == [7, 8, 9]


LATER = '''@T.prim_func
def f(A: T.Buffer((3,), "int32"), D: T.Buffer((4, 2), "int32")):
    B = T.alloc_buffer((2,), "int32")
    for t in range(4):
        for z in range(2):
            with T.block("first"):
                v = T.axis.spatial(2, z)
                T.where(t < 1)
                B[v] = 100
        for i in range(2):
            {loops}
                with T.block("B"):
                    vi = T.axis.spatial(2, i)
                    {body}
        for j in range(2):
            with T.block("D"):
                vt = T.axis.spatial(4, t)
                v = T.axis.spatial(2, j)
                D[vt, v] = B[v]
'''
SUM = '''vk = T.axis.reduce(3, {step})
                    with T.init():
                        B[vi] = 0
                    B[vi] = B[vi] + A[vk]'''


@pytest.mark.parametrize("loops, body, added", [
    ("for k in range(1, 3):", SUM.format(step="k"), 8),                      # never at the step that starts it
    ("for k in range(2):", SUM.format(step="2 - k"), 8),
    ("for k, l in T.grid(2, 2):", "T.where(k == 0 and k + l == 3)\n                    B[vi] = 0", 0),
    ("for k in range(1):", "T.where(A[0] > 7)\n                    B[vi] = 0", 0),
], ids=["later steps", "last steps", "never", "data"])
def test_a_write_below_a_condition_on_inner_loops_that_does_not_hold(loops, body, added):
    func, a = from_source(LATER.format(loops=loops, body=body)), np.array([7, 5, 3], "int32")
    flat, built = lower(func), tw.build(func)
    for run in (lambda d: interp.run(func, a, d), lambda d: interp.run(flat, a, d), lambda d: built(a, d)):
        d = np.zeros((4, 2), "int32")
        run(d)
        assert d.tolist() == [[100 + added * (t + 1)] * 2 for t in range(4)]


def test_a_reduction_that_starts_in_each_iteration_keeps_its_buffer_inside():
    func = from_source(LATER.format(loops="for k in range(3):", body=SUM.format(step="k")))
    lines = str(lower(func, simple_mode=True)).splitlines()
    loop, inside = (next(n for n, s in enumerate(lines) if text in s) for text in ("for t in", " B = "))
    assert loop < inside
