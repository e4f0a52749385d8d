"""The rules for argmax and argmin along memory: the first of equals and NaN before all, as NumPy has it, in lanes."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.rules import apply_rules
from tilewright.rules.apply import Scheduling
from tilewright.schedule import Schedule
from tilewright.te.arg_reducers import arg_reducer
from tilewright.tir import PARALLEL, For, walk

TARGET = tw.target("llvm -mcpu=x86-64-v3 -num-cores=1 -opt-level=1")      # 8 lanes of float32
LOCAL = tw.target("llvm -num-cores=2 -opt-level=1")
OPERATIONS = {"argmax": np.argmax, "argmin": np.argmin}


def function(shape, axis=-1, operation="argmax", dtype="float32", symbolic="", of=lambda x: x, **attrs):
    sizes = [te.var(f"n{d}") if str(d) in symbolic else e for d, e in enumerate(shape)]
    x = te.placeholder(sizes, dtype, name="x")
    return te.create_prim_func([x, getattr(topi, operation)(of(x), axis=axis, **attrs)])


def computed(func, a, shape, target=LOCAL, dtype="int64"):
    out = np.full(shape, 77, dtype)
    tw.compile(func, target=target)(a, out)
    return out


def checked(func, a, axis=-1, operation="argmax", target=LOCAL, dtype="int64"):
    wide = a.astype("float64") if a.dtype.kind not in "iub" else a
    want = OPERATIONS[operation](wide, axis=axis)
    np.testing.assert_array_equal(computed(func, a, want.shape, target, dtype), want)


def rules_of(func, target=TARGET):
    return [d.rule for d in tw.explain(func, str(target)).decisions]


def drawn(shape, dtype="float32", many=False):
    """Numbers among which each occurs a few times; `many`: often."""
    rng = np.random.default_rng(7)
    a = rng.integers(0, 3 if many else 90, shape)
    return a.astype({"bfloat16": ml_dtypes.bfloat16}.get(dtype, dtype))


@pytest.mark.parametrize("length, many", [
    *((n, False) for n in (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 256, 257, 1009)),
    *((n, True) for n in (1, 33, 64, 257, 1000))])
def test_every_length(length, many):
    a = drawn((7, length), many=many)
    for operation in OPERATIONS:
        checked(function(a.shape, operation=operation), a, operation=operation)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64", "float16",
                                   "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_dtype(operation, dtype):
    a = drawn((5, 203), dtype)
    func = function(a.shape, operation=operation, dtype=dtype)
    assert rules_of(func) == ["places"]
    checked(func, a, operation=operation)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_no_number_comes_first(operation, dtype):
    a = drawn((9, 150), "float32")
    inf = np.inf if operation == "argmax" else -np.inf
    a[0, [70, 3, 149]] = np.nan                          # the first of them
    a[1] = np.nan
    a[2] = -inf                                          # all are as bad as can be
    a[3, 149] = np.nan
    a[4, [9, 8]] = inf, np.nan
    a[5, [8, 9]] = inf, np.nan
    a[6] = -inf
    a[6, 100] = -np.finfo("float16").max if operation == "argmax" else np.finfo("float16").max
    a[7] = 0.0
    a[7, ::3] = -0.0                                     # equal to the others
    a[8, 20:] = -inf
    a = a.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    checked(function(a.shape, operation=operation, dtype=dtype), a, operation=operation)


@pytest.mark.parametrize("kind, extreme", [("int8", -128), ("int64", -2 ** 63), ("uint8", 0), ("uint64", 0)])
def test_rows_of_the_smallest_number(kind, extreme):
    a = np.full((3, 100), extreme, kind)
    a[1, 99] += 1
    checked(function(a.shape, dtype=kind), a)


@pytest.mark.parametrize("shape, axis", [
    ((200,), 0), ((1000,), None), ((3, 5, 70), 2), ((3, 5, 70), None), ((9, 100), None), ((1, 1, 300), -1),
    ((0, 100), 1), ((2, 0, 100), 2), ((50, 40), 0), ((3, 70, 4), 1)])
def test_shapes(shape, axis):
    a = drawn(shape)
    for operation in OPERATIONS:
        checked(function(shape, axis, operation), a, axis, operation)


def test_the_shapes_that_lanes_are_for():
    for shape, axis, there in [((200,), 0, True), ((3, 5, 70), 2, True), ((3, 5, 70), None, True), ((50, 40), 0, False),
                               ((9, 31), 1, False), ((9, 32), 1, True), ((3, 70, 4), 1, False), ((0, 100), 1, False)]:
        assert ("places" in rules_of(function(shape, axis))) == there


@pytest.mark.parametrize("symbolic", ["0", "1", "01"])
@pytest.mark.parametrize("shape", [(1, 1), (5, 3), (3, 31), (3, 32), (0, 50), (7, 64), (2, 1000), (4, 1027)])
def test_extents_known_at_the_call(shape, symbolic):
    for operation in OPERATIONS:
        func = function(shape, operation=operation, symbolic=symbolic)
        some, long = "0" in symbolic or shape[0] > 0, "1" in symbolic or shape[1] > 31
        assert ("places" in rules_of(func)) == (some and long)
        checked(func, drawn(shape, many=True), operation=operation)


def test_of_no_element_as_without_the_rules():
    func = function((3, 0), symbolic="1")
    a = np.zeros((3, 0), "float32")
    plain = np.zeros(3, "int64")
    tw.build(func)(a, plain)
    np.testing.assert_array_equal(computed(func, a, (3,)), plain)


def test_the_element_is_the_one_at_the_place():
    """Both results are seen from outside: -0.0 and 0.0 are equal, and the first of them is what is given."""
    x = te.placeholder((4, 100), name="x")
    k = te.reduce_axis((0, 100), name="k")
    first = arg_reducer(True)
    place, best = te.compute((4,), lambda i: first((k.var.astype("int64"), x[i, k]), axis=k), name="y")
    func = te.create_prim_func([x, place, best])
    assert rules_of(func)[-1] == "places"
    a, at, y = drawn((4, 100)), np.zeros(4, "int64"), np.zeros(4, "float32")
    a[0], a[1], a[1, 0] = 0.0, 0.0, -0.0
    tw.compile(func, target=LOCAL)(a, at, y)
    np.testing.assert_array_equal(at, a.argmax(1))
    np.testing.assert_array_equal(y.view("int32"), a[np.arange(4), at].view("int32"))


def test_of_an_expression_and_to_other_types():
    a = drawn((6, 90)) - 45
    np.testing.assert_array_equal(computed(function(a.shape, of=topi.abs), a, (6,)), np.abs(a).argmax(1))
    np.testing.assert_array_equal(computed(function(a.shape, dtype="float32"), a, (6,)), a.argmax(1))
    x = te.placeholder(a.shape, name="x")
    func = te.create_prim_func([x, topi.argmax(x, axis=1, keepdims=True, dtype="int32")])
    np.testing.assert_array_equal(computed(func, a, (6, 1), dtype="int32"), a.argmax(1)[:, None])
    assert rules_of(func)[-1] == "places"


def test_the_last_vectors_alone_have_a_condition():
    lowered = str(tw.lower(apply_rules(function((37, 100)), TARGET).func))
    assert "for step in range(3)" in lowered


def test_rows_are_on_all_threads():
    sch, a = apply_rules(function((300, 1000)), tw.target("llvm -num-cores=4")), drawn((300, 1000))
    assert next(n for n in walk(sch.func.body) if isinstance(n, For)).kind == PARALLEL
    checked(function(a.shape), a, target="llvm -num-cores=4")


def test_other_reductions_of_pairs_stay():
    """The last of equals, and one that looks at places only: no lanes."""
    last = te.comm_reducer(
        lambda a, b: (te.select(te.any(b[1] > a[1], te.all(b[1] == a[1], b[0] > a[0])), b[0], a[0]),
                      te.max(a[1], b[1])),
        lambda i, x: (te.const(-1, i), te.min_value(x)), name="last")
    x, k = te.placeholder((4, 100), name="x"), te.reduce_axis((0, 100), name="k")
    place, _ = te.compute((4,), lambda i: last((k.var.astype("int64"), x[i, k]), axis=k), name="y")
    func, a = te.create_prim_func([x, place]), drawn((4, 100), many=True)
    assert rules_of(func) == [""]
    np.testing.assert_array_equal(computed(func, a, (4,)), 99 - a[:, ::-1].argmax(1))


def test_places_that_are_not_the_number_of_the_element_stay():
    x, k = te.placeholder((4, 100), name="x"), te.reduce_axis((0, 100), name="k")
    for of, want in ((lambda k: 99 - k, lambda a: 99 - a.argmax(1)), (lambda k: k + 5, lambda a: a.argmax(1) + 5)):
        place, _ = te.compute((4,), lambda i, of=of: arg_reducer(True)(
            (of(k.var).astype("int64"), x[i, k]), axis=k), name="y")
        func = te.create_prim_func([x, place])
        assert rules_of(func) == [""]
        a = np.random.default_rng(1).permutation(400).reshape(4, 100).astype("float32")
        np.testing.assert_array_equal(computed(func, a, (4,)), want(a))


def test_c_and_the_interpreter_agree():
    func, a = function((3, 77)), drawn((3, 77), many=True)
    got = np.zeros(3, "int64")
    tw.tir.interp.run(apply_rules(func, TARGET).func, a, got)
    np.testing.assert_array_equal(got, a.argmax(1))
    checked(func, a, target="c")


def test_the_trace_replays():
    work = Scheduling(function((30, 170)), TARGET).finish()
    again = Schedule(work.func)
    work.schedule.trace.apply_to_schedule(again)
    assert str(again) == str(work.schedule)
