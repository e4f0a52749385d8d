"""s.rfactor: the classic reduction tutorial, and what may come before and after it."""
from __future__ import annotations

import itertools

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.support.errors import ScheduleError


def rows(n=37, m=101):
    """B[i] = sum of row i of A."""
    a = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    return a, te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")


def check_rows(s, a, b, shape=(37, 101)):
    x, out = np.random.default_rng(0).random(shape).astype("float32"), np.zeros(shape[0], "float32")
    tw.build(s, [a, b], "llvm -opt-level=1")(x, out)
    np.testing.assert_allclose(out, x.sum(axis=1, dtype="float64"), rtol=1e-5)


def test_the_tutorial():
    n, m = te.var("n"), te.var("m")
    a, b = rows(n, m)
    s = te.create_schedule(b.op)
    _, ki = s[b].split(b.op.reduce_axis[0], factor=16)
    bf = s.rfactor(b, ki)
    assert [iv.var.name for iv in bf.op.axis] == ["k.inner", "i"] and bf.op.name == "B.rf"
    assert [iv.var.name for iv in s[bf].op.reduce_axis] == ["k.outer"]
    assert [iv.var.name for iv in s[b].op.reduce_axis] == ["k.inner.v"]
    assert str(s[b].op.body[0]).startswith("sum(B_rf[k_inner_v, i]") or "B.rf" in str(s[b].op.body[0])
    text = str(tw.lower(s, [a, b], simple_mode=True))
    assert "if_then_else(T.likely(k_outer * 16 + k_inner < m)" in text and "B_rf = T.decl_buffer((16 * n,))" in text
    check_rows(s, a, b)


def test_the_rows_on_threads_of_a_gpu():
    a, b = rows(64, 100)
    s = te.create_schedule(b.op)
    _, ki = s[b].split(b.op.reduce_axis[0], factor=16)
    bf = s.rfactor(b, ki)
    xo, xi = s[b].split(s[b].op.axis[0], factor=32)
    s[b].bind(xo, te.thread_axis("blockIdx.x"))
    s[b].bind(xi, te.thread_axis("threadIdx.y"))
    s[bf].compute_at(s[b], s[b].op.reduce_axis[0])
    text = str(tw.lower(s, [a, b], simple_mode=True))
    assert 'T.launch_thread("threadIdx.y", 32)' in text and "B_rf = T.decl_buffer((1,)" in text


def test_parts_in_the_lanes_of_a_vector():
    a, b = rows(te.var("n"), te.var("m"))
    s = te.create_schedule(b.op)
    _, ki = s[b].split(b.op.reduce_axis[0], factor=16)
    bf = s.rfactor(b, ki, 1)
    s[bf].compute_at(s[b], s[b].op.axis[0])
    i, lane = s[bf].op.axis
    s[bf].reorder(i, s[bf].op.reduce_axis[0], lane)
    s[bf].vectorize(lane)
    s[b].parallel(s[b].op.axis[0])
    check_rows(s, a, b)


def test_the_order_of_calls_does_not_matter():
    def schedule(order):
        a, b = rows()
        s = te.create_schedule(b.op)
        ko, _ = s[b].split(b.op.reduce_axis[0], factor=16)
        bf = s.rfactor(b, ko)
        calls = [lambda: s[b].parallel(s[b].op.axis[0]), lambda: s[bf].compute_at(s[b], s[b].op.axis[0]),
                 lambda: s[bf].unroll(s[bf].op.reduce_axis[0])]
        for n in order:
            calls[n]()
        return s.fingerprint([a, b]), str(tw.lower(s, [a, b], simple_mode=True))
    assert len({schedule(order) for order in itertools.permutations(range(3))}) == 1


def test_fingerprints_tell_the_factored_loop():
    prints = set()
    for part, axis in itertools.product((0, 1), (0, 1)):
        a, b = rows()
        s = te.create_schedule(b.op)
        s.rfactor(b, s[b].split(b.op.reduce_axis[0], factor=16)[part], axis)
        prints.add(s.fingerprint([a, b]))
    assert len(prints) == 4


