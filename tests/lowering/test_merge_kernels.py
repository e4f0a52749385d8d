"""Scans bound to thread axes: the loop over the steps enters the kernel where threads keep to their data."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.lowering import PASSES, SIMPLE_PASSES, lower, split
from tilewright.tir import IRModule, interp
from tilewright.tir.verify import verify


def bound_scan(read, stages=1, threads=8):
    """s[t, i] = read(s, t, i) + x[t, i], all blocks bound in the same way; (schedule, arguments)."""
    m, n = te.var("m"), te.var("n")
    x, s = te.placeholder((m, n), name="X"), te.placeholder((m, n), name="S")
    init = te.compute((1, n), lambda _, i: x[0, i], name="init")
    parts = []
    if stages == 2:
        inner = te.compute((m, n), lambda t, i: read(s, t, i) * 2.0, name="inner")
        update = te.compute((m, n), lambda t, i: inner[t, i] + x[t, i], name="update")
        parts.append(inner)
    else:
        update = te.compute((m, n), lambda t, i: read(s, t, i) + x[t, i], name="update")
    y = te.scan(init, update, s)
    sch = te.create_schedule(y.op)
    for stage in (init, *parts, update):
        bo, bi = sch[stage].split(stage.op.axis[1], factor=threads)
        sch[stage].bind(bo, te.thread_axis("blockIdx.x"))
        sch[stage].bind(bi, te.thread_axis("threadIdx.x"))
    return sch, [x, y]


def check(sch, args, step, simple=False):
    """Every form of the function on NumPy arrays."""
    func = sch.replay(args).func
    for p in SIMPLE_PASSES if simple else PASSES:
        func = p.run(func)
        verify(func, stage=p.stage)
        for shape in ((1, 3), (4, 19)):
            x = np.random.default_rng(1).uniform(-1, 1, shape).astype("float32")
            out, want = np.zeros_like(x), x.astype("float64")
            for t in range(1, shape[0]):
                want[t] = step(want[t - 1]) + x[t]
            interp.run(func, x, out)
            np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)
    kernels = split(lower(sch.replay(args).func, "cuda"), "cuda")
    out = np.zeros_like(x)
    interp.run(IRModule({f.name: f for f in kernels}), x, out)
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-6)
    return str(func)


@pytest.mark.parametrize("simple", [False, True])
def test_steps_enter_the_kernel(simple):
    sch, args = bound_scan(lambda s, t, i: s[t - 1, i])
    text = check(sch, args, lambda row: row, simple)
    lines = text.splitlines()
    assert text.count('"blockIdx.x"') == text.count('"threadIdx.x"') == 1
    assert next(n for n, s in enumerate(lines) if "threadIdx.x" in s) < next(
        n for n, s in enumerate(lines) if "for scan_idx in range(m" in s)


def test_stages_of_a_step_are_one_kernel():
    sch, args = bound_scan(lambda s, t, i: s[t - 1, i], stages=2)
    text = check(sch, args, lambda row: 2 * row)
    assert text.count('"blockIdx.x"') == 1


def test_what_follows_the_steps_joins_their_kernel():
    sch, (x, y) = bound_scan(lambda s, t, i: s[t - 1, i])
    z = te.compute(y.shape, lambda t, i: y[t, i] * 2.0, name="Z")
    s = te.create_schedule(z.op)
    for stage, axis in [(s[op], op.axis[1]) for op in (y.op.init[0].op, y.op.update[0].op, z.op)]:
        outer, inner = stage.split(axis, factor=8)
        stage.bind(outer, te.thread_axis("blockIdx.x"))
        stage.bind(inner, te.thread_axis("threadIdx.x"))
        if stage.op is z.op:
            stage.reorder(outer, inner, z.op.axis[0])
    text = str(lower(s.replay([x, z]).func, simple_mode=True))
    assert text.count('"blockIdx.x"') == 1
    a = np.random.default_rng(1).uniform(-1, 1, (4, 19)).astype("float32")
    out = np.zeros_like(a)
    interp.run(lower(s.replay([x, z]).func), a, out)
    np.testing.assert_allclose(out, 2 * np.cumsum(a, 0, dtype="float64"), rtol=1e-5)


@pytest.mark.parametrize("stages", [1, 2])
def test_data_of_other_threads_takes_a_launch_for_each_step(stages):
    sch, args = bound_scan(lambda s, t, i: te.if_then_else(i >= 1, s[t - 1, i - 1], 0.0), stages)
    text = check(sch, args, lambda row: np.concatenate([[0], row[:-1]]) * stages)
    assert text.count('"blockIdx.x"') == 1 + stages
    assert text.index("for scan_idx in range(m") < text.rindex('"blockIdx.x"')


def test_kernels_without_a_scan_stay_apart():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((n,), lambda i: b[i] * 2.0, name="C")
    sch = te.create_schedule(c.op)
    for t in (b, c):
        bo, bi = sch[t].split(t.op.axis[0], factor=8)
        sch[t].bind(bo, te.thread_axis("blockIdx.x"))
        sch[t].bind(bi, te.thread_axis("threadIdx.x"))
    assert str(tw.lower(sch, [a, c], simple_mode=True)).count('"blockIdx.x"') == 2
