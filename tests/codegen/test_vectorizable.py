"""What LLVM's vectoriser makes of loops that the user left serial."""
from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from kernels import Cpu

import tilewright as tw
from tilewright import te
from tilewright.codegen.llvm import assembly, llvm_ir

AVX512 = Cpu("skylake-avx512", "", "x86_64-unknown-linux-gnu")
HINT = "llvm.loop.vectorize.enable"


def instructions(s: object, args: list[object]) -> Callable[[str], int]:
    """How often a pattern occurs in the assembly of a schedule."""
    text = assembly([tw.lower(s, args)["default_function"]], AVX512)
    return lambda pattern: len(re.findall(pattern, text))


def blocked_matmul(n: int = 128) -> tuple[object, list[object]]:
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    s = te.create_schedule(c.op)
    mo, no, mi, ni = s[c].tile(*c.op.axis, 32, 32)
    ko, ki = s[c].split(c.op.reduce_axis[0], 4)
    s[c].reorder(mo, no, ko, ki, mi, ni)
    return s, [a, b, c]


def test_a_contiguous_inner_loop_is_the_one_that_becomes_vectors():
    """The loop around it steps over rows: along it every access would be a gather or a scatter."""
    count = instructions(*blocked_matmul())
    assert count("gather") == count("scatter") == count(r"vpermt2|vinsertps|vextractf") == 0
    assert count(r"vfmadd\w*ps.*zmm") >= 8 and count(r"vfmadd\w*ss") == 0
    s, args = blocked_matmul()
    f = tw.build(s, args)
    a, b, c = (np.random.rand(128, 128).astype("float32") for _ in range(3))
    f(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)


@pytest.mark.parametrize("taps,inside", [(3, False), (3, True), (9, False)])
def test_a_loop_along_which_a_short_window_slides_becomes_vectors(taps, inside):
    x, w = te.placeholder((512,), name="X"), te.placeholder((taps,), name="W")
    k = te.reduce_axis((0, taps), name="k")
    read = (lambda i: te.if_then_else(i + k < 512, x[i + k], 0.0)) if inside else lambda i: x[i + k]
    y = te.compute((512 if inside else 513 - taps,), lambda i: te.sum(read(i) * w[k], axis=k), name="Y")
    count = instructions(te.create_schedule(y.op), [x, w, y])
    assert count(r"vfmadd\w*ps.*zmm") >= taps and count("gather") == 0


@pytest.mark.parametrize("channels", (3, 4))
def test_pixels_of_a_few_channels_become_vectors(channels):
    x = te.placeholder((64, 64, channels), name="X")
    y = te.compute((64, 64, channels), lambda i, j, c: x[i, j, c] * 2.0, name="Y")
    assert instructions(te.create_schedule(y.op), [x, y])(r"vaddps.*zmm|vmulps.*zmm")


@pytest.mark.parametrize("extent", (5, 7, 12))
def test_copies_of_a_condition_are_left_alone(extent):
    """LLVM unrolls both inner loops; its vectoriser would make masks of 49 conditions for half a minute."""
    a = te.placeholder((4,), "int32", name="A")
    t = te.compute((extent, 8), lambda i, j: a[te.floormod(i, 4)], name="T")
    k = te.reduce_axis((0, extent), name="k")
    at = (lambda i, k: te.floordiv(i * 2 + k * 5 + 1, 4))
    y = te.compute((16, extent), lambda i, j: te.sum(
        te.if_then_else(at(i, k) < extent, t[te.min(at(i, k), extent - 1), te.floormod(j, 8)], 0), axis=k), name="Y")
    s = te.create_schedule(y.op)
    f = tw.build(s, [a, y])
    assert HINT in f.get_source("ll")
    x, out = np.arange(3, 7, dtype="int32"), np.empty((16, extent), "int32")
    f(x, out)
    i, k = np.ogrid[:16, :extent]
    rows = (i * 2 + k * 5 + 1) // 4
    expected = np.where(rows < extent, x[rows % 4], 0).sum(axis=1)
    np.testing.assert_array_equal(out, np.repeat(expected[:, None], extent, axis=1))


@pytest.mark.parametrize("choices,left", [(16, True), (17, False)])
def test_a_loop_of_many_conditions_stays_scalar(choices, left):
    limits = range(1, choices + 1)
    a = te.placeholder((64,), "int32", name="A")
    y = te.compute((64,), lambda i: sum(te.if_then_else(a[i] > n, a[i] * n, n) for n in limits), name="Y")
    assert (HINT not in llvm_ir([tw.lower(te.create_schedule(y.op), [a, y])["default_function"]], AVX512)) == left
