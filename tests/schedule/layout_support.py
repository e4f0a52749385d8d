"""Kernels and checks for the tests of layouts, padding and circular buffers."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.lowering.pipeline import lower
from tilewright.schedule import Schedule
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.stmt import PrimFunc

from .compute_support import check
from .core_support import check_replay


def proven(sch: Schedule, func: PrimFunc, reference: Callable[..., Any], *shapes: Sequence[int],
           dtype: str = "int32") -> None:
    """The schedule means what reference says, in both forms and as native code, and its trace replays in three ways."""
    if dtype == "int32":
        check(sch, func, reference, *shapes)
    check_replay(sch, func)
    rng = np.random.default_rng(1)
    inputs = [rng.integers(-9, 9, s).astype(dtype) for s in shapes]
    want = reference(*[x.astype("float64" if dtype.startswith("float") else "int64") for x in inputs])
    for run in (functools.partial(interp.run, lower(sch.func)), tw.build(sch.func, target="llvm -opt-level=1")):
        got = np.full(want.shape, 77, dtype)
        run(*[x.copy() for x in inputs], got)
        np.testing.assert_array_equal(got, want)


def program(*tensors: te.Tensor) -> PrimFunc:
    """The function of the last tensor and the placeholders among the others."""
    return create_prim_func([t for t in tensors if t is tensors[-1] or not t.op.axis])


def matmul(n: int, m: int, k: int, dtype: str = "int32") -> PrimFunc:
    """C = A @ B"""
    a, b = te.placeholder((n, k), dtype, name="A"), te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    return program(a, b, te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C"))


def conv2d(n: int = 9, channels: int = 3, out: int = 5, size: int = 3) -> PrimFunc:
    """A convolution with zero padding: P = pad(A), C[o, y, x] = sum of P[c, y + i, x + j] * W[o, c, i, j]"""
    side = size // 2
    a = te.placeholder((channels, n, n), "int32", name="A")
    w = te.placeholder((out, channels, size, size), "int32", name="W")
    p = te.compute((channels, n + 2 * side, n + 2 * side), lambda c, y, x: te.if_then_else(
        te.all(y >= side, y < n + side, x >= side, x < n + side), a[c, y - side, x - side], 0), name="P")
    c, i, j = te.reduce_axis((0, channels), "c"), te.reduce_axis((0, size), "i"), te.reduce_axis((0, size), "j")
    return program(a, w, p, te.compute((out, n, n), lambda o, y, x: te.sum(
        p[c, y + i, x + j] * w[o, c, i, j], axis=[c, i, j]), name="C"))


def conv2d_reference(a: np.ndarray, w: np.ndarray) -> np.ndarray:
    side, n = w.shape[2] // 2, a.shape[1]
    p = np.pad(a, ((0, 0), (side, side), (side, side)))
    return sum(np.einsum("cyx,oc->oyx", p[:, i:i + n, j:j + n], w[:, :, i, j])
               for i in range(w.shape[2]) for j in range(w.shape[3]))


def pools(n: int = 20, m: int = 7, size: int = 3, stride: int = 1) -> PrimFunc:
    """Two maximum poolings, one after the other: Q of A, C of Q; windows of `size` rows and columns."""
    rows, cols = (n - size) // stride + 1, m - size + 1
    a = te.placeholder((n, m), "int32", name="A")
    i, j = te.reduce_axis((0, size), "i"), te.reduce_axis((0, size), "j")
    q = te.compute((rows, cols), lambda y, x: te.max(a[y * stride + i, x + j], axis=[i, j]), name="Q")
    u, v = te.reduce_axis((0, size), "u"), te.reduce_axis((0, size), "v")
    return program(a, q, te.compute(((rows - size) // stride + 1, cols - size + 1), lambda y, x: te.max(
        q[y * stride + u, x + v], axis=[u, v]), name="C"))


def pooled(x: np.ndarray, size: int, stride: int) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size))
    return windows[::stride].max(axis=(2, 3))


def pools_reference(size: int = 3, stride: int = 1) -> Callable[[np.ndarray], np.ndarray]:
    return lambda a: pooled(pooled(a, size, stride), size, stride)


def transposed() -> Schedule:
    """C[i, j] = A[j, i + 1] * 2"""
    a = te.placeholder((6, 5), "int32", name="A")
    return Schedule(create_prim_func([a, te.compute((4, 6), lambda i, j: a[j, i + 1] * 2, name="C")]))
