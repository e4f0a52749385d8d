"""`tvm.topi`: functions of elements, broadcasting, reductions, under TVM's names."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tilewright import te, tir, topi
from tilewright.support.errors import ArgumentError, described
from tilewright.te.tensor import Tensor


def plain(value: Any) -> Any:
    """A constant expression as the number that it is; anything else as it is."""
    return value.value if isinstance(value, (tir.IntImm, tir.FloatImm)) else value


def numbers(values: Any) -> Any:
    """Numbers in the place of constant expressions, in sequences too."""
    return [plain(v) for v in values] if isinstance(values, (list, tuple)) else plain(values)


def _one(f: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
    """A function of x."""
    def function(x: Any) -> Tensor:
        return f(x)
    function.__doc__ = f.__doc__
    return function


def _two(f: Callable[[Any, Any], Tensor],
         of_expressions: Callable[[Any, Any], Any] | None = None) -> Callable[..., Any]:
    """A function of lhs and rhs; of two expressions it is an expression."""
    def function(lhs: Any, rhs: Any) -> Any:
        if of_expressions is not None and not isinstance(lhs, Tensor) and not isinstance(rhs, Tensor):
            return of_expressions(tir.convert(lhs), tir.convert(rhs))
        if isinstance(lhs, Tensor):
            return f(lhs, plain(rhs))
        return f(te.compute((), lambda: tir.convert(lhs).astype(rhs.dtype), name="lhs"), rhs)
    function.__doc__ = f.__doc__
    return function


SAME = ("exp", "erf", "tanh", "tan", "cos", "cosh", "sin", "sinh", "acos", "acosh", "asin", "asinh", "atan", "atanh",
        "floor", "ceil", "sign", "trunc", "abs", "isnan", "isfinite", "isinf", "round", "log", "log2", "log10", "sqrt",
        "rsqrt", "sigmoid", "logical_not", "bitwise_not", "negative")
BOTH: dict[str, tuple[Callable[..., Tensor], Callable[[Any, Any], Any] | None]] = {
    "add": (topi.add, lambda a, b: a + b), "subtract": (topi.subtract, lambda a, b: a - b),
    "multiply": (topi.multiply, lambda a, b: a * b), "divide": (topi.divide, lambda a, b: a / b),
    "floor_divide": (topi.floor_divide, tir.floordiv), "floor_mod": (topi.remainder, tir.floormod),
    "mod": (topi.fmod, tir.truncmod), "maximum": (topi.maximum, te.max), "minimum": (topi.minimum, te.min),
    "power": (topi.power, te.power), "left_shift": (topi.bitwise_left_shift, lambda a, b: a << b),
    "right_shift": (topi.bitwise_right_shift, lambda a, b: a >> b), "greater": (topi.greater, lambda a, b: a > b),
    "less": (topi.less, lambda a, b: a < b), "greater_equal": (topi.greater_equal, lambda a, b: a >= b),
    "less_equal": (topi.less_equal, lambda a, b: a <= b), "equal": (topi.equal, None),
    "not_equal": (topi.not_equal, None),
    "logical_and": (topi.logical_and, te.all), "logical_or": (topi.logical_or, te.any),
    "logical_xor": (topi.logical_xor, None), "bitwise_and": (topi.bitwise_and, lambda a, b: a & b),
    "bitwise_or": (topi.bitwise_or, lambda a, b: a | b), "bitwise_xor": (topi.bitwise_xor, lambda a, b: a ^ b),
    "log_add_exp": (topi.logaddexp, None),
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
    return topi.clip(x, plain(a_min), plain(a_max))


def cast(x: Tensor, dtype: str, span: Any = None) -> Tensor:
    """x converted to dtype."""
    return topi.astype(x, dtype)


def reinterpret(x: Tensor, dtype: str) -> Tensor:
    """The bits of the elements as another type of the same size."""
    return te.compute(x.shape, lambda *i: te.reinterpret(dtype, x(*i)), name="reinterpret")


def elemwise_sum(xs: Any) -> Tensor:
    """The sum of tensors of one shape."""
    given = list(xs)
    if not given:
        raise ArgumentError("elemwise_sum: there is no tensor")
    return functools.reduce(topi.add, given[1:], identity(given[0]))


def full(shape: Any, dtype: str, fill_value: Any) -> Tensor:
    """fill_value everywhere."""
    return topi.full(list(shape), plain(fill_value), dtype=dtype)


def full_like(x: Tensor, fill_value: Any) -> Tensor:
    """fill_value everywhere, of the shape and type of x."""
    return topi.full_like(x, plain(fill_value))


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
    want = list(target_shape)
    lead = len(data.shape) - len(want)
    axes = [*range(lead), *(lead + n for n, (a, b) in enumerate(zip(data.shape[lead:], want))
                            if plain(b) == 1 and plain(a) != 1)]
    return topi.reshape(sum(data, tuple(axes), True), want) if axes else identity(data)


NAMES: dict[str, Any] = {
    **{name: _one(getattr(topi, name)) for name in SAME}, **{name: _two(*pair) for name, pair in BOTH.items()},
    "divide": divide, "fast_exp": _one(topi.exp), "fast_tanh": _one(topi.tanh), "fast_erf": _one(topi.erf),
    "identity": identity, "clip": clip, "cast": cast, "reinterpret": reinterpret, "elemwise_sum": elemwise_sum,
    "full": full, "full_like": full_like, "sum": sum, "prod": prod, "max": _reduction(topi.max),
    "min": _reduction(topi.min), "all": _reduction(topi.all), "any": _reduction(topi.any), "argmax": _place("argmax"),
    "argmin": _place("argmin"), "collapse_sum": collapse_sum,
}
NAMES |= {f"broadcast_{short}": NAMES[name] for short, name in (                   # up to TVM 0.3
    ("add", "add"), ("sub", "subtract"), ("mul", "multiply"), ("div", "divide"), ("mod", "mod"), ("maximum", "maximum"),
    ("minimum", "minimum"), ("power", "power"))}
