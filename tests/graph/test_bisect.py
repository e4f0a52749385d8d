"""`tw.bisect` finds the step that makes a result wrong, for defects that are planted."""
import numpy as np
import pytest

import tilewright as tw
from tilewright import topi
from tilewright.codegen.llvm.context import EXPRESSIONS
from tilewright.graph import BlockBuilder, size
from tilewright.graph import compile as compiling
from tilewright.graph.ir.callees import Operator, operator
from tilewright.graph.ir.rebuild import rebuilt
from tilewright.graph.ir.values import Value
from tilewright.lowering.passes import own_pass
from tilewright.support.errors import GraphError
from tilewright.tir import Binary, FloatImm, rewrite

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype("float32")


@pytest.fixture
def model():
    bb = BlockBuilder()
    x = bb.param("x", (size("n"), 6))
    with bb.function("main", [x]):
        h = bb.emit_te(topi.relu, bb.emit_te(topi.linear, x, bb.const(array(8, 6)), bb.const(array(8))))
        bb.emit_func_output(bb.emit_te(topi.softmax, bb.emit_te(topi.reshape, h, (size("n") * 2, 4)), axis=1))
    return bb.get()["main"]


def test_nothing_is_found_where_nothing_is_wrong(model):
    assert tw.bisect(model, array(3, 6)) is None


def test_a_wrong_graph_pass(model, monkeypatch):
    def relu_to_abs(function):
        def step(new, c, inputs):
            if not isinstance(c.callee, Operator) or c.callee.rule is not topi.relu:
                return None
            op, given = operator(topi.abs, inputs, {}, Value)
            return [new.emit(op, *given)]
        return rebuilt(function, step)
    monkeypatch.setattr(compiling, "SIMPLIFY", compiling.SIMPLIFY)
    compiling.SIMPLIFY.insert(3, relu_to_abs)
    try:
        found = tw.bisect(model, array(3, 6))
    finally:
        compiling.SIMPLIFY.remove(relu_to_abs)
    assert (found.kind, found.name) == ("graph pass", "relu_to_abs") and found.error > 0.01


def test_an_order_of_kernels_that_updates_too_soon(monkeypatch):
    bb = BlockBuilder()
    p, x = bb.param("p", (6, 6)), bb.param("x", (6, 6))
    with bb.function("main", [p, x]):
        new = bb.emit_te(topi.add, p, x)
        bb.emit_func_output(bb.emit_te(topi.matmul, p, p), updates={p: new})
    function, arrays = bb.get()["main"], (array(6, 6), array(6, 6))
    before = [a.copy() for a in arrays]
    assert tw.bisect(function, *arrays) is None
    monkeypatch.setattr(compiling, "LOWER", [s for s in compiling.LOWER if s.__name__ != "order_updates"])
    found = tw.bisect(function, *arrays)
    assert found.kind == "plan" and found.error > 0.01
    np.testing.assert_array_equal(arrays, before)


def test_a_graph_pass_that_raises(model):
    def refuses(function):
        raise GraphError("this pass does not like the function")
    compiling.LOWER.insert(0, refuses)
    try:
        found = tw.bisect(model, array(3, 6))
    finally:
        compiling.LOWER.remove(refuses)
    assert found.name == "refuses" and "does not like" in str(found)


def test_a_wrong_lowering_pass(model):
    def start_at_one(func):
        return func.with_body(rewrite(func.body, lambda n: FloatImm(1.0, n.dtype) if isinstance(n, FloatImm)
                                      and n.value == 0.0 else None))
    with tw.pass_options(passes=[own_pass("after simplify", start_at_one, "start_at_one")]):
        found = tw.bisect(model, array(3, 6))
    assert (found.kind, found.name) == ("lowering pass", "start_at_one") and "linear" in found.kernel


def test_wrong_code(model, monkeypatch):
    emit = EXPRESSIONS[Binary]

    def swapped(fn, e):
        return emit(fn, e.replace(op="min") if e.op == "max" and "float" in e.dtype else e)
    monkeypatch.setitem(EXPRESSIONS, Binary, swapped)
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    found = tw.bisect(model, array(3, 6))
    assert found.kind == "code generation" and "linear" in found.kernel
