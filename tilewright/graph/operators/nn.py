"""Softmax and the losses built on it."""
from __future__ import annotations

from dataclasses import dataclass

from tilewright import te
from tilewright.graph.operator import REDUCTION, Operator
from tilewright.graph.operators.accumulate import extents, narrow, widen
from tilewright.graph.operators.broadcast import BroadcastLike, ReduceSum
from tilewright.graph.operators.elementwise import Mul, Neg, Sub
from tilewright.graph.value import TensorType, Value
from tilewright.support.errors import GraphError, described


def row_max(x: te.Tensor) -> te.Tensor:
    """m[i] = max_j x[i, j]; x: f32[rows, columns]."""
    j = te.reduce_axis((0, x.shape[1]), name="j_max")
    return te.compute((x.shape[0],), lambda i: te.max(x[i, j], axis=j), name="row_max")


def row_sum(x: te.Tensor, name: str) -> te.Tensor:
    """s[i] = sum_j x[i, j]."""
    j = te.reduce_axis((0, x.shape[1]), name=f"j_{name}")
    return te.compute((x.shape[0],), lambda i: te.sum(x[i, j], axis=j), name=name)


def shifted_exp(x: te.Tensor, m: te.Tensor) -> te.Tensor:
    """e[i, j] = exp(x[i, j] - m[i]): no overflow where m has the maxima of the rows."""
    return te.compute(x.shape, lambda i, j: te.exp(x[i, j] - m[i]), name="shifted_exp")


class RowWise(Operator):
    """An operator on the rows of rank-2 inputs of one shape."""
    pattern = REDUCTION

    def rows(self, *inputs: TensorType) -> TensorType:
        self.require(all(len(t.shape) == 2 for t in inputs), "needs rank 2", *inputs,
                     hint="class numbers become rows with np.eye(classes, dtype=\"float32\")[labels]"
                     if len(inputs) == 2 else "")
        self.require(all(t.shape == inputs[0].shape for t in inputs), "shapes differ", *inputs)
        return TensorType(inputs[0].shape, self.same_float(*inputs))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        return narrow(self.formula(*map(widen, inputs)), inputs[0].dtype)

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        """The result, in the dtype of sums."""
        raise NotImplementedError


def row_weight(x: te.Tensor, reduction: str) -> float:
    """What a loss over the rows of x is multiplied by: one over their number for a mean."""
    return 1.0 / max(extents(x)[0], 1) if reduction == "mean" else 1.0


@dataclass(frozen=True)
class Softmax(RowWise):
    """y[i, j] = exp(x[i, j] - m[i]) / sum_j exp(x[i, j] - m[i]), m[i] = max_j x[i, j]."""

    def infer(self, *inputs: TensorType) -> TensorType:
        return self.rows(*inputs)

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        e = shifted_exp(inputs[0], row_max(inputs[0]))
        s = row_sum(e, "exp_sum")
        return te.compute(e.shape, lambda i, j: e[i, j] / s[i], name="softmax")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        along = BroadcastLike()(ReduceSum(1, True)(Mul()(dy, y)), y)
        return (Mul()(y, Sub()(dy, along)),)


@dataclass(frozen=True)
class SoftmaxCrossEntropy(RowWise):
    """loss[0] = sum_i sum_j -p[i, j] * log softmax(x)[i, j], divided by the number of rows when reduction is "mean".

    x: logits [rows, classes]; p: label distribution [rows, classes]. log softmax is x - m - log(sum exp(x - m)).
    """
    reduction: str = "mean"

    def __post_init__(self) -> None:
        if not isinstance(self.reduction, str) or self.reduction not in ("mean", "sum"):
            raise GraphError(f'reduction is {described(self.reduction)}, expected "mean" or "sum"')

    def infer(self, *inputs: TensorType) -> TensorType:
        return TensorType((1,), self.rows(*inputs).dtype)

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        x, p = inputs
        m = row_max(x)
        e = shifted_exp(x, m)
        s = row_sum(e, "exp_sum")
        j = te.reduce_axis((0, x.shape[1]), name="j")
        log_s = te.compute(s.shape, lambda i: te.log(s[i]) + m[i], name="log_sum_exp")
        row = te.compute(s.shape, lambda i: te.sum(p[i, j] * (log_s[i] - x[i, j]), axis=j), name="row_loss")
        i = te.reduce_axis((0, x.shape[0]), name="i")
        scale = row_weight(x, self.reduction)
        return te.compute((1,), lambda _: te.sum(row[i] * scale, axis=i), name="loss")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        x, p = y.inputs
        dx = SoftmaxCrossEntropyGrad(self.reduction)(x, p)
        return Mul()(dx, BroadcastLike()(dy, dx)), Mul()(self._label_grad(x), BroadcastLike()(dy, dx))

    def _label_grad(self, x: Value) -> Value:
        """d loss / d p = -log softmax(x)."""
        log = LogSoftmax()(x)
        return Neg()(log) if self.reduction == "sum" else _PerRow()(Neg()(log))


@dataclass(frozen=True)
class _PerRow(RowWise):
    """y = x / number of rows."""

    def infer(self, *inputs: TensorType) -> TensorType:
        return self.rows(*inputs)

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        x = inputs[0]
        return te.compute(x.shape, lambda i, j: x[i, j] * row_weight(x, "mean"), name="per_row")


@dataclass(frozen=True)
class LogSoftmax(RowWise):
    """y[i, j] = x[i, j] - m[i] - log sum_j exp(x[i, j] - m[i])."""

    def infer(self, *inputs: TensorType) -> TensorType:
        return self.rows(*inputs)

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        x = inputs[0]
        m = row_max(x)
        e = shifted_exp(x, m)
        s = row_sum(e, "exp_sum")
        log_s = te.compute(s.shape, lambda i: te.log(s[i]) + m[i], name="log_sum_exp")
        return te.compute(x.shape, lambda i, j: x[i, j] - log_s[i], name="log_softmax")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        total = BroadcastLike()(ReduceSum(1, True)(dy), dy)
        return (Sub()(dy, Mul()(Softmax()(y.inputs[0]), total)),)


@dataclass(frozen=True)
class SoftmaxCrossEntropyGrad(RowWise):
    """dx[i, j] = softmax(x)[i, j] * sum_j p[i, j] - p[i, j], divided by the rows when reduction is "mean"."""
    reduction: str = "mean"

    def infer(self, *inputs: TensorType) -> TensorType:
        return self.rows(*inputs)

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        x, p = inputs
        e = shifted_exp(x, row_max(x))
        s, mass = row_sum(e, "exp_sum"), row_sum(p, "label_sum")
        scale = row_weight(x, self.reduction)
        return te.compute(x.shape, lambda i, j: (e[i, j] / s[i] * mass[i] - p[i, j]) * scale, name="logit_grad")
