"""Choices and loops over functions."""
import numpy as np
import pytest

from tilewright import topi
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.types import TensorType, size
from tilewright.graph.plan.loaded import load
from tilewright.support.errors import CallError, GraphError

N = size("n")


@pytest.fixture(params=["compiled", "exported", "exported as C"])
def build(request, tmp_path):
    """Compiles a function; exported ones are loaded from a file."""
    def built(f):
        run = build_function(f, "c" if request.param == "exported as C" else None)
        if request.param == "compiled":
            return run
        run.export(tmp_path / "model.o")
        return load(tmp_path / "model.o")
    return built


def function(name, params, body):
    bb = BlockBuilder()
    with bb.function(name, params):
        bb.emit_func_output(body(bb, *params))
    return bb.get()[name]


def test_a_choice_runs_one_branch(build):
    def branch(rule):
        return function(rule.__name__, [BlockBuilder.param("x", (N, 3))], lambda bb, x: bb.emit_te(rule, x))

    def body(bb, x, flag):
        y, = bb.emit_call(If(branch(topi.exp), branch(topi.negative)), [flag, x])
        return bb.emit_te(topi.add, y, 1.0)
    run = build(function("main", [BlockBuilder.param("x", (N, 3)), BlockBuilder.param("flag", (), "bool")], body))
    x = np.random.default_rng(0).standard_normal((4, 3)).astype("float32")
    np.testing.assert_allclose(np.asarray(run(x, np.array(True))), np.exp(x) + 1, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(run(x, np.array(False))), 1 - x, rtol=1e-5)


def power_steps(build, steps=0):
    """x, x * f, x * f * f, ... until the sum of elements is above 100: (the last one, all of them)."""
    params = [BlockBuilder.param(*p) for p in (("i", (), "int64"), ("x", (N,)), ("f", (N,)))]

    def body(bb, i, x, f):
        y = bb.emit_te(topi.multiply, x, f)
        go = bb.emit_te(topi.less, bb.emit_te(topi.sum, y), 100.0)
        return [go, y, y] if steps else [go, y]
    loop = Loop(function("body", params, body), 1, steps)

    def main(bb, count, x, f):
        return list(bb.emit_call(loop, [count, bb.const(np.array(True)), x, f]))
    return build(function("main", [BlockBuilder.param("count", (), "int64"), BlockBuilder.param("x", (N,)),
                                   BlockBuilder.param("f", (N,))], main))


def test_a_loop_ends_by_its_condition_or_its_count(build):
    run = power_steps(build)
    x, f = np.ones(3, "float32"), np.full(3, 2, "float32")
    np.testing.assert_array_equal(np.asarray(run(np.array(100), x, f)), np.full(3, 64))
    np.testing.assert_array_equal(np.asarray(run(np.array(2), x, f)), np.full(3, 4))
    np.testing.assert_array_equal(np.asarray(run(np.array(0), x, f)), x)


def test_scanned_values_are_stacked(build):
    run = power_steps(build, steps=4)
    x, f = np.ones(2, "float32"), np.array([1, 2], "float32")
    last, stacked = run(np.array(4), x, f)
    np.testing.assert_array_equal(np.asarray(stacked), np.stack([f ** k for k in range(1, 5)]))
    np.testing.assert_array_equal(np.asarray(last), f ** 4)
    for count in (2, 5):
        with pytest.raises(CallError, match="ends after|one more step|step 4 gives"):
            run(np.array(count), x, f)


def test_a_result_may_be_a_view_of_what_a_loop_or_a_choice_gives(build):
    x, step = BlockBuilder.param("x", (N, 1)), BlockBuilder.param("i", (), "int64")
    body = function("body", [step, x], lambda bb, i, x: [
        bb.emit_te(topi.less, i, 100), bb.emit_te(topi.add, x, 1.0), x])
    twice = function("twice", [x], lambda bb, x: bb.emit_te(topi.multiply, x, 2.0))
    same = function("same", [x], lambda bb, x: bb.emit_te(topi.negative, x))

    def main(bb, x, flag):
        _, rows = bb.emit_call(Loop(body, 1, 3), [bb.const(np.array(3)), bb.const(np.array(True)), x])
        chosen, = bb.emit_call(If(twice, same), [flag, x])
        return [bb.emit_te(topi.squeeze, rows, axis=2), bb.emit_te(topi.flatten, chosen)]
    run = build(function("main", [x, BlockBuilder.param("flag", (), "bool")], main))
    x = np.arange(2, dtype="float32").reshape(2, 1)
    rows, chosen = run(x, np.array(True))
    np.testing.assert_array_equal(np.asarray(rows), [[0, 1], [1, 2], [2, 3]])
    np.testing.assert_array_equal(np.asarray(chosen), [0, 2])


def test_what_a_choice_reads_may_be_a_view(build):
    part = BlockBuilder.param("part", (2, N))
    double = function("double", [part], lambda bb, x: bb.emit_te(topi.add, x, x))
    minus = function("minus", [part], lambda bb, x: bb.emit_te(topi.negative, x))

    def main(bb, x, flag):
        made = bb.emit_te(topi.exp, x)
        views = [bb.emit_te(topi.reshape, v, (2, N)) for v in (x, made)]
        return [bb.emit_call(If(double, minus), [flag, v])[0] for v in views]
    run = build(function("main", [BlockBuilder.param("x", (N, 2)), BlockBuilder.param("flag", (), "bool")], main))
    x = np.arange(6, dtype="float32").reshape(3, 2)
    for got, want in zip(run(x, np.array(True)), (x, np.exp(x))):
        np.testing.assert_allclose(np.asarray(got), 2 * want.reshape(2, 3), rtol=1e-6)


