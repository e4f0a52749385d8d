"""te.scan: definitions that are refused, the block form, and results against NumPy in the interpreter and natively."""
from __future__ import annotations

import textwrap

import numpy as np
import pytest
from scan_support import cumsum, cumsum_reference, random, run_both, two_stages

import tilewright as tw
from tilewright import te
from tilewright.support.errors import CallError, InterpreterError, ScheduleError, TensorExpressionError
from tilewright.tir import interp


def check_cumsum(s, x, y, k=1):
    for shape in ((k, 3), (k + 1, 5), (9, 40)):
        a = random(*shape)
        run_both(s, [x, y], [a], [cumsum_reference(a, k)])


def test_the_steps_are_one_loop_of_ordered_blocks():
    x, _, _, y = two_stages()
    text = str(te.create_prim_func([x, y]))
    assert textwrap.dedent(text[text.index("    s1 ="):]).strip() == textwrap.dedent("""\
        s1 = T.alloc_buffer((m, n))
        for _, i in T.grid(1, n):
            with T.block("init"):
                v_, vi = T.axis.remap("SS", [_, i])
                T.reads(X[0:m, vi])
                T.writes(scan[v_, vi])
                scan[T.checked_index(v_, m), vi] = X[T.checked_index(0, m), vi]
        for scan_idx in range(m - 1):
            for i in range(n):
                with T.block("s1"):
                    vt = T.axis.spatial((1, m - 1 + 1), scan_idx + 1)
                    vi = T.axis.spatial(n, i)
                    T.reads(scan[vt - 1, vi])
                    T.writes(s1[vt, vi])
                    s1[vt, vi] = scan[vt - 1, vi] * T.float32(2)
            for i in range(n):
                with T.block("s2"):
                    vt = T.axis.scan((1, m - 1 + 1), scan_idx + 1)
                    vi = T.axis.spatial(n, i)
                    T.reads(s1[vt, vi], X[vt, vi])
                    T.writes(scan[vt, vi])
                    scan[vt, vi] = s1[vt, vi] + X[vt, vi]""")


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_first_steps_are_given(k):
    x, _, _, y = cumsum(k)
    check_cumsum(te.create_schedule(y.op), x, y, k)


def test_too_few_steps_are_an_error_when_it_runs():
    x, _, _, y = cumsum(2)
    lib, func = tw.build(te.create_schedule(y.op), [x, y]), te.create_prim_func([x, y])
    for steps in (0, 1):
        a = random(steps, 3)
        with pytest.raises(CallError, match=rf"outside of its extent m = {steps}"):
            lib(a, np.zeros_like(a))
        with pytest.raises(InterpreterError, match="out of bounds"):
            interp.run(func, a, np.zeros_like(a))


def test_states_of_different_shapes_read_each_other():
    m, n, p = te.var("m"), te.var("n"), te.var("p")
    x = te.placeholder((m, n), name="X")
    s, r = te.placeholder((m, n), name="S"), te.placeholder((m, p), name="R")
    k = te.reduce_axis((0, n), name="k")
    row = te.compute((m,), lambda t: te.sum(s[t - 1, k], axis=k), name="row")
    us = te.compute((m, n), lambda t, i: s[t - 1, i] * 0.5 + x[t, i] + row[t] * 0.1, name="us")
    ur = te.compute((m, p), lambda t, j: r[t - 1, j] + row[t] + us[t, 0], name="ur")
    outs = te.scan([te.compute((1, n), lambda _, i: x[0, i]), te.compute((1, p), lambda _, j: 0.25)], [us, ur], [s, r])
    assert outs[0].op.same_as(outs[1].op) and [t.value_index for t in outs] == [0, 1]
    assert isinstance(outs[0].op, te.ScanOp) and outs[0].op.output(1) is outs[1]
    assert [iv.var.name for iv in outs[0].op.spatial_axis_] == ["scan.out0.i1", "scan.out1.i1"]
    for shape, cols in (((1, 2), 3), ((6, 5), 2)):
        a = random(*shape)
        w, v = a.astype("float64"), np.full((shape[0], cols), 0.25)
        for t in range(1, shape[0]):
            total = w[t - 1].sum()
            w[t] = w[t - 1] * 0.5 + a[t] + total * 0.1
            v[t] = v[t - 1] + total + w[t, 0]
        run_both(te.create_schedule(outs[0].op), [x, *outs], [a], [w, v])


