"""Whole flat functions: loops, guards, masks, gathers, allocations, parallel loops, calls."""
from __future__ import annotations

import ctypes
import mmap
import re

import numpy as np
import pytest
from kernels import HOST, Cpu, flat, ramp, run, vector, view

import tilewright as tw
from tilewright.codegen.llvm import assembly, compile_object, llvm_ir
from tilewright.lowering.pipeline import lower, split
from tilewright.script import from_source
from tilewright.support.errors import CodegenError
from tilewright.tir.arithmetic import if_then_else, intrinsic, select
from tilewright.tir.buffer import Buffer, Load, decl_buffer
from tilewright.tir.conversion import cast
from tilewright.tir.expr import Binary, Broadcast, Expr, FloatImm, IntImm, Let, Ramp, StringImm, Var
from tilewright.tir.stmt import Allocate, Evaluate, For, IfThenElse, LetStmt, Store, While, loop, seq


def lane_mask(base: object, n: object, lanes: int) -> Binary:
    """base + lane < n, per lane."""
    return Binary("lt", ramp(base, lanes), Broadcast(IntImm(n) if isinstance(n, int) else n, lanes))


@pytest.mark.parametrize("kind", ("serial", "parallel", "unroll"))
def test_matmul(kind: str) -> None:
    m, k, n = 5, 7, 9
    a, b, c = decl_buffer((m, k), name="A"), decl_buffer((k, n), name="B"), decl_buffer((m, n), name="C")
    fa, fb, fc = view(a), view(b), view(c)
    i, j, kk = Var("i"), Var("j"), Var("k")
    at = i * n + j
    body = loop(
        i,
        m,
        loop(
            j,
            n,
            seq(
                [
                    Store(fc, FloatImm(0.0), (at,)),
                    loop(kk, k, Store(fc, fc[at] + fa[i * k + kk] * fb[kk * n + j], (at,))),
                ]
            ),
        ),
        kind,
    )
    x, y = np.random.rand(m, k).astype("f4"), np.random.rand(k, n).astype("f4")
    out = np.zeros((m, n), "f4")
    run(flat("mm", [a, b, c], body), x, y, out)
    np.testing.assert_allclose(out, x @ y, rtol=1e-6)


