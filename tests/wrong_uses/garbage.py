"""Every public function called with arguments drawn from a bag of things that do not belong there."""
from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import graph, te
from tilewright.schedule.primitive import PRIMITIVES
from tilewright.support.errors import TilewrightError

from .programs import N, blocks, chain, matmul, matmul_kernel, zeros

Named = tuple[str, Callable[..., Any]]
_INTERNAL = {"CommReducer", "ComputeOp", "ExternOp", "Operation", "PlaceholderOp", "Reduce", "Reducer", "ScanOp",
             "Tensor", "TensorComputeOp", "TensorIntrin", "TensorRead", "TensorSlice", "IterVar", "Range", "Select",
             "Var", "lower_ops", "post_order"}


def bag() -> list[Any]:
    """Things of every kind that a user could pass by mistake."""
    a, _, c = matmul()
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    plain = [None, -1, 0, 1, 3, 2.5, 2**31, 2**63, 2**70, float("nan"), float("inf"), 1j, True, np.float32(2),
             np.int64(3), "", "x", "C", "local", b"x", "threadIdx.x", "float32"]
    several = [[], (), {}, [None], [1, 2], (4, 4), (0, 3), {"a": 1}, set(), range(3), slice(0, 2),
               np.zeros(3, "float32")]
    ours = [a, c, c.op, i, *c.op.reduce_axis, a[i, j], te.var("n"), te.reduce_axis((0, 4)),
            te.thread_axis("threadIdx.x"), s, s[c], graph.placeholder("x"), tw.cpu(0), tw.nd.array(zeros(2))]
    return [*plain, *several, *ours, object(), lambda i: i, lambda i, j: i, lambda *i: 1.0, print, type, int]


def expressions() -> Iterator[Named]:
    for name in te.__all__:
        if name not in _INTERNAL and callable(getattr(te, name)):
            yield name, getattr(te, name)


def stages() -> Iterator[Named]:
    _, _, c = matmul()
    d = te.compute((N, N), lambda i, j: c[i, j] + 1.0, name="D")
    s = te.create_schedule(d.op)
    for t in (c, d):
        for name in ("split", "tile", "fuse", "reorder", "vectorize", "parallel", "unroll", "bind", "pragma",
                     "compute_at", "compute_inline", "compute_root", "set_scope", "tensorize", "double_buffer",
                     "rolling_buffer", "storage_align", "prefetch", "set_store_predicate", "env_threads"):
            yield name, getattr(s[t], name)
    for name in ("cache_read", "cache_write", "rfactor", "__getitem__", "__contains__", "replay", "fingerprint"):
        yield name, getattr(s, name)


def primitives() -> Iterator[Named]:
    sch = blocks(chain)
    for name in (*PRIMITIVES, "get"):
        yield name, getattr(sch, name)


def runtime() -> Iterator[Named]:
    for name in ("build", "lower", "compile", "target", "Target", "device", "cpu", "load_module", "get_global_func",
                 "set_num_threads", "Schedule"):
        yield name, getattr(tw, name)
    yield from (("array", tw.nd.array), ("empty", tw.nd.empty))
    module, tensor = matmul_kernel(), tw.nd.array(zeros(2, 3))
    for name in ("get_function", "get_source", "time_evaluator", "__getitem__", "__contains__", "__call__"):
        yield name, getattr(module, name)
    for name in ("copyfrom", "copyto", "__getitem__", "__setitem__", "__float__", "item"):
        yield name, getattr(tensor, name)


def graphs() -> Iterator[Named]:
    for name in graph.__all__:
        if name not in ("Operator", "Value", "MemoryPlan", "TensorType", "Update"):
            yield name, getattr(graph, name)
    x, w = graph.placeholder("x"), graph.parameter("w", zeros(3, 3))
    executor = graph.Executor([graph.matmul(x, w)])
    yield from (("run", executor.run), ("compile", executor.compile), ("feed", lambda v: executor.run({x: v})),
                ("minimize", graph.SGD(0.1).minimize))
    for name in ("__add__", "__mul__", "__truediv__", "__matmul__", "__rsub__"):
        yield name, getattr(x, name)


AREAS = (expressions, stages, primitives, runtime, graphs)


def foreign_errors(area: Callable[[], Iterator[Named]], seed: int, rounds: int) -> list[str]:
    """Every error that is not ours, once for each function and kind, as text."""
    rng = random.Random(seed)
    found: dict[tuple[str, str], str] = {}
    for _ in range(rounds):
        things = bag()
        for name, function in area():
            least, most = _arity(function)
            arguments = [rng.choice(things) for _ in range(rng.randint(least, max(least, most)))]
            try:
                function(*arguments)
            except TilewrightError:
                pass
            except Exception as error:
                kind = type(error).__name__
                found.setdefault((name, kind), f"{name}({', '.join(map(repr, arguments))}): {kind}: {error}")
    return list(found.values())


def _arity(function: Callable[..., Any]) -> tuple[int, int]:
    """The least and most positional arguments that a call may have."""
    parameters = inspect.signature(function).parameters.values()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    more = 3 if any(p.kind is p.VAR_POSITIONAL for p in parameters) else 0
    return sum(p.default is p.empty for p in positional), len(positional) + more
