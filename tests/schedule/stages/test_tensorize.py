"""s[C].tensorize: whole reductions, reset and update, loops outside, what is recorded, refusals."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tests.schedule import tensor_intrinsics as intrinsics
from tilewright import te, tir
from tilewright.lowering.pipeline import lower
from tilewright.support.errors import ScheduleError, TensorExpressionError
from tilewright.tir import interp


def product(n=8, m=12, k=16):
    a, b = te.placeholder((n, k), "int32", name="A"), te.placeholder((m, k), "int32", name="B")
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[j, r], axis=r), name="C")
    s = te.create_schedule(c.op)
    xo, yo, xi, yi = s[c].tile(*c.op.axis, 4, 4)
    ro, ri = s[c].split(r, factor=8)
    return s, [a, b, c], (xo, yo, xi, yi, ro, ri)


def run(s, args, externs=None, sizes=(8, 12, 16)):
    n, m, k = sizes
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 9, (n, k)).astype("int32"), rng.integers(-9, 9, (m, k)).astype("int32")
    func = s.replay(args).func
    for f in (func, lower(func)):
        c = np.full((n, m), 77, "int32")
        interp.run(f, a, b, c, externs=externs or {})
        np.testing.assert_array_equal(c, a @ b.T)
    return func


@pytest.fixture
def calls():
    """How often each packed function of te_product was called from machine code."""
    count = {}
    for name, f in intrinsics.te_externs().items():
        def called(*views, f=f, name=name):
            count[name.removeprefix("test.te.")] = count.get(name.removeprefix("test.te."), 0) + 1
            arrays = [v.numpy().copy() for v in views]
            f(*arrays)
            views[-1].copyfrom(arrays[-1])
        tw.register_func(name, called, override=True)
    return count


@pytest.mark.parametrize("outer", ["between", "outermost"])
def test_split_reductions_use_reset_and_update(calls, outer):
    s, args, (xo, yo, xi, yi, ro, ri) = product()
    c = args[-1]
    s[c].reorder(*((xo, yo, ro) if outer == "between" else (ro, xo, yo)), xi, yi, ri)
    s[c].tensorize(xi, intrinsics.te_product())
    func = run(s, args, intrinsics.te_externs())
    assert "test.te.whole" not in str(func)
    a, b = np.arange(128, dtype="int32").reshape(8, 16), np.arange(192, dtype="int32").reshape(12, 16)
    got = np.full((8, 12), 77, "int32")
    tw.build(s, args, "llvm")(a, b, got)
    np.testing.assert_array_equal(got, a @ b.T)
    assert calls == {"reset": 6, "update": 12}


def test_whole_reductions_use_the_whole(calls):
    s, args, (xo, yo, xi, yi, ro, ri) = product(k=8)
    s[args[-1]].reorder(xo, yo, ro, xi, yi, ri)
    s2, args2, (xo, yo, xi, yi, ro, ri) = product(k=8)
    s2[args2[-1]].reorder(xo, yo, xi, yi, ro, ri)
    s2[args2[-1]].tensorize(xi, intrinsics.te_product())
    func = run(s2, args2, intrinsics.te_externs(), (8, 12, 8))
    assert "test.te.whole" in str(func) and "test.te.update" not in str(func)


def test_without_a_reset_the_start_stays_a_loop():
    w, x = te.placeholder((4, 8), "int32", name="w"), te.placeholder((4, 8), "int32", name="x")
    k = te.reduce_axis((0, 8), name="k")
    y = te.compute((4, 4), lambda i, j: te.sum(w[i, k] * x[j, k], axis=k), name="y")

    def steps(ins, outs):
        i, j, n = te.var("i"), te.var("j"), te.var("n")
        step = outs[0].vstore((i, j), outs[0][i, j] + ins[0][i, n] * ins[1][j, n])
        return te.call_packed("never"), None, tir.loop(n, 8, tir.loop(i, 4, tir.loop(j, 4, step)))
    s, args, (xo, yo, xi, yi, ro, ri) = product()
    s[args[-1]].reorder(xo, yo, ro, xi, yi, ri)
    s[args[-1]].tensorize(xi, te.decl_tensor_intrin(y.op, steps))
    assert "never" not in str(run(s, args))


def test_one_element_of_the_output():
    w, x = te.placeholder((8,), "int32", name="w"), te.placeholder((8,), "int32", name="x")
    k = te.reduce_axis((0, 8), name="k")
    y = te.compute((1,), lambda i: te.sum(w[k] * x[k], axis=k), name="y")

    def dot(ins, outs):
        def loop():
            i = te.var("i")
            return tir.loop(i, 8, outs[0].vstore((0,), outs[0][0] + ins[0][i] * ins[1][i]))
        zero = outs[0].vstore((0,), 0)
        return tir.seq([zero, loop()]), zero, loop()
    intrin = te.decl_tensor_intrin(y.op, dot)
    s, args, (xo, yo, xi, yi, ro, ri) = product()
    s[args[-1]].reorder(xo, yo, xi, yi, ro, ri)
    s[args[-1]].tensorize(ri, intrin)
    text = str(run(s, args))
    assert 'T.block("C_update_o")' in text and 'T.block("C_init_o")' in text


def test_registered_intrinsics_by_name():
    a = te.placeholder((8,), "int32", name="A")
    c = te.compute((8,), lambda i: a[i] + 5, name="C")
    five = intrinsics.te_vector(lambda x: x + 5).compute
    tir.TensorIntrin.register("test.five", five.desc, five.impl, override=True)
    s = te.create_schedule(c.op)
    s[c].tensorize(s[c].split(c.op.axis[0], factor=4)[1], "test.five")
    got = np.zeros(8, "int32")
    tw.build(s, [a, c], "llvm")(np.arange(8, dtype="int32"), got)
    np.testing.assert_array_equal(got, np.arange(8) + 5)


def test_the_fingerprint_has_the_intrinsic():
    def key(intrin):
        s, args, (xo, yo, xi, yi, ro, ri) = product()
        s[args[-1]].reorder(xo, yo, ro, xi, yi, ri)
        if intrin is not None:
            s[args[-1]].tensorize(xi, intrin)
        return s.fingerprint(args)
    one, other = intrinsics.te_product(), intrinsics.te_product(name="test.other")
    assert key(one) == key(intrinsics.te_product())
    assert len({key(one), key(other), key(None)}) == 3


def test_refusals():
    s, args, (xo, yo, xi, yi, ro, ri) = product()
    c = args[-1]
    with pytest.raises(ScheduleError, match="is no tensor intrinsic"):
        s[c].tensorize(xi, 3)
    with pytest.raises(ScheduleError, match="no tensor intrinsic 'missing' is registered"):
        s[c].tensorize(xi, "missing")
    s[c].reorder(xo, yo, ro, xi, yi, ri)
    s[c].tensorize(xi, intrinsics.te_vector(lambda x: x))
    with pytest.raises(ScheduleError, match="C is tensorized at i.inner"):
        s[c].tensorize(yi, intrinsics.te_product())
    with pytest.raises(ScheduleError, match="vector has no update"):
        s.replay(args)


def test_declarations_that_do_not_fit():
    x = te.placeholder((4,), "int32", name="x")
    y = te.compute((4,), lambda i: x[i] + 1, name="y")
    z = te.compute((4,), lambda i: y[i] + 1, name="z")
    call = te.call_packed("f")
    for make, message in (
            (lambda: te.decl_tensor_intrin(x.op, lambda i, o: call), "is no computation"),
            (lambda: te.decl_tensor_intrin(z.op, lambda i, o: call), "reads y, which is no placeholder"),
            (lambda: te.decl_tensor_intrin(y.op, lambda i, o: None), "fcompute returned None"),
            (lambda: te.decl_tensor_intrin(y.op, lambda i, o: (call, call)), "compute, reset, update"),
            (lambda: te.decl_tensor_intrin(y.op, lambda i, o: "f"), "not a statement or call"),
            (lambda: te.decl_tensor_intrin(y.op, lambda i, o: (call, call, call)), "is no reduction"),
            (lambda: te.decl_tensor_intrin(y.op, lambda i, o: call, binds={z: None}), "neither reads nor computes"),
            (lambda: te.decl_tensor_intrin(y.op, lambda i, o: call, binds={x: 3}), "the buffer of x is 3"),
            (lambda: te.decl_tensor_intrin(y.op, lambda i, o: call, default_buffer_params={"stride": 1}), "'stride'")):
        with pytest.raises(TensorExpressionError, match=message):
            make()
