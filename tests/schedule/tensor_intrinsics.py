"""Tensor intrinsics of the tests: a 4 by 4 by 8 product in script and in te, and vector operations."""
from __future__ import annotations

import numpy as np

from tilewright import te, tir
from tilewright.script import tir as T
from tilewright.tir import TensorIntrin


@T.prim_func
def product_desc(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 8), "int32", offset_factor=1)
    B = T.match_buffer(b, (4, 8), "int32", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:8], B[0:4, 0:8])
        T.writes(C[0:4, 0:4])
        for i, j, k in T.grid(4, 4, 8):
            with T.block("update"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]


@T.prim_func
def product_loops(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 8), "int32", offset_factor=1)
    B = T.match_buffer(b, (4, 8), "int32", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:8], B[0:4, 0:8])
        T.writes(C[0:4, 0:4])
        for i, k in T.grid(4, 8):
            for j in T.vectorized(4):
                C[i, j] = C[i, j] + A[i, k] * B[j, k]


@T.prim_func
def product_blocks(a: T.handle, b: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 8), "int32", offset_factor=1)
    B = T.match_buffer(b, (4, 8), "int32", offset_factor=1)
    C = T.match_buffer(c, (4, 4), "int32", offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:8], B[0:4, 0:8])
        T.writes(C[0:4, 0:4])
        for k, i, j in T.grid(8, 4, 4):
            with T.block("step"):
                vk, vi, vj = T.axis.remap("RSS", [k, i, j])
                C[vi, vj] = C[vi, vj] + B[vj, vk] * A[vi, vk]


@T.prim_func
def product_call(a: T.handle, b: T.handle, c: T.handle) -> None:
    sa, ta, sb, tb, sc, tc = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (4, 8), "int32", strides=[sa, ta], offset_factor=1)
    B = T.match_buffer(b, (4, 8), "int32", strides=[sb, tb], offset_factor=1)
    C = T.match_buffer(c, (4, 4), "int32", strides=[sc, tc], offset_factor=1)
    with T.block("root"):
        T.reads(C[0:4, 0:4], A[0:4, 0:8], B[0:4, 0:8])
        T.writes(C[0:4, 0:4])
        T.evaluate(T.call_packed("test.product", A.access_ptr("r"), B.access_ptr("r"), C.access_ptr("rw"), sa, tb))


def product_packed(a: np.ndarray, b: np.ndarray, c: np.ndarray, sa: int, tb: int) -> None:
    """What product_call calls, under the interpreter."""
    c += a @ b.T


loops = TensorIntrin.register("test.loops", product_desc, product_loops)
blocks = TensorIntrin.register("test.blocks", product_desc, product_blocks)
call = TensorIntrin.register("test.call", product_desc, product_call)


def te_product(strided: bool = True, name: str = "test.te"):
    """The same with an init, declared in te: whole, reset and update are packed functions NAME.whole, ..."""
    w, x = te.placeholder((4, 8), "int32", name="w"), te.placeholder((4, 8), "int32", name="x")
    k = te.reduce_axis((0, 8), name="k")
    y = te.compute((4, 4), lambda i, j: te.sum(w[i, k] * x[j, k], axis=k), name="y")

    def lower(ins, outs):
        return (te.call_packed(f"{name}.whole", *ins, *outs), te.call_packed(f"{name}.reset", *outs),
                te.call_packed(f"{name}.update", *ins, *outs))

    binds = {t: tir.decl_buffer(t.shape, t.dtype, t.name, strides=[te.var(f"{t.name}_ld"), 1]) for t in (w, x, y)}
    return te.decl_tensor_intrin(y.op, lower, name, binds if strided else None)


def te_externs(name: str = "test.te"):
    """The functions that te_product calls, for the interpreter."""
    def whole(w, x, y):
        y[...] = w @ x.T

    def reset(y):
        y[...] = 0

    def update(w, x, y):
        y += w @ x.T
    return {f"{name}.whole": whole, f"{name}.reset": reset, f"{name}.update": update}


def te_vector(combine, n=4, inputs=1, dtype="int32", body=None):
    """An intrinsic of n elements: combine of the inputs' elements, run by a loop (or by body)."""
    ins = [te.placeholder((n,), dtype, name=f"x{k}") for k in range(inputs)]
    out = te.compute((n,), lambda i: combine(*[x[i] for x in ins]), name="y")

    def loop(buffers, outs):
        i = te.var("i")
        return tir.loop(i, n, outs[0].vstore((i,), combine(*[b[i] for b in buffers])))
    return te.decl_tensor_intrin(out.op, body or loop, "vector")
