"""Wrong feeds, updates and executors."""
from __future__ import annotations

import pickle

import numpy as np

from tilewright import graph
from tilewright.graph import Executor, TensorType

from ..programs import zeros
from ..wrong_use import watch
from . import layer, run, wrong


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
       r"run: x is None")
def fed_none():
    run(graph.relu, None)


@wrong("a list is fed",
       r"run: x is \[\[1\.0, 2\.0\]\](.|\n)*pass a Tensor, an array or a DLPack object")
def fed_list():
    run(graph.relu, [[1.0, 2.0]])


@wrong("an array of objects is fed",
       r"run: x cannot become a tensor: its elements are object(.|\n)*convert it first")
def fed_objects():
    run(graph.relu, np.array([None, 1]))


@wrong("float32 of the other byte order is fed",
       r"run: x cannot become a tensor: its elements are >f4(.|\n)*convert it first")
def fed_byte_order():
    run(graph.relu, zeros(3, dtype=">f4"))


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


@wrong("an executor that updates two parameters of one name",
       r"Executor: two different parameters are named 'w'")
def update_one_name():
    w, other = graph.parameter("w", zeros(3)), graph.parameter("w", zeros(4))
    watch(w.data)
    Executor([], [graph.Update(w, w * 2), graph.Update(other, other * 2)])


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
    x, _, loss = layer()
    pickle.dumps(Executor([loss]).compile({x: TensorType((2, 4))}))
