"""Functions of symbolic sizes, built once and called with 0, 1, primes and mixtures of them."""
from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.support.errors import ScheduleError

from .common import Case, Wrong, array_differences, call_guarded

LONG = 0.5                                             # seconds of one core
SIZES = (0, 1, 1, 2, 3, 5, 7, 11, 13, 17, 31, 64, 67)
CALLS, INTERPRETED = 7, 2
MOVES = ("split", "split", "split", "fuse", "reorder", "vectorize", "parallel", "unroll", "inline", "at")


@dataclass(frozen=True)
class Stage:
    """One tensor, made of those before it. shape: of symbols; "+c" after one adds."""
    name: str
    kind: str
    shape: tuple[str, ...]
    sources: tuple[str, ...]
    c: int = 1


@dataclass
class Program:
    seed: int
    symbols: tuple[str, ...]
    inputs: dict[str, tuple[str, ...]]
    stages: list[Stage] = field(default_factory=list)
    compiled: bool = False                             # by the rules, instead of under a schedule
    moves: int = 12                                    # how often a stage is scheduled at random
    calls: list[dict[str, int]] = field(default_factory=list)

    @property
    def outputs(self) -> list[Stage]:
        """The stages that no other reads, and the last."""
        read = {n for s in self.stages for n in s.sources}
        return [s for s in self.stages if s.name not in read]


def size(d: str, sizes: Mapping[str, Any]) -> Any:
    """An extent: "n", "n+2", "n*m"."""
    for sign, apply in (("+", lambda a, b: a + b), ("*", lambda a, b: a * b)):
        if sign in d:
            a, b = d.split(sign)
            return apply(size(a, sizes), size(b, sizes))
    return int(d) if d.isdigit() else sizes[d]


def program(seed: int) -> Program:
    rng = random.Random(f"sizes {seed}")
    symbols = ("n", "m", "k")[:rng.choice([1, 2, 2, 3])]
    matrix = (rng.choice(symbols), rng.choice(symbols))
    p = Program(seed, symbols, {"A": matrix, "V": (matrix[1],), "W": (f"{matrix[0]}+2", matrix[1])},
                compiled=rng.random() < 0.25)
    if rng.random() < 0.5:
        p.inputs["B"] = (matrix[1], rng.choice(symbols))
    shapes = dict(p.inputs)
    for number in range(rng.choice([1, 2, 2, 3, 4])):
        s = _stage(rng, f"t{number}", shapes)
        p.stages.append(s)
        shapes[s.name] = s.shape
    needed = {v for s in p.stages if s.kind == "scan" for v in symbols if v in s.shape[0]}   # it starts from row 0
    for _ in range(CALLS):
        p.calls.append({v: rng.choice(SIZES) or int(v in needed) for v in symbols})
    return p


def _stage(rng: random.Random, name: str, shapes: dict[str, tuple[str, ...]]) -> Stage:
    matrices = [n for n, s in shapes.items() if len(s) == 2]
    last = rng.choice(matrices[-2:]) if rng.random() < 0.7 else rng.choice(matrices)
    n, m = shapes[last]
    others = [o for o in matrices if shapes[o] == (n, m)]
    rows = [o for o, s in shapes.items() if s == (m,)]
    partners = [o for o in matrices if shapes[o][0] == m]
    c = rng.choice([1, 2, 3, 5])
    choices: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
        ("map", (n, m), (last, rng.choice(others))), ("neighbours", (n, m), (last,)), ("transpose", (m, n), (last,)),
        ("sum", (n,), (last,)), ("max", (n,), (last,)), ("total", ("1",), (last,)), ("pad", (f"{n}+{c}", m), (last,)),
        ("flat", (f"{n}*{m}",), (last,)), ("scan", (n, m), (last,)), ("columns", (m,), (last,)),
        ("every", (n, m), (last,))]
    if rows:
        choices += [("row", (n, m), (last, rng.choice(rows)))] * 2
    if partners:
        choices += [("matmul", (n, shapes[o := rng.choice(partners)][1]), (last, o))] * 3
    if n.endswith("+2") and n.count("+") == 1:
        choices += [("stencil", (n[:-2], m), (last,))] * 4
    kind, shape, sources = rng.choice([ch for ch in choices if "+" not in "".join(ch[1]).replace("+", "", 1)
                                       and not ("*" in "".join(ch[1]) and "+" in "".join(ch[1]))])
    return Stage(name, kind, shape, sources, c)


