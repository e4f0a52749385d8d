"""Which integers are certainly not negative, by a cheap test: code generation asks it for every index. What follows for
divisions.
"""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Protocol

from tilewright.formulas import Formula
from tilewright.formulas.integers import division, shift
from tilewright.formulas.remainder import floor_division
from tilewright.lowering.code_size import DIVISIONS
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, IntImm, Var
from tilewright.tir.places import is_index
from tilewright.tir.slices import stop_of
from tilewright.tir.stmt import For, PrimFunc

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


def formula_of(at: Known, e: Binary) -> Formula | None:
    """What computes a division or a shift; None where the machine's does, of unsigned numbers if it is a division."""
    op, dtype, one = e.op, e.dtype, e.b.value if isinstance(e.b, Broadcast) else e.b
    constant = one.value if isinstance(one, IntImm) else None
    if op in ("shl", "shr"):
        return None if constant is not None and 0 <= constant < dt.bits_of(dtype) else shift(op, dtype)
    if op not in DIVISIONS:
        return None
    if dt.is_float(dtype):
        return floor_division(op, dtype)
    safe, both = constant not in (None, 0, -1), natural_value(at, e.a) and natural_value(at, e.b)
    return None if safe and (both or dt.is_unsigned(dtype)) else division(op, dtype, safe, both)


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


def ranges_in_region(at: Known, region: PrimFunc, call: Call) -> dict[Var, int]:
    """What is known in the function of a parallel region, called where `at` is known."""
    (begin, end, *_), (_, low, extent, *_) = region.params, call.args
    if greatest(at, low) is None:
        return dict(at.natural)
    stop = greatest(at, stop_of(low, extent))
    most = dt.integer_range(end.dtype)[1] if stop is None else stop
    return {**at.natural, begin: most - 1, end: most}


def range_of_loop(at: Known, s: For) -> dict[Var, int]:
    """{variable: a number that it does not exceed}, if it is certainly >= 0."""
    first, stop = greatest(at, s.min), greatest(at, stop_of(s.min, s.extent))
    if first is None:
        return {}
    return {s.loop_var: dt.integer_range(s.loop_var.dtype)[1] if stop is None else max(stop - 1, first)}
