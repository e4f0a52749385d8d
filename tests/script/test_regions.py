"""Blocks that do not state what they read and write: the regions are inferred, as te states them."""
from __future__ import annotations

import pytest

from tilewright import te
from tilewright.script import from_source
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import assert_structural_equal
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block

HEAD = '@T.prim_func\ndef f(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "int32"), n: T.int32):\n'


def regions(body: str, name: str = "b") -> tuple[list[str], list[str]]:
    func = from_source(HEAD + "".join(f"    {line}\n" for line in body.strip("\n").split("\n")))
    block = next(s for s in walk(func.body) if isinstance(s, Block) and s.name == name)
    return [str(r) for r in block.reads], [str(r) for r in block.writes]


BLOCK = "for i, j in T.grid(16, 16):\n    with T.block('b'):\n        vi, vj = T.axis.remap('SS', [i, j])\n"


@pytest.mark.parametrize("body, reads, writes", [
    ("A[vi, vj] = A[vj, vi]", ["A[vj, vi]"], ["A[vi, vj]"]),
    ("A[vi, vj] = A[vi, vj] + 1.0", ["A[vi, vj]"], ["A[vi, vj]"]),
    ("A[vi, vj] = A[vi - 1, vj] + A[vi + 1, vj]", ["A[vi - 1:vi - 1 + 3, vj]"], ["A[vi, vj]"]),
    ("A[vi, vj] = A[vi, 3] + A[vi, vj]", ["A[vi, 0:16]"], ["A[vi, vj]"]),
    ("A[vi, vj] = A[B[vi], 0]", ["A[0:16, 0]", "B[vi]"], ["A[vi, vj]"]),
    ("for r in range(4):\n    A[vi, vj * 4 + r] = 0.0", [], ["A[vi, vj * 4:vj * 4 + 4]"]),
    ("for r in range(vi):\n    A[vi, r] = 0.0", [], ["A[vi, 0:vi]"]),
    ("for r in range(4):\n    for s in range(r, 6):\n        A[vi, s] = 0.0", [], ["A[vi, 0:6]"]),
    ("for r in range(4):\n    for s in range(r, r + 4):\n        A[vi, s] = 0.0", [], ["A[vi, 0:16]"]),
    ("for r in range(B[0], B[0] + 4):\n    A[vi, r] = 0.0", ["B[0]"], ["A[vi, 0:16]"]),
    ("x = vj + 1\nA[vi, x] = 0.0", [], ["A[vi, vj + 1]"]),
    ("A[vi, 0:8] = A[vi, 8:16]", ["A[vi, 0:16]"], ["A[vi, 0:16]"]),
    ("if B[vi] > 3:\n    A[vi, vj] = 0.0", ["B[vi]"], ["A[vi, vj]"]),
    ("t = T.alloc_buffer((4,))\nt[0] = A[vi, vj]\nA[vi, vj] = t[0]", ["A[vi, vj]"], ["A[vi, vj]"]),
    ("V = T.match_buffer(A[vi, 0:8], (8,))\nV[3] = 1.0", [], ["A[vi, 0:8]"]),
    ("T.call_packed('f', A.access_ptr('rw'))", ["A[0:16, 0:16]"], ["A[0:16, 0:16]"]),
    ("with T.init():\n    A[vi, vj] = 0.0\nA[vi, vj] += T.Cast('float32', B[vi])", ["B[vi]"], ["A[vi, vj]"]),
    ("with T.init():\n    A[vi, vj] = 0.0\nA[vi, vj] += A[vj, vi]", ["A[vj, vi]"], ["A[vi, vj]"]),
    ("T.reads(A)\nA[vi, vj] = 0.0", ["A[0:16, 0:16]"], ["A[vi, vj]"]),
    ("T.writes(A)\nA[vi, vj] = A[vi, 0]", ["A[vi, 0]"], ["A[0:16, 0:16]"]),
    ("for k in range(4):\n    with T.block('inner'):\n        v = T.axis.spatial(64, vi * 4 + k)\n"
     "        A[vi, v] = T.Cast('float32', B[v])",
     ["B[vi * 4:vi * 4 + 4]"], ["A[vi, vi * 4:vi * 4 + 4]"]),
])
def test_regions(body, reads, writes):
    source = BLOCK + "".join(f"        {line}\n" for line in body.split("\n"))
    assert regions(source) == (reads, writes)


def test_regions_are_those_of_te():
    a, b = te.placeholder((8, 6), name="A"), te.placeholder((6, 4), name="B")
    k = te.reduce_axis((0, 6), name="k")
    c = te.compute((8, 4), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    d = te.compute((7, 4), lambda i, j: c[i, j] + c[i + 1, j], name="D")
    assert_structural_equal(create_prim_func([a, b, d]), from_source("""
        @T.prim_func
        def main(A: T.Buffer((8, 6), "float32"), B: T.Buffer((6, 4), "float32"), D: T.Buffer((7, 4), "float32")):
            T.func_attr({"tir.noalias": True})
            C = T.alloc_buffer((8, 4))
            for i, j, k in T.grid(8, 4, 6):
                with T.block("C"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    with T.init():
                        C[vi, vj] = 0
                    C[vi, vj] += A[vi, vk] * B[vk, vj]
            for i, j in T.grid(7, 4):
                with T.block("D"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    D[vi, vj] = C[vi, vj] + C[vi + 1, vj]
    """))
