"""Functions of blocks that models call, and the names of their code."""
import numpy as np
import pytest

import tilewright as tw
from tilewright import te, topi
from tilewright.graph import BlockBuilder, TensorType, size
from tilewright.graph.ir.callees import Kernel
from tilewright.support.errors import GraphError

X = np.arange(8, dtype="float32")


def blocks(f, name="main", shape=(8,), sizes=()):
    """A kernel of B[i] = f(A[i])."""
    a = te.placeholder(shape, name="A")
    func = te.create_prim_func([a, te.compute(shape, lambda *i: f(a(*i)), name="B"), *sizes], name=name)
    return Kernel(func, (TensorType.of(shape),), tuple(size(v.name) for v in sizes))


def model(*kernels, name="main", shape=(8,)):
    """Each kernel called with the parameter."""
    bb = BlockBuilder()
    x = bb.param("x", shape)
    with bb.function(name, [x]):
        bb.emit_func_output([bb.call_tir(k, x) for k in kernels])
    return bb.get()[name]


def test_different_functions_of_one_name():
    run = tw.compile(model(blocks(lambda e: e + 1.0), blocks(lambda e: e * 10.0), blocks(lambda e: e + 1.0)))
    for got, wanted in zip(run(X), (X + 1, X * 10, X + 1), strict=True):
        np.testing.assert_array_equal(got.numpy(), wanted)
    assert len(run.objects) == 2                                     # equal ones are one


def test_a_name_that_ends_as_those_of_constants_do():
    def apart(name, factor):
        a, b = te.placeholder((8,), name="A"), te.placeholder((8,), name="B")
        func = te.create_prim_func([a, b, te.compute((8,), lambda i: (a[i] + b[i]) * factor, name="C")], name=name)
        return Kernel(func, (TensorType.of((8,)),))
    bb = BlockBuilder()
    x = bb.param("x", (8,))
    with bb.function("main", [x]):
        bb.emit_func_output([bb.call_tir(apart("f", 2.0), x, bb.const(X)), bb.call_tir(apart("f_c1", 3.0), x, x)])
    first, second = tw.compile(bb.get()["main"])(X)
    np.testing.assert_array_equal(first.numpy(), 4 * X)
    np.testing.assert_array_equal(second.numpy(), 6 * X)


def test_a_kernel_named_as_the_model(tmp_path):
    run = tw.compile(model(blocks(lambda e: e + 1.0, "step"), name="step"))
    run.export(tmp_path / "step.o")
    np.testing.assert_array_equal(tw.load(tmp_path / "step.o")(X).numpy(), X + 1)
    other = tw.compile(model(blocks(lambda e: e + 1.0, "scale")))
    with pytest.raises(GraphError, match="cannot be exported as scale: it calls a kernel of that name"):
        other.export(tmp_path / "scale.o", name="scale")


def test_letters_that_object_files_do_not_have(tmp_path):
    def größe(x): return te.compute(x.shape, lambda *i: x(*i) + 1.0, name="größe")
    bb = BlockBuilder()
    x = bb.param("größe", (8,))
    with bb.function("größe", [x]):
        bb.emit_func_output(bb.call_tir(blocks(lambda e: e * 2.0, "größe"), bb.emit_te(größe, x)))
    run = tw.compile(bb.get()["größe"])
    np.testing.assert_array_equal(run(X).numpy(), 2 * X + 2)
    run.export(tmp_path / "model.o")
    np.testing.assert_array_equal(tw.load(tmp_path / "model.o")(X).numpy(), 2 * X + 2)


def test_sizes_of_a_kernel():
    n = te.var("n")
    run = tw.compile(model(blocks(lambda e: e + 1.0, "f", (n,), [n]), shape=(size("n"),)))
    for count in (8, 1, 3):
        np.testing.assert_array_equal(np.asarray(run(X[:count])), X[:count] + 1)


def test_what_a_function_of_blocks_does_not_take():
    n = te.var("n")
    one, free, any_size = (blocks(lambda e: e + 1.0, "f", *rest) for rest in ((), ((n,),), ((n,), [n])))
    wrong = Kernel(one.func, (TensorType.of((8,), "int32"),))
    for kernel, shape, message in [
            (one, (9,), r"f: A is float32\[8\], and float32\[9\] is given"),
            (one, (2, 4), r"f: A is float32\[8\], and float32\[2, 4\] is given"),
            (one, (size("n"),), r"f: A is float32\[8\], and float32\[n\] is given"),
            (free, (size("n"),), "f: the extent n of its buffers is no parameter"),
            (any_size, (size("m"),), r"f: A is float32\[n\], and float32\[m\] is given"),
            (Kernel(one.func, (), ()), (8,), r"f takes 2 tensor\(s\) and 0 size\(s\), 1 and 0 are given"),
            (wrong, (8,), r"f: B is float32\[8\], and int32\[8\] is given")]:
        with pytest.raises(GraphError, match=message):
            model(kernel, shape=shape)
    bb = BlockBuilder()
    with pytest.raises(GraphError, match="emit_call: array.* is not a value"), bb.function("main"):
        bb.call_tir(one, X)


def test_parameters_named_as_results(tmp_path):
    bb = BlockBuilder()
    first, second, third = (bb.param(name, (8,)) for name in ("result", "result0", "result1"))
    with bb.function("main", [first, second, third]):
        both = bb.emit_te(topi.add, first, second)
        bb.emit_func_output([both, bb.emit_te(topi.multiply, first, third)], updates={second: third})
    tw.compile(bb.get()["main"]).export(tmp_path / "model.o")
    held = tw.nd.array(X + 1)
    added, product = tw.load(tmp_path / "model.o")(X, held, X + 2)
    np.testing.assert_array_equal(added.numpy(), 2 * X + 1)
    np.testing.assert_array_equal(product.numpy(), X * (X + 2))
    np.testing.assert_array_equal(held.numpy(), X + 2)
