"""Equations of matrices: factors, determinants, inverses, solutions. Batches of matrices lie in the last two axes.

Computed in the type that accumulates, by elimination with the largest pivot of a column (Golub and Van Loan, Matrix
Computations). A singular matrix gives infinities or NaN, no error.
"""
from __future__ import annotations

from typing import Any

from tilewright.te.definition import compute
from tilewright.te.math import log, sqrt
from tilewright.te.reduction import prod as te_prod
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import absolute, binary, negate, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.creation import eye
from tilewright.topi.products import matmul
from tilewright.topi.shapes import broadcast_shapes, check_extent, check_rank, check_tensors
from tilewright.topi.shaping import broadcast_to
from tilewright.topi.statements import each, variable, written
from tilewright.topi.types import FLOAT, INDEX, accumulator, check_kind, common_type, rounded


def _square(op: str, x: Any, name: str = "x") -> None:
    check_tensors(op, **{name: x})
    check_rank(op, name, x, 2, 100)
    check_kind(op, name, x.dtype, FLOAT)
    check_extent(op, f"the last extent of {name}", x.shape[-1], x.shape[-2], "a square matrix is needed")


def _eliminated(op: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(factors, rows, sign): x[rows[i], :] = L U; L below the diagonal of the factors, U above and on it; the sign of
    the order of the rows."""
    lead, n, wide = x.shape[:-2], x.shape[-1], accumulator(x.dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (given,), (lu, rows, sign) = ins, outs
        with each(ib, lead, "b") as b:
            with ib.for_range(0, n, name="i") as i:
                rows[b + (i,)] = cast(INDEX, i)
                with ib.for_range(0, n, name="j") as j:
                    lu[b + (i, j)] = cast(wide, given[b + (i, j)])
            sign[b] = const(1.0, wide)
            with ib.for_range(0, n, name="k") as k:
                best = variable(ib, absolute(lu[b + (k, k)]), wide, "best")
                at = variable(ib, cast(INDEX, k), INDEX, "at")
                with ib.for_range(binary("add", k, 1), n, name="i") as i:
                    with ib.if_scope(binary("gt", absolute(lu[b + (i, k)]), best[0])):
                        best[0], at[0] = absolute(lu[b + (i, k)]), cast(INDEX, i)
                with ib.if_scope(binary("ne", at[0], cast(INDEX, k))):
                    sign[b] = negate(sign[b])
                    row = variable(ib, rows[b + (k,)], INDEX, "row")
                    rows[b + (k,)] = rows[b + (at[0],)]
                    rows[b + (at[0],)] = row[0]
                    with ib.for_range(0, n, name="j") as j:
                        kept = variable(ib, lu[b + (k, j)], wide, "kept")
                        lu[b + (k, j)] = lu[b + (at[0], j)]
                        lu[b + (at[0], j)] = kept[0]
                with ib.if_scope(binary("gt", best[0], const(0.0, wide))):
                    with ib.for_range(binary("add", k, 1), n, name="i") as i:
                        factor = ib.let("factor", lu[b + (i, k)] / lu[b + (k, k)])
                        lu[b + (i, k)] = factor
                        with ib.for_range(binary("add", k, 1), n, name="j") as j:
                            lu[b + (i, j)] = lu[b + (i, j)] - factor * lu[b + (k, j)]
    lu, rows, sign = written(f"{op}_factors", [((*lead, n, n), wide), ((*lead, n), INDEX), (lead, wide)], [x], write)
    return lu, rows, sign


def det(x: Tensor) -> Tensor:
    """The determinant of each matrix of x: T[..., n, n]; 1 of an empty one.

    Raises TensorExpressionError unless square.
    """
    op = "det"
    _square(op, x)
    lu, _, sign = _eliminated(op, x)
    k = reduce_axis((0, x.shape[-1]), name="k")
    product = compute(x.shape[:-2], lambda *b: te_prod(lu(*b, k, k), axis=k), name=f"{op}_product")
    return compute(x.shape[:-2], lambda *b: cast(x.dtype, product(*b) * sign(*b)), name=op)


def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    """(sign, logarithm of the size) of the determinant of each matrix of x: T[..., n, n]; (0, -inf) of a singular one.

    Raises TensorExpressionError unless square.
    """
    op = "slogdet"
    _square(op, x)
    lu, _, sign = _eliminated(op, x)
    zero, one = const(0.0, lu.dtype), const(1.0, lu.dtype)

    def side(e: Expr) -> Expr:
        """1, -1, or e itself, which is 0 or NaN."""
        return select(binary("gt", e, zero), one, select(binary("lt", e, zero), negate(one), e))
    k, m = (reduce_axis((0, x.shape[-1]), name="k") for _ in range(2))
    sides = compute(x.shape[:-2], lambda *b: te_prod(side(lu(*b, k, k)), axis=k), name=f"{op}_sides")
    size = compute(x.shape[:-2], lambda *b: te_sum(log(absolute(lu(*b, m, m))), axis=m), name=f"{op}_size")
    return (compute(x.shape[:-2], lambda *b: cast(x.dtype, sides(*b) * sign(*b)), name=f"{op}_sign"),
            rounded(size, x.dtype, op))


def _pair(op: str, a: Any, b: Any) -> tuple[Tensor, Tensor, str]:
    """Matrices and right sides, of one batch."""
    _square(op, a, "a")
    check_tensors(op, b=b)
    check_rank(op, "b", b, 2, 100)
    dtype = common_type(op, a, b)
    check_kind(op, "b", dtype, FLOAT)
    check_extent(op, "extent -2 of b", b.shape[-2], a.shape[-1], f"a has the shape {shape_text(a.shape)}")
    lead = broadcast_shapes(op, a.shape[:-2], b.shape[:-2])
    return broadcast_to(a, (*lead, *a.shape[-2:])), broadcast_to(b, (*lead, *b.shape[-2:])), dtype


def solve(a: Tensor, b: Tensor) -> Tensor:
    """y with a y = b: T[..., n, m] of a: T[..., n, n] and b: T[..., n, m]; the leading dimensions broadcast.

    Raises TensorExpressionError where extents differ.
    """
    op = "solve"
    a, b, dtype = _pair(op, a, b)
    lu, rows, _ = _eliminated(op, rounded(a, dtype))
    n, m, lead = a.shape[-1], b.shape[-1], a.shape[:-2]

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (factors, order, right), (y,) = ins, outs
        with each(ib, lead, "b") as at, ib.for_range(0, m, name="column") as c:
            with ib.for_range(0, n, name="i") as i:
                total = variable(ib, cast(lu.dtype, right[at + (order[at + (i,)], c)]), lu.dtype, "total")
                with ib.for_range(0, i, name="k") as k:
                    total[0] = total[0] - factors[at + (i, k)] * y[at + (k, c)]
                y[at + (i, c)] = total[0]
            _substitute(ib, factors, y, at, c, n, upper=True, unit=False)
    y, = written(op, [(b.shape, lu.dtype)], [lu, rows, b], write)
    return rounded(y, dtype, f"{op}_rounded")


def _substitute(ib: IRBuilder, a: BufferVar, y: BufferVar, at: tuple[Expr, ...], c: Any, n: Any, upper: bool,
                unit: bool, transposed: bool = False) -> None:
    """Solve a triangle for column c of y, in place."""
    def entry(i: Any, k: Any) -> Expr:
        e = a[at + ((k, i) if transposed else (i, k))]
        return cast(y.dtype, e)
    with ib.for_range(0, n, name="step") as step:
        i = binary("sub", binary("sub", n, 1), step) if upper else step
        total = variable(ib, y[at + (i, c)], y.dtype, "total")
        with ib.for_range(binary("add", i, 1) if upper else 0, n if upper else i, name="k") as k:
            total[0] = total[0] - entry(i, k) * y[at + (k, c)]
        y[at + (i, c)] = total[0] if unit else total[0] / entry(i, i)


def inverse(x: Tensor) -> Tensor:
    """The inverse of each matrix of x: T[..., n, n]. Raises TensorExpressionError unless square."""
    _square("inverse", x)
    return solve(x, eye(x.shape[-1], dtype=x.dtype))


def cholesky(x: Tensor, *, upper: bool = False) -> Tensor:
    """L with L L^T = x, a lower triangle, or L^T where upper holds; x: T[..., n, n], symmetric and positive definite.

    The lower triangle of x is read. A matrix that is not positive definite gives NaN. Raises TensorExpressionError
    unless square.
    """
    op = "cholesky"
    _square(op, x)
    lead, n, wide = x.shape[:-2], x.shape[-1], accumulator(x.dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (given,), (y,) = ins, outs
        with each(ib, lead, "b") as b, ib.for_range(0, n, name="i") as i:
            with ib.for_range(0, binary("add", i, 1), name="j") as j:
                total = variable(ib, cast(wide, given[b + (i, j)]), wide, "total")
                with ib.for_range(0, j, name="k") as k:
                    total[0] = total[0] - y[b + (i, k)] * y[b + (j, k)]
                with ib.if_scope(binary("eq", i, j)):
                    y[b + (i, j)] = sqrt(total[0])
                with ib.else_scope():
                    y[b + (i, j)] = total[0] / y[b + (j, j)]
            with ib.for_range(binary("add", i, 1), n, name="j") as j:
                y[b + (i, j)] = const(0.0, wide)
    y, = written(op, [(x.shape, wide)], [x], write)
    return compute(x.shape, lambda *i: cast(x.dtype, y(*i[:-2], i[-1], i[-2]) if upper else y(*i)),
                   name=f"{op}_rounded")


def triangular_solve(a: Tensor, b: Tensor, *, upper: bool = False, transpose: bool = False,
                     unit_diagonal: bool = False) -> Tensor:
    """y with a y = b, of the lower (or upper) triangle of a, or with a^T y = b where transpose holds.

    a: T[..., n, n]; b, y: T[..., n, m]; the leading dimensions broadcast; the other triangle is not read, with
    unit_diagonal the diagonal neither: it is 1. Raises TensorExpressionError where extents differ.
    """
    op = "triangular_solve"
    a, b, dtype = _pair(op, a, b)
    n, m, lead, wide = a.shape[-1], b.shape[-1], a.shape[:-2], accumulator(dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (matrix, right), (y,) = ins, outs
        with each(ib, lead, "b") as at, ib.for_range(0, m, name="column") as c:
            with ib.for_range(0, n, name="i") as i:
                y[at + (i, c)] = cast(wide, right[at + (i, c)])
            _substitute(ib, matrix, y, at, c, n, upper != transpose, unit_diagonal, transpose)
    y, = written(op, [(b.shape, wide)], [a, b], write)
    return rounded(y, dtype, f"{op}_rounded")


def matrix_power(x: Tensor, *, exponent: int) -> Tensor:
    """The product of x with itself, `exponent` times, by squaring; the identity for 0, of the inverse for a negative
    number. Rounded once.

    x: T[..., n, n]. Raises TensorExpressionError unless square.
    """
    op = "matrix_power"
    _square(op, x)
    if exponent == 0:
        return broadcast_to(eye(x.shape[-1], dtype=x.dtype), x.shape)
    if exponent == 1:
        return compute(x.shape, lambda *i: x(*i), name=op)
    wide = rounded(x, accumulator(x.dtype), f"{op}_wide")
    base = wide if exponent > 0 else inverse(wide)
    out = base
    for bit in f"{abs(exponent):b}"[1:]:                 # behind the highest
        out = matmul(out, out)
        if bit == "1":
            out = matmul(out, base)
    return rounded(out, x.dtype, f"{op}_rounded")


__all__ = ["cholesky", "det", "inverse", "matrix_power", "slogdet", "solve", "triangular_solve"]
