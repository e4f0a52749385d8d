"""Values between elements: what resizing, grid sampling, deformable convolution and region pooling share."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

from tilewright.te.math import floor
from tilewright.tir.arithmetic import all_of, binary, if_then_else, maximum, minimum
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr

Read = Callable[..., Expr]


def clamped(index: Any, extent: Any) -> Expr:
    """index, or the nearest one inside of the extent."""
    return maximum(minimum(index, binary("sub", extent, 1)), 0)


def inside(index: Any, extent: Any) -> Expr:
    """0 <= index < extent"""
    return all_of(binary("ge", index, 0), binary("lt", index, extent))


def interpolated(read: Read, places: Sequence[Expr], extents: Sequence[Any], dtype: str, joined: str = "add") -> Expr:
    """The sum over the corners around a place of the product of 1 - distance, times the element; 0 outside.

    read(*indices) gives an element of dtype; places: a float for each axis; joined: "max" takes the largest term.
    """
    lows = [floor(p) for p in places]
    total: Expr | None = None
    for corner in product((0, 1), repeat=len(places)):
        at = [cast("int32", low) + step for low, step in zip(lows, corner)]
        value = if_then_else(all_of(*(inside(i, n) for i, n in zip(at, extents))), read(*at), const(0, dtype))
        for place, low, step in zip(places, lows, corner):
            share = place - low
            value = value * (share if step else 1.0 - share)
        total = value if total is None else binary(joined, total, value)
    assert total is not None
    return total
