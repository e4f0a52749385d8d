"""Passes over functions: what they make, and that it means the same."""
import math

import numpy as np
import pytest

from tilewright import te, topi
from tilewright.graph.compile import SIMPLIFY, build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import size
from tilewright.graph.ir.values import check_function
from tilewright.graph.passes.fold import constant_part

RNG = np.random.default_rng(0)


def array(*shape):
    return RNG.standard_normal(shape).astype("float32")


def simplified(function):
    for step in SIMPLIFY:
        function = step(function)
        check_function(function)
    return function


def rules(run):
    """The operators of each kernel of what was built."""
    return [tuple(name.removeprefix("topi.") for name in s.callee.operators) for s in run.plan.steps]


@pytest.mark.parametrize("layer", ["conv", "linear"])
@pytest.mark.parametrize("bias", [False, True])
def test_batch_normalisation_becomes_part_of_the_weights(layer, bias):
    shape, w = ((size("n"), 3, 8, 8), array(6, 3, 3, 3)) if layer == "conv" else ((size("n"), 8), array(6, 8))
    b, mean, var, gamma, beta = array(6), array(6), np.abs(array(6)) + 0.5, array(6), array(6)
    bb = BlockBuilder()
    x = bb.param("x", shape)
    with bb.function("main", [x]):
        y = bb.emit_te(getattr(topi, layer), x, bb.const(w), *([bb.const(b)] if bias else []))
        y = bb.emit_te(topi.batch_norm, y, *map(bb.const, (mean, var, gamma, beta)), eps=1e-3)
        bb.emit_func_output(bb.emit_te(topi.relu, y))
    function = bb.get()["main"]
    run = build_function(function)
    assert rules(run) == [(layer, "relu")]
    given = array(2, *shape[1:])
    if layer == "conv":
        windows = np.lib.stride_tricks.sliding_window_view(given.astype("float64"), (3, 3), axis=(2, 3))
        z = np.einsum("bchwij,ocij->bohw", windows, w)
    else:
        z = given.astype("float64") @ w.T

    def channels(v):
        return v.astype("float64").reshape(-1, 1, 1) if layer == "conv" else v.astype("float64")
    z = z + channels(b) if bias else z
    z = (z - channels(mean)) / np.sqrt(channels(var) + 1e-3) * channels(gamma) + channels(beta)
    np.testing.assert_allclose(np.asarray(run(given)), np.maximum(z, 0), atol=1e-4)


def test_what_is_read_twice_keeps_its_weights():
    w, scale = array(6, 8), array(6)
    bb = BlockBuilder()
    x = bb.param("x", (3, 8))
    with bb.function("main", [x]):
        y = bb.emit_te(topi.linear, x, bb.const(w))
        bb.emit_func_output([y, bb.emit_te(topi.multiply, y, bb.const(scale))])
    given = array(3, 8)
    plain, scaled = build_function(bb.get()["main"])(given)
    np.testing.assert_allclose(np.asarray(plain), given @ w.T, atol=1e-4)
    np.testing.assert_allclose(np.asarray(scaled), given @ w.T * scale, atol=1e-4)


def test_a_factor_along_another_axis_is_not_taken_in():
    w, scale = array(3, 8), array(3, 1)
    bb = BlockBuilder()
    x = bb.param("x", (3, 8))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.multiply, bb.emit_te(topi.linear, x, bb.const(w)), bb.const(scale)))
    given = array(3, 8)
    np.testing.assert_allclose(np.asarray(build_function(bb.get()["main"])(given)), given @ w.T * scale, atol=1e-4)


def test_equal_calls_and_dead_calls():
    bb = BlockBuilder()
    x = bb.param("x", (3, 8))
    with bb.function("main", [x]):
        a, b = bb.emit_te(topi.exp, x), bb.emit_te(topi.exp, x)
        bb.emit_te(topi.tanh, a)
        bb.emit_func_output(bb.emit_te(topi.add, a, b))
    assert [c.callee.name for c in simplified(bb.get()["main"]).calls] == ["topi.exp", "topi.add"]


def test_constants_are_computed_once():
    bb = BlockBuilder()
    x = bb.param("x", (3, 8))
    with bb.function("main", [x]):
        c = bb.emit_te(topi.exp, bb.const(array(8)))
        bb.emit_func_output([bb.emit_te(topi.add, x, c), c])
    run = build_function(bb.get()["main"])
    assert [o for step in rules(run) for o in step].count("exp") == 0


