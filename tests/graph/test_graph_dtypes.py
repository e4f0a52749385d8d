"""Networks, sums and optimizers in every float type."""
import ml_dtypes
import numpy as np
import pytest

from tilewright import graph
from tilewright.graph import SGD, Adam, Executor, Momentum, gradients, parameter, placeholder

RANDOM = np.random.RandomState(5)
DTYPES = {"float64": ("float64", 1e-12), "float32": ("float32", 1e-5), "float16": ("float16", 4e-3),
          "bfloat16": (ml_dtypes.bfloat16, 3e-2)}


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@pytest.mark.parametrize("name", DTYPES)
def test_a_network_in_every_dtype(name):
    dtype, tolerance = DTYPES[name]
    arrays = [RANDOM.normal(0, 0.5, s) for s in ((7, 9), (9, 5), (5,))]
    x, y = placeholder("x"), placeholder("y")
    w, b = parameter("w", arrays[1].astype(dtype)), parameter("b", arrays[2].astype(dtype))
    labels = np.eye(5)[RANDOM.randint(0, 5, 7)]
    logits = graph.dense(x, w, b)
    loss = graph.softmax_cross_entropy(logits, y)
    outputs = [logits, graph.softmax(logits), loss, *gradients(loss, [w, b])]
    got = Executor(outputs).run({x: arrays[0].astype(dtype), y: labels.astype(dtype)})
    xs, ws, bs = (np.asarray(a.astype(dtype), "float64") for a in arrays)
    z = xs @ ws + bs
    d = (softmax(z) - labels) / 7
    want = [z, softmax(z), np.array([-(labels * np.log(softmax(z))).sum() / 7]), xs.T @ d, d.sum(0)]
    for g, r in zip(got, want):
        assert g.dtype == name
        np.testing.assert_allclose(g.numpy().astype("float64"), r, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_sums_of_short_floats_are_not_rounded_on_the_way(name):
    """2000 ones and 3000 halves: in 16 bits, the sum would stop growing on the way."""
    dtype = DTYPES[name][0]
    a = np.concatenate([np.ones(2000), np.full(3000, 0.5)]).astype(dtype)
    x, rows = placeholder("x"), placeholder("rows")
    outputs = [graph.reduce_sum(x), graph.matmul(rows, rows, tb=True)]
    total, product = Executor(outputs).run({x: a, rows: a.reshape(1, -1)})
    assert float(total.numpy()[0]) == float(np.asarray(3500, dtype))
    assert float(product.numpy()[0, 0]) == float(np.asarray(2750, dtype))


def test_what_a_sum_of_short_floats_reads_is_part_of_its_kernel():
    x = placeholder("x")
    ex = Executor([graph.reduce_sum(graph.relu(x), 1)])
    a = RANDOM.normal(0, 1, (6, 9)).astype("float16")
    total, = ex.run({x: a})
    assert [k.operators for k in ex.step.kernels] == [("relu", "reducesum")]
    np.testing.assert_allclose(total.numpy(), np.maximum(a.astype("float64"), 0).sum(1), rtol=2e-3)


@pytest.mark.parametrize("name", DTYPES)
@pytest.mark.parametrize("optimizer", [SGD(0.5), Momentum(0.25, 0.5), Adam(0.125)])
def test_optimizers_in_every_dtype(name, optimizer):
    p = parameter("p", np.full(3, 4.0).astype(DTYPES[name][0]))
    loss = graph.reduce_sum(p * p)
    ex = Executor([loss], optimizer.minimize(loss, [p]))
    values = [float(ex.run()[0].numpy()[0]) for _ in range(12)]
    assert values[0] == 48 and values[-1] < 30 and np.isfinite(values).all()
    assert p.data.dtype == name


def test_parameters_of_two_dtypes_in_one_optimizer():
    p, q = parameter("p", np.ones(2, "float32")), parameter("q", np.ones(2, "float64"))
    loss = graph.reduce_sum(p * p) + graph.reduce_sum(graph.cast(parameter("c", np.ones(2)), "float32"))
    ex = Executor([loss], [*Adam(0.1).minimize(loss, [p]), *Adam(0.1).minimize(graph.reduce_sum(q * q), [q])])
    ex.run()
    np.testing.assert_allclose(p.data.numpy(), q.data.numpy(), rtol=1e-6)
