"""Reductions over axes, as in NumPy: sums, products, extrema and their places, moments, norms, questions."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.support.errors import described
from tilewright.te.arg_reducers import arg_reducer
from tilewright.te.conditions import state
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import exp, isinf, isnan, log, sqrt
from tilewright.te.reduction import Reducer, comm_reducer, reduce_axis
from tilewright.te.reduction import max as te_max
from tilewright.te.reduction import min as te_min
from tilewright.te.reduction import prod as te_prod
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import absolute, binary, power, select
from tilewright.tir.conversion import cast, const, min_value
from tilewright.tir.expr import Expr
from tilewright.topi.shapes import (
    axis_indices,
    check,
    check_numbers,
    check_tensors,
    constant,
    count,
    element,
    index_type,
    number,
    product,
    row_major,
)
from tilewright.topi.types import (
    FLOAT,
    INDEX,
    NUMBER,
    accumulator,
    check_kind,
    dtype_name,
    floating,
    place_type,
    rounded,
    sum_type,
)

Term = Callable[..., Any]


def reduced(name: str, x: Tensor, axis: Any, keepdims: bool, reducer: Callable[..., Any], term: Term,
            attrs: dict[str, Any] | None = None) -> Any:
    """The reduction over axes (None: all) of term(the indices of x) by a reducer; one tensor for each component.

    Without an axis to reduce it is the term itself. keepdims: the axes stay, of extent 1.
    """
    axes = axis_indices(name, axis, x.ndim)
    ks = {a: reduce_axis((0, x.shape[a]), name=f"k{a}") for a in sorted(axes)}
    kept = [a for a in range(x.ndim) if keepdims or a not in ks]

    def at(*i: Any) -> Any:
        point = {**dict(zip(kept, i)), **{a: k.var for a, k in ks.items()}}
        value = term(*(point[a] for a in range(x.ndim)))
        return reducer(value, axis=list(ks.values())) if ks else value
    return compute([1 if a in ks else x.shape[a] for a in kept], at, name=name, attrs=attrs)


def _checked(op: str, x: Any, kind: str = NUMBER, hint: str = 'convert it: x.astype("int32")') -> None:
    check_tensors(op, x=x)
    check_kind(op, "x", x.dtype, kind, hint)


def _added(op: str, x: Tensor, axis: Any, keepdims: bool, dtype: Any, reducer: Reducer) -> Tensor:
    check_tensors(op, x=x)
    result = sum_type(x.dtype) if dtype is None else dtype_name(dtype)
    wide = accumulator(result)
    y = reduced(op, x, axis, keepdims, reducer, lambda *i: cast(wide, x(*i)))
    return rounded(y, result, f"{op}_rounded")


def sum(x: Tensor, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The sum over axes; of integers and bools in 64 bits, unless dtype says otherwise. 0 of no element."""
    return _added("sum", x, axis, keepdims, dtype, te_sum)


def prod(x: Tensor, *, axis: Any = None, keepdims: bool = False, dtype: Any = None) -> Tensor:
    """The product over axes; of integers and bools in 64 bits, unless dtype says otherwise. 1 of no element."""
    return _added("prod", x, axis, keepdims, dtype, te_prod)


def _extreme(op: str, x: Tensor, axis: Any, keepdims: bool, reducer: Reducer) -> Tensor:
    check_tensors(op, x=x)
    if dt.is_bool(x.dtype):
        return (any if op == "max" else all)(x, axis=axis, keepdims=keepdims)
    return reduced(op, x, axis, keepdims, reducer, lambda *i: x(*i))


