"""Masks that LLVM moves out of the vector registers 16 to 31 with an instruction that has only 16."""
from __future__ import annotations

import warnings

import numpy as np

import tilewright as tw
from tilewright.codegen.llvm.mask_moves import has_wrong_mask_move
from tilewright.script import from_source
from tilewright.support.errors import CodegenWarning
from tilewright.tir import interp

SCATTERED = '''@T.prim_func
def f(n: T.int32, A: T.Buffer((40,), "int32"), D: T.Buffer((3, 40), "int32")):
    B = T.alloc_buffer((40,), "int32")
    E = T.alloc_buffer((40,), "int32")
    for t in range(3):
        for x in range(40):
            B[x] = x
        for x in range(40):
            E[x] = 40 - x
        for i in range(2):
            A.vstore([T.Ramp(1, 1, 4)], T.Select(A[T.Ramp(i + 2, 2, 4)] > T.Broadcast(0, 4), A[T.Ramp(8, -2, 4)],
                                                 T.Broadcast(3, 4)), predicate=A[T.Ramp(6, 2, 4)] > T.Broadcast(0, 4))
            E.vstore([T.Ramp(i * 4 + 2, 3, 4)], T.Broadcast(1, 4))
        B.vstore([T.Ramp(5, 3, 2)], T.Ramp(2, 0, 2) * (T.Broadcast(n, 2) * B[T.Ramp(t * 2, 1, 2)] + E[T.Ramp(0, 0, 2)]),
                 predicate=T.Broadcast(A[3], 2) > T.Broadcast(3, 2))
        for x in range(40):
            D[t, x] = B[x] * 3 + E[39 - x] * 7
'''


def test_bytes():
    """vmovmskpd of xmm17 as LLVM writes it, and instructions that are right: of xmm9, of memory, of three operands."""
    assert has_wrong_mask_move(bytes.fromhex("c4217950c9"))
    assert has_wrong_mask_move(bytes.fromhex("90c4a17cd7c1"))
    for right in ("c4417950c9", "c4c17850c1", "c421795009", "c4217150c9", "c4e17950c9", "c42179d8c9"):
        assert not has_wrong_mask_move(bytes.fromhex(right))


def test_scattered_stores_of_a_few_lanes():
    func = from_source(SCATTERED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CodegenWarning)
        wide, here = (tw.build(func, target=t) for t in ("llvm -mcpu=x86-64-v4", "llvm"))
    assert wide.objects and not any(map(has_wrong_mask_move, wide.objects))
    for seed in range(10):
        a = np.random.default_rng(seed).integers(-3, 8, 40).astype("int32")
        wanted, made = [a.copy(), np.zeros((3, 40), "int32")], [a.copy(), np.zeros((3, 40), "int32")]
        interp.run(func, 2, *wanted)
        here(2, *made)
        assert all(map(np.array_equal, wanted, made))
