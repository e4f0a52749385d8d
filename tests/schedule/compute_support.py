"""Kernels and checks for the tests of moving, inlining and caching."""
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tilewright import te
from tilewright.lowering.plan_buffer_allocation import plan_buffer_allocation
from tilewright.schedule import Schedule, replay
from tilewright.support.errors import ScheduleError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.buffer import BufferRegion
from tilewright.tir.equal import structural_equal
from tilewright.tir.node import Node, rewrite
from tilewright.tir.stmt import PrimFunc, Seq, Store
from tilewright.tir.verify import verify


def chain(n: Any = 20, dtype: str = "int32") -> PrimFunc:
    """B[i] = 3*A[i]; C[i] = B[i] - 1."""
    a = te.placeholder((n,), dtype, name="A")
    b = te.compute((n,), lambda i: a[i] * 3, name="B")
    c = te.compute((n,), lambda i: b[i] - 1, name="C")
    return create_prim_func([a, c])


def stencil(n: int = 20, m: int = 6) -> PrimFunc:
    """B = 3*A; C[i, j] = B[i, j] + B[i + 2, j]."""
    a = te.placeholder((n + 2, m), "int32", name="A")
    b = te.compute((n + 2, m), lambda i, j: a[i, j] * 3, name="B")
    c = te.compute((n, m), lambda i, j: b[i, j] + b[i + 2, j], name="C")
    return create_prim_func([a, c])


def matmul_bias(n: Any = 20, m: Any = 18, k: Any = 13) -> PrimFunc:
    """D[i, j] = sum_r A[i, r]*B[r, j] + i; the product is block C."""
    a = te.placeholder((n, k), "int32", name="A")
    b = te.placeholder((k, m), "int32", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    d = te.compute((n, m), lambda i, j: c[i, j] + i, name="D")
    return create_prim_func([a, b, d])


def matmul_bias_reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a @ b + np.arange(a.shape[0])[:, None]


def overwritten_between(n: int = 6) -> PrimFunc:
    """B = A + 1; A = 5*A (block U); C = 2*B."""
    a = te.placeholder((n,), "int32", name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="B")
    u = te.compute((n,), lambda i: a[i] * 5, name="U")
    c = te.compute((n,), lambda i: b[i] * 2, name="C")
    func = create_prim_func([a, c, u])
    buffer = {x.name: x for x in func.buffers}

    def swap(node: Node) -> Node | None:
        redirected = isinstance(node, (Store, BufferRegion)) and node.buffer is buffer["U"]
        return node.replace(buffer=buffer["A"]) if redirected else None

    root = rewrite(func.body.block, swap)  # type: ignore[attr-defined]
    nests = sorted(root.body.stmts, key=lambda nest: "BUC".index(nest.body.block.name))
    return func.with_body(func.body.replace(block=root.replace(body=Seq(tuple(nests)))))


def check(sch: Schedule, func: PrimFunc, reference: Callable[..., Any], *shapes: Sequence[int]) -> None:
    """The schedule is well formed, means what reference says on random integers, and its trace replays."""
    verify(sch.func, "block")
    rng = np.random.default_rng(0)
    inputs = [rng.integers(-9, 9, s).astype("int32") for s in shapes]
    want = reference(*[x.astype("int64") for x in inputs])
    wants = list(want) if isinstance(want, tuple) else [want]
    results = [np.full(w.shape, 77, "int32") for w in wants]
    interp.run(plan_buffer_allocation(sch.func), *[x.copy() for x in inputs], *results)
    for got, expected in zip(results, wants, strict=True):
        np.testing.assert_array_equal(got, expected)
    again = Schedule(func)
    replay(json.loads(json.dumps(sch.trace.as_json())), again)
    assert structural_equal(again.func, sch.func)


def body_text(sch: Schedule) -> str:
    """The printed statements of the function, without its header, reads and writes."""
    lines = str(sch.func).split("\n")
    start = next(n for n, line in enumerate(lines) if "root" in line) + 1
    return "\n".join(line for line in lines[start:] if "T.reads" not in line and "T.writes" not in line)


def loop_extents(sch: Schedule, block: str) -> list[Any]:
    """The extents of the loops around a block, outermost first."""
    return [getattr(sch.get(rv).extent, "value", str(sch.get(rv).extent)) for rv in sch.get_loops(sch.get_block(block))]


def refuses(sch: Schedule, call: Callable[[], Any], *words: str) -> str:
    """call raises a ScheduleError that has all the words, and leaves the schedule as it was; the message."""
    before, length = sch.func, len(sch.trace)
    with pytest.raises(ScheduleError) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message, message
    assert sch.func is before and all(e.primitive.startswith("get_") for e in sch.trace.entries[length:])
    return message
