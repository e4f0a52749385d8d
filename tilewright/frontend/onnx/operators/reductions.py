"""Reductions."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import te, topi
from tilewright.frontend.onnx.node import Node
from tilewright.frontend.onnx.operators.elementwise import wider
from tilewright.frontend.onnx.registry import operator
from tilewright.graph.ir.values import Value
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import binary, maximum
from tilewright.topi.reductions import elements_along


def _same_type(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction whose result has the type of x."""
    def reduced(x: Any, axis: Any, keepdims: bool) -> Any:
        return topi.astype(rule(x, axis=axis, keepdims=keepdims), x.dtype)
    reduced.__name__ = rule.__name__
    return reduced


def average(x: Any, *, axis: Any, keepdims: bool) -> Any:
    """`topi.mean`; of integers the sum, divided without the fraction."""
    if dt.is_float(x.dtype):
        return topi.mean(x, axis=axis, keepdims=keepdims)
    total = topi.sum(x, axis=axis, keepdims=keepdims)
    count = maximum(elements_along(x, axis, total.dtype), te.const(1, total.dtype))
    return te.compute(total.shape, lambda *i: binary("truncdiv", total(*i), count), name="mean")


def l1(x: Any, *, axis: Any, keepdims: bool) -> Any:
    """The sum of |x|."""
    return topi.sum(topi.abs(x), axis=axis, keepdims=keepdims)


def l2(x: Any, *, axis: Any, keepdims: bool) -> Any:
    """The square root of the sum of x * x."""
    wide = wider(x) if dt.is_float(x.dtype) else topi.astype(x, "float64")
    return topi.sqrt(sum_square(wide, axis=axis, keepdims=keepdims))


def log_sum_exp(x: Any, *, axis: Any, keepdims: bool) -> Any:
    """The logarithm of the sum of exp(x)."""
    return topi.logsumexp(x if dt.is_float(x.dtype) else topi.astype(x, "float64"), axis=axis, keepdims=keepdims)


def log_sum(x: Any, *, axis: Any, keepdims: bool) -> Any:
    """The logarithm of the sum of x."""
    return topi.log(topi.sum(wider(x), axis=axis, keepdims=keepdims))


def sum_square(x: Any, *, axis: Any, keepdims: bool) -> Any:
    """The sum of x * x."""
    return topi.sum(topi.square(x), axis=axis, keepdims=keepdims)


def extreme(rule: Callable[..., Any], empty: Any) -> Callable[..., Any]:
    """The largest or smallest element; of bools whether any or all hold."""
    def found(x: Any, *, axis: Any, keepdims: bool) -> Any:
        if dt.is_bool(x.dtype):
            return empty(x, axis=axis, keepdims=keepdims)
        return rule(x, axis=axis, keepdims=keepdims)
    found.__name__ = rule.__name__
    return found


def infinite(rule: Callable[..., Any], value: float) -> Callable[..., Any]:
    """An extreme of floats of no element is an infinity."""
    def found(x: Any, *, axis: Any, keepdims: bool) -> Any:
        out = rule(x, axis=axis, keepdims=keepdims)
        return topi.full_like(out, value) if dt.is_float(x.dtype) and any(_is_zero(d) for d in x.shape) else out
    found.__name__ = rule.__name__
    return found


def _is_zero(d: Any) -> bool:
    return getattr(d, "value", d) is not None and getattr(d, "value", d) == 0 and not hasattr(d, "name")


REDUCTIONS = {
    "ReduceL1": l1, "ReduceL2": l2, "ReduceLogSum": log_sum, "ReduceLogSumExp": log_sum_exp,
    "ReduceMax": infinite(extreme(topi.max, topi.any), float("-inf")),
    "ReduceMean": average,
    "ReduceMin": infinite(extreme(topi.min, topi.all), float("inf")),
    "ReduceProd": topi.prod, "ReduceSum": topi.sum, "ReduceSumSquare": sum_square,
}


def _row(rule: Callable[..., Any]) -> Callable[[Node], Value]:
    def row(n: Node) -> Value:
        axes = n.axes()
        if not axes and not n.attr("noop_with_empty_axes", 0):
            axes = list(range(n.rank()))
        if not axes:                                  # over no axes: of each element alone, such as |x| or x * x
            axes = []
        return n.emit(rule, n.value(0), tuple(axes), bool(n.attr("keepdims", 1)))
    return row


for _name, _rule in REDUCTIONS.items():
    _known = getattr(topi, _rule.__name__, None) is not None
    operator(_name, text=f"`topi.{_rule.__name__}`" if _known else _rule.__doc__ or "")(_row(_same_type(_rule)))


def _place(rule: Callable[..., Any]) -> Callable[[Node], Value]:
    def row(n: Node) -> Value:
        return n.emit(rule, n.value(0), axis=n.axis(0), keepdims=bool(n.attr("keepdims", 1)),
                      last=bool(n.attr("select_last_index", 0)))
    return row


for _name, _rule in {"ArgMax": topi.argmax, "ArgMin": topi.argmin}.items():
    operator(_name, text=f"`topi.{_rule.__name__}`")(_place(_rule))


def _running(rule: Callable[..., Any]) -> Callable[[Node], Value]:
    def row(n: Node) -> Value:
        return n.emit(running, n.value(0), rule, int(n.number(1, "the axis")), bool(n.attr("exclusive", 0)),
                      bool(n.attr("reverse", 0)))
    return row


def running(x: Any, rule: Callable[..., Any], axis: int, exclusive: bool, reverse: bool) -> Any:
    """`topi.cumsum` or `topi.cumprod` in the type of x."""
    return rule(x, axis=axis, exclusive=exclusive, reverse=reverse, dtype=x.dtype)


operator("CumSum", text="`topi.cumsum`")(_running(topi.cumsum))
operator("CumProd", text="`topi.cumprod`")(_running(topi.cumprod))
