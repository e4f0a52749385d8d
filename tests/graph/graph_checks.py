"""What every operator and every optimizer is held to."""
from __future__ import annotations

import numpy as np

from tilewright import graph
from tilewright.graph import Executor, gradients, parameter, placeholder

RANDOM = np.random.RandomState(7)


def check_operator(build, reference, arrays, wrt=None):
    """build(*values) is what reference(*arrays in float64) says, under both schedules, and so are its gradients."""
    for schedule in ("rules", "default"):
        check_forward(build, reference, arrays, schedule)
    check_gradients(build, reference, arrays, wrt)


def check_forward(build, reference, arrays, schedule):
    """The result in float32: alone, fused with what is around it, and not, over what it reads if that may be."""
    leaves = [parameter(f"x{k}", a.astype("float32")) for k, a in enumerate(arrays)]
    between = build(*(x * 1.0 for x in leaves)) * 1.0
    want = reference(*(a.astype("float32").astype("float64") for a in arrays))
    for ex in (Executor([build(*leaves)], schedule=schedule), Executor([between], schedule=schedule),
               Executor([between], schedule=schedule, fuse=False)):
        np.testing.assert_allclose(ex.run()[0].numpy(), want, rtol=2e-5, atol=2e-5)


def check_gradients(build, reference, arrays, wrt=None):
    """The gradients with respect to the inputs in wrt (None: all), in float64, against central differences."""
    leaves = [parameter(f"x{k}", a) for k, a in enumerate(arrays)]
    wrt = range(len(arrays)) if wrt is None else wrt
    weights = RANDOM.normal(0, 1, np.shape(reference(*arrays)))
    loss = graph.reduce_sum(build(*leaves) * parameter("w", weights))
    results = Executor(gradients(loss, [leaves[k] for k in wrt])).run()
    for k, got in zip(wrt, results):
        want = central_differences(reference, arrays, weights, k)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-6)


def central_differences(f, arrays, weights, k, h=1e-6):
    """d sum(weights * f(arrays)) / d arrays[k], element by element, in float64."""
    grad = np.zeros_like(arrays[k])
    for i in np.ndindex(*grad.shape):
        moved = []
        for sign in (1, -1):
            point = [a.copy() for a in arrays]
            point[k][i] += sign * h
            moved.append((weights * f(*point)).sum())
        grad[i] = (moved[0] - moved[1]) / (2 * h)
    return grad


def check_optimizer(make, reference, target="llvm"):
    """make(rate) moves a parameter as reference(p, gradient, rate, step, state) does, where state starts as {}.

    The rate changes on the way, which plans no other step; the parameter stays where it is.
    """
    for dtype, tolerance in (("float32", 2e-4), ("float64", 1e-9)):
        w = RANDOM.normal(0, 1, (3, 4)).astype(dtype)
        p, x = parameter("p", w), placeholder("x")
        loss = graph.reduce_sum(graph.tanh(graph.matmul(x, p)))
        optimizer = make(0.1)
        train = Executor([loss], optimizer.minimize(loss, [p]), target=target)
        address, want, state = p.data.data_ptr, w.astype("float64"), {}
        for step in range(1, 9):
            rate = optimizer.learning_rate = 0.1 if step < 5 else np.float32(0.025)
            batch = RANDOM.normal(0, 1, (6, 3)).astype(dtype)
            train.run({x: batch})
            y = np.tanh(batch.astype("float64") @ want)
            want = reference(want, batch.T.astype("float64") @ (1 - y * y), rate, step, state)
            np.testing.assert_allclose(p.data.numpy(), want, rtol=tolerance, atol=tolerance / 10)
        assert p.data.data_ptr == address and len(train._steps) == 1
        assert repr(optimizer).startswith(f"{type(optimizer).__name__}(learning_rate=0.025")