def test_an_update_may_be_a_reduction_over_a_state():
    m, n = te.var("m"), 6
    w = te.placeholder((n, n), name="W")
    s, k = te.placeholder((m, n), name="S"), te.reduce_axis((0, n), name="k")
    init = te.compute((1, n), lambda _, i: 1.0, name="init")
    update = te.compute((m, n), lambda t, i: te.sum(s[t - 1, k] * w[k, i], axis=k), name="update")
    y = te.scan(init, update, s)
    a = random(n, n)
    for steps in (1, 2, 5):
        want = np.ones((steps, n))
        for t in range(1, steps):
            want[t] = want[t - 1] @ a.astype("float64")
        s_ = te.create_schedule(y.op)
        run_both(s_, [w, y], [a], [want], 1e-4)
        s_ = te.create_schedule(y.op)
        s_[update].vectorize(update.op.axis[1])
        s_[update].reorder(update.op.reduce_axis[0], update.op.axis[1])
        run_both(s_, [w, y], [a], [want], 1e-4)


def test_a_window_of_steps_and_a_guarded_read():
    m, k = te.var("m"), te.reduce_axis((0, 3), name="k")
    x, s = te.placeholder((m,), name="X"), te.placeholder((m,), name="S")
    init = te.compute((3,), lambda t: 1.0, name="init")
    update = te.compute((m,), lambda t: te.sum(s[t - 1 - k] * x[t], axis=k), name="update")
    y = te.scan(init, update, s)
    a = random(8)
    want = np.ones(8)
    for t in range(3, 8):
        want[t] = want[t - 3:t].sum() * a[t]
    run_both(te.create_schedule(y.op), [x, y], [a], [want])
    x, s = te.placeholder((m,), name="X"), te.placeholder((m,), name="S")
    init = te.compute((1,), lambda t: x[0], name="init")
    update = te.compute((m,), lambda t: x[t] + te.if_then_else(t >= 2, s[t - 2], 0.0) + s[0], name="update")
    y = te.scan(init, update, s)
    want = a.astype("float64")
    for t in range(1, 8):
        want[t] = a[t] + (want[t - 2] if t >= 2 else 0) + want[0]
    run_both(te.create_schedule(y.op), [x, y], [a], [want])


def test_stages_before_and_after_and_a_scan_of_a_scan():
    m, n = te.var("m"), te.var("n")
    x = te.placeholder((m, n), name="X")
    p = te.compute((m, n), lambda t, i: x[t, i] * 2, name="P")
    s = te.placeholder((m, n), name="S")
    y = te.scan(te.compute((1, n), lambda t, i: p[t, i]), te.compute((m, n), lambda t, i: s[t - 1, i] + p[t, i]), s)
    q = te.placeholder((m, n), name="Q")
    z = te.scan(te.compute((1, n), lambda t, i: y[t, i]), te.compute((m, n), lambda t, i: q[t - 1, i] + y[t, i]), q,
                name="twice")
    out = te.compute((m, n), lambda i, j: z[i, j] + 1, name="out")
    a = random(6, 5)
    want = np.cumsum(np.cumsum(2 * a.astype("float64"), 0), 0) + 1
    run_both(te.create_schedule(out.op), [x, out], [a], [want])
    s_ = te.create_schedule(out.op)
    s_[p].compute_inline()
    run_both(s_, [x, out], [a], [want])


def test_a_given_init_is_copied_and_one_operation_may_give_two_states():
    m, n = te.var("m"), te.var("n")
    x, h = te.placeholder((m, n), name="X"), te.placeholder((1, n), name="H")
    s, r = te.placeholder((m, n), name="S"), te.placeholder((m, n), name="R")
    us, ur = te.compute((m, n), lambda t, i: (s[t - 1, i] + x[t, i], r[t - 1, i] * s[t - 1, i]), name="u")
    outs = te.scan([h, h], [us, ur], [s, r])
    a, b = random(5, 4), random(1, 4)
    w, v = np.concatenate([b, a[1:]]).astype("float64"), np.repeat(b, 5, 0).astype("float64")
    for t in range(1, 5):
        w[t], v[t] = w[t - 1] + a[t], v[t - 1] * w[t - 1]
    run_both(te.create_schedule(outs[0].op), [x, h, *outs], [a, b], [w, v])


# ---- refusals

M, N = te.var("m"), te.var("n")


def wrong_scan(read, k=1, name="S"):
    s = te.placeholder((M, N), name=name)
    return te.scan(te.compute((k, N), lambda t, i: 1.0, name="init"),
                   te.compute((M, N), lambda t, i: read(s, t, i), name="update"), s)