def max(x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The largest element over axes; NaN where one is NaN, the smallest number of the type of no element."""
    return _extreme("max", x, axis, keepdims, te_max)


def min(x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The smallest element over axes; NaN where one is NaN, the largest number of the type of no element."""
    return _extreme("min", x, axis, keepdims, te_min)


def _place(op: str, x: Tensor, axis: Any, keepdims: bool, dtype: Any, last: bool) -> Tensor:
    check_tensors(op, x=x)
    axes = axis_indices(op, axis, x.ndim)
    check(axis is None or len(axes) == 1, op, f"axis is {described(axis)}, one axis or None is needed")
    check(constant(product(x.shape[a] for a in axes)) != 0, op, f"there is no element along axis {axis} of the shape "
          f"{shape_text(x.shape)}")
    extents = [x.shape[a] for a in axes]
    index = place_type(op, dtype, simplified(product(extents) - 1))
    for e in (e for e in extents if isinstance(e, Expr)):
        state(binary("gt", e, 0), f"{op}: there is no element along an axis, of the extent {e}")
    end = cast(index, simplified(product(extents))) - 1
    wide = index_type(*extents)

    def pair(*i: Any) -> tuple[Expr, Expr]:
        value = cast("uint8", x(*i)) if dt.is_bool(x.dtype) else x(*i)
        place = cast(index, row_major([i[a] if len(axes) < 2 else cast(wide, i[a]) for a in axes], extents))
        return end - place if last else place, value
    y = reduced(op, x, axis, keepdims, arg_reducer(op == "argmax"), pair)[0]
    return compute(y.shape, lambda *i: end - y(*i), name=f"{op}_last") if last else y


def argmax(x: Tensor, *, axis: int | None = None, keepdims: bool = False, dtype: Any = INDEX,
           last: bool = False) -> Tensor:
    """The place of the largest element along an axis; of all elements, row by row, for None. Of equals the first, or
    the last one.

    NaN counts as the largest. States that a symbolic extent is not 0. Raises TensorExpressionError for an axis without
    elements.
    """
    return _place("argmax", x, axis, keepdims, dtype, last)


def argmin(x: Tensor, *, axis: int | None = None, keepdims: bool = False, dtype: Any = INDEX,
           last: bool = False) -> Tensor:
    """The place of the smallest element along an axis; of all elements, row by row, for None. Of equals the first, or
    the last one.

    NaN counts as the smallest. States that a symbolic extent is not 0. Raises TensorExpressionError for an axis without
    elements.
    """
    return _place("argmin", x, axis, keepdims, dtype, last)


# the largest that is no NaN, of one comparison: for formulas in which a NaN shows up all the same
largest_number = comm_reducer(lambda a, b: select(binary("gt", b, a), b, a), min_value, name="largest_number")


# moments


def elements_along(x: Tensor, axes: Sequence[int], dtype: str) -> Expr:
    """The number of elements that a reduction over axes combines."""
    extents = [x.shape[a] for a in axes]
    known = count(extents)
    if known is not None:
        return number(known, dtype)
    return functools.reduce(lambda a, b: binary("mul", a, b), (number(e, dtype) for e in extents))


def mean(x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes divided by the number of elements; of integers and bools in float32."""
    check_tensors("mean", x=x)
    result = floating(x.dtype)
    return rounded(wide_mean("mean", x, axis, keepdims), result, "mean_rounded")


def wide_mean(name: str, x: Tensor, axis: Any, keepdims: bool = True) -> Tensor:
    """The mean in the type that accumulates, as a sum and a quotient."""
    wide = accumulator(floating(x.dtype))
    total = reduced(f"{name}_sum", x, axis, keepdims, te_sum, lambda *i: cast(wide, x(*i)))
    n = elements_along(x, axis_indices(name, axis, x.ndim), wide)
    return compute(total.shape, lambda *i: binary("div", total(*i), n), name=name)


def squared_distances(name: str, x: Tensor, center: Tensor, axis: Any, keepdims: bool = True) -> Tensor:
    """The sum over axes of (x - center) ** 2; center has extent 1 along them."""
    def term(*i: Any) -> Expr:
        d = binary("sub", cast(center.dtype, x(*i)), element(center, i))
        return binary("mul", d, d)
    return reduced(name, x, axis, keepdims, te_sum, term)


def _variance(op: str, x: Tensor, axis: Any, keepdims: bool, correction: float,
              finish: Callable[[Expr], Expr]) -> Tensor:
    check_tensors(op, x=x)
    check_numbers(op, correction=correction)
    result = floating(x.dtype)
    center = wide_mean(f"{op}_mean", x, axis)
    total = squared_distances(f"{op}_sum", x, center, axis, keepdims)
    n = elements_along(x, axis_indices(op, axis, x.ndim), total.dtype)
    rest = binary("sub", n, const(float(correction), total.dtype)) if correction else n
    below = binary("max", rest, const(0.0, total.dtype)) if correction else rest
    return compute(total.shape, lambda *i: cast(result, finish(binary("div", total(*i), below))), name=op)


def var(x: Tensor, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The mean of (x - mean(x)) ** 2 over axes, divided by n - correction; two passes."""
    return _variance("var", x, axis, keepdims, correction, lambda e: e)


def std(x: Tensor, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The square root of `var`."""
    return _variance("std", x, axis, keepdims, correction, sqrt)


def logsumexp(x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log(sum over axes of exp(x)), as m + log(sum of exp(x - m)) with the largest element m; -inf of no element."""
    op = "logsumexp"
    _checked(op, x, FLOAT)
    wide = accumulator(x.dtype)
    largest = reduced("logsumexp_max", x, axis, True, largest_number, lambda *i: cast(wide, x(*i)),
                      {"no_gradient": True})
    shift = compute(largest.shape, lambda *i: select(isinf(largest(*i)), const(0.0, wide), largest(*i)),
                    name="logsumexp_shift", attrs={"no_gradient": True})
    total = reduced("logsumexp_sum", x, axis, True, te_sum, lambda *i: exp(cast(wide, x(*i)) - element(shift, i)))
    kept = [a for a in range(x.ndim) if keepdims or a not in axis_indices(op, axis, x.ndim)]

    def at(*i: Any) -> Expr:
        point = dict(zip(kept, i))
        full = [point.get(a, 0) for a in range(x.ndim)]
        return cast(x.dtype, log(total(*full)) + shift(*full))
    return compute([total.shape[a] for a in kept], at, name=op)


def norm(x: Tensor, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """(sum over axes of |x| ** ord) ** (1 / ord); the largest or smallest |x| for ord inf or -inf, for 0 how many are
    not 0."""
    op = "norm"
    _checked(op, x, FLOAT)
    check(isinstance(ord, (int, float)) and not isinstance(ord, bool), op, f"ord is {described(ord)}, not a number")
    wide = accumulator(x.dtype)

    def size(*i: Any) -> Expr:
        return absolute(cast(wide, x(*i)))
    if ord in (float("inf"), -float("inf")):
        y = reduced(op, x, axis, keepdims, te_max, size) if ord > 0 else reduced(op, x, axis, keepdims, te_min, size)
        return rounded(y, x.dtype, "norm_rounded")
    terms: dict[float, Callable[[Expr], Expr]] = {
        0: lambda e: cast(wide, binary("ne", e, const(0.0, wide))), 1: lambda e: e, 2: lambda e: binary("mul", e, e)}
    term = terms.get(ord, lambda e: power(e, float(ord)))
    roots: dict[float, Callable[[Expr], Expr]] = {0: lambda e: e, 1: lambda e: e, 2: sqrt}
    root = roots.get(ord, lambda e: power(e, 1.0 / ord))
    total = reduced("norm_sum", x, axis, keepdims, te_sum, lambda *i: term(size(*i)))
    return compute(total.shape, lambda *i: cast(x.dtype, root(total(*i))), name=op)


def _number(e: Expr, wide: str) -> Expr:
    """An element, 0 for NaN."""
    return cast(wide, select(isnan(e), const(0.0, e.dtype), e))


def nansum(x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes of the elements that are not NaN."""
    _checked("nansum", x, FLOAT)
    wide = accumulator(x.dtype)
    y = reduced("nansum", x, axis, keepdims, te_sum, lambda *i: _number(x(*i), wide))
    return rounded(y, x.dtype, "nansum_rounded")


def nanmean(x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean over axes of the elements that are not NaN; NaN of none."""
    _checked("nanmean", x, FLOAT)
    wide = accumulator(x.dtype)
    total = reduced("nanmean_sum", x, axis, keepdims, te_sum, lambda *i: _number(x(*i), wide))
    count = reduced("nanmean_count", x, axis, keepdims, te_sum, lambda *i: select(isnan(x(*i)), const(0.0, wide), const(
        1.0, wide)))
    return compute(total.shape, lambda *i: cast(x.dtype, binary("div", total(*i), count(*i))), name="nanmean")


# questions


@functools.cache
def _bool_reducer(every: bool) -> Reducer:
    return comm_reducer(lambda a, b: binary("and" if every else "or", a, b), lambda _: const(every, "bool"),
                        name="all" if every else "any")


def truth(e: Expr) -> Expr:
    """e != 0; a bool is itself."""
    return e if dt.is_bool(e.dtype) else binary("ne", e, const(0, e.dtype))


def all(x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """True where no element over axes is 0; True of no element."""
    check_tensors("all", x=x)
    return reduced("all", x, axis, keepdims, _bool_reducer(True), lambda *i: truth(x(*i)))


def any(x: Tensor, *, axis: Any = None, keepdims: bool = False) -> Tensor:
    """True where some element over axes is not 0; False of no element."""
    check_tensors("any", x=x)
    return reduced("any", x, axis, keepdims, _bool_reducer(False), lambda *i: truth(x(*i)))


def count_nonzero(x: Tensor, *, axis: Any = None, keepdims: bool = False, dtype: Any = INDEX) -> Tensor:
    """How many elements over axes are not 0."""
    check_tensors("count_nonzero", x=x)
    index = dtype_name(dtype)
    return reduced("count_nonzero", x, axis, keepdims, te_sum, lambda *i: cast(index, truth(x(*i))))


__all__ = ["all", "any", "argmax", "argmin", "count_nonzero", "logsumexp", "max", "mean", "min", "nanmean", "nansum",
           "norm", "prod", "std", "sum", "var"]
