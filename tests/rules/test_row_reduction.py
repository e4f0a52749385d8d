"""The rule for reductions of rows: right against NumPy in float64, in the lanes of vectors, on threads."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.rules import apply_rules
from tilewright.rules.facts import kernel_blocks
from tilewright.rules.full_reduction import MOST_RESULTS
from tilewright.rules.lanes import is_reorderable, length_of_line, line_of_terms
from tilewright.schedule import Schedule
from tilewright.tir import For, walk

TARGET = tw.target("llvm -mcpu=x86-64-v3 -num-cores=4 -opt-level=1")      # 8 lanes of float32
LOCAL = tw.target("llvm -num-cores=2 -opt-level=1")
OPERATIONS = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min}


def function(shape, axes, reduce=te.sum, dtype="float32", epilogue=None, symbolic=""):
    """f(A, B): B = the reduction of A over axes; the extents of the dimensions in `symbolic` are known at the call."""
    sizes = [te.var(f"n{d}") if str(d) in symbolic else e for d, e in enumerate(shape)]
    a = te.placeholder(sizes, dtype, name="A")
    over = {d: te.reduce_axis((0, sizes[d]), name=f"k{d}") for d in axes}
    kept = [d for d in range(len(shape)) if d not in over]
    b = te.compute([sizes[d] for d in kept], lambda *i: reduce(
        a[tuple({**over, **dict(zip(kept, i))}[d] for d in range(len(shape)))], axis=[*over.values()]), name="B")
    if epilogue is not None:
        b = te.compute(b.shape, lambda *i, b=b: epilogue(b(*i)), name="C")
    return te.create_prim_func([a, b], name="f")


def numbers(shape, dtype):
    rng = np.random.default_rng(3)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 5, shape).astype(dtype)
    return rng.uniform(0.75, 1.25, shape).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def computed(func, a, target=LOCAL):
    """The result of func, whose shape is constant; the output starts as garbage."""
    out = np.full([d.value for d in func.buffers[-1].shape], 77, a.dtype)
    tw.compile(func, target=target)(a, out)
    return out


def rules_of(func, target=TARGET):
    return [d.rule for d in tw.explain(func, str(target)).decisions]


@pytest.mark.parametrize("length", [1, 7, 8, 9, 16, 31, 32, 33, 63, 64, 65, 127, 129, 257, 1000, 1009])
def test_every_length(length):
    a = numbers((11, length), "float32")
    got = computed(function((11, length), (1,)), a)
    np.testing.assert_allclose(got, a.astype("float64").sum(1), rtol=2e-6)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_dtype(dtype, operation):
    a, reference = numbers((13, 37), dtype), OPERATIONS[operation]
    got = computed(function((13, 37), (1,), getattr(te, operation), dtype), a)
    if np.dtype(a.dtype).kind in "iu":
        np.testing.assert_array_equal(got, reference(a.astype("int64"), axis=1).astype(dtype))      # both wrap around
        return
    epsilon = {"float16": 2.0 ** -10, "bfloat16": 2.0 ** -7, "float32": 2.0 ** -23, "float64": 2.0 ** -52}[dtype]
    np.testing.assert_allclose(got.astype("float64"), reference(a.astype("float64"), axis=1), rtol=37 * epsilon)


@pytest.mark.parametrize("shape, axes, rule", [
    ((37, 100), (1,), "row_reduction"), ((3, 5, 64), (2,), "row_reduction"), ((2, 9, 7, 7), (2, 3), "row_reduction"),
    ((4, 9, 6, 14), (0, 2, 3), "row_reduction"), ((9, 3, 41), (0, 2), "row_reduction"),
    ((20, 1, 50), (1, 2), "row_reduction"), ((20, 50, 1), (1, 2), "row_reduction"), ((100,), (0,), "row_reduction"),
    ((9, 5), (1,), "reduction"), ((50, 20), (0,), "reduction")])
@pytest.mark.parametrize("epilogue", [None, lambda x: x * 0.5 + 1.0], ids=["alone", "epilogue"])
def test_shapes(shape, axes, rule, epilogue):
    func = function(shape, axes, epilogue=epilogue)
    assert rules_of(func) == [rule]
    a = numbers(shape, "float32")
    want = a.astype("float64").sum(axes)
    np.testing.assert_allclose(computed(func, a), want if epilogue is None else epilogue(want), rtol=2e-6)


@pytest.mark.parametrize("shape", [(0, 50), (9, 0)])
def test_nothing_to_reduce(shape):
    func = function(shape, (1,))
    assert "row_reduction" not in rules_of(func)
    np.testing.assert_array_equal(computed(func, numbers(shape, "float32")), np.zeros(shape[0], "float32"))


@pytest.mark.parametrize("symbolic", ["1", "01", "0"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 0), (0, 5), (3, 17), (7, 64), (9, 1000)])
def test_extents_known_at_the_call(symbolic, shape):
    func = function(shape, (1,), symbolic=symbolic)
    a = numbers(shape, "float32")
    out = np.full(shape[0], 77, "float32")
    tw.compile(func, target=LOCAL)(a, out)
    np.testing.assert_allclose(out, a.astype("float64").sum(1), rtol=2e-6)
    if "1" in symbolic and ("0" in symbolic or shape[0] > MOST_RESULTS):
        assert rules_of(func) == ["row_reduction"]


def test_a_whole_vector_of_a_row_is_read_without_a_mask():
    """100 = 3 * 32 + 4: the condition of the split stands in the tail only."""
    lowered = str(tw.lower(apply_rules(function((37, 100), (1,)), TARGET).func))
    assert "for k1_0 in range(3)" in lowered and lowered.count("predicate") == 1


def test_lanes_and_threads():
    sch = apply_rules(function((300, 1000), (1,)), TARGET)
    loops = [sch.get(rv) for rv in sch.get_loops("B_rf_update")]
    assert [(loop.kind, loop.extent.value) for loop in loops if loop.extent.value > 1] == [
        ("parallel", 300), ("serial", 32), ("vectorized", 32)]
    assert "parallel" not in {n.kind for n in walk(apply_rules(function((9, 100), (1,)), TARGET).func.body)
                              if isinstance(n, For)}


def test_strict_mathematics_keep_the_order_of_sums(monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    assert rules_of(function((20, 100), (1,))) == ["reduction"]
    assert rules_of(function((20, 100), (1,), te.max)) == ["row_reduction"]
    assert rules_of(function((20, 100), (1,), te.sum, "int32")) == ["row_reduction"]
    a, n = te.placeholder((20, 100), name="A"), te.placeholder((20, 100), "int32", "N")
    k = te.reduce_axis((0, 100), "k")
    sums = te.comm_reducer(lambda x, y: (x[0] + y[0], x[1] + y[1]), lambda s, t: (te.const(0, s), te.const(0, t)))
    pair = te.compute((20,), lambda i: sums((a[i, k], n[i, k]), axis=k), name="B")
    assert not is_reorderable(kernel_blocks(Schedule(te.create_prim_func([a, n, *pair])))[0])


def test_lines_of_terms():
    def facts(*args):
        return kernel_blocks(Schedule(function(*args)))[0]
    assert (line_of_terms(facts((3, 4, 5), (1, 2))), length_of_line(facts((3, 4, 5), (1, 2)))) == (2, 20)
    assert (line_of_terms(facts((3, 4, 5), (0, 2))), length_of_line(facts((3, 4, 5), (0, 2)))) == (1, 5)
    assert line_of_terms(facts((3, 4, 5), (0, 1))) == 0 and is_reorderable(facts((3, 4), (1,)))


def test_an_operand_that_is_read_across_its_rows_is_none():
    a, b = te.placeholder((40, 50), name="A"), te.placeholder((50, 40), name="B")
    k = te.reduce_axis((0, 50), name="k")
    c = te.compute((40,), lambda i: te.sum(a[i, k] * b[k, i], axis=k), name="C")
    assert rules_of(te.create_prim_func([a, b, c])) == ["reduction"]


def test_a_matrix_times_a_vector():
    a, v = te.placeholder((40, 77), name="A"), te.placeholder((77,), name="V")
    k = te.reduce_axis((0, 77), name="k")
    func = te.create_prim_func([a, v, te.compute((40,), lambda i: te.sum(a[i, k] * v[k], axis=k), name="C")])
    assert rules_of(func) == ["row_reduction"]
    x, y, out = numbers((40, 77), "float32"), numbers((77,), "float32"), np.zeros(40, "float32")
    tw.compile(func, target=LOCAL)(x, y, out)
    np.testing.assert_allclose(out, x.astype("float64") @ y.astype("float64"), rtol=2e-6)


def test_the_mean_and_the_variance_of_topi():
    x = te.placeholder((6, 5, 70), name="X")
    a, out = numbers((6, 5, 70), "float32"), np.zeros((6, 5), "float32")
    for tensor, want in ((topi.mean(x, axis=-1), a.astype("float64").mean(-1)),
                         (topi.var(x, axis=-1), a.astype("float64").var(-1))):
        assert "row_reduction" in rules_of(te.create_prim_func([x, tensor]))
        tw.compile([x, tensor], target=LOCAL)(a, out)
        np.testing.assert_allclose(out, want, rtol=1e-5)


def test_c_and_the_interpreter_agree():
    func, a = function((3, 45), (1,)), numbers((3, 45), "float32")
    scheduled = apply_rules(func, TARGET).func
    want = a.astype("float64").sum(1)
    by_steps, by_c = np.zeros(3, "float32"), np.zeros(3, "float32")
    tw.tir.interp.run(scheduled, a, by_steps)
    tw.compile(func, target="c")(a, by_c)
    np.testing.assert_allclose(by_steps, want, rtol=2e-6)
    np.testing.assert_allclose(by_c, want, rtol=2e-6)


def test_the_trace_replays():
    func = function((30, 6, 70), (0, 2), epilogue=lambda x: x + 1.0)
    sch, again = apply_rules(func, TARGET), Schedule(func)
    sch.trace.apply_to_schedule(again)
    assert str(again) == str(sch)
