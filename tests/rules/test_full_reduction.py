"""The rule for reductions to one element or a few: right against NumPy, in vectors and on threads, reproducible."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.rules import apply_rules
from tilewright.rules.elementwise import PARALLEL_POINTS
from tilewright.rules.facts import kernel_blocks
from tilewright.rules.full_reduction import is_full_reduction
from tilewright.rules.lanes import is_reorderable
from tilewright.schedule import Schedule
from tilewright.tir import For, walk

TARGET = tw.target("llvm -num-cores=4 -opt-level=1")


def reduced(shape, axes, reduce=te.sum, dtype="float32", mean=False):
    """f(A, B): B = the reduction of A over some axes (its mean, if asked)."""
    a = te.placeholder(shape, dtype, name="A")
    over = {d: te.reduce_axis((0, shape[d]), name=f"k{d}") for d in axes}
    rest = [d for d in range(len(shape)) if d not in over]

    def element(*point):
        at = {**over, **dict(zip(rest, point))}
        return reduce(a[tuple(at[d] for d in range(len(shape)))], axis=list(over.values()))
    out = [shape[d] for d in rest]
    b = te.compute(out, element, name="B")
    if mean:
        total, count = b, float(np.prod([shape[d] for d in axes]))
        b = te.compute(out, lambda *i: total[i] / count, name="M")
    return te.create_prim_func([a, b], name="f"), tuple(out)


def loop_kinds(sch):
    return [n.kind for n in walk(sch.func.body) if isinstance(n, For)]


@pytest.mark.parametrize("shape, axes", [((300,), (0,)), ((70001,), (0,)), ((300, 500), (0, 1)), ((4, 70000), (1,)),
                                         ((2, 300, 77), (1, 2)), ((1, 1000), (1,)), ((8, 256), (1,))])
def test_sums(shape, axes):
    func, out = reduced(shape, axes)
    assert is_full_reduction(kernel_blocks(Schedule(func))[0])
    sch = apply_rules(func, TARGET)
    assert any("_rf" in b for b in sch.block_names("main"))
    assert "vectorized" in loop_kinds(sch)
    a = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    got = np.zeros(out, "float32")
    tw.build(sch.func, target=TARGET)["f"](a, got)
    bound = np.abs(a.astype("float64")).sum(axis=axes) * 2.0 ** -20
    assert np.all(np.abs(got - a.sum(axis=axes, dtype="float64")) <= bound)


@pytest.mark.parametrize("dtype, reduce, reference", [
    ("int32", te.sum, np.sum), ("float32", te.max, np.max), ("float32", te.min, np.min), ("int64", te.max, np.max)])
def test_exact_reductions(dtype, reduce, reference):
    func, _ = reduced((40003,), (0,), reduce, dtype)
    a = np.random.default_rng(0).integers(-999, 999, 40003).astype(dtype)
    got = np.zeros((), dtype)
    tw.compile(func, target=TARGET)["f"](a, got)
    assert got == reference(a)


def test_a_mean():
    func, _ = reduced((256, 256), (0, 1), mean=True)
    a, got = np.random.default_rng(0).random((256, 256)).astype("float32"), np.zeros((), "float32")
    tw.compile(func, target=TARGET)["f"](a, got)
    np.testing.assert_allclose(got, a.mean(dtype="float64"), rtol=1e-6)


def test_large_sums_run_on_threads():
    assert "parallel" in loop_kinds(apply_rules(reduced((1 << 18,), (0,))[0], TARGET))
    assert "parallel" not in loop_kinds(apply_rules(reduced((1 << 12,), (0,))[0], TARGET))


@pytest.mark.parametrize("chunks", [2, 3])
def test_a_chunk_for_each_thread(chunks):
    sch = apply_rules(reduced((chunks * PARALLEL_POINTS + 5,), (0,))[0], TARGET)
    assert f"B_rf_rf = T.alloc_buffer(({chunks}, 64))" in str(sch)


def test_the_number_of_threads_changes_no_bit():
    func, _ = reduced((300007,), (0,))
    a = np.random.default_rng(0).random(300007).astype("float32")
    found = set()
    for cores in (1, 2, 4):
        got = np.zeros((), "float32")
        tw.compile(func, target=f"llvm -num-cores={cores} -opt-level=1")["f"](a, got)
        found.add(got.tobytes())
    assert len(found) == 1


def test_strict_mathematics_keep_the_order(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    assert not is_full_reduction(kernel_blocks(Schedule(reduced((1000,), (0,))[0]))[0])
    assert is_full_reduction(kernel_blocks(Schedule(reduced((1000,), (0,), te.max)[0]))[0])
    a, k = te.placeholder((1000,), name="A"), te.reduce_axis((0, 1000), name="k")
    both = te.comm_reducer(lambda x, y: (te.max(x[0], y[0]), x[1] + y[1]),
                           lambda m, s: (te.min_value(m), te.const(0, s)), name="max")
    func = te.create_prim_func([a, *te.compute((1,), lambda i: both((a[k], a[k]), axis=k), name="B")])
    assert not is_reorderable(kernel_blocks(Schedule(func))[0])


@pytest.mark.parametrize("shape, axes", [((70, 300), (1,)), ((300, 3), (0,)), ((20,), (0,)), ((300, 2, 77), (0, 2))])
def test_other_rules_keep_their_blocks(shape, axes):
    assert not is_full_reduction(kernel_blocks(Schedule(reduced(shape, axes)[0]))[0])


def test_the_trace_replays():
    func, _ = reduced((50001,), (0,))
    sch, again = apply_rules(func, TARGET), Schedule(func)
    sch.trace.apply_to_schedule(again)
    assert str(again) == str(sch)


@pytest.mark.parametrize("shape", [(300, 500), (1, 1), (3, 7), (700, 1), (1, 70000), (0, 5), (5, 0), (33, 65)])
@pytest.mark.parametrize("masked", [False, True])
def test_several_symbolic_extents(shape, masked):
    n, m = te.var("n"), te.var("m")
    X = te.placeholder((n, 2, m), name="X")
    k = [te.reduce_axis((0, e), name=f"k{d}") for d, e in enumerate((n, 2, m))]
    where = X[k[0], k[1], k[2]] < 0.5 if masked else None
    Y = te.compute((1,), lambda i: te.max(X[k[0], k[1], k[2]], k, where=where), name="Y")
    func = te.create_prim_func([X, Y])
    assert any("_rf" in b for b in apply_rules(func, TARGET).block_names("main"))
    x, y = np.random.default_rng(0).random((shape[0], 2, shape[1]), "float32"), np.zeros(1, "float32")
    tw.compile(func, target=TARGET)(x, y)
    assert y[0] == np.max(np.where(x < 0.5, x, -np.inf) if masked else x, initial=-np.inf)
    if x.size < 5000:
        z = np.zeros(1, "float32")
        tw.tir.interp.run(func, x, z)
        assert z[0] == y[0]
