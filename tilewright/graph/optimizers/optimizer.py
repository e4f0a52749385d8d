"""What optimizers share: updates, the learning rate, state, and the step down a direction."""
from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import te
from tilewright.graph.differentiation import gradients
from tilewright.graph.ir.types import TensorType
from tilewright.graph.operator import Operator
from tilewright.graph.operators.elementwise import Elementwise
from tilewright.graph.value import Value, parameter, require_distinct_names
from tilewright.support.errors import GraphError, described
from tilewright.tir import dtype as dt


@dataclass(frozen=True)
class Update:
    """At the end of a step, `target` (a parameter) takes `value`, written in its place."""
    target: Value
    value: Value


@dataclass(frozen=True)
class Axpy(Elementwise):
    """y = a * x0 + c * x1."""
    a: float
    c: float

    def scalar(self, *x: Any) -> Any: return (x[0] if self.a == 1.0 else x[0] * self.a) + x[1] * self.c


@dataclass(frozen=True)
class Descent(Operator):
    """p' = p - rate * x; rate: f64[1], rounded to the dtype of p and x."""

    def infer(self, *inputs: TensorType) -> TensorType:
        p, x, _ = inputs
        self.require(p.shape == x.shape, "shapes differ", p, x)
        return TensorType(p.shape, self.same_float(p, x))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        p, x, rate = inputs
        return te.compute(p.shape, lambda *i: p(*i) - x(*i) * rate[0].astype(p.dtype), name="descent")


def zeros_like(p: Value, what: str, dtype: str | None = None) -> Value:
    """A parameter of zeros, named PARAMETER.what: state of an optimizer that belongs to p."""
    assert p.data is not None
    return parameter(f"{p.name}.{what}", np.zeros(p.data.shape, dt.numpy_dtype(dtype or p.data.dtype)))


class Optimizer:
    """`minimize(loss, params)` gives the Updates for an Executor; state starts at zero.

    `learning_rate` may be set at any time: the steps that follow use it. It lies in a parameter, `rate`, as the state
    does: the targets of the updates, by name, are what a training that is to go on later has to keep.
    """

    def __init__(self, learning_rate: float) -> None:
        self.check(learning_rate=learning_rate)
        self.rate = parameter("learning_rate", np.full(1, learning_rate, "float64"))

    @property
    def learning_rate(self) -> float:
        assert self.rate.data is not None
        return float(self.rate.data.numpy()[0])

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self.check(learning_rate=value)
        assert self.rate.data is not None
        self.rate.data.copyfrom(np.full(1, value, "float64"))

    def check(self, below: float = math.inf, **values: float) -> None:
        """Raise GraphError unless each value is a number from 0 to below `below`."""
        for key, value in values.items():
            number = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
            fits = not isinstance(value, int) or value <= sys.float_info.max
            if not (number and fits and 0.0 <= value < below):
                wanted = "a finite number of at least 0" if below == math.inf else f"a number from 0 to below {below:g}"
                raise GraphError(f"{type(self).__name__}: {key} is {described(value)}, not {wanted}")

    def __repr__(self) -> str:
        rest = "".join(f", {k}={v!r}" for k, v in vars(self).items() if k != "rate")
        return f"{type(self).__name__}(learning_rate={self.learning_rate!r}{rest})"

    def minimize(self, loss: Value, params: Sequence[Value]) -> list[Update]:
        """Updates that lower `loss` (its sum, where it has several elements). Raises GraphError for a non-parameter."""
        if isinstance(params, Value):
            raise GraphError(f"{type(self).__name__}.minimize: the parameters are one value, {params!r}",
                             "pass a list: minimize(loss, [w])")
        if not isinstance(params, (list, tuple)):
            raise GraphError(f"{type(self).__name__}.minimize: the parameters are {described(params)}, not a list")
        for p in params:
            if not isinstance(p, Value):
                raise GraphError(f"{type(self).__name__}: {described(p)} is not a parameter; make it with "
                                 "graph.parameter(name, array)")
            if p.data is None:
                raise GraphError(f"{type(self).__name__}: {p!r} is not a parameter; make it with "
                                 "graph.parameter(name, array)")
        if len(set(params)) != len(params):
            raise GraphError(f"{type(self).__name__}: a parameter is listed twice")
        require_distinct_names(type(self).__name__, params)
        return self.updates(params, gradients(loss, params))

    def updates(self, params: Sequence[Value], grads: Sequence[Value]) -> list[Update]:
        raise NotImplementedError
