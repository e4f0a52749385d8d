"""`tvm.topi`: functions of elements, broadcasting, reductions, under TVM's names."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tilewright import te, tir, topi
from tilewright.compat.topi.arguments import items, numbers, plain, taking_numbers
from tilewright.support.errors import ArgumentError, described
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import binary
from tilewright.topi.reductions import truth
from tilewright.topi.shapes import as_shape, is_one, same_extent


def _one(f: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
    """A function of x."""
    def function(x: Any) -> Tensor:
        return f(x)
    function.__doc__ = f.__doc__
    return function


def _of_data(f: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
    """A function of data."""
    def function(data: Any) -> Tensor:
        return f(data)
    function.__doc__ = f.__doc__
    return function


def _two(f: Callable[[Any, Any], Tensor], of_expressions: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A function of lhs and rhs; of two expressions it is an expression."""
    def function(lhs: Any, rhs: Any) -> Any:
        if not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
            return of_expressions(tir.convert(lhs), tir.convert(rhs))
        return f(plain(lhs), plain(rhs))
    function.__doc__ = f.__doc__
    return function


def _log_add_exp(a: Any, b: Any) -> Any:
    """log(exp(a) + exp(b)) of expressions."""
    high, low = te.max(a, b), te.min(a, b)
    return te.if_then_else(binary("eq", a, b), high + math.log(2.0), high + te.log1p(te.exp(low - high)))


SAME = ("exp", "erf", "tanh", "tan", "cos", "cosh", "sin", "sinh", "acos", "acosh", "asin", "asinh", "atan", "atanh",
        "floor", "ceil", "sign", "trunc", "abs", "isnan", "isfinite", "isinf", "round", "log", "log2", "log10", "sqrt",
        "rsqrt", "sigmoid", "negative")
BOTH: dict[str, tuple[Callable[..., Tensor], Callable[[Any, Any], Any]]] = {
    "add": (topi.add, lambda a, b: a + b), "subtract": (topi.subtract, lambda a, b: a - b),
    "multiply": (topi.multiply, lambda a, b: a * b), "divide": (topi.divide, te.div),
    "floor_divide": (topi.floor_divide, tir.floordiv), "floor_mod": (topi.remainder, tir.floormod),
    "mod": (topi.fmod, tir.truncmod), "maximum": (topi.maximum, te.max), "minimum": (topi.minimum, te.min),
    "power": (topi.power, te.power), "left_shift": (topi.bitwise_left_shift, lambda a, b: a << b),
    "right_shift": (topi.bitwise_right_shift, lambda a, b: a >> b), "greater": (topi.greater, lambda a, b: a > b),
    "less": (topi.less, lambda a, b: a < b), "greater_equal": (topi.greater_equal, lambda a, b: a >= b),
    "less_equal": (topi.less_equal, lambda a, b: a <= b), "equal": (topi.equal, lambda a, b: binary("eq", a, b)),
    "not_equal": (topi.not_equal, lambda a, b: binary("ne", a, b)),
    "logical_and": (topi.logical_and, lambda a, b: te.all(truth(a), truth(b))),
    "logical_or": (topi.logical_or, lambda a, b: te.any(truth(a), truth(b))),
    "logical_xor": (topi.logical_xor, lambda a, b: binary("ne", truth(a), truth(b))),
    "bitwise_and": (topi.bitwise_and, lambda a, b: a & b),
    "bitwise_or": (topi.bitwise_or, lambda a, b: a | b), "bitwise_xor": (topi.bitwise_xor, lambda a, b: a ^ b),
    "log_add_exp": (topi.logaddexp, _log_add_exp),
}


def divide(lhs: Any, rhs: Any) -> Any:
    """lhs / rhs, of integers toward 0, as TVM has it."""
    whole = [not t.dtype.startswith(("float", "bfloat")) for t in (lhs, rhs) if isinstance(t, Tensor)]
    if all(whole) and whole and not isinstance(plain(lhs), float) and not isinstance(plain(rhs), float):
        a, b = (t if isinstance(t, Tensor) else te.compute((), lambda t=t: tir.convert(t), name="operand")
                for t in (lhs, rhs))
        shape = topi.add(a, b).shape
        x, y = topi.broadcast_to(a, shape), topi.broadcast_to(b, shape)
        return te.compute(shape, lambda *i: te.truncdiv(x(*i), y(*i)), name="divide")
    return _DIVIDE(lhs, rhs)


