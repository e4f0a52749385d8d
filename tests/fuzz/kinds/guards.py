"""Loops of every kind around guards: conditions on loop variables, parameters at their limits and data, around stores
into arguments and into private memory, and within values.

The reference runs the same text as Python, in which `T` is a few functions over ints: so a script is written once and
means two things. What nobody has written, or lies outside, is read as `NOTHING`, which no store and no condition may
ask for; a program that does, and one in which iterations that run at once meet, says nothing.
"""
from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

import tilewright as tw
from tilewright.script import from_source
from tilewright.support.errors import InterpreterError, LowerError

from .common import Case, Wrong, array_differences, native

SIZE, ORIGIN = 2000, 500             # elements of an argument, and the one at index 0 of a program
MOST_STATEMENTS, MOST_STEPS, LARGEST = 25, 20_000, 10_000
LIMITS = {"int32": (-2 ** 31, 2 ** 31 - 1), "int64": (-2 ** 40, 2 ** 40)}


class Unfit(Exception):
    """The program has no meaning, or takes too long."""


class Nothing:
    """The value of what nobody has written."""

    def _itself(self, *_: Any) -> Nothing:
        return self

    def _refused(self, *_: Any) -> bool:
        raise Unfit("a value that nobody has written decides")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _itself
    __bool__ = __lt__ = __gt__ = __le__ = __ge__ = _refused


NOTHING = Nothing()


class Memory:
    """A buffer of ints; counts the stores of the program in `steps`."""

    def __init__(self, shape: tuple[int, ...], steps: list[int], values: Any = ()) -> None:
        self.shape, self.steps, self.values = shape, steps, {(k,): v for k, v in enumerate(values)}

    def __getitem__(self, at: Any) -> Any:
        return self.values.get(at if isinstance(at, tuple) else (at,), NOTHING)

    def __setitem__(self, at: Any, value: Any) -> None:
        at = at if isinstance(at, tuple) else (at,)
        self.steps[0] += 1
        inside = all(0 <= i < n for i, n in zip(at, self.shape, strict=True))
        if not inside or value is NOTHING or abs(value) > LARGEST or self.steps[0] > MOST_STEPS:
            raise Unfit("a store outside, of nothing, of a large number, or one too many")
        self.values[at] = value


def _meanings(steps: list[int]) -> SimpleNamespace:
    """`T`, as Python."""
    def loop(low: int, high: int, **_: Any) -> range:
        if high - low > 40:
            raise Unfit("a long loop")
        return range(low, high)

    def value(x: Any) -> Any:
        return x
    kinds = dict.fromkeys(("serial", "parallel", "vectorized", "unroll"), loop)
    types = dict.fromkeys(("int16", "int32", "int64", "float32", "likely", "prim_func"), value)
    return SimpleNamespace(**kinds, **types, Buffer=lambda *_: None, Cast=lambda _, x: x, max=_largest, min=_least,
                           if_then_else=lambda c, a, b: a if c else b, decl_buffer=lambda s, _: Memory(s, steps))


def _largest(a: Any, b: Any) -> Any:
    return NOTHING if a is NOTHING or b is NOTHING else max(a, b)


def _least(a: Any, b: Any) -> Any:
    return NOTHING if a is NOTHING or b is NOTHING else min(a, b)


@dataclass
class Program:
    """A script, its scalar arguments, the arrays A (numbers), M (what conditions read) and C (the result)."""
    text: str
    scalars: tuple[int, ...]
    arrays: tuple[np.ndarray, ...]

    def reference(self) -> np.ndarray:
        """What C becomes. Raises Unfit."""
        steps, names = [0], {}
        memory = [Memory((SIZE,), steps, a.astype(int).tolist()) for a in self.arrays]
        exec(self.text, {"T": _meanings(steps)}, names)
        names["main"](*memory, *self.scalars)
        c = self.arrays[2]
        return np.array([memory[2][k] for k in range(SIZE)], c.dtype)


