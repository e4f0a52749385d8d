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
from tilewright.runtime.dtypes import numpy_dtype

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


@pytest.mark.parametrize("weight, factor", [(1e-30, 1e-15), (1e-30, 1e-9), (1e30, 1e10)], ids=["zero", "digits", "inf"])
def test_a_factor_that_leaves_no_digits_of_the_weights_is_not_taken_in(weight, factor):
    w, scale = np.full((4, 3), weight / 3, "float32"), np.full(4, factor, "float32")
    bb = BlockBuilder()
    x = bb.param("x", (2, 3))
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.multiply, bb.emit_te(topi.linear, x, bb.const(w)), bb.const(scale)))
    given = np.full((2, 3), 1e25 if weight < 1 else 1e-25, "float32")
    want = given.astype("float64") @ w.T.astype("float64") * scale.astype("float64")
    np.testing.assert_allclose(np.asarray(build_function(bb.get()["main"])(given)), want, rtol=1e-6)


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


def built(shape, body, dtype="float32"):
    """The compiled function of one parameter that gives body(emit, x, const)."""
    bb = BlockBuilder()
    x = bb.param("x", shape, dtype)
    with bb.function("main", [x]):
        bb.emit_func_output(body(bb.emit_te, x, bb.const))
    function = bb.get()["main"]
    run = build_function(function)
    assert run.plan.results[0][1] == function.results[0].type
    return run


@pytest.mark.parametrize("shape, axis", [((2, 4, 4), 1), ((4, 2, 4), 0), ((8, 4), 1), ((2, 4, 4), 2), ((2, 4, 4), -1)])
def test_an_axis_that_an_operator_names_is_that_of_the_reshaped_value(shape, axis):
    w, slopes = array(4, 3), array(4)
    run = built((8, 3), lambda emit, x, const: emit(
        topi.prelu, emit(topi.reshape, emit(topi.linear, x, const(w)), shape), const(slopes), axis=axis))
    x = array(8, 3)
    y = (x.astype("float64") @ w.T).reshape(shape)
    by = slopes.reshape([-1 if k == axis % len(shape) else 1 for k in range(len(shape))])
    np.testing.assert_allclose(np.asarray(run(x)), np.where(y > 0, y, y * by), atol=1e-5)


@pytest.mark.parametrize("per_row", [False, True])
def test_channels_at_the_end(per_row):
    """A factor of each row is none of each channel, be there as many of both; one of each channel is taken in."""
    w, b = array(4, 3, 1, 1), array(4)
    factor, term = array(*((4, 1, 1) if per_row else (4,))), array(4)
    run = built((2, 4, 5, 3), lambda emit, x, const: emit(topi.add, emit(topi.multiply, emit(
        topi.conv, x, const(w), const(b), channels_last=True), const(factor)), const(term)))
    x = array(2, 4, 5, 3)
    wanted = (np.einsum("bhwc,oc->bhwo", x.astype("float64"), w[:, :, 0, 0]) + b) * factor + term
    np.testing.assert_allclose(np.asarray(run(x)), wanted, atol=1e-5)
    assert ("multiply" in rules(run)[0]) == per_row


@pytest.mark.parametrize("dtype, mean, var, eps, x", [
    ("float32", 1.0, 0.0, 0.0, 2.0), ("float32", 1e37, 1e-10, 1e-5, 1e37), ("float32", 3.0, np.inf, 1e-5, 2.0),
    ("float16", 1.0, 0.0, 1e-8, 1.0), ("float16", 100.0, 0.01, 1e-5, 100.5), ("float16", 0.0, 60000.0, 1e-5, 60000.0),
    ("bfloat16", 100.0, 1.0, 1e-5, 101.0), ("float16", 0.25, 1.0, 1e-5, 1.5)])
@pytest.mark.parametrize("moments", ["own", "float32"])
def test_normalisation_by_moments_that_no_product_and_sum_stand_for(dtype, mean, var, eps, x, moments):
    held = numpy_dtype(dtype if moments == "own" else moments)
    given = [np.full(3, v, held) for v in (mean, var)]
    run = built((2, 3), lambda emit, x, const: emit(topi.batch_norm, x, *map(const, given), eps=eps), dtype)
    value = np.full((2, 3), x, numpy_dtype(dtype))
    with np.errstate(divide="ignore"):
        wanted = (value.astype("float64") - given[0].astype("float64")) / np.sqrt(given[1].astype("float64") + eps)
    got = run(value).numpy().astype("float64")
    np.testing.assert_allclose(got, wanted, rtol={"float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 1e-5))


@pytest.mark.parametrize("dtype, weight, factor, x", [
    ("float32", 1e30, 1e20, 1e-30), ("float16", 300.0, 300.0, 0.01), ("float16", 1e-3, 1e-3, 6e4),
    ("bfloat16", 1e30, 1e20, 1e-30), ("float16", 0.5, 0.5, 1.0)])
def test_weights_that_a_factor_would_spoil_stay_as_they_are(dtype, weight, factor, x):
    own = numpy_dtype(dtype)
    w, f = np.full((4, 1), weight, own), np.full(4, factor, own)
    run = built((2, 1), lambda emit, x, const: emit(
        topi.add, emit(topi.multiply, emit(topi.linear, x, const(w)), const(f)), const(np.zeros(4, own))), dtype)
    value = np.full((2, 1), x, own)
    wanted = value.astype("float64") @ w.T.astype("float64") * f.astype("float64")
    np.testing.assert_allclose(run(value).numpy().astype("float64"), wanted,
                               rtol={"float16": 3e-3, "bfloat16": 2e-2}.get(dtype, 1e-5))
