"""Operators as functions: the graph's vocabulary for people who build models."""
from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any

from tilewright.graph.operators import broadcast, conv, elementwise, linear, nn
from tilewright.graph.value import Value
from tilewright.support.errors import GraphError, described, with_hint
from tilewright.tir import dtype as dt


def _number(operator: str, x: Any) -> float:
    """A number of Python or NumPy as a float. Raises GraphError for anything else."""
    if not isinstance(x, numbers.Real) or isinstance(x, bool):
        raise GraphError(with_hint(f"{operator}: {described(x)} is neither a graph value nor a number",
                                   "wrap an array with graph.parameter(name, array)"))
    return float(x)


def _binary(op: elementwise.Elementwise, scalar: Callable[[float], elementwise.Elementwise], a: Value,
            b: Value | float) -> Value:
    return op(a, b) if isinstance(b, Value) else scalar(_number(type(op).__name__, b))(a)


def add(a: Value, b: Value | float) -> Value:
    """a + b, elementwise on equal shapes; b may be a number."""
    return _binary(elementwise.Add(), elementwise.AddConst, a, b)


def subtract(a: Value, b: Value | float) -> Value:
    """a - b, elementwise on equal shapes; b may be a number."""
    return _binary(elementwise.Sub(), lambda c: elementwise.AddConst(-c), a, b)


def multiply(a: Value, b: Value | float) -> Value:
    """a * b, elementwise on equal shapes; b may be a number."""
    return _binary(elementwise.Mul(), elementwise.MulConst, a, b)


def divide(a: Value, b: Value | float) -> Value:
    """a / b, elementwise on equal shapes; b may be a number other than 0."""
    if not isinstance(b, Value) and _number("Div", b) == 0:
        raise GraphError("divide: division by the number 0")
    return _binary(elementwise.Div(), _division, a, b)


def _division(c: float) -> elementwise.Elementwise:
    """x / c; a product where 1 / c is exact, which is faster."""
    exact = abs(math.frexp(c)[0]) == 0.5 and 2.0 ** -100 < abs(c) < 2.0 ** 100
    return elementwise.MulConst(1.0 / c) if exact else elementwise.DivConst(c)


def power(x: Value, exponent: float) -> Value:
    """x to the power of a number, elementwise; NaN where x < 0 and the exponent is no integer."""
    return elementwise.PowConst(_number("Pow", exponent))(x)


def negative(x: Value) -> Value: return elementwise.Neg()(x)
def exp(x: Value) -> Value: return elementwise.Exp()(x)
def log(x: Value) -> Value: return elementwise.Log()(x)
def sqrt(x: Value) -> Value: return elementwise.Sqrt()(x)
def tanh(x: Value) -> Value: return elementwise.Tanh()(x)
def sigmoid(x: Value) -> Value: return elementwise.Sigmoid()(x)
def relu(x: Value) -> Value: return elementwise.Relu()(x)
def cast(x: Value, dtype: str) -> Value: return elementwise.Cast(dt.canonical(dtype))(x)


def matmul(a: Value, b: Value, ta: bool = False, tb: bool = False) -> Value:
    """a @ b for rank-2 values; ta, tb read a or b transposed."""
    return linear.MatMul(ta, tb)(a, b)


def dense(x: Value, w: Value, b: Value | None = None) -> Value:
    """x @ w + b; x: [rows, k], w: [k, n], b: [n]."""
    y = matmul(x, w)
    return y if b is None else add(y, broadcast_like(b, y))


def conv2d(x: Value, w: Value, stride: int = 1, padding: int = 0) -> Value:
    """The convolution of x[n, c, h, w] with w[m, c, r, s]."""
    return conv.Conv2d(stride, padding)(x, w)


def reduce_sum(x: Value, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Value:
    """Sum of x over axis (None: all); a full sum has shape (1,)."""
    return broadcast.ReduceSum(tuple(axis) if isinstance(axis, (list, tuple)) else axis, keepdims)(x)


def broadcast_to(x: Value, shape: tuple[int, ...]) -> Value:
    """x repeated to shape by NumPy's rules."""
    if not isinstance(shape, (list, tuple)):
        raise GraphError(f"broadcast_to: the shape is {described(shape)}, not a tuple")
    return broadcast.BroadcastTo(tuple(shape))(x)


def broadcast_like(x: Value, like: Value) -> Value:
    """x repeated to the shape of `like`."""
    return broadcast.BroadcastLike()(x, like)


def softmax(x: Value) -> Value:
    """softmax over the last axis of x: [rows, columns]."""
    return nn.Softmax()(x)


def log_softmax(x: Value) -> Value:
    """log softmax over the last axis of x: [rows, columns]."""
    return nn.LogSoftmax()(x)


def softmax_cross_entropy(logits: Value, labels: Value, reduction: str = "mean") -> Value:
    """The cross-entropy of softmax(logits) and the label distributions, shape (1,); both are [rows, classes]."""
    return nn.SoftmaxCrossEntropy(reduction)(logits, labels)


# Python's operators on values: the class stands on a lower floor than the operators it builds.
for _name, _function in {
    "__add__": add, "__radd__": add, "__mul__": multiply, "__rmul__": multiply, "__sub__": subtract,
    "__rsub__": lambda b, a: add(negative(b), a), "__truediv__": divide,
    "__rtruediv__": lambda b, a: elementwise.Reciprocal(_number("Div", a))(b), "__neg__": negative,
    "__matmul__": matmul, "__rmatmul__": lambda b, a: matmul(a, b), "__pow__": power,
}.items():
    setattr(Value, _name, _function)
