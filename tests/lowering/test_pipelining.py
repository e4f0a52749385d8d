"""Software pipelines, double buffers, virtual threads and prefetches: print, meaning, refusals."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.lowering import PASSES, lower
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import LowerError
from tilewright.te.prim_func import create_prim_func
from tilewright.tir import interp
from tilewright.tir.buffer import Load
from tilewright.tir.expr import Call
from tilewright.tir.node import walk
from tilewright.tir.stmt import THREAD_BINDING, Allocate, For
from tilewright.tir.verify import verify


def product(m=8, n=8, k=12, tile=4, cached=True) -> tuple[Schedule, list]:
    """C = A B with the rows of A and B for `tile` steps of k loaded ahead in blocks A_local, B_local; and loop ko."""
    a, b = te.placeholder((m, k), "float32", name="A"), te.placeholder((k, n), "float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    c = te.compute((m, n), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    sch = Schedule(create_prim_func([a, b, c], name="product"))
    i, j, kk = sch.get_loops("C")
    ko, ki = sch.split(kk, [None, tile])
    sch.reorder(ko, i, j, ki)
    for position in range(2) if cached else ():
        sch.compute_at(sch.cache_read("C", position, "local"), ko)
    return sch, [ko, i, j, ki]


def check(func, m=8, n=8, k=12, native=True):
    """func computes A B at every stage of lowering, under the interpreter and natively."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype("float32"), rng.standard_normal((k, n)).astype("float32")
    want = a.astype("float64") @ b
    for p in PASSES:
        func = p.run(func)
        verify(func, stage=p.stage)
        out = np.full((m, n), np.nan, "float32")
        interp.run(func, a, b, out)
        np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-4, err_msg=p.name)
    return func


def native(func, m=8, n=8, k=12):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype("float32"), rng.standard_normal((k, n)).astype("float32")
    out = np.full((m, n), np.nan, "float32")
    tw.build(func)["product"](a, b, out)
    np.testing.assert_allclose(out, a.astype("float64") @ b, rtol=1e-4, atol=1e-4)


def after(func, name):
    for p in PASSES:
        func = p.run(func)
        if p.name == name:
            return func
    raise AssertionError(name)


@pytest.mark.parametrize("stages, versions", [([0, 0, 1], {2}), ([0, 1, 3], {4, 3}), ([0, 0, 0], set())])
@pytest.mark.parametrize("k", [12, 13, 4, 8])
def test_pipeline(stages, versions, k):
    sch, loops = product(k=k)
    sch.annotate(loops[0], "software_pipeline_stage", stages)
    sch.annotate(loops[0], "software_pipeline_order", [0, 1, 2])
    if k > 4:
        piped = after(sch.func, "lower_software_pipelines")
        extents = {int(s.buffer.shape[0]) for s in walk(piped.body) if isinstance(s, Allocate) and s.buffer.ndim == 3}
        assert extents == versions
    check(sch.func, k=k)
    native(sch.func, k=k)


def test_pipeline_of_a_symbolic_loop():
    """B[i] = 2 * (A[i] + 1), the sum one iteration ahead, for any length."""
    n = te.var("n")
    a = te.placeholder((n,), "float32", name="A")
    b = te.compute((n,), lambda i: a[i] + 1, name="S")
    c = te.compute((n,), lambda i: b[i] * 2, name="B")
    sch = Schedule(create_prim_func([a, c], name="twice"))
    outer, inner = sch.split(sch.get_loops("B")[0], [None, 4])
    sch.compute_at("S", outer)
    sch.annotate(outer, "software_pipeline_stage", [0, 2])
    sch.annotate(outer, "software_pipeline_order", [0, 1])
    built = tw.build(sch.func)["twice"]
    for size in (0, 1, 3, 4, 5, 8, 9, 23):
        x = np.arange(size, dtype="float32")
        for runs in (lambda x, out: interp.run(lower(sch.func), x, out), built):
            out = np.full(size, np.nan, "float32")
            runs(x, out)
            np.testing.assert_array_equal(out, (x + 1) * 2)


