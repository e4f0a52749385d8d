"""Which integers are certainly not negative, by a cheap test: code generation asks it for every index."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Protocol

from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Cast, Expr, IntImm, Var
from tilewright.tir.places import is_index
from tilewright.tir.slices import stop_of
from tilewright.tir.stmt import For

_BOUNDED: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "mul": operator.mul, "floordiv": lambda a, b: a, "truncdiv": lambda a, b: a, "min": min,
    "max": max, "floormod": lambda a, b: b, "truncmod": lambda a, b: a,
}


class Known(Protocol):
    """What is known where code is made: variables that are certainly >= 0, each with a bound from above."""
    natural: dict[Var, int]


def natural(at: Known, e: Expr) -> bool:
    """True when the index e is certainly >= 0 (a cheap sufficient test)."""
    return greatest(at, e) is not None


def natural_value(at: Known, e: Expr) -> bool:
    """True when the value e, whose arithmetic may wrap around, is certainly >= 0."""
    return greatest(at, e, wraps=True) is not None


def greatest(at: Known, e: Expr, wraps: bool = False) -> int | None:
    """A number that e does not exceed if e is certainly >= 0, else None. `wraps`: sums and products may wrap around."""
    if isinstance(e, IntImm):
        return e.value if e.value >= 0 else None
    wraps = wraps or not is_index(e)
    most = dt.integer_range(e.dtype)[1] if dt.is_integer(e.dtype) else 0
    if isinstance(e, Var):
        return at.natural.get(e, most if dt.is_unsigned(e.dtype) else None)
    if isinstance(e, Cast):
        bound = greatest(at, e.value, wraps) if dt.is_integer(e.value.dtype) else None
        return bound if bound is not None and bound <= most else None
    if not isinstance(e, Binary) or e.op not in _BOUNDED:
        return None
    a, b = greatest(at, e.a, wraps), greatest(at, e.b, wraps)
    if e.op == "floormod":
        return b
    if e.op == "truncmod":
        return a
    if e.op == "max" and (a is not None or b is not None):
        return most if a is None or b is None else max(a, b)
    if a is None or b is None:
        return None
    bound = _BOUNDED[e.op](a, b)
    return None if wraps and bound > most else bound


def range_of_loop(at: Known, s: For) -> dict[Var, int]:
    """{variable: a number that it does not exceed}, if it is certainly >= 0."""
    first, stop = greatest(at, s.min), greatest(at, stop_of(s.min, s.extent))
    if first is None:
        return {}
    return {s.loop_var: dt.integer_range(s.loop_var.dtype)[1] if stop is None else max(stop - 1, first)}
