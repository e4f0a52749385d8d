"""Operators that contract axes."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright import te
from tilewright.graph.ir.types import TensorType
from tilewright.graph.operator import Operator
from tilewright.graph.operators.accumulate import narrow, wide_dtype
from tilewright.graph.operators.broadcast import broadcast_like
from tilewright.graph.operators.elementwise import add
from tilewright.graph.value import Value
from tilewright.graph.vocabulary import method, public


@dataclass(frozen=True)
class MatMul(Operator):
    """y[i, j] = sum_k a[i, k] * b[k, j]; `ta`, `tb` read a or b transposed. Rank 2."""
    ta: bool = False
    tb: bool = False

    def __post_init__(self) -> None:
        self.require(type(self.ta) is type(self.tb) is bool, "ta and tb are not True or False")

    def infer(self, *inputs: TensorType) -> TensorType:
        a, b = inputs
        self.require(len(a.shape) == len(b.shape) == 2, "both operands need rank 2", a, b)
        (m, k), (k2, n) = a.shape[::-1] if self.ta else a.shape, b.shape[::-1] if self.tb else b.shape
        self.require(k == k2, f"the contracted axes differ, {k} != {k2}", a, b,
                     hint="transpose an operand with ta=True or tb=True")
        return TensorType((m, n), self.same_float(a, b))

    def compute(self, *inputs: te.Tensor) -> te.Tensor:
        a, b = inputs
        k = te.reduce_axis((0, a.shape[0 if self.ta else 1]), name="k")
        shape = (a.shape[1 if self.ta else 0], b.shape[0 if self.tb else 1])

        wide = wide_dtype(a.dtype)

        def dot(i: Any, j: Any) -> Any:
            left, right = a[k, i] if self.ta else a[i, k], b[j, k] if self.tb else b[k, j]
            return te.sum(left.astype(wide) * right.astype(wide), axis=k)

        return narrow(te.compute(shape, dot, name="matmul"), a.dtype)

    def grad(self, y: Value, dy: Value) -> tuple[Value | None, ...]:
        a, b = y.inputs
        da = MatMul(self.tb, True)(b, dy) if self.ta else MatMul(False, not self.tb)(dy, b)
        db = MatMul(True, self.ta)(dy, a) if self.tb else MatMul(not self.ta, False)(a, dy)
        return da, db


@public
@method("__matmul__")
def matmul(a: Value, b: Value, ta: bool = False, tb: bool = False) -> Value:
    """a @ b for rank-2 values; ta, tb read a or b transposed."""
    return MatMul(ta, tb)(a, b)


@method("__rmatmul__")
def _reversed_matmul(b: Value, a: Value) -> Value: return matmul(a, b)


@public
def dense(x: Value, w: Value, b: Value | None = None) -> Value:
    """x @ w + b; x: [rows, k], w: [k, n], b: [n]."""
    y = matmul(x, w)
    return y if b is None else add(y, broadcast_like(b, y))