# in NumPy ------------------------------------------------------------------------------------------------------------
def evaluate(s: Stage, made: Mapping[str, np.ndarray], sizes: Mapping[str, int]) -> np.ndarray:
    a = made[s.sources[0]]
    b = made[s.sources[-1]]
    n, m = a.shape
    i, j = np.arange(n, dtype="int32")[:, None], np.arange(m, dtype="int32")[None, :]
    c = np.int32(s.c)
    with np.errstate(all="ignore"):
        match s.kind:
            case "map":
                return a * c + b - i
            case "neighbours":
                left, right = np.zeros_like(a), np.zeros_like(a)
                left[:, 1:], right[:, :-1] = a[:, :-1], a[:, 1:]
                return left + right * c
            case "transpose":
                return a.T.copy()
            case "sum":
                return a.sum(1, dtype="int32")
            case "columns":
                return a.sum(0, dtype="int32") + np.int32(n)
            case "max":
                return a.max(1, initial=np.iinfo("int32").min)
            case "total":
                return a.sum(dtype="int32").reshape(1)
            case "pad":
                return np.concatenate([a, np.full((s.c, m), -s.c, "int32")])
            case "flat":
                return a.reshape(-1).copy()
            case "scan":
                return np.cumsum(a, 0, dtype="int32")
            case "every":
                return np.where((i * m + j) % c == 0, a, -a) if n and m else a.copy()
            case "row":
                return a * b[None, :] + j
            case "matmul":
                return (a.astype("int64") @ b.astype("int64")).astype("int32")
            case "stencil":
                return a[:-2] + a[1:-1] * c - a[2:]
    raise AssertionError(s.kind)


