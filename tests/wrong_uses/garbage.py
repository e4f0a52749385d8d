"""Every public function called with arguments drawn from a bag of things that do not belong there."""
from __future__ import annotations

import functools
import inspect
import itertools
import random
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import graph, te
from tilewright.schedule import BlockRV, LoopRV, Trace
from tilewright.schedule.index_map import IndexMap
from tilewright.schedule.primitive import PRIMITIVES
from tilewright.support.errors import TilewrightError

from .programs import N, blocks, chain, matmul, matmul_kernel, row_sums, zeros

Named = tuple[str, Callable[..., Any]]
Call = tuple[str, Callable[..., Any], list[Any]]
_INTERNAL = {"CommReducer", "ComputeOp", "ExternOp", "Operation", "PlaceholderOp", "Reduce", "Reducer", "ScanOp",
             "Tensor", "TensorComputeOp", "TensorIntrin", "TensorRead", "TensorSlice", "IterVar", "Range", "Select",
             "Var", "lower_ops", "post_order"}


class OfUser(Exception):
    """What a function of the user raises."""


def failing(*_: Any) -> Any:
    """A function of the user that fails."""
    raise OfUser


class Silent:
    """An object that answers no question: as an array does not say whether it is true, or a list has no hash."""
    def _refuse(self, *_: Any) -> Any:
        raise KeyError("silent")

    __eq__ = __hash__ = __bool__ = __iter__ = __len__ = _refuse             # type: ignore[assignment]


def bag() -> list[Any]:
    """Things of every kind that a user could pass by mistake."""
    a, _, c = matmul()
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    plain = [None, -1, 0, 1, 3, 2.5, 2**31, 2**63, 2**70, float("nan"), float("inf"), 1j, True, np.float32(2),
             np.int64(3), "", "x", "C", "local", b"x", "threadIdx.x", "float32"]
    several = [[], (), {}, [None], [1, 2], (4, 4), (0, 3), [[1, 2], [3]], ({}, []), {"a": 1}, {"a": [[1]]}, set(),
               range(3), slice(0, 2), iter(()), np.zeros(3, "float32"), np.array(1), np.array([]), np.ones((2, 2), int),
               [np.arange(2)], (np.array("C"), 0), Silent(), [Silent()], {"a": Silent()}, (Silent(), 0)]
    ours = [a, c, c.op, i, *c.op.reduce_axis, a[i, j], te.var("n"), te.reduce_axis((0, 4)),
            te.thread_axis("threadIdx.x"), s, s[c], graph.placeholder("x"), tw.cpu(0), tw.nd.array(zeros(2))]
    return [*plain, *several, *ours, object(), lambda i: i, lambda i, j: i, lambda *i: 1.0, failing, print, type, int]


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
    for name in (*PRIMITIVES, "get", "get_sref", "work_on", "enter", "remove_rv", "seed", "can_decompose_padding"):
        yield name, getattr(sch, name)
    yield from (("IndexMap.from_func", IndexMap.from_func), ("IndexMap.from_text", IndexMap.from_text))
    index_map = IndexMap.from_text("lambda i, j: (j, i)")
    for name in ("map_indices", "map_shape", "inverse"):
        yield name, getattr(index_map, name)
    yield from (("Trace.from_json", Trace.from_json), ("apply_to_schedule", Trace().apply_to_schedule))


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
    """Every error that is not ours, once for each function and kind, as text: of calls with random arguments.

    What a function of the user raises comes through where it is called in a definition (te.compute), not in primitives.
    """
    rng = random.Random(seed)

    def calls() -> Iterator[Call]:
        for _ in range(rounds):
            things = bag()
            for name, function in area():
                least, most = _arity(function)
                yield name, function, [rng.choice(things) for _ in range(rng.randint(least, max(least, most)))]
    return _foreign(calls(), () if area is primitives else (OfUser,))


def foreign_errors_beside_usual_arguments() -> list[str]:
    """The same of calls of every primitive in which one argument is out of place."""
    def calls() -> Iterator[Call]:
        sch = blocks(row_sums)
        things = [*bag(), *handles(sch)]
        loops = {block: sch.get_loops(block)[-1] for block in ("B", "C")}
        now = sch.copy()
        for name, function in PRIMITIVES.items():
            parameters = list(inspect.signature(function).parameters.values())[1:]
            for wrong, (n, thing) in itertools.product(parameters, enumerate(things)):
                block = "BC"[n % 2]
                given = {p: thing if p is wrong else usual(p, block, loops[block])
                         for p in parameters if p is wrong or p.default is p.empty}
                named = {p.name: v for p, v in given.items() if p.kind is p.KEYWORD_ONLY}
                if len(now.trace) > len(sch.trace):                    # the last call was legal
                    now = sch.copy()
                yield (name, functools.partial(getattr(now, name), **named),
                       [v for p, v in given.items() if p.kind is not p.KEYWORD_ONLY])
    return _foreign(calls(), ())


def handles(sch: tw.Schedule) -> list[Any]:
    """Loops and blocks of a schedule, of another one, and such as there are no more."""
    other, before = blocks(row_sums), [*sch.get_loops("D"), sch.get_block("D")]
    sch.compute_inline("D")
    sample = sch.sample_categorical([2, 4], [0.5, 0.5])
    here = [rv for block in ("B", "C") for rv in (*sch.get_loops(block), sch.get_block(block))]
    return [*before, *here, sch.get_block("root"), sample, sample * 2, other.get_block("B"), *other.get_loops("B"),
            LoopRV(), BlockRV("B"), sch.get(here[0]), sch.get(sch.get_block("B")), sch.func, sch.func.buffers[0]]


def usual(parameter: inspect.Parameter, block: str, loop: LoopRV) -> Any:
    """What a call about a block of row_sums, or its innermost loop, could pass."""
    by_name = {"buffer": ("read", 0), "thread_axis": "threadIdx.x", "dtype": "float16", "n": 2, "factor": 2,
               "func_name": "main", "name": block}
    by_type = {"BlockRV": block, "LoopRV": loop, "int": 0, "str": "local", "Any": 1,
               "Callable": lambda *i: i, "Sequence[int]": [0, 1], "Sequence[int | None]": [None, 4],
               "Sequence[float]": [0.5, 0.5]}
    annotation = str(parameter.annotation)
    if parameter.name in by_name:
        return by_name[parameter.name]
    return next((v for kind, v in by_type.items() if annotation.startswith(kind)), None)


def _foreign(calls: Iterable[Call], allowed: tuple[type[Exception], ...]) -> list[str]:
    found: dict[tuple[str, str], str] = {}
    read: set[tuple[type, ...]] = set()
    for name, function, arguments in calls:
        try:
            try:
                function(*arguments)
            except TilewrightError as error:
                kinds = tuple(map(type, arguments))
                if kinds not in read:
                    read.add(kinds)
                    str(error)                                         # its text is made when it is asked for
        except allowed:
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