def test_a_second_rfactor_and_a_cache():
    a, b = rows()
    s = te.create_schedule(b.op)
    ko, ki = s[b].split(b.op.reduce_axis[0], factor=16)
    bf = s.rfactor(b, ki)
    ko, _ = s[bf].split(s[bf].op.reduce_axis[0], factor=2)
    bff = s.rfactor(bf, ko)
    local = s.cache_write(bff, "local")
    s[local].compute_at(s[bff], s[bff].op.axis[-1])
    ar = s.cache_read(a, "local", [local])
    s[ar].compute_at(s[local], s[local].op.reduce_axis[0])
    check_rows(s, a, b)


def test_several_axes_fused():
    a = te.placeholder((5, 6, 7), name="A")
    p, q = te.reduce_axis((0, 6), name="p"), te.reduce_axis((1, 7), name="q")
    b = te.compute((5,), lambda i: te.max(a[i, p, q], axis=[p, q], where=p != q), name="B")
    s = te.create_schedule(b.op)
    fused = s[b].fuse(*s[b].op.reduce_axis)
    _, part = s[b].split(fused, nparts=5)
    s.rfactor(b, part, -1)
    x, out = np.random.default_rng(0).random((5, 6, 7)).astype("float32") - 2, np.zeros(5, "float32")
    tw.build(s, [a, b], "llvm -opt-level=1")(x, out)
    mask = np.arange(6)[:, None] != np.arange(1, 7)
    np.testing.assert_array_equal(out, np.where(mask, x[:, :, 1:], -np.inf).max(axis=(1, 2)))


def test_tuples_give_a_list_of_tensors():
    largest = te.comm_reducer(
        lambda x, y: (te.select(te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0])), x[0], y[0]),
                      te.select(te.any(x[1] > y[1], te.all(x[1] == y[1], x[0] < y[0])), x[1], y[1])),
        lambda i, v: (te.max_value(i), te.min_value(v)), name="largest")
    a = te.placeholder((6, 50), "int32", name="A")
    k = te.reduce_axis((0, 50), name="k")
    index, value = te.compute((6,), lambda i: largest((k.var, a[i, k]), axis=k), name="am")
    s = te.create_schedule(index.op)
    ko, _ = s[index].split(index.op.reduce_axis[0], factor=8)
    parts = s.rfactor(index, ko)
    assert len(parts) == 2 and parts[0].shape[0] == 7
    x = np.random.default_rng(0).integers(-9, 9, (6, 50)).astype("int32")
    at, top = np.zeros(6, "int32"), np.zeros(6, "int32")
    tw.build(s, [a, index, value], "llvm -opt-level=1")(x, at, top)
    np.testing.assert_array_equal(at, x.argmax(axis=1))
    np.testing.assert_array_equal(top, x.max(axis=1))


def refused(message, call):
    with pytest.raises(ScheduleError, match=message):
        call()


def test_refusals():
    a, b = rows()
    s = te.create_schedule(b.op)
    k, i = b.op.reduce_axis[0], b.op.axis[0]
    refused("s.rfactor: 3 is not a tensor", lambda: s.rfactor(3, k))
    refused("A is a placeholder: nothing is reduced", lambda: s.rfactor(a, k))
    refused("i is not a loop of the reduction of B", lambda: s.rfactor(b, i))
    refused(r"factor_axis is 2; B has 1 dimension\(s\)", lambda: s.rfactor(b, k, 2))
    io, _ = s[b].split(i, factor=4)
    refused(r"the output loops of B were scheduled before \(s\[B\].split", lambda: s.rfactor(b, k))
    s = te.create_schedule(b.op)
    s[b].unroll(k)
    refused("how the loops of B run was said before", lambda: s.rfactor(b, k))


def test_refusals_of_other_stages():
    a = te.placeholder((6, 8, 9), name="A")
    c = te.compute((6, 8, 9), lambda i, j, m: a[i, j, m] + 1.0, name="C")
    p, q = te.reduce_axis((0, 8), name="p"), te.reduce_axis((0, 9), name="q")
    b = te.compute((6,), lambda i: te.sum(c[i, p, q], axis=[p, q]), name="B")
    s = te.create_schedule(b.op)
    refused("C is not a reduction", lambda: s.rfactor(c, p))
    s[c].compute_at(s[b], p)
    refused("C is computed at p", lambda: s.rfactor(b, q))
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(p, factor=2)
    refused("changed loops of the reduction that q does not come from", lambda: s.rfactor(b, q))
    s[b].reorder(q, outer, inner)
    refused("changed loops of the reduction that q does not come from", lambda: s.rfactor(b, q))
