"""Distances and angles of vectors: row by row, each to each, and what is at right angles to two."""
from __future__ import annotations

from typing import Any

from tilewright.support.errors import described
from tilewright.te.definition import compute
from tilewright.te.extents import simplified
from tilewright.te.math import sqrt
from tilewright.te.reduction import max as te_max
from tilewright.te.reduction import reduce_axis
from tilewright.te.reduction import sum as te_sum
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir.arithmetic import absolute, binary, maximum, power, select
from tilewright.tir.conversion import cast, const
from tilewright.tir.expr import Expr
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.reductions import reduced
from tilewright.topi.shapes import (
    axis_index,
    broadcast_shapes,
    check,
    check_extent,
    check_rank,
    check_tensors,
    constant,
    element,
    is_one,
    product,
)
from tilewright.topi.shaping import broadcast_to
from tilewright.topi.statements import variable, written
from tilewright.topi.types import FLOAT, NUMBER, accumulator, check_kind, common_type

INFINITE = float("inf")


def _floats(op: str, a: Any, b: Any) -> str:
    check_tensors(op, a=a, b=b)
    common = common_type(op, a, b)
    check_kind(op, "an operand", common, FLOAT)
    return common


def _check_order(op: str, p: Any) -> None:
    check(isinstance(p, (int, float)) and p >= 0, op, f"p is {described(p)}, a number of at least 0 is needed")


def _term(p: float, d: Expr) -> Expr:
    """What the norm of order p adds up, of a difference."""
    if p == 2:
        return binary("mul", d, d)
    size = absolute(d)
    if p in (1, INFINITE):
        return size
    return cast(d.dtype, binary("ne", d, const(0.0, d.dtype))) if p == 0 else power(size, float(p))


def _root(p: float, total: Expr) -> Expr:
    return sqrt(total) if p == 2 else total if p in (0, 1, INFINITE) else power(total, 1.0 / p)


def cosine_similarity(a: Tensor, b: Tensor, *, axis: int = 1, eps: float = 1e-8) -> Tensor:
    """y = sum of a * b / (max(|a|, eps) * max(|b|, eps)), with sums along an axis of a and b, which broadcast."""
    op = "cosine_similarity"
    dtype = _floats(op, a, b)
    shape, wide = broadcast_shapes(op, a.shape, b.shape), accumulator(dtype)
    at = axis_index(op, axis, len(shape))
    x, y = (broadcast_to(t, shape) for t in (a, b))

    def total(name: str, p: Tensor, q: Tensor) -> Tensor:
        out: Tensor = reduced(f"{op}_{name}", p, at, False, te_sum, lambda *i: binary(
            "mul", cast(wide, p(*i)), cast(wide, q(*i))))
        return out
    both, first, second = total("both", x, y), total("a", x, x), total("b", y, y)

    def size(t: Tensor, i: tuple[Any, ...]) -> Expr:
        return maximum(sqrt(t(*i)), const(eps, wide))
    return compute(both.shape, lambda *i: cast(dtype, both(*i) / (size(first, i) * size(second, i))), name=op)


