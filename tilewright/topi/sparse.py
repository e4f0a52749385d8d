"""Sparse matrices by rows (CSR): products with dense ones, products where a matrix is not 0, rows as dense ones.

A matrix of m rows has its elements in `data`, T[n], row by row; their columns in `indices`, integers [n]; row r has
those from indptr[r] to indptr[r + 1], integers [m + 1]. Products are added up in the order in which they lie there. A
column out of range is an error of the kernel. A block matrix (BSR) has blocks in the place of elements: T[n, p, q].
"""
from __future__ import annotations

from typing import Any

from tilewright.te.extents import simplified
from tilewright.te.math import exp
from tilewright.te.tensor import Tensor, shape_text
from tilewright.tir import dtype as dt
from tilewright.tir.arithmetic import all_of, binary, maximum, minimum
from tilewright.tir.conversion import cast, const, min_value
from tilewright.tir.expr import Expr
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.indexing import signed
from tilewright.topi.products import with_bias
from tilewright.topi.reductions import truth
from tilewright.topi.shapes import as_shape, check, check_extent, check_rank, check_tensors, constant, product
from tilewright.topi.statements import each, variable, written
from tilewright.topi.types import FLOAT, INDEX, NUMBER, accumulator, check_kind, common_type, rounded


def _rows(op: str, data: Any, indices: Any, indptr: Any, blocks: bool = False) -> Expr:
    """The number of rows of a sparse matrix, checked."""
    check_tensors(op, data=data, indices=indices)
    check_rank(op, "data", data, 3 if blocks else 1)
    _check_whole(op, "indices", indices)
    check_extent(op, "the extent of indices", indices.shape[0], data.shape[0])
    return _number_of_rows(op, indptr)


def _check_whole(op: str, name: str, x: Any) -> None:
    check_tensors(op, **{name: x})
    check_rank(op, name, x, 1)
    check(dt.is_integer(x.dtype), op, f"{name} is {x.dtype}, integers are needed",
          f'convert it: {name}.astype("int64")')


def _number_of_rows(op: str, indptr: Any) -> Expr:
    _check_whole(op, "indptr", indptr)
    check(constant(indptr.shape[0]) != 0, op, "indptr has no element", "one more than there are rows")
    return simplified(indptr.shape[0] - 1)


def _span(ib: IRBuilder, indptr: BufferVar, row: Any) -> tuple[Expr, Expr]:
    """Where the elements of a row begin and end."""
    return ib.let("start", cast(INDEX, indptr[row])), ib.let("end", cast(INDEX, indptr[row + 1]))


def _numbers(op: str, *tensors: Tensor) -> str:
    common = common_type(op, *tensors)
    check_kind(op, "an operand", common, NUMBER)
    return common


