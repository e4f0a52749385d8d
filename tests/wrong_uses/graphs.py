"""Wrong graphs, feeds and optimizers."""
from __future__ import annotations

import pickle

import numpy as np

from tilewright import graph, te
from tilewright.graph import Executor, TensorType
from tilewright.graph.operators.elementwise import Elementwise

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


@wrong("`matmul` of inner extents that differ",
       r"MatMul\(ta=False, tb=False\): the contracted axes differ, 3 != 4; the inputs are float32\[2, 3\],")
def matmul_extents():
    run(graph.matmul, zeros(2, 3), zeros(4, 5))


@wrong("`matmul` of vectors",
       r"MatMul\(ta=False, tb=False\): both operands need rank 2; the inputs are float32\[3\], float32\[3\]")
def matmul_vectors():
    run(graph.matmul, zeros(3), zeros(3))


@wrong("`matmul` of float32 and float64",
       r"MatMul\(ta=False, tb=False\): dtypes differ: float32, float64; the inputs are float32\[2, 3\],")
def matmul_dtypes():
    run(graph.matmul, zeros(2, 3), zeros(3, 2, dtype="float64"))


@wrong("`matmul` of integers",
       r"MatMul\(ta=False, tb=False\): dtype is int32, not a float; the inputs are int32\[2, 3\], int32\[3, 2\]")
def matmul_integers():
    run(graph.matmul, zeros(2, 3, dtype="int32"), zeros(3, 2, dtype="int32"))


@wrong("`add` of shapes that differ",
       r"Add\(\): shapes differ; the inputs are float32\[2, 3\], float32\[3\]")
def add_shapes():
    run(graph.add, zeros(2, 3), zeros(3))


@wrong("`add` of a value and an array",
       r"Add: array\(\[0\., 0\., 0\.\], dtype=float32\) is neither a graph value nor a number")
def add_array():
    graph.add(graph.placeholder("x"), zeros(3))


@wrong("`x + \"1\"`",
       r"Add: '1' is neither a graph value nor a number")
def add_text():
    graph.placeholder("x") + "1"


@wrong("`relu(3)`",
       r"Relu\(\): input 0 is 3, not a graph value")
def relu_of_number():
    graph.relu(3)


@wrong("`x / 0`",
       r"divide: division by the number 0")
def divide_by_zero():
    graph.placeholder("x") / 0


@wrong("`exp` of integers",
       r"Exp\(\): dtype is int64, not a float; the inputs are int64\[3\]")
def exp_integers():
    run(graph.exp, zeros(3, dtype="int64"))


@wrong("`cast` to a dtype that there is not",
       r"'float7' is not a dtype")
def cast_unknown():
    run(lambda x: graph.cast(x, "float7"), zeros(3))


@wrong("`conv2d` of channels that differ",
       r"Conv2d\(stride=1, padding=0\): x has 3 channels, w expects 2; the inputs are float32\[1, 3, 8, 8\],")
def conv_channels():
    run(graph.conv2d, zeros(1, 3, 8, 8), zeros(4, 2, 3, 3))


@wrong("`conv2d` with a kernel larger than the image",
       r"Conv2d\(stride=1, padding=0\): the kernel does not fit: the output would be \(0, 0\); the inputs are")
def conv_kernel():
    run(graph.conv2d, zeros(1, 3, 4, 4), zeros(4, 3, 5, 5))


@wrong("`conv2d` with stride 0",
       r"Conv2d\(stride=0, padding=0\): stride is 0, not an integer >= 1")
def conv_stride():
    graph.conv2d(graph.placeholder("x"), graph.placeholder("w"), stride=0)


@wrong("`conv2d` with a stride of text",
       r"Conv2d\(stride='2', padding=0\): stride is '2', not an integer >= 1")
def conv_stride_text():
    graph.conv2d(graph.placeholder("x"), graph.placeholder("w"), stride="2")


@wrong("`reduce_sum(x, axis=5)` of a matrix",
       r"ReduceSum\(axis=5, keepdims=False\): axis 5 of a value with 2 axes")
def sum_axis():
    run(lambda x: graph.reduce_sum(x, axis=5), zeros(2, 3))


