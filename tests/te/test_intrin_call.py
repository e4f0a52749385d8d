"""Tensor intrinsics that a compute calls: what they compute, which loops they run, refusals."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, tir
from tilewright.support.errors import ScheduleError, TensorExpressionError


def register(name, f):
    """A packed function that writes its last tensor from the others: out = f(out, *ins)."""
    tw.register_func(f"test.intrin_call.{name}", lambda *t: t[-1].copyfrom(
        f(t[-1].numpy(), *(x.numpy() for x in t[:-1])).astype("float32")), override=True)


register("add", lambda out, x, y: x + y)
register("whole", lambda out, x, y: x @ y.T)
register("reset", lambda out: np.zeros_like(out))
register("update", lambda out, x, y: out + x @ y.T)


def call(name, *buffers):
    return te.call_packed(f"test.intrin_call.{name}", *buffers)


def add(n):
    x, y = te.placeholder((n,), name="x"), te.placeholder((n,), name="y")
    z = te.compute((n,), lambda i: x[i] + y[i], name="z")
    return te.decl_tensor_intrin(z.op, lambda ins, outs: call("add", *ins, *outs), name="add",
                                 default_buffer_params={"offset_factor": 1})


def product(m, n, depth, steps=True):
    """z = x @ y.T; with steps also the parts of a longer product."""
    x, y = te.placeholder((m, depth), name="x"), te.placeholder((n, depth), name="y")
    k = te.reduce_axis((0, depth), name="k")
    z = te.compute((m, n), lambda i, j: te.sum(x[i][k] * y[j][k], axis=k), name="z")

    def emit(ins, outs):
        whole = call("whole", *ins, *outs)
        return (whole, call("reset", *outs), call("update", *ins, *outs)) if steps else whole
    return te.decl_tensor_intrin(z.op, emit, name="product", default_buffer_params={"offset_factor": 1})


def random(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype("float32")


def test_the_intrinsic_runs_the_last_axes():
    a, b, intrin = te.placeholder((8, 16), name="A"), te.placeholder((8, 16), name="B"), add(16)
    c = te.compute((8, 16), lambda i: intrin(a[i, 0:16], b[i, :]), name="C")
    assert [iv.var.name for iv in c.op.axis] == ["i", "ax0"] and c.op.intrin is intrin
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].reorder(inner, outer)
    text = str(tw.lower(s, [a, b, c], simple_mode=True))
    assert text.count("call_packed") == 1 and "for ax0" not in text
    x, y, out = random(8, 16), random(8, 16)[::-1].copy(), np.empty((8, 16), "float32")
    tw.build(s, [a, b, c])(x, y, out)
    np.testing.assert_array_equal(out, x + y)


def test_without_a_schedule_of_stages_it_is_computed_as_it_is_said():
    a, intrin = te.placeholder((8, 20), name="A"), add(4)
    c = te.compute((8, 4), lambda i: intrin(a[i, i:i + 4], a[0, 16:20]), name="C")
    x, out = random(8, 20), np.empty((8, 4), "float32")
    tw.build(te.create_prim_func([a, c]))(x, out)
    expected = np.stack([x[i, i:i + 4] for i in range(8)]) + x[0, 16:]
    np.testing.assert_array_equal(out, expected)
    tw.build(te.create_schedule(c.op), [a, c])(x, out)
    np.testing.assert_array_equal(out, expected)


def tiles(intrin, m=4, n=2, depth=3):
    """A, B, C = sums over k of products of tiles 4 x 8 and 5 x 8."""
    a, b = te.placeholder((m, depth, 4, 8), name="A"), te.placeholder((n, depth, 5, 8), name="B")
    k = te.reduce_axis((0, depth), name="k")
    c = te.compute((m, n, 4, 5), lambda i, j: intrin(a[i, k, 0:4, 0:8], b[j, k, 0:5, 0:8], reduce_axis=k), name="C")
    return a, b, c, k


@pytest.mark.parametrize("cached", ["", "read", "write", "read, then write"])
def test_more_axes_are_reduced_by_the_update(cached):
    a, b, c, k = tiles(product(4, 5, 8))
    s = te.create_schedule(c.op)
    copy = s.cache_read(a, "global", [c]) if "read" in cached else None
    if cached == "read":
        s[copy].compute_at(s[c], k)
    elif cached:
        s[s.cache_write(c, "global")].compute_at(s[c], c.op.axis[1])
    else:
        s[c].unroll(k)
    text = str(tw.lower(s, [a, b, c], simple_mode=True))
    assert text.count("intrin_call.reset") == text.count("intrin_call.update") == 1 and "intrin_call.whole" not in text
    x, y, out = random(4, 3, 4, 8), random(2, 3, 5, 8), np.empty((4, 2, 4, 5), "float32")
    tw.build(s, [a, b, c])(x, y, out)
    np.testing.assert_allclose(out, np.einsum("ikax,jkbx->ijab", x, y), rtol=1e-4, atol=1e-4)


def test_its_own_reduction_is_the_whole():
    a, b, intrin = te.placeholder((4, 8), name="A"), te.placeholder((6, 5, 8), name="B"), product(4, 5, 8, steps=False)
    c = te.compute((6, 4, 5), lambda j: intrin(a, b[j]), name="C")
    s = te.create_schedule(c.op)
    assert "intrin_call.whole" in str(tw.lower(s, [a, b, c], simple_mode=True))
    x, y, out = random(4, 8), random(6, 5, 8), np.empty((6, 4, 5), "float32")
    tw.build(s, [a, b, c])(x, y, out)
    np.testing.assert_allclose(out, x @ y.transpose(0, 2, 1), rtol=1e-4, atol=1e-4)


def test_scalars_are_handed_on():
    factor = te.var("factor", "float32")
    x = te.placeholder((4,), name="x")
    z = te.compute((4,), lambda i: x[i] * factor, name="z")
    intrin = te.decl_tensor_intrin(
        z.op, lambda ins, outs, scalars: te.call_packed("test.intrin_call.scale", ins[0], scalars[0], outs[0]),
        name="scale", scalar_params=[factor], default_buffer_params={"offset_factor": 1})
    tw.register_func("test.intrin_call.scale", lambda x, f, out: out.copyfrom(x.numpy() * np.float32(f)), override=True)
    a = te.placeholder((3, 4), name="A")
    c = te.compute((3, 4), lambda i: intrin(a[i, 0:4], i.astype("float32") + 0.5), name="C")
    u, out = random(3, 4), np.empty((3, 4), "float32")
    tw.build(te.create_schedule(c.op), [a, c])(u, out)
    np.testing.assert_array_equal(out, u * (np.arange(3, dtype="float32") + np.float32(0.5))[:, None])


def test_a_part_of_a_tensor_is_no_number():
    a = te.placeholder((4, 8), name="A")
    with pytest.raises(TensorExpressionError, match="index 1 is a slice"):
        te.compute((4,), lambda i: a[i, 0:4] + 1)


A, K = te.placeholder((8, 16), name="A"), te.reduce_axis((0, 3), name="k")


@pytest.mark.parametrize("wrong, message", [
    (lambda: te.compute((8, 16), lambda i: add(16)(A[i, :])), r"1 tensor\(s\) and 0 scalar\(s\) are given"),
    (lambda: te.compute((8, 16), lambda i: add(16)(A[i, :], 3)), r"1 tensor\(s\) and 1 scalar\(s\) are given"),
    (lambda: te.compute((8, 16), lambda i: add(16)(A[i, 0:8], A[i, :])), r"the part of A is float32\(1, 8\), and its"),
    (lambda: te.compute((8, 16), lambda i: add(16)(A[0:2, :], A[i, :])), r"the part of A is float32\(2, 16\)"),
    (lambda: te.compute((8, 4), lambda i: add(4)(A[i, 0:8:2], A[i, 0:4])), "a part of every 2 elements"),
    (lambda: te.compute((8, 4), lambda i: add(16)(A[i, :], A[i, :])), r"add gives \(16,\), and \(4,\) is left of the"),
    (lambda: te.compute((8, 16), lambda i, j: add(16)(A[i, :], A[i, :])), r"and \(\) is left of the shape \(8, 16\)"),
    (lambda: te.compute((8, 16), lambda i: add(16)(A[i, :], A[i, :], reduce_axis=K)), "add reduces nothing"),
    (lambda: te.compute((8, 16), lambda i: add(16)(A[i, :], A[i, :], reduce_axis=3)), "3, not a reduction axis"),
    (lambda: te.compute((8, 16), lambda i: A[i, 0]), r"has 2 dimension\(s\), the function takes 1 argument"),
])
def test_wrong_calls(wrong, message):
    with pytest.raises(TensorExpressionError, match=message):
        wrong()


def test_an_intrinsic_of_one_element_has_no_loop():
    x = te.placeholder((), name="x")
    y = te.compute((), lambda: x() + 1, name="y")
    intrin = te.decl_tensor_intrin(y.op, lambda ins, outs: call("add", *ins, *outs), name="one")
    with pytest.raises(TensorExpressionError, match="one gives one element and has no loop to run"):
        te.compute((8,), lambda i: intrin(A[i, 0]))


def test_steps_of_a_reduction_need_an_update():
    a, b, c, _ = tiles(product(4, 5, 8, steps=False))
    with pytest.raises(ScheduleError, match="run steps of the reduction, and product has no update"):
        te.create_schedule(c.op).replay([a, b, c])


def test_another_intrinsic_for_the_same_axis_takes_its_place():
    a, intrin = te.placeholder((8, 16), name="A"), add(16)
    c = te.compute((8, 16), lambda i: intrin(a[i, :], a[7 - i, :]), name="C")
    s = te.create_schedule(c.op)
    before = s.fingerprint([a, c])
    x, y = te.placeholder((16,), name="x"), te.placeholder((16,), name="y")
    z = te.compute((16,), lambda i: x[i] + y[i], name="z")
    other = te.decl_tensor_intrin(z.op, lambda ins, outs: te.call_packed("other", *ins, *outs), name="other",
                                  default_buffer_params={"offset_factor": 1})
    s[c].tensorize(c.op.axis[1], other)
    assert s.fingerprint([a, c]) != before and '"other"' in str(s.replay([a, c]))
    assert tir.structural_equal(te.create_schedule(c.op).replay([a, c]).func, te.create_schedule(c.op).replay(
        [a, c]).func)
