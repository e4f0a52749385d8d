"""Operators as functions: the graph's vocabulary for people who build models."""
from __future__ import annotations

from tilewright.graph.operators import broadcast, conv, elementwise, linear, nn
from tilewright.graph.value import Value
from tilewright.support.errors import GraphError, described, with_hint
from tilewright.tir import dtype as dt


def _binary(op: elementwise.Elementwise, scalar: object, a: Value, b: Value | float) -> Value:
    if isinstance(b, Value):
        return op(a, b)
    if isinstance(b, (int, float)) and not isinstance(b, bool):
        return scalar(float(b))(a)  # type: ignore[operator]
    raise GraphError(with_hint(f"{type(op).__name__}: {described(b)} is neither a graph value nor a number",
                               "wrap an array with graph.parameter(name, array)"))


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
    if not isinstance(b, Value) and b == 0:
        raise GraphError("divide: division by the number 0")
    return _binary(elementwise.Div(), lambda c: elementwise.MulConst(1.0 / c), a, b)


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
    "__rtruediv__": lambda b, a: elementwise.Reciprocal(float(a))(b), "__neg__": negative, "__matmul__": matmul,
}.items():
    setattr(Value, _name, _function)