@wrong("`reduce_sum(x, axis=\"rows\")`",
       r"ReduceSum\(axis='rows', keepdims=False\): axis is no integer, tuple of integers or None")
def sum_axis_text():
    run(lambda x: graph.reduce_sum(x, axis="rows"), zeros(2, 3))


@wrong("`broadcast_to` a shape that does not fit",
       r"BroadcastTo\(shape=\(4, 5\)\): cannot repeat to \(4, 5\); the inputs are float32\[3\]")
def broadcast_shape():
    run(lambda x: graph.broadcast_to(x, (4, 5)), zeros(3))


@wrong("`broadcast_to` a negative shape",
       r"BroadcastTo\(shape=\(-1, 3\)\): the shape is not made of natural numbers")
def broadcast_negative():
    run(lambda x: graph.broadcast_to(x, (-1, 3)), zeros(3))


@wrong("`softmax` of a vector",
       r"Softmax\(\): needs rank 2; the inputs are float32\[3\]")
def softmax_vector():
    run(graph.softmax, zeros(3))


@wrong("`softmax_cross_entropy` of logits and labels of different shapes",
       r"SoftmaxCrossEntropy\(reduction='mean'\): shapes differ; the inputs are float32\[4, 3\], float32\[4, 2\]")
def loss_shapes():
    run(graph.softmax_cross_entropy, zeros(4, 3), zeros(4, 2))


@wrong("`softmax_cross_entropy(reduction=\"max\")`",
       r"reduction is 'max', expected .mean. or .sum.")
def loss_reduction():
    graph.softmax_cross_entropy(graph.placeholder("x"), graph.placeholder("y"), reduction="max")


@wrong("a Python `if` on a value",
       r"placeholder x has no truth value: it is computed when the graph runs")
def truth_of_value():
    if graph.placeholder("x"):
        pass


@wrong("`graph.parameter(\"w\", None)`",
       r"None is not an array of numbers")
def parameter_of_none():
    graph.parameter("w", None)


@wrong("a parameter of text",
       r"an array of <U1 cannot become a tensor")
def parameter_of_text():
    graph.parameter("w", ["a", "b"])


@wrong("a placeholder that is not fed",
       r"run: placeholder x is not fed")
def not_fed():
    x, _, loss = layer()
    Executor([loss]).run({})


@wrong("a feed of something that is no placeholder of the graph",
       r"run: other is fed but is no placeholder of this graph")
def fed_stranger():
    x, _, loss = layer()
    Executor([loss]).run({x: zeros(2, 4), graph.placeholder("other"): zeros(1)})


@wrong("feeds by name: `run({\"x\": ...})`",
       r"run: the key 'x' of the feeds is not a value of the graph(.|\n)*keys are placeholders, not their names")
def fed_by_name():
    _, _, loss = layer()
    Executor([loss]).run({"x": zeros(2, 4)})


@wrong("feeds in a list",
       r"run: the feeds are an object of type list, not a mapping")
def fed_in_list():
    _, _, loss = layer()
    Executor([loss]).run([zeros(2, 4)])


@wrong("None is fed",
       r"run: x is fed a NoneType")
def fed_none():
    run(graph.relu, None)


@wrong("a list is fed",
       r"run: x is fed a list")
def fed_list():
    run(graph.relu, [[1.0, 2.0]])


@wrong("a transposed array is fed",
       r"run: x is not contiguous: shape \(3, 2\), strides \(1, 3\)")
def fed_transposed():
    run(graph.relu, np.arange(6, dtype="float32").reshape(2, 3).T)


@wrong("an array of objects is fed",
       r"run: x is fed an array of \|O \(object\): x cannot become a tensor: .* DLPack only supports")
def fed_objects():
    run(graph.relu, np.array([None, 1]))


@wrong("float32 of the other byte order is fed",
       r"run: x is fed an array of >f4 \(>f4\): x cannot become a tensor: .* DLPack only supports native byte")
def fed_byte_order():
    run(graph.relu, zeros(3, dtype=">f4"))


@wrong("a misaligned array is fed",
       r"run: x starts at an address that is no multiple of 4, the size of a float32")
def fed_misaligned():
    run(graph.relu, np.zeros(13, "uint8")[1:].view("float32"))


@wrong("a parameter is fed",
       r"run: w is fed but is no placeholder of this graph")
