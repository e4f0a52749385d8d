"""LLVM's intrinsics: built, printed, verified, interpreted, compiled; vectors whose bits are read as other lanes."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te, tir
from tilewright.support.errors import CodegenError, InterpreterError, IRError, TilewrightError
from tilewright.tir import Broadcast, Evaluate, IntImm, PrimFunc, Store, Var, cast, decl_buffer, run, seq, verify
from tilewright.tir.expr import Ramp
from tilewright.tir.llvm_intrinsics import TABLE, find

HOST = tw.Target("llvm")


def flat(name, buffers, body):
    params = [Var(f"{b.name}_handle", "handle") for b in buffers]
    return PrimFunc(tuple(params), body, dict(zip(params, buffers)), {"global_symbol": name})


def vector_store(buffer, value, lanes):
    return Store(buffer, value, (Ramp(IntImm(0), IntImm(1), lanes),))


def dot_function(name, result, groups, a_type, b_type):
    """C = intrinsic(C, A, B) on whole vectors."""
    lanes = tw.tir.dtype.lanes_of(result)
    c = decl_buffer((lanes,), result.partition("x")[0], "C")
    a, b = (decl_buffer((lanes * groups,), t, n) for n, t in (("A", a_type), ("B", b_type)))
    loads = [c.vload(0, result), a.vload(0, f"{a_type}x{lanes * groups}"), b.vload(0, f"{b_type}x{lanes * groups}")]
    return flat("dot", [c, a, b], vector_store(c, te.call_llvm_pure_intrin(result, name, *loads), lanes))


def extremes(random, dtype, size):
    low, high = tw.tir.dtype.integer_range(dtype)
    return random.choice(np.array([low, high, low + 1, 0, 1, 17], dtype), size)


DOTS = [(f"llvm.x86.avx512.{op}.{bits}", f"int32x{bits // 32}", groups, a, b) for bits in (128, 256, 512)
        for op, groups, a, b in (("vpdpbusd", 4, "uint8", "int8"), ("vpdpbusds", 4, "uint8", "int8"),
                                 ("vpdpwssd", 2, "int16", "int16"), ("vpdpwssds", 2, "int16", "int16"))]


@pytest.mark.parametrize("name, result, groups, a_type, b_type", DOTS)
def test_integer_dot_products(name, result, groups, a_type, b_type):
    """The interpreter computes what NumPy does, and the CPU, where it has the instruction, the same."""
    func = dot_function(name, result, groups, a_type, b_type)
    verify(func, "flat")
    random, lanes = np.random.default_rng(0), tw.tir.dtype.lanes_of(result)
    for _ in range(20):
        a, b = extremes(random, a_type, lanes * groups), extremes(random, b_type, lanes * groups)
        c = extremes(random, "int32", lanes)
        exact = c.astype("int64") + (a.astype("int64") * b.astype("int64")).reshape(-1, groups).sum(1)
        saturates = name.split(".")[3] in ("vpdpbusds", "vpdpwssds")
        want = np.clip(exact, -2**31, 2**31 - 1) if saturates else exact.astype("int32")
        ours = c.copy()
        run(func, ours, a, b)
        np.testing.assert_array_equal(ours, want)
        if any(need <= HOST.feature_set for need in find(name).needs):
            got = c.copy()
            built(func)(got, a, b)
            np.testing.assert_array_equal(got, want)


_built: dict[int, tuple[object, object]] = {}


def built(func):
    if id(func) not in _built:
        _built[id(func)] = (tw.build(func), func)
    return _built[id(func)][0]


@pytest.mark.parametrize("bits", [128, 256, 512])
def test_bfloat16_dot_products(bits):
    """Near the sum in float64: two roundings of float32 at most, and no more than the flushing of tiny numbers."""
    lanes = bits // 32
    func = dot_function(f"llvm.x86.avx512bf16.dpbf16ps.{bits}", f"float32x{lanes}", 2, "bfloat16", "bfloat16")
    random = np.random.default_rng(1)
    a, b = (random.standard_normal(2 * lanes).astype(tw.tir.dtype.numpy_dtype("bfloat16")) for _ in "ab")
    c = random.standard_normal(lanes).astype("float32")
    products = (a.astype("float64") * b.astype("float64")).reshape(-1, 2)
    want, size = c + products.sum(1), np.abs(c) + np.abs(products).sum(1)
    results = [c.copy()]
    run(func, results[0], a, b)
    if any(need <= HOST.feature_set for need in find(f"llvm.x86.avx512bf16.dpbf16ps.{bits}").needs):
        results.append(c.copy())
        built(func)(results[1], a, b)
    for got in results:
        assert np.all(np.abs(got - want) <= 3 * 2.0**-24 * size)


def test_lanes_are_read_as_others():
    """Four bytes as an int32, sixteen copies of it, and these as 64 bytes again: what a dot product broadcasts."""
    a, b = decl_buffer((4,), "uint8", "A"), decl_buffer((64,), "uint8", "B")
    word = te.reinterpret("int32", a.vload(0, "uint8x4"))
    value = te.reinterpret("uint8x64", cast("int32x16", word))
    assert isinstance(value.args[0], Broadcast)
    func = flat("spread", [a, b], vector_store(b, value, 64))
    verify(func, "flat")
    assert 'T.reinterpret("uint8x64", T.Broadcast(T.reinterpret("int32", A[0:4]), 16))' in str(func)
    x = np.array([1, 2, 250, 4], "uint8")
    for call in (lambda f, *args: run(f, *args), lambda f, *args: tw.build(f)(*args)):
        out = np.zeros(64, "uint8")
        call(func, x, out)
        np.testing.assert_array_equal(out, np.tile(x, 16))


@pytest.mark.parametrize("source, target", [("float32x2", "float64"), ("bfloat16x2", "uint32"), ("int64", "float16x4"),
                                            ("float8_e5m2x4", "float32"), ("float16x8", "bfloat16x8")])
def test_floats_are_read_as_others(source, target):
    a = decl_buffer((8,), source.partition("x")[0], "A")
    n, m = (tw.tir.dtype.lanes_of(t) for t in (source, target))
    b = decl_buffer((8,), tw.tir.dtype.element_of(target), "B")
    at = Ramp(IntImm(0), IntImm(1), m) if m > 1 else IntImm(0)
    func = flat("again", [a, b], Store(b, te.reinterpret(target, a.vload(0, source)), (at,)))
    values = np.arange(1, 9).astype(tw.tir.dtype.numpy_dtype(a.dtype))
    want = values[:n].view(tw.tir.dtype.numpy_dtype(b.dtype))
    for call in (lambda f, *args: run(f, *args), lambda f, *args: tw.build(f)(*args)):
        out = np.zeros(8, tw.tir.dtype.numpy_dtype(b.dtype))
        call(func, values, out)
        np.testing.assert_array_equal(out[:m].view("uint8"), want.view("uint8"))


def test_names_ids_and_signature_counts():
    x = Var("x", "int32")
    by_id = te.call_llvm_pure_intrin("int32", tir.llvm_lookup_intrinsic_id("llvm.ctpop"), tir.const(1, "uint32"), x)
    by_name = tir.call_llvm_pure_intrin("int32", "llvm.ctpop", x)
    assert str(by_id) == str(by_name) == 'T.call_llvm_pure_intrin("int32", "llvm.ctpop", x)'
    assert tir.structural_equal(by_id, by_name)
    assert [tir.evaluate(by_name, {x: v}) for v in (0, 7, -1)] == [0, 3, 32]
    for wrong in ("ctpop", 10**6, 0, None):
        with pytest.raises(IRError, match="is no LLVM intrinsic"):
            te.call_llvm_pure_intrin("int32", wrong, x)


def test_in_a_tensor_expression_with_and_without_lanes():
    """The name fixes the lanes, so a vectorised loop runs it one by one; one name serves two types in a module."""
    a = te.placeholder((32,), "int32", name="A")
    b = te.compute((32,), lambda i: te.call_llvm_pure_intrin("int32", "llvm.ctpop", a[i]) + te.call_llvm_pure_intrin(
        "int64", "llvm.ctpop", a[i].astype("int64")).astype("int32"), name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(s[b].split(b.op.axis[0], factor=8)[1])
    x = np.arange(32, dtype="int32") * 977
    out = np.zeros(32, "int32")
    tw.build(s, [a, b])(x, out)
    np.testing.assert_array_equal(out, [2 * int(v).bit_count() for v in x])


def test_two_vectors_are_interleaved():
    a, b, c = (decl_buffer((n,), "int8", name) for name, n in (("A", 16), ("B", 16), ("C", 32)))
    value = te.call_llvm_pure_intrin("int8x32", "llvm.vector.interleave2", a.vload(0, "int8x16"), b.vload(0, "int8x16"))
    func = flat("zip", [a, b, c], vector_store(c, value, 32))
    x, y = np.arange(16, dtype="int8"), -np.arange(16, dtype="int8")
    for call in (lambda f, *args: run(f, *args), lambda f, *args: tw.build(f)(*args)):
        out = np.zeros(32, "int8")
        call(func, x, y, out)
        np.testing.assert_array_equal(out, np.stack([x, y], 1).ravel())


def test_an_effect_is_kept():
    a = decl_buffer((4,), "int32", "A")
    call = te.call_llvm_intrin("int32", "llvm.ctpop", a[0])
    func = flat("kept", [a], seq([Evaluate(call), Store(a, call, (IntImm(1),))]))
    x = np.array([7, 0, 0, 0], "int32")
    run(func, x)
    assert x[1] == 3


# ---- what is missing

def function_of(name, dtype="int32", count=1):
    a = decl_buffer((4,), dtype, "A")
    return flat("f", [a], Store(a, te.call_llvm_pure_intrin(dtype, name, *[a[0]] * count), (IntImm(0),)))


def test_an_unknown_intrinsic_is_named():
    for call in (lambda f: run(f, np.zeros(4, "int32")), tw.build):
        with pytest.raises(TilewrightError, match="llvm.no.such.thing"):
            call(function_of("llvm.no.such.thing"))
    with pytest.raises(InterpreterError, match="does not know what llvm.x86.rdtsc computes"):
        run(function_of("llvm.x86.rdtsc"), np.zeros(4, "int32"))


def test_wrong_arguments_are_named():
    with pytest.raises(CodegenError, match="LLVM has no intrinsic|llvm.ctpop of"):
        tw.build(function_of("llvm.ctpop", count=2))


def test_an_intrinsic_that_the_cpu_lacks():
    """LLVM itself would abort the process."""
    func = dot_function("llvm.x86.avx512.vpdpbusd.512", "int32x16", 4, "uint8", "int8")
    with pytest.raises(CodegenError, match="needs a CPU with avx512f?.*vnni"):
        tw.build(func, target="llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=haswell")


def test_registered_intrinsics():
    try:
        tir.register_llvm_intrinsic("llvm.bitreverse")
        tw.build(function_of("llvm.bitreverse"))
        with pytest.raises(InterpreterError, match="llvm.bitreverse"):
            run(function_of("llvm.bitreverse"), np.zeros(4, "int32"))
        tir.register_llvm_intrinsic("llvm.bitreverse", (), lambda kind, args: args[0] * 0)
        run(function_of("llvm.bitreverse"), np.zeros(4, "int32"))
    finally:
        TABLE.pop("llvm.bitreverse", None)


def test_sizes_must_agree():
    with pytest.raises(TilewrightError, match="int8x4 and int64 have different sizes"):
        te.reinterpret("int64", decl_buffer((4,), "int8").vload(0, "int8x4"))