@pytest.mark.parametrize("dtype", ("float32", "float64", "int8", "float16", "bool", "bfloat16"))
@pytest.mark.parametrize("cpu", ("", "haswell"))
@pytest.mark.parametrize("size", (37, 32, 1))
def test_masked_tail_of_a_symbolic_loop(dtype: str, cpu: str, size: int) -> None:
    n, i, lanes = Var("n"), Var("i"), 16
    a, b = vector("A", n, dtype), vector("B", n, dtype)
    mask = lane_mask(i * lanes, n, lanes)
    at = ramp(i * lanes, lanes)
    body = loop(i, (n + (lanes - 1)) // lanes, Store(b, Load(a, (at,), mask), (at,), mask))
    x = (np.arange(size) % 2).astype("bool" if dtype == "bool" else "float32")
    from kernels import numpy_of
    x = x.astype(numpy_of(dtype))
    room = np.zeros(size + 32, x.dtype)
    room[size:] = 1
    run(
        flat("copy", [a, b], body),
        x,
        room[:size],
        target=Cpu(cpu, triple=None if not cpu else "x86_64-unknown-linux-gnu"),
    )
    np.testing.assert_array_equal(room, np.concatenate([x, np.ones(32, x.dtype)]))


@pytest.mark.parametrize("stride", (-3, -1, 0, 1, 2, 5))
@pytest.mark.parametrize("masked", (False, True))
def test_strided_vectors(stride: int, masked: bool) -> None:
    lanes = 8
    a, b = vector("A", 64), vector("B", lanes)
    base = 26
    mask = lane_mask(0, 5, lanes) if masked else None
    index = Ramp(IntImm(base), IntImm(stride), lanes) if stride else Broadcast(IntImm(base), lanes)
    x, out = np.random.rand(64).astype("f4"), np.full(lanes, 7, "f4")
    want = x[base + stride * np.arange(lanes)]
    run(flat("take", [a, b], Store(b, Load(a, (index,), mask), (ramp(0, lanes),))), x, out)
    np.testing.assert_array_equal(out, np.where(np.arange(lanes) < 5, want, 0) if masked else want)
    if stride:
        y, target = np.random.rand(lanes).astype("f4"), np.full(64, 7, "f4")
        run(flat("put", [b, a], Store(a, Load(b, (ramp(0, lanes),)), (index,), mask)), y, target)
        expected = np.full(64, 7, "f4")
        for lane in range(5 if masked else lanes):
            expected[base + stride * lane] = y[lane]
        np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("dtype", ["int8", "float16", "float32", "float64"])
@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 64])
@pytest.mark.parametrize("stride", [2, 3, 4, 5])
def test_lanes_chosen_out_of_whole_vectors(stride: int, lanes: int, dtype: str) -> None:
    """Nothing behind the last lane is read: it is the last element of memory that may be."""
    size = mmap.PAGESIZE // np.dtype(dtype).itemsize
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    behind = ctypes.c_char.from_buffer(pages, mmap.PAGESIZE)
    assert ctypes.CDLL(None).mprotect(ctypes.byref(behind), mmap.PAGESIZE, 0) == 0
    a, b = vector("A", size, dtype), vector("B", lanes, dtype)
    x = np.frombuffer(pages, dtype, size)
    x[:] = np.random.default_rng(0).integers(0, 100, size)
    base, out = size - 1 - (lanes - 1) * stride, np.zeros(lanes, dtype)
    index = Ramp(IntImm(base), IntImm(stride), lanes)
    run(flat("take", [a, b], Store(b, Load(a, (index,)), (ramp(0, lanes),))), x, out)
    np.testing.assert_array_equal(out, x[base::stride])


def test_gather_through_a_vector_of_indices() -> None:
    a, p, b = vector("A", 32), vector("P", 16, "int32"), vector("B", 16)
    x, order, out = (
        np.random.rand(32).astype("f4"),
        np.random.permutation(32)[:16].astype("i4"),
        np.zeros(16, "f4"),
    )
    run(
        flat("gather", [a, p, b], Store(b, Load(a, (Load(p, (ramp(0, 16),)),)), (ramp(0, 16),))),
        x,
        order,
        out,
    )
    np.testing.assert_array_equal(out, x[order])


def test_padding_reads_only_inside() -> None:
    """if_then_else guards its loads, scalar and per lane."""
    a, b, c = vector("A", 8), vector("B", 16), vector("C", 16)
    i = Var("i")
    inside = Binary("and", Binary("ge", i, IntImm(4)), Binary("lt", i, IntImm(12)))
    lane = ramp(0, 16)
    inside_v = Binary(
        "and", Binary("ge", lane, Broadcast(IntImm(4), 16)), Binary("lt", lane, Broadcast(IntImm(12), 16))
    )
    x, out, out_v = np.random.rand(8).astype("f4"), np.ones(16, "f4"), np.ones(16, "f4")
    body = seq(
        [
            loop(i, 16, Store(b, if_then_else(inside, a[i - 4], 0.0), (i,))),
            Store(
                c,
                if_then_else(
                    inside_v, Load(a, (Ramp(IntImm(-4), IntImm(1), 16),)), Broadcast(FloatImm(0.0), 16)
                ),
                (lane,),
            ),
        ]
    )
    run(flat("pad", [a, b, c], body), x, out, out_v)
    np.testing.assert_array_equal(out, np.pad(x, 4))
    np.testing.assert_array_equal(out_v, np.pad(x, 4))