def test_regions_within_regions(build):
    """Rows of x, each raised by a table's row, or halved where a flag says so, until a sum is too large."""
    table = np.arange(12, dtype="float32").reshape(4, 3)
    x, i, flag = BlockBuilder.param("x", (N, 3)), BlockBuilder.param("i", (), "int64"), BlockBuilder.param(
        "flag", (), "bool")
    raised = function("raised", [i, x], lambda bb, i, x: bb.emit_te(
        topi.add, x, bb.emit_te(topi.take, bb.const(table), i, axis=0)))
    halved = function("halved", [i, x], lambda bb, i, x: bb.emit_te(topi.multiply, x, 0.5))
    inner_turn = function("inner_turn", [i, x], lambda bb, i, x: [
        bb.emit_te(topi.less, i, 1), bb.emit_te(topi.add, x, 1.0)])

    def turn(bb, i, x, flag):
        y, = bb.emit_call(If(raised, halved), [flag, i, x])
        z, = bb.emit_call(Loop(inner_turn, 1), [bb.const(np.array(9)), bb.const(np.array(True)), y])
        go = bb.emit_te(topi.less, bb.emit_te(topi.sum, z), 1000.0)
        return [go, z, bb.emit_te(topi.sum, z, axis=1)]
    body = function("turn", [i, x, flag], turn)

    def main(bb, x, flag):
        return bb.emit_call(Loop(body, 1, 4), [bb.const(np.array(4)), bb.const(np.array(True)), x, flag])
    run = build(function("main", [x, flag], main))
    for n in (1, 5):
        for yes in (True, False):
            given = np.random.default_rng(n).standard_normal((n, 3)).astype("float32")
            want, sums = given.astype("float64"), []
            for k in range(4):
                want = (want + table[k] if yes else want * 0.5) + 2
                sums.append(want.sum(1))
            got, stacked = run(given, np.array(yes))
            np.testing.assert_allclose(np.asarray(got), want, rtol=1e-5)
            np.testing.assert_allclose(np.asarray(stacked), sums, rtol=1e-4)


def test_an_index_outside_within_a_region(build):
    x, i = BlockBuilder.param("x", (N, 3)), BlockBuilder.param("i", (1,), "int64")
    row = function("row", [x, i], lambda bb, x, i: bb.emit_te(topi.take, x, i, axis=0))
    first = function("first", [x, i], lambda bb, x, i: bb.emit_te(topi.strided_slice, x, begin=[0], end=[1], axes=[0]))
    run = build(function("main", [BlockBuilder.param("flag", (), "bool"), x, i], lambda bb, flag, x, i: bb.emit_call(
        If(row, first), [flag, x, i])[0]))
    given = np.arange(6, dtype="float32").reshape(2, 3)
    np.testing.assert_array_equal(np.asarray(run(np.array(True), given, np.array([1]))), given[1:])
    np.testing.assert_array_equal(np.asarray(run(np.array(False), given, np.array([7]))), given[:1])
    with pytest.raises(CallError, match="= 7 of .* is outside of its extent"):
        run(np.array(True), given, np.array([7]))
    np.testing.assert_array_equal(np.asarray(run(np.array(True), given, np.array([0]))), given[:1])


def test_exporting_names_the_call_that_runs_in_python(tmp_path):
    x = BlockBuilder.param("x", (N, 3))
    called = function("called", [x], lambda bb, x: bb.call_packed("not.exported", [x], [TensorType.of((N, 3))]))
    run = build_function(function("main", [x, BlockBuilder.param("flag", (), "bool")], lambda bb, x, flag: bb.emit_call(
        If(called, called, name="either"), [flag, x])[0]))
    with pytest.raises(GraphError, match=r"called cannot be exported: not.exported \(a packed function\) runs in Pyth"):
        run.export(tmp_path / "model.o")


def test_types_of_regions_are_checked():
    x = BlockBuilder.param("x", (N, 3))
    same = function("same", [x], lambda bb, x: bb.emit_te(topi.exp, x))
    less = function("less", [BlockBuilder.param("x", (N, 3))], lambda bb, x: bb.emit_te(topi.sum, x, axis=1))
    bb = BlockBuilder()
    flag, number, value = bb.param("flag", (), "bool"), bb.param("number", ()), bb.param("value", (N, 3))
    with pytest.raises(GraphError, match="same gives float32"), bb.function("main", [flag, value]):
        bb.emit_call(If(same, less), [flag, value])
    with pytest.raises(GraphError, match="the condition is float32"), bb.function("main", [number, value]):
        bb.emit_call(If(same, same), [number, value])


def test_inputs_that_are_missing():
    bb = BlockBuilder()
    step, x = bb.param("step", (), "int64"), bb.param("x", (3,))
    with bb.function("none", [step]):
        bb.emit_func_output([])
    with bb.function("same", [x]):
        bb.emit_func_output(x)
    none, same, count = bb.get()["none"], bb.get()["same"], TensorType((), "int64")
    with pytest.raises(GraphError, match="loop: none gives 0 value.s., and 1 are needed"):
        Loop(none, 0).types(count, TensorType((), "bool"))
    with pytest.raises(GraphError, match="loop: 1 input.s. are given, and the first 2 are its count, proceed"):
        Loop(none, 0).types(count)
    with pytest.raises(GraphError, match="if: 0 input.s. are given, and the first 1 are its condition"):
        If(same, same).types()
