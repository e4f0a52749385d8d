"""Samples of products."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import FLOATS, NUMBERS, Draw, Sample, case, wide
from tilewright import topi


def swapped(x, yes):
    return np.swapaxes(x, -1, -2) if yes else x


@case
def matmul(draw: Draw) -> Sample:
    dtype, m, k, n = draw.dtype(*NUMBERS), draw.extent(), draw.extent(), draw.extent()
    batch = draw.shape(0, 2, 3)
    rank_a, rank_b = draw.flag(0.85), draw.flag(0.85)
    ta, tb = rank_a and draw.flag(0.3), rank_b and draw.flag(0.3)
    own_a, own_b = (k, m) if ta else (m, k) if rank_a else (k,), (n, k) if tb else (k, n) if rank_b else (k,)
    a = draw.array((*(draw.broadcastable(batch) if rank_a else ()), *own_a), dtype)
    b = draw.array((*(draw.broadcastable(batch) if rank_b else ()), *own_b), dtype)
    out = "int32" if dtype == "int8" and draw.flag() else None
    kind = out or str(a.dtype)
    left, right = swapped(wide(a), ta), swapped(wide(b), tb)
    if out:
        left, right = left.astype(out), right.astype(out)
    return Sample(lambda a, b: topi.matmul(a, b, transpose_a=ta, transpose_b=tb, out_dtype=out), [a, b],
                  np.matmul(left, right), kind)


@case
def linear(draw: Draw) -> Sample:
    dtype, c, o, bias = draw.dtype(), draw.extent(), draw.extent(), draw.flag()
    x, w, b = draw.array((*draw.shape(0, 3), c), dtype), draw.array((o, c), dtype), draw.array((o,), dtype)
    return Sample(topi.linear, [x, w, b] if bias else [x, w], wide(x) @ wide(w).T + (wide(b) if bias else 0), dtype)


@case
def indexed_matmul(draw: Draw) -> Sample:
    dtype, n, k, o, m = draw.dtype(*NUMBERS), draw.extent(), draw.extent(), draw.extent(), draw.integer(1, 4)
    x, w = draw.array((n, k), dtype), draw.array((m, k, o), dtype)
    i = draw.rng.integers(-m, m, n).astype(draw.choice("int64", "int32"))
    return Sample(topi.indexed_matmul, [x, w, i], np.einsum("ik,iko->io", wide(x), wide(w)[i]), dtype)


@case
def grouped_matmul(draw: Draw) -> Sample:
    dtype, n, k, o, m = draw.dtype(*NUMBERS), draw.extent(), draw.extent(), draw.extent(), draw.extent(4)
    x, w = draw.array((n, k), dtype), draw.array((m, k, o), dtype)
    if not m and n:
        x, n = x[:0], 0
    ends = np.sort(draw.rng.integers(0, n + 1, m)).astype(draw.choice("int64", "int32"))
    y, start = np.zeros((n, o), wide(x).dtype), 0
    for g, end in enumerate(ends):
        y[start:end] = wide(x)[start:end] @ wide(w)[g]
        start = end
    return Sample(topi.grouped_matmul, [x, w, ends], y, dtype)


@case
def bilinear(draw: Draw) -> Sample:
    dtype, lead, n, m, o = draw.dtype(), draw.shape(0, 2), draw.extent(), draw.extent(), draw.extent()
    a, b, w = draw.array((*lead, n), dtype), draw.array((*lead, m), dtype), draw.array((o, n, m), dtype)
    bias = draw.array((o,), dtype)
    y = np.einsum("...i,oij,...j->...o", *map(wide, (a, w, b))) + wide(bias)
    return Sample(topi.bilinear, [a, b, w, bias], y, dtype, tolerance=2)


@case
def outer(draw: Draw) -> Sample:
    dtype = draw.dtype(*NUMBERS)
    a, b = draw.array((draw.extent(),), dtype), draw.array((draw.extent(),), dtype)
    return Sample(topi.outer, [a, b], np.outer(wide(a), wide(b)), dtype)


@case
def kron(draw: Draw) -> Sample:
    dtype, rank = draw.dtype(*NUMBERS), draw.integer(0, 3)
    a, b = draw.array(draw.shape(rank, rank, 3), dtype), draw.array(draw.shape(rank, rank, 3), dtype)
    return Sample(topi.kron, [a, b], np.kron(wide(a), wide(b)), dtype)


@case
def vecdot(draw: Draw) -> Sample:
    dtype, rank = draw.dtype(*NUMBERS), draw.integer(1, 3)
    axis = draw.integer(-rank, -1)
    shape = draw.shape(rank, rank, 4)
    a, b = (tuple(n if k == rank + axis or draw.flag(0.7) else 1 for k, n in enumerate(shape)) for _ in "ab")
    x, y = draw.array(a, dtype), draw.array(b, dtype)
    return Sample(lambda x, y: topi.vecdot(x, y, axis=axis), [x, y],
                  (wide(x) * wide(y)).sum(axis, dtype="float64" if dtype in FLOATS else dtype), dtype)


@case
def tensordot(draw: Draw) -> Sample:
    dtype, rank = draw.dtype(*NUMBERS), draw.integer(1, 3)
    shape = draw.shape(rank, rank, 4)
    perm, pairs = [int(p) for p in draw.rng.permutation(rank)], draw.integer(0, rank)
    a, b = draw.array(shape, dtype), draw.array([shape[p] for p in perm], dtype)
    axes = ([perm[n] - rank * draw.flag(0.3) for n in range(pairs)], list(range(pairs)))
    if draw.flag(0.3):
        axes, b = draw.integer(0, rank), None
        b = draw.array((*shape[rank - axes:], *draw.shape(0, 2, 3)), dtype)
    return Sample(lambda a, b: topi.tensordot(a, b, axes=axes), [a, b], np.tensordot(wide(a), wide(b), axes), dtype)


EQUATIONS = ("ij,jk->ik", "ij,jk", "bik,bjk->bij", "ii->i", "ii", "ij->ji", "ij->", "i,j->ij", "...ij,...jk->...ik",
             "bhid,bhjd->bhij", "ij,ij->", "ij,jk,kl->il", "...i->...", "ijk,j->ik", "abc,cd,bd->a", "i,i,i", "ij,kl",
             "b...,b...->...", "ij...->...j", "aab->b", "ji", "i...")


@case
def einsum(draw: Draw) -> Sample:
    dtype, equation = draw.dtype("float32", "float64", "int32", "uint8"), draw.choice(*EQUATIONS)
    sizes = {c: draw.extent(4) for c in "abcdhijkl"}
    dots = draw.shape(0, 2, 3)
    arrays = []
    for text in equation.split("->")[0].split(","):
        head, dot, tail = text.partition("...")
        arrays.append(draw.array((*(sizes[c] for c in head), *(draw.broadcastable(dots) if dot else ()),
                                  *(sizes[c] for c in tail)), dtype))
    y = np.einsum(equation, *map(wide, arrays))
    return Sample(lambda *xs: topi.einsum(equation, *xs), arrays, y, dtype)


@case
def multi_dot(draw: Draw) -> Sample:
    sizes = [draw.extent(6) for _ in range(draw.integer(2, 5))]
    arrays = [draw.array(s, "float64") for s in zip(sizes, sizes[1:])]
    y = arrays[0]
    for x in arrays[1:]:
        y = y @ x
    return Sample(topi.multi_dot, arrays, y)


@case
def trace(draw: Draw) -> Sample:
    dtype, n = draw.dtype(*NUMBERS), draw.extent()
    x = draw.array((*draw.shape(0, 2, 3), n, n), dtype)
    kind = "float64" if dtype in FLOATS else dtype
    return Sample(topi.trace, [x], np.trace(wide(x), axis1=-2, axis2=-1, dtype=kind), dtype)


@case
def addmm(draw: Draw) -> Sample:
    dtype, m, k, n = draw.dtype("float32", "float64"), draw.extent(), draw.extent(), draw.extent()
    ta, tb = draw.flag(), draw.flag()
    a, b = draw.array((k, m) if ta else (m, k), dtype), draw.array((n, k) if tb else (k, n), dtype)
    c = draw.array(draw.broadcastable((m, n)), dtype)
    alpha, beta = draw.choice(1.0, 0.5), draw.choice(1.0, -2.0)
    attrs = {"alpha": alpha, "beta": beta, "transpose_a": ta, "transpose_b": tb}
    return Sample(lambda c, a, b: topi.addmm(c, a, b, **attrs), [c, a, b],
                  beta * wide(c) + alpha * (swapped(wide(a), ta) @ swapped(wide(b), tb)), dtype)


