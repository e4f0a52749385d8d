"""Operators on equal shapes, element by element."""
from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright import te
from tilewright.graph.ir.types import TensorType
from tilewright.graph.operator import Operator
from tilewright.graph.value import Value
from tilewright.graph.vocabulary import method, public
from tilewright.support.errors import GraphError, described
from tilewright.tir import dtype as dt


class Elementwise(Operator):
    """y = f(x0, x1, ...) elementwise on equal shapes; subclasses give f as `scalar`."""

    def infer(self, *inputs: TensorType) -> TensorType:
        self.require(all(t.shape == inputs[0].shape for t in inputs), "shapes differ", *inputs,
                     hint="broadcast one of them: graph.broadcast_like(x, like)")
        return TensorType(inputs[0].shape, self.same_float(*inputs))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        name = type(self).__name__.lower()
        return te.compute(inputs[0].shape, lambda *i: self.scalar(*(x(*i) for x in inputs)), name=name)

    def scalar(self, *x: Any) -> Any:
        """f, on scalar expressions."""
        raise NotImplementedError


@dataclass(frozen=True)
class Add(Elementwise):
    """y = a + b."""
    def scalar(self, *x: Any) -> Any: return x[0] + x[1]
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return dy, dy


@dataclass(frozen=True)
class Sub(Elementwise):
    """y = a - b."""
    def scalar(self, *x: Any) -> Any: return x[0] - x[1]
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return dy, Neg()(dy)


@dataclass(frozen=True)
class Mul(Elementwise):
    """y = a * b."""
    def scalar(self, *x: Any) -> Any: return x[0] * x[1]

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        a, b = y.inputs
        return Mul()(dy, b), Mul()(dy, a)


@dataclass(frozen=True)
class Div(Elementwise):
    """y = a / b."""
    def scalar(self, *x: Any) -> Any: return x[0] / x[1]

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        b = y.inputs[1]
        return Div()(dy, b), Neg()(Mul()(dy, Div()(y, b)))


@dataclass(frozen=True)
class AddConst(Elementwise):
    """y = x + c."""
    c: float

    def scalar(self, *x: Any) -> Any: return x[0] + self.c
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (dy,)


@dataclass(frozen=True)
class MulConst(Elementwise):
    """y = x * c."""
    c: float

    def scalar(self, *x: Any) -> Any: return x[0] * self.c
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (MulConst(self.c)(dy),)


@dataclass(frozen=True)
class DivConst(Elementwise):
    """y = x / c."""
    c: float

    def scalar(self, *x: Any) -> Any: return x[0] / self.c
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (DivConst(self.c)(dy),)


@dataclass(frozen=True)
class PowConst(Elementwise):
    """y = x**c."""
    c: float

    def scalar(self, *x: Any) -> Any:
        if self.c == 2:
            return x[0] * x[0]
        return te.sqrt(x[0]) if self.c == 0.5 else te.power(x[0], te.const(self.c, x[0].dtype))

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        if self.c == 0:
            return (MulConst(0.0)(dy),)
        return (MulConst(self.c)(Mul()(dy, PowConst(self.c - 1)(y.inputs[0]))),)


@dataclass(frozen=True)
class Neg(Elementwise):
    """y = -x."""
    def scalar(self, *x: Any) -> Any: return -x[0]
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (Neg()(dy),)


@dataclass(frozen=True)
class Reciprocal(Elementwise):
    """y = c / x."""
    c: float = 1.0

    def scalar(self, *x: Any) -> Any: return self.c / x[0]

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return (Neg()(Mul()(dy, Div()(y, y.inputs[0]))),)


@dataclass(frozen=True)
class Exp(Elementwise):
    """y = e**x."""
    def scalar(self, *x: Any) -> Any: return te.exp(x[0])
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (Mul()(dy, y),)


@dataclass(frozen=True)
class Log(Elementwise):
    """y = ln x."""
    def scalar(self, *x: Any) -> Any: return te.log(x[0])
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (Div()(dy, y.inputs[0]),)


@dataclass(frozen=True)
class Sqrt(Elementwise):
    """y = sqrt x."""
    def scalar(self, *x: Any) -> Any: return te.sqrt(x[0])
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (MulConst(0.5)(Div()(dy, y)),)


@dataclass(frozen=True)
class Tanh(Elementwise):
    """y = tanh x; dy/dx = 1 - y*y."""
    def scalar(self, *x: Any) -> Any: return te.tanh(x[0])

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return (Mul()(dy, AddConst(1.0)(Neg()(Mul()(y, y)))),)


@dataclass(frozen=True)
class Sigmoid(Elementwise):
    """y = 1 / (1 + e**-x); dy/dx = y * (1 - y)."""
    def scalar(self, *x: Any) -> Any: return te.sigmoid(x[0])

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return (Mul()(dy, Mul()(y, AddConst(1.0)(Neg()(y)))),)


@dataclass(frozen=True)
class Relu(Elementwise):
    """y = max(x, 0)."""
    def scalar(self, *x: Any) -> Any: return te.max(x[0], 0.0)
    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (ReluGrad()(dy, y),)


