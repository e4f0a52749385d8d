"""Indices of every type and of several lanes, in functions whose index arithmetic is 64 bits wide, and in others."""
from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.lowering import lower
from tilewright.script import from_source
from tilewright.tir import interp

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def agree(func, arrays, want):
    """The last of the arrays becomes `want` in the interpreter, in block form and in flat form, and in native code."""
    for run in (lambda *a: interp.run(func, *a), lambda *a: interp.run(lower(func), *a), tw.build(func)[func.name]):
        *inputs, out = [a.copy() for a in arrays]
        run(*inputs, out)
        np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_rows_of_a_table_are_found_by_indices_of_any_integer_type(dtype):
    most = min(np.iinfo(dtype).max, 299)
    f = from_source(f'''@T.prim_func
def rows(A: T.Buffer((50,), "{dtype}"), H: T.Buffer((300, 5), "int32"), B: T.Buffer((50, 5), "int32")):
    for i, j in T.grid(50, 5):
        B[i, j] = H[A[i], j]
''')
    at = np.linspace(0, most, 50).astype(dtype)
    table = np.arange(1500, dtype="int32").reshape(300, 5)
    agree(f, [at, table, np.zeros((50, 5), "int32")], table[at.astype(int)])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_a_histogram_counts_bytes_of_any_integer_type(dtype):
    f = from_source(f'''@T.prim_func
def count(A: T.Buffer((60,), "{dtype}"), H: T.Buffer((128,), "int32")):
    for i in range(60):
        H[A[i]] = H[A[i]] + 1
''')
    data = (np.arange(60) * 7 % 128).astype(dtype)
    agree(f, [data, np.zeros(128, "int32")], np.bincount(data.astype(int), minlength=128))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_te_gathers_by_indices_of_any_integer_type(dtype):
    n = te.var("n")
    at, table = te.placeholder((n,), dtype, "at"), te.placeholder((128, 3), "float32", "table")
    picked = te.compute((n, 3), lambda i, j: table[at[i], j], name="picked")
    x, t = (np.arange(9) * 14 % 128).astype(dtype), np.arange(384, dtype="float32").reshape(128, 3)
    agree(te.create_prim_func([at, table, picked]), [x, t, np.zeros((9, 3), "float32")], t[x.astype(int)])


@pytest.mark.parametrize("size", ["n", "5"])
@pytest.mark.parametrize("code, of", [
    ("B[i, 0:8] = A[i, 0:8]", lambda a: a),
    ("B[i, 0:8] = A[i, 0:8] + A[i, 0:8]", lambda a: a + a),
    ("B[i, 0:8] = A[i, 0:8] + T.Broadcast(A[i, 0], 8)", lambda a: a + a[:, :1]),
    ("B[i, 0:8] = A[i, T.Ramp(7, -1, 8)]", lambda a: a[:, ::-1]),
    ("B[i, 0:8] = A[i, T.Broadcast(3, 8)]", lambda a: a[:, 3:4] + 0 * a),
    ("B[i, 0:8] = A[i, T.Broadcast(i % 8, 8)]", lambda a: a[np.arange(5), np.arange(5) % 8][:, None] + 0 * a),
    ("B[i, 0:8] = T.Select(T.Ramp(i, 1, 8) < T.Broadcast(6, 8), A[i, 0:8], T.Broadcast(T.float32(0), 8))",
     lambda a: np.where(np.arange(5)[:, None] + np.arange(8) < 6, a, 0))])
def test_vectors_where_rows_have_a_symbolic_number(size, code, of):
    symbol = "    n = T.int32()\n" if size == "n" else ""
    f = from_source(f'''@T.prim_func
def lanes(a: T.handle, b: T.handle):
{symbol}    A = T.match_buffer(a, ({size}, 8), "float32")
    B = T.match_buffer(b, ({size}, 8), "float32")
    for i in range({size}):
        {code}
''')
    a = np.random.default_rng(0).random((5, 8), dtype="float32")
    agree(f, [a, np.zeros_like(a)], of(a))


def test_lanes_far_into_a_buffer_are_indexed_by_64_bits():
    f = from_source('''@T.prim_func
def far(a: T.handle, B: T.Buffer((8,), "float32")):
    A = T.match_buffer(a, (1073741824, 8), "float32")
    for i in range(1):
        B[0:8] = A[i + 1073741823, 0:8]
''')
    flat = str(lower(f))
    assert "T.int64" in flat and str(1073741823 * 8) in flat.replace("_", ""), flat


