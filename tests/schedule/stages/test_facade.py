"""The stage façade: handles, checks at the call, replay, and independence of the order of calls."""
from __future__ import annotations

import pytest

from tilewright import te
from tilewright.schedule.stages.facade import create_schedule
from tilewright.support.errors import ScheduleError, TensorExpressionError


def matmul(n=64, m=64, depth=64):
    a, b = te.placeholder((n, depth), name="A"), te.placeholder((depth, m), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return a, b, c


def chain(n=32):
    """x -> y -> z, elementwise."""
    x = te.placeholder((n, n), name="x")
    y = te.compute((n, n), lambda i, j: x[i, j] + 1.0, name="y")
    z = te.compute((n, n), lambda i, j: y[i, j] * 2.0, name="z")
    return x, y, z


def names(stage):
    return [iv.var.name for iv in stage.leaf_iter_vars]


def loops(sch):
    """The loop lines of the printed schedule."""
    return [line.strip() for line in str(sch).splitlines() if line.strip().startswith("for ")]


# ---- handles

def test_stages_are_in_the_order_of_the_dataflow():
    x, y, z = chain()
    s = te.create_schedule(z.op)
    assert [stage.op.name for stage in s.stages] == ["x", "y", "z"]
    assert s[y] is s[y.op] and s[z].op is z.op and y in s and s.outputs == (z.op,)


def test_leaves_follow_split_fuse_tile_and_reorder():
    _, _, c = matmul()
    s = te.create_schedule(c.op)
    x, y = s[c].op.axis
    k = s[c].op.reduce_axis[0]
    xo, xi = s[c].split(x, factor=32)
    yo, yi = s[c].split(y, nparts=2)
    ko, ki = s[c].split(k, factor=4)
    s[c].reorder(xo, yo, ko, xi, yi, ki)
    assert names(s[c]) == ["i.outer", "j.outer", "k.outer", "i.inner", "j.inner", "k.inner"]
    s[c].reorder(ki, xo)
    assert names(s[c]) == ["k.inner", "j.outer", "k.outer", "i.inner", "j.inner", "i.outer"]
    s = te.create_schedule(c.op)
    xo, yo, xi, yi = s[c].tile(*c.op.axis, 32, 16)
    s[c].fuse(xo, yo)
    assert names(s[c]) == ["i.outer.j.outer.fused", "i.inner", "j.inner", "k"]


# ---- checks at the call

def wrong_uses():
    a, b, c = matmul()
    d = te.compute((64, 64), lambda i, j: c[i, j] + 1.0, name="D")
    s = te.create_schedule(d.op)
    k, (i, j) = c.op.reduce_axis[0], c.op.axis
    p, q = d.op.axis
    io, ii = s[c].split(i, factor=8)
    ko, ki = s[c].split(k, factor=8)
    po, pi = s[d].split(p, factor=8)
    s[c].vectorize(ii)
    s[d].parallel(po)
    x = te.thread_axis("threadIdx.x")
    return [
        (lambda: s[c].split(i, factor=2),
         r"s\[C\].split\(i, factor=2\): i is no longer a loop of C: it was split into i.outer and i.inner"),
        (lambda: s[d].split(j, factor=2), "j is an axis of C, not of D"),
        (lambda: s[d].split(te.reduce_axis((0, 3), "r"), factor=2), "r is not an axis of D"),
        (lambda: s[d].split(q.var, factor=2), "j is not an axis"),
        (lambda: s[d].split(q), "give one of factor and nparts"),
        (lambda: s[d].split(q, factor=2, nparts=2), "give one of factor and nparts"),
        (lambda: s[d].split(q, factor=0), "factor is 0, which is not positive"),
        (lambda: s[d].split(q, nparts=-3), "nparts is -3, which is not positive"),
        (lambda: s[d].split(q, factor=2.0), "factor is 2.0, not an integer"),
        (lambda: s[d].split(q, factor=True), "not a constant integer"),
        (lambda: s[d].split(q, factor=te.var("t")), "factor is t, not a constant integer"),
        (lambda: s[c].split(ii, factor=2), "i.inner is already vectorized"),
        (lambda: s[d].tile(q, q, 2, 2), "j is given twice"),
        (lambda: s[c].reorder(io, ko, io), "i.outer is given twice"),
        (lambda: s[c].reorder(io, k), "k is no longer a loop"),
        (lambda: s[d].reorder(po, io), "i.outer is an axis of C, not of D"),
        (lambda: s[c].fuse(io, j), "the axes are not next to each other"),
        (lambda: s[c].fuse(j, ko), "j is a spatial axis and k.outer a reduction axis"),
        (lambda: s[c].fuse(ii, j), "i.inner is already vectorized"),
        (lambda: s[c].vectorize(ki), "cannot vectorize the reduction axis k.inner"),
        (lambda: s[c].parallel(ko), "cannot parallel the reduction axis k.outer"),
        (lambda: s[d].bind(q, p), "i is not a thread axis"),
        (lambda: (s[d].bind(q, x), s[d].bind(pi, x)), "threadIdx.x is already bound to another loop of D"),
        (lambda: s[c].compute_at(s[d], p), "i is no longer a loop of D"),
        (lambda: s[c].compute_at(s[d], io), "i.outer is an axis of C, not of D"),
        (lambda: s[c].compute_at(s[c], io), "a stage cannot be computed inside itself"),
        (lambda: s[c].compute_at(d, q), "is not a stage of this schedule"),
        (lambda: s[d].compute_at(s[c], io), "D is an output"),
        (lambda: s[a].compute_at(s[c], io), "A is a placeholder"),
        (lambda: s[d].compute_inline(), "D is an output"),
        (lambda: s[c].compute_inline(), "C is a reduction"),
        (lambda: s[a].compute_inline(), "A is a placeholder"),
        (lambda: s[a].vectorize(io), "i.outer is an axis of C, not of A"),
        (lambda: s[d].set_scope("local"), "D is an argument of the function"),
        (lambda: s.cache_read(a, "local", [d]), "D does not read A"),
        (lambda: s.cache_read(a, "local", []), "no reader is given"),
        (lambda: s.cache_read("A", "local", [c]), "'A' is not a tensor"),
        (lambda: s.cache_write(a, "local"), "A is a placeholder"),
        (lambda: s.cache_write(c, "local"), r"i.inner is no loop of C from then on, and s\[C\].vectorize\(i.inner\)"),
        (lambda: s[te.placeholder((3,), name="other")], "other is not in this schedule"),
        (lambda: s["C"], "'C' is not in this schedule"),
    ]


@pytest.mark.parametrize("number", range(len(wrong_uses())))
def test_wrong_uses_are_refused_at_the_call(number):
    call, message = wrong_uses()[number]
    with pytest.raises(ScheduleError, match=message):
        call()


def test_a_refused_call_changes_nothing():
    _, _, c = matmul()
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    for wrong in (lambda: s[c].tile(i, j, 8, 0), lambda: s[c].fuse(i, c.op.reduce_axis[0]),
                  lambda: s[c].reorder(j, i, j)):
        with pytest.raises(ScheduleError):
            wrong()
    assert names(s[c]) == ["i", "j", "k"] and s[c].relations == []


def test_a_thread_axis_with_an_extent_must_fit():
    x, y, z = chain()
    s = te.create_schedule(z.op)
    s[y].compute_inline()
    s[z].bind(z.op.axis[1], te.thread_axis((0, 16), "threadIdx.x"))
    with pytest.raises(ScheduleError, match="the loop has extent 32, the thread axis 16"):
        s.replay([x, z])


def test_a_cycle_of_compute_at_is_refused():
    x = te.placeholder((8,), name="x")
    y = te.compute((8,), lambda i: x[i] + 1.0, name="y")
    z = te.compute((8,), lambda i: y[i] + 1.0, name="z")
    w = te.compute((8,), lambda i: z[i] + y[i], name="w")
    s = te.create_schedule(w.op)
    s[y].compute_at(s[z], z.op.axis[0])
    with pytest.raises(ScheduleError, match="z is computed inside|does not need|cycle"):
        s[z].compute_at(s[y], y.op.axis[0])


def test_an_attachment_point_cannot_be_split():
    _, y, z = chain()
    s = te.create_schedule(z.op)
    s[y].compute_at(s[z], z.op.axis[0])
    with pytest.raises(ScheduleError, match=r"y is computed at i \(.*test_facade.py:\d+\)"):
        s[z].split(z.op.axis[0], factor=4)


def test_create_schedule_takes_operations_and_tensors():
    _, y, z = chain()
    assert create_schedule([y, z.op]).outputs == (y.op, z.op)
    with pytest.raises(TensorExpressionError, match="'z' is not an operation"):
        create_schedule("z")
    with pytest.raises(TensorExpressionError, match="no operation"):
        create_schedule([])


# ---- replay

def test_the_tiled_matmul():
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    x, y = s[c].op.axis
    xo, xi = s[c].split(x, factor=32)
    yo, yi = s[c].split(y, factor=32)
    ko, ki = s[c].split(s[c].op.reduce_axis[0], factor=4)
    s[c].reorder(xo, yo, ko, xi, yi, ki)
    s[c].vectorize(yi)
    s[c].parallel(xo)
    text = str(s.replay([a, b, c], "mm"))
    assert "for i_outer in T.parallel(2):" in text
    assert text.count("T.vectorized(32)") == 2            # of the initial values, and of the updates
    assert text.index("C_init") < text.index("for k_outer")
    assert s.replay([a, b, c], "mm").func.name == "mm"


def test_untouched_reductions_are_decomposed_too():
    a, b, c = matmul()
    text = str(te.create_schedule(c.op).replay([a, b, c]))
    assert "T.init" not in text and 'T.block("C_init")' in text and 'T.block("C_update")' in text


def test_ragged_splits_are_guarded():
    a, b, c = matmul(50, 33, 7)
    s = te.create_schedule(c.op)
    s[c].split(c.op.axis[0], factor=16)
    s[c].split(c.op.reduce_axis[0], nparts=2)
    text = str(s.replay([a, b, c]))
    assert "T.where(i_outer * 16 + i_inner < 50" in text


def test_compute_at_keeps_unit_loops_and_splits_the_region():
    x, y, z = chain()
    s = te.create_schedule(z.op)
    _, yi = s[y].split(y.op.axis[1], factor=4)
    zo, _ = s[z].split(z.op.axis[1], factor=8)
    s[y].compute_at(s[z], zo)
    s[y].vectorize(yi)
    text = str(s.replay([x, z]))
    assert "T.vectorized(4)" in text
    assert "(1, 2)" in text or "range(2)" in text


def test_compute_inline_removes_the_stage():
    x, y, z = chain()
    s = te.create_schedule(z.op)
    s[y].compute_inline()
    text = str(s.replay([x, z]))
    assert 'T.block("y")' not in text and "alloc_buffer" not in text


def test_cache_write_moves_the_reduction():
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    local = s.cache_write(c, "local")
    assert [stage.op.name for stage in s.stages] == ["A", "B", "C.local", "C"]
    assert s[c].op is not c.op and s[c].op.axis == c.op.axis and s[c].op.reduce_axis == ()
    assert s[local].op.reduce_axis == c.op.reduce_axis and s[c].op.input_tensors == (local,)
    xo, yo, xi, yi = s[c].tile(*c.op.axis, 8, 32)
    s[local].compute_at(s[c], yo)
    s[local].reorder(s[local].op.reduce_axis[0], *s[local].op.axis)
    text = str(s.replay([a, b, c]))
    assert 'scope="local"' in text
    assert "for i_outer, j_outer in T.grid(8, 2):" in text
    assert "for k, i_c, j_c in T.grid(64, 8, 32):" in text


def test_cache_read_is_read_by_its_readers():
    a, b, c = matmul()
    s = te.create_schedule(c.op)
    packed = s.cache_read(b, "global", [c])
    assert [t.name for t in s[c].op.input_tensors] == ["A", "B.global"]
    assert s[packed].op.input_tensors == (b,)
    s[packed].parallel(s[packed].op.axis[0])
    text = str(s.replay([a, b, c]))
    assert "T.parallel(64)" in text and "B_global" in text


def test_errors_in_replay_have_the_call_site():
    x = te.placeholder((8, 8), name="x")
    y = te.compute((8, 8), lambda i, j: x[i, j] + 1.0, name="y")
    z = te.compute((8, 8), lambda i, j: y[i, 0] * 2.0, name="z")
    w = te.compute((8, 8), lambda i, j: z[i, j] + y[j, i], name="w")
    s = te.create_schedule(w.op)
    s[y].compute_at(s[z], z.op.axis[0])
    with pytest.raises(ScheduleError, match=r"test_facade.py:\d+: s\[y\].compute_at\(s\[z\], i\)"):
        s.replay([x, w])


def test_an_inlined_stage_is_no_place_to_compute_at():
    x, y, z = chain()
    w = te.compute((32, 32), lambda i, j: z[i, j] + 1.0, name="w")
    s = te.create_schedule(w.op)
    s[z].compute_inline()
    s[y].compute_at(s[z], z.op.axis[0])
    with pytest.raises(ScheduleError, match="z has no loop i, because it is inlined"):
        s.replay([x, w])


# ---- order of calls, fingerprint

def interleavings():
    """The same schedule, calls to different stages in two orders."""
    def build(first):
        x, y, z = chain()
        s = te.create_schedule(z.op)
        zo, zi = s[z].split(z.op.axis[0], factor=8)

        def producer():
            yo, yi = s[y].split(y.op.axis[1], factor=4)
            s[y].compute_at(s[z], zo)
            s[y].vectorize(yi)

        def consumer():
            s[z].reorder(zo, z.op.axis[1], zi)
            s[z].parallel(zo)
        for step in (producer, consumer) if first else (consumer, producer):
            step()
        return s, [x, z]
    return build(True), build(False)


def test_the_order_of_calls_to_different_stages_does_not_matter():
    (s, args), (t, others) = interleavings()
    assert str(s.replay(args)) == str(t.replay(others))
    assert s.fingerprint(args) == t.fingerprint(others)


def test_independent_caches_commute():
    def build(flip):
        a, b, c = matmul(8, 8, 8)
        s = te.create_schedule(c.op)
        for t in (b, a) if flip else (a, b):
            s.cache_read(t, "shared", [c])
        return s, [a, b, c]
    (s, args), (t, others) = build(False), build(True)
    assert str(s.replay(args)) == str(t.replay(others))
    assert s.fingerprint(args) == t.fingerprint(others)


def test_fingerprint_tells_definitions_and_schedules_apart():
    def of(n=64, factor=32, name="C", mark="vectorize", act=lambda x, y: x * y):
        a = te.placeholder((n, n), name="A")
        c = te.compute((n, n), lambda i, j: act(a[i, j], a[j, i]), name=name)
        s = te.create_schedule(c.op)
        _, inner = s[c].split(c.op.axis[1], factor=factor)
        getattr(s[c], mark)(inner)
        return s.fingerprint([a, c])
    base = of()
    assert base == of() and len(base) == 32
    others = {of(n=32), of(factor=16), of(name="D"), of(mark="unroll"), of(act=lambda x, y: x + y)}
    assert len(others) == 5 and base not in others


def test_a_method_that_is_misspelt():
    c = te.compute((4,), lambda i: i, name="C")
    with pytest.raises(AttributeError, match="'vectorise'\n\nhint: did you mean vectorize"):
        te.create_schedule(c.op)[c].vectorise(c.op.axis[0])
