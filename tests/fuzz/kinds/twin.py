"""Programs written twice at once: as the text of a script, and as Python that says what the script means.

The Python side works on nested lists of ints and wraps every result as int32; nothing of it comes from the compiler.
"""
from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


def w(x: int) -> int:
    """x as an int32."""
    return (x + (1 << 31) & (1 << 32) - 1) - (1 << 31)


def inside(x: int, low: int, end: int) -> int:
    """x of a domain [low, end). Raises ValueError elsewhere."""
    if not low <= x < end:
        raise ValueError(f"{x} is outside of [{low}, {end})")
    return x


@dataclass(frozen=True)
class Twin:
    """An expression: its text in the script and in Python."""
    s: str
    p: str


@dataclass(frozen=True)
class Buf:
    """A buffer of int32."""
    name: str
    shape: tuple[int, ...]

    def at(self, *index: Twin) -> Twin:
        assert len(index) == len(self.shape)
        return Twin(f"{self.name}[{', '.join(i.s for i in index)}]", self.name + "".join(f"[{i.p}]" for i in index))


@dataclass(frozen=True)
class Axis:
    """A variable in [0, extent), or [low, extent)."""
    var: str
    extent: int
    low: int = 0

    @property
    def twin(self) -> Twin:
        return Twin(self.var, self.var)


@dataclass(frozen=True)
class Lines:
    """Statements: lines of script and of Python, without the indentation of the place."""
    s: tuple[str, ...] = ()
    p: tuple[str, ...] = ()

    def __add__(self, other: Lines) -> Lines:
        return Lines(self.s + other.s, self.p + other.p)

    def below(self, s: str, p: str) -> Lines:
        """These lines inside of a statement that starts with s and p; one that is empty stands for nothing."""
        return Lines((s, *_indented(self.s)) if s else self.s, (p, *_indented(self.p)) if p else self.p)


def _indented(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple("    " + line for line in lines)


def number(value: int) -> Twin:
    return Twin(f"T.int32({value})", f"({value})")


def op(sign: str, a: Twin, b: Twin) -> Twin:
    return Twin(f"({a.s} {sign} {b.s})", f"w({a.p} {sign} {b.p})")


def compare(sign: str, a: Twin, b: Twin) -> Twin:
    return Twin(f"({a.s} {sign} {b.s})", f"({a.p} {sign} {b.p})")


def both(a: Twin, b: Twin) -> Twin:
    return Twin(f"({a.s} and {b.s})", f"({a.p} and {b.p})")


def either(a: Twin, b: Twin) -> Twin:
    return Twin(f"({a.s} or {b.s})", f"({a.p} or {b.p})")


def call(name: str, a: Twin, b: Twin) -> Twin:
    return Twin(f"T.{name}({a.s}, {b.s})", f"{name}({a.p}, {b.p})")


def choice(c: Twin, a: Twin, b: Twin, lazy: bool) -> Twin:
    return Twin(f"T.{'if_then_else' if lazy else 'Select'}({c.s}, {a.s}, {b.s})", f"({a.p} if {c.p} else {b.p})")


def store(target: Twin, value: Twin) -> Lines:
    return Lines((f"{target.s} = {value.s}",), (f"{target.p} = {value.p}",))


def let(var: str, value: Twin) -> Lines:
    return Lines((f"{var}: T.int32 = {value.s}",), (f"{var} = {value.p}",))


class Writer:
    """Random indices, conditions and values over buffers that may be read."""

    def __init__(self, rng: random.Random, buffers: Sequence[Buf]) -> None:
        self.rng, self.buffers = rng, list(buffers)

    def index(self, axes: Sequence[Axis], extent: int, data: bool = True) -> Twin:
        """A place in [0, extent)."""
        rng = self.rng
        fitting = [a for a in axes if a.extent <= extent]
        kind = rng.random()
        if fitting and kind < 0.55:
            return rng.choice(fitting).twin
        if fitting and kind < 0.7:
            a = rng.choice(fitting)
            return Twin(f"({extent - 1} - {a.var})", f"({extent - 1} - {a.var})")
        if axes and kind < 0.82:
            a, c = rng.choice(axes), rng.randint(1, 5)
            text = f"(({a.var} + {c}) % {extent})"
            return Twin(text, text)
        if axes and kind < 0.9 and data:
            inner = self.load(axes, data=False)
            return Twin(f"({inner.s} % {extent})", f"({inner.p} % {extent})")
        text = str(rng.randrange(extent))
        return Twin(text, text)

    def load(self, axes: Sequence[Axis], data: bool = True) -> Twin:
        buffer = self.rng.choice(self.buffers)
        return buffer.at(*[self.index(axes, e, data) for e in buffer.shape])

    def condition(self, axes: Sequence[Axis]) -> Twin:
        """Of data mostly; of axes, or both."""
        rng = self.rng
        kind = rng.random()
        sign = rng.choice(["<", "<=", ">", ">=", "==", "!="])
        if kind < 0.6:
            return compare(sign, self.load(axes), number(rng.randint(-4, 4)))
        if kind < 0.75 and axes:
            a = rng.choice(axes)
            return compare(rng.choice(["<", ">=", "!="]), a.twin, number(rng.randrange(a.extent)))
        if kind < 0.85:
            return compare(sign, self.load(axes), self.load(axes))
        return (both if rng.random() < 0.5 else either)(self.condition(axes), self.condition(axes))

    def value(self, axes: Sequence[Axis], depth: int = 2, own: Twin | None = None) -> Twin:
        """own: what may be read beside the buffers."""
        rng = self.rng
        kind = rng.random()
        if depth == 0:
            if own is not None and kind < 0.3:
                return own
            if axes and kind < 0.45:
                return rng.choice(axes).twin
            return self.load(axes) if self.buffers and kind < 0.9 else number(rng.randint(-9, 9))
        a = self.value(axes, depth - 1, own)
        if kind < 0.5:
            return op(rng.choice(["+", "-", "+", "*"]), a, self.value(axes, depth - 1, own))
        if kind < 0.7:
            return call(rng.choice(["min", "max"]), a, self.value(axes, depth - 1, own))
        if kind < 0.8:
            return op(rng.choice(["//", "%"]), a, number(rng.choice([2, 3, 4, 7, -3])))
        if self.buffers:
            return choice(self.condition(axes), a, self.value(axes, depth - 1, own), rng.random() < 0.5)
        return a