@pytest.mark.parametrize("compare, limit", [("<", 6_600_000), ("<=", 6_619_135), (">", 2**31 - 1), (">=", 2**31 - 1),
                                            ("==", 65537 * 32768 - 2**32), ("!=", 65537 * 32768 - 2**32)])
def test_conditions_of_blocks_are_exact(compare, limit):
    """Their sides leave int32: in it, some of them would compare the other way round."""
    i, j = np.ogrid[:40000, :2]
    f = from_source(f'''@T.prim_func
def some(n: T.int32, B: T.Buffer((40000, 2), "int32")):
    for i, j in T.grid(40000, 2):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            T.where(i * 65537 + j * 65535 {compare} n)
            B[v, w] = 1
''')
    assert "T.int64(65537)" in str(lower(f))              # LLVM may do right without, by chance
    out = np.zeros((40000, 2), "int32")
    tw.build(f)["some"](limit, out)
    want = eval(f"i * 65537 + j * 65535 {compare} {limit}", {"i": i, "j": j})
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("value, limit", [("(i >> 1) * 131072", 2**31 - 1),
                                          ("i * -30000 - j * 1200000000", -2**31 + 1)])
def test_conditions_that_leave_int32_by_shifts_and_differences(value, limit):
    i, j = np.ogrid[:40000, :2]
    f = from_source(f'''@T.prim_func
def some(n: T.int32, B: T.Buffer((40000, 2), "int32")):
    for i, j in T.grid(40000, 2):
        with T.block("B"):
            v, w = T.axis.remap("SS", [i, j])
            T.where({value} < n)
            B[v, w] = 1
''')
    assert "T.int64" in str(lower(f))
    out = np.zeros((40000, 2), "int32")
    tw.build(f)["some"](limit, out)
    np.testing.assert_array_equal(out, np.broadcast_to(eval(value, {"i": i, "j": j}) < limit, (40000, 2)))


def test_a_divisor_that_becomes_zero_in_a_copy_of_the_loop():
    f = from_source('''@T.prim_func
def by(A: T.Buffer((4, 3), "int32"), B: T.Buffer((4, 3), "int32")):
    for k in T.unroll(3):
        B[0, k] = A[0, k] // k
        B[1, k] = A[1, k] % k
        B[2, k] = T.truncdiv(A[2, k], k)
        B[3, k] = T.truncmod(A[3, k], k)
''')
    a = np.full((4, 3), -7, "int32")
    agree(f, [a, a], np.array([[0, -7, -4], [0, 0, 1], [0, -7, -3], [0, 0, -1]], "int32"))


def test_a_window_whose_place_is_data_that_changes():
    """The elements of S that are read are not those that X[0] said when they were written."""
    f = from_source('''@T.prim_func
def shifted(A: T.Buffer((4,), "int32"), X: T.Buffer((1,), "int32"), B: T.Buffer((3,), "int32")):
    S = T.alloc_buffer((16,), "int32", scope="local")
    for j in range(4):
        with T.block("S"):
            v = T.axis.spatial(4, j)
            S[X[0] + v] = A[v]
    with T.block("X"):
        X[0] = X[0] + 1
    for j in range(3):
        with T.block("B"):
            v = T.axis.spatial(3, j)
            B[v] = S[X[0] + v]
''')
    a = np.array([5, 6, 7, 8], "int32")
    agree(f, [a, np.array([9], "int32"), np.zeros(3, "int32")], a[1:])


@pytest.mark.parametrize("op", ["&", "|", "^"])
def test_indices_of_bits(op):
    f = from_source(f'''@T.prim_func
def bits(A: T.Buffer((8,), "int32"), B: T.Buffer((8, 8), "int32")):
    for i, j in T.grid(8, 8):
        B[i, j] = A[i {op} j]
''')
    i, j = np.ogrid[:8, :8]
    a = np.arange(10, 18, dtype="int32")
    agree(f, [a, np.zeros((8, 8), "int32")], a[{"&": i & j, "|": i | j, "^": i ^ j}[op]])


