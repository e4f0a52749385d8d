"""Optimizers: their formulas, their learning rate, what they keep."""
import numpy as np
import pytest
from graph_checks import check_optimizer

from tilewright import graph
from tilewright.graph import SGD, Adam, Executor, Momentum, Optimizer, parameter
from tilewright.graph.vocabulary import NAMES
from tilewright.support.errors import GraphError


def sgd(p, g, rate, step, state):
    return p - rate * g


def momentum(p, g, rate, step, state):
    state["u"] = 0.9 * state.get("u", 0) + g
    return p - rate * state["u"]


def adam(p, g, rate, step, state):
    state["m"] = 0.9 * state.get("m", 0) + 0.1 * g
    state["v"] = 0.999 * state.get("v", 0) + 0.001 * g * g
    m, v = state["m"] / (1 - 0.9**step), state["v"] / (1 - 0.999**step)
    return p - rate * m / (np.sqrt(v) + 1e-8)


@pytest.mark.parametrize("target", ["llvm", "c -opt-level=1"])
@pytest.mark.parametrize("make, reference", [(SGD, sgd), (Momentum, momentum), (Adam, adam)])
def test_optimizers_follow_their_formulas(make, reference, target):
    check_optimizer(make, reference, target)


@pytest.mark.parametrize("name", [name for name, thing in NAMES.items() if isinstance(thing, type)])
def test_a_learning_rate_is_a_number_of_at_least_0(name):
    optimizer = getattr(graph, name)(0.1)
    assert isinstance(optimizer, Optimizer)
    optimizer.learning_rate = np.float32(0.025)
    for wrong in (-1.0, "0.1", float("nan"), True, 10**400):
        with pytest.raises(GraphError, match="learning_rate is"):
            optimizer.learning_rate = wrong
    assert optimizer.learning_rate == 0.02500000037252903


def test_adam_moves_by_the_rate_however_near_its_factors_are_to_1():
    w = parameter("w", np.array([1.0, -2.0], "float32"))
    step = Executor([], Adam(0.125, 1 - 1e-9, 1 - 1e-10).minimize(graph.reduce_sum(w), [w]))
    for _ in range(3):
        step.run()
    np.testing.assert_allclose(w.data.numpy(), [0.625, -2.375], rtol=1e-5)


def test_a_training_goes_on_from_what_its_updates_hold():
    def training():
        w = parameter("w", np.array([2.0, -1.0]))
        updates = Adam(0.1).minimize(graph.reduce_sum(w * w), [w])
        return w, updates, Executor([], updates)

    w, updates, step = training()
    for _ in range(3):
        step.run()
    saved = {u.target.name: u.target.data.numpy().copy() for u in updates}
    assert set(saved) == {"w", "w.mean", "w.variance", "w.beta1_power", "w.beta2_power"}
    step.run()
    other, updates, step = training()
    for u in updates:
        u.target.data.copyfrom(saved[u.target.name])
    step.run()
    assert other.data.numpy().tolist() == w.data.numpy().tolist() != saved["w"].tolist()


def test_the_names_of_what_two_optimizers_and_two_types_update_differ():
    a, b, c = parameter("a", np.ones(2)), parameter("b", np.ones(2, "float32")), parameter("c", np.ones(2))
    loss = graph.reduce_sum(a * a * c)
    updates = Adam(0.1).minimize(loss + graph.cast(graph.reduce_sum(b * b), "float64"), [a, b])
    updates += Adam(0.1).minimize(loss, [c])
    Executor([], updates).run()
    assert len({u.target.name for u in updates}) == len(updates) == 3 * 3 + 2 * 2
