"""Gradients: of gradients, of values used in several ways, of the operators of Python."""
from dataclasses import dataclass

import numpy as np
import pytest

from tilewright import graph, topi
from tilewright.graph import SGD, Executor, Update, gradients, parameter, placeholder
from tilewright.graph.operator import Operator
from tilewright.support.errors import GraphError

RANDOM = np.random.RandomState(5)


def f32(*shape): return np.asarray(RANDOM.normal(0, 1, shape), "float32")


def test_a_gradient_of_a_value_that_is_an_output_too():
    a, c = f32(4, 3), f32(3, 2)
    x, w = parameter("x", a), parameter("w", c)
    h = graph.tanh(graph.matmul(x, w))
    loss = graph.reduce_sum(h * h)
    dh, dw = gradients(loss, [h, w])
    got = [t.numpy() for t in Executor([h, dh, loss, dw, h]).run()]
    want = np.tanh(a.astype("float64") @ c)
    for value, reference in zip(got, [want, 2 * want, (want * want).sum(keepdims=True).reshape(1),
                                      a.T.astype("float64") @ (2 * want * (1 - want * want)), want]):
        np.testing.assert_allclose(value, reference, rtol=1e-4, atol=1e-5)


def test_a_gradient_with_respect_to_the_loss_is_one():
    x = parameter("x", f32(3))
    loss = graph.reduce_sum(x)
    np.testing.assert_array_equal(Executor(gradients(loss, [loss])).run()[0].numpy(), [1.0])


@dataclass(frozen=True)
class Steps(Operator):
    """The sign of x, which has no gradient."""

    def compute(self, x):
        return topi.sign(x)


def test_what_stands_behind_a_value_needs_no_gradient():
    x = parameter("x", f32(4))
    h = Steps()(x)
    loss = graph.reduce_sum(h * h)
    got, = gradients(loss, [h])
    np.testing.assert_array_equal(Executor([got]).run()[0].numpy(), 2 * np.sign(x.data.numpy()))
    with pytest.raises(GraphError, match="Steps has no gradient"):
        gradients(loss, [x])


def test_gradients_of_gradients():
    a = RANDOM.normal(0, 1, 5)
    x = parameter("x", a)
    first, = gradients(graph.reduce_sum(x * x * x), [x])
    second, = gradients(graph.reduce_sum(first), [x])
    np.testing.assert_allclose(Executor([second]).run()[0].numpy(), 6 * a, rtol=1e-12)


def test_parameters_that_nothing_uses_are_left_alone():
    p, q = parameter("p", f32(3)), parameter("q", f32(3))
    loss = graph.reduce_sum(p)
    with pytest.raises(GraphError, match="does not depend on q"):
        SGD(0.1).minimize(loss, [p, q])
    before = q.data.numpy()
    Executor([loss], SGD(0.1).minimize(loss, [p])).run()
    np.testing.assert_array_equal(q.data.numpy(), before)


def test_an_update_by_a_constant_value():
    p, q = parameter("p", f32(3)), parameter("q", f32(3))
    Executor([], [Update(p, q)]).run()
    np.testing.assert_array_equal(p.data.numpy(), q.data.numpy())


@pytest.mark.parametrize("build, reference", [
    (lambda x: 2 - x, lambda a: 2 - a), (lambda x: x - 2, lambda a: a - 2), (lambda x: 2 / x, lambda a: 2 / a),
    (lambda x: x / 3, lambda a: a / 3), (lambda x: x / 8, lambda a: a / 8), (lambda x: x / -0.1, lambda a: a / -0.1),
    (lambda x: np.float32(2) * x, lambda a: 2 * a), (lambda x: x + np.int64(3), lambda a: a + 3),
    (lambda x: -x * x, lambda a: -a * a), (lambda x: x ** 2, lambda a: a ** 2), (lambda x: x ** 3, lambda a: a ** 3),
    (lambda x: x ** -1.5, lambda a: a ** -1.5), (lambda x: x ** 0.5, np.sqrt), (lambda x: x ** 0, lambda a: a ** 0),
    (lambda x: (x @ x) @ x, lambda a: a @ a @ a),
])
def test_operators_of_python_and_their_gradients(build, reference):
    a = RANDOM.uniform(0.5, 2, (4, 4))
    x = parameter("x", a)
    y = build(x)
    value, slope = Executor([y, *gradients(graph.reduce_sum(y), [x])]).run()
    np.testing.assert_allclose(value.numpy(), reference(a), rtol=1e-13)
    for i in np.ndindex(2, 2):
        step = np.zeros((4, 4))
        step[i] = 1e-6
        want = (reference(a + step) - reference(a - step)).sum() / 2e-6
        np.testing.assert_allclose(slope.numpy()[i], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("build", [
    lambda x: f32(3) + x, lambda x: x * f32(3), lambda x: f32(3, 3) @ x, lambda x: x @ f32(3, 3), lambda x: x ** x,
    lambda x: x + "1", lambda x: x / 0, lambda x: x / np.float32(0), lambda x: x + True, lambda x: x + 1j,
])
def test_operators_refuse_what_is_no_number(build):
    with pytest.raises(GraphError):
        build(placeholder("x"))
