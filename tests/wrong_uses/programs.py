"""The small programs that are used wrongly."""
from __future__ import annotations

import functools

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.script import from_source

from .wrong_use import watch

N = 16


def placeholders():
    return te.placeholder((N, N), name="A"), te.placeholder((N, N), name="B")


def matmul():
    """A, B, C of C = A @ B, float32."""
    a, b = placeholders()
    k = te.reduce_axis((0, N), name="k")
    return a, b, te.compute((N, N), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


def chain():
    """A, B, C of B = A + 1, C = B * 2, float32."""
    a, _ = placeholders()
    b = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="B")
    return a, b, te.compute((N, N), lambda i, j: b[i, j] * 2.0, name="C")


def row_sums():
    """A, B, D, C of D = A + 1, B[i] = sum of D[i], C = B * 2, float32."""
    a, _ = placeholders()
    d = te.compute((N, N), lambda i, j: a[i, j] + 1.0, name="D")
    k = te.reduce_axis((0, N), name="k")
    b = te.compute((N,), lambda i: te.sum(d[i, k], axis=k), name="B")
    return a, b, d, te.compute((N,), lambda i: b[i] * 2.0, name="C")


def staged(program=matmul):
    """(stage schedule, its tensors)"""
    tensors = program()
    return te.create_schedule(tensors[-1].op), tensors


def blocks(program=matmul):
    """The block schedule of a program."""
    tensors = program()
    args = [t for t in tensors if t is tensors[-1] or not t.op.axis]
    return tw.Schedule(te.create_prim_func(args, name="main"))


def script(body: str, arguments: str = "A: T.Buffer((8, 8), 'int32'), B: T.Buffer((8, 8), 'int32')"):
    """The schedule of a function with this body, watched."""
    lines = "\n".join(f"    {line}" for line in body.strip("\n").splitlines())
    return watch(tw.Schedule(from_source(f"@T.prim_func\ndef main({arguments}):\n{lines}\n")))


# Bodies for `script`: B[i, 0:8] = A[i, 0:8] as one store of a vector; X, which each iteration of t has to itself.
VECTORS = """
for i in range(8):
    with T.block("B"):
        vi = T.axis.spatial(8, i)
        B.vstore([vi, T.Ramp(0, 1, 8)], A.vload([vi, T.Ramp(0, 1, 8)]))
"""
PRIVATE_MEMORY = """
X = T.alloc_buffer((8,), "int32")
for t in T.parallel(4):
    for i in range(8):
        with T.block("X"):
            vi = T.axis.spatial(8, i)
            X[vi] = A[vi, 0]
    with T.block("B"):
        vt = T.axis.spatial(4, t)
        B[vt, 0] = vt
"""


@functools.cache
def matmul_kernel():
    """matmul(A: float32[16, 16], B: float32[16, 16], C: float32[16, 16])"""
    s, tensors = staged()
    return tw.build(s, list(tensors), "llvm", name="matmul")


@functools.cache
def scale_kernel():
    """scale(A: float32[n], C: float32[n], factor: float32): C = A * factor, n known at the call"""
    n, factor = te.var("n"), te.var("factor", "float32")
    a = te.placeholder((n,), name="A")
    c = te.compute((n,), lambda i: a[i] * factor, name="C")
    return tw.build(te.create_schedule(c.op), [a, c, factor], "llvm", name="scale")


@functools.cache
def shift_kernel():
    """copy(A: float32[m], C: float32[n]): C[i] = A[i], the extents being different variables"""
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((m,), name="A")
    c = te.compute((n,), lambda i: a[i], name="C")
    return tw.build(te.create_schedule(c.op), [a, c], "llvm", name="copy")


@functools.cache
def gather_kernel():
    """gather(T: float32[4, 6], I: int32[3], C: float32[3, 6]): C[i, j] = T[I[i], j]"""
    t, index = te.placeholder((4, 6), name="T"), te.placeholder((3,), "int32", name="I")
    c = te.compute((3, 6), lambda i, j: t[index[i], j], name="C")
    return tw.build(te.create_schedule(c.op), [t, index, c], "llvm", name="gather")


@functools.cache
def callback_kernel():
    """fill(A: float32[4], C: float32[4]) calls the packed function wrong_uses.nobody"""
    a = te.placeholder((4,), name="A")
    c = te.extern((4,), [a], lambda ins, outs: te.call_packed("wrong_uses.nobody", ins[0], outs[0]), name="C")
    return tw.build(te.create_schedule(c.op), [a, c], "llvm", name="fill")


def zeros(*shape, dtype="float32"):
    return np.zeros(shape, dtype)
