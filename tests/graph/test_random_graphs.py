"""Random graphs with outputs and updates, against NumPy in float64: fusion, order, places in memory."""
import random

import numpy as np
import pytest

from tilewright import graph
from tilewright.graph import Executor, Update, gradients, parameter, placeholder
from tilewright.graph.operators.broadcast import BroadcastLike, SumLike

ROWS, INNER, COLUMNS = 7, 5, 19
SHAPES = [(ROWS, COLUMNS), (ROWS, INNER), (INNER, COLUMNS), (COLUMNS,), (ROWS, 1), (1,)]


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


class Drawn:
    """A random graph; values[v] is how NumPy computes v, from the arrays of the leaves."""

    def __init__(self, seed, size=14):
        self.rng = random.Random(seed)
        self.arrays = np.random.RandomState(seed)
        self.values = {}                                    # Value -> (shape, function of leaf arrays)
        self.leaves = {}
        for k, shape in enumerate(SHAPES * 2):
            array = self.arrays.uniform(-1, 1, shape).astype("float32")
            v = parameter(f"p{k}", array) if k % 2 else placeholder(f"x{k}")
            self.leaves[v] = array
            self.values[v] = shape, (lambda leaves, v=v: leaves[v].astype("float64"))
        while len(self.values) < size + len(self.leaves):
            self.grow()

    def of(self, shape):
        return [v for v, (s, _) in self.values.items() if s == shape]

    def pick(self, shape=None):
        """A value, one of the latest more often."""
        values = self.of(shape) if shape else list(self.values)
        return values[-1 - min(int(self.rng.expovariate(0.5)), len(values) - 1)]

    def grow(self):
        rng = self.rng
        form = rng.choice(["binary", "binary", "unary", "unary", "matmul", "sum", "broadcast", "rows", "scalar"])
        a = self.pick()
        shape, f = self.values[a]
        if form == "binary":
            b = self.pick(shape)
            g = self.values[b][1]
            name, combine = rng.choice([("add", np.add), ("multiply", np.multiply), ("subtract", np.subtract)])
            self.keep(getattr(graph, name)(a, b), shape, lambda x: combine(f(x), g(x)))
        elif form == "unary":
            name, combine = rng.choice([("tanh", np.tanh), ("relu", lambda y: np.maximum(y, 0)),
                                        ("negative", np.negative), ("sigmoid", lambda y: 1 / (1 + np.exp(-y)))])
            self.keep(getattr(graph, name)(a), shape, lambda x: combine(f(x)))
        elif form == "scalar":
            c = rng.choice([0.5, -1.5, 3.0])
            build, combine = rng.choice([(lambda v: v * c, lambda y: y * c), (lambda v: c - v, lambda y: c - y),
                                         (lambda v: v / c, lambda y: y / c)])
            self.keep(build(a), shape, lambda x: combine(f(x)))
        elif form == "matmul":
            a, b = self.pick((ROWS, INNER)), self.pick((INNER, COLUMNS))
            f, g = self.values[a][1], self.values[b][1]
            self.keep(graph.matmul(a, b) * 0.3, (ROWS, COLUMNS), lambda x: 0.3 * (f(x) @ g(x)))
        elif form == "sum" and len(shape) == 2 and shape[1] == COLUMNS:
            axis, kept = rng.choice([(0, False), (1, True)])
            result = (COLUMNS,) if axis == 0 else (ROWS, 1) if shape[0] == ROWS else None
            if result:
                self.keep(graph.reduce_sum(a, axis, kept) * 0.1, result,
                          lambda x: 0.1 * f(x).sum(axis, keepdims=kept))
        elif form == "broadcast" and shape in ((COLUMNS,), (ROWS, 1), (1,)):
            like = self.pick((ROWS, COLUMNS))
            self.keep(graph.broadcast_like(a, like), (ROWS, COLUMNS), lambda x: np.broadcast_to(f(x), (ROWS, COLUMNS)))
        elif form == "rows" and len(shape) == 2 and shape[1] > 1:
            self.keep(graph.softmax(a), shape, lambda x: softmax(f(x)))

    def keep(self, v, shape, function):
        self.values[v] = shape, function


@pytest.mark.parametrize("target, seed", [*(("llvm -opt-level=1", seed) for seed in range(12)),
                                          *(("c -opt-level=1", seed) for seed in range(12, 15))])
def test_random_programs(target, seed):
    drawn = Drawn(seed)
    rng = drawn.rng
    made = [v for v in drawn.values if v not in drawn.leaves]
    outputs = [rng.choice(made) for _ in range(rng.randint(1, 4))] + rng.sample(list(drawn.values), 1)
    updates = []
    for p in rng.sample([v for v in drawn.leaves if v.data is not None], 3):
        shape = drawn.values[p][0]
        new = drawn.pick(shape)
        if rng.random() < 0.5:
            f, g = drawn.values[p][1], drawn.values[new][1]
            new = p * 0.5 + new
            drawn.keep(new, shape, lambda x, f=f, g=g: 0.5 * f(x) + g(x))
        updates.append(Update(p, new))
    start = {v: a.copy() for v, a in drawn.leaves.items()}
    for fuse, schedule in ((True, "rules"), (False, "default")):
        ex = Executor(outputs, updates, fuse=fuse, schedule=schedule, target=target)
        leaves = {v: a.copy() for v, a in start.items()}
        for v in leaves:
            if v.data is not None:
                v.data.copyfrom(leaves[v])
        for _ in range(2):
            got = ex.run({v: leaves[v] for v in ex.placeholders})
            want = [drawn.values[v][1](leaves) for v in outputs]
            for value, reference in zip(got, want):
                np.testing.assert_allclose(value.numpy(), reference, rtol=2e-4, atol=2e-4)
            moved = {u.target: drawn.values[u.value][1](leaves).astype("float32") for u in updates}
            for p, array in moved.items():
                np.testing.assert_allclose(p.data.numpy(), array, rtol=2e-4, atol=2e-4)
                leaves[p] = p.data.numpy()
        assert ex.memory.lower_bound <= ex.memory.planned <= ex.memory.unshared


@pytest.mark.parametrize("seed", range(5))
def test_random_gradients(seed):
    """The directional derivative of a random graph along a random direction, against central differences."""
    drawn = Drawn(100 + seed, size=10)
    last = [v for v in drawn.values if v not in drawn.leaves][-1]
    loss = graph.reduce_sum(last * last)
    used = [v for v in drawn.leaves if v in ancestors(loss)]
    ex = Executor(gradients(loss, used), target="llvm -opt-level=1")
    got = ex.run({v: drawn.leaves[v] for v in ex.placeholders})
    direction = {v: drawn.arrays.uniform(-1, 1, drawn.leaves[v].shape) for v in used}
    f = drawn.values[last][1]

    def at(step):
        return (f({v: a.astype("float64") + step * direction.get(v, 0) for v, a in drawn.leaves.items()}) ** 2).sum()
    want = (at(1e-6) - at(-1e-6)) / 2e-6
    total = sum((g.numpy().astype("float64") * direction[v]).sum() for v, g in zip(used, got))
    np.testing.assert_allclose(total, want, rtol=1e-3, atol=1e-3)


def ancestors(v):
    """v and all whose elements it depends on."""
    found, stack = set(), [v]
    while stack:
        top = stack.pop()
        if top not in found:
            found.add(top)
            skip = 1 if isinstance(top.op, (BroadcastLike, SumLike)) else None       # whose type alone is used
            stack += [x for k, x in enumerate(top.inputs) if k != skip]
    return found