@pytest.mark.parametrize("read, message", [
    (lambda s, t, i: s[t, i], "scan scan: update reads state S at step t, which is not before step t"),
    (lambda s, t, i: s[t - 2, i], r"update reads state S at step t - 2, and init gives .* first 1 step"),
    (lambda s, t, i: s[t + 1, i], "index 0 runs from 1 to m, outside of the shape"),
    (lambda s, t, i: s[i, i], "reads state S at step i, which is not before step t"),
    (lambda s, t, i: te.if_then_else(t >= 1, s[t - 2, i], 0.0), "reads state S at step t - 2"),
])
def test_a_step_reads_steps_that_are_there(read, message):
    with pytest.raises(TensorExpressionError, match=message):
        wrong_scan(read)


def test_a_read_before_the_start_is_wrong_outside_of_scans():
    a = te.placeholder((M, N), name="A")
    b = te.compute((M, N), lambda i, j: a[i - 1, j], name="B")
    for use in (lambda: te.create_prim_func([a, b]), lambda: te.create_schedule(b.op)):
        with pytest.raises(TensorExpressionError, match="index 0 runs from -1 to m - 2, outside of the shape"):
            use()


def test_wrong_forms():
    s = te.placeholder((M, N), name="S")
    init, update = te.compute((1, N), lambda t, i: 1.0, name="init"), te.compute(
        (M, N), lambda t, i: s[t - 1, i], name="update")
    for args, message in (
            (([init], [update, update], [s]), "1 init.*2 update"),
            ((init, update, update), "the state update is computed"),
            ((init, s, s), "the update S is no te.compute"),
            ((init, update, 3), "state_placeholder is 3"),
            (([init, init], [update, update], [s, s]), "S is given for two states"),
            ((te.compute((1,), lambda t: 1.0, name="init"), update, s), "they may differ in the number of steps only"),
            ((te.compute((1, N), lambda t, i: 1, name="init"), update, s), "init is int32"),
            ((init, te.compute((N, N), lambda t, i: 1.0, name="u"), s), "u has n steps, another one has m")):
        with pytest.raises(TensorExpressionError, match=message):
            te.scan(*args)
    c = te.placeholder((3, N), name="C")
    with pytest.raises(TensorExpressionError, match="gives the first 4 steps of 3"):
        te.scan(te.compute((4, N), lambda t, i: 1.0, name="init"), te.compute((3, N), lambda t, i: c[t - 1, i]), c)
    d = te.placeholder((M, N), name="D")
    mid = te.compute((M, N), lambda t, i: d[t - 1, i], name="mid")
    with pytest.raises(TensorExpressionError, match="which another step computes"):
        te.scan(init, te.compute((M, N), lambda t, i: mid[te.maximum(t - 1, 0), i]), d)
    with pytest.raises(TensorExpressionError, match="has no axis for the steps"):
        row = te.compute((N,), lambda i: d[0, i], name="row")
        te.scan(init, te.compute((M, N), lambda t, i: row[i]), d)


def test_parts_of_a_scan_stay_inside():
    x, s1, s2, y = two_stages()
    z = te.compute(y.shape, lambda i, j: y[i, j] + 1, name="Z")
    s = te.create_schedule(z.op)
    for use, message in (
            (lambda: s[s1].compute_at(s[z], z.op.axis[0]), "outside of the scan group"),
            (lambda: s[s2].compute_inline(), "stays at the scan"),
            (lambda: s[s2].split(s2.op.axis[0], factor=2), "scan_axis"),
            (lambda: s[y].parallel(y.op.scan_axis), "cannot parallel the scan axis scan.idx"),
            (lambda: s[y].compute_inline(), "is a scan"),
            (lambda: s.cache_write(s2, "local"), "stays at the scan"),
            (lambda: s.cache_write(y, "local"), "is a scan")):
        with pytest.raises(ScheduleError, match=message):
            use()
    for wrong in (s1, s2):
        out = te.compute(y.shape, lambda i, j: wrong[i, j] + y[i, j], name="out")  # noqa: B023
        with pytest.raises(TensorExpressionError, match="exists only in the steps of scan"):
            te.create_schedule(out.op)
    with pytest.raises(TensorExpressionError, match="cannot be a result"):
        te.create_prim_func([x, s2, y])


def test_fingerprints_tell_scans_apart():
    prints = set()
    for k in (1, 2):
        x, _, _, y = cumsum(k)
        prints.add(te.create_schedule(y.op).fingerprint([x, y]))
        x, _, _, y = cumsum(k)
        prints.add(te.create_schedule(y.op).fingerprint([x, y]))
    assert len(prints) == 2
