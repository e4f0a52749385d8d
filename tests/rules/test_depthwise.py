"""Convolutions of each channel by itself: the rule for windows is right against NumPy in float64."""
from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.rules import apply_rules
from tilewright.rules.apply import Scheduling
from tilewright.tir import UNROLLED

TARGETS = {"8 lanes": "llvm -mcpu=x86-64-v3 -num-cores=1 -opt-level=1", "here": "llvm -num-cores=2 -opt-level=1"}


def function(shape, kernel, stride, pad, dtype="float32", per=1, fused=False):
    x, w = te.placeholder(shape, dtype, name="x"), te.placeholder((shape[1] * per, 1, *kernel), dtype, name="w")
    b = te.placeholder((shape[1] * per,), dtype, name="b")
    y = topi.conv2d(x, w, b if fused else None, stride=stride, padding=pad, groups=shape[1])
    return te.create_prim_func([x, w, *([b] if fused else []), topi.relu(y) if fused else y])


def drawn(*shapes, dtype="float32"):
    random = np.random.default_rng(5)
    return [random.integers(-8, 9, s).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for s in shapes]


def convolved(x, w, stride, pad):
    """Every filter on its channel, in float64."""
    x = np.repeat(np.pad(x.astype("float64"), [(0, 0)] * 2 + [(pad, pad)] * 2), len(w) // x.shape[1], 1)
    rows, columns = ((n - k) // stride + 1 for n, k in zip(x.shape[2:], w.shape[2:]))
    return sum(x[:, :, r:r + stride * rows:stride, q:q + stride * columns:stride][:, :, :rows, :columns]
               * w[:, 0, r, q].astype("float64")[:, None, None]
               for r, q in itertools.product(*map(range, w.shape[2:])))


def rules_of(func, target=TARGETS["8 lanes"]):
    return [d.rule for d in Scheduling(func, tw.target(target)).finish().decisions]


def computed(func, *arrays, shape, target=TARGETS["here"]):
    out = np.full(shape, 77, arrays[0].dtype)
    tw.compile(func, target=target)(*arrays, out)
    return out


@pytest.mark.parametrize("target", list(TARGETS))
@pytest.mark.parametrize("kernel", [(3, 3), (5, 5), (7, 7), (2, 3), (5, 2)])
@pytest.mark.parametrize("stride, size", [(1, (7, 7)), (2, (14, 13)), (1, (33, 40)), (2, (33, 40))])
def test_sizes(target, kernel, stride, size):
    shape, pad = (2, 8, *size), kernel[1] // 2
    x, w, b = drawn(shape, (8, 1, *kernel), (8,))
    want = np.maximum(convolved(x, w, stride, pad) + b[:, None, None], 0)
    func = function(shape, kernel, stride, pad, fused=True)
    fits = want.shape[-1] >= 6 and kernel[1] > stride
    assert (rules_of(func)[-1] == "windows") == fits
    np.testing.assert_array_equal(computed(func, x, w, b, shape=want.shape, target=TARGETS[target]), want)


@pytest.mark.parametrize("shape, per", [
    ((1, 3, 9, 20), 2), ((3, 5, 20, 9), 1), ((1, 1, 64, 70), 1), ((1, 12, 14, 14), 1)])
def test_channels(shape, per):
    x, w = drawn(shape, (shape[1] * per, 1, 3, 3))
    want = convolved(x, w, 1, 1)
    np.testing.assert_array_equal(computed(function(shape, (3, 3), 1, 1, per=per), x, w, shape=want.shape), want)


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "int32", "int8"])
def test_types(dtype):
    x, w = drawn((1, 4, 12, 18), (4, 1, 3, 3), dtype=dtype)
    want = convolved(x, w, 1, 1)
    func = function(x.shape, (3, 3), 1, 1, dtype)
    out = np.zeros(want.shape, func.buffers[-1].dtype if dtype != "bfloat16" else ml_dtypes.bfloat16)
    tw.compile(func, target=TARGETS["here"])(x, w, out)
    if dtype == "int8":
        want = want.astype(out.dtype)
    np.testing.assert_allclose(out.astype("float64"), want, rtol=1e-2 if dtype == "bfloat16" else 1e-3)


