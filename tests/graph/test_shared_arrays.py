"""Arrays that executors, feeds, other libraries, threads and processes share."""
import os
import signal
import threading

import numpy as np
import pytest

from tilewright import graph, nd
from tilewright.graph import SGD, Executor, Update, parameter, placeholder
from tilewright.support.errors import GraphError

RANDOM = np.random.RandomState(5)


def f32(*shape): return np.asarray(RANDOM.normal(0, 1, shape), "float32")


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
    x = placeholder("x")
    with pytest.raises(GraphError, match="p shares memory with q, which is updated"):
        Executor([], [Update(p, x), Update(q, x * 2.0)])
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


def test_arrays_of_other_libraries_are_fed():
    a = f32(2, 3)
    x = placeholder("x")
    for given in (a, a.T):
        np.testing.assert_array_equal(Executor([x + 1.0]).run({x: Foreign(given)})[0].numpy(), given + 1)


def test_tensors_of_torch_are_fed_and_outputs_become_torch():
    torch = pytest.importorskip("torch")
    x, w = placeholder("x"), parameter("w", f32(3, 2))
    t = torch.randn(4, 3, requires_grad=True)
    y, = Executor([graph.matmul(x, w)]).run({x: t})
    np.testing.assert_allclose(torch.from_dlpack(y).numpy(), t.detach().numpy() @ w.data.numpy(), rtol=1e-5)


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


def test_memory_that_is_read_only_is_not_updated():
    p = parameter("p", nd.from_dlpack(np.frombuffer(f32(4).tobytes(), "float32")))
    with pytest.raises(GraphError, match="Executor: p is updated, and its memory is read-only"):
        Executor([], [Update(p, p + 1.0)])
    np.testing.assert_array_equal(Executor([p + 1.0]).run()[0].numpy(), p.data.numpy() + 1)