# in te ---------------------------------------------------------------------------------------------------------------
def tensor(s: Stage, made: Mapping[str, Any], sizes: Mapping[str, Any]) -> Any:
    a, b, c = made[s.sources[0]], made[s.sources[-1]], s.c
    n, m = a.shape
    shape = tuple(size(d, sizes) for d in s.shape)
    axes = {"sum": m, "max": m, "columns": n, "matmul": m}
    r = te.reduce_axis((0, axes[s.kind]), name=f"r_{s.name}") if s.kind in axes else None
    match s.kind:
        case "scan":
            state = te.placeholder(shape, "int32", name=f"s_{s.name}")
            start = te.compute((1, m), lambda _, j: a[0, j], name=f"b_{s.name}")
            step = te.compute(shape, lambda t, j: state[t - 1, j] + a[t, j], name=f"u_{s.name}")
            return te.scan(start, step, state, name=s.name)
        case "total":
            r, q = te.reduce_axis((0, n), name=f"r_{s.name}"), te.reduce_axis((0, m), name=f"q_{s.name}")
            return te.compute((1,), lambda _: te.sum(a[r, q], axis=[r, q]), name=s.name)
        case "columns":
            plain = te.compute(shape, lambda j: te.sum(a[r, j], axis=r), name=f"p_{s.name}")
            return te.compute(shape, lambda j: plain[j] + n, name=s.name)
    body: dict[str, Callable[..., Any]] = {
        "map": lambda i, j: a[i, j] * c + b[i, j] - i,
        "neighbours": lambda i, j: (te.if_then_else(j > 0, a[i, j - 1], 0)
                                    + te.if_then_else(j + 1 < m, a[i, j + 1], 0) * c),
        "transpose": lambda i, j: a[j, i],
        "sum": lambda i: te.sum(a[i, r], axis=r), "max": lambda i: te.max(a[i, r], axis=r),
        "pad": lambda i, j: te.if_then_else(i < n, a[i, j], -c),
        "flat": lambda i: a[i // m, i % m],
        "every": lambda i, j: te.select((i * m + j) % c == 0, a[i, j], -a[i, j]),
        "row": lambda i, j: a[i, j] * b[j] + j,
        "matmul": lambda i, j: te.sum(a[i, r] * b[r, j], axis=r),
        "stencil": lambda i, j: a[i, j] + a[i + 1, j] * c - a[i + 2, j],
    }
    return te.compute(shape, body[s.kind], name=s.name)


def schedule(p: Program, outs: Sequence[Any], made: Mapping[str, Any]) -> Any:
    """A schedule of stages by random calls; those that are refused are left out."""
    rng = random.Random(p.seed)
    s = te.create_schedule([t.op for t in outs])
    inner = [made[st.name] for st in p.stages if made[st.name] not in outs and st.kind != "scan"]
    plain = [made[st.name] for st in p.stages if st.kind != "scan"]
    leaves: dict[Any, list[Any]] = {t: [*t.op.axis, *t.op.reduce_axis] for t in plain}
    for _ in range(p.moves if plain else 0):
        t = rng.choice(plain)
        axis = rng.choice(leaves[t])
        move = rng.choice(MOVES)
        try:
            if move == "split":
                how = rng.choice(["factor", "factor", "nparts"])
                outer, part = s[t].split(axis, **{how: rng.choice([2, 3, 4, 8, 16])})
                at = leaves[t].index(axis)
                leaves[t][at:at + 1] = [outer, part]
            elif move == "fuse":
                at = leaves[t].index(axis)
                fused = s[t].fuse(*leaves[t][at:at + 2])
                leaves[t][at:at + 2] = [fused]
            elif move == "reorder":
                order = rng.sample(leaves[t], len(leaves[t]))
                s[t].reorder(*order)
                leaves[t] = order
            elif move == "inline" and inner:
                s[rng.choice(inner)].compute_inline()
            elif move == "at" and inner:
                s[rng.choice(inner)].compute_at(s[t], axis)
            elif move in ("vectorize", "parallel", "unroll"):
                getattr(s[t], move)(axis)
        except ScheduleError:
            pass
    return s


# checking it ---------------------------------------------------------------------------------------------------------
def check(p: Program, case: Case) -> None:
    """Raise Wrong unless all calls of one build give what NumPy gives; the interpreter runs the smaller ones.

    What a schedule computes again in every iteration of another stage may take n**6 steps: calls of larger sizes than
    one that took LONG are left out.
    """
    sizes = {v: te.var(v) for v in p.symbols}
    tensors: dict[str, Any] = {n: te.placeholder(tuple(size(d, sizes) for d in shape), "int32", name=n)
                               for n, shape in p.inputs.items()}
    for st in p.stages:
        tensors[st.name] = tensor(st, tensors, sizes)
    outs = [tensors[st.name] for st in p.outputs]
    arguments = [*[tensors[n] for n in p.inputs], *outs, *sizes.values()]
    func = te.create_prim_func(arguments)
    built = case.build(lambda target: build(p, func, arguments, outs, tensors, target))
    for number, call in enumerate(sorted(p.calls, key=lambda b: sum(b.values()))):
        known, want = reference(p, call)

        def args() -> list[Any]:
            fresh = [known[n].copy() for n in p.inputs] + [np.full(a.shape, 77, "int32") for a in want.values()]  # noqa: B023
            return fresh + [call[v] for v in p.symbols]  # noqa: B023
        runs: list[tuple[str, Callable[[list[Any]], None]]] = [("native", lambda a: call_guarded(built["main"], a))]
        if number < INTERPRETED and case.interpreted:
            runs.append(("interpreter", lambda a: case.interpret(func, a)))
        for who, run in runs:
            a, start = args(), time.process_time()
            try:
                run(a)
            except Exception as why:
                raise Wrong(f"{who} raised: {call}: {type(why).__name__}: {str(why)[:300]}") from None
            got = dict(zip(want, a[len(p.inputs):], strict=False))
            wrong = array_differences(got, want)
            if wrong:
                raise Wrong("\n".join(f"{who}: {call}: {n}: {why}" for n, why in wrong.items()))
            if who == "native" and time.process_time() - start > LONG:
                return


def build(p: Program, func: Any, arguments: Sequence[Any], outs: Sequence[Any], made: Mapping[str, Any],
          target: str) -> Any:
    try:
        if p.compiled:
            return tw.compile(func, target=target)
        return tw.build(schedule(p, outs, made), list(arguments), target=target, name="main")
    except ScheduleError:
        if not p.moves:
            raise
    return tw.build(te.create_schedule([t.op for t in outs]), list(arguments), target=target, name="main")


def reference(p: Program, call: Mapping[str, int]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(the inputs, the outputs) of a call."""
    rng = np.random.default_rng(p.seed)
    known = {n: rng.integers(-9, 10, tuple(size(d, call) for d in shape)).astype("int32")
             for n, shape in p.inputs.items()}
    for st in p.stages:
        known[st.name] = evaluate(st, known, call)
    return known, {st.name: np.ascontiguousarray(known[st.name]) for st in p.outputs}


def describe(p: Program) -> str:
    sizes = {v: te.var(v) for v in p.symbols}
    made: dict[str, Any] = {n: te.placeholder(tuple(size(d, sizes) for d in shape), "int32", name=n)
                            for n, shape in p.inputs.items()}
    for st in p.stages:
        made[st.name] = tensor(st, made, sizes)
    outs = [made[st.name] for st in p.outputs]
    func = te.create_prim_func([*[made[n] for n in p.inputs], *outs, *sizes.values()])
    how = "compile" if p.compiled else str(schedule(p, outs, made)) if p.moves else "no schedule"
    return f"{how}\ncalls {p.calls}\n{func}"


def smaller(p: Program) -> list[Callable[[], Program]]:
    """Programs with fewer calls, moves and stages."""
    out: list[Callable[[], Program]] = []
    if len(p.calls) > 1:
        out += [lambda c=c: replace(p, calls=[c]) for c in p.calls]  # type: ignore[misc]
    if p.moves:
        out += [lambda k=k: replace(p, moves=k) for k in (0, p.moves // 2, p.moves - 1)]  # type: ignore[misc]
    read = {n for s in p.stages for n in s.sources}
    if len(p.stages) > 1:
        out += [lambda s=s: replace(p, stages=[o for o in p.stages if o is not s])  # type: ignore[misc]
                for s in p.stages if s.name not in read]
    out += [lambda n=n: replace(p, inputs={m: v for m, v in p.inputs.items() if m != n})  # type: ignore[misc]
            for n in p.inputs if n not in read and n != "A"]
    return out
