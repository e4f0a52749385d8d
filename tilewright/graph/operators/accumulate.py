"""What compute rules share: extents as numbers, and sums in wider types."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from tilewright import te
from tilewright.tir import Expr, IntImm

SUM = "float64"                  # in which sums of a loss are taken
_PIECE = 16                      # elements of a float64 sum that are added one after the other
_LANES = 8                       # partial results of a row, side by side in vectors
_WIDE = {"float16": "float32", "bfloat16": "float32"}


def extents(t: te.Tensor) -> tuple[int, ...]:
    """The shape of a tensor of a kernel: known when the kernel is made."""
    return tuple(d.value for d in t.shape if isinstance(d, IntImm))


def wide_dtype(dtype: str) -> str:
    """The dtype in which sums of dtype are taken."""
    return _WIDE.get(dtype, dtype)


def widen(t: te.Tensor) -> te.Tensor:
    """t in the dtype of its sums."""
    dtype = wide_dtype(t.dtype)
    return t if dtype == t.dtype else te.compute(t.shape, lambda *i: t(*i).astype(dtype), name=f"{t.name}_wide")


def narrow(t: te.Tensor, dtype: str) -> te.Tensor:
    """t rounded to dtype."""
    return t if dtype == t.dtype else te.compute(t.shape, lambda *i: t(*i).astype(dtype), name=f"{t.name}_rounded")


def row_reduce(reduce: Callable[..., Any], join: Callable[[Any, Any], Any], x: te.Tensor,
               element: Callable[[Expr, Expr], Any], name: str) -> te.Tensor:
    """r[i] = reduce of element(i, j) over j, over the shape of x[rows, columns]; join does the same for two values.

    Long rows are reduced in lanes, element j in lane j % _LANES: vectors, where a row by itself is a chain of steps.
    """
    rows, columns = x.shape[0], extents(x)[-1]

    def over(first: int, count: int, name: str) -> te.Tensor:
        j = te.reduce_axis((0, count), name=f"j_{name}")
        return te.compute((rows,), lambda i: reduce(element(i, j.var + first if first else j.var), axis=j), name=name)
    whole = columns // _LANES * _LANES
    if whole <= _LANES:
        return over(0, columns, name)
    step, lane = te.reduce_axis((0, whole // _LANES), name=f"j_{name}"), te.reduce_axis((0, _LANES), name="lane")
    lanes = te.compute((rows, _LANES), lambda i, j: reduce(element(i, step * _LANES + j), axis=step),
                       name=f"{name}_lanes")
    most = te.compute((rows,), lambda i: reduce(lanes[i, lane], axis=lane), name=name)
    if whole == columns:
        return most
    last = over(whole, columns - whole, f"{name}_last")
    return te.compute((rows,), lambda i: join(most[i], last[i]), name=f"{name}_joined")


def row_sum(x: te.Tensor, element: Callable[[Expr, Expr], Any], name: str) -> te.Tensor:
    """s[i] = sum_j element(i, j) in float64, over the shape of x[rows, columns].

    That adds what comes of float32 exactly enough; where x is float64 itself, piece by piece.
    """
    columns = extents(x)[-1]
    if x.dtype != SUM or columns <= _PIECE:
        return row_reduce(te.sum, operator.add, x, lambda i, j: element(i, j).astype(SUM), name)
    j = te.reduce_axis((0, _PIECE), name=f"j_{name}")

    def piece(i: Expr, k: Expr) -> Expr:
        at = k * _PIECE + j
        return te.sum(te.if_then_else(at < columns, element(i, at), te.const(0.0, SUM)), axis=j)
    parts = te.compute((x.shape[0], -(-columns // _PIECE)), piece, name=f"{name}_pieces")
    return row_sum(parts, parts, name)
