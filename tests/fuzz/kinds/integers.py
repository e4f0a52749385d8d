"""Programs of many integer expressions over vectors of values near the limits of every width.

One function holds all expressions of a program, so that one build checks six to twelve. It is written as a script
(loops, vectors, branches, blocks) or in te (stages, scheduled or compiled by the rules). Loop variables and scalar
parameters take part as values.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import tilewright as tw
from tilewright import te
from tilewright.script import from_source
from tilewright.support.errors import ScheduleError

from . import draw
from .common import Case, Wrong, array_differences, native
from .scalars import FLOATS, INTEGERS, SIGNED, UNSIGNED, Scalar, evaluate, expression, limits, name, text

FORMS = ("loop", "loop", "vector", "blocks", "parallel", "te", "te", "te vector", "te inline", "compile")


@dataclass
class Program:
    """Each of `outputs` is an expression of elements of the inputs, of scalars, lets and the loop variable "i"."""
    seed: int
    form: str
    length: int
    start: int                                         # first value of i; its dtype
    index: str
    data: dict[str, np.ndarray] = field(default_factory=dict)
    scalars: dict[str, tuple[str, int]] = field(default_factory=dict)
    lets: dict[str, Scalar] = field(default_factory=dict)
    outputs: dict[str, Scalar] = field(default_factory=dict)

    def want(self) -> dict[str, np.ndarray]:
        """The values of the outputs."""
        known = dict(self.data)
        known["i"] = np.arange(self.start, self.start + self.length).astype(self.index)
        known |= {n: np.full(self.length, v, d) for n, (d, v) in self.scalars.items()}
        for n, e in self.lets.items():
            known[n] = np.broadcast_to(evaluate(e, known), (self.length,))
        return {n: np.broadcast_to(evaluate(e, known), (self.length,)) for n, e in self.outputs.items()}


def program(seed: int) -> Program:
    rng = random.Random(f"integers {seed}")
    form = rng.choice(FORMS)
    in_te = form.startswith(("te", "compile"))
    index = rng.choice(["int32", "int32", "int64"]) if form == "loop" else "int32"
    length = rng.choice([16, 24, 40] if form == "vector" else [16, 24, 33, 37])
    low, high = limits(index)
    start = rng.choice([0, 0, high - length, low + 1, -length // 2, high // 2 - 5]) if form == "loop" else 0
    p = Program(seed, form, length, start, index)
    main = rng.sample(INTEGERS, rng.choice([1, 2, 3]))
    for k, d in enumerate([*main, rng.choice(main), rng.choice(INTEGERS), *rng.sample(["bool", *FLOATS], 2)]):
        p.data[f"x{k}"] = values(rng, d, length)
    for k in range(rng.choice([0, 1, 2])):
        d = rng.choice([*main, *INTEGERS]) if not in_te else rng.choice([*SIGNED, *UNSIGNED])
        p.scalars[f"s{k}"] = (d, min(draw.number(rng, d), limits("int64")[1]))   # a call passes an int64
    pool = [name(n, str(a.dtype)) for n, a in p.data.items()] + [name(n, d) for n, (d, _) in p.scalars.items()]
    pool.append(name("i", index))
    drawer = draw.Drawer(rng, pool)
    for k in range(rng.choice([0, 0, 1, 2])):
        drawer.pool.append(name(f"t{k}", (d := rng.choice(main))))
        p.lets[f"t{k}"] = draw.Drawer(rng, pool).whole(d, 2)
    for k in range(rng.randint(6, 12)):
        d = rng.choice([*main * 3, "bool", rng.choice(INTEGERS), rng.choice(FLOATS)])
        p.outputs[f"o{k}"] = drawer.whole(d, rng.choice([2, 3, 3, 4]))
    return p


def values(rng: random.Random, dtype: str, length: int) -> np.ndarray:
    if dtype == "bool":
        return np.array([rng.random() < 0.5 for _ in range(length)])
    if dtype in FLOATS:
        some = [0.0, -0.0, 1.0, -1.0, 0.5, -0.75, 127.5, 128.0, -128.5, 255.0, 256.0, 32767.0, -32769.0, 65504.0,
                2.0 ** 31, -2.0 ** 31, 2.0 ** 32, 2.0 ** 63, -2.0 ** 63, 2.0 ** 64, 1e30, -1e30, np.inf,
                np.nan, -np.inf]
        with np.errstate(over="ignore"):
            return np.array(rng.choices(some, k=length)).astype(dtype)
    return np.array([draw.number(rng, dtype) for _ in range(length)], dtype)


# writing it ----------------------------------------------------------------------------------------------------------
def script(p: Program) -> str:
    """p as a function of loops or blocks."""
    shape = f"({p.length},)"
    arguments = [f'{n}: T.Buffer({shape}, "{a.dtype}")' for n, a in p.data.items()]
    arguments += [f"{n}: T.{d}" for n, (d, _) in p.scalars.items()]
    arguments += [f'{n}: T.Buffer({shape}, "{e.dtype}")' for n, e in p.outputs.items()]
    lines = ["@T.prim_func", f"def main({', '.join(arguments)}):"]
    if p.form == "blocks":
        for n, e in p.outputs.items():
            lines += [f"    for i_{n} in range({p.length}):", f'        with T.block("{n}"):',
                      f"            i = T.axis.spatial({p.length}, i_{n})", *_body(p, {n: e}, "i", "i", 12)]
        return "\n".join(lines)
    element, value, depth = "i", "i", 8
    if p.form == "vector":
        lines += [f"    for outer in range({p.length // 8}):", "        for lane in T.vectorized(8):"]
        element = value = "(outer * 8 + lane)"
        depth = 12
    elif p.form == "parallel":
        lines.append(f"    for i in T.parallel({p.length}):")
    elif p.index == "int64":
        lines.append(f"    for i in T.serial(T.int64({p.start}), T.int64({p.start + p.length})):")
        element = f"(i - T.int64({p.start}))"
    else:
        lines.append(f"    for i in T.serial({p.start}, {p.start + p.length}):")
        element = f"(i - T.int32({p.start}))"
    return "\n".join([*lines, *_body(p, p.outputs, element, value, depth)])


def _body(p: Program, outputs: Mapping[str, Scalar], element: str, value: str, depth: int) -> list[str]:
    names = {n: f"{n}[{element}]" for n in p.data} | {n: n for n in (*p.scalars, *p.lets)} | {"i": value}
    pad = " " * depth
    lines = [f"{pad}{n} = {text(e, names)}" for n, e in p.lets.items()]
    for k, (n, e) in enumerate(outputs.items()):
        if e.op in ("if", "select") and k % 2 == 0 and p.form != "vector":
            condition, a, b = (text(x, names) for x in e.args)
            lines += [f"{pad}if {condition}:", f"{pad}    {n}[{element}] = {a}", f"{pad}else:",
                      f"{pad}    {n}[{element}] = {b}"]
        else:
            lines.append(f"{pad}{n}[{element}] = {text(e, names)}")
    return lines


def stages(p: Program) -> tuple[list[Any], list[Any], list[Any]]:
    """p in te: (the arguments, the tensors of lets, the tensors of outputs)."""
    shape = (p.length,)
    inputs = {n: te.placeholder(shape, str(a.dtype), name=n) for n, a in p.data.items()}
    scalars = {n: te.var(n, d) for n, (d, _) in p.scalars.items()}
    made: dict[str, Any] = {}

    def element(e: Scalar) -> Callable[[Any], Any]:
        return lambda i: expression(e, {n: t[i] for n, t in {**inputs, **made}.items()} | scalars | {"i": i + 0}, te)
    for n, e in p.lets.items():
        made[n] = te.compute(shape, element(e), name=n)
    outs = [te.compute(shape, element(e), name=n) for n, e in p.outputs.items()]
    return [*inputs.values(), *scalars.values(), *outs], list(made.values()), outs


def scheduled(p: Program, lets: list[Any], outs: list[Any]) -> Any:
    rng = random.Random(p.seed)
    s = te.create_schedule([t.op for t in outs])
    if p.form == "te inline":
        for t in lets:
            try:
                s[t].compute_inline()
            except ScheduleError:
                pass                                   # what reads it was folded away
    for t in outs:
        axis = t.op.axis[0]
        if p.form == "te vector":
            s[t].vectorize(s[t].split(axis, factor=rng.choice([4, 8, 16]))[1])
        elif rng.random() < 0.2:
            s[t].unroll(s[t].split(axis, factor=rng.choice([2, 3]))[1])
    return s


# checking it ---------------------------------------------------------------------------------------------------------
def check(p: Program, case: Case) -> None:
    """Raise Wrong unless the interpreter and native code give what NumPy gives."""
    want = p.want()
    if p.form.startswith("te") or p.form == "compile":
        arguments, lets, outs = stages(p)
        func = te.create_prim_func(arguments)
        if p.form == "compile":
            build = lambda target: tw.compile(func, target=target)
        else:
            s = scheduled(p, lets, outs)
            build = lambda target: tw.build(s, arguments, target=target, name="main")
    else:
        func = from_source(script(p))
        build = lambda target: tw.build(func, target=target)
    wrong = []

    def fresh() -> list[Any]:
        return [*[a.copy() for a in p.data.values()], *[v for _, v in p.scalars.values()],
                *[np.zeros(p.length, w.dtype) for w in want.values()]]
    runs = [("interpreter", lambda args: case.interpret(func, args))] if case.interpreted else []
    for who, run in (*runs, ("native", lambda args: native(case, build, args))):
        args = fresh()
        run(args)
        got = dict(zip(want, args[len(args) - len(want):], strict=True))
        wrong += [f"{who}: {n}: {why}" for n, why in array_differences(got, want).items()]
    if wrong:
        raise Wrong("\n".join(wrong))


def describe(p: Program) -> str:
    used = script(replace(p, form="loop") if p.form.startswith(("te", "compile")) else p)
    return (f"form {p.form}\n{used}\n" + "\n".join(f"{n} = {a.tolist()}" for n, a in p.data.items())
            + f"\nscalars {p.scalars}")


# making it smaller ---------------------------------------------------------------------------------------------------
def smaller(p: Program) -> list[Callable[[], Program]]:
    """Programs with less in them, the smallest first."""
    out: list[Callable[[], Program]] = []
    names = list(p.outputs)
    if len(names) > 1:
        out += [lambda n=n: replace(p, outputs={n: p.outputs[n]}) for n in names]  # type: ignore[misc]
    for n in [*p.lets]:
        if not any(_mentions(e, n) for e in [*p.outputs.values(), *p.lets.values()]):
            out.append(lambda n=n: replace(p, lets={k: e for k, e in p.lets.items() if k != n}))  # type: ignore[misc]
    for n in [*p.data, *p.scalars]:
        if not any(_mentions(e, n) for e in [*p.outputs.values(), *p.lets.values()]):
            out.append(lambda n=n: replace(p, data={k: a for k, a in p.data.items() if k != n},  # type: ignore[misc]
                                           scalars={k: a for k, a in p.scalars.items() if k != n}))
    for n, e in p.outputs.items():
        out += [lambda n=n, f=f: replace(p, outputs=p.outputs | {n: f}) for f in simpler(e)]  # type: ignore[misc]
    for n, e in p.lets.items():
        out += [lambda n=n, f=f: replace(p, lets=p.lets | {n: f}) for f in simpler(e)]  # type: ignore[misc]
    if p.form not in ("loop", "te"):
        out.append(lambda: replace(p, form="te" if p.form.startswith(("te", "compile")) else "loop"))
    return out


def _mentions(e: Scalar, n: str) -> bool:
    return e.op == "name" and e.value == n or any(_mentions(a, n) for a in e.args)


def simpler(e: Scalar) -> list[Scalar]:
    """Expressions of the same dtype with fewer operations."""
    out = [a for a in _below(e) if a.dtype == e.dtype]
    if e.args and e.dtype in INTEGERS:
        out.append(Scalar("const", e.dtype, value=1))
    for k, a in enumerate(e.args):
        out += [replace(e, args=(*e.args[:k], f, *e.args[k + 1:])) for f in simpler(a)]
    return out


def _below(e: Scalar) -> list[Scalar]:
    return [x for a in e.args for x in (a, *_below(a))]
