"""The laws of the simplifier, proven on small integers: every constant, every value, every type of 3 to 5 bits.

    python tests/arith/proof.py [--bits 3 4 5]

A law that holds in two's complement of n bits whatever n is, and only such a law has a place in the simplifier, holds
in particular for n = 3, where everything can be tried. Expressions of each shape of `SHAPES` are made with every choice
of operators and constants, simplified as values and as indices, and evaluated for every value of their variables: as
values with arithmetic that wraps, as indices in the integers. The evaluation shares no code with the compiler.
"""
from __future__ import annotations

import argparse
import functools
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tilewright.arith import forms, laws
from tilewright.arith.analyzer import Analyzer
from tilewright.tir import arithmetic
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Call, Cast, Expr, IntImm, Not, Select, Var

RING = ("add", "sub", "mul")
DIVISIONS = ("floordiv", "floormod", "truncdiv", "truncmod")
CHOICES = ("min", "max")
BITS = ("shl", "shr", "bitand", "bitor", "bitxor")
ARITHMETIC = RING + DIVISIONS + CHOICES + BITS
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
TYPES = {3: ("int3", "uint3"), 4: ("int4", "uint4"), 5: ("int5", "uint5")}


@contextmanager
def small_types() -> Iterator[None]:
    """Within the `with`, there are integers of 3, 4 and 5 bits."""
    names = {name: bits for bits, both in TYPES.items() for name in both}
    dt._BITS.update(names)
    arithmetic.INDEX_TYPES += names
    dt.parse.cache_clear()
    try:
        yield
    finally:
        for name in names:
            del dt._BITS[name]
            arithmetic.INDEX_TYPES.remove(name)
        for cached in (dt.parse, dt.integer_range):
            cached.cache_clear()


# ------------------------------------------------------------------------------------------------ evaluation

class Machine:
    """Evaluates expressions on arrays of values: `bits` wide with wrapping, or in the integers (bits None)."""

    def __init__(self, values: dict[Var, np.ndarray], wraps: bool) -> None:
        self.values, self.wraps = values, wraps

    def wrapped(self, x: np.ndarray, dtype: str) -> np.ndarray:
        if not self.wraps or dtype == "bool":
            return x
        count = 1 << int(dtype.lstrip("uint"))
        low = 0 if dtype.startswith("u") else -count // 2
        return (x - low) % count + low

    def __call__(self, e: Expr) -> Any:
        match e:
            case IntImm():
                return np.int64(e.value)
            case Var():
                return self.values[e]
            case Cast(type=dtype, value=value):
                return self.wrapped(self(value), dtype)
            case Not(a=a):
                return 1 - self(a)
            case Select(condition=c, a=a, b=b):
                return np.where(self(c), self(a), self(b))
            case Call(op="if_then_else", args=(c, a, b)):
                return np.where(self(c), self(a), self(b))
            case Call(op="abs", args=(a,)):
                return self.wrapped(np.abs(self(a)), e.dtype)
            case Binary():
                return self.binary(e)
        raise AssertionError(f"no meaning for {e}")

    def binary(self, e: Binary) -> Any:
        a, b, op = self(e.a), self(e.b), e.op
        if op in COMPARISONS:
            compare = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
                       "eq": np.equal, "ne": np.not_equal}[op]
            return compare(a, b).astype(np.int64)
        if op in ("and", "or"):
            return (np.minimum if op == "and" else np.maximum)(a, b)
        return self.wrapped(_arithmetic(op, a, b, e.dtype), e.dtype)


