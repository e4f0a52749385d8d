"""Graphs at the edges: depth, emptiness, dtypes, shared memory, several executors, threads, forks, foreign arrays."""
import os
import signal
import threading

import ml_dtypes
import numpy as np
import pytest

from tilewright import graph, nd
from tilewright.graph import SGD, Adam, Executor, Momentum, Update, gradients, parameter, placeholder
from tilewright.graph.passes.fuse import MOST_VALUES
from tilewright.support.errors import GraphError

RANDOM = np.random.RandomState(5)
DTYPES = {"float64": ("float64", 1e-12), "float32": ("float32", 1e-5), "float16": ("float16", 4e-3),
          "bfloat16": (ml_dtypes.bfloat16, 3e-2)}


def f32(*shape): return np.asarray(RANDOM.normal(0, 1, shape), "float32")


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


# ---- depth

def test_a_chain_of_3000_elementwise_operators():
    x = placeholder("x")
    v = x
    for _ in range(3000):
        v = v + 0.5
    ex = Executor([v])
    y, = ex.run({x: f32(3) * 0})
    np.testing.assert_allclose(y.numpy(), np.full(3, 1500.0))
    assert max(len(k.group.values) for k in ex.step.kernels) == MOST_VALUES


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


# ---- no rows, no elements

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
    ex.run({x: f32(2, 5), y: f32(2, 3)})
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


# ---- values used in several ways

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


# ---- operators of Python

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


# ---- dtypes

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


# ---- memory that is shared

def test_two_executors_share_parameters():
    x, w = placeholder("x"), parameter("w", f32(3, 3))
    y = graph.matmul(x, w)
    loss = graph.reduce_sum(y)
    train, forward = Executor([loss], SGD(0.1).minimize(loss, [w])), Executor([y])
    a = f32(2, 3)
    for _ in range(3):
        train.run({x: a})
        np.testing.assert_allclose(forward.run({x: a})[0].numpy(), a @ w.data.numpy(), rtol=1e-5)


def test_a_feed_that_is_the_parameter_itself_is_read_before_the_update():
    a = f32(4)
    x, p = placeholder("x"), parameter("p", a)
    y, = Executor([x * 2.0], [Update(p, p * 3.0)]).run({x: p.data})
    np.testing.assert_array_equal(y.numpy(), a * 2)
    q = parameter("q", a)
    Executor([], [Update(q, q * x)]).run({x: np.from_dlpack(q.data)})
    np.testing.assert_array_equal(q.data.numpy(), a * a)


def test_parameters_that_share_memory_are_not_updated():
    t = nd.array(f32(4))
    p, q = parameter("p", t), parameter("q", t)
    with pytest.raises(GraphError, match="q shares memory with p, which is updated"):
        Executor([], [Update(p, p * q)])
    Executor([p * q]).run()


def test_an_output_may_be_fed_again():
    x = placeholder("x")
    ex = Executor([x * 2.0])
    v = f32(3)
    twice, = ex.run({x: v})
    np.testing.assert_array_equal(ex.run({x: twice})[0].numpy(), v * 4)


class Foreign:
    """An array of another library: it has DLPack and nothing else."""

    def __init__(self, array): self.array = array
    def __dlpack__(self, **options): return self.array.__dlpack__(**options)
    def __dlpack_device__(self): return self.array.__dlpack_device__()


def test_arrays_of_other_libraries_are_fed_in_place():
    a = f32(2, 3)
    x = placeholder("x")
    np.testing.assert_array_equal(Executor([x + 1.0]).run({x: Foreign(a)})[0].numpy(), a + 1)
    with pytest.raises(GraphError, match="not contiguous"):
        Executor([x + 1.0]).run({x: Foreign(a.T)})


def test_tensors_of_torch_are_fed_and_outputs_become_torch():
    torch = pytest.importorskip("torch")
    x, w = placeholder("x"), parameter("w", f32(3, 2))
    t = torch.randn(4, 3, requires_grad=True)
    y, = Executor([graph.matmul(x, w)]).run({x: t})
    np.testing.assert_allclose(torch.from_dlpack(y).numpy(), t.detach().numpy() @ w.data.numpy(), rtol=1e-5)


# ---- threads and processes

def test_two_threads_may_run_one_executor():
    x, p = placeholder("x"), parameter("p", np.zeros((), "float32").reshape(1))
    one = graph.reduce_sum(x * 0.0) + 1.0
    ex = Executor([graph.tanh(graph.matmul(x, x) * 0.01)], [Update(p, p + one)])
    wrong, runs = [], 100

    def work(seed, n):
        a = np.random.RandomState(seed).normal(0, 1, (n, n)).astype("float32")
        want = np.tanh(a.astype("float64") @ a * 0.01)
        for _ in range(runs):
            got, = ex.run({x: a})
            if np.abs(got.numpy() - want).max() > 1e-4:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(k, n)) for k, n in enumerate((17, 17, 17, 24))]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not wrong
    assert p.data.numpy()[0] == 4 * runs


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")
def test_a_child_runs_what_its_parent_compiled():
    x, w = placeholder("x"), parameter("w", f32(64, 64))
    ex = Executor([graph.tanh(graph.matmul(x, w))])
    a = f32(64, 64)
    want = ex.run({x: a})[0].numpy()
    busy, stop = threading.Event(), threading.Event()

    def hold():
        with ex._lock:
            busy.set()
            stop.wait(20)

    holder = threading.Thread(target=hold)
    holder.start()
    busy.wait()
    child = os.fork()                                # while another thread is in the middle of a run
    if child == 0:
        signal.alarm(30)
        same = np.array_equal(ex.run({x: a})[0].numpy(), want)
        grown = ex.run({x: f32(3, 64)})[0].shape == (3, 64)
        os._exit(0 if same and grown else 1)
    stop.set()
    holder.join()
    assert os.waitpid(child, 0)[1] == 0
