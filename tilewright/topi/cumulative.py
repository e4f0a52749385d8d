"""Running sums, products and extremes along an axis, as recurrences.

Each combines what lies up to an element: with `exclusive` only what lies before it, with `reverse` from the end.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.te.definition import compute, placeholder
from tilewright.te.math import exp, isinf, isnan, log
from tilewright.te.scan import scan
from tilewright.te.tensor import Tensor
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, any_of, binary, if_then_else, logical_not, maximum, select
from tilewright.tir.conversion import cast, const, max_value, min_value
from tilewright.tir.expr import Expr
from tilewright.topi.sampling import Read
from tilewright.topi.shapes import axis_index, check_tensors, constant, summed
from tilewright.topi.types import FLOAT, INDEX, accumulator, check_kind, dtype_name, sum_type

Step = Callable[[Sequence[Expr], Sequence[Expr]], Sequence[Expr]]


def running(op: str, x: Tensor, axis: Any, exclusive: bool, reverse: bool, starts: Sequence[Expr],
            terms: Callable[[Expr, Expr], Sequence[Expr]], step: Step) -> list[Read]:
    """The states of a recurrence along an axis, each as a function of the indices of x.

    starts: the states before the first element; terms(element, index): what step combines with the states.
    """
    check_tensors(op, x=x)
    at = axis_index(op, axis, x.ndim)
    extent, rest = x.shape[at], x.shape[:at] + x.shape[at + 1:]
    if constant(extent) == 0:
        return [lambda *i, s=s: s for s in starts]
    shape = (summed(extent, 1), *rest)
    states = [placeholder(shape, s.dtype, name=f"{op}_state{n}") for n, s in enumerate(starts)]

    def place(t: Any) -> Any:
        return binary("sub", extent, t) if reverse else binary("sub", t, 1)

    def updated(t: Any, *i: Any) -> Sequence[Expr]:
        index = place(t)
        element = if_then_else(binary("gt", t, 0), x(*i[:at], index, *i[at:]), const(0, x.dtype))
        return tuple(step([s(binary("sub", t, 1), *i) for s in states], terms(element, index)))
    firsts = [compute((1, *rest), lambda t, *i, s=s: s, name=f"{op}_start{n}") for n, s in enumerate(starts)]
    updates = compute(shape, updated, name=f"{op}_step")
    several = isinstance(updates, tuple)
    found = scan(firsts, list(updates) if several else [updates], states, inputs=[x], name=f"{op}_steps")

    def reader(y: Tensor) -> Read:
        def read(*i: Any) -> Expr:
            t = binary("sub", extent - 1, i[at]) if reverse else i[at]
            return y(t if exclusive else binary("add", t, 1), *i[:at], *i[at + 1:])
        return read
    return [reader(y) for y in (found if several else (found,))]


def _in_place(op: str, x: Tensor, start: Expr, step: Callable[[Expr, Expr], Expr]) -> Tensor:
    """The states of a recurrence along the first axis, of an extent that is known, from the first element on: each step
    is computed from the one before it where that lies in the result."""
    state = placeholder(x.shape, start.dtype, name=f"{op}_state")
    first = compute((1, *x.shape[1:]), lambda t, *i: step(start, x(0, *i)), name=f"{op}_first")
    update = compute(x.shape, lambda t, *i: step(state(binary("sub", t, 1), *i), x(t, *i)), name=f"{op}_step")
    found = scan([first], [update], [state], inputs=[x], name=op)
    assert isinstance(found, Tensor)
    return found


def _folded(op: str, x: Tensor, axis: Any, exclusive: bool, reverse: bool, dtype: Any, start: int, by: str) -> Tensor:
    check_tensors(op, x=x)
    result = sum_type(x.dtype) if dtype is None else dtype_name(dtype)
    wide = accumulator(result)
    if axis_index(op, axis, x.ndim) == 0 and constant(x.shape[0]) and wide == result and not (exclusive or reverse):
        return _in_place(op, x, const(start, wide), lambda a, e: binary(by, a, cast(wide, e)))
    read, = running(op, x, axis, exclusive, reverse, [const(start, wide)], lambda e, _: [cast(wide, e)],
                         lambda a, b: [binary(by, a[0], b[0])])
    return compute(x.shape, lambda *i: cast(result, read(*i)), name=op)


def cumsum(x: Tensor, *, axis: int = 0, exclusive: bool = False, reverse: bool = False, dtype: Any = None) -> Tensor:
    """y[i] = the sum of x[0] to x[i] along an axis; of integers and bools in 64 bits, unless dtype says otherwise.

    exclusive: without x[i]. reverse: of x[i] to x[n - 1].
    """
    return _folded("cumsum", x, axis, exclusive, reverse, dtype, 0, "add")


def cumprod(x: Tensor, *, axis: int = 0, exclusive: bool = False, reverse: bool = False, dtype: Any = None) -> Tensor:
    """y[i] = the product of x[0] to x[i] along an axis; of integers and bools in 64 bits, unless dtype says otherwise.

    exclusive: without x[i]. reverse: of x[i] to x[n - 1].
    """
    return _folded("cumprod", x, axis, exclusive, reverse, dtype, 1, "mul")


def _extreme(op: str, x: Tensor, axis: Any, exclusive: bool, reverse: bool, return_indices: bool) -> Any:
    check_tensors(op, x=x)
    kind, largest = "uint8" if dt.is_bool(x.dtype) else x.dtype, op == "cummax"
    starts = [(min_value if largest else max_value)(kind), const(-1, INDEX)][:2 if return_indices else 1]

    def step(before: Sequence[Expr], term: Sequence[Expr]) -> Sequence[Expr]:
        a, b = before[0], term[0]
        wins = binary("ge" if largest else "le", b, a)
        if dt.is_float(kind):
            wins = any_of(isnan(b), all_of(logical_not(isnan(a)), wins))
        return [select(wins, new, old) for old, new in zip(before, term)]
    value, *place = running(op, x, axis, exclusive, reverse, starts, lambda e, i: [cast(kind, e), cast(INDEX, i)], step)
    y = compute(x.shape, lambda *i: cast(x.dtype, value(*i)), name=op)
    return (y, compute(x.shape, place[0], name=f"{op}_indices")) if return_indices else y


def cummax(x: Tensor, *, axis: int = 0, exclusive: bool = False, reverse: bool = False,
           return_indices: bool = False) -> Any:
    """y[i] = the largest of x[0], ..., x[i] along an axis; NaN from the first NaN on; and its index where it is wanted.

    The index is that of the last of equals. Of no element: the smallest number of the type, at -1.
    """
    return _extreme("cummax", x, axis, exclusive, reverse, return_indices)


def cummin(x: Tensor, *, axis: int = 0, exclusive: bool = False, reverse: bool = False,
           return_indices: bool = False) -> Any:
    """y[i] = the smallest of x[0], ..., x[i] along an axis; NaN from the first NaN on; and its index where it is
    wanted.

    The index is that of the last of equals. Of no element: the largest number of the type, at -1.
    """
    return _extreme("cummin", x, axis, exclusive, reverse, return_indices)


def logcumsumexp(x: Tensor, *, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """y[i] = log of the sum of exp(x[0]) to exp(x[i]) along an axis, as m + log(sum of exp(x - m)), m: the
    largest so far.
    """
    op = "logcumsumexp"
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, FLOAT)
    wide = accumulator(x.dtype)

    def finite(m: Expr) -> Expr:
        return select(isinf(m), const(0.0, wide), m)

    def step(a: Sequence[Expr], b: Sequence[Expr]) -> Sequence[Expr]:
        m = maximum(a[0], b[0])
        shift = finite(m)
        return m, binary("add", binary("mul", a[1], exp(a[0] - shift)), exp(b[0] - shift))
    largest, total = running(op, x, axis, exclusive, reverse, [min_value(wide), const(0.0, wide)],
                             lambda e, _: [cast(wide, e)], step)
    return compute(x.shape, lambda *i: cast(x.dtype, finite(largest(*i)) + log(total(*i))), name=op)


__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]
