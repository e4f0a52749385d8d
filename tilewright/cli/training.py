"""The demo's networks and its training loop."""
from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tilewright import graph
from tilewright.cli.data import Dataset, one_hot
from tilewright.graph import Executor, TensorType, Value


@dataclass(frozen=True)
class Model:
    """logits = model(x); `parameters` in the order in which they were drawn."""
    name: str
    x: Value
    labels: Value
    logits: Value
    parameters: tuple[Value, ...]


def mlp(pixels: int, seed: int = 0, hidden: tuple[int, int] = (256, 100), classes: int = 10,
        dtype: str = "float32") -> Model:
    """A perceptron with two hidden layers of rectified units; weights and biases from N(0, 0.1**2).

    RandomState(seed) draws W1, W2, W3, b1, b2, b3 in this order.
    """
    random = np.random.RandomState(seed)
    sizes = [pixels, *hidden, classes]
    weights = [random.normal(0, 0.1, (a, b)).astype(dtype) for a, b in zip(sizes, sizes[1:])]
    biases = [random.normal(0, 0.1, (b,)).astype(dtype) for b in sizes[1:]]
    w = [graph.parameter(f"W{k + 1}", a) for k, a in enumerate(weights)]
    b = [graph.parameter(f"b{k + 1}", a) for k, a in enumerate(biases)]
    x, labels = graph.placeholder("x"), graph.placeholder("labels")
    h = x
    for k in range(3):
        h = graph.dense(h, w[k], b[k])
        if k < 2:
            h = graph.relu(h)
    return Model("mlp", x, labels, h, (*w, *b))


def logistic_regression(pixels: int, classes: int = 10) -> Model:
    """One linear layer, from zeros."""
    w = graph.parameter("W", np.zeros((pixels, classes), "float32"))
    b = graph.parameter("b", np.zeros(classes, "float32"))
    x, labels = graph.placeholder("x"), graph.placeholder("labels")
    return Model("logreg", x, labels, graph.dense(x, w, b), (w, b))


@dataclass(frozen=True)
class Epoch:
    """What one pass over the training data gave: mean loss of the last batch, accuracy, training seconds."""
    number: int
    loss: float
    accuracy: float
    seconds: float


class Trainer:
    """Stochastic gradient descent on the summed softmax cross-entropy, batches in the order of the data."""

    def __init__(self, model: Model, data: Dataset, batch: int, learning_rate: float, schedule: str = "rules") -> None:
        assert model.parameters[0].data is not None
        self.dtype = str(model.parameters[0].data.dtype)
        self.model, self.data, self.batch = model, data.astype(self.dtype), min(batch, len(data.train_images))
        loss = graph.softmax_cross_entropy(model.logits, model.labels, reduction="sum")
        updates = graph.SGD(learning_rate).minimize(loss, model.parameters)
        self.step = Executor([loss], updates, schedule=schedule)
        self.forward = Executor([model.logits], schedule=schedule)
        self.targets = one_hot(data.train_labels).astype(self.dtype)

    def compile(self) -> float:
        """Compile the training step and the validation pass; the seconds it took."""
        start = time.perf_counter()
        pixels, classes = self.data.pixels, self.targets.shape[1]
        self.step.compile({self.model.x: TensorType((self.batch, pixels), self.dtype),
                           self.model.labels: TensorType((self.batch, classes), self.dtype)})
        self.forward.compile({self.model.x: TensorType(self.data.valid_images.shape, self.dtype)})
        return time.perf_counter() - start

    def train_epoch(self) -> tuple[float, float]:
        """(mean loss over the last batch, seconds) of one pass over the whole batches of the training data."""
        images, size = self.data.train_images, self.batch
        start = time.perf_counter()
        loss = None
        for k in range(0, len(images) - size + 1, size):
            loss, = self.step.run({self.model.x: images[k:k + size], self.model.labels: self.targets[k:k + size]})
        seconds = time.perf_counter() - start
        assert loss is not None
        return float(loss.numpy()[0]) / size, seconds

    def accuracy(self) -> float:
        """Share of validation images whose largest logit is their label."""
        logits, = self.forward.run({self.model.x: self.data.valid_images})
        return float((logits.numpy().argmax(axis=1) == self.data.valid_labels).mean())

    def epochs(self, count: int) -> Iterator[Epoch]:
        """Train for `count` epochs, giving the figures after each."""
        for number in range(1, count + 1):
            loss, seconds = self.train_epoch()
            yield Epoch(number, loss, self.accuracy(), seconds)