_DIVIDE = _two(*BOTH["divide"])


def identity(x: Tensor) -> Tensor:
    """x."""
    return te.compute(x.shape, lambda *i: x(*i), name="identity")


def clip(x: Tensor, a_min: Any, a_max: Any) -> Tensor:
    """x brought into [a_min, a_max]."""
    return topi.clip(x, a_min, a_max)


def cast(x: Tensor, dtype: str, span: Any = None) -> Tensor:
    """x converted to dtype."""
    return topi.astype(x, dtype)


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    """The bits of the elements as another type of the same size."""
    return te.compute(x.shape, lambda *i: te.reinterpret(dtype, x(*i)), name="reinterpret")


def elemwise_sum(xs: Any) -> Tensor:
    """The sum of tensors of one shape."""
    given = items("elemwise_sum", "xs", xs)
    if not given:
        raise ArgumentError("elemwise_sum: there is no tensor")
    return functools.reduce(topi.add, given[1:], identity(given[0]))


def full(shape: Any, dtype: str, fill_value: Any) -> Tensor:
    """fill_value everywhere."""
    return topi.full(items("full", "shape", shape), fill_value, dtype=dtype)


def full_like(x: Tensor, fill_value: Any) -> Tensor:
    """fill_value everywhere, of the shape and type of x."""
    return topi.full_like(x, fill_value)


# reductions


def _axis(axis: Any) -> Any:
    return tuple(numbers(axis)) if isinstance(axis, (list, tuple)) else plain(axis)


def sum(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes, in the type of data."""
    return topi.sum(data, axis=_axis(axis), keepdims=keepdims, dtype=data.dtype)


def prod(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes, in the type of data."""
    return topi.prod(data, axis=_axis(axis), keepdims=keepdims, dtype=data.dtype)


def _reduction(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(data: Tensor, axis: Any = None, keepdims: bool = False) -> Tensor:
        return f(data, axis=_axis(axis), keepdims=keepdims)
    function.__doc__ = f.__doc__
    return function


def _place(name: str) -> Callable[..., Tensor]:
    def function(data: Tensor, axis: Any = None, keepdims: bool = False, select_last_index: bool = False) -> Tensor:
        chosen = _axis(axis)
        if isinstance(chosen, tuple):
            if len(chosen) != 1:
                raise ArgumentError(f"{name}: axis is {described(axis)}, one axis or None is needed")
            chosen = chosen[0]
        return getattr(topi, name)(data, axis=chosen, keepdims=keepdims, dtype="int32", last=select_last_index)
    function.__doc__ = f"The place of the element along an axis, int32, as `topi.{name}`."
    return function


def collapse_sum(data: Tensor, target_shape: Any) -> Tensor:
    """The sum over what broadcasting to the shape of data repeats in target_shape."""
    want = as_shape("collapse_sum", target_shape)
    lead = len(data.shape) - len(want)
    own = data.shape[max(lead, 0):]
    if lead < 0 or not all(is_one(b) or same_extent(a, b) for a, b in zip(own, want)):
        raise ArgumentError(f"collapse_sum: the shape {shape_text(want)} does not broadcast to "
                            f"{shape_text(data.shape)}")
    axes = [*range(lead), *(lead + n for n, (a, b) in enumerate(zip(own, want)) if is_one(b) and not is_one(a))]
    return topi.reshape(sum(data, tuple(axes), True), want) if axes else identity(data)


NAMES: dict[str, Any] = {
    **{name: _one(getattr(topi, name)) for name in SAME},
    **{name: _of_data(getattr(topi, name)) for name in ("logical_not", "bitwise_not")},
    **{name: _two(*pair) for name, pair in BOTH.items()},
    "divide": divide, "fast_exp": _one(topi.exp), "fast_tanh": _one(topi.tanh), "fast_erf": _one(topi.erf),
    "max": _reduction(topi.max), "min": _reduction(topi.min), "all": _reduction(topi.all), "any": _reduction(topi.any),
    "argmax": _place("argmax"), "argmin": _place("argmin"),
    **{f.__name__: taking_numbers(f) for f in (identity, clip, cast, reinterpret, elemwise_sum, full, full_like, sum,
                                               prod, collapse_sum)},
}
NAMES |= {f"broadcast_{short}": NAMES[name] for short, name in (                   # up to TVM 0.3
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "divide"), ("mod", "mod"), ("maximum", "maximum"),
    ("minimum", "minimum"), ("power", "power"))}
