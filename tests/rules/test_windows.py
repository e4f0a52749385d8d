"""The rule for windows that overlap: pooling is right against NumPy in float64, in vectors of neighbours."""
from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.rules import apply_rules
from tilewright.rules.apply import Scheduling
from tilewright.rules.facts import kernel_blocks
from tilewright.rules.windows import LEAST, choose_tile, windows_of
from tilewright.schedule import Schedule
from tilewright.tir import PARALLEL, VECTORIZED, For, walk

TARGET = tw.target("llvm -mcpu=x86-64-v3 -num-cores=1 -opt-level=1")      # 8 lanes of float32
LOCAL = tw.target("llvm -num-cores=2 -opt-level=1")


def function(kind, shape, *args, dtype="float32", of=lambda y: y, **attrs):
    x = te.placeholder(shape, dtype, name="x")
    return te.create_prim_func([x, of(getattr(topi, f"{kind}_pool")(x, *args, **attrs))])


def drawn(shape, dtype="float32"):
    a = np.random.default_rng(2).integers(-90, 90, shape)
    return a.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def pooled(kind, a, kernel, stride, pad=0):
    """What the windows hold, in float64; padding is in no mean."""
    axes = range(2, a.ndim)
    padded = np.pad(a.astype("float64"), [(0, 0)] * 2 + [(pad, pad)] * len(axes), constant_values=np.inf)
    count = [(padded.shape[d] - kernel) // stride + 1 for d in axes]
    windows = np.stack([padded[(slice(None),) * 2 + tuple(slice(k, k + stride * (n - 1) + 1, stride)
                                                          for k, n in zip(at, count))]
                        for at in itertools.product(range(kernel), repeat=len(axes))])
    inside = windows != np.inf
    if kind == "max":
        return np.where(inside, windows, -np.inf).max(0)
    return np.where(inside, windows, 0).sum(0) / inside.sum(0)


def computed(func, a, target=LOCAL):
    out = np.full([d.value for d in func.buffers[-1].shape], 77, func.buffers[-1].dtype)
    tw.compile(func, target=target)(a, out)
    return out.astype("float64")


def checked(kind, shape, kernel, stride, pad=0, dtype="float32", target=LOCAL, rtol=1e-6):
    func, a = pool(kind, shape, kernel, stride, pad, dtype), drawn(shape, dtype)
    want = pooled(kind, a, kernel, stride, pad)
    np.testing.assert_allclose(computed(func, a, target), want, rtol=rtol, atol=rtol * 99)


def pool(kind, shape, kernel, stride, pad=0, dtype="float32", **attrs):
    if kind == "avg":
        attrs["count_include_pad"] = False
    return function(kind, shape, kernel, stride=stride, padding=pad, dtype=dtype, **attrs)


def rules_of(func, target=TARGET):
    return [d.rule for d in tw.explain(func, str(target)).decisions]


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("kernel, stride, pad", [
    (3, 1, 1), (3, 2, 1), (3, 2, 0), (2, 1, 0), (5, 2, 2), (5, 3, 2), (7, 4, 3), (7, 1, 0), (3, 1, 0)])
@pytest.mark.parametrize("size", [9, 37])
def test_windows_that_overlap(kind, kernel, stride, pad, size):
    shape = (2, 3, size, size + 1)
    wide = (size + 1 + 2 * pad - kernel) // stride + 1 >= LEAST
    assert ("windows" in rules_of(pool(kind, shape, kernel, stride, pad))) == wide
    checked(kind, shape, kernel, stride, pad)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("shape", [
    (1, 1, 8, 8), (1, 2, 5, 130), (3, 1, 130, 9), (2, 3, 40), (2, 2, 9, 10, 11), (1, 1, 3, 67)])
def test_images_of_every_rank(kind, shape):
    assert rules_of(pool(kind, shape, 3, 1, 1)) == ["windows"]
    checked(kind, shape, 3, 1, 1)
    checked(kind, shape, 3, 2, 1)


@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-14), ("float16", 2e-3), ("bfloat16", 2e-2)])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_every_float(kind, dtype, rtol):
    checked(kind, (2, 3, 15, 19), 3, 2, 1, dtype, rtol=rtol)
    checked(kind, (2, 3, 15, 19), 3, 1, 1, dtype, rtol=rtol)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_the_largest_of_integers(dtype):
    shape = (2, 3, 15, 19)
    a = drawn(shape, dtype)
    want = pooled("max", a, 3, 2)
    np.testing.assert_array_equal(computed(pool("max", shape, 3, 2, dtype=dtype), a), want)


