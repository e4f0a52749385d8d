"""log_softmax and the losses against mpmath: within 4 ulp of the exact result, for hard logits too."""
import functools
import zlib

import mpmath
import numpy as np
import pytest
from graph_checks import check_operator

from tilewright import graph
from tilewright.graph.operators.broadcast import ReduceSum
from tilewright.graph.operators.nn import PerRow
from tilewright.tir import dtype as dt

ULPS = 4
SOFTMAX_ULPS = 6                                 # a quotient of two that have errors
SHAPES = [(40, 2), (12, 10), (2, 300)]


def choice(rng, values, shape):
    return np.array(values)[rng.integers(0, len(values), shape)]


# name -> logits of a shape
LOGITS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "wide": lambda rng, shape: 100 * rng.normal(size=shape),
    "one far above": lambda rng, shape: rng.normal(size=shape)
    + np.eye(shape[1])[rng.integers(0, shape[1], shape[0])] * rng.uniform(0, 120, (shape[0], 1)),
    "nearly equal": lambda rng, shape: 1e-5 * rng.normal(size=shape),
    "on a large base": lambda rng, shape: 1e4 + rng.normal(size=shape),
    "huge": lambda rng, shape: choice(rng, [1e30, -1e30, 9.99e29, 1.0, 0.0], shape),
    "of all sizes": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-5, 30, shape),
    "equal": lambda rng, shape: np.ones(shape) * 10.0 ** rng.integers(-5, 31, (shape[0], 1)),
    "far below": lambda rng, shape: rng.uniform(-110, 0, shape),
    "masked": lambda rng, shape: np.where(np.arange(shape[1]) % 2 == 1, -np.inf, rng.normal(size=shape)),
}


@pytest.fixture(autouse=True)
def enough_digits():
    """For differences of 1e30 and 1e-5 in float64."""
    with mpmath.workprec(300):
        yield


@functools.cache
def executor():
    x, p = graph.placeholder("x"), graph.placeholder("p")
    losses = [graph.softmax_cross_entropy(x, p, reduction) for reduction in ("sum", "mean")]
    return x, p, graph.Executor([graph.softmax(x), graph.log_softmax(x), *losses])


def run(logits, labels):
    x, p, step = executor()
    return [y.numpy() for y in step.run({x: logits, p: labels})]


def exact_log_softmax(logits):
    """By mpmath; log1p, since what is beside the largest logit may be exp(-700)."""
    rows = []
    for row in logits:
        row = [mpmath.mpf(float(v)) for v in row]
        top = row.index(max(row))
        below = [v - row[top] for v in row]
        log = mpmath.log1p(sum(mpmath.exp(v) for k, v in enumerate(below) if k != top))
        rows.append([v - log for v in below])
    return rows


def ulps(got, exact, dtype, columns):
    """Distance in units of the last place of the exact value, or of the smallest normal number for each column: what
    sums of numbers below it lose.
    """
    if got == exact or mpmath.isinf(exact) and float(got) == float(exact):
        return 0.0
    bits = dt.SMALL_FLOATS[dtype].mantissa + 1 if dtype in dt.SMALL_FLOATS else np.finfo(dtype).nmant + 1
    least = float(dt.SMALL_FLOATS[dtype].least_normal if dtype in dt.SMALL_FLOATS else np.finfo(dtype).tiny)
    exponent = mpmath.frexp(max(abs(exact), mpmath.mpf(least * columns)))[1]
    return float(abs(mpmath.mpf(float(got)) - exact) / mpmath.ldexp(1, exponent - bits))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("kind", LOGITS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_within_four_ulps(shape, kind, dtype):
    rng = np.random.default_rng(zlib.crc32(f"{shape} {kind} {dtype}".encode()))
    with np.errstate(over="ignore"):
        logits = LOGITS[kind](rng, shape).astype(dt.numpy_dtype(dtype))
    exact = exact_log_softmax(logits)
    labels = rng.random(shape)
    if kind == "masked":
        labels[:, 1::2] = 0
    labels = (labels / labels.sum(1, keepdims=True)).astype(logits.dtype)
    soft, log, total, mean = run(logits, labels)
    columns = shape[1]
    points = [(i, j) for i in range(shape[0]) for j in range(shape[1])]
    assert max(ulps(log[i, j], exact[i][j], dtype, columns) for i, j in points) <= ULPS
    assert max(ulps(soft[i, j], mpmath.exp(exact[i][j]), dtype, columns) for i, j in points) <= SOFTMAX_ULPS
    loss = -sum(mpmath.mpf(float(labels[i, j])) * exact[i][j] for i, j in points if labels[i, j])
    assert ulps(total[0], loss, dtype, columns) <= ULPS and ulps(mean[0], loss / shape[0], dtype, columns) <= ULPS
    hot = np.eye(shape[1], dtype=logits.dtype)[logits.astype("float64").argmax(1)]
    loss = -sum(max(row) for row in exact)
    assert ulps(run(logits, hot)[2][0], loss, dtype, columns) <= ULPS


def test_a_class_without_a_label_may_have_the_logit_minus_infinity_and_no_other():
    logits = np.array([[0, -np.inf, 0]], "float32")
    assert run(logits, np.array([[1, 0, 0]], "float32"))[2][0] == np.float32(np.log(2))
    assert run(logits, np.array([[0, 1, 0]], "float32"))[2][0] == np.inf


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", [0, 1, 2])
def test_nan_and_infinity_reach_the_whole_row_and_no_other(bad, where):
    logits = np.zeros((2, 3), "float32")
    logits[0, where] = bad
    soft, log, total, _ = run(logits, np.full((2, 3), 1 / 3, "float32"))
    assert np.isnan(soft[0]).all() and np.isnan(log[0]).all() and np.isnan(total).all()
    assert np.isfinite(soft[1]).all() and np.isfinite(log[1]).all()
    empty = np.full((1, 3), -np.inf, "float32")
    assert np.isnan(run(empty, np.full((1, 3), 1 / 3, "float32"))[1]).all()


@pytest.mark.parametrize("scale", [1.0, 30.0, 1e30])
def test_gradients_of_large_logits(scale):
    """softmax - labels, by NumPy in extended precision."""
    rng = np.random.default_rng(0)
    logits = (scale * rng.normal(size=(6, 5))).astype("float32")
    labels = np.eye(5, dtype="float32")[rng.integers(0, 5, 6)]
    w, p = graph.parameter("w", logits), graph.placeholder("p")
    loss = graph.softmax_cross_entropy(w, p, "sum")
    log = graph.reduce_sum(graph.multiply(graph.log_softmax(w), graph.negative(p)))
    grads = [graph.gradients(y, [w])[0] for y in (loss, log)]
    e = np.exp(logits.astype("longdouble") - logits.max(1, keepdims=True))
    for got in graph.Executor(grads).run({p: labels}):
        np.testing.assert_allclose(got.numpy(), e / e.sum(1, keepdims=True) - labels, atol=3e-7)


def test_a_mean_over_rows_of_any_values():
    """What losses of one's own are made of: the share of each row, then the sum."""
    x = np.random.default_rng(0).normal(0, 1, (6, 5))
    check_operator(lambda x: ReduceSum()(PerRow()(x)), lambda x: np.reshape(x.sum() / 6, (1,)), [x])