def test_local_buffers_small_large_and_symbolic() -> None:
    n, i, j, k = Var("n"), Var("i"), Var("j"), Var("k")
    a, b = vector("A", n), vector("B", n)
    small, large, symbolic = vector("small", 4), vector("large", 40000), vector("work", n)
    body = Allocate(symbolic, Allocate(large, Allocate(small, seq([
        loop(i, n, Store(symbolic, a[i] + 1.0, (i,))),
        loop(j, n, Store(large, symbolic[j] * 2.0, (j,))),
        Store(small, FloatImm(0.5), (IntImm(3),)),
        loop(k, n, Store(b, large[k] + small[3], (k,))),
    ]))))
    x, out = np.random.rand(100).astype("f4"), np.zeros(100, "f4")
    func = flat("locals", [a, b], body)
    run(func, x, out)
    np.testing.assert_allclose(out, (x + 1) * 2 + 0.5, rtol=1e-6)
    text = llvm_ir([func], HOST)
    assert text.count("call noalias align 64 ptr @tw_alloc") == 2 and text.count("call void @tw_free") == 2


def test_parallel_captures_loop_variables_scalars_and_buffers() -> None:
    scale, n = Var("scale", "float32"), Var("n")
    a, b = vector("A", n * 4), vector("B", n * 4)
    i, p, t, w = Var("i"), Var("p"), Var("t", "float32"), vector("w", 4)
    inner = Allocate(
        w, seq([Store(w, a[p * 4 + i] * t, (IntImm(1),)), Store(b, w[1] + cast("float32", i), (p * 4 + i,))])
    )
    body = loop(i, 4, LetStmt(t, scale * 3.0, loop(p, n, inner, "parallel")))
    func = flat("par", [a, b], body, (n, scale))
    x, out = np.random.rand(40).astype("f4"), np.zeros(40, "f4")
    run(func, x, out, 10, 0.5)
    np.testing.assert_allclose(out, x * 1.5 + np.arange(40) % 4, rtol=1e-6)
    assert "@par__par0(" in llvm_ir(split(func), HOST)


def test_nested_parallel_runs_serially_and_min_is_an_offset() -> None:
    a, i, j = vector("A", 64, "int32"), Var("i"), Var("j")
    body = For(
        i,
        IntImm(2),
        IntImm(4),
        "parallel",
        For(j, i, IntImm(3), "parallel", Store(a, i * 10 + j, (i * 8 + j - i,))),
    )
    out = np.zeros(64, "i4")
    run(flat("nest", [a], body), out)
    want = np.zeros(64, "i4")
    for x in range(2, 6):
        for y in range(x, x + 3):
            want[x * 8 + y - x] = x * 10 + y
    np.testing.assert_array_equal(out, want)


def test_scalars_of_every_type_let_and_while() -> None:
    values = [Var("a", "int8"), Var("b", "uint16"), Var("c", "int64"), Var("d", "float64"), Var("e", "bool")]
    out, i, v = vector("out", 8, "float64"), Var("i"), Var("v", "float64")
    count = vector("count", 1, "int32")
    body = seq([
        *(Store(out, cast("float64", x), (IntImm(k),)) for k, x in enumerate(values)),
        Store(out, Let(v, values[3] * 2.0, v * v), (IntImm(5),)),
        Store(count, IntImm(0), (IntImm(0),)),
        While(count[0] < 5, Store(count, count[0] + 1, (IntImm(0),))),
        Store(out, cast("float64", count[0]), (IntImm(6),)),
        IfThenElse(intrinsic("likely", values[4]), Store(out, FloatImm(1.0, "float64"), (IntImm(7),)),
                   Store(out, FloatImm(2.0, "float64"), (IntImm(7),))),
        loop(i, 0, Store(out, FloatImm(9.0, "float64"), (IntImm(7),))),
    ])
    result = np.zeros(8)
    run(
        flat("scalars", [out, count], body, tuple(values)),
        result,
        np.zeros(1, "i4"),
        -3,
        65535,
        -(2**40),
        1.5,
        False,
    )
    np.testing.assert_array_equal(result, [-3, 65535, -2.0**40, 1.5, 0, 9, 5, 2])


