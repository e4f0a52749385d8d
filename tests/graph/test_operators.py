"""Every operator against NumPy in float64, and its gradient against central differences of that."""
from dataclasses import dataclass

import numpy as np
import pytest
from graph_checks import check_forward, check_gradients

from tilewright import graph, te
from tilewright.graph import Executor, gradients, parameter, placeholder
from tilewright.graph.operator import Operator
from tilewright.graph.operators.elementwise import Elementwise, Reciprocal
from tilewright.support.errors import GraphError

RANDOM = np.random.RandomState(7)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def conv2d(x, w, stride=1, padding=0):
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    r, s = w.shape[2:]
    h, v = (x.shape[2] - r) // stride + 1, (x.shape[3] - s) // stride + 1
    y = np.zeros((x.shape[0], w.shape[0], h, v))
    for a in range(r):
        for b in range(s):
            part = x[:, :, a:a + stride * (h - 1) + 1:stride, b:b + stride * (v - 1) + 1:stride]
            y += np.einsum("nchw,mc->nmhw", part, w[:, :, a, b])
    return y


def positive(*shape): return RANDOM.uniform(0.5, 2.0, shape)
def normal(*shape): return RANDOM.normal(0, 1, shape)


CASES = {
    "add": (lambda a, b: a + b, lambda a, b: a + b, [normal(3, 5), normal(3, 5)]),
    "add_const": (lambda a: a + 2.5, lambda a: a + 2.5, [normal(7)]),
    "sub": (lambda a, b: a - b, lambda a, b: a - b, [normal(4, 1), normal(4, 1)]),
    "rsub": (lambda a: 1.0 - a, lambda a: 1.0 - a, [normal(4, 3)]),
    "mul": (lambda a, b: a * b, lambda a, b: a * b, [normal(2, 3, 4), normal(2, 3, 4)]),
    "mul_const": (lambda a: a * -3.0, lambda a: a * -3.0, [normal(5, 2)]),
    "div": (lambda a, b: a / b, lambda a, b: a / b, [normal(3, 4), positive(3, 4)]),
    "reciprocal": (lambda a: 2.0 / a, lambda a: 2.0 / a, [positive(3, 4)]),
    "neg": (lambda a: -a, lambda a: -a, [normal(11)]),
    "exp": (graph.exp, np.exp, [normal(3, 4)]),
    "log": (graph.log, np.log, [positive(3, 4)]),
    "sqrt": (graph.sqrt, np.sqrt, [positive(3, 4)]),
    "tanh": (graph.tanh, np.tanh, [normal(3, 4)]),
    "sigmoid": (graph.sigmoid, lambda x: 1 / (1 + np.exp(-x)), [normal(3, 4)]),
    "relu": (graph.relu, lambda x: np.maximum(x, 0), [normal(13, 7)]),
    "matmul": (graph.matmul, lambda a, b: a @ b, [normal(5, 7), normal(7, 3)]),
    "matmul_ta": (lambda a, b: graph.matmul(a, b, ta=True), lambda a, b: a.T @ b, [normal(7, 5), normal(7, 3)]),
    "matmul_tb": (lambda a, b: graph.matmul(a, b, tb=True), lambda a, b: a @ b.T, [normal(5, 7), normal(3, 7)]),
    "matmul_tt": (lambda a, b: graph.matmul(a, b, ta=True, tb=True), lambda a, b: a.T @ b.T,
                  [normal(7, 5), normal(3, 7)]),
    "dense": (graph.dense, lambda x, w, b: x @ w + b, [normal(6, 4), normal(4, 9), normal(9)]),
    "broadcast_to": (lambda a: graph.broadcast_to(a, (4, 3, 5)), lambda a: np.broadcast_to(a, (4, 3, 5)),
                     [normal(3, 1)]),
    "broadcast_like": (graph.broadcast_like, lambda a, b: np.broadcast_to(a, b.shape), [normal(1, 5), normal(3, 5)]),
    "reduce_sum": (graph.reduce_sum, lambda a: a.sum(keepdims=True).reshape(1), [normal(3, 5)]),
    "reduce_sum_0": (lambda a: graph.reduce_sum(a, 0), lambda a: a.sum(0), [normal(6, 5)]),
    "reduce_sum_keep": (lambda a: graph.reduce_sum(a, (0, 2), True), lambda a: a.sum((0, 2), keepdims=True),
                        [normal(2, 3, 4)]),
    "softmax": (graph.softmax, softmax, [normal(4, 6)]),
    "log_softmax": (graph.log_softmax, lambda x: np.log(softmax(x)), [normal(4, 6)]),
    "cross_entropy": (graph.softmax_cross_entropy, lambda x, p: np.array([-(p * np.log(softmax(x))).sum() / len(x)]),
                      [normal(5, 4), positive(5, 4)]),
    "cross_entropy_sum": (lambda x, p: graph.softmax_cross_entropy(x, p, reduction="sum"),
                          lambda x, p: np.array([-(p * np.log(softmax(x))).sum()]), [normal(5, 4), positive(5, 4)]),
    "conv2d": (graph.conv2d, conv2d, [normal(2, 3, 6, 7), normal(4, 3, 3, 2)]),
    "conv2d_strided": (lambda x, w: graph.conv2d(x, w, stride=2, padding=1), lambda x, w: conv2d(x, w, 2, 1),
                       [normal(1, 2, 7, 6), normal(3, 2, 3, 3)]),
}


