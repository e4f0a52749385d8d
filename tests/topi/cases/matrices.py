"""Samples of equations of matrices, which are far from singular."""
from __future__ import annotations

import numpy as np

from tests.topi.agreement import Draw, Sample, case, wide
from tilewright import topi

KINDS = ("float32", "float32", "float64", "float16")


def matrix(draw: Draw, lead, n: int, dtype: str) -> np.ndarray:
    """A matrix whose rows are those of one with a large diagonal, in some order."""
    x = wide(draw.array((*lead, n, n), dtype)) + 3 * n * np.eye(n)
    return np.take(x, draw.rng.permutation(n), -2).astype(draw.array((), dtype).dtype)


def drawn(draw: Draw):
    dtype = draw.dtype(*KINDS)
    return matrix(draw, draw.shape(0, 2, 3), draw.extent(5), dtype), dtype


@case
def det(draw: Draw) -> Sample:
    x, dtype = drawn(draw)
    x = (x / 4).astype(x.dtype)
    if x.shape[-1] > 1 and draw.flag(0.2):
        x[..., 0, :] = 0
    return Sample(topi.det, [x], np.linalg.det(wide(x)), dtype, tolerance=8)


@case
def slogdet(draw: Draw) -> Sample:
    x, dtype = drawn(draw)
    if x.shape[-1] > 1 and draw.flag(0.2):
        x[..., 0, :] = 0
    return Sample(topi.slogdet, [x], list(np.linalg.slogdet(wide(x))), [dtype] * 2, tolerance=8)


@case
def inverse(draw: Draw) -> Sample:
    x, dtype = drawn(draw)
    return Sample(topi.inverse, [x], np.linalg.inv(wide(x)), dtype, tolerance=8)


@case
def solve(draw: Draw) -> Sample:
    dtype, lead, n = draw.dtype(*KINDS), draw.shape(0, 2, 3), draw.extent(5)
    a = matrix(draw, draw.broadcastable(lead), n, dtype)
    b = draw.array((*draw.broadcastable(lead), n, draw.extent(3)), dtype)
    return Sample(topi.solve, [a, b], np.linalg.solve(wide(a), wide(b)), dtype, tolerance=8)


@case
def cholesky(draw: Draw) -> Sample:
    dtype, n, upper = draw.dtype(*KINDS), draw.extent(5), draw.flag()
    x = wide(draw.array((*draw.shape(0, 2, 3), n, n), dtype))
    x = (x @ np.swapaxes(x, -1, -2) + n * np.eye(n)).astype(draw.array((), dtype).dtype)
    y = np.linalg.cholesky(wide(x))
    y = np.swapaxes(y, -1, -2) if upper else y
    return Sample(lambda x: topi.cholesky(x, upper=upper), [x], y, dtype, tolerance=8)


@case
def triangular_solve(draw: Draw) -> Sample:
    dtype, lead, n = draw.dtype(*KINDS), draw.shape(0, 2, 3), draw.extent(5)
    a = (wide(draw.array((*draw.broadcastable(lead), n, n), dtype)) / max(n, 1) + 2 * np.eye(n)).astype(
        draw.array((), dtype).dtype)
    b = draw.array((*draw.broadcastable(lead), n, draw.extent(3)), dtype)
    upper, transpose, unit = draw.flag(), draw.flag(), draw.flag(0.3)
    t = np.triu(wide(a)) if upper else np.tril(wide(a))
    t = t - np.eye(n) * t + np.eye(n) if unit else t
    t = np.swapaxes(t, -1, -2) if transpose else t
    attrs = {"upper": upper, "transpose": transpose, "unit_diagonal": unit}
    y = np.linalg.solve(t, wide(b))
    return Sample(lambda *v: topi.triangular_solve(*v, **attrs), [a, b], y, dtype, tolerance=8)


@case
def matrix_power(draw: Draw) -> Sample:
    x, dtype = drawn(draw)
    exponent, x = draw.integer(-2, 5), (x / 4).astype(x.dtype)
    if dtype == "float16":
        exponent = draw.integer(0, 1)
    return Sample(lambda x: topi.matrix_power(x, exponent=exponent), [x], np.linalg.matrix_power(wide(x), exponent),
                  dtype, tolerance=16)
