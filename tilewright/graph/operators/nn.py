"""Softmax and the losses built on it.

With m the maximum of a row and s = sum_j exp(x[j] - m), log softmax(x)[j] is (x[j] - m) - log s: two terms of one sign,
so that nothing cancels, however large x is. Three things keep small values: exp takes the rounding error of x - m into
account, s - 1 is summed without the 1 (`Rows.log_sums`) and goes into log1p, and sums are taken in float64. So the
results are within 4 ulp; only a log s that is a sum of many numbers below the smallest normal one has their errors.
"""
from __future__ import annotations

import operator
from dataclasses import dataclass

from tilewright import te
from tilewright.graph.ir.types import TensorType
from tilewright.graph.operator import Operator
from tilewright.graph.operators.accumulate import extents, narrow, row_reduce, row_sum, widen
from tilewright.graph.operators.broadcast import BroadcastLike, ReduceSum
from tilewright.graph.operators.elementwise import Mul, Neg, Sub
from tilewright.graph.value import Value
from tilewright.graph.vocabulary import public
from tilewright.support.errors import GraphError, described
from tilewright.tir import Expr
from tilewright.tir.arithmetic import maximum


class Rows:
    """What the formulas share about x[rows, columns]: `m`, the maxima, and `e`, where e[i, j] = exp(x[i, j] - m[i])."""

    def __init__(self, x: te.Tensor) -> None:
        self.x = x
        self.m = row_reduce(te.max, maximum, x, x, "row_max")
        self.e = te.compute(x.shape, self._exp, name="shifted_exp")

    def below(self, i: Expr, j: Expr) -> Expr:
        """x[i, j] - m[i], rounded; 0 for the maxima, NaN in a row that has one, or whose maximum is infinite."""
        return self.x[i, j] - self.m[i]

    def _exp(self, i: Expr, j: Expr) -> Expr:
        """exp(x - m) of the exact difference d + error: exp(d) * (1 + error); error as Knuth's TwoSum has it."""
        x, m, d = self.x[i, j], self.m[i], self.below(i, j)
        back = x - d
        error = (x - (d + back)) + (back - m)
        e = te.exp(d)
        return e + e * te.select(te.abs(d) < te.const(_FAR, d.dtype), error, te.const(0.0, d.dtype))

    @property
    def sums(self) -> te.Tensor:
        """s[i] = sum_j e[i, j]."""
        s = row_sum(self.x, self.e, "exp_sum")
        return te.compute(s.shape, lambda i: s[i].astype(self.e.dtype), name="exp_sum_rounded")

    @property
    def log_sums(self) -> te.Tensor:
        """log s[i]: log1p of all terms but one that is 1, the maximum's; the terms that are 1 are counted apart."""
        e, dtype = self.e, self.x.dtype
        zero, one = te.const(0.0, dtype), te.const(1.0, dtype)
        rest = row_sum(self.x, lambda i, j: te.select(e[i, j] == one, zero, e[i, j]), "rest")
        ones = row_reduce(te.sum, operator.add, self.x, lambda i, j: te.select(e[i, j] == one, one, zero), "ones")
        return te.compute(self.m.shape, lambda i: te.log1p((rest[i] + (ones[i] - one)).astype(dtype)), name="log_sum")


_FAR = 1e4                       # exp(-_FAR) is 0 in every dtype


class RowWise(Operator):
    """An operator on the rows of rank-2 inputs of one shape."""

    def infer(self, *inputs: TensorType) -> TensorType:
        self.require(all(len(t.shape) == 2 for t in inputs), "needs rank 2", *inputs,
                     hint="class numbers become rows with np.eye(classes, dtype=\"float32\")[labels]"
                     if len(inputs) == 2 else "")
        self.require(all(t.shape == inputs[0].shape for t in inputs), "shapes differ", *inputs)
        return TensorType(inputs[0].shape, self.same_float(*inputs))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        return narrow(self.formula(*map(widen, inputs)), inputs[0].dtype)

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        """The result, in float32 or float64."""
        raise NotImplementedError


def row_weight(x: te.Tensor, reduction: str) -> float:
    """What a loss over the rows of x is multiplied by: one over their number for a mean."""
    return 1.0 / max(extents(x)[0], 1) if reduction == "mean" else 1.0


