"""Products of matrices, dense layers, distances, equations of matrices."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.frontend.torch.emit import Emitter
from tilewright.frontend.torch.operators.shapes import swapped
from tilewright.frontend.torch.table import operator
from tilewright.graph.ir.callees import Operator
from tilewright.graph.ir.values import Value


def turned(x: Value) -> tuple[Value, bool]:
    """(a value, whether x is it with its last two axes in each other's place): products read either."""
    if x.call is None or x.ndim < 2 or not isinstance(x.call.callee, Operator):
        return x, False
    op = x.call.callee
    swap = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2)
    if op.rule is topi.transpose and len(op.args) > 1 and tuple(op.args[1]) == swap:
        return x.call.inputs[0], True
    return x, False


def product(e: Emitter, a: Value, b: Value, dtype: str | None = None) -> Value:
    """`topi.matmul` of values in one type, transposed ones read as they are; dtype: that of the result."""
    a, b = e.cast(a, e.dtype), e.cast(b, e.dtype)
    turn_a = turn_b = False
    if a.ndim > 1:
        a, turn_a = turned(a)
    if b.ndim > 1:
        b, turn_b = turned(b)
    return e.te(topi.matmul, a, b, transpose_a=turn_a, transpose_b=turn_b, out_dtype=dtype)


@operator("mm", "bmm", "matmul", "mv", "dot", "vdot")
def matmul(e: Emitter, a: Value, b: Value) -> Value:
    """`topi.matmul`."""
    if e.dtype == "bool":
        return e.cast(e.te(topi.matmul, e.cast(a, "int32"), e.cast(b, "int32")), "bool")
    return product(e, a, b)


@operator("inner")
def inner(e: Emitter, a: Value, b: Value) -> Value:
    """`topi.tensordot` over the last dimensions; of a number the product."""
    return e.te(topi.tensordot, a, b, axes=((-1,), (-1,))) if a.ndim and b.ndim else e.te(topi.multiply, a, b)


@operator("addmm", "baddbmm", "addmv")
def addmm(e: Emitter, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    """beta * c + alpha * `topi.matmul`."""
    if beta == alpha == 1 and a.ndim == b.ndim == 2 and c.ndim <= 1:
        weight, turn = turned(e.cast(b, e.dtype))
        if turn and c.ndim == 1 and (c.shape[0] is weight.shape[0] or c.shape == weight.shape[:1]):
            return e.te(topi.linear, a, weight, c)
    return _combined(e, c, product(e, a, b, e.wide), beta, alpha)


def _combined(e: Emitter, c: Value, y: Value, beta: Any, alpha: Any) -> Value:
    """beta * c + alpha * y in the type of y, which is not rounded yet."""
    if alpha != 1:
        y = e.te(topi.multiply, y, e.operand(alpha, y.dtype))
    if beta == 0:
        return y
    c = e.cast(c, y.dtype)
    return e.te(topi.add, e.te(topi.multiply, c, e.operand(beta, y.dtype)) if beta != 1 else c, y)


@operator("addbmm")
def addbmm(e: Emitter, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    """beta * c + alpha * the sum of `topi.matmul` over the batch."""
    return _combined(e, c, e.te(topi.sum, product(e, a, b, e.wide), axis=0, dtype=e.wide), beta, alpha)


@operator("linear")
def linear(e: Emitter, x: Value, weight: Value, bias: Value | None = None) -> Value:
    """`topi.linear`."""
    if weight.ndim == 1:
        y = product(e, x, weight)
        return y if bias is None else e.te(topi.add, y, bias)
    return e.te(topi.linear, x, weight, bias)


@operator("outer", "ger")
def outer(e: Emitter, a: Value, b: Value) -> Value:
    """`topi.outer`."""
    return e.te(topi.outer, e.cast(a, e.dtype), e.cast(b, e.dtype))


@operator("addr")
def addr(e: Emitter, c: Value, a: Value, b: Value, beta: Any = 1, alpha: Any = 1) -> Value:
    """beta * c + alpha * `topi.outer`."""
    return _combined(e, c, e.te(topi.outer, e.cast(a, e.wide), e.cast(b, e.wide)), beta, alpha)


@operator("einsum")
def einsum(e: Emitter, equation: str, tensors: Sequence[Value], path: Any = None) -> Value:
    """`topi.einsum`."""
    return e.te(topi.einsum, equation, *(e.cast(t, e.dtype) for t in tensors))


@operator("_cdist_forward", "cdist")
def cdist(e: Emitter, a: Value, b: Value, p: float = 2.0, compute_mode: int | None = None) -> Value:
    """`topi.cdist`."""
    return e.te(topi.cdist, a, b, p=float(p))


@operator("_pdist_forward")
def pdist(e: Emitter, x: Value, p: float = 2.0) -> Value:
    """`topi.pdist`."""
    return e.te(topi.pdist, x, p=float(p))


@operator("linalg_cholesky_ex")
def cholesky(e: Emitter, x: Value, upper: bool = False, check_errors: bool = False) -> tuple[Value, Value]:
    """`topi.cholesky`; a matrix that has none gives NaN, and the place of the first."""
    y = e.te(topi.cholesky, x, upper=upper)
    good = e.te(topi.isfinite, e.te(topi.diagonal, y))
    count = e.te(topi.sum, e.cast(good, "int32"), axis=-1)
    whole = e.te(topi.all, good, axis=-1)
    return y, e.te(topi.where, whole, 0, e.te(topi.add, count, 1))


@operator("linalg_inv_ex")
def inverse(e: Emitter, x: Value, check_errors: bool = False) -> tuple[Value, None]:
    """`topi.inverse`; whether there is one is missing."""
    return e.te(topi.inverse, x), None


@operator("_linalg_det")
def det(e: Emitter, x: Value) -> tuple[Value | None, ...]:
    """`topi.det`."""
    return e.te(topi.det, x), None, None


@operator("linalg_solve_triangular")
def solve_triangular(e: Emitter, a: Value, b: Value, upper: bool = False, left: bool = True,
                     unitriangular: bool = False) -> Value:
    """`topi.triangular_solve`."""
    if left:
        return e.te(topi.triangular_solve, a, b, upper=upper, unit_diagonal=unitriangular)
    b = swapped(e, b, b.ndim - 2, b.ndim - 1)
    y = e.te(topi.triangular_solve, a, b, upper=upper, transpose=True, unit_diagonal=unitriangular)
    return swapped(e, y, y.ndim - 2, y.ndim - 1)
