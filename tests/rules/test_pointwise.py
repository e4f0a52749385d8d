"""Convolutions by windows of one element against NumPy in float64."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.graph import BlockBuilder, size
from tilewright.rules.apply import Scheduling

RANDOM = np.random.RandomState(4)


def conv(images, channels, rows, columns, filters, epilogue=False, dtype="float32", **how):
    x = te.placeholder((images, channels, rows, columns), dtype, "x")
    w = te.placeholder((filters, channels // how.get("groups", 1), 1, 1), dtype, "w")
    y = topi.conv(x, w, **how)
    if epilogue:
        y = te.compute(y.shape, lambda *i: te.max(y(*i), te.const(0, dtype)) + te.const(1, dtype), "z")
    return te.create_prim_func([x, w, y])


def rules(func, target="llvm -mcpu=x86-64-v4"):
    return [d.rule for d in Scheduling(func, tw.target(target)).finish().decisions]


@pytest.mark.parametrize("target, epilogue", [
    ("llvm", False), ("llvm", True), ("llvm -mcpu=haswell", True), ("llvm -num-cores=1", False),
    ("llvm -num-cores=5", True), ("c", False)])
@pytest.mark.parametrize("shape", [
    (1, 8, 7, 7, 4), (2, 40, 13, 9, 24), (1, 700, 7, 8, 130), (1, 16, 31, 33, 129), (3, 1, 9, 11, 5),
    (1, 512, 28, 28, 128)], ids=str)
def test_shapes(shape, target, epilogue):
    images, channels, rows, columns, filters = shape
    x = (RANDOM.randint(-4, 5, shape[:4]) / 2).astype("float32")
    w = (RANDOM.randint(-4, 5, (filters, channels, 1, 1)) / 2).astype("float32")
    func = conv(*shape, epilogue)
    assert rules(func, target)[-1] == "pointwise"
    y = tw.nd.empty((images, filters, rows, columns), "float32")
    tw.compile(func, target=target)(tw.nd.array(x), tw.nd.array(w), y)
    want = np.einsum("oc,ncij->noij", w[:, :, 0, 0].astype("float64"), x.astype("float64"))   # quarters: exact
    np.testing.assert_array_equal(y.numpy(), np.maximum(want, 0) + 1 if epilogue else want)


def test_panels_of_pixels_are_made_from_the_image():
    """They have zeros up to a vector, and are the only copy; a few filters read whole vectors of pixels in place."""
    def copies(width, filters):
        func = conv(1, 40, width, width, filters)
        root = Scheduling(func, tw.target("llvm -mcpu=x86-64-v4")).finish().schedule.func.body
        return [[d.value for d in b.shape] for b in root.block.alloc_buffers if b.scope == "global"]

    assert copies(7, 300) == copies(8, 300) == [[1, 1, 40, 64]] and copies(8, 24) == []


@pytest.mark.parametrize("target", ["llvm", "llvm -num-cores=3", "c"])
def test_a_number_of_images_that_the_call_tells(target):
    func = conv(te.var("n"), 40, 13, 9, 24, epilogue=True)
    assert rules(func, target)[-1] == "pointwise"
    f, w = tw.compile(func, target=target), (RANDOM.randint(-4, 5, (24, 40, 1, 1)) / 2).astype("float32")
    for images in (0, 1, 3):
        x = (RANDOM.randint(-4, 5, (images, 40, 13, 9)) / 2).astype("float32")
        y = np.full((images, 24, 13, 9), np.nan, "float32")
        f(x, w, y)
        want = np.einsum("oc,ncij->noij", w[:, :, 0, 0].astype("float64"), x.astype("float64"))
        np.testing.assert_array_equal(y, np.maximum(want, 0) + 1)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell -num-cores=1", "c"])
@pytest.mark.parametrize("shape, stride", [
    ((2, 40, 26, 17, 24), 2), ((1, 16, 30, 31, 40), (2, 1)), ((1, 24, 43, 40, 5), 3)], ids=str)
def test_steps_of_several_pixels(shape, stride, target):
    x = (RANDOM.randint(-4, 5, shape[:4]) / 2).astype("float32")
    w = (RANDOM.randint(-4, 5, (shape[4], shape[1], 1, 1)) / 2).astype("float32")
    down, across = stride if isinstance(stride, tuple) else (stride, stride)
    want = np.einsum("oc,ncij->noij", w[:, :, 0, 0].astype("float64"), x[:, :, ::down, ::across].astype("float64"))
    func = conv(*shape, epilogue=True, stride=stride)
    assert rules(func, target)[-1] == "pointwise"
    y = tw.nd.empty(want.shape, "float32")
    tw.compile(func, target=target)(tw.nd.array(x), tw.nd.array(w), y)
    np.testing.assert_array_equal(y.numpy(), np.maximum(want, 0) + 1)


@pytest.mark.parametrize("target", ["llvm -num-cores=1", "llvm -num-cores=2", "llvm -mcpu=haswell"])
@pytest.mark.parametrize("shape, stride", [
    ((1, 20, 7, 7, 48), 1), ((2, 9, 13, 9, 17), 1), ((1, 16, 14, 15, 40), 2), ((1, 8, 9, 9, 4), 1),
    ((1, 16, 17, 17, 32), 1), ((te.var("n"), 16, 10, 10, 32), 1), ((1, 64, 17, 19, 64), 1), ((1, 72, 36, 37, 88), 2),
    ((1, 63, 17, 17, 64), 1)], ids=str)
def test_constant_filters_are_lanes_for_few_pixels_or_many_channels(shape, stride, target):
    """They are packed when the model is compiled."""
    x = (RANDOM.randint(-4, 5, [3 if k == 0 and not isinstance(n, int) else n for k, n in enumerate(shape[:4])]) / 2
         ).astype("float32")
    w = (RANDOM.randint(-4, 5, (shape[4], shape[1], 1, 1)) / 2).astype("float32")
    bb = BlockBuilder()
    a = bb.param("x", (size("n") if not isinstance(shape[0], int) else shape[0], *shape[1:4]))
    with bb.function("main", [a]):
        bb.emit_func_output(bb.emit_te(topi.relu, bb.emit_te(topi.conv, a, bb.const(w), stride=stride)))
    run = tw.compile(bb.get()["main"], target=target)
    want = np.einsum("oc,ncij->noij", w[:, :, 0, 0].astype("float64"), x[:, :, ::stride, ::stride].astype("float64"))
    np.testing.assert_array_equal(run(x).numpy(), np.maximum(want, 0))
    pixels, lanes = want.shape[2] * want.shape[3], 8 if "haswell" in target else tw.target(target).vector_bytes // 4
    packed = [c for c in run.plan.constants if c.ndim > 2 and c.shape != w.shape]
    assert bool(packed) == (pixels <= 256 and 2 * shape[4] >= lanes or min(shape[1], shape[4]) >= 64)


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32"])
def test_types(dtype):
    x, w = RANDOM.randint(-3, 4, (1, 20, 9, 10)).astype(dtype), RANDOM.randint(-3, 4, (12, 20, 1, 1)).astype(dtype)
    y = tw.nd.empty((1, 12, 9, 10), dtype)
    tw.compile(conv(1, 20, 9, 10, 12, dtype=dtype))(tw.nd.array(x), tw.nd.array(w), y)
    want = np.einsum("oc,ncij->noij", w[:, :, 0, 0].astype("int64"), x.astype("int64"))
    np.testing.assert_array_equal(y.numpy().astype("int64"), want)


def matrix_of_weights():
    """A convolution by windows of one element whose weights have no dimensions for them."""
    x, w = te.placeholder((1, 16, 14, 14), name="x"), te.placeholder((16, 16), name="w")
    c, r, q = (te.reduce_axis((0, n), name) for n, name in ((16, "c"), (1, "r"), (1, "q")))
    y = te.compute((1, 16, 14, 14), lambda n, o, i, j: te.sum(x[n, c, i + r, j + q] * w[o, c], axis=[c, r, q]))
    return te.create_prim_func([x, w, y])


@pytest.mark.parametrize("func", [
    conv(1, 16, 14, 14, 16, groups=4), conv(1, 16, 6, 6, 16), conv(1, 16, 12, 12, 16, stride=2),
    conv(1, 16, 14, 14, 3), matrix_of_weights()], ids=["groups", "pixels", "pixels apart", "filters", "matrix"])
def test_what_is_left_to_other_rules(func):
    assert "pointwise" not in rules(func)