def fed_parameter():
    x, w, loss = layer()
    Executor([loss]).run({x: zeros(2, 4), w: zeros(4, 3)})


@wrong("`Executor([])`",
       r"Executor: there is nothing to compute: no outputs and no updates")
def nothing_to_compute():
    Executor([])


@wrong("`Executor(loss)`: a value in place of a list",
       r"Executor: outputs is reducesum = ReduceSum\(axis=None, keepdims=False\)\(relu\), not a list")
def executor_of_value():
    _, _, loss = layer()
    Executor(loss)


@wrong("`Executor([3])`",
       r"Executor: 3 is not a graph value")
def executor_of_number():
    Executor([3])


@wrong("`Executor([loss], schedule=\"fast\")`",
       r"Executor: schedule is 'fast', expected .rules. or .default.")
def executor_schedule():
    Executor([layer()[2]], schedule="fast")


@wrong("`Executor([loss], target=\"llvm -mtriple=aarch64-linux-gnu\")`",
       r"Executor: target llvm -mtriple=aarch64-linux-gnu does not run on this machine")
def executor_target():
    Executor([layer()[2]], target="llvm -mtriple=aarch64-linux-gnu")


@wrong("`Executor([loss], target=\"cuda\")`",
       r"Executor: target cuda does not run on this machine")
def executor_cuda():
    Executor([layer()[2]], target="cuda")


@wrong("`Executor([loss], target=\"c\")`",
       r"the step of a graph has no code for 'c'")
def executor_c():
    Executor([layer()[2]], target="c")


@wrong("`executor.memory` before the first run",
       r"the executor has not run yet")
def memory_before_run():
    _ = Executor([layer()[2]]).memory


@wrong("`executor.compile` without a feed's type",
       r"Executor\.compile: no type for x")
def compile_without_type():
    Executor([layer()[2]]).compile({})


@wrong("`executor.compile` with a shape in place of a type",
       r"compile: the type of x is \(2, 4\)")
def compile_with_shape():
    x, _, loss = layer()
    Executor([loss]).compile({x: (2, 4)})


@wrong("`executor.compile` with a negative extent",
       r"compile: the shape \(-2, 4\) of x is not made of natural numbers")
def compile_negative():
    x, _, loss = layer()
    Executor([loss]).compile({x: TensorType((-2, 4))})


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


@wrong("an executor that updates two parameters of one name",
       r"Executor: two different parameters are named 'w'")
def update_one_name():
    w, other = graph.parameter("w", zeros(3)), graph.parameter("w", zeros(4))
    watch(w.data)
    Executor([], [graph.Update(w, w * 2), graph.Update(other, other * 2)])


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


class Floor(Elementwise):
    """An operator of the user's without a gradient."""
    def scalar(self, *x): return te.floor(x[0])


@wrong("a gradient through an operator that has none",
       r"Floor has no gradient")
def no_gradient():
    x = graph.parameter("x", zeros(3))
    graph.gradients(graph.reduce_sum(Floor()(x)), [x])


@wrong("`optimizer.learning_rate = -1`",
       r"SGD: learning_rate is -1, not a finite number of at least 0")
def set_learning_rate():
    graph.SGD(0.1).learning_rate = -1


@wrong("an update of another shape than the parameter's",
       r"the update of w is float32\[1\], the parameter is float32\[4, 3\]")
def update_shape():
    w = graph.parameter("w", zeros(4, 3))
    watch(w.data)
    Executor([], [graph.Update(w, graph.reduce_sum(w))]).run({})


@wrong("two updates of one parameter",
       r"Executor: a parameter is updated twice in one step")
def updated_twice():
    w = graph.parameter("w", zeros(4, 3))
    Executor([], [graph.Update(w, w * 2), graph.Update(w, w * 3)])


@wrong("an update of a placeholder",
       r"Executor: the update target placeholder x is not a parameter")
def update_placeholder():
    x = graph.placeholder("x")
    Executor([], [graph.Update(x, x * 2)])


@wrong("`pickle.dumps` of a planned step",
       r"a step cannot be pickled: it is code and memory of this process")
def pickle_a_step():
    x = graph.placeholder("x")
    pickle.dumps(Executor([x * 2.0]).compile({x: TensorType((4,))}))
