"""Values that a guarded write leaves for later iterations stay alive."""
from __future__ import annotations

import numpy as np

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
