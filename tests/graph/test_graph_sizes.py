"""Graphs of thousands of values, and arrays of no elements."""
import numpy as np
import pytest

from tilewright import graph
from tilewright.graph import SGD, Executor, parameter, placeholder
from tilewright.graph.passes.fuse import MOST_CALLS

RANDOM = np.random.RandomState(5)


def f32(*shape): return np.asarray(RANDOM.normal(0, 1, shape), "float32")


def test_a_chain_of_3000_elementwise_operators():
    x = placeholder("x")
    v = x
    for _ in range(3000):
        v = v + 0.5
    ex = Executor([v])
    y, = ex.run({x: f32(3) * 0})
    np.testing.assert_allclose(y.numpy(), np.full(3, 1500.0))
    assert max(len(k.operators) for k in ex.step.kernels) == MOST_CALLS


def test_a_chain_of_3000_products_is_compiled_once_and_lives_in_two_places():
    x, w = placeholder("x"), parameter("w", np.eye(4, dtype="float32") * np.float32(0.999))
    v = x
    for _ in range(3000):
        v = graph.matmul(v, w)
    ex = Executor([v])
    a = f32(2, 4)
    np.testing.assert_allclose(ex.run({x: a})[0].numpy(), a * 0.999 ** 3000, rtol=1e-3)
    assert len({k.name for k in ex.step.kernels}) == 1
    assert ex.memory.planned == ex.memory.lower_bound == 128


def test_training_a_chain_of_500_layers():
    x, w = placeholder("x"), parameter("w", np.full((1, 1), 1.0, "float32"))
    v = x
    for _ in range(500):
        v = graph.tanh(graph.matmul(v, w))
    loss = graph.reduce_sum(v)
    ex = Executor([loss], SGD(0.1).minimize(loss, [w]))
    value, = ex.run({x: np.full((1, 1), 0.5, "float32")})
    want, slope = 0.5, 0.0
    for _ in range(500):
        slope = (1 - np.tanh(want) ** 2) * (want + slope)
        want = np.tanh(want)
    np.testing.assert_allclose(value.numpy()[0], want, rtol=1e-3)
    np.testing.assert_allclose(w.data.numpy()[0, 0], 1 - 0.1 * slope, rtol=1e-3)


def test_a_batch_of_no_rows_trains_and_changes_nothing():
    x, y = placeholder("x"), placeholder("y")
    w, b = parameter("w", f32(5, 3)), parameter("b", f32(3))
    loss = graph.softmax_cross_entropy(graph.relu(graph.dense(x, w, b)), y)
    ex = Executor([loss], SGD(0.1).minimize(loss, [w, b]))
    before = w.data.numpy(), b.data.numpy()
    value, = ex.run({x: f32(0, 5), y: f32(0, 3)})
    assert value.numpy()[0] == 0
    np.testing.assert_array_equal(w.data.numpy(), before[0])
    np.testing.assert_array_equal(b.data.numpy(), before[1])
    ex.run({x: f32(64, 5), y: f32(64, 3)})               # so many that relu cannot cut them all off
    assert (w.data.numpy() != before[0]).any()


@pytest.mark.parametrize("build, shape", [
    (graph.softmax, (0, 4)), (lambda v: graph.reduce_sum(v, 0), (0, 4)), (lambda v: graph.reduce_sum(v, 1), (4, 0)),
    (graph.reduce_sum, (0, 3)), (lambda v: graph.matmul(v, v, tb=True), (3, 0)), (lambda v: v * 2.0, (0,)),
])
def test_operators_on_nothing(build, shape):
    x = placeholder("x")
    y, = Executor([build(x)]).run({x: np.zeros(shape, "float32")})
    assert not y.numpy().any()


def test_sums_over_no_axes_and_of_numbers():
    x = placeholder("x")
    outputs = [graph.reduce_sum(x, ()), graph.reduce_sum(x), graph.broadcast_to(x, (2, 2)), x * 2.0]
    for array in (f32(), f32(2, 2)):
        same, total, wide, twice = (t.numpy() for t in Executor(outputs).run({x: array}))
        np.testing.assert_array_equal(same, array.reshape(same.shape))
        np.testing.assert_allclose(total, [array.sum()], rtol=1e-6)
        np.testing.assert_array_equal(wide, np.broadcast_to(array, (2, 2)))
        np.testing.assert_array_equal(twice, 2 * array)