def test_movement_that_cancels_is_not_there():
    bb = BlockBuilder()
    x = bb.param("x", (2, 3, 4))
    with bb.function("main", [x]):
        y = bb.emit_te(topi.transpose, bb.emit_te(topi.transpose, bb.emit_te(topi.exp, x), (1, 2, 0)), (2, 0, 1))
        z = bb.emit_te(topi.reshape, bb.emit_te(topi.reshape, y, (6, 4)), (2, 3, 4))
        wide = bb.emit_te(topi.reshape, z, (2, 1, 12))
        bb.emit_func_output([bb.emit_te(topi.tanh, z), bb.emit_te(topi.transpose, wide, (1, 0, 2))])
    function = simplified(bb.get()["main"])
    assert [c.callee.name for c in function.calls] == ["topi.exp", "topi.tanh", "topi.reshape"]
    given = array(2, 3, 4)
    first, second = build_function(bb.get()["main"])(given)
    np.testing.assert_allclose(np.asarray(first), np.tanh(np.exp(given)), atol=1e-6)
    np.testing.assert_allclose(np.asarray(second), np.exp(given).reshape(1, 2, 12), rtol=1e-6)


def test_elementwise_operators_pass_views_to_reach_a_product():
    w, b = array(8, 6), array(8)
    n = size("n")
    bb = BlockBuilder()
    x, r = bb.param("x", (n, 3, 6)), bb.param("r", (n, 3, 8))
    with bb.function("main", [x, r]):
        flat = bb.emit_te(topi.linear, bb.emit_te(topi.reshape, x, (n * 3, 6)), bb.const(w))
        y = bb.emit_te(topi.add, bb.emit_te(topi.reshape, flat, (n, 3, 8)), bb.const(b))
        bb.emit_func_output(bb.emit_te(topi.multiply, bb.emit_te(topi.tanh, y), r))
    run = build_function(bb.get()["main"])
    assert rules(run) == [("linear", "tanh", "multiply")]
    p, q = array(5, 3, 6), array(5, 3, 8)
    np.testing.assert_allclose(np.asarray(run(p, q)), np.tanh(p @ w.T + b) * q, atol=1e-5)


def test_a_product_takes_in_what_reads_it_twice():
    w = array(8, 6)
    bb = BlockBuilder()
    x = bb.param("x", (5, 6))
    with bb.function("main", [x]):
        y = bb.emit_te(topi.linear, x, bb.const(w))
        half = bb.emit_te(topi.multiply, y, bb.emit_te(topi.add, bb.emit_te(topi.erf, y), 1.0))
        bb.emit_func_output(bb.emit_te(topi.multiply, half, 0.5))
    run = build_function(bb.get()["main"])
    assert rules(run) == [("linear", "erf", "add", "multiply", "multiply")]
    p = array(5, 6)
    z = p.astype("float64") @ w.T
    np.testing.assert_allclose(np.asarray(run(p)), z * (np.vectorize(math.erf)(z) + 1) / 2, atol=1e-5)


def test_constants_are_folded_unless_that_takes_much_more_memory():
    def steps(count):
        bb = BlockBuilder()
        x = bb.param("x", (3,))
        with bb.function("main", [x]):
            y = bb.emit_te(topi.broadcast_to, bb.emit_te(topi.exp, bb.const(np.ones(1, "float32"))), (count, 64))
            y = bb.emit_te(topi.sum, bb.emit_te(topi.cumsum, y, axis=0), axis=(0, 1))
            bb.emit_func_output(bb.emit_te(topi.add, x, y))
        fixed = constant_part(bb.get()["main"])
        return [] if fixed is None else [c.callee.name.removeprefix("topi.") for c in fixed.calls]
    assert steps(8) == ["exp", "broadcast_to", "cumsum", "sum"]
    assert steps(1 << 28) == ["exp"]


def test_inputs_of_which_only_the_type_is_used_are_no_inputs():
    """What they are made of is not computed, at any size; nor is what depends on them folded."""
    def ones_like(x): return te.compute(x.shape, lambda *_: te.const(1.0, x.dtype), name="ones")
    n = size("n")
    bb = BlockBuilder()
    x, z = bb.param("x", (n, 4)), bb.param("z", (n, 4))
    with bb.function("main", [x, z]):
        y = bb.emit_te(ones_like, bb.emit_te(topi.exp, x))
        weights = bb.emit_te(topi.multiply, bb.emit_te(ones_like, bb.const(array(4, 4))), 2.0)
        bb.emit_func_output([bb.emit_te(topi.add, y, z), bb.emit_te(topi.matmul, z, weights)])
    function = bb.get()["main"]
    assert [c.callee.name for c in simplified(function).calls].count("topi.exp") == 0
    run = build_function(function)
    assert ("te.ones_like", "add") in rules(run)
    for rows in (1, 5):
        p, q = array(rows, 4), array(rows, 4)
        first, second = run(p, q)
        np.testing.assert_array_equal(first.numpy(), 1 + q)
        np.testing.assert_allclose(second.numpy(), np.repeat(2 * q.sum(1, keepdims=True), 4, 1), rtol=1e-5)