@pytest.mark.parametrize("columns, width", [(7, 8), (14, 16), (12, 12), (39, 40), (100, 50)])
@pytest.mark.parametrize("kind", ["max", "avg"])
def test_empty_lanes_in_the_place_of_several_short_vectors(kind, columns, width):
    """Of 16 lanes: 12 are vectors of 8 and 4; 50, half of a row, three vectors and one of two lanes."""
    target = tw.target("llvm -mcpu=x86-64-v4 -num-cores=1")
    (facts,) = (b for b in kernel_blocks(Schedule(pool(kind, (1, 2, 9, columns), 3, 1, 1))) if b.is_reduction)
    assert choose_tile(facts, windows_of(facts), target)[1] == width
    checked(kind, (2, 3, 9, columns), 3, 1, 1)


def test_what_is_no_number_is_in_its_windows_only():
    a = drawn((1, 2, 9, 20))
    a[0, 0, 4, 7], a[0, 1, 0, 19], a[0, 1, 8] = np.nan, -np.inf, -np.inf
    got = computed(pool("max", a.shape, 3, 1, 1), a)
    where = np.zeros(got.shape, bool)
    where[0, 0, 3:6, 6:9] = True
    np.testing.assert_array_equal(np.isnan(got), where)
    np.testing.assert_array_equal(got[~where], pooled("max", np.where(np.isnan(a), 0, a), 3, 1, 1)[~where])


def test_windows_for_other_rules():
    """Apart from each other, along channels that are last, few in a row, of a size known at the call, none at all."""
    n = te.var("n")
    for func in (pool("max", (2, 3, 16, 16), 2, 2), pool("max", (2, 16, 16, 30), 3, 1, 1, channels_last=True),
                 pool("avg", (2, 3, 9, 5), 3, 1, 1), pool("max", (2, 3, n, n), 3, 1, 1),
                 pool("max", (2, 3, 9, n), 3, 1, 1), pool("max", (0, 3, 16, 16), 3, 1, 1)):
        assert "windows" not in rules_of(func)
    a = np.zeros((0, 3, 16, 16), "float32")
    assert computed(pool("max", a.shape, 3, 1, 1), a).size == 0


@pytest.mark.parametrize("symbolic", ["n", "c"])
def test_other_extents_known_at_the_call(symbolic):
    shape, a = [2, 3, 12, 20], drawn((2, 3, 12, 20))
    shape["nc".index(symbolic)] = te.var(symbolic)
    out = np.zeros((2, 3, 6, 10), "float32")
    tw.compile(pool("max", shape, 3, 2, 1), target=LOCAL)(a, out)
    np.testing.assert_array_equal(out, pooled("max", a, 3, 2, 1))


def test_dilated_ragged_and_followed_by_others():
    a = drawn((2, 3, 20, 33))
    for attrs in ({"dilation": 2, "padding": 2}, {"ceil_mode": True, "stride": 2},
                  {"stride": (1, 3), "padding": (1, 0)}):
        x = te.placeholder(a.shape, name="x")
        func = te.create_prim_func([x, topi.max_pool(x, 3, **{"stride": 1, **attrs})])
        plain = np.zeros([d.value for d in func.buffers[-1].shape], "float32")
        tw.build(func)(a, plain)
        np.testing.assert_array_equal(computed(func, a), plain)
    func = function("max", a.shape, 3, stride=1, padding=1, of=topi.relu)
    assert rules_of(func) == ["windows"]
    np.testing.assert_array_equal(computed(func, a), np.maximum(pooled("max", a, 3, 1, 1), 0))


