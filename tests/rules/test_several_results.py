"""The rules for reductions of several results whose neighbours in memory go to neighbouring results."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.te.arg_reducers import arg_reducer

LOCAL = "llvm -num-cores=2 -opt-level=1"
RULES = (["columns"], ["several_results"])                # by lines of memory; in registers, where there are few


def rules_of(args):
    return [d.rule for d in tw.explain(te.create_prim_func(args), LOCAL).decisions]


def drawn(shape, dtype):
    a = np.random.default_rng(3).integers(0, 9, shape)
    return a.astype({"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype))


KINDS = [("bool", "argmin"), ("int8", "argmax"), ("uint64", "argmin"), ("float16", "argmax"), ("bfloat16", "argmin"),
         ("float32", "argmin"), ("float64", "argmax")]


@pytest.mark.parametrize("shape, axis, dtype, operation", [
    *(((40, 70), 0, *kind) for kind in KINDS),
    *((*case, "float32", "argmax") for case in [((3, 7, 33), 1), ((1, 17), 0), ((9, 2), 0), ((64, 300), 0)])])
def test_places_in_columns(shape, axis, dtype, operation):
    a = drawn(shape, dtype)
    if dtype in ("float16", "float32", "float64") and shape[0] > 30:
        a[[3, 21], 5] = np.nan
    x = te.placeholder(shape, dtype, "x")
    args = [x, getattr(topi, operation)(x, axis=axis)]
    assert rules_of(args) in RULES
    wide = a.astype("float64") if a.dtype.kind not in "iub" else a
    want = getattr(np, operation)(wide, axis=axis)
    out = np.full(want.shape, 77, "int64")
    tw.compile(args, target=LOCAL)(a, out)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("shape, rule", [((32, 640), "columns"), ((31, 640), "several_results"),
                                         ((32, 8), "several_results")])
def test_many_long_lines_are_read_as_they_lie(shape, rule):
    x = te.placeholder(shape, name="x")
    assert rules_of([x, topi.argmin(x, axis=0)]) == [rule]


@pytest.mark.parametrize("shape", [(40, 1), (40, 0)])
def test_no_columns_and_one(shape):
    a = drawn(shape, "float32")
    x = te.placeholder(shape, name="x")
    out = np.full(shape[1:], 77, "int64")
    tw.compile([x, topi.argmax(x, axis=0)], target=LOCAL)(a, out)
    np.testing.assert_array_equal(out, a.argmax(0))


@pytest.mark.parametrize("n, m", [(1, 1), (40, 70), (1000, 33)])
def test_sizes_of_the_call(n, m):
    rows, columns = te.var("n"), te.var("m")
    a = drawn((n, m), "float32")
    x = te.placeholder((rows, columns), name="x")
    args = [x, topi.argmax(x, axis=0)]
    assert rules_of(args) == ["several_results"]
    out = np.full(m, 77, "int64")
    tw.compile(args, target=LOCAL)(a, out)
    np.testing.assert_array_equal(out, a.argmax(0))


def test_three_results_of_one_reduction():
    """The number, the sum and the sum of squares of columns, in one pass."""
    a = np.random.default_rng(4).standard_normal((50, 300)).astype("float32")
    x = te.placeholder(a.shape, name="x")
    add = te.comm_reducer(lambda p, q: tuple(u + v for u, v in zip(p, q)),
                          lambda *types: tuple(te.const(0, t) for t in types), name="moments")
    k = te.reduce_axis((0, 50), "k")
    results = te.compute((300,), lambda j: add((te.const(1, "int32"), x[k, j], x[k, j] * x[k, j]), axis=k), "moments")
    assert rules_of([x, *results]) == ["columns"]
    count, total, squares = np.empty(300, "int32"), np.empty(300, "float32"), np.empty(300, "float32")
    tw.compile([x, *results], target=LOCAL)(a, count, total, squares)
    wide = a.astype("float64")
    assert (count == 50).all()
    np.testing.assert_allclose(total, wide.sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(squares, (wide * wide).sum(0), rtol=1e-5)


def test_steps_of_a_scan_are_left_alone():
    """Viterbi's algorithm: of each step and state, the best score and the state before it."""
    steps, states = 6, 70
    rng = np.random.default_rng(5)
    weights, first = (rng.standard_normal(s).astype("float32") for s in ((states, states), (1, states)))
    w, x = te.placeholder(weights.shape, name="w"), te.placeholder(first.shape, name="x")
    score, before = te.placeholder((steps, states), name="score"), te.placeholder((steps, states), "int32", "before")
    k = te.reduce_axis((0, states), "k")
    best = arg_reducer(True)
    place, value = te.compute((steps, states), lambda t, j: best((k.var, score[t - 1, k] + w[k, j]), axis=k), "best")
    starts = [te.compute((1, states), lambda _, j: te.const(0, "int32"), "none"),
              te.compute((1, states), lambda _, j: x[0, j], "start")]
    back, scores = te.scan(starts, [place, value], [before, score], name="viterbi")
    func = te.create_prim_func([w, x, back, scores])
    assert not {"columns", "several_results"} & {d.rule for d in tw.explain(func, LOCAL).decisions}
    got = np.empty((steps, states), "int32"), np.empty((steps, states), "float32")
    tw.compile(func, target=LOCAL)(weights, first, *got)
    want = first[0]
    for t in range(1, steps):
        paths = want[:, None] + weights
        np.testing.assert_array_equal(got[0][t], paths.argmax(0))
        want = paths.max(0)
        np.testing.assert_array_equal(got[1][t], want)
