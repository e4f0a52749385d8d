"""`low:stop` as the text of a range, and back: the extent that a printed pair of ends stands for."""
from __future__ import annotations

from tilewright.support.errors import IRError
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import Binary, Expr, IntImm, Var
from tilewright.tir.node import same


def stop_of(low: Expr, extent: Expr) -> Expr:
    """low + extent as it is printed: the constant last and in one piece, where `extent_of` undoes that."""
    if low.dtype == extent.dtype and dt.lanes_of(low.dtype) == 1:
        nice = _nice_stop(low, extent)
        if nice is not None and (back := extent_of(low, nice)) is not None and same(back, extent):
            return nice
    return Binary("add", low, extent, low.dtype)


def extent_of(low: Expr, stop: Expr) -> Expr | None:
    """The extent e with stop = stop_of(low, e); None where stop has none of the forms that stop_of gives."""
    if low.dtype != stop.dtype:
        return None
    if isinstance(low, IntImm):
        if isinstance(stop, IntImm):
            return IntImm(stop.value - low.value, low.type)
        if low.value == 0:
            return stop
        if isinstance(stop, Binary) and stop.op == "add" and is_const(stop.b, low.value):
            return stop.a
    if isinstance(stop, Binary) and stop.op == "add" and same(stop.a, low):
        return stop.b
    if isinstance(low, Var) and isinstance(stop, Var) and low is not stop:
        return Binary("sub", stop, low, low.dtype)
    rest, shift = _shifted(low)
    stop_rest, stop_shift = _shifted(stop)
    if same(rest, stop_rest) and (rest is not low or stop_rest is not stop):
        return IntImm(stop_shift - shift, low.dtype)
    return None


def _nice_stop(low: Expr, extent: Expr) -> Expr | None:
    try:
        if isinstance(low, IntImm):
            return binary("add", extent, low)
        if isinstance(extent, Binary) and extent.op == "sub" and isinstance(extent.a, Var) and extent.b is low:
            return extent.a
        rest, shift = _shifted(low)
        if rest is not low and isinstance(extent, IntImm):
            return binary("add", rest, IntImm(shift + extent.value, low.dtype))
        return binary("add", low, extent)
    except IRError:                                     # bool has no sums
        return None


def _shifted(e: Expr) -> tuple[Expr, int]:
    """(x, c) with e written as x + c; (e, 0) where it is not."""
    if isinstance(e, Binary) and e.op == "add" and isinstance(e.b, IntImm):
        return e.a, e.b.value
    return e, 0
