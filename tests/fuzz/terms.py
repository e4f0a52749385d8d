"""Symbolic values: terms over the elements of arguments, one object per structure.

Sums, products, minima and the like are multisets, so that the order of a reduction does not count. Products with 0
and quotients of 0 are 0, x - x is 0, constants are folded and what is never the least of a minimum is dropped from it,
so NaN and infinities are not told apart, nor the signs of zeros. Choices by one condition are one choice.
"""
from __future__ import annotations

import functools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tilewright.tir import dtype as dt


@dataclass(eq=False)
class Term:
    """A value that is not known as a number: an operator over terms and numbers."""
    op: str
    args: tuple[Any, ...]


def _trunc_div(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b if b else 0, "floormod": lambda a, b: a % b if b else 0,
    "truncdiv": lambda a, b: _trunc_div(a, b) if b else 0,
    "truncmod": lambda a, b: a - b * _trunc_div(a, b) if b else 0,
    "min": min, "max": max, "and": lambda a, b: a and b, "or": lambda a, b: a or b,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "bitand": lambda a, b: a & b, "bitor": lambda a, b: a | b,
    "bitxor": lambda a, b: a ^ b, "shl": lambda a, b: a << b, "shr": lambda a, b: a >> b,
}
COUNTED = {"add", "mul", "bitxor"}                     # multisets
MERGED = {"min", "max", "and", "or", "bitand", "bitor"}    # sets: x op x is x
DIVISIONS = {"floordiv", "floormod", "truncdiv", "truncmod"}   # x / 0 and x % 0 are 0
NEUTRAL = {"add": 0, "mul": 1, "bitxor": 0, "bitor": 0, "and": True, "or": False}
EXACT: dict[str, Callable[[float], float]] = {"abs": abs, "floor": math.floor, "ceil": math.ceil, "trunc": math.trunc}
MOST_OPERANDS = 4096                                   # of a flat sum


def wrapped(value: Any, dtype: str) -> Any:
    """An integer as dtype holds it."""
    if dt.is_bool(dtype) or not dt.is_integer(dtype):
        return value
    low, high = dt.integer_range(dtype)
    return (int(value) - low) % (high - low + 1) + low


EVERYTHING = (-math.inf, math.inf)
RANGES = {"exp": (0.0, math.inf), "sqrt": (0.0, math.inf), "rsqrt": (0.0, math.inf), "sigmoid": (0.0, 1.0),
          "tanh": (-1.0, 1.0), "sin": (-1.0, 1.0), "cos": (-1.0, 1.0), "abs": (0.0, math.inf)}


def bounds(x: Any) -> tuple[float, float]:
    """The least and greatest value that a number or a float term may have."""
    if not isinstance(x, Term):
        return (x, x)
    if x.op == "float":
        return (x.args[1], x.args[1])
    if x.op == "call" and dt.is_float(x.args[1]):
        return RANGES.get(x.args[0], EVERYTHING)
    if x.op == "choose":
        (low, high), (other_low, other_high) = map(bounds, x.args[1:])
        return min(low, other_low), max(high, other_high)
    if x.op not in ("add", "mul", "min", "max") or not dt.is_float(x.args[0]):
        return EVERYTHING
    known = [(bounds(y), count) for y, count in x.args[1]]
    if x.op in ("min", "max"):
        pick = min if x.op == "min" else max
        return pick(low for (low, _), _ in known), pick(high for (_, high), _ in known)
    if x.op == "add":
        return sum(low * n for (low, _), n in known), sum(high * n for (_, high), n in known)
    never_below_0 = all(low >= 0 or n % 2 == 0 for (low, _), n in known)
    return (0.0, math.inf) if never_below_0 else EVERYTHING


def _extremes(op: str, items: Iterable[Any]) -> Counter[Any]:
    """The items that may be the least (or greatest) of all, each once: no other is always as far out."""
    kept = list(dict.fromkeys(items))
    sign = -1 if op == "min" else 1
    spans = [sorted(sign * b for b in bounds(x)) for x in kept]
    lows = sorted((low for low, _ in spans), reverse=True)[:2]
    return Counter({x: 1 for x, (low, high) in zip(kept, spans, strict=True)
                    if len(kept) == 1 or lows[low == lows[0]] < high})


def _neutral(op: str, dtype: str) -> Any:
    """The number that an integer operator leaves its other operand with, or None."""
    if op in ("min", "max") and dt.is_integer(dtype):
        return dt.integer_range(dtype)[op == "min"]
    return NEUTRAL.get(op)


def _is_zero(x: Any) -> bool:
    return isinstance(x, Term) and x.op == "float" and not x.args[1]