def test_double_buffer_is_a_pipeline_of_two_stages():
    sch, loops = product()
    for name in ("A_local", "B_local"):
        sch.annotate(sch.get_block(name), "double_buffer_scope", 0)
    marked = after(sch.func, "lower_double_buffers")
    loop = next(s for s in walk(marked.body) if isinstance(s, For) and s.annotations)
    assert dict(loop.annotations) == {"software_pipeline_stage": [0, 0, 1], "software_pipeline_order": [0, 1, 2]}
    check(sch.func)
    native(sch.func)


@pytest.mark.parametrize("stages, order, message", [
    ([1, 0, 0], [0, 1, 2], "statement 2 uses A_local after statement 0, and would run before it"),
    ([0, 0], [0, 1], "software_pipeline_stage has 2 entries, the body has 3 statements"),
    ([0, 0, 1], [0, 0, 1], "not a permutation"),
    ([0, 0, -1], [0, 1, 2], "not a list of natural numbers"),
    ([0, 0, 0], [2, 1, 0], "would run before it"),
])
def test_pipelines_that_are_refused(stages, order, message):
    sch, loops = product()
    sch.annotate(loops[0], "software_pipeline_stage", stages)
    sch.annotate(loops[0], "software_pipeline_order", order)
    with pytest.raises(LowerError, match=message):
        lower(sch.func)


@pytest.mark.parametrize("order", [[0, 1, 2], [1, 0, 2]])
@pytest.mark.parametrize("stages", [[0, 0, 1], [0, 1, 2]])
def test_a_pipeline_that_prefetches(stages, order):
    sch, loops = product()
    sch.annotate(loops[0], "software_pipeline_stage", stages)
    sch.annotate(loops[0], "software_pipeline_order", order)
    sch.annotate(loops[0], "prefetch", [["B", 2]])
    assert prefetches(check(sch.func))


@pytest.mark.parametrize("stages, order", [([0, 0, 1], [0, 1, 2]), ([0, 1, 2], [1, 0, 2]), ([0, 1, 1], [0, 1, 2])])
def test_a_pipeline_of_blocks_of_several_statements(stages, order):
    f = from_source('''@T.prim_func
def f(A: T.Buffer((9,), "int32"), B: T.Buffer((9,), "int32")):
    P = T.alloc_buffer((9,), "int32")
    Q = T.alloc_buffer((9,), "int32")
    R = T.alloc_buffer((9,), "int32")
    for i in range(9):
        with T.block("P"):
            v = T.axis.spatial(9, i)
            P[v] = A[v] + 1
            Q[v] = A[v] * 2
        with T.block("R"):
            v = T.axis.spatial(9, i)
            R[v] = P[v]
            R[v] = R[v] * Q[v]
            R[v] = R[v] - 3
        with T.block("B"):
            v = T.axis.spatial(9, i)
            B[v] = R[v]
''')
    sch = Schedule(f)
    sch.annotate(sch.get_loops("R")[0], "software_pipeline_stage", stages)
    sch.annotate(sch.get_loops("R")[0], "software_pipeline_order", order)
    a = np.arange(9, dtype="int32")
    for runs in (lambda *x: interp.run(lower(sch.func), *x), tw.build(sch.func)["f"]):
        out = np.zeros(9, "int32")
        runs(a, out)
        np.testing.assert_array_equal(out, (a + 1) * a * 2 - 3)


def test_a_pipeline_over_memory_that_outlives_the_iteration():
    """S[i % 2] is not allocated inside the loop: it cannot get versions, and the next iteration overwrites it."""
    sch, loops = product()
    sch.annotate(sch.get_block("C"), "double_buffer_scope", 0)
    with pytest.raises(LowerError, match="would run before it|uses A_local after"):
        lower(sch.func)


def test_a_double_buffer_without_a_loop():
    a = te.placeholder((8,), "float32", name="A")
    b = te.compute((8,), lambda i: a[i] + 1, name="B")
    sch = Schedule(create_prim_func([a, b]))
    sch.annotate(sch.get_block("B"), "double_buffer_scope", 0)
    with pytest.raises(LowerError, match="no loop runs it beside another statement"):
        lower(sch.func)