class Writer:
    """Draws the statements of a program, a line each."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(f"guards {seed}")
        self.type = self.random.choice(("int32", "int32", "int64"))              # of loop variables and parameters
        self.kind = self.random.choice(("int32", "int64", "float32", "int16"))   # of elements
        self.lines: list[str] = []
        self.names = self.statements = self.buffers = 0
        self.in_lanes = False
        self.at_once: set[str] = set()                       # variables of loops whose iterations run at once

    def number(self, n: int) -> str:
        return str(n) if self.type == "int32" else f"T.int64({n})"

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def place(self, loops: list[str]) -> str:
        """A sum of loop variables, or what a division leaves of one."""
        r = self.random
        some = r.sample(loops, min(len(loops), r.choice((0, 1, 1, 2, 2, 3))))
        terms = [f"{v} * {self.number(r.choice((1, 1, 1, 2, 3, 4, -1, -2)))}" for v in some]
        out = " + ".join([*terms, self.number(r.choice((0, 0, 1, -1, 2, 3, 5, -3)))])
        return f"({out}) {r.choice(('//', '%'))} {self.number(r.choice((2, 3, 4, 8)))}" if r.random() < 0.15 else out

    def element(self, buffer: str, loops: list[str]) -> str:
        return f"{buffer}[{self.place(loops)} + {self.number(ORIGIN)}]"

    def result(self, loops: list[str]) -> str:
        """An element of C; iterations that run at once have parts of it to themselves, most of them."""
        r = self.random
        if not any(v in loops for v in self.at_once) or r.random() < 0.1:
            return self.element("C", loops)
        terms = [f"{v} * {self.number(40)}" for v in loops if v in self.at_once]
        inner = [v for v in loops if v not in self.at_once]
        terms += [r.choice(inner)] if inner else []
        return f"C[{' + '.join(terms)} + {self.number(r.choice((0, 1, 5)))} + {self.number(ORIGIN)}]"

    def condition(self, loops: list[str]) -> str:
        r = self.random
        if r.random() < 0.15:
            return f"{self.element('M', loops)} {r.choice(('<', '>='))} {r.randint(-3, 3)}"
        sides = [self.place(loops), r.choice("nmq") if r.random() < 0.35 else self.number(r.randint(-4, 20))]
        if r.random() < 0.2:
            sides.reverse()
        return f"{sides[0]} {r.choice(('<', '<', '<', '<=', '>', '>=', '>=', '==', '!='))} {sides[1]}"

    def guard(self, loops: list[str]) -> str:
        r = self.random
        held = " and ".join(self.condition(loops) for _ in range(r.choice((1, 1, 1, 2, 2, 3))))
        return f"T.likely({held})" if r.random() < 0.75 else held

    def value(self, loops: list[str], private: list[str], depth: int = 0) -> str:
        r = self.random
        drawn = 0.0 if depth > 1 else r.random()
        if drawn < 0.15:
            return f"T.{self.kind}({r.randint(-5, 5)})"
        if drawn < 0.3:
            return f'T.Cast("{self.kind}", {self.place(loops)})'
        if drawn < 0.5 or not private and drawn < 0.65:
            return self.element("A", loops)
        if drawn < 0.65:
            return r.choice(private)
        a, b = (self.value(loops, private, depth + 1) for _ in range(2))
        if drawn < 0.8:
            return f"T.if_then_else({self.guard(loops)}, {a}, {b})"
        return f"T.{r.choice(('max', 'min'))}({a}, {b})" if drawn < 0.87 else f"({a} {r.choice('+-*')} {b})"

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, depth: int, loops: list[str], private: list[str], count: int) -> None:
        for _ in range(count):
            self.statement(depth, loops, private)

    def statement(self, depth: int, loops: list[str], private: list[str]) -> None:
        r = self.random
        self.statements += 1
        drawn = 1.0 if self.statements > MOST_STATEMENTS or depth > 6 else r.random()
        if drawn < (0.8 if depth < 3 else 0.4):
            self.loop(depth, loops, private)
        elif drawn < 0.55:
            self.line(depth, f"if {self.guard(loops)}:")
            self.block(depth + 1, loops, private, r.choice((1, 1, 2)))
            if r.random() < 0.12:
                self.line(depth, "else:")
                self.block(depth + 1, loops, private, 1)
        elif drawn < 0.75 and self.buffers < 3 and not self.in_lanes:
            self.private(depth, loops, private)
        else:
            self.store(depth, self.result(loops), self.value(loops, private))

    def store(self, depth: int, place: str, value: str) -> None:
        self.line(depth, f"{place} = {value}" if self.random.random() < 0.5 else f"{place} = {place} + {value}")

    def loop(self, depth: int, loops: list[str], private: list[str]) -> None:
        r = self.random
        kinds = ("serial", "serial", "unroll", *(() if self.in_lanes else ("vectorized", "parallel")))
        kind, var, low = r.choice(kinds), self.name("i"), r.choice((0, 0, 0, 0, 1, -2, 3))
        extent = self.number(r.choice((0, 1, 2, 3, 4, 5, 7, 8, 8, 12, 16, 17)))
        if kind in ("serial", "parallel") and r.random() < 0.35:
            extent = r.choice((r.choice("nm"), f"({r.choice('nm')} + {self.number(3)}) // {self.number(4)}",
                               r.choice(loops or ["n"])))
        before, self.in_lanes = self.in_lanes, self.in_lanes or kind == "vectorized"
        self.at_once |= {var} if kind in ("vectorized", "parallel") else set()
        self.line(depth, f"for {var} in T.{kind}({self.number(low)}, {extent} + {self.number(low)}):")
        self.block(depth + 1, [*loops, var], private, r.choice((1, 1, 2, 3)))
        self.in_lanes = before

    def private(self, depth: int, loops: list[str], private: list[str]) -> None:
        """Memory, loops that fill it, and loops that read it, most under guards."""
        r, buffer = self.random, self.name("P")
        self.buffers += 1
        shape = [r.choice((4, 6, 8, 16, 17)) for _ in range(r.choice((1, 1, 2)))]
        self.line(depth, f'{buffer} = T.decl_buffer(({", ".join(map(str, shape))},), "{self.kind}")')
        for step in range(r.choice((2, 2, 3, 4))):
            names = [self.name("j") for _ in shape]
            inside, at, below = [*loops, *names], f"{buffer}[{', '.join(names)}]", depth
            for k, (var, extent) in enumerate(zip(names, shape)):
                kind = r.choice(("serial", "unroll", "vectorized") if k == len(shape) - 1 else ("serial", "unroll"))
                self.line(below, f"for {var} in T.{kind}({self.number(0)}, {self.number(extent)}):")
                self.at_once |= {var} if kind == "vectorized" else set()
                below += 1
            if r.random() < 0.6:
                self.line(below, f"if {self.guard(inside)}:")
                below += 1
            if step == 0 or step == 1 and r.random() < 0.3:
                self.line(below, f"{at} = {self.value(inside, private)}")
            else:
                self.store(below, self.result(inside), self.value(inside, [*private, at]))


def program(seed: int) -> Program:
    w = Writer(seed)
    r, (low, high) = w.random, LIMITS[w.type]
    scalars = tuple(r.randint(0, 12) if r.random() < 0.6 else r.choice((low, high, low + 1, high - 1, -1, 16, 17))
                    for _ in "nmq")
    a, c = (f'{x}: T.Buffer(({SIZE},), "{w.kind}")' for x in "AC")
    w.line(0, "@T.prim_func")
    w.line(0, f'def main({a}, M: T.Buffer(({SIZE},), "int32"), {c}, '
              f'{", ".join(f"{v}: T.{w.type}" for v in "nmq")}):')
    w.block(1, [], [], r.choice((1, 2, 3)))
    drawn = np.random.default_rng(seed)
    arrays = tuple(drawn.integers(-9, 10, SIZE).astype(kind) for kind in (w.kind, "int32", w.kind))
    return Program("\n".join(w.lines) + "\n", scalars, arrays)


def check(p: Program, case: Case) -> None:
    """Raises Wrong. `case.refused` counts the programs that say nothing, by why."""
    try:
        want = p.reference()
        func = from_source(p.text)
        _compare(p, want, lambda args: case.interpret(func, args), "the interpreter")    # which finds races first
        _compare(p, want, lambda args: native(case, lambda target: tw.build(func, target=target), args), case.target)
    except (Unfit, InterpreterError, LowerError) as why:
        if isinstance(why, InterpreterError) and "two iterations" not in str(why):      # races are its to find
            raise Wrong(f"the interpreter objects: {why}") from None
        case.refused[type(why).__name__] += 1
    else:
        case.accepted["program"] += 1


def _compare(p: Program, want: np.ndarray, run: Any, by: str) -> None:
    args = [*(a.copy() for a in p.arrays), *p.scalars]
    run(args)
    for name, expected in (("A", p.arrays[0]), ("M", p.arrays[1]), ("C", want)):
        wrong = array_differences({name: args["AMC".index(name)]}, {name: expected})
        if wrong:
            raise Wrong(f"{by}: {wrong}")


def smaller(p: Program) -> list[Callable[[], Program]]:
    """The program without one of its statements."""
    lines = p.text.splitlines()
    depths = [len(line) - len(line.lstrip()) for line in lines]

    def without(k: int) -> Program:
        end = next((n for n in range(k + 1, len(lines)) if depths[n] <= depths[k]), len(lines))
        return replace(p, text="\n".join([*lines[:k], *lines[end:]]) + "\n")
    return [partial(without, k) for k in range(2, len(lines))]


def describe(p: Program) -> str:
    return f"{p.text}\nn, m, q = {p.scalars}"
