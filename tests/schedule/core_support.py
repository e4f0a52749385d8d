"""Kernels and checks for the tests of the schedule's core."""
from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np

from tilewright import te
from tilewright.schedule import Schedule, replay
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.equal import structural_equal
from tilewright.tir.stmt import PrimFunc


def scale(n: int | te.Tensor = 10, dtype: str = "int32") -> PrimFunc:
    """B[i] = 3 * A[i]."""
    a = te.placeholder((n,), dtype, name="A")
    b = te.compute((n,), lambda i: a[i] * 3, name="B")
    return create_prim_func([a, b], name="scale")


def matmul(n: int = 4, m: int = 6, k: int = 5, dtype: str = "int32") -> PrimFunc:
    """C[i, j] = sum_r A[i, r] * B[r, j]."""
    a = te.placeholder((n, k), dtype, name="A")
    b = te.placeholder((k, m), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    return create_prim_func([a, b, c], name="matmul")


def matmul_relu(n: int = 4, m: int = 6, k: int = 5) -> PrimFunc:
    """D[i, j] = max(C[i, j], 0) with C the product of A and B."""
    a = te.placeholder((n, k), "int32", name="A")
    b = te.placeholder((k, m), "int32", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((n, m), lambda i, j: te.max(c[i, j], 0), name="D")
    return create_prim_func([a, b, d], name="matmul_relu")


def run(func: PrimFunc, inputs: list[np.ndarray], outputs: list[np.ndarray]) -> list[np.ndarray]:
    """The outputs of func under the interpreter; they start as garbage."""
    results = [np.full_like(o, 77) for o in outputs]
    interp.run(func, *[x.copy() for x in inputs], *results)
    return results


def check(sch: Schedule, func: PrimFunc, reference: Callable[..., np.ndarray], *shapes: tuple[int, ...],
          size: tuple[int, ...]) -> None:
    """The schedule means what reference says on random integers, and its trace replays in three ways."""
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-9, 9, s).astype("int32") for s in shapes]
    want = reference(*[x.astype("int64") for x in inputs])
    got, = run(sch.func, inputs, [np.zeros(size, "int32")])
    np.testing.assert_array_equal(got, want)
    check_replay(sch, func)


def check_replay(sch: Schedule, func: PrimFunc) -> None:
    """The trace gives the same function again: as objects, through JSON, and as Python text."""
    replayed = Schedule(func)
    sch.trace.apply_to_schedule(replayed)
    assert structural_equal(replayed.func, sch.func)
    from_json = Schedule(func)
    replay(json.loads(json.dumps(sch.trace.as_json())), from_json)
    assert structural_equal(from_json.func, sch.func)
    scope = {"sch": Schedule(func)}
    exec("\n".join(sch.trace.as_python()), scope)
    assert structural_equal(scope["sch"].func, sch.func)
    assert str(scope["sch"]) == str(sch)
