"""Casts that saturate, and 4-bit integers in pairs, on all values."""
from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.support.errors import IRError
from tilewright.tir import PrimFunc, Var, decl_buffer, evaluate, run
from tilewright.tir import dtype as dt

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.parametrize("source", INTEGERS)
def test_integers_saturate(source):
    x = Var("x", source)
    ends = sorted({min(max(v + d, dt.integer_range(source)[0]), dt.integer_range(source)[1])
                   for t in INTEGERS for v in dt.integer_range(t) for d in (-1, 0, 1)} | {0, 1, 5})
    for target in INTEGERS:
        low, high = dt.integer_range(target)
        e = te.saturate_cast(target, x)
        assert e.dtype == target
        assert [evaluate(e, {x: v}) for v in ends] == [min(max(v, low), high) for v in ends]
    for target in dt.SMALL_FLOATS:
        largest, kind = dt.SMALL_FLOATS[target].largest, dt.numpy_dtype(target)
        got = [float(evaluate(te.saturate_cast(target, x), {x: v})) for v in ends]
        want = [float(kind.type(min(max(float(v), -largest), largest))) for v in ends]
        assert got == want, target


@pytest.mark.parametrize("source", ["float32", "float64", *dt.SMALL_FLOATS])
def test_floats_saturate(source):
    x = Var("x", source)
    for target in [*dt.SMALL_FLOATS, "float32"]:
        largest = float(np.finfo("float32").max) if target == "float32" else dt.SMALL_FLOATS[target].largest
        e = te.saturate_cast(target, x)
        for v in (0.0, -1.5, 448.0, 449.0, 1e4, 6e4, -7e4, 1e5, np.inf, -np.inf, np.nan):
            given = float(evaluate(te.cast(source, te.const(v, "float64"))))
            got = float(evaluate(e, {x: given}))
            clamped = given if given != given else min(max(given, -largest), largest)
            want = float(dt.numpy_dtype(target).type(np.float32(clamped)))
            assert got == want or (got != got and want != want), (source, target, v)
    for target in ("int8", "uint16"):
        assert evaluate(te.saturate_cast(target, x), {x: -200.0}) == (0 if target == "uint16" else -128)


def test_saturation_in_vectors():
    a = te.placeholder((64,), "int32", name="A")
    b = te.compute((64,), lambda i: te.saturate_cast("int8", a[i]), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=16)[1])
    x = np.random.default_rng(0).integers(-300, 300, 64, "int32")
    out = tw.nd.empty((64,), "int8")
    tw.build(s, [a, b])(tw.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), np.clip(x, -128, 127))


@pytest.mark.parametrize("stored", ["uint8", "int8"])
@pytest.mark.parametrize("signed", [True, False])
def test_all_pairs_of_four_bits(stored, signed):
    """Every byte, in vectors and interpreted: element 2 i in its low half, 2 i + 1 in its high half."""
    packed = te.placeholder((16, 16), stored, name="P")
    out = te.compute((16, 32), lambda i, j: te.unpack_int4(packed, i, j, signed=signed), name="U")
    assert out.dtype == ("int8" if signed else "uint8")
    data = np.arange(256, dtype="uint8").reshape(16, 16)
    low, high = data & 15, data >> 4
    want = np.stack([low, high], -1).reshape(16, 32).astype("int64")
    want = np.where(signed & (want > 7), want - 16, want)
    got = run(te.create_prim_func([packed, out]), data.view(stored), np.zeros((16, 32), out.dtype))
    del got
    result = tw.nd.empty((16, 32), out.dtype)
    tw.compile(te.create_prim_func([packed, out]))(tw.nd.array(data.view(stored)), result)
    np.testing.assert_array_equal(result.numpy(), want)


def test_packing_is_the_inverse():
    a = te.placeholder((256, 2), "int8", name="A")
    p = te.compute((256, 1), lambda i, j: te.pack_int4(a[i, 2 * j], a[i, 2 * j + 1]), name="P")
    u = te.compute((256, 2), lambda i, j: te.unpack_int4(p, i, j), name="U")
    pairs = np.stack(np.meshgrid(np.arange(-8, 8), np.arange(-8, 8)), -1).reshape(256, 2).astype("int8")
    out = np.zeros((256, 2), "int8")
    run(te.create_prim_func([a, u]), pairs, out)
    np.testing.assert_array_equal(out, pairs)


def test_a_product_with_packed_weights():
    m, k, n = 8, 32, 24
    x, w = te.placeholder((m, k), "int8", name="X"), te.placeholder((n, k // 2), "uint8", name="W")
    r = te.reduce_axis((0, k), name="r")
    y = te.compute((m, n), lambda i, j: te.sum(x[i, r].astype("int32") * te.unpack_int4(w, j, r).astype("int32"),
                                               axis=r), name="Y")
    random = np.random.default_rng(1)
    a, weights = random.integers(-128, 128, (m, k), "int8"), random.integers(-8, 8, (n, k), "int8")
    packed = (weights[:, ::2] & 15).astype("uint8") | (weights[:, 1::2] & 15).astype("uint8") << 4
    out = tw.nd.empty((m, n), "int32")
    tw.compile(te.create_prim_func([x, w, y]))(tw.nd.array(a), tw.nd.array(packed), out)
    np.testing.assert_array_equal(out.numpy(), a.astype("int64") @ weights.T.astype("int64"))


def test_what_is_refused():
    with pytest.raises(IRError, match="int4.*not a dtype(.|\n)*te.unpack_int4"):
        te.placeholder((4,), "int4")
    with pytest.raises(IRError, match="the elements are int32"):
        te.unpack_int4(te.placeholder((4,), "int32"), 0)
    with pytest.raises(IRError, match="takes the indices"):
        te.unpack_int4(te.placeholder((4,), "uint8"))


def test_vectors_are_packed_lane_by_lane():
    buffers = [decl_buffer((8,), dtype, name) for dtype, name in (("int8", "low"), ("int32", "high"), ("uint8", "out"))]
    low, high, out = buffers
    params = [Var(b.name, "handle") for b in buffers]
    body = out.vstore(0, te.pack_int4(low.vload(0, "int8x8"), high.vload(0, "int32x8")))
    func = PrimFunc(tuple(params), body, dict(zip(params, buffers)), {"global_symbol": "packs"})
    a, b = np.arange(-8, 0, dtype="int8"), np.arange(-4, 4, dtype="int32")
    for execute in (tw.build(func), lambda *args: run(func, *args)):
        got = np.zeros(8, "uint8")
        execute(a, b, got)
        np.testing.assert_array_equal(got, (a & 15) | (b & 15) << 4)


def test_only_integers_are_packed():
    with pytest.raises(IRError, match="pack_int4: x is float32, not an integer"):
        te.pack_int4(1, Var("x", "float32"))
    with pytest.raises(IRError, match="pack_int4: x is bool, not an integer"):
        te.pack_int4(Var("x", "bool"), 1)


@pytest.mark.parametrize("dtype", dt.SMALL_FLOATS)
def test_constants_are_rounded_once_up_to_the_largest(dtype):
    form, kind = dt.SMALL_FLOATS[dtype], dt.numpy_dtype(dtype).type
    assert form.largest == float(ml_dtypes.finfo(kind).max)
    step = form.largest - float(np.nextafter(kind(form.largest), kind(0)))
    for x in (form.largest, form.largest + step * 0.49, form.largest + step, form.largest / 3, -form.largest):
        np.testing.assert_equal(form.nearest(x), float(np.float64(x).astype(kind)))
