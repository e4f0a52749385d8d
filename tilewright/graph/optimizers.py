"""Optimizers: rules that turn gradients into in-place updates of parameters and of their own state."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import te
from tilewright.graph.gradients import gradients
from tilewright.graph.operator import INJECTIVE, Operator
from tilewright.graph.operators.accumulate import wide_dtype
from tilewright.graph.operators.elementwise import Cast, Elementwise
from tilewright.graph.value import TensorType, Value, parameter, require_distinct_names
from tilewright.support.errors import GraphError, described, with_hint
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
class SecondMoment(Elementwise):
    """v' = beta * v + (1 - beta) * g * g."""
    beta: float

    def scalar(self, *x: Any) -> Any: return x[0] * self.beta + x[1] * x[1] * (1.0 - self.beta)


@dataclass(frozen=True)
class Descent(Operator):
    """p' = p - rate * x; rate: f64[1], rounded to the dtype of p and x."""
    pattern = INJECTIVE
    inplace = (0,)

    def infer(self, *inputs: TensorType) -> TensorType:
        p, x, _ = inputs
        self.require(p.shape == x.shape, "shapes differ", p, x)
        return TensorType(p.shape, self.same_float(p, x))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        p, x, rate = inputs
        return te.compute(p.shape, lambda *i: p(*i) - x(*i) * rate[0].astype(p.dtype), name="descent")


@dataclass(frozen=True)
class AdamStep(Operator):
    """p' = p - rate * (m / (1 - b1)) / (sqrt(v / (1 - b2)) + eps).

    b1, b2: [1], beta1 and beta2 to the power of the step; rate: f64[1]. All but p and the rate have the dtype of the
    moments.
    """
    epsilon: float
    pattern = INJECTIVE
    inplace = (0,)

    def infer(self, *inputs: TensorType) -> TensorType:
        self.same_float(*inputs[1:5])
        return TensorType(inputs[0].shape, self.same_float(inputs[0]))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        p, m, v, b1, b2, rate = inputs

        def step(*i: Any) -> Any:
            mean, variance = m(*i) / (1.0 - b1[0]), v(*i) / (1.0 - b2[0])
            moved = p(*i).astype(m.dtype) - mean * rate[0].astype(m.dtype) / (te.sqrt(variance) + self.epsilon)
            return moved.astype(p.dtype)
        return te.compute(p.shape, step, name="adam")


@dataclass(frozen=True)
class Scale(Elementwise):
    """y = x * c, in place."""
    c: float

    def scalar(self, *x: Any) -> Any: return x[0] * self.c


def _check_rate(name: str, **values: float) -> None:
    for key, value in values.items():
        unit = key in ("momentum", "beta1", "beta2")
        number = isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
        if not (number and 0.0 <= value < (1.0 if unit else float("inf"))):
            wanted = "a number from 0 to below 1" if unit else "a finite number of at least 0"
            raise GraphError(f"{name}: {key} is {value!r}, not {wanted}")


def _zeros_like(p: Value, what: str, dtype: str | None = None) -> Value:
    assert p.data is not None
    return parameter(f"{p.name}.{what}", np.zeros(p.data.shape, dt.numpy_dtype(dtype or p.data.dtype)))


class Optimizer:
    """`minimize(loss, params)` gives the Updates for an Executor; state starts at zero.

    `learning_rate` may be set at any time: the steps that follow use it. It lies in a parameter, `rate`, as the state
    does: the targets of the updates, by name, are what a training that is to go on later has to keep.
    """

    def __init__(self, learning_rate: float) -> None:
        self._check(learning_rate=learning_rate)
        self.rate = parameter("learning_rate", np.full(1, learning_rate, "float64"))

    @property
    def learning_rate(self) -> float:
        assert self.rate.data is not None
        return float(self.rate.data.numpy()[0])

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._check(learning_rate=value)
        assert self.rate.data is not None
        self.rate.data.copyfrom(np.full(1, value, "float64"))

    def _check(self, **values: float) -> None:
        _check_rate(type(self).__name__, **values)

    def __repr__(self) -> str:
        rest = "".join(f", {k}={v!r}" for k, v in vars(self).items() if k != "rate")
        return f"{type(self).__name__}(learning_rate={self.learning_rate!r}{rest})"

    def minimize(self, loss: Value, params: Sequence[Value]) -> list[Update]:
        """Updates that lower `loss` (its sum, where it has several elements). Raises GraphError for a non-parameter."""
        if isinstance(params, Value):
            raise GraphError(with_hint(f"{type(self).__name__}.minimize: the parameters are one value, {params!r}",
                                       "pass a list: minimize(loss, [w])"))
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


class SGD(Optimizer):
    """p <- p - learning_rate * g."""

    def updates(self, params: Sequence[Value], grads: Sequence[Value]) -> list[Update]:
        return [Update(p, Descent()(p, g, self.rate)) for p, g in zip(params, grads)]


class Momentum(Optimizer):
    """u <- momentum * u + g; p <- p - learning_rate * u (Polyak 1964, in PyTorch's form)."""

    def __init__(self, learning_rate: float, momentum: float = 0.9) -> None:
        self._check(momentum=momentum)
        super().__init__(learning_rate)
        self.momentum = momentum

    def updates(self, params: Sequence[Value], grads: Sequence[Value]) -> list[Update]:
        out = []
        for p, g in zip(params, grads):
            u = _zeros_like(p, "velocity")
            moved = Axpy(self.momentum, 1.0)(u, g)
            out += [Update(u, moved), Update(p, Descent()(p, moved, self.rate))]
        return out


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015, algorithm 1), with bias correction.

    The moments of 16-bit parameters are kept in float32, where their squares do not vanish.
    """

    def __init__(self, learning_rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8) -> None:
        self._check(beta1=beta1, beta2=beta2, epsilon=epsilon)
        super().__init__(learning_rate)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def updates(self, params: Sequence[Value], grads: Sequence[Value]) -> list[Update]:
        out: list[Update] = []
        powers: dict[str, tuple[Value, Value]] = {}
        for p, g in zip(params, grads):
            assert p.data is not None
            wide = wide_dtype(p.data.dtype)
            if wide not in powers:
                powers[wide] = self._powers(p, wide, out)
            b1, b2 = powers[wide]
            if wide != p.data.dtype:
                g = Cast(wide)(g)
            m, v = _zeros_like(p, "mean", wide), _zeros_like(p, "variance", wide)
            m2, v2 = Axpy(self.beta1, 1.0 - self.beta1)(m, g), SecondMoment(self.beta2)(v, g)
            out += [Update(m, m2), Update(v, v2),
                    Update(p, AdamStep(self.epsilon)(p, m2, v2, b1, b2, self.rate))]
        return out

    def _powers(self, first: Value, dtype: str, out: list[Update]) -> tuple[Value, Value]:
        """beta1 and beta2 to the power of the step; their updates are added to out.

        They are named after the first parameter that uses them: a graph may have several optimizers and dtypes.
        """
        values = []
        for name, beta in (("beta1_power", self.beta1), ("beta2_power", self.beta2)):
            power = parameter(f"{first.name}.{name}", np.ones(1, dtype))
            values.append(Scale(beta)(power))
            out.append(Update(power, values[-1]))
        return values[0], values[1]