@dataclass(frozen=True)
class Softmax(RowWise):
    """y[i, j] = exp(x[i, j] - m[i]) / sum_j exp(x[i, j] - m[i]), m[i] = max_j x[i, j]."""

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        rows = Rows(inputs[0])
        e, s = rows.e, rows.sums
        return te.compute(e.shape, lambda i, j: e[i, j] / s[i], name="softmax")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        along = BroadcastLike()(ReduceSum(1, True)(Mul()(dy, y)), y)
        return (Mul()(y, Sub()(dy, along)),)


@dataclass(frozen=True)
class SoftmaxCrossEntropy(RowWise):
    """loss[0] = sum_i sum_j -p[i, j] * log softmax(x)[i, j], divided by the number of rows when reduction is "mean".

    x: logits [rows, classes]; p: label distribution [rows, classes].
    """
    reduction: str = "mean"

    def __post_init__(self) -> None:
        if not isinstance(self.reduction, str) or self.reduction not in ("mean", "sum"):
            raise GraphError(f'reduction is {described(self.reduction)}, expected "mean" or "sum"')

    def infer(self, *inputs: TensorType) -> TensorType:
        return TensorType((1,), super().infer(*inputs).dtype)

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        x, p = inputs
        rows = Rows(x)
        log_s = rows.log_sums

        def part(i: Expr, j: Expr) -> Expr:
            """A class without a label adds nothing, be its logit minus infinity."""
            label = p[i, j].astype("float64")
            log = (log_s[i] - rows.below(i, j)).astype("float64")
            return te.select(p[i, j] == 0.0, te.const(0.0, "float64"), label * log)
        losses = row_sum(x, part, "row_loss")
        column = te.compute((1, *losses.shape), lambda _, i: losses[i], name="losses")
        total = row_sum(column, column, "total")
        count = max(extents(x)[0], 1) if self.reduction == "mean" else 1
        return te.compute((1,), lambda i: (total[i] / float(count)).astype(x.dtype), name="loss")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        x, p = y.inputs
        dx = SoftmaxCrossEntropyGrad(self.reduction)(x, p)
        return Mul()(dx, BroadcastLike()(dy, dx)), Mul()(self._label_grad(x), BroadcastLike()(dy, dx))

    def _label_grad(self, x: Value) -> Value:
        """d loss / d p = -log softmax(x)."""
        log = LogSoftmax()(x)
        return Neg()(log) if self.reduction == "sum" else PerRow()(Neg()(log))


@dataclass(frozen=True)
class PerRow(RowWise):
    """y = x / number of rows."""

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        x = inputs[0]
        return te.compute(x.shape, lambda i, j: x[i, j] * row_weight(x, "mean"), name="per_row")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        return (PerRow()(dy),)


@dataclass(frozen=True)
class LogSoftmax(RowWise):
    """y[i, j] = (x[i, j] - m[i]) - log sum_j exp(x[i, j] - m[i])."""

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        rows = Rows(inputs[0])
        log_s = rows.log_sums
        return te.compute(rows.x.shape, lambda i, j: rows.below(i, j) - log_s[i], name="log_softmax")

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        total = BroadcastLike()(ReduceSum(1, True)(dy), dy)
        return (Sub()(dy, Mul()(Softmax()(y.inputs[0]), total)),)


@dataclass(frozen=True)
class SoftmaxCrossEntropyGrad(RowWise):
    """dx[i, j] = softmax(x)[i, j] * sum_j p[i, j] - p[i, j], divided by the rows when reduction is "mean"."""
    reduction: str = "mean"

    def formula(self, *inputs: te.Tensor) -> te.Tensor:
        x, p = inputs
        rows = Rows(x)
        e, s, mass = rows.e, rows.sums, row_sum(p, p, "label_sum")
        scale = row_weight(x, self.reduction)

        def part(i: Expr, j: Expr) -> Expr:
            return (e[i, j] / s[i] * mass[i].astype(x.dtype) - p[i, j]) * scale
        return te.compute(x.shape, part, name="logit_grad")


@public
def softmax(x: Value) -> Value:
    """softmax over the last axis of x: [rows, columns]."""
    return Softmax()(x)


@public
def log_softmax(x: Value) -> Value:
    """log softmax over the last axis of x: [rows, columns]."""
    return LogSoftmax()(x)


@public
def softmax_cross_entropy(logits: Value, labels: Value, reduction: str = "mean") -> Value:
    """The cross-entropy of softmax(logits) and the label distributions, shape (1,); both are [rows, classes]."""
    return SoftmaxCrossEntropy(reduction)(logits, labels)