def pairwise_distance(a: Tensor, b: Tensor, *, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> Tensor:
    """y = the norm of order p of a - b + eps along the last axis; a and b broadcast. p: at least 0, or inf.

    Raises TensorExpressionError for a negative p.
    """
    op = "pairwise_distance"
    dtype = _floats(op, a, b)
    _check_order(op, p)
    shape, wide = broadcast_shapes(op, a.shape, b.shape), accumulator(dtype)
    check(len(shape) >= 1, op, "a and b have no dimension")
    x, y = broadcast_to(a, shape), broadcast_to(b, shape)
    total = reduced(f"{op}_sum", x, -1, keepdims, te_max if p == INFINITE else te_sum, lambda *i: _term(
        p, cast(wide, x(*i)) - cast(wide, y(*i)) + eps))
    return compute(total.shape, lambda *i: cast(dtype, _root(p, maximum(total(*i), const(0.0, wide)))), name=op)


def cdist(a: Tensor, b: Tensor, *, p: float = 2.0) -> Tensor:
    """y[..., i, j] = the norm of order p of a[..., i, :] - b[..., j, :]: of each vector to each.

    a: T[..., n, d]; b: T[..., m, d]; the leading dimensions broadcast. p: at least 0, or inf. Differences are taken
    before they are squared: no cancellation. Raises TensorExpressionError where d differs.
    """
    op = "cdist"
    dtype = _floats(op, a, b)
    _check_order(op, p)
    check_rank(op, "a", a, 2, 100)
    check_rank(op, "b", b, 2, 100)
    check_extent(op, "the last extent of b", b.shape[-1], a.shape[-1], f"a has the shape {shape_text(a.shape)}")
    lead, wide = broadcast_shapes(op, a.shape[:-2], b.shape[:-2]), accumulator(dtype)
    shape, empty = (*lead, a.shape[-2], b.shape[-2]), constant(a.shape[-1]) == 0
    if empty:
        return compute(shape, lambda *i: const(0.0, dtype), name=op)
    k = reduce_axis((0, a.shape[-1]), name="k")

    def read(x: Tensor, i: tuple[Any, ...], row: Any) -> Expr:
        own = i[len(lead) - (x.ndim - 2):len(lead)]
        return cast(wide, x(*(0 if is_one(n) else v for v, n in zip(own, x.shape)), row, k))
    reducer = te_max if p == INFINITE else te_sum
    total = compute(shape, lambda *i: reducer(_term(p, read(a, i, i[-2]) - read(b, i, i[-1])), axis=k),
                    name=f"{op}_sum")
    return compute(shape, lambda *i: cast(dtype, _root(p, maximum(total(*i), const(0.0, wide)))), name=op)


def pdist(x: Tensor, *, p: float = 2.0) -> Tensor:
    """The norms of order p of x[i] - x[j] for i < j, row by row: T[n, d] to T[n * (n - 1) / 2]."""
    op = "pdist"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 2)
    check_kind(op, "x", x.dtype, FLOAT)
    full, n = cdist(x, x, p=p), x.shape[0]
    count = simplified(maximum(binary("floordiv", product((n, n - 1)), 2), 0))

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (distances,), (y,) = ins, outs
        at = variable(ib, 0, "int64", "at")
        with ib.for_range(0, n, name="i") as i, ib.for_range(binary("add", i, 1), n, name="j") as j:
            y[at[0]] = distances[i, j]
            at[0] = at[0] + 1
    return written(op, [((count,), x.dtype)], [full], write)[0]


def cross(a: Tensor, b: Tensor, *, axis: int = -1) -> Tensor:
    """y = a x b, at right angles to both: y[0] = a[1] * b[2] - a[2] * b[1], and so on along an axis of 3 elements.

    a and b broadcast. Raises TensorExpressionError where the extent along the axis is not 3.
    """
    op = "cross"
    check_tensors(op, a=a, b=b)
    dtype = common_type(op, a, b)
    check_kind(op, "an operand", dtype, NUMBER)
    shape, wide = broadcast_shapes(op, a.shape, b.shape), accumulator(dtype)
    at = axis_index(op, axis, len(shape))
    check_extent(op, f"the extent along axis {axis}", shape[at], 3)

    def read(x: Tensor, i: tuple[Any, ...], step: int) -> Expr:
        """The element `step` behind that of i, around the three."""
        turned = binary("add", i[at], step)
        wrapped = select(binary("ge", turned, 3), binary("sub", turned, 3), turned)
        return cast(wide, element(x, (*i[:at], wrapped, *i[at + 1:])))
    return compute(shape, lambda *i: cast(dtype, read(a, i, 1) * read(b, i, 2) - read(a, i, 2) * read(b, i, 1)),
                   name=op)


__all__ = ["cdist", "cosine_similarity", "cross", "pairwise_distance", "pdist"]