def test_a_border_that_others_read_is_no_part_of_it():
    x = te.placeholder((1, 2, 12, 12), name="x")
    border = te.compute((1, 2, 14, 14), lambda n, c, i, j: te.if_then_else(
        te.all(i >= 1, i < 13, j >= 1, j < 13), te.exp(x[n, c, i - 1, j - 1]), 0.0), name="border")
    h, w = te.reduce_axis((0, 3), name="h"), te.reduce_axis((0, 3), name="w")
    y = te.compute((1, 2, 12, 12), lambda n, c, i, j: te.max(border[n, c, i + h, j + w], axis=[h, w]), name="y")
    a = drawn((1, 2, 12, 12)) / 50
    out, seen = np.zeros((1, 2, 12, 12), "float32"), np.zeros((1, 2, 14, 14), "float32")
    tw.compile([x, border, y], target=LOCAL)(a, seen, out)
    np.testing.assert_allclose(seen[:, :, 1:-1, 1:-1], np.exp(a.astype("float64")), rtol=1e-6)
    np.testing.assert_allclose(out, pooled("max", np.exp(a.astype("float64")), 3, 1, 1), rtol=1e-6)


def test_planes_and_tiles():
    def tile(*args):
        facts = kernel_blocks(Schedule(pool("max", *args)))[-1]
        return choose_tile(facts, windows_of(facts), TARGET)
    facts = [kernel_blocks(Schedule(pool("max", (2, 3, 9, 40), 3 - k, 1 + k)))[-1] for k in (0, 1)]
    assert windows_of(facts[0]).outer == 2 and windows_of(facts[1]) is None
    assert tile((1, 1, 9, 30), 3, 1) == (2, 28)                  # 4 vectors in each of 7 rows
    assert tile((1, 1, 9, 58), 3, 1) == (2, 28) and tile((1, 1, 9, 61), 3, 1) == (2, 32)
    assert tile((1, 1, 12, 18), 3, 1) == (4, 16) and tile((1, 1, 12, 18), 3, 2) == (3, 8)
    assert tile((1, 1, 30), 3, 1) == (1, 28)                     # windows along one axis


def test_planes_are_on_all_threads():
    sch = apply_rules(pool("max", (4, 32, 28, 28), 3, 1, 1), tw.target("llvm -num-cores=4"))
    loops = [n for n in walk(sch.func.body) if isinstance(n, For)]
    assert loops[0].kind == PARALLEL and loops[0].extent.value == 128 and any(n.kind == VECTORIZED for n in loops)
    checked("avg", (4, 32, 28, 28), 3, 1, 1, target="llvm -num-cores=4")


def test_c_and_the_interpreter_agree():
    shape = (1, 2, 10, 19)
    func, a = pool("max", shape, 3, 2, 1), drawn(shape)
    want = pooled("max", a, 3, 2, 1)
    got = np.zeros(want.shape, "float32")
    tw.tir.interp.run(apply_rules(func, TARGET).func, a, got)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(computed(func, a, "c"), want)


def test_the_trace_replays():
    work = Scheduling(pool("avg", (2, 3, 20, 20), 3, 2, 1), TARGET).finish()
    again = Schedule(work.func)
    work.schedule.trace.apply_to_schedule(again)
    assert str(again) == str(work.schedule)


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("kernel, stride, pad", [(3, 2, 1), (3, 1, 1), (5, 2, 2)])
@pytest.mark.parametrize("rows", [19, te.var("rows")], ids=["rows", "unknown rows"])
def test_images_that_the_call_counts(kind, kernel, stride, pad, rows):
    func = pool(kind, (te.var("n"), 5, rows, 28), kernel, stride, pad)
    assert "windows" in [d.rule for d in Scheduling(func, LOCAL).finish().decisions]
    module = tw.compile(func, target=LOCAL)
    for images in (0, 1, 3):
        a = drawn((images, 5, 19, 28))
        want = pooled(kind, a, kernel, stride, pad)
        out = np.full(want.shape, 77, "float32")
        module(a, out)
        np.testing.assert_allclose(out, want, rtol=1e-6, atol=1e-4)