def _arithmetic(op: str, a: Any, b: Any, dtype: str) -> Any:
    if op in DIVISIONS:
        safe = np.where(b == 0, 1, b)
        quotient = np.floor_divide(a, safe)
        if op.startswith("trunc"):
            quotient = np.sign(a) * np.sign(safe) * (np.abs(a) // np.abs(safe))
        return np.where(b == 0, 0, quotient if op.endswith("div") else a - quotient * safe)
    if op in ("shl", "shr"):
        bits = int(dtype.lstrip("uint"))
        inside = (b >= 0) & (b < bits)
        amount = np.where(inside, b, 0)
        out = np.where(a < 0, -1, 0) if op == "shr" else np.int64(0)
        return np.where(inside, a << amount if op == "shl" else a >> amount, out)
    function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
                "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor}[op]
    return function(a, b)


# ---------------------------------------------------------------------------------------------------- shapes

class Shape(NamedTuple):
    """Expressions of one form: `operators` to choose from for each of its places, the number of its constants, and
    what makes it of them: make(operator texts, x, y, constants).
    """
    name: str
    operators: tuple[tuple[str, ...], ...]
    constants: int
    make: Callable[..., Expr]
    places: tuple[str, ...] = ("value", "index")


def _op(op: str, a: Expr, b: Expr) -> Expr:
    return Binary(op, a, b)


def _sum(x: Expr, y: Expr, a: Expr, b: Expr, c: Expr) -> Expr:
    return _op("add", _op("add", _op("mul", x, a), _op("mul", y, b)), c)


ANY = ARITHMETIC + COMPARISONS
SOLID = DIVISIONS + CHOICES + ("shr", "bitand") + COMPARISONS

SHAPES = (
    Shape("x op c", (ANY,), 1, lambda o, x, y, c: _op(o[0], x, c[0])),
    Shape("c op x", (ANY,), 1, lambda o, x, y, c: _op(o[0], c[0], x)),
    Shape("c op d", (ANY,), 2, lambda o, x, y, c: _op(o[0], c[0], c[1])),
    Shape("x op y", (ANY,), 0, lambda o, x, y, c: _op(o[0], x, y)),
    Shape("(x op c) op d", (ANY, ARITHMETIC), 2, lambda o, x, y, c: _op(o[0], _op(o[1], x, c[0]), c[1])),
    Shape("d op (x op c)", (ANY, ARITHMETIC), 2, lambda o, x, y, c: _op(o[0], c[1], _op(o[1], x, c[0]))),
    Shape("(c op x) op d", (ANY, ARITHMETIC), 2, lambda o, x, y, c: _op(o[0], _op(o[1], c[0], x), c[1])),
    Shape("(x op y) op c", (ANY, ARITHMETIC), 1, lambda o, x, y, c: _op(o[0], _op(o[1], x, y), c[0])),
    Shape("(x op y) op x", (ANY, ARITHMETIC), 0, lambda o, x, y, c: _op(o[0], _op(o[1], x, y), x)),
    Shape("(y op x) op x", (ANY, ARITHMETIC), 0, lambda o, x, y, c: _op(o[0], _op(o[1], y, x), x)),
    Shape("(x op y) op y", (ANY, ARITHMETIC), 0, lambda o, x, y, c: _op(o[0], _op(o[1], x, y), y)),
    Shape("(x op c) op y", (ANY, ARITHMETIC), 1, lambda o, x, y, c: _op(o[0], _op(o[1], x, c[0]), y)),
    Shape("x op (y op c)", (ANY, ARITHMETIC), 1, lambda o, x, y, c: _op(o[0], x, _op(o[1], y, c[0]))),
    Shape("(x op c) op (x op d)", (SOLID + RING, ARITHMETIC, ARITHMETIC), 2,
          lambda o, x, y, c: _op(o[0], _op(o[1], x, c[0]), _op(o[2], x, c[1]))),
    Shape("(x op y) op (x op y)", (ANY, ARITHMETIC, ARITHMETIC), 0,
          lambda o, x, y, c: _op(o[0], _op(o[1], x, y), _op(o[2], x, y))),
    Shape("((x op c) op d) op e", (SOLID, RING + DIVISIONS, DIVISIONS + ("shr", "bitand")), 3,
          lambda o, x, y, c: _op(o[0], _op(o[1], _op(o[2], x, c[0]), c[1]), c[2])),
    Shape("(x*c + y*d + e) op f", (SOLID,), 4, lambda o, x, y, c: _op(o[0], _sum(x, y, *c[:3]), c[3])),
    Shape("(y*c + x) op d", (SOLID,), 2, lambda o, x, y, c: _op(o[0], _op("add", _op("mul", y, c[0]), x), c[1])),
    Shape("x*c op y*d", (SOLID,), 2, lambda o, x, y, c: _op(o[0], _op("mul", x, c[0]), _op("mul", y, c[1]))),
    Shape("(y*c + d) op x*e", (SOLID,), 3,
          lambda o, x, y, c: _op(o[0], _op("add", _op("mul", y, c[0]), c[1]), _op("mul", x, c[2]))),
    Shape("y*c op (x*d + e)", (SOLID,), 3,
          lambda o, x, y, c: _op(o[0], _op("mul", y, c[0]), _op("add", _op("mul", x, c[1]), c[2]))),
    Shape("abs(x op c) op d", (ANY, ARITHMETIC), 2,
          lambda o, x, y, c: _op(o[0], Call("abs", (_op(o[1], x, c[0]),), x.dtype), c[1]), ("value",)),
    Shape("(x < c ? x op d : y) op e", (SOLID + RING, RING + DIVISIONS), 3, lambda o, x, y, c: _op(
        o[0], Call("if_then_else", (_op("lt", x, c[0]), _op(o[1], x, c[1]), y), x.dtype), c[2])),
    Shape("(x op c) and (x op d)", (COMPARISONS, COMPARISONS), 2,
          lambda o, x, y, c: _op("and", _op(o[0], x, c[0]), _op(o[1], x, c[1]))),
    Shape("not (x op c) or (y op d)", (COMPARISONS, COMPARISONS), 2,
          lambda o, x, y, c: _op("or", Not(_op(o[0], x, c[0])), _op(o[1], y, c[1]))),
)


def instances(shape: Shape, dtype: str, x: Var, y: Var) -> Iterator[Expr]:
    """Every expression of a shape."""
    low, high = dt.integer_range(dtype)
    constants = [IntImm(v, dtype) for v in range(low, high + 1)]
    for operators in itertools.product(*shape.operators):
        for chosen in itertools.product(constants, repeat=shape.constants):
            yield shape.make(operators, x, y, chosen)


# ----------------------------------------------------------------------------------------------------- proof

class Report(NamedTuple):
    """How many expressions of how many values were compared, which differ, and how often each law was applied."""
    expressions: int
    differences: list[str]
    applied: Counter[str]


def all_laws() -> list[str]:
    """The names of all laws: the tables of `arith.laws`, and what `arith.forms` reads operators as."""
    tables = {"division": laws.DIVISION, "symbolic division": laws.SYMBOLIC_DIVISION, "minimum": laws.MINIMUM}
    return [f"{table}: {law.name}" for table, entries in tables.items() for law in entries] \
        + [f"reading: {op}" for op in forms.READINGS]


@contextmanager
def counted(applied: Counter[str]) -> Iterator[None]:
    """Within the `with`, counts how often each law says something."""
    tables = {"division": laws.DIVISION, "symbolic division": laws.SYMBOLIC_DIVISION, "minimum": laws.MINIMUM}
    before = {name: list(table) for name, table in tables.items()}, dict(forms.READINGS)

    def watched(name: str, apply: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            out = apply(*args)
            if out is not None:
                applied[name] += 1
            return out
        return call

    for name, table in tables.items():
        table[:] = [law._replace(apply=watched(f"{name}: {law.name}", law.apply)) for law in table]
    for op, reading in before[1].items():
        forms.READINGS[op] = watched(f"reading: {op}", reading)
    try:
        yield
    finally:
        for name, table in tables.items():
            table[:] = before[0][name]
        forms.READINGS.update(before[1])


def prove(dtype: str, shapes: tuple[Shape, ...] = SHAPES, places: tuple[str, ...] = ("value", "index"),
          within: tuple[int, int] | None = None, most: int = 10) -> Report:
    """Compare every expression of the shapes with its simplified form.

    within: x is known to be in this range, and ranges over no other values. Stops at `most` differences.
    """
    applied: Counter[str] = Counter()
    differences: list[str] = []
    count = 0
    low, high = dt.integer_range(dtype)
    x, y = Var("x", dtype), Var("y", dtype)
    first, last = within or (low, high)
    xs, ys = (v.ravel() for v in np.meshgrid(np.arange(first, last + 1), np.arange(low, high + 1)))
    with counted(applied):
        for place, shape in itertools.product(places, shapes):
            if place not in shape.places or (place == "index" and dt.is_unsigned(dtype)):
                continue                               # the types of indices are signed
            machine = Machine({x: xs, y: ys}, wraps=place == "value")
            analyzer = _analyzer(dtype, x, within)
            for e in instances(shape, dtype, x, y):
                count += 1
                with analyzer.places(place == "index"):
                    simple = analyzer.simplify(e)
                if count % 2000 == 0:
                    analyzer = _analyzer(dtype, x, within)
                if simple is not e and not np.array_equal(*np.broadcast_arrays(machine(e), machine(simple))):
                    differences.append(f"{place} {dtype} {within or ''}: {e} -> {simple}")
                    if len(differences) >= most:
                        return Report(count, differences, applied)
    return Report(count, differences, applied)


def _analyzer(dtype: str, x: Var, within: tuple[int, int] | None) -> Analyzer:
    analyzer = Analyzer((dtype,))
    if within is not None:
        analyzer.assume(Binary("and", Binary("ge", x, IntImm(within[0], dtype)),
                               Binary("le", x, IntImm(within[1], dtype))))
    return analyzer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bits", type=int, nargs="+", default=[3, 4, 5], choices=sorted(TYPES))
    bits = parser.parse_args().bits
    start, total, applied, wrong = time.perf_counter(), 0, Counter[str](), []
    with small_types():
        for width, dtype in ((b, t) for b in bits for t in TYPES[b]):
            low, high = dt.integer_range(dtype)
            ranges = [None, *itertools.combinations_with_replacement(range(low, high + 1), 2)] if width == 3 else [None]
            for within in ranges:
                shapes = tuple(s for s in SHAPES if _affordable(s, width, within))
                report = prove(dtype, shapes, within=within)
                total, wrong = total + report.expressions, wrong + report.differences
                applied += report.applied
    names = all_laws()
    for name in names:
        print(f"{applied[name]:12,}  {name}")
    print("\n".join(wrong))
    print(f"{len(names)} laws, {sum(applied.values()):,} applications, {total:,} expressions, "
          f"{len(wrong)} differences, {time.perf_counter() - start:.0f} s")
    sys.exit(bool(wrong))


@functools.cache
def size(shape: Shape) -> int:
    count = 1
    for choice in shape.operators:
        count *= len(choice)
    return count


def _affordable(shape: Shape, bits: int, within: object) -> bool:
    """Shapes of at most a million expressions; with a range of x, which there are many of, of at most 5,000."""
    return size(shape) * (1 << bits * shape.constants) <= (1_000_000 if within is None else 5_000)


if __name__ == "__main__":
    main()
