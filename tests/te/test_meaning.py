"""Tensor expressions mean what NumPy says, under the interpreter."""
from __future__ import annotations

import numpy as np
import pytest

from tilewright import te
from tilewright.tir import interp

RNG = np.random.default_rng(0)


def run(args, *inputs):
    """The arrays of all args after the function of args ran on inputs."""
    arrays = list(inputs)
    sizes = {}
    for tensor, array in zip(args, inputs):
        sizes.update({id(d): n for d, n in zip(tensor.shape, array.shape)})
    for tensor in args[len(inputs):]:
        shape = tuple(sizes[id(d)] if id(d) in sizes else int(d) for d in tensor.shape)
        arrays.append(np.full(shape, 77, tensor.dtype))
    interp.run(te.create_prim_func(list(args)), *arrays)
    return arrays[len(inputs):]


def test_matmul_with_symbolic_shapes():
    n, m, depth = te.var("n"), te.var("m"), te.var("depth")
    a, b = te.placeholder((n, depth), name="a"), te.placeholder((m, depth), name="b")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="c")
    x, y = RNG.random((3, 4)), RNG.random((5, 4))
    got = run([a, b, c], x.astype("float32"), y.astype("float32"))[0]
    np.testing.assert_allclose(got, x @ y.T, rtol=1e-5)


@pytest.mark.parametrize("reduce, of_numpy",
                         [(te.sum, np.sum), (te.prod, np.prod), (te.max, np.max), (te.min, np.min)])
@pytest.mark.parametrize("dtype", ["int32", "int8", "float64", "uint16"])
def test_reductions(reduce, of_numpy, dtype):
    x = te.placeholder((3, 4, 2), dtype, "x")
    k, r = te.reduce_axis((0, 4), "k"), te.reduce_axis((0, 2), "r")
    y = te.compute((3,), lambda i: reduce(x[i, k, r], [k, r]), name="y")
    data = RNG.integers(1, 3, (3, 4, 2)).astype(dtype)
    np.testing.assert_array_equal(run([x, y], data)[0], of_numpy(data, axis=(1, 2)).astype(dtype))


def test_where_start_value_and_offset_of_a_reduction():
    x = te.placeholder((9,), "float64", "x")
    k = te.reduce_axis((2, 8), name="k")
    y = te.compute((1,), lambda i: te.sum(x[k], axis=k, where=x[k] > 0.5, init=10.0), name="y")
    data = RNG.random(9)
    part = data[2:8]
    np.testing.assert_allclose(run([x, y], data)[0], [10.0 + part[part > 0.5].sum()])


def test_argmax_keeps_both_components():
    x = te.placeholder((6, 9), name="x")
    k = te.reduce_axis((0, 9), name="k")
    argmax = te.comm_reducer(
        lambda a, b: (te.select(a[1] >= b[1], a[0], b[0]), te.select(a[1] >= b[1], a[1], b[1])),
        lambda i, v: (te.const(-1, i), te.min_value(v)), name="argmax")
    index, value = te.compute((6,), lambda i: argmax((k, x[i, k]), axis=k), name="am")
    data = RNG.random((6, 9)).astype("float32")
    got_index, got_value = run([x, index, value], data)
    np.testing.assert_array_equal(got_index, data.argmax(axis=1))
    np.testing.assert_array_equal(got_value, data.max(axis=1))


def test_padding_stencils_and_zero_d_tensors():
    x = te.placeholder((8,), "float64", "x")
    y = te.compute((8,), lambda i: te.if_then_else(te.all(i >= 1, i < 7), x[i - 1] + x[i + 1], 0.0), name="y")
    k = te.reduce_axis((0, 8), name="k")
    total = te.compute((), lambda: te.sum(y[k], axis=k), name="total")
    z = te.compute((8,), lambda i: y[i] / total, name="z")
    data = RNG.random(8)
    want = np.zeros(8)
    want[1:7] = data[:6] + data[2:]
    np.testing.assert_allclose(run([x, z], data)[0], want / want.sum())


def test_several_outputs_and_casts():
    x = te.placeholder((5,), "int32", "x")
    half, whole = te.compute((5,), lambda i: (x[i].astype("float64") / 2.0, te.truncdiv(x[i], 2)), name="h")
    data = np.array([-3, -1, 0, 1, 5], "int32")
    got = run([x, half, whole], data)
    np.testing.assert_array_equal(got[0], data / 2)
    np.testing.assert_array_equal(got[1], [-1, 0, 0, 0, 2])


@pytest.mark.parametrize("name, reference", [
    ("exp", np.exp), ("log", np.log), ("tanh", np.tanh), ("sqrt", np.sqrt), ("floor", np.floor),
    ("ceil", np.ceil), ("sin", np.sin), ("log1p", np.log1p), ("abs", np.abs),
    ("sigmoid", lambda v: 1 / (1 + np.exp(-v)))])
def test_scalar_functions(name, reference):
    x = te.placeholder((7,), "float64", "x")
    y = te.compute((7,), lambda i: getattr(te, name)(x[i]), name="y")
    data = RNG.random(7) + 0.1
    np.testing.assert_allclose(run([x, y], data)[0], reference(data), rtol=1e-12)


def test_data_dependent_indices():
    table, index = te.placeholder((10,), "float64", "table"), te.placeholder((4,), "int64", "index")
    y = te.compute((4,), lambda i: table[index[i]], name="y")
    data, where = RNG.random(10), np.array([9, 0, 3, 3])
    np.testing.assert_array_equal(run([table, index, y], data, where)[0], data[where])
