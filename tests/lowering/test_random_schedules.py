"""Random programs under random legal schedules: what comes out of the passes equals NumPy."""
from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tilewright import te
from tilewright.lowering import lower
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.support.errors import ScheduleError
from tilewright.tir.interp import run

Shape = tuple[int, ...]


@dataclass
class Program:
    args: list[Any]
    stages: list[Any]                    # computed tensors, producers first
    inputs: list[Shape]
    output: Shape
    reference: Callable[..., np.ndarray]


def matmul(m: int, n: int, k: int, sym: Callable[[int, str], Any]) -> Program:
    M, N, K = sym(m, "m"), sym(n, "n"), sym(k, "k")
    A, B, r = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B"), te.reduce_axis((0, K), name="k")
    C = te.compute((M, N), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    D = te.compute((M, N), lambda i, j: C[i, j] * 2.0 + 1.0, name="D")
    return Program([A, B, D], [C, D], [(m, k), (k, n)], (m, n), lambda a, b: a @ b * 2 + 1)


def bias_relu(m: int, n: int, k: int, sym: Callable[[int, str], Any]) -> Program:
    M, N = sym(m, "m"), sym(n, "n")
    A, B = te.placeholder((M, N), name="A"), te.placeholder((N,), name="B")
    C = te.compute((M, N), lambda i, j: A[i, j] + B[j], name="C")
    D = te.compute((M, N), lambda i, j: te.max(C[i, j], 0.0), name="D")
    return Program([A, B, D], [C, D], [(m, n), (n,)], (m, n), lambda a, b: np.maximum(a + b, 0))


def padded_convolution(m: int, n: int, k: int, sym: Callable[[int, str], Any]) -> Program:
    M, N = sym(m, "m"), sym(n, "n")
    A, B = te.placeholder((M, N), name="A"), te.placeholder((3, 3), name="B")
    P = te.compute((M + 2, N + 2), lambda i, j: te.if_then_else(
        te.all(i >= 1, i < M + 1, j >= 1, j < N + 1), A[i - 1, j - 1], 0.0), name="P")
    r, s = te.reduce_axis((0, 3), name="r"), te.reduce_axis((0, 3), name="s")
    C = te.compute((M, N), lambda i, j: te.sum(P[i + r, j + s] * B[r, s], axis=[r, s]), name="C")

    def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        p = np.pad(a, 1)
        return sum(p[x:x + m, y:y + n] * b[x, y] for x in range(3) for y in range(3))  # type: ignore[return-value]
    return Program([A, B, C], [P, C], [(m, n), (3, 3)], (m, n), reference)


def mirror_transpose(m: int, n: int, k: int, sym: Callable[[int, str], Any]) -> Program:
    M, N = sym(m, "m"), sym(n, "n")
    A, B = te.placeholder((M, N), name="A"), te.placeholder((M, N), name="B")
    X = te.compute((M, N), lambda i, j: A[i, j] * B[i, j], name="X")
    Y = te.compute((M, N), lambda i, j: X[i, j] + X[i, N - 1 - j], name="Y")
    Z = te.compute((N, M), lambda i, j: Y[j, i] - 1.0, name="Z")
    return Program([A, B, Z], [X, Y, Z], [(m, n), (m, n)], (n, m), lambda a, b: (a * b + (a * b)[:, ::-1]).T - 1)


def shifted_exp(m: int, n: int, k: int, sym: Callable[[int, str], Any]) -> Program:
    M, K = sym(m, "m"), sym(k, "k")
    A, B, r = te.placeholder((M, K), name="A"), te.placeholder((M,), name="B"), te.reduce_axis((0, K), name="k")
    X = te.compute((M,), lambda i: te.max(A[i, r], axis=r), name="X")
    Y = te.compute((M, K), lambda i, j: te.exp(A[i, j] - X[i]) * B[i], name="Y")
    return Program([A, B, Y], [X, Y], [(m, k), (m,)], (m, k),
                   lambda a, b: np.exp(a - a.max(1, keepdims=True)) * b[:, None])


PROGRAMS = [matmul, bias_relu, padded_convolution, mirror_transpose, shifted_exp]


def attempt(action: Callable[[], Any]) -> Any:
    """The result of a schedule call; None when it is refused."""
    try:
        return action()
    except ScheduleError:
        return None


def schedule(rng: random.Random, program: Program) -> StageSchedule:
    s = te.create_schedule(program.stages[-1].op)
    stages = list(program.stages)
    if rng.random() < 0.5:
        target, scope = rng.choice(stages), rng.choice(["local", "global"])
        cached = attempt(lambda: s.cache_write(target, scope))
        stages += [cached] if cached is not None else []
    leaves = {t: arrange(rng, s[t]) for t in stages}
    for t in stages:
        consumer = rng.choice([c for c in stages if c is not t])
        if t is not program.stages[-1] and rng.random() < 0.5:
            at = rng.choice(leaves[consumer])
            attempt(lambda t=t, consumer=consumer, at=at: s[t].compute_at(s[consumer], at))
    return s


def arrange(rng: random.Random, stage: Any) -> Sequence[Any]:
    """Random splits, fusions, an order and annotations of the loops of a stage; its final loops."""
    loops = [*stage.op.axis, *getattr(stage.op, "reduce_axis", ())]
    spatial = {id(a) for a in stage.op.axis}
    for _ in range(rng.randint(0, 3)):
        n = rng.randrange(len(loops))
        if rng.random() < 0.75:
            factor, keyword = rng.choice([2, 3, 4, 5]), rng.choice(["factor", "factor", "nparts"])
            new = attempt(lambda n=n, factor=factor, keyword=keyword: stage.split(loops[n], **{keyword: factor}))
            old = loops[n:n + 1]
        else:
            old = loops[n:n + 2]
            both = len(old) == 2 and len({id(a) in spatial for a in old}) == 1
            fused = attempt(lambda old=old: stage.fuse(*old)) if both else None
            new = None if fused is None else [fused]
        if new is not None:
            spatial |= {id(a) for a in new} if id(old[0]) in spatial else set()
            loops[n:n + len(old)] = new
    if rng.random() < 0.6:
        rng.shuffle(loops)
        stage.reorder(*loops)
    for _ in range(rng.randint(0, 3)):
        axis, kind = rng.choice(loops), rng.choice(["vectorize", "vectorize", "parallel", "unroll"])
        if kind == "unroll" or id(axis) in spatial:
            attempt(lambda axis=axis, kind=kind: getattr(stage, kind)(axis))
    return loops


@pytest.mark.parametrize("seed", range(80))
def test_a_scheduled_program_computes_what_it_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setenv("TILEWRIGHT_VERIFY", "1")
    symbolic = rng.random() < 0.3
    sizes = [rng.choice([1, 2, 3, 5, 7, 8, 12]) for _ in range(3)]
    program = rng.choice(PROGRAMS)(*sizes, lambda size, name: te.var(name) if symbolic else size)
    func = attempt(lambda: schedule(rng, program).replay(program.args, "f").func)
    if func is None:
        return
    data = np.random.default_rng(seed)
    inputs = [data.standard_normal(shape).astype("float32") for shape in program.inputs]
    want = program.reference(*[x.astype("float64") for x in inputs])
    for simple in (True, False):
        out = np.full(program.output, np.nan, "float32")
        run(lower(func, simple_mode=simple), *inputs, out)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4)
