"""Loops of a stage: fusing nothing, promises about splits, and what was said last of a loop."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.schedule import tensor_intrinsics as intrinsics
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError


def shifted(*shape):
    a = te.placeholder(shape, name="A")
    b = te.compute(shape, lambda *i: a(*i) + 1, name="B")
    return te.create_schedule(b.op), a, b


def check(s, a, b, *shape):
    x, y = np.random.default_rng(0).standard_normal(shape).astype("float32"), np.empty(shape, "float32")
    tw.build(s, [a, b])(x, y)
    np.testing.assert_array_equal(y, x + 1)


@pytest.mark.parametrize("shape", [(), (6,), (3, 4)])
def test_fusing_nothing_gives_a_loop_that_runs_once(shape):
    s, a, b = shifted(*shape)
    unit = s[b].fuse()
    assert s[b].leaf_iter_vars == (unit, *b.op.axis) and s[b].all_iter_vars == (*b.op.axis, unit)
    s[b].split(unit, factor=1)
    again = s[b].fuse(*s[b].leaf_iter_vars[:2])
    s[b].parallel(again)
    assert "for singleton_outer_singleton_inner_fused in T.parallel(1)" in str(s.replay([a, b]))
    check(s, a, b, *shape)


def test_a_fused_nothing_is_part_of_the_fingerprint_and_a_place_to_compute_at():
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    c = te.compute((8,), lambda i: b[i] * 1, name="C")
    s = te.create_schedule(c.op)
    before = s.fingerprint([a, c])
    unit = s[c].fuse()
    s[b].compute_at(s[c], unit)
    assert s.fingerprint([a, c]) != before
    assert str(s.replay([a, c])).count("for singleton in range(1)") == 1
    check(s, a, c, 8)


def test_a_unit_loop_is_no_part_of_an_rfactor():
    a, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")
    s = te.create_schedule(b.op)
    s[b].fuse()
    with pytest.raises(ScheduleError, match="the output loops of B were scheduled before"):
        s.rfactor(b, k)


def test_loops_are_fused_in_the_order_that_they_stand_in():
    s, a, b = shifted(3, 4)
    i, j = b.op.axis
    assert s[b].fuse(j, i).var.name == "i0.i1.fused"
    check(s, a, b, 3, 4)


@pytest.mark.parametrize("n, guarded", [(16, False), (18, True)])
def test_a_guard_stays_where_a_promise_does_not_hold(n, guarded):
    s, a, b = shifted(n)
    s[b].split(b.op.axis[0], 4, disable_predication=True)
    assert ("T.where" in str(s.replay([a, b]))) == guarded
    check(s, a, b, n)


def test_what_was_said_last_of_a_loop_holds():
    s, a, b = shifted(8, 8)
    i, j = b.op.axis
    s[b].vectorize(j)
    s[b].parallel(i)
    once = s.fingerprint([a, b])
    s[b].vectorize(j)
    s[b].unroll(i)
    assert s.fingerprint([a, b]) != once
    s[b].unroll(j)
    s[b].parallel(i)
    s[b].vectorize(j)
    assert s.fingerprint([a, b]) == once
    text = str(s.replay([a, b]))
    assert "for i0 in T.parallel(8)" in text and "for i1 in T.vectorized(8)" in text and "unroll" not in text
    check(s, a, b, 8, 8)


def test_the_last_intrinsic_of_an_axis_computes_the_stage():
    s, args, axes = intrinsics_of_two()
    assert "test.better" in str(s.replay(args)) and "test.first" not in str(s.replay(args))
    with pytest.raises(ScheduleError, match="C is tensorized at j.inner"):
        s[args[-1]].tensorize(axes[0], intrinsics.te_product())


def intrinsics_of_two():
    """(s, args, axes) of a product by rows whose inner columns are tensorized twice."""
    a, b = te.placeholder((4, 8), name="A"), te.placeholder((8, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((4, 8), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    _, inner = s[c].split(j, factor=4)
    for name in ("test.first", "test.better"):
        s[c].tensorize(inner, gemv(name))
    return s, [a, b, c], (i, inner)


def gemv(name):
    """c[i] = sum of a[k] * b[i, k], 4 x 8, by a call of `name`."""
    a, b = te.placeholder((8,), name="a"), te.placeholder((4, 8), name="b")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((4,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    return te.decl_tensor_intrin(c.op, lambda ins, outs: te.call_packed(name, *ins, *outs))


def test_names_stay_short_however_often_loops_are_fused_and_split():
    a = te.placeholder((64, 64), name="A")
    b = te.compute((64, 64), lambda i, j: a[i, j] + 1.0, name="B")
    s = te.create_schedule(b.op)
    x, y = s[b].op.axis
    sch = Schedule(te.create_prim_func([a, b]))
    i, j = sch.get_loops("B")
    for _ in range(40):
        x, y = s[b].split(s[b].fuse(x, y), factor=2)
        i, j = sch.split(sch.fuse(i, j), [None, 2])
    assert len(y.var.name) < 200 and len(sch.get(j).loop_var.name) < 200
    data, out = np.random.default_rng(0).random((64, 64), "float32"), np.zeros((64, 64), "float32")
    for f in (tw.build(s, [a, b]), tw.build(sch.func)):
        out[:] = 0
        f(data, out)
        np.testing.assert_array_equal(out, data + 1)
