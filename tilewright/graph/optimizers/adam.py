"""Adam."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import te
from tilewright.graph.ir.types import TensorType
from tilewright.graph.operator import Operator
from tilewright.graph.operators.accumulate import wide_dtype
from tilewright.graph.operators.elementwise import Cast, Elementwise, MulConst
from tilewright.graph.optimizers.optimizer import Axpy, Optimizer, Update, zeros_like
from tilewright.graph.value import Value, parameter
from tilewright.graph.vocabulary import public


@dataclass(frozen=True)
class SecondMoment(Elementwise):
    """v' = beta * v + (1 - beta) * g * g."""
    beta: float

    def scalar(self, *x: Any) -> Any: return x[0] * self.beta + x[1] * x[1] * (1.0 - self.beta)


@dataclass(frozen=True)
class AdamStep(Operator):
    """p' = p - rate * (m / (1 - b1)) / (sqrt(v / (1 - b2)) + eps).

    m and v have one dtype; b1, b2, rate: f64[1], the first two beta1 and beta2 to the power of the step.
    """
    epsilon: float

    def infer(self, *inputs: TensorType) -> TensorType:
        self.same_float(*inputs[1:3])
        return TensorType(inputs[0].shape, self.same_float(inputs[0]))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        p, m, v, b1, b2, rate = inputs

        def step(*i: Any) -> Any:
            mean, variance = (moment(*i) / (1.0 - power[0]).astype(m.dtype) for moment, power in ((m, b1), (v, b2)))
            moved = p(*i).astype(m.dtype) - mean * rate[0].astype(m.dtype) / (te.sqrt(variance) + self.epsilon)
            return moved.astype(p.dtype)
        return te.compute(p.shape, step, name="adam")


@public
class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015, algorithm 1), with bias correction.

    The moments of 16-bit parameters are kept in float32, where their squares do not vanish.
    """

    def __init__(self, learning_rate: float = 1e-3, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8) -> None:
        self.check(below=1.0, beta1=beta1, beta2=beta2)
        self.check(epsilon=epsilon)
        super().__init__(learning_rate)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def updates(self, params: Sequence[Value], grads: Sequence[Value]) -> list[Update]:
        out: list[Update] = []
        if not params:
            return out
        b1, b2 = self._powers(params[0], out)
        for p, g in zip(params, grads):
            assert p.data is not None
            wide = wide_dtype(p.data.dtype)
            if wide != p.data.dtype:
                g = Cast(wide)(g)
            m, v = zeros_like(p, "mean", wide), zeros_like(p, "variance", wide)
            m2, v2 = Axpy(self.beta1, 1.0 - self.beta1)(m, g), SecondMoment(self.beta2)(v, g)
            out += [Update(m, m2), Update(v, v2),
                    Update(p, AdamStep(self.epsilon)(p, m2, v2, b1, b2, self.rate))]
        return out

    def _powers(self, first: Value, out: list[Update]) -> tuple[Value, Value]:
        """beta1 and beta2 to the power of the step; their updates are added to out.

        They are named after the first parameter: a graph may have several optimizers.
        """
        values = []
        for name, beta in (("beta1_power", self.beta1), ("beta2_power", self.beta2)):
            power = parameter(f"{first.name}.{name}", np.ones(1, "float64"))
            values.append(MulConst(beta)(power))
            out.append(Update(power, values[-1]))
        return values[0], values[1]
