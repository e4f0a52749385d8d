"""Wrong operands of operators, wrong leaves."""
from __future__ import annotations

from dataclasses import dataclass

from tilewright import graph, te
from tilewright.graph.operators.elementwise import Elementwise
from tilewright.graph.vocabulary import public

from ..programs import zeros
from . import run, wrong


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


class Floor(Elementwise):
    """An operator of the user's without a gradient."""
    def scalar(self, *x): return te.floor(x[0])


@wrong("a gradient through an operator that has none",
       r"Floor has no gradient")
def no_gradient():
    x = graph.parameter("x", zeros(3))
    graph.gradients(graph.reduce_sum(Floor()(x)), [x])


@wrong("a function of the name that an operator of another module has",
       r"graph\.softmax is a name of tilewright\.graph\.operators\.nn already")
def name_is_taken():
    @public
    def softmax(x):
        return x


@dataclass(frozen=True)
class Double(Elementwise):
    """2 * x, with what its class says otherwise."""

    def scalar(self, *x): return x[0] * 2.0
    def grad(self, y, dy): return (Double()(dy),)


@dataclass(frozen=True)
class TwiceAsLong(Double):
    def compute(self, *x): return te.compute((2 * x[0].shape[0],), lambda i: x[0][i // 2], name="twice")


@dataclass(frozen=True)
class Wider(Double):
    def compute(self, *x): return te.compute(x[0].shape, lambda i: x[0][i].astype("float64"), name="wider")


@dataclass(frozen=True)
class Nothing(Double):
    def compute(self, *x): return None


@wrong("an operator whose `compute` gives another shape than `infer` says",
       r"TwiceAsLong\(\): compute gives float32\[8\], infer says float32\[4\](.|\n)*the two describe one result")
def compute_of_another_shape():
    run(TwiceAsLong(), zeros(4))


@wrong("an operator whose `compute` gives another dtype than `infer` says",
       r"Wider\(\): compute gives float64\[4\], infer says float32\[4\]")
def compute_of_another_dtype():
    run(Wider(), zeros(4))


@wrong("an operator whose `compute` gives no tensor",
       r"Nothing\(\): compute gives None, not a tensor")
def compute_of_nothing():
    run(Nothing(), zeros(4))


@dataclass(frozen=True)
class Bare(Double):
    def grad(self, y, dy): return dy


@dataclass(frozen=True)
class TwoGradients(Double):
    def grad(self, y, dy): return dy, dy


@wrong("an operator whose `grad` gives a value instead of a tuple",
       r"Bare\(\): grad gives an object of type Value(.|\n)*a tuple with a value or None for each of 1 input")
def grad_of_a_value():
    x = graph.parameter("x", zeros(4))
    graph.gradients(graph.reduce_sum(Bare()(x)), [x])


@wrong("an operator whose `grad` gives more gradients than it has inputs",
       r"TwoGradients\(\): grad gives (.|\n)*a tuple with a value or None for each of 1 input")
def grad_of_two():
    x = graph.parameter("x", zeros(4))
    graph.gradients(graph.reduce_sum(TwoGradients()(x)), [x])