@pytest.mark.parametrize("schedule", ["rules", "default"])
@pytest.mark.parametrize("name", CASES)
def test_forward(name, schedule):
    check_forward(*CASES[name], schedule)


@pytest.mark.parametrize("name", CASES)
def test_gradient(name):
    check_gradients(*CASES[name], wrt=[0] if name == "broadcast_like" else None)


def test_a_value_with_two_readers_sums_their_gradients():
    a = np.array([[0.5, -1.0], [2.0, 3.0]])
    x = parameter("x", a)
    got, = Executor(gradients(graph.reduce_sum(x * x + graph.exp(x) + x), [x])).run()
    np.testing.assert_allclose(got.numpy(), 2 * a + np.exp(a) + 1, rtol=1e-12)


def test_reciprocal_of_zero_is_infinite():
    y, = Executor([Reciprocal(1.0)(parameter("x", np.zeros(3, "float32")))]).run()
    assert np.isinf(y.numpy()).all()


WRONG = {
    "shapes differ": lambda: parameter("a", np.zeros((2, 3), "float32")) + parameter("b", np.zeros((3, 2), "float32")),
    "contracted axes differ, 3 != 2": lambda: graph.matmul(parameter("a", np.zeros((2, 3), "float32")),
                                                          parameter("b", np.zeros((2, 3), "float32"))),
    "dtypes differ": lambda: parameter("a", np.zeros(3, "float32")) + parameter("b", np.zeros(3, "float64")),
    "not a float": lambda: graph.exp(parameter("a", np.zeros(3, "int32"))),
    "cannot repeat": lambda: graph.broadcast_to(parameter("a", np.zeros(3, "float32")), (4,)),
    "names one axis twice": lambda: graph.reduce_sum(parameter("a", np.zeros((3, 3), "float32")), (0, -2)),
    "axis is no integer": lambda: graph.reduce_sum(parameter("a", np.zeros((3, 3), "float32")), True),
    "the shape is not made of natural numbers": lambda: graph.broadcast_to(parameter("a", np.zeros(3, "float32")),
                                                                           (True, 3)),
    "stride is True": lambda: graph.conv2d(*[parameter("a", np.zeros((1, 1, 2, 2), "float32"))] * 2, True),
    "too large for float64": lambda: parameter("a", np.zeros(3, "float32")) * 10**400,
    "keepdims is not True or False": lambda: graph.reduce_sum(parameter("a", np.zeros(3, "float32")), 0, "no"),
    "ta and tb are not True or False": lambda: graph.matmul(*[parameter("a", np.zeros((2, 2), "float32"))] * 2, 2),
    "the kernel has no element": lambda: graph.conv2d(parameter("a", np.zeros((1, 1, 2, 2), "float32")),
                                                      parameter("w", np.zeros((1, 1, 0, 1), "float32"))),
    "axis 2": lambda: graph.reduce_sum(parameter("a", np.zeros((3, 3), "float32")), 2),
    "needs rank 2": lambda: graph.softmax(parameter("a", np.zeros(3, "float32"))),
    "channels": lambda: graph.conv2d(parameter("a", np.zeros((1, 2, 5, 5), "float32")),
                                     parameter("w", np.zeros((1, 3, 2, 2), "float32"))),
    "does not fit": lambda: graph.conv2d(parameter("a", np.zeros((1, 2, 2, 2), "float32")),
                                         parameter("w", np.zeros((1, 2, 3, 3), "float32"))),
}


@pytest.mark.parametrize("message", WRONG)
def test_refusals(message):
    with pytest.raises(GraphError, match=message):
        Executor([WRONG[message]()]).run()


