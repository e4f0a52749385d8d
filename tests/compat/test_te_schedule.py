"""tvm.te.schedule: the functions around a schedule of stages that programs and tests of TVM call."""
from __future__ import annotations

import numpy as np
import pytest


def chain(tvm, n=62):
    from tvm import te
    a = te.placeholder((n + 2, 64), name="A")
    b = te.compute((n + 2, 64), lambda i, j: a[i, j] + 1, name="B")
    c = te.compute((n, 64), lambda i, j: b[i, j] * b[i + 2, j], name="C")
    return a, b, c, te.create_schedule(c.op)


def test_bounds_are_those_of_the_loops(tvm):
    _, b, c, s = chain(tvm)
    outer, inner = s[c].split(c.op.axis[0], 8)
    fused = s[c].fuse(inner, c.op.axis[1])
    s[b].compute_at(s[c], outer)
    bounds = tvm.te.schedule.InferBound(s.normalize())
    extents = {iv: bounds[iv].extent.value for iv in (*c.op.axis, outer, inner, fused, *b.op.axis)}
    assert list(extents.values()) == [62, 64, 8, 8, 512, 10, 64]
    assert str(bounds[b.op.axis[0]].min) == f"{outer.var} * 8" and bounds[b.op.axis[1]].min.value == 0
    assert tvm.schedule.InferBound is tvm.te.schedule.InferBound


def test_bounds_of_reductions_of_scans_and_of_symbolic_extents(tvm):
    from tvm import te
    n = te.var("n")
    a, k = te.placeholder((n, 16), name="A"), te.reduce_axis((2, 10), "k")
    b = te.compute((n,), lambda i: te.sum(a[i, k], axis=k), name="B")
    bounds = te.schedule.InferBound(te.create_schedule(b.op))
    assert (bounds[k].min.value, bounds[k].extent.value) == (2, 8) and bounds[b.op.axis[0]].extent is n
    x, state = te.placeholder((8, 4), name="X"), te.placeholder((8, 4), name="S")
    step = te.compute((8, 4), lambda t, i: state[t - 1, i] + x[t, i])
    r = te.scan(te.compute((1, 4), lambda t, i: x[0, i]), step, state)
    bounds = te.schedule.InferBound(te.create_schedule(r.op))
    assert (bounds[r.op.scan_axis].min.value, bounds[r.op.scan_axis].extent.value) == (1, 7)


def test_inlined_stages_have_no_bounds(tvm):
    _, b, c, s = chain(tvm)
    s[b].compute_inline()
    assert set(tvm.te.schedule.InferBound(s)) == set(c.op.axis)


def test_statements_of_a_schedule_and_their_function(tvm):
    a, b, c, s = chain(tvm)
    s[b].compute_inline()
    stmt = tvm.te.schedule.ScheduleOps(s, tvm.te.schedule.InferBound(s))
    assert isinstance(stmt, tvm.tir.Stmt) and "C" in str(stmt)
    func = tvm.te.schedule.SchedulePostProcToPrimFunc([a, c], stmt, None)
    assert isinstance(func, tvm.tir.PrimFunc) and len(func.params) == 2
    x = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
    out = tvm.nd.array(np.zeros((62, 64), "float32"))
    tvm.build(func)(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), (x + 1)[:62] * (x + 1)[2:], rtol=1e-6)
    with pytest.raises(tvm.TVMError, match="pass what ScheduleOps returned"):
        tvm.te.schedule.SchedulePostProcToPrimFunc([a, c], tvm.tir.Evaluate(0), None)


def test_a_schedule_as_a_module(tvm):
    from tvm.driver.build_module import schedule_to_module
    a, _, c, s = chain(tvm)
    mod = schedule_to_module(s, [a, c])
    assert list(mod.functions) == ["main"] and tvm.tir.Schedule(mod).get_block("C")
    with pytest.raises(tvm.TVMError, match="binds"):
        schedule_to_module(s, [a, c], binds={a: tvm.tir.decl_buffer(a.shape)})


def inlined(s):
    return [stage.op.name for stage in s.stages if stage.is_inlined]


def network(tvm):
    """A schedule whose stages are of every kind that is inlined."""
    from tvm import te
    a, v = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="V")
    same = te.compute((4, 8), lambda i, j: a[i, j] + 1, name="same")
    row = te.compute((4, 8), lambda i, j: same[i, j] + v[j], name="row")
    turned = te.compute((8, 4), lambda i, j: row[j, i] * 2, name="turned")
    k = te.reduce_axis((0, 4), name="k")
    total = te.compute((8,), lambda i: te.sum(turned[i, k], axis=k), name="total")
    last = te.compute((8,), lambda i: total[i] - 1, name="last")
    return te.create_schedule(last.op), a, v, (same, row, turned, total, last)


@pytest.mark.parametrize("name, expected", [
    ("AutoInlineElemWise", ["same"]), ("AutoInlineBroadcast", ["same", "row"]),
    ("AutoInlineInjective", ["same", "row", "turned"])])
def test_stages_of_a_kind_are_inlined(tvm, name, expected):
    s, a, v, tensors = network(tvm)
    getattr(tvm.te.schedule, name)(s)
    assert inlined(s) == expected
    x, w = np.random.default_rng(1).standard_normal((4, 8)).astype("float32"), np.arange(8, dtype="float32")
    out = tvm.nd.array(np.zeros(8, "float32"))
    tvm.build(s, [a, v, tensors[-1]])(tvm.nd.array(x), tvm.nd.array(w), out)
    np.testing.assert_allclose(out.numpy(), ((x + 1 + w) * 2).sum(0) - 1, rtol=1e-5)


def test_what_was_scheduled_is_not_inlined(tvm):
    s, _, _, (same, row, *_) = network(tvm)
    s[same].split(same.op.axis[1], 4)
    tvm.te.schedule.AutoInlineInjective(s)
    assert inlined(s) == ["row", "turned"]


def test_parts_of_a_scan_are_not_inlined(tvm):
    from tvm import te
    x, state = te.placeholder((8, 4), name="X"), te.placeholder((8, 4), name="S")
    half = te.compute((8, 4), lambda t, i: state[t - 1, i] / 2, name="half")
    step = te.compute((8, 4), lambda t, i: half[t, i] + x[t, i], name="step")
    r = te.scan(te.compute((1, 4), lambda t, i: x[0, i], name="init"), step, state)
    s = te.create_schedule(r.op)
    te.schedule.AutoInlineInjective(s)
    assert inlined(s) == ["half"]


def test_what_operations_read(tvm):
    _, a, v, (same, row, *_) = network(tvm)
    graph = tvm.te.schedule.CreateReadGraph([row.op])
    assert graph[row.op] == (same, v) and graph[same.op] == (a,) and graph[a.op] == ()
    assert list(graph) == list(tvm.te.schedule.PostDFSOrder([row.op], graph)) == [a.op, same.op, v.op, row.op]
