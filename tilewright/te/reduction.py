"""Commutative reductions: sum, prod, max, min and those that a user defines."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.support.errors import TensorExpressionError, described
from tilewright.te.extents import rounding, whole
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import HOW_TO_SIZE, NO_SIZE, SIZES, size
from tilewright.tir.conversion import const, convert, max_value, min_value
from tilewright.tir.expr import Expr, Var
from tilewright.tir.iter_var import COMM_REDUCE, IterVar, Range
from tilewright.tir.printer.expressions import ExprPrinter, register_expr_printer

__all__ = ["CommReducer", "Reduce", "Reducer", "comm_reducer", "max", "min", "prod", "reduce_axis", "sum"]
NOT_TOP_LEVEL = ("Reductions are only allowed at the top level of compute. "
                 "Please create another tensor for further composition")


@dataclass(frozen=True, eq=False)
class CommReducer:
    """A commutative, associative combiner of tuples with its identity: result is in terms of lhs and rhs."""
    name: str
    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity: tuple[Expr, ...]


@dataclass(slots=True, eq=False, repr=False)
class Reduce(Expr):
    """Component value_index of the combination of source over all points of axis where condition holds.

    `init` (one per component, or none) takes the place of the identity as the start value.
    """
    combiner: CommReducer
    source: tuple[Expr, ...]
    axis: tuple[Any, ...]                # IterVars; not children, so that their identity survives a rewrite
    condition: Expr | None
    init: tuple[Expr, ...]
    value_index: int

    @property
    def dtype(self) -> str:
        return self.source[self.value_index].dtype


class ReduceAxis(IterVar):
    """An IterVar of a reduction; unlike its base it can be referred to weakly."""
    __slots__ = ("__weakref__",)


def _print_reduce(p: ExprPrinter, e: Reduce) -> str:
    source = p.items(e.source) if len(e.source) == 1 else f"({p.items(e.source)})"
    axes = ", ".join(p.names.of(k.var) for k in e.axis)
    where = "" if e.condition is None else f", where={p.expr(e.condition)}"
    text = f"{e.combiner.name}({source}, axis=[{axes}]{where})"
    return text if len(e.source) == 1 else f"{text}[{e.value_index}]"


def _print_axis(p: ExprPrinter, e: ReduceAxis) -> str:
    return p.expr(IterVar(e.dom, e.var, e.iter_type, e.thread_tag))


register_expr_printer(Reduce, _print_reduce)
register_expr_printer(ReduceAxis, _print_axis)

# id(var) -> axis, for every reduction axis that is alive: tells a misplaced reduction variable from a te.var
_REDUCTION_VARS: weakref.WeakValueDictionary[int, ReduceAxis] = weakref.WeakValueDictionary()


def reduce_axis(dom: Range | Sequence[Any], name: str = "rv", thread_tag: str = "") -> IterVar:
    """A new reduction axis over begin <= axis < end, dom = (begin, end).

    Raises TensorExpressionError when dom is not a pair of integers or end lies before begin.
    """
    if not isinstance(name, str) or not name:
        raise TensorExpressionError(f"reduce_axis: the name {described(name)} is not a string with characters")
    if isinstance(dom, Range):
        low, extent = dom.min, dom.extent
    else:
        if not isinstance(dom, (tuple, list)) or len(dom) != 2:
            raise TensorExpressionError(f"reduce_axis: {dom!r} is not a range", "write te.reduce_axis((0, n))")
        low, high = size(whole(dom[0])), size(whole(dom[1]))
        if not (dt.is_integer(low.dtype) and dt.is_integer(high.dtype)):
            raise TensorExpressionError(f"reduce_axis: the range ({low}, {high}) is not made of integers",
                                        rounding(*dom))
        for bound in (low, high):
            if bound.dtype not in SIZES:
                raise TensorExpressionError(f"reduce_axis {name}: the range ({low}, {high}) has the bound {bound}, "
                                            f"{NO_SIZE.format(bound.dtype)}", HOW_TO_SIZE)
        extent = binary("sub", high, low)
    if isinstance(getattr(extent, "value", None), int) and extent.value < 0:  # type: ignore[attr-defined]
        raise TensorExpressionError(f"reduce_axis: the range ({dom[0]}, {dom[1]}) ends before it begins")  # type: ignore[index]
    axis = ReduceAxis(Range(low, extent), Var(name, extent.dtype), COMM_REDUCE, thread_tag)
    _REDUCTION_VARS[id(axis.var)] = axis
    return axis


def is_reduction_var(var: Var) -> bool:
    """True for the variable of a reduction axis."""
    axis = _REDUCTION_VARS.get(id(var))
    return axis is not None and axis.var is var


def _check_axes(name: str, axis: Any) -> tuple[IterVar, ...]:
    axes = tuple(axis) if isinstance(axis, (list, tuple)) else (axis,)
    if not axes:
        raise TensorExpressionError(f"{name}: no reduction axis given", "pass axis=te.reduce_axis((0, n))")
    for position, k in enumerate(axes):
        if not isinstance(k, IterVar):
            raise TensorExpressionError(f"{name}: axis {k!r} is not a reduction axis",
                                        "make one with te.reduce_axis((0, n), name='k')")
        if k.iter_type != COMM_REDUCE:
            raise TensorExpressionError(f"{name}: axis {k.var.name} is not a reduction axis",
                                        "make one with te.reduce_axis((0, n), name='k')")
        if any(k is other for other in axes[:position]):
            raise TensorExpressionError(f"{name}: the reduction axis {k.var.name} is given twice")
    return axes


def _is_axes(x: Any) -> bool:
    return isinstance(x, IterVar) or (isinstance(x, (list, tuple)) and all(isinstance(k, IterVar) for k in x))


class Reducer:
    """A function that reduces an expression over axes: `sum(x, axis=k)`, or combines scalars: `max(a, b)`.

    `where` restricts the reduction to the points where it holds; `init` starts it in place of the identity.
    """

    def __init__(self, name: str, combine: Callable[[Any, Any], Any], identity: Callable[..., Any],
                 combines_scalars: bool = True, of_tuples: bool = True) -> None:
        self.name, self._combine, self._identity = name, combine, identity
        self._combines_scalars, self._of_tuples = combines_scalars, of_tuples
        self._made: dict[tuple[str, ...], CommReducer] = {}

    def __call__(self, expr: Any, *more: Any, axis: Any = None, where: Any = None, init: Any = None) -> Any:
        if axis is None and more and (_is_axes(more[0]) or not self._combines_scalars):
            axis, more = more[0], more[1:]
            if more and where is None:
                where, more = more[0], more[1:]
        if axis is None and more:
            out = expr
            for other in more:
                out = self._combine(out, other)
            return out
        if axis is None or more:
            raise TensorExpressionError(f"{self.name}: expected an expression and a reduction axis",
                                        f"write te.{self.name}(A[i, k], axis=k)")
        return self._reduce(expr, _check_axes(self.name, axis), where, init)

    def _reduce(self, expr: Any, axes: tuple[IterVar, ...], where: Any, init: Any) -> Any:
        several = isinstance(expr, (tuple, list))
        if several and not self._of_tuples:
            raise TensorExpressionError(f"{self.name}: {len(expr)} values are reduced, and it takes one",
                                        "te.comm_reducer makes reductions of several values")
        source = tuple(convert(e) for e in expr) if several else (convert(expr),)
        condition = None if where is None else convert(where)
        if condition is not None and not dt.is_bool(condition.dtype):
            raise TensorExpressionError(f"{self.name}: `where` is {condition.dtype}, not a condition",
                                        "compare: where=x != 0")
        start: tuple[Expr, ...] = ()
        if init is not None:
            given = tuple(init) if isinstance(init, (tuple, list)) else (init,)
            if len(given) != len(source):
                raise TensorExpressionError(
                    f"{self.name}: {len(source)} value(s) are reduced, init has {len(given)}")
            start = tuple(_as_dtype(self.name, value, e.dtype) for value, e in zip(given, source))
        combiner = self.combiner(tuple(e.dtype for e in source), several)
        parts = tuple(Reduce(combiner, source, axes, condition, start, n) for n in range(len(source)))
        return parts if several else parts[0]

    def combiner(self, dtypes: tuple[str, ...], several: bool = False) -> CommReducer:
        """The symbolic form for components of these dtypes; made once per tuple of dtypes."""
        made = self._made.get(dtypes)
        if made is None:
            lhs = tuple(Var(f"x{n}" if several else "x", d) for n, d in enumerate(dtypes))
            rhs = tuple(Var(f"y{n}" if several else "y", d) for n, d in enumerate(dtypes))
            result = self._combine(lhs, rhs) if several else (self._combine(lhs[0], rhs[0]),)
            identity = self._identity(*dtypes) if several else (self._identity(dtypes[0]),)
            result, identity = tuple(map(convert, result)), tuple(identity)
            if not len(result) == len(identity) == len(dtypes):
                raise TensorExpressionError(
                    f"{self.name}: {len(dtypes)} value(s) are reduced, the combiner gives {len(result)} and "
                    f"the identity {len(identity)}")
            for n, (r, d) in enumerate(zip(result, dtypes)):
                if r.dtype != d:
                    raise TensorExpressionError(
                        f"{self.name}: the combiner turns component {n} of {d} into {r.dtype}")
            starts = tuple(_as_dtype(self.name, value, d) for value, d in zip(identity, dtypes))
            made = self._made[dtypes] = CommReducer(self.name, lhs, rhs, result, starts)
            _MADE.setdefault(f"{dtypes} {', '.join(map(str, (*result, *starts)))}", made)
        return made


_MADE: dict[str, CommReducer] = {}            # text -> combiner: one for all with the same definition


def known_combiners(dtypes: tuple[str, ...]) -> list[CommReducer]:
    """The combiners of these dtypes that reductions of this process use, in order of creation."""
    return [c for c in _MADE.values() if tuple(v.dtype for v in c.lhs) == dtypes]


def _as_dtype(name: str, value: Any, dtype: str) -> Expr:
    e = convert(value, dtype)
    if e.dtype != dtype:
        raise TensorExpressionError(f"{name}: the start value is {e.dtype}, the reduced value {dtype}",
                                    f'cast it: x.astype("{dtype}")')
    return e


def comm_reducer(fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any],
                 name: str = "reduce") -> Reducer:
    """A reduction from its combiner and identity.

    For one value: fcombine(x, y) and fidentity(dtype). For tuples: fcombine gets two tuples and gives one,
    fidentity(*dtypes) gives one. fcombine must be commutative and associative.
    """
    for what, function in (("fcombine", fcombine), ("fidentity", fidentity)):
        if not callable(function):
            raise TensorExpressionError(f"comm_reducer: {what} is {described(function)}, not a function",
                                        "te.comm_reducer(lambda x, y: x + y, lambda dtype: tir.const(0, dtype))")
    return Reducer(name, fcombine, fidentity)


sum = Reducer("sum", lambda x, y: binary("add", x, y), lambda dtype: const(0, dtype), False, False)
prod = Reducer("prod", lambda x, y: binary("mul", x, y), lambda dtype: const(1, dtype), False, False)
max = Reducer("max", lambda x, y: binary("max", x, y), min_value, of_tuples=False)
min = Reducer("min", lambda x, y: binary("min", x, y), max_value, of_tuples=False)
