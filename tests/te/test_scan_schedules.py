"""Scans under schedules: what may move, split, run at once; what keeps its order."""
from __future__ import annotations

import numpy as np
import pytest
from scan_support import cumsum, cumsum_reference, random, run_both, two_stages, two_stages_reference

import tilewright as tw
from tilewright import te
from tilewright.support.errors import InterpreterError, ScheduleError
from tilewright.tir import interp
from tilewright.tir.node import rewrite
from tilewright.tir.stmt import PARALLEL, For


def test_stages_of_a_step_move_inside_it():
    a = random(5, 70)
    for how in range(7):
        x, s1, s2, y = two_stages()
        s = te.create_schedule(y.op)
        xo, xi = s[s2].split(s2.op.axis[1], factor=32)
        if how == 0:
            s[s1].compute_at(s[s2], xo)
        elif how == 1:
            s[s1].compute_inline()
            s[s2].parallel(xo)
            s[s2].vectorize(xi)
        elif how == 2:
            s[s1].compute_at(s[s2], xo)
            s[s2].parallel(xo)
        elif how == 3:
            s[s1].compute_at(s[y], y.op.scan_axis)
        elif how == 4:
            s[s1].compute_at(s[s2], s[s2].fuse())
            s[s1].fuse(s[s1].fuse(), s1.op.axis[1])
        elif how == 5:
            cache = s.cache_write(s1, "local")
            s[cache].compute_at(s[y], y.op.scan_axis)
            s[cache].vectorize(s[cache].split(cache.op.axis[1], factor=8)[1])
        else:
            s[y].split(y.op.scan_axis, factor=3)
            s[s1].compute_at(s[s2], xi)
        run_both(s, [x, y], [a], [two_stages_reference(a)])


def test_what_a_step_needs_from_outside_moves_into_it():
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    p = te.compute((m, n), lambda t, i: x[t, i] * 2, name="P")
    s = te.placeholder((m, n), name="S")
    u = te.compute((m, n), lambda t, i: s[t - 1, i] + p[t, i], name="u")
    y = te.scan(te.compute((1, n), lambda t, i: 0.5), u, s)
    a = random(6, 9)
    want = 2 * a.astype("float64")
    want[0] = 0.5
    want = np.cumsum(want, 0)
    for axis in (None, 1):
        sch = te.create_schedule(y.op)
        if axis is None:
            sch[p].compute_at(sch[y], y.op.scan_axis)
        else:
            sch[p].compute_at(sch[u], u.op.axis[1])
        run_both(sch, [x, y], [a], [want])


def test_columns_in_parallel_around_the_scan():
    x, _, _, y = cumsum()
    sch = tw.Schedule(te.create_prim_func([x, y]))
    scan_loop, column = sch.get_loops(sch.get_block("update"))
    outer, inner = sch.split(column, [None, 8])
    sch.reorder(outer, scan_loop)
    sch.parallel(outer)
    sch.vectorize(inner)
    lib = tw.build(sch.mod["main"])
    a = random(9, 30)
    out = np.zeros_like(a)
    lib(a, out)
    np.testing.assert_allclose(out, cumsum_reference(a), rtol=1e-5, atol=1e-6)
    out = np.zeros_like(a)
    interp.run(sch.mod["main"], a, out)
    np.testing.assert_allclose(out, cumsum_reference(a), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("verb", ["parallel", "vectorize", "bind"])
def test_steps_do_not_run_at_once(verb):
    x, _, _, y = cumsum()
    sch = tw.Schedule(te.create_prim_func([x, y]))
    scan_loop, _ = sch.get_loops(sch.get_block("update"))
    _, inner = sch.split(scan_loop, [None, 4])
    message = f"cannot {verb} loop scan.idx_1: it carries the ordered axis of block update, a scan: its steps run in"
    with pytest.raises(ScheduleError, match=message):
        getattr(sch, verb)(inner, *(["threadIdx.x"] if verb == "bind" else []))


def test_steps_keep_their_order():
    m, n = te.var("m"), te.var("n")
    x, s = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S")
    update = te.compute((m, n), lambda t, i: te.if_then_else(i >= 1, s[t - 1, i - 1], 0.0) + x[t, i], name="update")
    y = te.scan(te.compute((1, n), lambda t, i: x[t, i]), update, s)
    sch = tw.Schedule(te.create_prim_func([x, y]))
    scan_loop, column = sch.get_loops(sch.get_block("update"))
    first, second = sch.split(scan_loop, [None, 4])
    with pytest.raises(ScheduleError):
        sch.reorder(second, first)
    sch.reorder(column, second)


def test_a_race_is_found_when_steps_run_at_once():
    x, _, _, y = cumsum()
    func = te.create_prim_func([x, y])
    racy = rewrite(func, lambda n: n.replace(kind=PARALLEL) if isinstance(n, For) and n.loop_var.name == "scan.idx"
                   else None)
    a = random(5, 3)
    with pytest.raises(InterpreterError, match="two iterations of the parallel loop scan.idx touch"):
        interp.run(racy, a, np.zeros_like(a))


def test_copies_of_states_inputs_and_outputs():
    a = random(5, 40)
    for axis in (None, 1):
        x, s1, _, y = two_stages()
        s = te.create_schedule(y.op)
        copy = s.cache_read(s1.op.input_tensors[0], "local", [s1])
        if axis:
            s[copy].compute_at(s[s1], s1.op.axis[axis])
        run_both(s, [x, y], [a], [two_stages_reference(a)])
    x, s1, _, y = two_stages()
    s = te.create_schedule(y.op)
    s[s.cache_write(s1, "local")].compute_at(s[s1], s1.op.axis[1])
    run_both(s, [x, y], [a], [two_stages_reference(a)])
    x, _, update, y = cumsum()
    s = te.create_schedule(y.op)
    s[s.cache_read(x, "local", [update])].compute_at(s[update], update.op.axis[1])
    run_both(s, [x, y], [a], [cumsum_reference(a)])
    z = te.compute(y.shape, lambda i, j: y[i, j] * 2.0, name="Z")
    s = te.create_schedule(z.op)
    s[s.cache_read(y, "local", [z])].compute_at(s[z], z.op.axis[1])
    run_both(s, [x, z], [a], [2 * cumsum_reference(a)])


def test_the_rules_vectorise_the_steps():
    x, _, _, y = cumsum()
    func = te.create_prim_func([x, y])
    a = random(6, 200)
    out = np.zeros_like(a)
    tw.compile(func)(a, out)
    np.testing.assert_allclose(out, cumsum_reference(a), rtol=1e-5, atol=1e-6)
