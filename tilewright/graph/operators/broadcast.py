"""Operators that repeat or sum out axes; each is the other's gradient."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import te
from tilewright.graph.ir.types import TensorType
from tilewright.graph.operator import Operator
from tilewright.graph.operators.accumulate import extents, narrow, widen
from tilewright.graph.value import Value
from tilewright.graph.vocabulary import public
from tilewright.support.errors import GraphError, described


def broadcastable(small: tuple[Any, ...], large: tuple[Any, ...]) -> bool:
    """True when NumPy's rules repeat `small` to `large`: trailing axes equal, or 1."""
    tail = large[len(large) - len(small):]
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(small, tail))


def repeat(x: te.Tensor, shape: tuple[Any, ...], name: str) -> te.Tensor:
    """x repeated to shape by NumPy's rules."""
    skip = len(shape) - len(x.shape)

    def element(*i: Any) -> Any:
        return x(*(0 if n == 1 else v for v, n in zip(i[skip:], extents(x))))
    return te.compute(shape, element, name=name)


def sum_over(x: te.Tensor, axes: tuple[int, ...], shape: tuple[Any, ...], kept: tuple[int | None, ...],
             name: str) -> te.Tensor:
    """Sum of x over axes; output axis j runs over input axis kept[j] (None: an axis of extent 1)."""
    dtype, x = x.dtype, widen(x)
    reduced = {a: te.reduce_axis((0, x.shape[a]), name=f"r{a}") for a in axes}

    def element(*i: Any) -> Any:
        index = dict(reduced) | {a: v for a, v in zip(kept, i) if a is not None}
        value = x(*(index[a] for a in range(len(x.shape))))
        return te.sum(value, axis=list(reduced.values())) if reduced else value
    return narrow(te.compute(shape, element, name=name), dtype)


@dataclass(frozen=True)
class BroadcastTo(Operator):
    """y = x repeated to `shape` by NumPy's rules."""
    shape: tuple[int, ...]

    def __post_init__(self) -> None:
        self.require(all(type(n) is int and n >= 0 for n in self.shape), "the shape is not made of natural numbers")

    def infer(self, *inputs: TensorType) -> TensorType:
        self.require(broadcastable(inputs[0].shape, self.shape), f"cannot repeat to {self.shape}", *inputs)
        return TensorType(self.shape, inputs[0].dtype)

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        return repeat(inputs[0], self.shape, "broadcast_to")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]: return (SumLike()(dy, y.inputs[0]),)


@dataclass(frozen=True)
class BroadcastLike(Operator):
    """y = x repeated to the shape of `like`."""

    def infer(self, *inputs: TensorType) -> TensorType:
        x, like = inputs
        self.require(broadcastable(x.shape, like.shape), f"cannot repeat {x.shape} to {like.shape}", *inputs)
        return TensorType(like.shape, x.dtype)

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        return repeat(inputs[0], inputs[1].shape, "broadcast_like")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return SumLike()(dy, y.inputs[0]), None


@dataclass(frozen=True)
class SumLike(Operator):
    """y = x summed over the axes along which a value of the shape of `like` would be repeated to x's shape."""

    def infer(self, *inputs: TensorType) -> TensorType:
        x, like = inputs
        self.require(broadcastable(like.shape, x.shape), f"{like.shape} does not repeat to {x.shape}", *inputs)
        return TensorType(like.shape, self.same_float(x))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        x, like = inputs
        skip = len(x.shape) - len(like.shape)
        kept = tuple(skip + j if n == extents(x)[skip + j] else None for j, n in enumerate(extents(like)))
        axes = tuple(a for a in range(len(x.shape)) if a not in kept)
        return sum_over(x, axes, like.shape, kept, "sum_like")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return BroadcastLike()(dy, y.inputs[0]), None


@dataclass(frozen=True)
class ReduceSum(Operator):
    """y = sum of x over `axis` (an int, a tuple, or None for all); the result of a full sum has shape (1,).

    keepdims leaves an axis of extent 1 in place of each one summed.
    """
    axis: tuple[int, ...] | int | None = None
    keepdims: bool = False

    def __post_init__(self) -> None:
        given = self.axis if isinstance(self.axis, tuple) else () if self.axis is None else (self.axis,)
        self.require(all(type(a) is int for a in given), "axis is no integer, tuple of integers or None")
        self.require(type(self.keepdims) is bool, "keepdims is not True or False")

    def axes(self, rank: int) -> tuple[int, ...]:
        """The axes summed, counted from the front."""
        given = range(rank) if self.axis is None else (self.axis,) if isinstance(self.axis, int) else self.axis
        self.require(all(-rank <= a < rank for a in given), f"axis {self.axis} of a value with {rank} axes")
        axes = {a % rank for a in given}
        self.require(len(axes) == len(given), f"axis {self.axis} names one axis twice")
        return tuple(sorted(axes))

    def kept(self, rank: int) -> tuple[int | None, ...]:
        axes = self.axes(rank)
        kept = [None if a in axes else a for a in range(rank) if self.keepdims or a not in axes]
        return tuple(kept) or (None,)

    def infer(self, *inputs: TensorType) -> TensorType:
        x, = inputs
        shape = tuple(1 if a is None else x.shape[a] for a in self.kept(len(x.shape)))
        return TensorType(shape, self.same_float(x))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        x, = inputs
        kept = self.kept(len(x.shape))
        shape = tuple(1 if a is None else x.shape[a] for a in kept)
        return sum_over(x, self.axes(len(x.shape)), shape, kept, "reduce_sum")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return (ReduceSumGrad(self.axis, self.keepdims)(dy, y.inputs[0]),)


@dataclass(frozen=True)
class ReduceSumGrad(Operator):
    """dx = dy repeated along the axes that ReduceSum(axis, keepdims) summed out of x."""
    axis: tuple[int, ...] | int | None
    keepdims: bool

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        dy, x = inputs
        kept = ReduceSum(self.axis, self.keepdims).kept(len(x.shape))
        return te.compute(x.shape, lambda *i: dy(*(0 if a is None else i[a] for a in kept)), name="reduce_sum_grad")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return ReduceSum(self.axis, self.keepdims)(dy), None


@public
def reduce_sum(x: Value, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Value:
    """Sum of x over axis (None: all); a full sum has shape (1,)."""
    return ReduceSum(tuple(axis) if isinstance(axis, (list, tuple)) else axis, keepdims)(x)


@public
def broadcast_to(x: Value, shape: tuple[int, ...]) -> Value:
    """x repeated to shape by NumPy's rules."""
    if not isinstance(shape, (list, tuple)):
        raise GraphError(f"broadcast_to: the shape is {described(shape)}, not a tuple")
    return BroadcastTo(tuple(shape))(x)


@public
def broadcast_like(x: Value, like: Value) -> Value:
    """x repeated to the shape of `like`."""
    return BroadcastLike()(x, like)
