"""Arithmetic on intervals against all the values that they hold."""
from __future__ import annotations

import operator

import pytest

from tilewright.arith.intervals import product_bounds, quotient_bounds, remainder_bounds

ENDS = (-3, -1, 0, 1, 4)
INTERVALS = [(lo, hi) for lo in (None, *ENDS) for hi in (*ENDS, None) if lo is None or hi is None or lo <= hi]


def values(interval, far):
    """Those at the ends, `far` for one that is not known, and those around zero."""
    lo, hi = (-far if interval[0] is None else interval[0]), (far if interval[1] is None else interval[1])
    return [x for x in {lo, hi, -1, 0, 1} if lo <= x <= hi]


def exact(op, a, b):
    """The least and the greatest op(x, y); None where there is none."""
    near, further = ([op(x, y) for x in values(a, far) for y in values(b, far)] for far in (100, 200))
    return tuple(f(near) if f(near) == f(further) else None for f in (min, max))


@pytest.mark.parametrize("a", INTERVALS, ids=str)
def test_products_quotients_and_remainders(a):
    for b in INTERVALS:
        assert product_bounds(a, b) == exact(operator.mul, a, b), b
        if b[0] is None or b[0] < 1:
            assert quotient_bounds(a, b) == remainder_bounds(a, b) == (None, None)
            continue
        assert quotient_bounds(a, b) == exact(operator.floordiv, a, b), b
        least, most = remainder_bounds(a, b)
        found = [x % y for x in values(a, 100) for y in values(b, 100)]
        assert least <= min(found) and (most is None or max(found) <= most), b