def shift_and_scale():
    """Two operators of one module, one qualified name and one repr, such as a notebook defines one after the other."""
    def define(formula):
        @dataclass(frozen=True)
        class Scale(Elementwise):
            c: float

            def scalar(self, *x): return formula(x[0], self.c)
        return Scale
    return define(lambda x, c: x + c), define(lambda x, c: x * c)


def test_operators_are_known_by_what_they_compute_and_not_by_what_they_are_called():
    p = parameter("p", np.full(4, 3.0, "float32"))
    shift, scale = shift_and_scale()
    assert repr(shift(10.0)) == repr(scale(10.0)) and shift.__qualname__ == scale.__qualname__
    step = graph.Executor([shift(10.0)(p), scale(10.0)(p), graph.multiply(p, 10.0)])
    assert [y.numpy()[0] for y in step.run()] == [13, 30, 30]
    assert len({k.name for k in step.step.kernels}) >= 2
    names = []
    for k in range(2):                            # and in one executor after the other, with a cache on disk between
        step = graph.Executor([shift_and_scale()[k](10.0)(p)])
        assert step.run()[0].numpy()[0] == (13, 30)[k]
        names.append(step.step.kernels[0].name)
    assert names[0] != names[1]


def test_equal_kernels_are_compiled_once():
    x, y = placeholder("x"), placeholder("y")
    step = graph.Executor([graph.exp(x), graph.exp(y)])
    step.run({x: normal(3), y: normal(3)})
    assert len({k.name for k in step.step.kernels}) == 1 == len(step.step.objects)


@dataclass(frozen=True)
class Reversed(Operator):
    """y[k] = x[-1 - k]."""

    def infer(self, *inputs): return inputs[0]
    def compute(self, *i): return te.compute(i[0].shape, lambda k: i[0][i[0].shape[0] - 1 - k], name="reversed")
    def grad(self, y, dy): return (Reversed()(dy),)


def test_what_is_written_over_what_it_reads_is_found_in_the_rule():
    x = parameter("x", np.arange(6.0, dtype="float32"))
    for build, places in ((Reversed(), 3), (graph.exp, 1)):
        ex = Executor([build(x * 1.0) * 1.0], fuse=False)
        ex.run()
        assert ex.memory.planned == 64 * min(places, 2) and len(ex.step.kernels) == 3
    check_forward(Reversed(), lambda x: x[::-1], [np.arange(6.0)], "rules")


@dataclass(frozen=True)
class Weighted(Operator):
    """y = x * weights, a list: no dataclass of it can be hashed."""
    weights: list

    def infer(self, *inputs): return inputs[0]

    def compute(self, *i):
        def element(k):
            return sum((te.select(k == n, te.const(w, "float32"), te.const(0.0, "float32"))
                        for n, w in enumerate(self.weights)), te.const(0.0, "float32")) * i[0][k]
        return te.compute(i[0].shape, element, name="weighted")


def test_operators_are_equal_by_what_their_attributes_hold():
    """Of two zeros each divides to an infinity of its own; lists are compared by what is in them."""
    x = parameter("x", np.ones(2, "float32"))
    zeros = [graph.multiply(x, 0.0), graph.multiply(x, -0.0)]
    weighted = [Weighted(list(w))(x) for w in ([1.0, 2.0], [1.0, 3.0], [1.0, 2.0])]
    ex = Executor([*(Reciprocal()(z) for z in zeros), *weighted])
    got = [y.numpy().tolist() for y in ex.run()]
    assert got == [[np.inf] * 2, [-np.inf] * 2, [1, 2], [1, 3], [1, 2]]
    assert [k.operators for k in ex.step.kernels].count(("weighted",)) == 2


def test_a_type_is_all_that_some_operators_read():
    """What a value is repeated to the shape of is not computed."""
    x, row = placeholder("x"), parameter("row", np.arange(3.0, dtype="float32"))
    ex = Executor([graph.broadcast_like(row, graph.exp(x)), *gradients(graph.reduce_sum(graph.exp(row)), [row])])
    wide, slope = ex.run({x: np.zeros((2, 3), "float32")})
    np.testing.assert_array_equal(wide.numpy(), [[0, 1, 2]] * 2)
    np.testing.assert_allclose(slope.numpy(), np.exp(np.arange(3.0)), rtol=1e-6)
    operators = [o for k in ex.step.kernels for o in k.operators]
    assert "exp" in operators and operators.count("exp") == 1 and "reducesum" not in operators
