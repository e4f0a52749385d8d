"""The rule for chains over rows: right against NumPy in float64, whatever axes the rows have."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.rules import apply_rules
from tilewright.schedule import Schedule
from tilewright.tir import Allocate, Binary, walk

TARGET = tw.target("llvm -mcpu=x86-64-v3 -num-cores=1 -opt-level=1")
THREADS = tw.target("llvm -mcpu=x86-64-v3 -num-cores=4")
LOCAL = tw.target("llvm -num-cores=2 -opt-level=1")
SHAPES = [(1,), (70,), (1, 1), (9, 33), (50, 1), (3, 7, 65), (2, 1, 3, 40), (1, 3, 1, 5, 129), (0, 5, 9), (5, 0, 9)]


def normalized(x, axis=-1):
    """The softmax of x in float64."""
    e = np.exp(x.astype("float64") - x.astype("float64").max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def function(shape, axis=-1, dtype="float32", symbolic=""):
    sizes = [te.var(f"n{d}") if str(d) in symbolic else e for d, e in enumerate(shape)]
    x = te.placeholder(sizes, dtype, name="x")
    return te.create_prim_func([x, topi.softmax(x, axis=axis)])


def drawn(shape, dtype="float32"):
    a = np.random.default_rng(5).standard_normal(shape) * 3
    return a.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def computed(func, a, target=LOCAL):
    out = np.full(a.shape, 77, a.dtype)
    tw.compile(func, target=target)(a, out)
    return out.astype("float64")


def rules_of(func, target=TARGET):
    return [d.rule for d in tw.explain(func, str(target)).decisions if d.rule != "inline"]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_rank(shape):
    a = drawn(shape)
    want = normalized(a) if a.size else np.zeros(shape)
    np.testing.assert_allclose(computed(function(shape), a), want, rtol=2e-6)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(5, 6, 40), (17, 3, 8), (40, 33, 1)])
def test_every_axis(shape, axis):
    a = drawn(shape)
    np.testing.assert_allclose(computed(function(shape, axis), a), normalized(a, axis), rtol=2e-6)


@pytest.mark.parametrize("symbolic", ["0", "1", "01", "2", "012"])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 1, 1), (2, 3, 100), (0, 3, 20), (3, 0, 20)])
def test_extents_known_at_the_call(shape, symbolic):
    func, a = function(shape, symbolic=symbolic), drawn(shape)
    if min(shape) > 1:
        assert rules_of(func) == ["rows"]
    want = normalized(a) if a.size else np.zeros(shape)
    np.testing.assert_allclose(computed(func, a), want, rtol=2e-6)


@pytest.mark.parametrize("dtype, rtol", [("float16", 2e-3), ("bfloat16", 2e-2), ("float64", 1e-14)])
def test_every_dtype(dtype, rtol):
    a = drawn((3, 5, 77), dtype)
    np.testing.assert_allclose(computed(function(a.shape, dtype=dtype), a), normalized(a), rtol=rtol, atol=1e-7)


def test_what_is_no_number():
    a = drawn((2, 3, 50))
    a[0, 1, 49], a[1, 0, 3], a[1, 2] = np.nan, -np.inf, 1e30
    got = computed(function(a.shape), a)
    assert np.isnan(got[0, 1]).all() and got[1, 0, 3] == 0 and (got[1, 2] == np.float32(1 / 50)).all()
    np.testing.assert_allclose(got[0, 0], normalized(a)[0, 0], rtol=2e-6)


def test_nan_is_in_its_rows_only():
    a = drawn((4, 70))
    a[1, 3], a[2] = np.nan, np.nan
    a[3, :69], a[3, 69] = -np.inf, np.nan
    for make, reference in ((topi.softmax, normalized), (topi.log_softmax, lambda a: np.log(normalized(a)))):
        x = te.placeholder(a.shape, name="x")
        got = computed(te.create_prim_func([x, make(x)]), a)
        np.testing.assert_allclose(got[0], reference(a)[0], rtol=1e-5)
        assert np.isnan(got[1:]).all()
    x = te.placeholder(a.shape, name="x")
    func, out = te.create_prim_func([x, topi.logsumexp(x, axis=-1)]), np.zeros(4, "float32")
    tw.compile(func, target=LOCAL)(a, out)
    assert np.isnan(out[1:]).all() and abs(out[0] - np.log(np.exp(a[0].astype("float64")).sum())) < 1e-5


def test_exponentials_are_summed_as_they_are_computed():
    lowered = str(tw.lower(apply_rules(function((20, 2048)), TARGET).func))
    loop = lowered[lowered.index("softmax_sum_rf[0:32] = T.Broadcast"):]
    body = loop[loop.index("for "):loop.index("softmax_sum_rf_1")]
    assert "T.exp(" in body and "softmax_sum_rf[0:32] + softmax_1[" in body


def test_all_rows_are_on_the_threads():
    sch = apply_rules(function((12, 64, 96)), THREADS)
    loop = sch.get(sch.get_loops("softmax")[0])
    assert loop.kind == "parallel" and loop.extent.value == 12 * 64
    a = drawn((12, 64, 96))
    np.testing.assert_allclose(computed(function(a.shape), a, THREADS), normalized(a), rtol=2e-6)


@pytest.mark.parametrize("make, reference", [
    (topi.log_softmax, lambda a: np.log(normalized(a))),
    (topi.layer_norm, lambda a: (a - a.mean(-1, keepdims=True, dtype="float64"))
     / np.sqrt(a.astype("float64").var(-1, keepdims=True) + 1e-5))], ids=["log_softmax", "layer_norm"])
def test_other_chains(make, reference):
    a = drawn((4, 5, 70))
    x = te.placeholder(a.shape, name="x")
    y = make(x)
    func, out = te.create_prim_func([x, y]), np.full([d.value for d in y.shape], 77, "float32")
    assert "rows" in rules_of(func)
    tw.compile(func, target=LOCAL)(a, out)
    np.testing.assert_allclose(out, reference(a), rtol=1e-5, atol=1e-5)


def test_blocks_over_other_rows_are_no_part_of_a_chain():
    """The totals of rows are summed over all rows of an image: what follows has fewer axes."""
    x = te.placeholder((3, 20, 30), name="x")
    k, r = te.reduce_axis((0, 30), name="k"), te.reduce_axis((0, 20), name="r")
    rows = te.compute((3, 20), lambda i, j: te.max(x[i, j, k], axis=k), name="rows")
    func = te.create_prim_func([x, te.compute((3,), lambda i: te.sum(rows[i, r], axis=r), name="total")])
    a, out = drawn((3, 20, 30)), np.zeros(3, "float32")
    tw.compile(func, target=LOCAL)(a, out)
    np.testing.assert_allclose(out, a.max(-1).astype("float64").sum(-1), rtol=1e-5)


def test_the_order_of_sums_with_strict_mathematics(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    a = drawn((3, 9, 70))
    np.testing.assert_allclose(computed(function(a.shape), a), normalized(a), rtol=4e-6)


def test_c_and_the_interpreter_agree():
    func, a = function((2, 3, 37)), drawn((2, 3, 37))
    got = np.zeros_like(a)
    tw.tir.interp.run(apply_rules(func, TARGET).func, a, got)
    np.testing.assert_allclose(got, normalized(a), rtol=2e-6)
    np.testing.assert_allclose(computed(func, a, "c"), normalized(a), rtol=2e-6)


def test_the_trace_replays():
    func = function((4, 5, 100))
    sch, again = apply_rules(func, THREADS), Schedule(func)
    sch.trace.apply_to_schedule(again)
    assert str(again) == str(sch)


@pytest.mark.parametrize("shape, asked", [((1024, 512), True), ((8, 64, 640), True), ((256, 512), False),
                                          ((4096, 200), False), ((200, 2048), True), ((64, 8192), False),
                                          ((1023, 512), False)], ids=str)
@pytest.mark.parametrize("cores", [1, 2])
def test_the_next_row_is_asked_for_while_one_is_computed(shape, asked, cores):
    """Rows of 1 to 16 KiB that are more than 1 MiB together, a number of them that threads can take 8 at a time."""
    func, target, a = function(shape), tw.target(f"llvm -num-cores={cores}"), drawn(shape)
    assert ("sch.prefetch(" in str(apply_rules(func, target).trace)) == asked
    np.testing.assert_allclose(computed(func, a, target), normalized(a), rtol=1e-5)


@pytest.mark.parametrize("symbolic", ["1", "01"])
def test_what_is_kept_of_a_row_is_as_long_as_the_row(symbolic):
    """The rows before it have done with theirs, however long a row is; one without elements keeps nothing."""
    func = function((6, 90), symbolic=symbolic)
    flat = tw.lower(tw.explain(func, "llvm -num-cores=1").schedule.mod, target="llvm -num-cores=1")["main"]
    kept = [s.buffer.shape for s in walk(flat.body) if isinstance(s, Allocate) and "exp" in s.buffer.name]
    assert all(len(shape) == 1 and not isinstance(shape[0], Binary) for shape in kept)
    for rows, columns in ((6, 0), (6, 1), (6, 15), (6, 16), (6, 17), (6, 63), (6, 64), (6, 65), (6, 131)):
        a = drawn((rows, columns))
        want = normalized(a) if a.size else np.zeros(a.shape)
        np.testing.assert_allclose(computed(func, a), want, rtol=2e-6)


@pytest.mark.parametrize("scaled", [False, True])
def test_exponentials_stand_where_the_result_goes_unless_an_argument_may(scaled):
    """The result may be written over an argument that is read at the same element, and nowhere else."""
    x, y = (te.placeholder((4, 70), name=name) for name in "xy")
    soft = topi.softmax(x)
    args = [x, y, te.compute((4, 70), lambda i, j: soft[i, j] * y[i, j], name="z")] if scaled else [x, soft]
    done = [e.primitive for d in tw.explain(args, str(TARGET)).decisions for e in d.entries]
    assert ("compute_in_place" in done) == (not scaled)
    a, b = drawn((4, 70)), drawn((4, 70)) + 1
    out = b.copy()
    tw.compile(args, target=LOCAL)(*[a, b, out][:None if scaled else 1], *[] if scaled else [out])
    np.testing.assert_allclose(out, normalized(a) * (b if scaled else 1), rtol=2e-6, atol=1e-12)
