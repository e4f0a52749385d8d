"""Products of low-bit matrices for the tests of their rule: functions, operands, targets."""
from __future__ import annotations

import ml_dtypes
import numpy as np

import tilewright as tw
from tilewright import te

HOST = tw.Target("llvm -num-cores=1")
ZEN4 = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=znver4 -num-cores=1"
ALDERLAKE = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=alderlake -num-cores=1"
HASWELL = "llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell -num-cores=1"
NEOVERSE = "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1 -num-cores=1"
NEOVERSE_V1 = "llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-v1 -num-cores=1"
S8, U8, BF = ("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("bfloat16", "bfloat16", "float32")
SU, UU = ("int8", "uint8", "int32"), ("uint8", "uint8", "int32")


def product(m, n, k, types, transposed=False, epilogue=None, a_transposed=False):
    extents = {"i": m, "j": n, "k": k}
    return einsum("ki" if a_transposed else "ik", "jk" if transposed else "kj", extents, types, epilogue)


def einsum(of_a, of_b, extents, types, epilogue=None):
    """C[b, i, j] or C[i, j]: the sum over k of A[of_a] * B[of_b], each letter an axis."""
    a_type, b_type, c_type = types
    a = te.placeholder([extents[x] for x in of_a], a_type, name="A")
    b = te.placeholder([extents[x] for x in of_b], b_type, name="B")
    r = te.reduce_axis((0, extents["k"]), name="k")
    axes = "bij" if "b" in of_a else "ij"

    def total(*spatial):
        at = dict(zip(axes, spatial), k=r)
        return te.sum(a(*(at[x] for x in of_a)).astype(c_type) * b(*(at[x] for x in of_b)).astype(c_type), axis=r)
    c = te.compute([extents[x] for x in axes], total, name="C")
    if epilogue is not None:
        c = te.compute(c.shape, lambda *at, c=c: epilogue(c(*at)), name="D")
    return te.create_prim_func([a, b, c])


def extremes(dtype, shape, seed=0):
    """The least and greatest integers, 1 and 0; floats from -3 to 3, whose products are exact."""
    rng = np.random.default_rng(seed)
    if dtype == "bfloat16":
        return rng.integers(-3, 4, shape).astype(ml_dtypes.bfloat16)
    info = np.iinfo(dtype)
    return rng.choice(np.array([info.min, info.max, info.min, info.max, 1, 0], dtype), shape)


def multiplied(a, b):
    return a.astype("int64") @ b.astype("int64")


def compiled(func, *args, target=HOST):
    shape, dtype = func.buffers[-1].shape, func.buffers[-1].dtype
    out = np.zeros([int(d) for d in shape], tw.tir.dtype.numpy_dtype(dtype))
    tw.compile(func, target=target)(*args, out)
    return out