def test_virtual_threads_interleave():
    """Accumulators of two virtual threads become one buffer of two parts, updated side by side."""
    sch, (ko, i, j, ki) = product(cached=False)
    i0, i1 = sch.split(i, [2, None])
    sch.reorder(i0, ko, i1, j, ki)
    copied = sch.cache_write("C", 0, "local")
    sch.reverse_compute_at(copied, i0)
    sch.bind(i0, "vthread")
    lowered = after(sch.func, "lower_virtual_threads")
    assert not [s for s in walk(lowered.body) if isinstance(s, For) and s.kind == THREAD_BINDING]
    shapes = [tuple(int(d) for d in s.buffer.shape) for s in walk(lowered.body) if isinstance(s, Allocate)]
    assert shapes == [(2, 4, 8)]
    check(sch.func)
    native(sch.func)


def test_two_axes_of_virtual_threads():
    sch, (ko, i, j, ki) = product(cached=False)
    i0, i1 = sch.split(i, [2, None])
    j0, j1 = sch.split(j, [4, None])
    sch.reorder(i0, j0, ko, i1, j1, ki)
    sch.bind(i0, "vthread.y")
    sch.bind(j0, "vthread.x")
    check(sch.func)
    native(sch.func)


def prefetches(func):
    return [n for n in walk(func.body) if isinstance(n, Call) and n.op == "prefetch"]


def test_prefetch_asks_for_the_lines_of_a_later_iteration():
    sch, (ko, i, j, ki) = product(m=8, n=32, k=12, cached=False)
    sch.annotate(ko, "prefetch", [["B", 2]])
    found = prefetches(after(sch.func, "inject_prefetches"))
    assert len(found) == 1 and isinstance(found[0].args[0], Load) and found[0].args[0].buffer.name == "B"
    assert str(found[0]) == "T.prefetch(B[k_0 * 4 + line_0 + 8, line_1 * 16])"
    check(sch.func, n=32)
    native(sch.func, n=32)


def test_prefetches_of_what_is_not_there_or_too_large():
    sch, (ko, *_) = product(cached=False)
    sch.annotate(ko, "prefetch", [["D", 1]])
    assert not prefetches(after(sch.func, "inject_prefetches"))
    sch, (ko, *_) = product(n=4096, k=4096, tile=1024, cached=False)
    sch.prefetch("C", 1, ko)
    requests = after(sch.func, "inject_prefetches")
    assert prefetches(requests) and "for line_0 in range(16)" in str(requests)


def test_the_pragma_auto_unroll_max_step():
    sch, (ko, i, j, ki) = product(m=4, n=4, k=8, cached=False)
    sch.annotate(j, "pragma_auto_unroll_max_step", 64)
    loops = [s for s in walk(lower(sch.func).body) if isinstance(s, For)]
    assert len(loops) == len([s for s in walk(lower(product(m=4, n=4, k=8, cached=False)[0].func).body)
                              if isinstance(s, For)]) - 2
    check(sch.func, m=4, n=4, k=8)


@pytest.mark.parametrize("explicit, loops", [(None, 1), (1, 1), (0, 2)])
def test_the_pragma_unroll_explicit(explicit, loops):
    a = te.placeholder((64, 4, 16), name="A")
    sums = te.compute((64, 4, 16), lambda i, j, k: a[i, j, k] + 1.0, name="sums")
    sch = tw.Schedule(te.create_prim_func([a, te.compute((64, 4, 16), lambda i, j, k: sums[i, j, k] * 2.0)]))
    sch.compute_at("sums", sch.get_loops(sch.get_block("compute"))[0])
    *_, row, lane = sch.get_loops(sch.get_block("sums"))
    sch.vectorize(lane)
    for last in sch.get_loops(sch.get_block("compute"))[1:]:
        sch.unroll(last)
    if explicit is not None:
        sch.annotate(row, "pragma_unroll_explicit", explicit)
    assert sum(isinstance(s, For) for s in walk(lower(sch.func).body)) == loops
