"""Intervals of integers: (least, most), None for an end that is not known."""
from __future__ import annotations

from tilewright.arith.linear import Bounds

UNBOUNDED: Bounds = (None, None)
_INFINITY = float("inf")


def meet(a: Bounds, b: Bounds) -> Bounds:
    """The intersection of two intervals."""
    lo = a[0] if b[0] is None else b[0] if a[0] is None else max(a[0], b[0])
    hi = a[1] if b[1] is None else b[1] if a[1] is None else min(a[1], b[1])
    return lo, hi


def hull(a: Bounds, b: Bounds) -> Bounds:
    """The smallest interval that holds two intervals."""
    return (None if a[0] is None or b[0] is None else min(a[0], b[0]),
            None if a[1] is None or b[1] is None else max(a[1], b[1]))


def scaled(b: Bounds, k: int) -> Bounds:
    """The interval k * b."""
    lo, hi = b if k >= 0 else (b[1], b[0])
    return None if lo is None else lo * k, None if hi is None else hi * k


def product_bounds(a: Bounds, b: Bounds) -> Bounds:
    """Bounds of x * y for x in a, y in b."""
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        if a[1] == 0 or b[1] == 0:
            return a[0] * b[0], 0
        return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]
    ends = [(-_INFINITY if lo is None else lo, _INFINITY if hi is None else hi) for lo, hi in (a, b)]
    corners = [x * y if x and y else 0 for x in ends[0] for y in ends[1]]
    least, most = min(corners), max(corners)
    return None if least == -_INFINITY else int(least), None if most == _INFINITY else int(most)


def quotient_bounds(num: Bounds, den: Bounds) -> Bounds:
    """Bounds of x // y for x in num, y in den; none where y may be 0 or less."""
    (lo, hi), (least, most) = num, den
    if least is None or least < 1:
        return UNBOUNDED
    if most is not None and most < least:               # contradictory facts: code that never runs
        most = least
    if lo is not None:
        lo = lo // least if lo < 0 else 0 if most is None else lo // most
    if hi is not None:
        hi = hi // least if hi >= 0 else -1 if most is None else hi // most
    return lo, hi


def remainder_bounds(num: Bounds, den: Bounds) -> Bounds:
    """Bounds of x % y for x in num, y in den; none where y may be 0 or less."""
    (lo, hi), (least, most) = num, den
    if least is None or least < 1:
        return UNBOUNDED
    out: Bounds = (0, None if most is None else most - 1)
    return meet(out, (None, hi)) if lo is not None and lo >= 0 else out
