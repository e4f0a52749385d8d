"""Winograd's algorithm against the definition of a convolution in float64."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.graph import BlockBuilder
from tilewright.rules.apply import Scheduling
from tilewright.rules.winograd import F2, F4
from tilewright.tir import UNROLLED

RANDOM = np.random.RandomState(3)


def conv(images, channels, rows, columns, filters, padding=1, epilogue=False, dtype="float32"):
    x = te.placeholder((images, channels, rows, columns), dtype, "x")
    w = te.placeholder((filters, channels, 3, 3), dtype, "w")
    y = topi.conv(x, w, padding=padding)
    if epilogue:
        y = te.compute(y.shape, lambda *i: te.max(y(*i), te.const(0, dtype)) + te.const(1, dtype), "z")
    return te.create_prim_func([x, w, y])


def reference(x, w, padding):
    p = np.pad(x.astype("float64"), ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    rows, columns = p.shape[2] - 2, p.shape[3] - 2
    return sum(np.einsum("oc,ncij->noij", w[:, :, r, q].astype("float64"), p[:, :, r:r + rows, q:q + columns])
               for r in range(3) for q in range(3))


def rules(func, target="llvm -mcpu=x86-64-v4"):
    work = Scheduling(func, tw.target(target)).finish()
    return [d.rule for d in work.rewrites + work.decisions]


def check(shape, padding=1, epilogue=False, target="llvm -mcpu=x86-64-v4"):
    images, channels, rows, columns, filters = shape
    x, w = RANDOM.randn(*shape[:4]).astype("float32"), RANDOM.randn(filters, channels, 3, 3).astype("float32")
    want = reference(x, w, padding)
    y, func = tw.nd.empty(want.shape, "float32"), conv(*shape, padding, epilogue)
    assert "winograd" in rules(func, target)
    tw.compile(func, target=target)(tw.nd.array(x), tw.nd.array(w), y)
    error = np.abs(y.numpy() - (np.maximum(want, 0) + 1 if epilogue else want)).max()
    assert error < 2e-5 * np.abs(want).max()


@pytest.mark.parametrize("shape, padding", [
    ((1, 32, 28, 28, 32), 1), ((2, 32, 30, 33, 48), 1), ((1, 48, 59, 31, 32), 0), ((1, 32, 29, 61, 64), 2),
    ((3, 64, 28, 30, 32), 1)], ids=str)
def test_shapes(shape, padding):
    check(shape, padding)


@pytest.mark.parametrize("target", ["llvm -mcpu=haswell", "llvm -mcpu=x86-64-v4 -num-cores=1",
                                    "llvm -mcpu=x86-64-v4 -num-cores=5", "c -mcpu=haswell"])
def test_targets_and_an_epilogue(target):
    check((1, 32, 31, 34, 40 if "haswell" in target else 48), 1, True, target)


@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=haswell -num-cores=3", "c"])
def test_a_number_of_images_that_the_call_tells(target):
    func = conv(te.var("n"), 32, 28, 30, 32, epilogue=True)
    assert "winograd" in rules(func)
    f, w = tw.compile(func, target=target), RANDOM.randn(32, 32, 3, 3).astype("float32")
    for images in (0, 1, 3):
        x, y = RANDOM.randn(images, 32, 28, 30).astype("float32"), np.full((images, 32, 28, 30), np.nan, "float32")
        f(x, w, y)
        want = np.maximum(reference(x, w, 1), 0) + 1
        assert np.abs(y - want).max(initial=0) < 2e-5 * np.abs(want).max(initial=1)


def test_two_convolutions_and_a_name_that_is_taken():
    x, w = te.placeholder((1, 32, 28, 28), name="x"), te.placeholder((32, 32, 3, 3), name="conv_image")
    y = topi.conv(topi.conv(x, w, padding=1), w, padding=1)
    func = te.create_prim_func([x, w, y])
    assert rules(func).count("winograd") == 2
    a, b = RANDOM.randn(1, 32, 28, 28).astype("float32"), RANDOM.randn(32, 32, 3, 3).astype("float32")
    out, want = tw.nd.empty((1, 32, 28, 28), "float32"), reference(reference(a, b, 1), b, 1)
    tw.compile(func)(tw.nd.array(a), tw.nd.array(b), out)
    assert np.abs(out.numpy() - want).max() < 2e-5 * np.abs(want).max()


@pytest.mark.parametrize("func", [
    conv(1, 16, 28, 28, 32), conv(1, 32, 28, 28, 16), conv(1, 32, 14, 14, 32), conv(1, 40, 28, 28, 32),
    conv(1, 32, 28, 28, 32, dtype="float64")], ids=["channels", "filters", "tiles", "lanes", "float64"])
def test_what_is_left_to_other_rules(func):
    assert not {"winograd", "winograd_form"} & {*rules(func)}


@pytest.mark.parametrize("cores, size, window", [(1, 7, 4), (2, 7, None), (2, 14, 6), (5, 14, 4), (8, 14, None)])
def test_many_weights_are_transformed_where_memory_gives_them_in_time(cores, size, window):
    work = Scheduling(conv(1, 256, size, size, 256), tw.target(f"llvm -mcpu=x86-64-v4 -num-cores={cores}"), [1])
    shapes = [b.shape for b in work.finish().schedule.func.body.block.alloc_buffers if b.name.endswith("weights_tiles")]
    assert [tuple(map(int, s))[:2] for s in shapes] == ([(window, window)] if window else [])


@pytest.mark.parametrize("shape, window", [
    ((1, 32, 14, 14, 32), 6), ((2, 64, 13, 19, 48), 6), ((1, 32, 12, 12, 64), 6), ((1, 32, 7, 7, 64), 4),
    ((2, 48, 6, 11, 32), 4), ((1, 32, 11, 11, 48), 4)], ids=str)
@pytest.mark.parametrize("cores", [1, 2])
def test_constant_weights_are_transformed_once(shape, window, cores):
    """Small images are worth it then, the smallest in tiles of 2 x 2: what compiles a model says which inputs are
    constant."""
    images, channels, rows, columns, filters = shape
    target, func = f"llvm -mcpu=x86-64-v4 -num-cores={cores}", conv(*shape, epilogue=True)
    assert "winograd" in [d.rule for d in Scheduling(func, tw.target(target), [1]).finish().decisions]
    assert "winograd" not in [d.rule for d in Scheduling(func, tw.target(target), [0]).finish().decisions]
    a, w = RANDOM.randn(*shape[:4]).astype("float32"), RANDOM.randn(filters, channels, 3, 3).astype("float32")
    bb = BlockBuilder()
    x = bb.param("x", shape[:4])
    with bb.function("main", [x]):
        bb.emit_func_output(bb.emit_te(topi.conv, x, bb.const(w), padding=1))
    run, want = tw.compile(bb.get()["main"], target=target), reference(a, w, 1)
    assert (window, window, filters // 16 // (2 - filters // 16 % 2), channels, 16 * (2 - filters // 16 % 2)) in [
        c.shape for c in run.plan.constants]
    assert np.abs(run(a).numpy() - want).max() < 2e-5 * np.abs(want).max()


@pytest.mark.parametrize("cpu, columns, tile", [("x86-64-v4", 28, [2, 7]), ("x86-64-v4", 60, [1, 8]),
                                                ("haswell", 28, [1, 4])])
def test_a_tile_fills_the_registers(cpu, columns, tile):
    """Neighbours of a row of 7 or 15 tiles, of two rows where both fit."""
    sch = Scheduling(conv(1, 32, 32, columns, 32), tw.target(f"llvm -mcpu={cpu} -num-cores=1")).finish().schedule
    loops = [sch.get(loop) for loop in sch.get_loops("conv_product_update")]
    assert [loop.extent.value for loop in loops if loop.kind == UNROLLED] == tile


@pytest.mark.parametrize("shape, cores, rows", [
    ((64, 56, 64), 1, 2), ((128, 28, 128), 1, 2), ((256, 14, 256), 1, 4), ((256, 14, 256), 2, 2),
    ((512, 7, 512), 1, 4)], ids=str)
def test_rows_of_tiles_at_a_time(shape, cores, rows):
    """As many as stay in cache; all of them where there are more weights, which each part of them reads."""
    channels, extent, filters = shape
    func, target = conv(1, channels, extent, extent, filters), f"llvm -mcpu=x86-64-v4 -num-cores={cores}"
    sch = Scheduling(func, tw.target(target), [1]).finish().schedule
    assert sch.get(sch.get_loops("conv_image_tiles")[-6]).extent.value == rows


def test_an_epilogue_is_computed_while_the_result_is_in_cache():
    """Where it alone reads the result."""
    func = conv(1, 32, 28, 28, 32, epilogue=True)
    assert rules(func)[-1] == "winograd"
    sch = Scheduling(func, tw.target("llvm -num-cores=1")).finish().schedule
    assert sch.get_loops("z")[:2] == sch.get_loops("conv")[:2]
    x, w = te.placeholder((1, 32, 28, 28)), te.placeholder((32, 32, 3, 3))
    y = topi.conv(x, w, padding=1)
    twice = te.compute(y.shape, lambda *i: y(*i) + y(*i), "twice")
    assert rules(te.create_prim_func([x, w, y, twice]))[-1] == "elementwise"


def test_short_vectors_are_left_to_other_rules():
    assert "winograd" not in rules(conv(1, 32, 28, 28, 32), "llvm -mcpu=x86-64-v2")


def test_strict_sums_are_left_to_other_rules(monkeypatch):
    assert "winograd" in rules(conv(1, 32, 28, 28, 32))
    monkeypatch.setenv("TILEWRIGHT_STRICT_MATH", "1")
    assert "winograd" not in rules(conv(1, 32, 28, 28, 32))


@pytest.mark.parametrize("algorithm", [F4, F2], ids=["F4", "F2"])
def test_the_matrices_are_winograds(algorithm):
    """Exact for one dimension: transpose(A) ((G w) * (transpose(B) x)) is the sum over windows."""
    x, w = RANDOM.randn(algorithm.window), RANDOM.randn(3)
    products = (np.array(algorithm.weights) @ w) * (np.array(algorithm.image) @ x)
    got = np.array(algorithm.result) @ products
    np.testing.assert_allclose(got, [x[i:i + 3] @ w for i in range(algorithm.tile)], rtol=1e-12)
