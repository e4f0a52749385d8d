"""Axes that lie side by side everywhere become one, in what a kernel computes and in the shapes of what it takes."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.lowering.merge_axes import merge_axes
from tilewright.script import from_source
from tilewright.tir import interp
from tilewright.tir.equal import structural_equal
from tilewright.tir.node import statements
from tilewright.tir.stmt import Block

B, N = te.var("b"), te.var("n")
SIZES = {"b": 3, "n": 5}


def tensor(*shape, name="x"):
    return te.placeholder(shape, name=name)


def kernel(*tensors):
    """(the function of tensors, the last of which is the result, and sizes; what it is with axes merged)."""
    func, _ = te.lower_ops([*tensors, B, N], name="kernel", partial=True)
    return func, merge_axes(func)


def shapes(func):
    return [str(func.buffer_map[p].shape) for p in func.params if p in func.buffer_map]


def agree(func, merged):
    """Both compute the same, by the interpreter; arrays are seen with the shapes of each."""
    made = []
    for f in (func, merged):
        rng = np.random.default_rng(0)
        numbers = {v: SIZES[v.name] for v in f.params if v not in f.buffer_map}
        arrays = [rng.integers(-9, 9, [int(interp.execute.evaluate(d, numbers)) for d in f.buffer_map[p].shape])
                  .astype("float32") for p in f.params if p in f.buffer_map]
        interp.run(f, *arrays, *numbers.values())
        made.append(arrays[-1].ravel())
    np.testing.assert_array_equal(*made)


def test_rows_of_a_batch_are_rows_of_a_product_and_of_what_follows_it():
    x, w, bias = tensor(B, N, 4), tensor(4, 6, name="w"), tensor(6, name="bias")
    y = topi.relu(topi.add(topi.matmul(x, w), bias))
    func, merged = kernel(x, w, bias, y)
    assert shapes(merged) == ["(b * n, 4)", "(4, 6)", "(6,)", "(b * n, 6)"]
    assert [[iv.var.name for iv in s.iter_vars] for s in statements(merged.body) if isinstance(s, Block)][1:] == [
        ["v_i1", "v_i2", "vk"], ["v_i1", "v_i2"], ["v_i1", "v_i2"]]
    agree(func, merged)


def test_all_axes_of_elements_become_one():
    x, y = tensor(B, 4, N, 2), tensor(B, 4, N, 2, name="y")
    func, merged = kernel(x, y, topi.multiply(x, y))
    assert shapes(merged) == ["(b * 4 * n * 2,)"] * 3
    agree(func, merged)


def test_rows_of_a_softmax_are_merged_and_what_it_sums_is_not():
    x = tensor(B, N, 7)
    func, merged = kernel(x, topi.softmax(x))
    assert shapes(merged) == ["(b * n, 7)"] * 2
    agree(func, merged)


@pytest.mark.parametrize("make", [
    lambda x: topi.transpose(x, (1, 0, 2)),
    lambda x: topi.add(x, tensor(N, 1, name="y")),
    lambda x: topi.sum(x, axis=1),
    lambda x: te.compute((B, N - 1, 4), lambda i, j, k: x[i, j + 1, k]),
    lambda x: te.compute((B, N, 4), lambda i, j, k: x[i, j, k] + te.if_then_else(j < 2, 1.0, 0.0)),
    lambda x: te.compute((B, N), lambda i, j: x[i, N - 1 - j, 0]),
])
def test_axes_that_are_used_apart_stay(make):
    x = tensor(B, N, 4)
    y = make(x)
    func, merged = kernel(x, *[t for t in y.op.input_tensors if t.op.name == "y"], y)
    assert [s for s in shapes(merged) if "b * n" in s] == []
    agree(func, merged)


def test_a_transpose_keeps_what_stays_side_by_side_together():
    x = tensor(B, N, 4, 2)
    func, merged = kernel(x, topi.transpose(x, (2, 3, 0, 1)))
    assert shapes(merged) == ["(b * n, 8)", "(8, b * n)"]
    agree(func, merged)


def test_loops_that_are_no_nest_keep_the_shapes_of_what_they_touch():
    func = from_source("""
@T.prim_func
def kernel(x: T.Buffer((3, 5), "float32"), y: T.Buffer((3, 5), "float32"), z: T.Buffer((3, 5), "float32")):
    for i in range(3):
        with T.block("rows"):
            v = T.axis.spatial(3, i)
            for j in range(5):
                y[v, j] = x[v, j]
    for i, j in T.grid(3, 5):
        with T.block("elements"):
            v, w = T.axis.remap("SS", [i, j])
            z[v, w] = x[v, w] + y[v, w]
""")
    assert structural_equal(merge_axes(func), func)


def test_a_strided_parameter_keeps_its_shape():
    func = from_source("""
@T.prim_func
def kernel(a: T.handle, y: T.Buffer((3, 5), "float32")):
    x = T.match_buffer(a, (3, 5), "float32", strides=(8, 1))
    for i, j in T.grid(3, 5):
        with T.block("elements"):
            v, w = T.axis.remap("SS", [i, j])
            y[v, w] = x[v, w]
""")
    assert structural_equal(merge_axes(func), func)


@pytest.mark.parametrize("batch, length", [(1, 1), (2, 7), (0, 5), (3, 0), (5, 16)])
def test_a_model_of_any_batch_and_length(batch, length):
    """Rows in all, and not in each sequence, are cut into tiles."""
    from tilewright.graph.compile import build_function
    from tilewright.graph.ir.builder import BlockBuilder
    from tilewright.graph.ir.types import size
    rng = np.random.default_rng(0)
    w, x = rng.normal(size=(33, 70)).astype("float32"), rng.normal(size=(batch, length, 33)).astype("float32")
    bb = BlockBuilder()
    p = bb.param("x", (size("batch"), size("length"), 33))
    with bb.function("main", [p]):
        bb.emit_func_output(bb.emit_te(topi.relu, bb.emit_te(topi.matmul, p, bb.const(w))))
    run = build_function(bb.get()["main"], tw.target("llvm -num-cores=2"))
    np.testing.assert_allclose(np.asarray(run(x)), np.maximum(x.astype("float64") @ w, 0), rtol=1e-4, atol=1e-5)