def csr_matmul(data: Tensor, indices: Tensor, indptr: Tensor, b: Tensor) -> Tensor:
    """y[r, j] = sum over k in row r of data[k] * b[indices[k], j]; of a vector b: y[r].

    b: T[columns, n] or T[columns]; y: T[m, n] or T[m]. Raises TensorExpressionError where shapes do not fit.
    """
    op = "csr_matmul"
    rows = _rows(op, data, indices, indptr)
    check_tensors(op, b=b)
    check_rank(op, "b", b, 1, 2)
    dtype, rest = _numbers(op, data, b), b.shape[1:]
    wide = accumulator(dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (values, columns, starts, dense), (y,) = ins, outs
        with ib.for_range(0, rows, name="row") as r:
            with each(ib, rest, "j") as j:
                y[(r,) + j] = const(0, wide)
            with ib.for_range(*_span(ib, starts, r), name="k") as k:
                value, at = ib.let("value", cast(wide, values[k])), ib.let("at", signed(columns[k]))
                with each(ib, rest, "j") as j:
                    y[(r,) + j] = y[(r,) + j] + value * cast(wide, dense[(at,) + j])
    y, = written(op, [((rows, *rest), wide)], [data, indices, indptr, b], write)
    return rounded(y, dtype, f"{op}_rounded")


def sparse_linear(x: Tensor, data: Tensor, indices: Tensor, indptr: Tensor, bias: Tensor | None = None) -> Tensor:
    """y[..., r] = sum over k in row r of data[k] * x[..., indices[k]], + bias[r]: `linear` by a sparse weight.

    x: T[..., columns]; bias: T[m]; y: T[..., m]. Raises TensorExpressionError where shapes do not fit.
    """
    op = "sparse_linear"
    rows = _rows(op, data, indices, indptr)
    check_tensors(op, x=x)
    check_rank(op, "x", x, 1, 100)
    dtype, lead = _numbers(op, data, x), x.shape[:-1]
    wide = accumulator(dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (dense, values, columns, starts), (y,) = ins, outs
        with each(ib, lead) as i, ib.for_range(0, rows, name="row") as r:
            total = variable(ib, const(0, wide), wide, "total")
            with ib.for_range(*_span(ib, starts, r), name="k") as k:
                total[0] = total[0] + cast(wide, values[k]) * cast(wide, dense[i + (signed(columns[k]),)])
            y[i + (r,)] = total[0]
    y, = written(op, [((*lead, rows), wide)], [x, data, indices, indptr], write)
    return with_bias(op, y, bias, -1, dtype)


def bsr_matmul(data: Tensor, indices: Tensor, indptr: Tensor, b: Tensor) -> Tensor:
    """y[r * p + i, j] = sum over k in row r and e of data[k, i, e] * b[indices[k] * q + e, j]: by a matrix of blocks.

    data: T[n, p, q]; b: T[columns * q, m]; y: T[rows * p, m]. Raises TensorExpressionError where shapes do not fit.
    """
    op = "bsr_matmul"
    rows = _rows(op, data, indices, indptr, blocks=True)
    check_tensors(op, b=b)
    check_rank(op, "b", b, 2)
    (_, p, q), n = data.shape, b.shape[1]
    dtype = _numbers(op, data, b)
    wide = accumulator(dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (values, columns, starts, dense), (y,) = ins, outs
        with ib.for_range(0, rows, name="row") as r:
            with ib.for_range(0, p, name="i") as i, ib.for_range(0, n, name="j") as j:
                y[binary("add", binary("mul", r, p), i), j] = const(0, wide)
            with ib.for_range(*_span(ib, starts, r), name="k") as k:
                at = ib.let("at", minimum(maximum(signed(columns[k]), -1), b.shape[0]))       # at * q does not wrap
                with each(ib, (p, q, n), "j") as (i, e, j):
                    row = binary("add", binary("mul", r, p), i)
                    y[row, j] = y[row, j] + cast(wide, values[k, i, e]) * cast(wide, dense[at * q + e, j])
    y, = written(op, [((simplified(product((rows, p))), n), wide)], [data, indices, indptr, b], write)
    return rounded(y, dtype, f"{op}_rounded")


def csr_sampled_matmul(a: Tensor, b: Tensor, indices: Tensor, indptr: Tensor) -> Tensor:
    """y[k] = sum over e of a[r, e] * b[e, indices[k]] for the elements k of row r: a product where a matrix is not 0.

    a: T[m, e]; b: T[e, columns]; y: T[n], the data of a matrix with these indices. Also called SDDMM.
    Raises TensorExpressionError where shapes do not fit.
    """
    op = "csr_sampled_matmul"
    check_tensors(op, a=a, b=b, indices=indices)
    check_rank(op, "a", a, 2)
    check_rank(op, "b", b, 2)
    _check_whole(op, "indices", indices)
    rows = _number_of_rows(op, indptr)
    check_extent(op, "extent 0 of a", a.shape[0], rows, f"indptr has the shape {shape_text(indptr.shape)}")
    check_extent(op, "extent 0 of b", b.shape[0], a.shape[1], f"a has the shape {shape_text(a.shape)}")
    dtype = _numbers(op, a, b)
    wide, inner = accumulator(dtype), a.shape[1]

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (left, right, columns, starts), (y,) = ins, outs
        with ib.for_range(0, indices.shape[0], name="k") as k:     # what belongs to no row
            y[k] = const(0, wide)
        with ib.for_range(0, rows, name="row") as r, ib.for_range(*_span(ib, starts, r), name="k") as k:
            total = variable(ib, const(0, wide), wide, "total")
            at = ib.let("at", signed(columns[k]))
            with ib.for_range(0, inner, name="e") as e:
                total[0] = total[0] + cast(wide, left[r, e]) * cast(wide, right[e, at])
            y[k] = total[0]
    y, = written(op, [(indices.shape, wide)], [a, b, indices, indptr], write)
    return rounded(y, dtype, f"{op}_rounded")


def csr_softmax(data: Tensor, indptr: Tensor) -> Tensor:
    """y[k] = exp(data[k] - m) / the sum of exp(data[j] - m) over the elements j of the row of k; m: their largest.

    data, y: T[n]. As the weights of attention in graphs. Raises TensorExpressionError for a type that is no float.
    """
    op = "csr_softmax"
    check_tensors(op, data=data)
    check_rank(op, "data", data, 1)
    rows = _number_of_rows(op, indptr)
    check_kind(op, "data", data.dtype, FLOAT)
    wide = accumulator(data.dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (values, starts), (y,) = ins, outs
        with ib.for_range(0, data.shape[0], name="k") as k:        # what belongs to no row
            y[k] = const(0.0, wide)
        with ib.for_range(0, rows, name="row") as r:
            start, end = _span(ib, starts, r)
            most, total = (variable(ib, v, wide, name) for v, name in ((min_value(wide), "most"), (const(
                0.0, wide), "total")))
            with ib.for_range(start, end, name="k") as k:
                most[0] = maximum(most[0], cast(wide, values[k]))
            with ib.for_range(start, end, name="k") as k:
                y[k] = exp(cast(wide, values[k]) - most[0])
                total[0] = total[0] + y[k]
            with ib.for_range(start, end, name="k") as k:
                y[k] = y[k] / total[0]
    y, = written(op, [(data.shape, wide)], [data, indptr], write)
    return rounded(y, data.dtype, f"{op}_rounded")


# forms


def csr_to_dense(data: Tensor, indices: Tensor, indptr: Tensor, *, columns: Any) -> Tensor:
    """y[r, c] = the sum of data[k] over k in row r with indices[k] == c: T[m, columns]."""
    op = "csr_to_dense"
    rows, (width,) = _rows(op, data, indices, indptr), as_shape(op, columns, 1)
    check_kind(op, "data", data.dtype, NUMBER)
    wide = accumulator(data.dtype)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (values, places, starts), (y,) = ins, outs
        with ib.for_range(0, rows, name="row") as r:
            with ib.for_range(0, width, name="c") as c:
                y[r, c] = const(0, wide)
            with ib.for_range(*_span(ib, starts, r), name="k") as k:
                at = ib.let("at", signed(places[k]))
                y[r, at] = y[r, at] + cast(wide, values[k])
    y, = written(op, [((rows, width), wide)], [data, indices, indptr], write)
    return rounded(y, data.dtype, f"{op}_rounded")


def dense_to_csr(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(data, indices, indptr) of the elements of x that are not 0.

    x: T[m, n]; data: T[m * n] and indices: int64[m * n], 0 behind the elements that there are, indptr[m] of them.
    """
    op = "dense_to_csr"
    check_tensors(op, x=x)
    check_rank(op, "x", x, 2)
    (rows, columns), room = x.shape, simplified(product(x.shape))

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (dense,), (data, indices, indptr) = ins, outs
        with ib.for_range(0, room, name="k") as k:
            data[k], indices[k] = const(0, x.dtype), const(0, INDEX)
        indptr[0] = const(0, INDEX)
        with ib.for_range(0, rows, name="row") as r:
            count = variable(ib, indptr[r], INDEX, "count")
            with ib.for_range(0, columns, name="c") as c, ib.if_scope(truth(dense[r, c])):
                data[count[0]], indices[count[0]] = dense[r, c], cast(INDEX, c)
                count[0] = count[0] + 1
            indptr[r + 1] = count[0]
    data, indices, indptr = written(op, [((room,), x.dtype), ((room,), INDEX), ((simplified(rows + 1),), INDEX)], [x],
                                    write)
    return data, indices, indptr


def row_pointers(rows: Tensor, *, size: Any) -> Tensor:
    """indptr[r] = how many elements of rows are below r, 0 <= r <= size: of a matrix whose rows are given in order.

    rows: integers [n], ascending; indptr: int64[size + 1].
    """
    op = "row_pointers"
    _check_whole(op, "rows", rows)
    extent, = as_shape(op, size, 1)

    def write(ib: IRBuilder, ins: list[BufferVar], outs: list[BufferVar]) -> None:
        (given,), (indptr,) = ins, outs
        count, n = variable(ib, 0, INDEX, "count"), cast(INDEX, rows.shape[0])
        with ib.for_range(0, simplified(extent + 1), name="row") as r:
            more = variable(ib, const(True, "bool"), "bool", "more")
            with ib.while_loop(all_of(more[0], binary("lt", count[0], n))):
                more[0] = binary("lt", signed(given[count[0]]), r)
                with ib.if_scope(more[0]):
                    count[0] = count[0] + 1
            indptr[r] = count[0]
    return written(op, [((simplified(extent + 1),), INDEX)], [rows], write)[0]


__all__ = ["bsr_matmul", "csr_matmul", "csr_sampled_matmul", "csr_softmax", "csr_to_dense", "dense_to_csr",
           "row_pointers", "sparse_linear"]
