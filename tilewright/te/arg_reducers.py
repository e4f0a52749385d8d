"""Reductions to the place of the largest or smallest value."""
from __future__ import annotations

import functools
from collections.abc import Sequence

from tilewright.te.math import isnan
from tilewright.te.reduction import Reducer, comm_reducer
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, any_of, binary, logical_not, select
from tilewright.tir.conversion import max_value, min_value
from tilewright.tir.expr import Expr


@functools.cache
def arg_reducer(largest: bool) -> Reducer:
    """(place, value) pairs to that of the largest (or smallest) value; of equals the first, NaN before all others."""
    def combine(a: Sequence[Expr], b: Sequence[Expr]) -> tuple[Expr, Expr]:
        (i, x), (j, y) = a, b
        wins, ties = binary("gt" if largest else "lt", x, y), binary("eq", x, y)
        if dt.is_float(x.dtype):
            wins = any_of(wins, all_of(isnan(x), logical_not(isnan(y))))
            ties = any_of(ties, all_of(isnan(x), isnan(y)))
        first = any_of(wins, all_of(ties, binary("lt", i, j)))
        return select(first, i, j), select(first, x, y)
    return comm_reducer(combine, lambda i, x: (max_value(i), (min_value if largest else max_value)(x)),
                        name="argmax" if largest else "argmin")