@pytest.mark.parametrize("unknown", ["images", "rows", "images rows"])
def test_extents_known_at_the_call(unknown):
    shape = [te.var("n") if "images" in unknown else 2, 6, te.var("h") if "rows" in unknown else 15, 30]
    func = function(shape, (3, 3), 2, 1)
    assert rules_of(func)[-1] == "windows"
    built = tw.compile(func, target=TARGETS["here"])
    for rows in {15, *([1, 16, 40] if "rows" in unknown else [])}:
        x, w = drawn((2, 6, rows, 30), (6, 1, 3, 3))
        want = convolved(x, w, 2, 1)
        out = np.empty(want.shape, "float32")
        built(x, w, out)
        np.testing.assert_array_equal(out, want)


def _written_out(shape, kernel):
    """The extents of the unrolled loops around the sums of a tile."""
    sch = apply_rules(function(shape, (kernel, kernel), 1, kernel // 2), tw.target(TARGETS["8 lanes"]))
    loops = [sch.get(loop) for loop in sch.get_loops("conv_update")]
    return [loop.extent.value for loop in loops if loop.kind == UNROLLED]


def test_several_rows_share_what_they_read():
    """The rows of a tile are written out, inside of the window's; columns of the window too where it is small."""
    assert _written_out((1, 8, 64, 64), 3) == [3, 3, 2]
    assert _written_out((1, 8, 64, 64), 7) == [7, 2]
    assert _written_out((1, 8, 28, 16), 7) == [7, 4]


@pytest.mark.parametrize("shape, extents", [
    ((1, 8, 64, 64), [8, 32, 4]),                 # for a tile of two rows
    ((1, 8, 28, 28), [8, 30]),                    # a plane
    ((1, 8, 14, 14), [2, 4, 16])])                # four planes
def test_the_border_is_written_before_it_is_read(shape, extents):
    sch = apply_rules(function(shape, (3, 3), 1, 1), tw.target(TARGETS["8 lanes"]))
    *loops, _, _ = (sch.get(loop) for loop in sch.get_loops("pad"))
    assert [n.extent.value for n in loops if n.extent.value > 1] == extents


def test_terms_stay_in_order_where_arithmetic_is_strict(monkeypatch):
    """The sums of a window are those of its rows, one after the other, to the last bit."""
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    x, w = (np.random.default_rng(0).standard_normal(s).astype("float32") for s in ((1, 4, 16, 16), (4, 1, 3, 3)))
    want = np.zeros((1, 4, 14, 14), "float32")
    for r, q in itertools.product(range(3), range(3)):
        want += x[:, :, r:r + 14, q:q + 14] * w[:, 0, r, q][:, None, None]
    np.testing.assert_array_equal(computed(function(x.shape, (3, 3), 1, 0), x, w, shape=want.shape), want)


def test_products_that_others_are_for():
    """A single channel with many filters: its pixels are read often, which the rule for convolutions makes use of."""
    x, w = te.placeholder((1, 1, 20, 20), name="x"), te.placeholder((32, 1, 3, 3), name="w")
    assert rules_of(te.create_prim_func([x, w, topi.conv2d(x, w)]))[-1] == "convolution"


def test_the_interpreter_and_c_agree():
    func, (x, w) = function((1, 2, 9, 10), (3, 3), 1, 1), drawn((1, 2, 9, 10), (2, 1, 3, 3))
    want = convolved(x, w, 1, 1)
    got = np.zeros(want.shape, "float32")
    tw.tir.interp.run(apply_rules(func, tw.target(TARGETS["8 lanes"])).func, x, w, got)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(computed(func, x, w, shape=want.shape, target="c"), want)
