"""New values of parameters of which most elements stay: kernels store the others alone."""
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.graph import BlockBuilder, size
from tilewright.graph.compile import build_function
from tilewright.tir import IfThenElse, Load
from tilewright.tir.node import walk

RNG = np.random.default_rng(5)


def array(*shape): return RNG.standard_normal(shape).astype("float32")


def put_rows(cache, rows, *, start, turned=False):
    """cache with rows from row `start` on; the choice is written either way."""
    def element(i, j):
        new = te.all(i >= start, i < start + rows.shape[0])
        if turned:
            return te.if_then_else(te.logical_not(new), cache[i, j], rows[i - start, j])
        return te.if_then_else(new, rows[i - start, j], cache[i, j])
    return te.compute(cache.shape, element, name="put_rows")


def step(rule, result=None, **attributes):
    """(cache[9, 4], rows[n, 4], seen[p]) -> sums of the new cache, or of what result makes of it; it is updated."""
    bb = BlockBuilder()
    cache, rows, seen = bb.param("cache", (9, 4)), bb.param("rows", (size("n"), 4)), bb.param("seen", (size("p"),))
    with bb.function("step", [cache, rows, seen]):
        new = bb.emit_te(rule, cache, rows, **attributes)
        out = bb.emit_te(topi.sum, new if result is None else result(bb.emit_te, cache, new), axis=0)
        bb.emit_func_output(bb.emit_te(topi.add, out, bb.emit_te(topi.sum, seen)), updates={cache: new})
    return bb.get()["step"]


def stores_changes(run):
    """Whether one kernel of the function stores under a condition."""
    return [any(isinstance(n, IfThenElse) for n in walk(k.definition.body)) and k.name.endswith("_changes")
            for k in run.kernels].count(True) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_a_row_is_stored_and_no_other_element(turned):
    run = build_function(step(put_rows, start=size("p"), turned=turned))
    assert stores_changes(run)
    kernel = next(k.definition for k in run.kernels if k.name.endswith("_changes"))
    old = kernel.buffer_map[kernel.params[0]]
    assert not any(isinstance(n, Load) and n.buffer is old for n in walk(kernel.body))
    cache = array(9, 4)
    wanted = cache.copy()
    for n, p in ((1, 1), (3, 5), (2, 7), (9, 1), (5, 8)):            # the last two reach over the end
        rows = array(n, 4)
        wanted[p:p + n] = rows[:9 - p]
        got = run(cache, rows, np.zeros(p, "float32"))
        np.testing.assert_array_equal(cache, wanted)
        np.testing.assert_allclose(got.numpy(), wanted.astype("float64").sum(0), rtol=1e-5, atol=1e-5)


def test_who_reads_the_old_cache_has_read_it_before():
    def difference(emit, cache, new): return emit(topi.subtract, new, cache)
    run = build_function(step(put_rows, difference, start=size("p")))
    cache = array(9, 4)
    old, rows = cache.copy(), array(2, 4)
    got = run(cache, rows, np.zeros(3, "float32")).numpy()
    np.testing.assert_allclose(got, (rows - old[3:5]).astype("float64").sum(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(cache[3:5], rows)


def plus_first(cache, rows):
    """A choice between two new values: every element changes."""
    return te.compute(cache.shape, lambda i, j: te.if_then_else(i < 3, cache[i, j] + rows[0, j], cache[i, j] * 2.0))


def moved(cache, rows):
    """A choice of which one side is another element of the cache."""
    return te.compute(cache.shape, lambda i, j: te.if_then_else(i < 3, rows[0, j], cache[i - 1, j]))


def scaled(cache, rows):
    """A choice whose new side reads the old element too."""
    return te.compute(cache.shape, lambda i, j: te.if_then_else(i < 3, cache[i, j] * rows[0, j], cache[i, j]))


@pytest.mark.parametrize("rule, follow", [
    (plus_first, lambda c, r: np.concatenate([c[:3] + r[:1], c[3:] * 2])),
    (moved, lambda c, r: np.concatenate([np.repeat(r[:1], 3, 0), c[2:-1]])),
    (scaled, lambda c, r: np.concatenate([c[:3] * r[:1], c[3:]]))])
def test_other_choices_are_computed_whole(rule, follow):
    run = build_function(step(rule))
    cache, rows = array(9, 4), array(2, 4)
    wanted = follow(cache, rows)
    run(cache, rows, np.zeros(1, "float32"))
    np.testing.assert_allclose(cache, wanted, rtol=1e-6)


def chosen(flag, a, b): return te.compute(a.shape, lambda i: te.if_then_else(flag[i], a[i], b[i]), name="chosen")


def test_one_kernel_changes_two_parameters_that_are_its_two_sides():
    bb = BlockBuilder()
    flag = bb.param("flag", (100,), "bool")
    p, q, x, y = (bb.param(name, (100,)) for name in "pqxy")
    with bb.function("step", [flag, p, q, x, y]):
        updates = {p: bb.emit_te(chosen, flag, x, p), q: bb.emit_te(chosen, flag, q, y)}
        bb.emit_func_output([], updates=updates)
    run = build_function(bb.get()["step"])
    where = RNG.random(100) < 0.5
    a, b, u, v = (array(100) for _ in range(4))
    wanted = np.where(where, u, a), np.where(where, b, v)
    run(where, a, b, u, v)
    np.testing.assert_array_equal(a, wanted[0])
    np.testing.assert_array_equal(b, wanted[1])


def test_bisect_finds_nothing_wrong():
    assert tw.bisect(step(put_rows, start=size("p")), array(9, 4), array(2, 4), np.zeros(3, "float32")) is None
