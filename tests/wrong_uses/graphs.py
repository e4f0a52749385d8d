"""Wrong graphs, feeds and optimizers."""
from __future__ import annotations

import numpy as np

from tilewright import graph
from tilewright.graph import Executor, TensorType

from .programs import zeros
from .wrong_use import Section, watch

SECTION = Section("Graphs, executor, optimizers")
wrong = SECTION.wrong


def run(build, *feeds):
    """Run the graph that build(x, y, ...) makes of as many placeholders as there are feeds."""
    leaves = [graph.placeholder(name) for name in "xyz"[:len(feeds)]]
    Executor([build(*leaves)]).run(dict(zip(leaves, feeds)))


def layer():
    """x, w and loss of a small layer"""
    x, w = graph.placeholder("x"), graph.parameter("w", zeros(4, 3))
    return x, w, graph.reduce_sum(graph.relu(x @ w))


@wrong("`matmul` of inner extents that differ", "")
def matmul_extents():
    run(graph.matmul, zeros(2, 3), zeros(4, 5))


@wrong("`matmul` of vectors", "")
def matmul_vectors():
    run(graph.matmul, zeros(3), zeros(3))


@wrong("`matmul` of float32 and float64", "")
def matmul_dtypes():
    run(graph.matmul, zeros(2, 3), zeros(3, 2, dtype="float64"))


@wrong("`matmul` of integers", "")
def matmul_integers():
    run(graph.matmul, zeros(2, 3, dtype="int32"), zeros(3, 2, dtype="int32"))


@wrong("`add` of shapes that differ", "")
def add_shapes():
    run(graph.add, zeros(2, 3), zeros(3))


@wrong("`add` of a value and an array", "")
def add_array():
    graph.add(graph.placeholder("x"), zeros(3))


@wrong("`x + \"1\"`", "")
def add_text():
    graph.placeholder("x") + "1"


@wrong("`relu(3)`", "")
def relu_of_number():
    graph.relu(3)


@wrong("`x / 0`", "")
def divide_by_zero():
    graph.placeholder("x") / 0


@wrong("`exp` of integers", "")
def exp_integers():
    run(graph.exp, zeros(3, dtype="int64"))


@wrong("`cast` to a dtype that there is not", "")
def cast_unknown():
    run(lambda x: graph.cast(x, "float7"), zeros(3))


@wrong("`conv2d` of channels that differ", "")
def conv_channels():
    run(graph.conv2d, zeros(1, 3, 8, 8), zeros(4, 2, 3, 3))


@wrong("`conv2d` with a kernel larger than the image", "")
def conv_kernel():
    run(graph.conv2d, zeros(1, 3, 4, 4), zeros(4, 3, 5, 5))


@wrong("`conv2d` with stride 0", "")
def conv_stride():
    graph.conv2d(graph.placeholder("x"), graph.placeholder("w"), stride=0)


@wrong("`conv2d` with a stride of text", "")
def conv_stride_text():
    graph.conv2d(graph.placeholder("x"), graph.placeholder("w"), stride="2")


@wrong("`reduce_sum(x, axis=5)` of a matrix", "")
def sum_axis():
    run(lambda x: graph.reduce_sum(x, axis=5), zeros(2, 3))


@wrong("`reduce_sum(x, axis=\"rows\")`", "")
def sum_axis_text():
    run(lambda x: graph.reduce_sum(x, axis="rows"), zeros(2, 3))


@wrong("`broadcast_to` a shape that does not fit", "")
def broadcast_shape():
    run(lambda x: graph.broadcast_to(x, (4, 5)), zeros(3))


@wrong("`broadcast_to` a negative shape", "")
def broadcast_negative():
    run(lambda x: graph.broadcast_to(x, (-1, 3)), zeros(3))


@wrong("`softmax` of a vector", "")
def softmax_vector():
    run(graph.softmax, zeros(3))


@wrong("`softmax_cross_entropy` of logits and labels of different shapes", "")
def loss_shapes():
    run(graph.softmax_cross_entropy, zeros(4, 3), zeros(4, 2))


@wrong("`softmax_cross_entropy(reduction=\"max\")`", "")
def loss_reduction():
    graph.softmax_cross_entropy(graph.placeholder("x"), graph.placeholder("y"), reduction="max")


@wrong("a Python `if` on a value", "")
def truth_of_value():
    if graph.placeholder("x"):
        pass


@wrong("`graph.parameter(\"w\", None)`", "")
def parameter_of_none():
    graph.parameter("w", None)


@wrong("a parameter of text", "")
def parameter_of_text():
    graph.parameter("w", ["a", "b"])


@wrong("a placeholder that is not fed", "")
def not_fed():
    x, _, loss = layer()
    Executor([loss]).run({})


@wrong("a feed of something that is no placeholder of the graph", "")
def fed_stranger():
    x, _, loss = layer()
    Executor([loss]).run({x: zeros(2, 4), graph.placeholder("other"): zeros(1)})