class Terms:
    """The terms that exist; equal structures are one object."""

    def __init__(self) -> None:
        self.known: dict[Any, Term] = {}

    def make(self, op: str, *args: Any) -> Term:
        key = (op, *[(type(a), a) for a in args])
        if key not in self.known:
            self.known[key] = Term(op, args)
        return self.known[key]

    def binary(self, op: str, dtype: str, a: Any, b: Any) -> Any:
        """a op b on scalars; dtype is that of the operands."""
        if not isinstance(a, Term) and not isinstance(b, Term):
            compares = op in ("eq", "ne", "lt", "le", "gt", "ge")
            return NUMBERS[op](a, b) if compares else wrapped(NUMBERS[op](a, b), dtype)
        constants = all(isinstance(x, Term) and x.op == "float" for x in (a, b))
        if constants and op in ("add", "sub", "mul", "div", "min", "max"):
            if op != "div" or b.args[1]:
                value = a.args[1] / b.args[1] if op == "div" else NUMBERS[op](a.args[1], b.args[1])
                return self.make("float", dtype, value)
        if op == "mul" and any(map(_is_zero, (a, b))) or op == "div" and _is_zero(a):
            return self.make("float", dtype, 0.0)
        if op == "sub" and a is b:
            return self.make("float", dtype, 0.0) if dt.is_float(dtype) else 0
        if op in DIVISIONS and (a == 0 or b == 0):
            return 0
        if op in DIVISIONS and b == 1:
            return a if op.endswith("div") else 0
        if op in COUNTED or op in MERGED:
            return self._gathered(op, dtype, a, b)
        if op in ("eq", "ne"):
            return self.make(op, frozenset(((type(a), a), (type(b), b))))
        return self.make(op, dtype, a, b)

    def choose(self, condition: Any, a: Any, b: Any) -> Any:
        """a where a term holds, else b."""
        if a is b:
            return a
        if isinstance(condition, Term) and condition.op in ("eq", "ne") and {(type(x), x) for x in (a, b)
                                                                             } == set(condition.args[0]):
            return a if condition.op == "ne" else b
        return self.make("choose", condition, a, b)

    def call(self, name: str, dtype: str, *args: Any) -> Any:
        """A function of scalars."""
        if name in EXACT and isinstance(args[0], Term) and args[0].op == "float":
            return self.make("float", dtype, float(EXACT[name](args[0].args[1])))
        return self.make("call", name, dtype, *args)

    def _in_one_choice(self, op: str, dtype: str, items: Counter[Any]) -> Counter[Any]:
        """Choices by the same condition as a choice of results."""
        by_condition: dict[Any, list[Term]] = defaultdict(list)
        for x, count in items.items():
            if isinstance(x, Term) and x.op == "choose":
                by_condition[x.args[0]] += [x] * count
        for condition, choices in by_condition.items():
            if len(choices) > 1:
                a, b = (functools.reduce(lambda x, y: self.binary(op, dtype, x, y), (c.args[k] for c in choices))
                        for k in (1, 2))
                for c in choices:
                    items.pop(c, None)
                items[self.choose(condition, a, b)] += 1
        return items

    def _gathered(self, op: str, dtype: str, a: Any, b: Any) -> Any:
        items: Counter[Any] = Counter()
        number = None
        for x in (a, b):
            flat = isinstance(x, Term) and x.op == op and x.args[0] == dtype
            for y, count in (x.args[1] if flat and len(x.args[1]) < MOST_OPERANDS else ((x, 1),)):
                if not isinstance(y, Term):
                    number = y if number is None else wrapped(NUMBERS[op](number, y), dtype)
                elif not (op in NEUTRAL and y.op == "float" and y.args[1] == NEUTRAL[op]):
                    items[y] += count
        if op == "mul" and number == 0:
            return 0
        if op in ("min", "max") and dt.is_integer(dtype) and number == dt.integer_range(dtype)[op == "max"]:
            return number
        items = self._in_one_choice(op, dtype, items)
        if number is not None and number != _neutral(op, dtype):
            items[number] = 1
        if op in MERGED:
            items = _extremes(op, items) if op in ("min", "max") else Counter(dict.fromkeys(items, 1))
        elif op == "bitxor":                           # x ^ x is 0
            items = Counter({y: 1 for y, count in items.items() if count % 2})
        if not items:
            if number is not None or not dt.is_float(dtype):
                return NEUTRAL[op] if number is None else number
            return self.make("float", dtype, float(NEUTRAL[op]))
        (first, count), *others = items.items()
        return first if not others and count == 1 else self.make(op, dtype, frozenset(items.items()))