@pytest.mark.parametrize("condition", ["i + 2 < q", "i + 2 >= q", "q <= i - 2", "3 - i < q", "i * 2 + 7 != q"])
def test_guards_compare_with_parameters_at_the_limits(condition):
    """What is constant goes to the parameter's side, where 32 bits may be too few."""
    f = from_source(f'''@T.prim_func
def main(B: T.Buffer((16,), "int32"), q: T.int32):
    for i in T.vectorized(16):
        if T.likely({condition}):
            B[i] = 1
''')
    for q in (-2**31, -2**31 + 1, -1, 5, 2**31 - 2, 2**31 - 1):
        want = np.array([eval(condition, {"i": i, "q": q}) for i in range(16)], "int32")
        for run in (lambda *a: interp.run(f, *a), lambda *a: interp.run(lower(f), *a), tw.build(f)["main"]):
            out = np.zeros(16, "int32")
            run(out, q)
            np.testing.assert_array_equal(out, want)


def test_laws_do_not_lead_indices_out_of_their_type():
    """(x // a + s) // c is (x + s * a) // (a * c) in the integers, and x fits int32, but not x + s * a."""
    f = from_source('''@T.prim_func
def f(A: T.Buffer((3,), "int32"), B: T.Buffer((8192,), "int32")):
    for i in range(512):
        for j in T.vectorized(16):
            B[i * 16 + j] = A[(((i * 16 + j) * 234377 - 7) // 511 + 4194300) // 4194301]
''')
    a, i = np.arange(10, 13, dtype="int32"), np.arange(8192)
    agree(f, [a, np.zeros(8192, "int32")], a[((i * 234377 - 7) // 511 + 4194300) // 4194301])


def test_guards_whose_terms_do_not_fit_together():
    """Each side fits int32 as it stands; all that is subtracted, on one side, does not."""
    f = from_source('''@T.prim_func
def f(B: T.Buffer((2, 2, 8), "int32")):
    for j in T.parallel(2):
        for k in range(2):
            for i in T.vectorized(8):
                B[j, k, i] = 3
                if T.likely(1073741824 - j * 1610612737 - k * 1610612003 >= i):
                    B[j, k, i] = 7
''')
    j, k, i = np.ogrid[:2, :2, :8]
    want = np.where(1073741824 - j * 1610612737 - k * 1610612003 >= i, 7, 3)
    agree(f, [np.zeros((2, 2, 8), "int32")], want)


def test_the_end_of_a_guard_of_long_steps():
    """It is (n + 4194305 * j - 2097153) // 2097153, for which n leaves no room where j is 1."""
    f = from_source('''@T.prim_func
def f(a: T.handle, B: T.Buffer((2, 1000), "int32")):
    n, s = T.int32(), T.int32()
    A = T.match_buffer(a, (n,), "int8", strides=[s])
    for j, i in T.grid(2, 1000):
        if T.likely(i * 2097153 < n - (4194305 - j * 4194305)):
            B[j, i] = 7
''')
    assert "T.int64(2097153)" in str(lower(f))            # what code makes of n may do right without, by chance
    a = np.lib.stride_tricks.as_strided(np.zeros(1, "int8"), (2**31 - 2**20,), (0,))
    out = np.zeros((2, 1000), "int32")
    tw.build(f)["f"](a, out)
    assert (out == 7).all()


def test_numbers_of_fused_loops_in_indices():
    """Those of two loops of 2**16 steps that became one of 64 bits are int32, what an index makes of them is not."""
    f = from_source('''@T.prim_func
def f(A: T.Buffer((9,), "int32"), B: T.Buffer((9,), "int32")):
    for i in range(T.int64(9)):
        with T.block("B"):
            v = T.axis.spatial(9, T.Cast("int32", i) * 1073741824 // 1073741824)
            T.where(T.Cast("int32", i) * 1073741824 < T.int64(7516192769))
            B[v] = A[v * 1073741824 // 1073741824]
''')
    a = np.arange(9, dtype="int32")
    agree(f, [a + 1, np.zeros(9, "int32")], (a + 1) * (a < 8))
    sch = tw.Schedule(from_source('''@T.prim_func
def f(B: T.Buffer((8,), "int32")):
    for i, j in T.grid(65536, 65536):
        with T.block("B"):
            v = T.axis.spatial(8, i * 65536 + j)
            T.where(i * 65536 + j < 8)
            B[v] = 1
'''))
    sch.fuse(*sch.get_loops("B"))
    assert "* 65536" not in str(lower(sch.func)), lower(sch.func)