def test_short_circuit_guards_a_load() -> None:
    a, b, i = vector("A", 4), vector("B", 8, "bool"), Var("i")
    x, out = np.array([1, -1, 1, -1], "f4"), np.ones(8, "bool")
    body = loop(i, 8, Store(b, Binary("and", i < 4, a[i] > 0.0), (i,)))
    run(flat("guard", [a, b], body), x, out)
    np.testing.assert_array_equal(out, [1, 0, 1, 0, 0, 0, 0, 0])


def test_division_of_negative_indices_floors() -> None:
    a, b, i = vector("A", 16, "int32"), vector("B", 16, "int32"), Var("i")
    shifted = i - 8
    body = loop(
        i,
        16,
        seq(
            [
                Store(a, shifted // 3, (shifted // 1 + 8,)),
                Store(b, i, (((shifted // 4) + 2) * 4 + shifted % 4,)),
            ]
        ),
    )
    x, y = np.zeros(16, "i4"), np.zeros(16, "i4")
    run(flat("div", [a, b], body), x, y)
    np.testing.assert_array_equal(x, (np.arange(16) - 8) // 3)
    np.testing.assert_array_equal(y, np.arange(16))


def test_extern_c_functions() -> None:
    a, i = vector("A", 8, "float64"), Var("i")
    call = intrinsic("call_extern", StringImm("cbrt"), a[i], dtype="float64")
    x = np.linspace(-2, 2, 8)
    want = np.cbrt(x)
    run(flat("ext", [a], loop(i, 8, Store(a, call, (i,)))), x)
    np.testing.assert_allclose(x, want, rtol=1e-15)
    fill = intrinsic("call_extern", StringImm("memset"), a.data, 0, cast("int64", 64), dtype="handle")
    run(flat("clear", [a], Evaluate(fill)), x)
    assert not x.any()


def test_prefetch_and_assume_change_nothing() -> None:
    a, i, n = vector("A", Var("m")), Var("i"), Var("n")
    body = loop(i, n, seq([Evaluate(intrinsic("assume", n > 0)), Evaluate(intrinsic("prefetch", a[i + 64])),
                           Store(a, a[i] + 1.0, (i,))]))
    x = np.zeros(5, "f4")
    run(flat("hint", [a], body, (n,)), x, 5)
    np.testing.assert_array_equal(x, np.ones(5))


def test_refusals_name_the_function_and_the_way_out() -> None:
    a, i = vector("A", 8), Var("i")
    with pytest.raises(CodegenError, match="bound to threadIdx.x"):
        llvm_ir(
            [
                flat(
                    "f",
                    [a],
                    For(
                        i,
                        IntImm(0),
                        IntImm(8),
                        "thread_binding",
                        Store(a, FloatImm(0.0), (i,)),
                        "threadIdx.x",
                    ),
                )
            ],
            HOST,
        )
    with pytest.raises(CodegenError, match="neither an argument nor allocated"):
        llvm_ir([flat("f", [a], Store(vector("B", 8), FloatImm(0.0), (IntImm(0),)))], HOST)
    two = decl_buffer((4, 2), name="A")
    with pytest.raises(CodegenError, match="2 indices"):
        llvm_ir([flat("f", [two], Store(two, FloatImm(0.0), (IntImm(0), IntImm(0))))], HOST)
    with pytest.raises(CodegenError, match="cannot be checked"):
        llvm_ir([flat("f", [vector("A", Var("n") << 1)], Evaluate(IntImm(0)))], HOST)


def test_selects_on_vectors_and_reassociation() -> None:
    a, b, i = vector("A", 64), vector("B", 1), Var("i")
    body = seq([Store(b, FloatImm(0.0), (IntImm(0),)),
                loop(i, 64, Store(b, b[0] + select(a[i] > 0.5, a[i], 0.0), (IntImm(0),)), reassociate=1)])
    func = flat("total", [a, b], body)
    assert "fadd reassoc nsz contract" in llvm_ir([func], HOST)
    x, out = np.random.rand(64).astype("f4"), np.zeros(1, "f4")
    run(func, x, out)
    np.testing.assert_allclose(out[0], x[x > 0.5].sum(), rtol=1e-5)


def micro_kernel(n: int) -> object:
    """C[8, 32] += A[8, n] * B[n, 32] in 16 registers of 16 floats."""
    a, b, c = decl_buffer((8, n), name="A"), decl_buffer((n, 32), name="B"), decl_buffer((8, 32), name="C")
    tile, k, i0, i1, i2 = vector("tile", 256), Var("k"), Var("i0"), Var("i1"), Var("i2")
    def at(x: object) -> Ramp:
        return ramp(x * 32, 32)
    update = Store(tile, tile[at(i1)] + Broadcast(view(a)[i1 * n + k], 32) * view(b)[at(k)], (at(i1),))
    return flat("micro", [a, b, c], Allocate(tile, seq([
        loop(i0, 8, Store(tile, Broadcast(FloatImm(0.0), 32), (at(i0),)), "unroll"),
        loop(k, n, loop(i1, 8, update, "unroll")),
        loop(i2, 8, Store(view(c), tile[at(i2)], (at(i2),)), "unroll")])))


def test_register_tile_lives_in_registers() -> None:
    func = micro_kernel(64)
    x, y, out = (
        np.random.rand(8, 64).astype("f4"),
        np.random.rand(64, 32).astype("f4"),
        np.zeros((8, 32), "f4"),
    )
    run(func, x, y, out)
    np.testing.assert_allclose(out, x @ y, rtol=1e-5)
    text = assembly([func], Cpu("znver4", triple="x86_64-unknown-linux-gnu"))
    body = text[text.index("micro__kernel:"):text.index("__tvm_ffi_micro:")]
    assert not re.search(r"\(%rsp\)", body), "an accumulator was spilled"
    assert len(re.findall(r"vfmadd\d+ps.*zmm", body)) % 16 == 0 and "vmulps" not in body


def test_same_input_gives_the_same_text() -> None:
    assert llvm_ir([micro_kernel(64)], HOST) == llvm_ir([micro_kernel(64)], HOST)


def test_buffer_of_another_name_on_the_same_data() -> None:
    a = decl_buffer((2, 3), name="A")
    other = Buffer("A_flat", (IntImm(6),), "float32", data=a.data)
    x = np.zeros((2, 3), "f4")
    run(flat("alias", [a], Store(other, FloatImm(4.0), (IntImm(5),))), x)
    assert x[1, 2] == 4


def test_zeros_keep_their_sign() -> None:
    """The text of a constant must not be remembered by equality: 0.0 == -0.0."""
    a = vector("A", 2)
    x = np.ones(2, "f4")
    run(
        flat(
            "zeros", [a], seq([Store(a, FloatImm(0.0), (IntImm(0),)), Store(a, FloatImm(-0.0), (IntImm(1),))])
        ),
        x,
    )
    assert np.signbit(x).tolist() == [False, True]


def test_code_that_the_vectoriser_breaks_is_made_again() -> None:
    """LLVM 22 leaves a shuffle before its operands in this function, and aborts on it, unless that is noticed."""
    a, b, d = vector("A", 192), vector("B", 3), vector("D", 64)
    c, t = vector("C", 80), vector("T", 64)
    i, k, o, m, o2, m2, f, w = (Var(x) for x in ("i", "k", "o", "m", "o2", "m2", "f", "w"))
    zero = FloatImm(0.0)

    def update(at: Expr, source: Expr) -> Store:
        return Store(c, c[at] + a[source] * b[k], (at,))
    z, z2, z3 = Var("z"), Var("z2"), Var("z3")
    clear = [loop(z, 4, Store(c, zero, (z * 20 + i,))),
             loop(z2, 4, loop(z3, 3, Store(c, zero, (z3 * 20 + z2 * 4 + i,))), min=1)]
    inner = [loop(o, 4, update(o * 20 + i, o * 60 + i * 3 + k)),
             loop(m, 4, loop(o2, 3, update(o2 * 20 + m * 4 + i, o2 * 60 + m * 12 + i * 3 + k)), min=1)]
    at = m2 * 16 + f
    body = Allocate(c, Allocate(t, seq([
        loop(i, 4, seq([*clear, loop(k, 3, seq(inner))])),
        loop(f, 16, loop(m2, 4, Store(t, c[at] * 2.0 + 1.0, (at,)))),
        loop(w, 32, seq([Store(d, t[w * 2], (w * 2,)), Store(d, t[w * 2 + 1], (w * 2 + 1,))])),
    ])))
    x, y, out = np.random.rand(64, 3).astype("f4"), np.random.rand(3).astype("f4"), np.zeros(64, "f4")
    func = flat("broken", [a, b, d], body)
    run(func, x.ravel(), y, out)
    np.testing.assert_allclose(out, x @ y * 2 + 1, rtol=1e-5)


@pytest.mark.parametrize("arch", ("aarch64", "riscv64", "x86_64"))
def test_other_machines_get_an_object(arch: str) -> None:
    triple = f"{arch}-unknown-linux-gnu"
    a, b, i = vector("A", 64, "float16"), vector("B", 64), Var("i")
    at = ramp(i * 4, 4)
    value = intrinsic("tanh", cast("float32x4", Load(a, (at,)))) + intrinsic("sin", Load(b, (at,)))
    body = loop(i, 16, Store(b, value, (at,), lane_mask(i * 4, 61, 4)), "parallel")
    target = Cpu("generic-rv64" if "riscv" in arch else "", "+m,+f,+d,+v" if "riscv" in arch else "", triple)
    assert compile_object(split(flat("cross", [a, b], body)), target)[:4] == b"\x7fELF"


def test_loops_that_divide_by_a_variable_are_not_made_vector_loops():
    """LLVM 22 gathers from an undefined address where a uniform division stands under a condition."""
    source = '''@T.prim_func
def f(a: T.handle, b: T.handle):
    m = T.int32()
    A = T.match_buffer(a, (m,), "int64")
    B = T.match_buffer(b, (m,), "int64")
    for k in range(m):
        if k % 3 == 0:
            B[k] = A[(k * 2) % DIVISOR]
'''
    hint = "llvm.loop.vectorize.enable"
    assert hint in llvm_ir([lower(from_source(source.replace("DIVISOR", "m")))], HOST)
    assert hint not in llvm_ir([lower(from_source(source.replace("DIVISOR", "7")))], HOST)
    f = tw.build(from_source(source.replace("DIVISOR", "m")))
    for m in (1, 2, 7, 20, 33):
        a, b = np.arange(m, dtype="int64") ** 2, np.full(m, -1, "int64")
        f(a, b)
        np.testing.assert_array_equal(b, np.where(np.arange(m) % 3 == 0, a[np.arange(m) * 2 % m], -1))


@pytest.mark.parametrize("dtype, size, type_", [("float32", 16, "float"), ("int8", 24, "i8"), ("float64", 5, "double")])
def test_a_small_buffer_takes_no_more_of_the_stack_than_it_needs(dtype, size, type_) -> None:
    func = from_source(f"""@T.prim_func
def copy(A: T.Buffer(({size},), "{dtype}"), B: T.Buffer(({size},), "{dtype}")):
    S = T.alloc_buffer(({size},), "{dtype}")
    for i in range({size}):
        with T.block("S"):
            v = T.axis.spatial({size}, i)
            S[v] = A[v]
    for i in range({size}):
        with T.block("B"):
            v = T.axis.spatial({size}, i)
            B[v] = S[{size - 1} - v]
""")
    assert f"alloca [{size} x {type_}], align 64" in llvm_ir([lower(func)], HOST)
