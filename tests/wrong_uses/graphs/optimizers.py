"""Wrong parameters and rates of optimizers."""
from __future__ import annotations

from tilewright import graph

from ..programs import zeros
from . import layer, wrong


@wrong("an optimizer given something that is no parameter",
       r"SGD: placeholder x is not a parameter; make it with graph\.parameter\(name, array\)")
def optimize_placeholder():
    x, _, loss = layer()
    graph.SGD(0.1).minimize(loss, [x])


@wrong("an optimizer given a parameter twice",
       r"SGD: a parameter is listed twice")
def optimize_twice():
    _, w, loss = layer()
    graph.SGD(0.1).minimize(loss, [w, w])


@wrong("an optimizer given a parameter that the loss does not use",
       r"gradients: reducesum does not depend on v")
def optimize_unused():
    _, _, loss = layer()
    graph.SGD(0.1).minimize(loss, [graph.parameter("v", zeros(3))])


@wrong("an optimizer given an array in place of a parameter",
       r"SGD: an object of type ndarray is not a parameter; make it with graph\.parameter\(name, array\)")
def optimize_array():
    _, _, loss = layer()
    graph.SGD(0.1).minimize(loss, [zeros(4, 3)])


@wrong("`minimize` of two parameters of one name",
       r"SGD: two different parameters are named 'w'")
def optimize_one_name():
    _, w, loss = layer()
    other = graph.parameter("w", zeros(3))
    graph.SGD(0.1).minimize(loss + graph.reduce_sum(other), [w, other])


@wrong("`minimize` of a number",
       r"gradients: 3\.0 is not a graph value")
def minimize_number():
    _, w, _ = layer()
    graph.SGD(0.1).minimize(3.0, [w])


@wrong("`SGD(-0.1)`",
       r"SGD: learning_rate is -0\.1, not a finite number of at least 0")
def negative_rate():
    graph.SGD(-0.1)


@wrong("`SGD(\"0.1\")`",
       r"SGD: learning_rate is '0\.1', not a finite number of at least 0")
def rate_is_text():
    graph.SGD("0.1")


@wrong("`SGD(float(\"nan\"))`",
       r"SGD: learning_rate is nan, not a finite number of at least 0")
def rate_is_nan():
    graph.SGD(float("nan"))


@wrong("`SGD(float(\"inf\"))`",
       r"SGD: learning_rate is inf, not a finite number of at least 0")
def rate_is_infinite():
    graph.SGD(float("inf"))


@wrong("`Momentum(0.1, momentum=1.5)`",
       r"Momentum: momentum is 1\.5, not a number from 0 to below 1")
def momentum_too_large():
    graph.Momentum(0.1, momentum=1.5)


@wrong("`Adam(beta1=1.0)`: the bias correction divides by zero",
       r"Adam: beta1 is 1\.0, not a number from 0 to below 1")
def adam_beta():
    graph.Adam(beta1=1.0)


@wrong("`optimizer.learning_rate = -1`",
       r"SGD: learning_rate is -1, not a finite number of at least 0")
def set_learning_rate():
    graph.SGD(0.1).learning_rate = -1
