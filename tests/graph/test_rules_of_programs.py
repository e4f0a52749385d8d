"""Rules that programs write: what is compiled is what they said when they were called."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.frontend.onnx import from_onnx
from tilewright.graph import BlockBuilder
from tilewright.graph.ir.regions import If
from tilewright.support.errors import GraphError

OTHER_NOW = "the rule gives another program now than when it was called"


def compiled(body, *shapes):
    bb = BlockBuilder()
    params = [bb.param(name, shape) for name, shape in zip("xyz", shapes)]
    with bb.function("f", params):
        bb.emit_func_output(body(bb, *params))
    return tw.compile(bb.get()["f"])


def plus(t, k):
    return te.compute(t.shape, lambda i: t[i] + te.const(k, "float32"))


def test_a_variable_of_the_loop_around():
    def late(bb, x):
        for k in (1.0, 10.0, 100.0):
            x = bb.emit_te(lambda t: plus(t, k), x)  # noqa: B023
        return x

    def bound(bb, x):
        for k in (1.0, 10.0, 100.0):
            x = bb.emit_te(lambda t, k=k: plus(t, k), x)
        return x
    with pytest.raises(GraphError, match=OTHER_NOW):
        compiled(late, (3,))
    assert compiled(bound, (3,))(np.zeros(3, "float32")).numpy().tolist() == [111] * 3


class Scale:
    k = 1.0

    def rule(self, t):
        return plus(t, self.k)


def test_a_method_of_an_object_that_changes():
    scale = Scale()

    def body(bb, x):
        first = bb.emit_te(scale.rule, x)
        scale.k = 5.0
        return [first, bb.emit_te(scale.rule, x)]
    with pytest.raises(GraphError, match=OTHER_NOW):
        compiled(body, (2,))


def test_an_array_that_is_filled_again():
    sizes = np.array([2])

    def body(bb, x):
        made = bb.emit_te(lambda t, n: te.compute((int(n[0]),), lambda i: t[0] + te.const(1.0, "float32")), x, sizes)
        sizes[0] = 5
        return made
    assert compiled(body, (3,))(np.zeros(3, "float32")).numpy().tolist() == [1, 1]


def test_an_object_without_a_hash():
    @dataclass
    class Times:
        k: float

        def __call__(self, t):
            return te.compute(t.shape, lambda i: t[i] * self.k)
    run = compiled(lambda bb, x: bb.emit_te(Times(3.0), bb.emit_te(Times(2.0), x)), (3,))
    assert run(np.ones(3, "float32")).numpy().tolist() == [6] * 3


def test_functions_that_are_not_well_formed():
    bb = BlockBuilder()
    x = bb.param("x", (3,))
    with bb.function("a", [x]):
        v = bb.emit_te(topi.exp, x)
        bb.emit_func_output(v)
    p = bb.param("p", (3,))
    with bb.function("b", [p]):
        bb.emit_func_output([], updates={p: v})
    with bb.function("c", [x, x]):
        bb.emit_func_output(bb.emit_te(topi.exp, x))
    with pytest.raises(GraphError, match="b: .* uses .*, which nothing before it binds"):
        tw.compile(bb.get()["b"])
    with pytest.raises(GraphError, match="c: a parameter is listed twice"):
        tw.compile(bb.get()["c"])


def test_a_choice_of_functions_whose_results_are_counted():
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    graph = helper.make_graph([helper.make_node("NonZero", ["x"], ["y"])], "g",
                              [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
                              [helper.make_tensor_value_info("y", TensorProto.INT64, [1, None])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    found = from_onnx(model.SerializeToString())
    f = found if hasattr(found, "params") else found["main"]
    bb = BlockBuilder()
    flag, x = bb.param("flag", (), "bool"), bb.param("x", (4,))
    with bb.function("main", [flag, x]):
        bb.emit_func_output(bb.emit_call(If(f, f), [flag, x]))
    run = tw.compile(bb.get()["main"])
    for values in ([1, 1, 3, 2], [0, 1, 0, 2], [0, 0, 0, 0]):
        places, number = run(np.array(True), np.array(values, "float32"))
        count = int(np.asarray(number.numpy()).reshape(-1)[0])
        assert count == np.count_nonzero(values)
        assert places.numpy()[0, :count].tolist() == np.flatnonzero(values).tolist()
