"""The rule for recurrences along rows: every element is what the steps in their order give, bit by bit."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.rules import apply_rules
from tilewright.rules.apply import Scheduling
from tilewright.tir import PARALLEL, For, interp, walk

SHAPES = [(1, 50), (7, 13), (8, 1), (9, 101), (101, 9), (0, 3), (3, 0), (2, 3, 5), (3, 0, 4), (2, 17, 33)]
TARGET = tw.target("llvm -num-cores=1")


def running_sum(shape, axis=-1, symbolic=False, dtype="float32", of=lambda x: x, **attrs):
    x = te.placeholder([te.var(f"n{d}") for d in range(len(shape))] if symbolic else shape, dtype, name="x")
    return te.create_prim_func([x, topi.cumsum(of(x), axis=axis, **attrs)], name="f")


def rules(func):
    return [d.rule for d in Scheduling(func, TARGET).finish().decisions if len(d.blocks) > 1 or "scan" in d.rule]


def drawn(shape, dtype="float32"):
    return (np.random.default_rng(0).standard_normal(shape) * 100).astype(dtype)


def folded(x, exclusive=False, reverse=False):
    """The sums along the last axis, each in one addition of an element."""
    rows = x[..., ::-1] if reverse else x
    sums = np.zeros((*x.shape[:-1], x.shape[-1] + 1), x.dtype)
    for t in range(x.shape[-1]):
        sums[..., t + 1] = sums[..., t] + rows[..., t]
    out = sums[..., :-1] if exclusive else sums[..., 1:]
    return out[..., ::-1] if reverse else out


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_are_in_the_order_of_the_program(shape, symbolic, target):
    func, x = running_sum(shape, symbolic=symbolic), drawn(shape)
    if shape[-2] > 1 and 0 not in shape or symbolic:
        assert rules(func) == ["scan_rows"]
    y = np.zeros_like(x)
    tw.compile(func, target=target)(x, y)
    np.testing.assert_array_equal(y, folded(x))


@pytest.mark.parametrize("attrs", [{"exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True}])
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_what_comes_before_and_from_the_end(attrs, dtype):
    func, x = running_sum((13, 70), dtype=dtype, **attrs), drawn((13, 70), dtype)
    assert rules(func) == ["scan_rows"]
    y = np.zeros_like(x)
    tw.compile(func)(x, y)
    np.testing.assert_array_equal(y, folded(x, **attrs))


def test_the_schedule_runs_in_the_interpreter():
    sch, x = apply_rules(running_sum((11, 6)), TARGET), drawn((11, 6))
    y = np.zeros_like(x)
    interp.run(sch.func, x, y)
    np.testing.assert_array_equal(y, folded(x))


def test_groups_of_rows_are_on_all_threads():
    func, x = running_sum((300, 500)), drawn((300, 500))
    sch = apply_rules(func, tw.target("llvm -num-cores=4"))
    outer = next(n for n in walk(sch.func.body) if isinstance(n, For))
    assert outer.kind == PARALLEL
    y = np.zeros_like(x)
    tw.compile(func, target="llvm -num-cores=4")(x, y)
    np.testing.assert_array_equal(y, folded(x))


def test_vectors_along_the_last_axis_stay():
    """Neighbours that go to neighbouring results, one row, and steps that cost much are for the other rules."""
    for func in (running_sum((50, 60), axis=0), running_sum((100,)), running_sum((5, 100), of=topi.exp)):
        assert rules(func) == []


def test_a_state_that_is_seen_from_outside_stays_where_it_is():
    x, state = te.placeholder((8, 20), name="x"), te.placeholder((21, 8), name="state")
    start = te.compute((1, 8), lambda t, i: 0.0, name="start")
    step = te.compute((21, 8), lambda t, i: state[t - 1, i] + te.if_then_else(t > 0, x[i, t - 1], 0.0), name="step")
    sums = te.scan(start, step, state)
    turned = te.compute((8, 20), lambda i, t: sums[t + 1, i], name="turned")
    func = te.create_prim_func([x, sums, turned], name="f")
    assert rules(func) == []
    given, seen, y = drawn((8, 20)), np.zeros((21, 8), "float32"), np.zeros((8, 20), "float32")
    tw.compile(func)(given, seen, y)
    np.testing.assert_array_equal(y, folded(given))
    np.testing.assert_array_equal(seen[1:].T, y)


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("shape", [(1,), (50,), (1, 7), (9, 101), (40, 3, 5), (3, 0), (6, 1, 70)])
def test_sums_along_the_first_axis_are_made_where_they_go(shape, target):
    func, x = running_sum(shape, axis=0), drawn(shape)
    assert not func.body.block.alloc_buffers
    y = np.zeros_like(x)
    tw.compile(func, target=target)(x, y)
    np.testing.assert_array_equal(y, np.moveaxis(folded(np.moveaxis(x, 0, -1)), -1, 0))


def test_a_reduction_in_a_step_accumulates_vectors():
    """h[t, i] = X[t, i] + the sum of h[t - 1, k] * W[k, i], whose elements lie side by side in i."""
    n, m = 5, 40
    x, w, state = te.placeholder((n, m), name="X"), te.placeholder((m, m), name="W"), te.placeholder((n, m))
    k = te.reduce_axis((0, m), name="k")
    h = te.scan(te.compute((1, m), lambda _, i: x[0, i]),
                te.compute((n, m), lambda t, i: te.sum(state[t - 1, k] * w[k, i], axis=k), name="h"), state)
    sch = apply_rules(te.create_prim_func([x, w, h]), TARGET)
    assert [sch.get(loop).kind for loop in sch.get_loops("h_update")[-2:]] == ["serial", "vectorized"]
    a, b, out = drawn((n, m)), drawn((m, m)) / 1000, np.zeros((n, m), "float32")
    tw.build(sch.func)(a, b, out)
    want = [a[0].astype("float64")]
    for _ in range(n - 1):
        want.append(want[-1] @ b)
    np.testing.assert_allclose(out, want, rtol=1e-3, atol=1e-3)
