"""Python's // and % of floats, by the exact remainder."""
from __future__ import annotations

import functools

from tilewright.formulas.builder import Builder, Formula


@functools.lru_cache(64)
def floor_division(op: str, dtype: str) -> Formula:
    """floordiv or floormod of float32 or float64: the remainder takes the sign of the divisor and is exact.

    As in NumPy, x // 0 is x / 0 and x % 0 is NaN.
    """
    b = Builder(dtype)
    x, y = b.param("x"), b.param("y")
    rest = b.call("fmod", x, y)
    differs = b.differ(b.cmp("olt", rest, b.c(0.0)), b.cmp("olt", y, b.c(0.0)))
    adjust = b.both(b.cmp("une", rest, b.c(0.0)), differs)
    if op == "floormod":
        return b.formula(op, [x, y], b.select(adjust, b.add(rest, y), rest))
    quotient = b.div(b.sub(x, rest), y)
    whole = b.call("nearbyint", b.select(adjust, b.sub(quotient, b.c(1.0)), quotient))
    return b.formula(op, [x, y], b.select(b.cmp("oeq", y, b.c(0.0)), b.div(x, y), whole))