@wrong("feeds by name: `run({\"x\": ...})`", "")
def fed_by_name():
    _, _, loss = layer()
    Executor([loss]).run({"x": zeros(2, 4)})


@wrong("feeds in a list", "")
def fed_in_list():
    _, _, loss = layer()
    Executor([loss]).run([zeros(2, 4)])


@wrong("None is fed", "")
def fed_none():
    run(graph.relu, None)


@wrong("a list is fed", "")
def fed_list():
    run(graph.relu, [[1.0, 2.0]])


@wrong("a transposed array is fed", "")
def fed_transposed():
    run(graph.relu, np.arange(6, dtype="float32").reshape(2, 3).T)


@wrong("an array of objects is fed", "")
def fed_objects():
    run(graph.relu, np.array([None, 1]))


@wrong("float32 of the other byte order is fed", "")
def fed_byte_order():
    run(graph.relu, zeros(3, dtype=">f4"))


@wrong("a misaligned array is fed", "")
def fed_misaligned():
    run(graph.relu, np.zeros(13, "uint8")[1:].view("float32"))


@wrong("a parameter is fed", "")
def fed_parameter():
    x, w, loss = layer()
    Executor([loss]).run({x: zeros(2, 4), w: zeros(4, 3)})


@wrong("`Executor([])`", "")
def nothing_to_compute():
    Executor([])


@wrong("`Executor(loss)`: a value in place of a list", "")
def executor_of_value():
    _, _, loss = layer()
    Executor(loss)


@wrong("`Executor([3])`", "")
def executor_of_number():
    Executor([3])


@wrong("`Executor([loss], schedule=\"fast\")`", "")
def executor_schedule():
    Executor([layer()[2]], schedule="fast")


@wrong("`Executor([loss], target=\"llvm -mtriple=aarch64-linux-gnu\")`", "")
def executor_target():
    Executor([layer()[2]], target="llvm -mtriple=aarch64-linux-gnu")


@wrong("`Executor([loss], target=\"cuda\")`", "")
def executor_cuda():
    Executor([layer()[2]], target="cuda")


@wrong("`executor.memory` before the first run", "")
def memory_before_run():
    _ = Executor([layer()[2]]).memory


@wrong("`executor.compile` without a feed's type", "")
def compile_without_type():
    Executor([layer()[2]]).compile({})


@wrong("`executor.compile` with a shape in place of a type", "")
def compile_with_shape():
    x, _, loss = layer()
    Executor([loss]).compile({x: (2, 4)})


@wrong("`executor.compile` with a negative extent", "")
def compile_negative():
    x, _, loss = layer()
    Executor([loss]).compile({x: TensorType((-2, 4))})


@wrong("an optimizer given something that is no parameter", "")
def optimize_placeholder():
    x, _, loss = layer()
    graph.SGD(0.1).minimize(loss, [x])


@wrong("an optimizer given a parameter twice", "")
def optimize_twice():
    _, w, loss = layer()
    graph.SGD(0.1).minimize(loss, [w, w])


@wrong("an optimizer given a parameter that the loss does not use", "")
def optimize_unused():
    _, _, loss = layer()
    graph.SGD(0.1).minimize(loss, [graph.parameter("v", zeros(3))])


@wrong("an optimizer given an array in place of a parameter", "")
def optimize_array():
    _, _, loss = layer()
    graph.SGD(0.1).minimize(loss, [zeros(4, 3)])


@wrong("`minimize` of a number", "")
def minimize_number():
    _, w, _ = layer()
    graph.SGD(0.1).minimize(3.0, [w])


@wrong("`SGD(-0.1)`", "")
def negative_rate():
    graph.SGD(-0.1)


@wrong("`SGD(\"0.1\")`", "")
def rate_is_text():
    graph.SGD("0.1")


@wrong("`SGD(float(\"nan\"))`", "")
def rate_is_nan():
    graph.SGD(float("nan"))


@wrong("`SGD(float(\"inf\"))`", "")
def rate_is_infinite():
    graph.SGD(float("inf"))


@wrong("`Momentum(0.1, momentum=1.5)`", "")
def momentum_too_large():
    graph.Momentum(0.1, momentum=1.5)


@wrong("`Adam(beta1=1.0)`: the bias correction divides by zero", "")
def adam_beta():
    graph.Adam(beta1=1.0)


@wrong("a gradient through an operator that has none (`cast`)", "")
def no_gradient():
    x = graph.parameter("x", zeros(3))
    graph.gradients(graph.reduce_sum(graph.cast(x, "float64")), [x])


@wrong("an update of another shape than the parameter's", "")
def update_shape():
    w = graph.parameter("w", zeros(4, 3))
    watch(w.data)
    Executor([], [graph.Update(w, graph.reduce_sum(w))]).run({})


@wrong("two updates of one parameter", "")
def updated_twice():
    w = graph.parameter("w", zeros(4, 3))
    Executor([], [graph.Update(w, w * 2), graph.Update(w, w * 3)])


@wrong("an update of a placeholder", "")
def update_placeholder():
    x = graph.placeholder("x")
    Executor([], [graph.Update(x, x * 2)])
