"""Handles to integers that sampling instructions choose, and arithmetic on them, which a trace computes anew."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NoReturn

from tilewright.support.errors import ScheduleError, described
from tilewright.tir.expr import IntImm

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod}


class Sampled:
    """An integer that is known while a schedule is made, and another one when its trace is replayed with another
    decision. Sums, differences, products, `//` and `%` of such integers and of constants are such integers again."""
    __slots__ = ()

    @property
    def value(self) -> int:
        """The integer as it is known now."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Derived:
        return _known(Derived("+", self, other))

    def __radd__(self, other: Any) -> Derived:
        return _known(Derived("+", other, self))

    def __sub__(self, other: Any) -> Derived:
        return _known(Derived("-", self, other))

    def __rsub__(self, other: Any) -> Derived:
        return _known(Derived("-", other, self))

    def __mul__(self, other: Any) -> Derived:
        return _known(Derived("*", self, other))

    def __rmul__(self, other: Any) -> Derived:
        return _known(Derived("*", other, self))

    def __floordiv__(self, other: Any) -> Derived:
        return _known(Derived("//", self, other))

    def __rfloordiv__(self, other: Any) -> Derived:
        return _known(Derived("//", other, self))

    def __mod__(self, other: Any) -> Derived:
        return _known(Derived("%", self, other))

    def __rmod__(self, other: Any) -> Derived:
        return _known(Derived("%", other, self))

    def _refuse(self, *_: object) -> NoReturn:
        raise ScheduleError(f"{self!r} may be another integer when the trace is replayed: it takes "
                            f"{', '.join(OPERATORS)} with integers, and nothing else of a number",
                            "sch.get(v) is the integer that was chosen, as a Python int")

    __lt__ = __le__ = __gt__ = __ge__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = _refuse
    __neg__ = __abs__ = __int__ = __float__ = __index__ = _refuse
    __tilewright_expr__ = _refuse                # in arithmetic with expressions of the IR


class ExprRV(Sampled):
    """A handle to an integer that a sampling instruction chose; primitives take it wherever they take an integer."""
    __slots__ = ("_value", "origin")

    def __init__(self, value: int = 0) -> None:
        self._value = value
        self.origin: object = None

    @property
    def value(self) -> int:
        return self._value

    def __repr__(self) -> str:
        return f"sampled {self.value}"


class Derived(Sampled):
    """Two integers, of which one at least is sampled, under one of OPERATORS.

    Raises ScheduleError for an operand that is no integer.
    """
    __slots__ = ("left", "op", "right")

    def __init__(self, op: str, left: Any, right: Any) -> None:
        self.op, self.left, self.right = op, _operand(left), _operand(right)

    @property
    def value(self) -> int:
        """The integer. Raises ScheduleError for a division by zero."""
        a, b = (x.value if isinstance(x, Sampled) else x for x in (self.left, self.right))
        return applied(self.op, a, b)

    def __repr__(self) -> str:
        return self.text(repr)

    def text(self, of: Callable[[Any], str]) -> str:
        """The expression in Python, with the sampled integers as `of` writes them."""
        left, right = (f"({x.text(of)})" if isinstance(x, Derived) else of(x) for x in (self.left, self.right))
        return f"{left} {self.op} {right}"


def applied(op: str, a: int, b: int) -> int:
    """a op b. Raises ScheduleError for a division by zero."""
    if b == 0 and op in ("//", "%"):
        raise ScheduleError(f"{a} {op} {b} of a sampled integer divides by zero")
    return OPERATORS[op](a, b)


def _known(derived: Derived) -> Derived:
    """derived, of integers that were chosen, once it has a value."""
    _ = derived.value
    return derived


def _operand(x: Any) -> Sampled | int:
    """x as it is kept. Raises ScheduleError unless it is an integer, constant or sampled."""
    if isinstance(x, IntImm):
        x = x.value
    if isinstance(x, Sampled) or type(x) is int:
        return x
    raise ScheduleError(f"{described(x)} stands beside a sampled integer and is no integer",
                        "sch.get(v) is the integer that was chosen, as a Python int")
