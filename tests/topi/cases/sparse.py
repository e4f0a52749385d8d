"""Samples of sparse matrices."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import FLOATS, NUMBERS, Draw, Sample, case, wide
from tests.topi.references import softmax
from tilewright import topi


def matrix(draw: Draw, dtype: str, columns: int):
    """(data, indices, indptr, the dense matrix)"""
    rows = draw.extent(5)
    there = draw.rng.random((rows, columns)) < draw.choice(0.0, 0.3, 0.7, 1.0)
    dense = draw.array((rows, columns), dtype)
    dense[~there] = 0
    places = np.argwhere(there)
    kind = draw.choice("int64", "int32")
    indptr = np.concatenate([[0], np.cumsum(there.sum(1))]).astype(kind)
    return dense[there], places[:, 1].astype(kind), indptr, dense


@case
def csr_matmul(draw: Draw) -> Sample:
    dtype, columns = draw.dtype(*NUMBERS), draw.extent(6)
    data, indices, indptr, dense = matrix(draw, dtype, columns)
    b = draw.array((columns, draw.extent(4)) if draw.flag(0.7) else (columns,), dtype)
    return Sample(topi.csr_matmul, [data, indices, indptr, b], wide(dense) @ wide(b), dtype, tolerance=2)


@case
def sparse_linear(draw: Draw) -> Sample:
    dtype, columns = draw.dtype(*NUMBERS), draw.extent(6)
    data, indices, indptr, dense = matrix(draw, dtype, columns)
    x, bias = draw.array((*draw.shape(0, 2, 3), columns), dtype), draw.array((len(dense),), dtype)
    more = [bias] if draw.flag() else []
    y = wide(x) @ wide(dense).T + (wide(bias) if more else np.zeros((), wide(bias).dtype))
    return Sample(topi.sparse_linear, [x, data, indices, indptr, *more], y, dtype,
                  [tuple(range(x.ndim)), (0,), (0,), (), *[()] * len(more)], tolerance=2)


@case
def bsr_matmul(draw: Draw) -> Sample:
    dtype, columns, p, q = draw.dtype(*NUMBERS), draw.extent(4), draw.integer(1, 3), draw.integer(1, 3)
    _, indices, indptr, pattern = matrix(draw, dtype, columns)
    data = draw.array((len(indices), p, q), dtype)
    dense = np.zeros((len(pattern), p, columns, q), wide(data).dtype)
    for r in range(len(pattern)):
        for k in range(indptr[r], indptr[r + 1]):
            dense[r, :, indices[k]] += wide(data)[k]
    b = draw.array((columns * q, draw.extent(4)), dtype)
    y = dense.reshape(len(pattern) * p, columns * q) @ wide(b)
    return Sample(topi.bsr_matmul, [data, indices, indptr, b], y, dtype, [(0,), (0,), (0,), (0, 1)], tolerance=2)


@case
def csr_sampled_matmul(draw: Draw) -> Sample:
    dtype, columns, inner = draw.dtype(*NUMBERS), draw.extent(6), draw.extent(4)
    _, indices, indptr, dense = matrix(draw, dtype, columns)
    a, b = draw.array((len(dense), inner), dtype), draw.array((inner, columns), dtype)
    rows = np.repeat(np.arange(len(dense)), np.diff(indptr))
    y = (wide(a) @ wide(b))[rows, indices]
    return Sample(topi.csr_sampled_matmul, [a, b, indices, indptr], y, dtype, [(1,), (0, 1), (0,), ()], tolerance=2)


@case
def csr_softmax(draw: Draw) -> Sample:
    dtype = draw.dtype(*FLOATS)
    data, _, indptr, dense = matrix(draw, dtype, draw.extent(6))
    parts = [softmax(wide(data)[indptr[r]:indptr[r + 1]]) for r in range(len(dense))]
    return Sample(topi.csr_softmax, [data, indptr], np.concatenate([np.zeros(0), *parts]), dtype, tolerance=2)


@case
def csr_to_dense(draw: Draw) -> Sample:
    columns = draw.extent(6)
    data, indices, indptr, dense = matrix(draw, draw.dtype(*NUMBERS), columns)
    return Sample(lambda *a: topi.csr_to_dense(*a, columns=columns), [data, indices, indptr], dense)


@case
def dense_to_csr(draw: Draw) -> Sample:
    x = draw.array(draw.shape(2, 2), draw.dtype(*NUMBERS, "bool"))
    x = np.where(draw.rng.random(x.shape) < 0.5, x, np.zeros((), x.dtype)).astype(x.dtype)
    there = wide(x) != 0
    rest = (0, x.size - int(there.sum()))
    return Sample(topi.dense_to_csr, [x], [np.pad(x[there], rest), np.pad(np.argwhere(there)[:, 1], rest),
                                           np.concatenate([[0], np.cumsum(there.sum(1), dtype="int64")])])


@case
def row_pointers(draw: Draw) -> Sample:
    size = draw.extent(6)
    rows = np.sort(draw.rng.integers(0, max(size, 1), draw.integer(0, 9) if size else 0)).astype(
        draw.choice("int64", "int32", "uint8"))
    return Sample(lambda r: topi.row_pointers(r, size=size), [rows],
                  np.searchsorted(rows.astype("int64"), np.arange(size + 1)))