@dataclass(frozen=True)
class ReluGrad(Elementwise):
    """dx = dy where y > 0, else 0; y = relu(x), so x itself need not be kept. The gradient at 0 is 0."""
    def scalar(self, *x: Any) -> Any: return te.select(x[1] > 0.0, x[0], 0.0)

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return ReluGrad()(dy, y.inputs[1]), None


@dataclass(frozen=True)
class Cast(Elementwise):
    """y = x converted to dtype."""
    dtype: str

    def __post_init__(self) -> None:
        self.require(dt.lanes_of(self.dtype) == 1 and self.dtype != "handle", "this is no type of elements",
                     hint='graph.cast(x, "float32"): vectors and pointers have no place in a tensor')

    def infer(self, *inputs: TensorType) -> TensorType:
        return TensorType(inputs[0].shape, self.dtype)

    def scalar(self, *x: Any) -> Any: return x[0].astype(self.dtype)

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        """Between floats the gradient is rounded to x's type; to an integer no gradient leads."""
        return (CastLike()(dy, y.inputs[0]) if dt.is_float(self.dtype) else None,)


@dataclass(frozen=True)
class CastLike(Elementwise):
    """y = x converted to the dtype of `like`, a float."""

    def infer(self, *inputs: TensorType) -> TensorType:
        return TensorType(inputs[0].shape, self.same_float(inputs[1]))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        x, like = inputs
        return te.compute(x.shape, lambda *i: x(*i).astype(like.dtype), name="castlike")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return CastLike()(dy, y.inputs[0]), None


# ---- functions

def _number(operator: str, x: Any) -> float:
    """A number of Python or NumPy as a float. Raises GraphError for anything else."""
    if not isinstance(x, numbers.Real) or isinstance(x, bool):
        raise GraphError(f"{operator}: {described(x)} is neither a graph value nor a number",
                         "wrap an array with graph.parameter(name, array)")
    try:
        return float(x)
    except OverflowError:
        raise GraphError(f"{operator}: {described(x)} is too large for float64") from None


def _binary(op: Elementwise, scalar: Callable[[float], Elementwise], a: Value, b: Value | float) -> Value:
    return op(a, b) if isinstance(b, Value) else scalar(_number(type(op).__name__, b))(a)


@public
@method("__add__", "__radd__")
def add(a: Value, b: Value | float) -> Value:
    """a + b, elementwise on equal shapes; b may be a number."""
    return _binary(Add(), AddConst, a, b)


@public
@method("__sub__")
def subtract(a: Value, b: Value | float) -> Value:
    """a - b, elementwise on equal shapes; b may be a number."""
    return _binary(Sub(), lambda c: AddConst(-c), a, b)


@method("__rsub__")
def _subtract_from(b: Value, a: float) -> Value: return add(negative(b), a)


@public
@method("__mul__", "__rmul__")
def multiply(a: Value, b: Value | float) -> Value:
    """a * b, elementwise on equal shapes; b may be a number."""
    return _binary(Mul(), MulConst, a, b)


@public
@method("__truediv__")
def divide(a: Value, b: Value | float) -> Value:
    """a / b, elementwise on equal shapes; b may be a number other than 0."""
    if not isinstance(b, Value) and _number("Div", b) == 0:
        raise GraphError("divide: division by the number 0")
    return _binary(Div(), _division, a, b)


def _division(c: float) -> Elementwise:
    """x / c; a product where 1 / c is exact, which is faster."""
    exact = abs(math.frexp(c)[0]) == 0.5 and 2.0 ** -100 < abs(c) < 2.0 ** 100
    return MulConst(1.0 / c) if exact else DivConst(c)


@method("__rtruediv__")
def _divide_number(b: Value, a: float) -> Value: return Reciprocal(_number("Div", a))(b)


@public
@method("__pow__")
def power(x: Value, exponent: float) -> Value:
    """x to the power of a number, elementwise; NaN where x < 0 and the exponent is no integer."""
    return PowConst(_number("Pow", exponent))(x)


@public
@method("__neg__")
def negative(x: Value) -> Value:
    """-x, elementwise."""
    return Neg()(x)


@public
def exp(x: Value) -> Value:
    """e to the power of x, elementwise."""
    return Exp()(x)


@public
def log(x: Value) -> Value:
    """The natural logarithm of x, elementwise."""
    return Log()(x)


@public
def sqrt(x: Value) -> Value:
    """The square root of x, elementwise."""
    return Sqrt()(x)


@public
def tanh(x: Value) -> Value:
    """The hyperbolic tangent of x, elementwise."""
    return Tanh()(x)


@public
def sigmoid(x: Value) -> Value:
    """1 / (1 + exp(-x)), elementwise."""
    return Sigmoid()(x)


@public
def relu(x: Value) -> Value:
    """max(x, 0), elementwise."""
    return Relu()(x)


@public
def cast(x: Value, dtype: str) -> Value:
    """x as dtype, elementwise."""
    return Cast(dt.canonical(dtype))(x)
