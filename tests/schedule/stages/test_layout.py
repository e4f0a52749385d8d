"""transform_layout of a stage, and caches whose dimensions are loops: print, meaning, refusals."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.compat.te_schedule import infer_bound
from tilewright.support.errors import ScheduleError


def shifted(*shape):
    """s, A, B = A + 1"""
    a = te.placeholder(shape, name="A")
    b = te.compute(shape, lambda *i: a(*i) + 1, name="B")
    return te.create_schedule(b.op), a, b


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def result(s, args, *arrays, shape):
    out = np.full(shape, np.nan, "float32")
    tw.build(s, args)(*arrays, out)
    return out


def names(axes):
    return [iv.var.name for iv in axes]


# ---- layouts

MAPS = {                                        # of indices of (4, 6, 40), and what they make of an array
    "reverse": (lambda *i: i[::-1], lambda x: x.transpose(2, 1, 0)),
    "flat": (lambda i, j, k: [(i * 6 + j) * 40 + k], lambda x: x.reshape(-1)),
    "split": (lambda *i: [*i[:-1], i[-1] // 4, i[-1] % 4], lambda x: x.reshape(4, 6, 10, 4)),
    "panels": (lambda i, j, k: [k // 8, i, te.AXIS_SEPARATOR, j, k % 8],
               lambda x: x.reshape(4, 6, 5, 8).transpose(2, 0, 1, 3)),
    "same": (lambda *i: i, lambda x: x),
}


@pytest.mark.parametrize("of_b", MAPS)
@pytest.mark.parametrize("of_a", MAPS)
def test_arguments_have_the_new_layouts(of_a, of_b):
    s, a, b = shifted(4, 6, 40)
    assert s[a].transform_layout(MAPS[of_a][0]) is None
    axes = s[b].transform_layout(MAPS[of_b][0])
    x = random(4, 6, 40)
    expected = MAPS[of_b][1](x) + 1
    assert [iv.dom.extent.value for iv in axes] == list(expected.shape) and s[b].leaf_iter_vars == tuple(axes)
    given = np.ascontiguousarray(MAPS[of_a][1](x))
    np.testing.assert_array_equal(result(s, [a, b], given, shape=expected.shape), expected)


def test_new_axes_are_scheduled_like_any():
    s, a, b = shifted(16, 64)
    i, jo, ji = s[b].transform_layout(lambda i, j: [i, j // 4, j % 4])
    assert names([i, jo, ji]) == ["i0", "axis1", "axis2"]
    s[b].reorder(jo, i)
    outer, _ = s[b].split(jo, factor=8)
    s[b].vectorize(ji)
    s[b].parallel(outer)
    text = str(s.replay([a, b]))
    assert "for axis1_outer in T.parallel(2)" in text and "for axis2 in T.vectorized(4)" in text
    assert "B[v_i0, v1, v2] = A[v_i0, v1 * 4 + v2] + T.float32(1)" in text
    x = random(16, 64)
    np.testing.assert_array_equal(result(s, [a, b], x, shape=(16, 16, 4)), x.reshape(16, 16, 4) + 1)
    bounds = infer_bound(s)
    assert [bounds[iv].extent.value for iv in (i, jo, ji)] == [16, 16, 4]


def chain(n=8):
    """A, B = A + 1, C = sums of the rows of B, D = C * 2"""
    a, k = te.placeholder((n, 12), name="A"), te.reduce_axis((0, 12), name="k")
    b = te.compute((n, 12), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((n,), lambda i: te.sum(b[i, k], axis=k), name="C")
    return a, b, c, te.compute((n,), lambda i: c[i] * 2, name="D")


def test_what_lies_between_may_be_cached_moved_and_reduced():
    a, b, c, d = chain()
    s = te.create_schedule(d.op)
    cached = s.cache_read(a, "local", [b])
    s[cached].transform_layout(lambda i, j: [j // 3, i, j % 3])
    x = s[b].transform_layout(lambda i, j: [i // 4, j, i % 4])
    s[b].fuse(x[0], x[1])
    y = s[c].transform_layout(lambda i: [i // 2, i % 2])
    s[b].compute_at(s[c], y[0])
    s[c].split(c.op.reduce_axis[0], factor=4)
    s[d].transform_layout(lambda i: [i // 4, i % 4])
    s[d].transform_layout(lambda i, j: [j, i])
    text = str(s.replay([a, d]))
    for line in ('A_local = T.alloc_buffer((4, 8, 3), scope="local")', "B = T.alloc_buffer((2, 12, 4))",
                 "C = T.alloc_buffer((4, 2))", 'D: T.Buffer((4, 2), "float32")'):
        assert line in text
    x = random(8, 12)
    out = result(s, [a, d], x, shape=(4, 2))
    np.testing.assert_allclose(out.T.reshape(8), 2 * (x + 1).sum(1), rtol=1e-5)


def test_symbolic_extents_and_outputs_of_one_operation():
    n = te.var("n")
    a = te.placeholder((n, 8), name="A")
    b, c = te.compute((n, 8), lambda i, j: (a[i, j] + 1, a[i, j] * 2), name="BC")
    s = te.create_schedule(b.op)
    s[b].transform_layout(lambda i, j: [j // 4, i, j % 4])
    x = random(5, 8)
    y, z = np.empty((2, 5, 4), "float32"), np.empty((2, 5, 4), "float32")
    tw.build(s, [a, b, c])(x, y, z)
    panels = x.reshape(5, 2, 4).transpose(1, 0, 2)
    np.testing.assert_array_equal(y, panels + 1)
    np.testing.assert_array_equal(z, panels * 2)


def test_an_inlined_stage_has_no_layout():
    a, b, c, d = chain()
    s = te.create_schedule(d.op)
    s[b].transform_layout(lambda i, j: [j, i])
    s[b].compute_inline()
    x = random(8, 12)
    np.testing.assert_allclose(result(s, [a, d], x, shape=8), 2 * (x + 1).sum(1), rtol=1e-5)


def test_rows_are_aligned_in_the_new_layout():
    a, b, _, d = chain()
    s = te.create_schedule(d.op)
    axes = s[b].transform_layout(lambda i, j: [i, j // 4, j % 4])
    s[b].storage_align(axes[1], 8, 5)
    assert "[0, 1, 8, 5]" in str(s.replay([a, d]))
    with pytest.raises(ScheduleError, match="i is not an axis of the operation B"):
        s[b].storage_align(b.op.axis[0], 8, 5)


def test_fingerprints_tell_layouts_apart():
    def of(*maps):
        s, a, b = shifted(8, 8)
        for one in maps:
            s[b].transform_layout(one)
        return s.fingerprint([a, b])
    turned, split = (lambda i, j: [j, i]), (lambda i, j: [i, j // 2, j % 2])
    assert len({of(), of(turned), of(split), of(turned, split), of(split, lambda i, j, k: [i, k, j])}) == 5


# ---- caches whose dimensions are loops

def test_a_cache_has_the_dimensions_of_reordered_loops():
    s, a, b = shifted(8, 12)
    i, j = b.op.axis
    s[b].reorder(j, i)
    cache = s.cache_write(b, "local")
    assert [d.value for d in cache.shape] == [12, 8] and names(s[cache].op.axis) == ["i1.c", "i0.c"]
    assert s[b].leaf_iter_vars == (i, j)
    s[cache].compute_at(s[b], i)
    assert "B_local[v_i1, v_i0] = A[v_i0, v_i1] + T.float32(1)" in str(s.replay([a, b]))
    x = random(8, 12)
    np.testing.assert_array_equal(result(s, [a, b], x, shape=(8, 12)), x + 1)


def test_a_cache_has_the_dimensions_of_fused_axes_of_a_layout():
    s, a, b = shifted(8, 12)
    panel, row, column = s[b].transform_layout(lambda i, j: [j // 4, i, j % 4])
    s[b].fuse(panel, row)
    cache = s.cache_write(b, "local")
    assert [d.value for d in cache.shape] == [24, 4]
    x = random(8, 12)
    np.testing.assert_array_equal(result(s, [a, b], x, shape=(3, 8, 4)), (x + 1).reshape(8, 3, 4).transpose(1, 0, 2))


def test_a_cache_has_the_dimensions_of_split_loops_of_symbolic_extent():
    m = te.var("m")
    s, a, b = shifted(m * 4, m)
    outer, inner = s[b].split(b.op.axis[0], 4)
    s[b].reorder(outer, b.op.axis[1], inner)
    cache = s.cache_write(b, "global")
    assert [str(d) for d in cache.shape] == ["m", "m", "4"]
    s[cache].vectorize(s[cache].op.axis[2])
    x = random(12, 3)
    np.testing.assert_array_equal(result(s, [a, b], x, shape=(12, 3)), x + 1)
    with pytest.raises(ScheduleError, match="i0.outer is no longer a loop of B: it was left to the cache by"):
        s[cache].compute_at(s[b], outer)


def test_a_cache_of_a_cache_a_reduction_by_nparts_and_fused_loops():
    a, k = te.placeholder((16, 8), name="A"), te.reduce_axis((0, 8), name="k")
    b = te.compute((16, 4), lambda i, j: te.sum(a[i, k] * (j + 1), axis=k), name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], nparts=2)
    s[b].fuse(inner, b.op.axis[1])
    s[b].split(k, factor=2)
    cache = s.cache_write(b, "global")
    assert [d.value for d in cache.shape] == [2, 32] and s[cache].leaf_iter_vars == (*s[cache].op.axis, k)
    s[cache].reorder(*reversed(s[cache].op.axis))
    last = s.cache_write(cache, "local")
    assert [d.value for d in last.shape] == [32, 2]
    read = s.cache_read(cache, "shared", [b])
    assert [d.value for d in read.shape] == [2, 32]
    x = random(16, 8)
    expected = x.sum(1, keepdims=True) * np.arange(1, 5)
    np.testing.assert_allclose(result(s, [a, b], x, shape=(16, 4)), expected, rtol=1e-5, atol=1e-5)


def test_a_cache_after_transform_layout():
    s, a, b = shifted(10, 8)
    s[b].transform_layout(lambda i, j: [j, i])
    cache = s.cache_write(b, "local")
    assert [d.value for d in cache.shape] == [8, 10] and names(s[b].leaf_iter_vars) == ["i0", "i1"]
    x = random(10, 8)
    np.testing.assert_array_equal(result(s, [a, b], x, shape=(8, 10)), x.T + 1)


def test_what_was_said_of_loops_that_stay_holds():
    s, a, b = shifted(8, 8)
    s[b].parallel(b.op.axis[0])
    s.cache_write(b, "local")
    assert "for i0 in T.parallel(8)" in str(s.replay([a, b]))


# ---- caches of several outputs

def test_all_outputs_of_an_operation_get_a_cache():
    a = te.placeholder((8, 12), name="A")
    b, c = te.compute((8, 12), lambda i, j: (a[i, j] + 1, a[i, j] * 2), name="BC")
    s = te.create_schedule(b.op)
    i, j = b.op.axis
    s[b].reorder(j, i)
    caches = s.cache_write([b, c], "local")
    assert [[d.value for d in t.shape] for t in caches] == [[12, 8]] * 2 and caches[0].op is caches[1].op
    s[caches[0]].compute_at(s[b], i)
    s[b].vectorize(s[b].split(j, 4)[1])
    x = random(8, 12)
    y, z = np.empty((8, 12), "float32"), np.empty((8, 12), "float32")
    tw.build(s, [a, b, c])(x, y, z)
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(z, x * 2)


def test_a_reduction_of_pairs_gets_a_cache():
    def better(x, y):
        return te.select(x[1] >= y[1], x[0], y[0]), te.select(x[1] >= y[1], x[1], y[1])
    argmax = te.comm_reducer(better, lambda t0, t1: (te.const(-1, t0), te.min_value(t1)), name="argmax")
    a, p = te.placeholder((8, 12), name="A"), te.placeholder((12,), "int32", name="P")
    k = te.reduce_axis((0, 12), name="k")
    place, most = te.compute((8,), lambda i: argmax((p[k], a[i, k]), axis=k), name="T")
    s = te.create_schedule(place.op)
    second, first = s.cache_write([most, place], "local")
    assert (first.value_index, second.value_index) == (0, 1) and len(s[first].op.reduce_axis) == 1
    s[first].compute_at(s[place], s[place].op.axis[0])
    x = random(8, 12)
    i, v = np.empty(8, "int32"), np.empty(8, "float32")
    tw.build(s, [a, p, place, most])(x, np.arange(12, dtype="int32"), i, v)
    np.testing.assert_array_equal(i, x.argmax(1))
    np.testing.assert_array_equal(v, x.max(1))
