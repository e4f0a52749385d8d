"""The rule for convolutions: what it takes, and that it is right for strides, dilations, layouts and epilogues."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.rules import apply_rules
from tilewright.rules.convolution import Tile, choose_tile
from tilewright.tir import UNROLLED, interp

TARGET = tw.target("llvm -num-cores=2")


def convolution(x, w, stride=1, dilation=1, padding=0, dtype="float32", epilogue=False, batch=None):
    """(args, NumPy function): y[n, m, i, j] = sum of x[n, c, i*stride + r*dilation, ..] * w[m, c, r, q]."""
    (n, c, h, width), (m, per, kh, kw) = x, w
    rows = (h + 2 * padding - dilation * (kh - 1) - 1) // stride + 1
    columns = (width + 2 * padding - dilation * (kw - 1) - 1) // stride + 1
    count = n if batch is None else batch
    X, W = te.placeholder((count, c, h, width), dtype, name="X"), te.placeholder(w, dtype, name="W")
    P = X
    if padding:
        def inside(b, k, i, j):
            within = te.all(i >= padding, i < h + padding, j >= padding, j < width + padding)
            return te.if_then_else(within, X[b, k, i - padding, j - padding], 0)
        P = te.compute((count, c, h + 2 * padding, width + 2 * padding), inside, name="P")
    k, r, q = (te.reduce_axis((0, e), name) for e, name in ((per, "k"), (kh, "r"), (kw, "q")))

    def element(b, o, i, j):
        at = P[b, k, i * stride + r * dilation, j * stride + q * dilation]
        return te.sum(at * W[o, k, r, q], axis=[k, r, q])
    Y = te.compute((count, m, rows, columns), element, name="Y")
    args = [X, W, Y]
    if epilogue:
        B = te.placeholder((m,), dtype, name="B")
        args = [X, W, B, te.compute(Y.shape, lambda b, o, i, j: te.max(Y[b, o, i, j] + B[o], 0), name="Z")]

    def reference(a, b, *bias):
        a = np.pad(a.astype("float64"), ((0, 0), (0, 0), (padding, padding), (padding, padding)))
        y = np.zeros((n, m, rows, columns))
        for i, j in np.ndindex(rows, columns):
            window = a[:, :, i * stride:, j * stride:][:, :, :dilation * kh:dilation, :dilation * kw:dilation]
            y[:, :, i, j] = np.einsum("ncrq,mcrq->nm", window, b.astype("float64"))
        return np.maximum(y + bias[0][:, None, None], 0) if bias else y
    return args, reference


@pytest.mark.parametrize("x, w, options", [
    ((1, 3, 9, 11), (16, 3, 3, 3), {}),
    ((2, 5, 8, 8), (24, 5, 3, 3), {"padding": 1}),
    ((1, 4, 15, 13), (32, 4, 7, 7), {"stride": 2, "padding": 3}),
    ((1, 3, 12, 12), (17, 3, 2, 3), {"dilation": 2}),
    ((2, 8, 7, 7), (64, 8, 1, 1), {"epilogue": True}), ((2, 8, 6, 7), (64, 8, 1, 1), {"epilogue": True}),
    ((1, 6, 7, 14), (33, 6, 3, 3), {"padding": 1, "epilogue": True}),
    ((3, 4, 6, 6), (16, 4, 3, 3), {"batch": te.var("n"), "padding": 1}),
    ((1, 5, 6, 6), (16, 5, 3, 3), {"dtype": "float64", "padding": 2, "stride": 2}),
    ((1, 1, 5, 5), (8, 1, 5, 5), {})])
def test_convolutions_are_right(x, w, options):
    args, reference = convolution(x, w, **options)
    explanation = tw.explain(args, target=TARGET)
    assert {"convolution", "pointwise"} & {d.rule for d in explanation.decisions}
    rng, dtype = np.random.default_rng(3), options.get("dtype", "float32")
    inputs = [rng.uniform(-1, 1, shape).astype(dtype)
              for shape in (x, w, *([(w[0],)] if options.get("epilogue") else []))]
    want = reference(*inputs)
    for run in (tw.compile(args, target=TARGET), lambda *a: interp.run(explanation.schedule.func, *a)):
        got = np.full(want.shape, 7, dtype)
        run(*inputs, got)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_channels_may_come_last():
    X, W = te.placeholder((1, 8, 9, 5), name="X"), te.placeholder((3, 3, 5, 32), name="W")
    k, r, q = te.reduce_axis((0, 5)), te.reduce_axis((0, 3)), te.reduce_axis((0, 3))
    Y = te.compute((1, 6, 7, 32), lambda n, i, j, m: te.sum(X[n, i + r, j + q, k] * W[r, q, k, m], axis=[k, r, q]))
    assert [d.rule for d in tw.explain([X, W, Y], target=TARGET).decisions] == ["convolution"]
    x, w = (np.random.default_rng(0).random(shape, "float32") for shape in ((1, 8, 9, 5), (3, 3, 5, 32)))
    got, windows = np.zeros((1, 6, 7, 32), "float32"), np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    tw.compile([X, W, Y], target=TARGET)(x, w, got)
    np.testing.assert_allclose(got, np.einsum("nijkrq,rqkm->nijm", windows, w, dtype="float64"), rtol=1e-4)


def test_few_channels_are_left_to_other_rules():
    args, _ = convolution((1, 8, 9, 9), (2, 8, 3, 3))
    assert "convolution" not in [d.rule for d in tw.explain(args, target=TARGET).decisions]


def test_a_tile_leaves_registers_for_weights_and_a_pixel():
    for cpu, count in (("haswell", 16), ("znver5", 32)):
        for lines, pixels in ((1, 1), (7, 7), (13, 13), (1, 49), (56, 56)):
            for channels, terms in ((8, 9), (17, 64), (64, 4608), (96, 1000)):
                tile = choose_tile(lines, pixels, channels, terms, 4, tw.target(f"llvm -mcpu={cpu}"))
                assert (tile.lines * tile.pixels + 1) * tile.vectors < count
                assert tile.lines <= lines and (tile.pixels <= pixels or tile.lines == 1)


def test_tiles():
    """Several short lines; fewer pixels where results that are transposed in squares count, or there are few terms."""
    target = tw.target("llvm -mcpu=znver5")
    assert choose_tile(7, 7, 512, 4608, 4, target) == Tile(2, 7, 2)
    assert choose_tile(14, 14, 256, 2304, 4, target) == Tile(1, 14, 2)
    assert choose_tile(112, 112, 64, 147, 4, target) == Tile(1, 8, 2)
    assert choose_tile(1, 7, 480, 4608, 4, target) == Tile(1, 7, 3)


@pytest.mark.parametrize("size", [(7, 7), (6, 7), (9, 5), (3, 4), (1, 6)])
@pytest.mark.parametrize("stride", [1, 2])
def test_tiles_of_several_lines(size, stride):
    args, reference = convolution((2, 20, *size), (48, 20, 3, 3), stride=stride, padding=1)
    assert [d.rule for d in tw.explain(args, target=TARGET).decisions][-1] == "convolution"
    x, w = (np.random.default_rng(0).integers(-4, 5, s).astype("float32") for s in ((2, 20, *size), (48, 20, 3, 3)))
    want = reference(x, w)
    got = np.empty(want.shape, "float32")
    tw.compile(args, target=TARGET)(x, w, got)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("channels, asked", [(8, False), (40, True)])
def test_many_weights_are_asked_for_before_they_are_needed(channels, asked):
    """40 x 9 x 96 of them are 135 KiB; a step reads 1152 bytes."""
    args, reference = convolution((1, channels, 9, 9), (96, channels, 3, 3))
    text = str(tw.explain(args, target="llvm -mcpu=znver5 -num-cores=1"))
    assert ("sch.prefetch(" in text) == asked and ("offset=2" in text) == asked
    x, w = (np.random.default_rng(0).integers(-4, 5, shape).astype("float32") for shape in (
        (1, channels, 9, 9), (96, channels, 3, 3)))
    for target in ("llvm -num-cores=2", "c"):
        got = np.empty((1, 96, 7, 7), "float32")
        tw.compile(args, target=target)(x, w, got)
        np.testing.assert_array_equal(got, reference(x, w))


@pytest.mark.parametrize("kernel, stride, written_out", [(2, 2, True), (2, 1, False), (3, 3, False)])
def test_small_windows_that_are_apart_are_written_out(kernel, stride, written_out):
    args, reference = convolution((1, 12, 13, 14), (40, 12, kernel, kernel), stride=stride)
    sch = apply_rules(te.create_prim_func(args), tw.target("llvm -mcpu=znver5 -num-cores=1"))
    loops = [sch.get(loop) for loop in sch.get_loops("Y_update")]
    assert [loop.extent.value for loop in loops if loop.kind == UNROLLED].count(kernel) == 2 * written_out
    x, w = (np.random.default_rng(0).integers(-4, 5, shape).astype("float32") for shape in (
        (1, 12, 13, 14), (40, 12, kernel, kernel)))
    want = reference(x, w)
    got = np.empty(want.shape, "float32")
    tw.compile(args, target=TARGET)(x, w, got)
    np.testing.assert_array_equal(got, want)
