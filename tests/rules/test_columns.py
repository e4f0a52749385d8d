"""Sums along the lines of an array: lines are added to a line of results, a few at a time."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.rules.apply import Scheduling

RANDOM = np.random.RandomState(11)


def rule_of(args, target):
    return [d.rule for d in Scheduling(te.create_prim_func(args), tw.target(target)).finish().decisions]


@pytest.mark.parametrize("target", ["llvm -num-cores=1", "llvm -num-cores=3", "llvm -mcpu=haswell -num-cores=2", "c"])
@pytest.mark.parametrize("shape, axes", [
    ((64, 128), (0,)), ((37, 1000), (0,)), ((512, 1024), (0,)), ((40, 5003), (0,)), ((3, 49, 257), (1,)),
    ((2, 5, 8, 160), (0, 1, 2)), ((32, 2, 130), (0,))], ids=str)
def test_shapes(shape, axes, target):
    x = te.placeholder(shape, name="x")
    y = topi.sum(x, axis=axes)
    assert rule_of([x, y], target) == ["columns"]
    a, out = RANDOM.randn(*shape).astype("float32"), np.full(tuple(int(d) for d in y.shape), np.nan, "float32")
    tw.compile([x, y], target=target)(a, out)
    np.testing.assert_allclose(out, a.astype("float64").sum(axes), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("op, dtype", [("max", "float32"), ("min", "int8"), ("sum", "int64"), ("prod", "float64"),
                                       ("sum", "float16"), ("mean", "bfloat16")])
def test_operators_and_types(op, dtype):
    x = te.placeholder((70, 300), dtype, "x")
    y = getattr(topi, op)(x, axis=0)
    a = RANDOM.rand(70, 300) * 2 if "float" in dtype else RANDOM.randint(-50, 50, (70, 300))
    given, out = tw.nd.empty((70, 300), dtype), tw.nd.empty((300,), y.dtype)
    given.copyfrom(a.astype(given.numpy().dtype))
    tw.compile([x, y])(given, out)
    want = getattr(np, op)(given.numpy().astype("float64" if "float" in dtype else "int64"), axis=0)
    np.testing.assert_allclose(out.numpy().astype("float64"), want.astype("float64"),
                               rtol={"float16": 2e-3, "bfloat16": 1e-2}.get(dtype, 1e-6))


@pytest.mark.parametrize("cores", [1, 2])
def test_an_elementwise_block_behind_it(cores):
    x, b = te.placeholder((100, 3000), name="x"), te.placeholder((3000,), name="b")
    s = topi.sum(x, axis=0)
    y = te.compute((3000,), lambda i: te.max(s[i] * 0.5 + b[i], te.const(0, "float32")), name="y")
    target = f"llvm -num-cores={cores}"
    assert rule_of([x, b, y], target) == ["columns"]
    a, c = RANDOM.randn(100, 3000).astype("float32"), RANDOM.randn(3000).astype("float32")
    out = np.empty(3000, "float32")
    tw.compile([x, b, y], target=target)(a, c, out)
    np.testing.assert_allclose(out, np.maximum(a.astype("float64").sum(0) * 0.5 + c, 0), rtol=1e-4, atol=1e-4)


def test_numbers_of_lines_and_of_arrays_that_the_call_tells():
    n, m = te.var("n"), te.var("m")
    x = te.placeholder((m, n, 256), name="x")
    y = topi.sum(x, axis=1)
    f = tw.compile([x, y])
    for rows, arrays in ((0, 2), (1, 1), (7, 3), (40, 0), (65, 2)):
        a, out = RANDOM.randn(arrays, rows, 256).astype("float32"), np.full((arrays, 256), np.nan, "float32")
        f(a, out)
        np.testing.assert_allclose(out, a.astype("float64").sum(1), rtol=1e-4, atol=1e-4)


def test_few_or_short_lines_stay_in_registers():
    for shape in ((8, 4096), (1000, 32)):
        x = te.placeholder(shape, name="x")
        assert rule_of([x, topi.sum(x, axis=0)], "llvm -mcpu=x86-64-v4 -num-cores=1") == ["reduction"]
