"""The code of a function stays short enough for LLVM, whatever is unrolled, vectorised and inlined."""
from __future__ import annotations

import re

import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.llvm import llvm_ir, optimized_ir
from tilewright.lowering import split
from tilewright.lowering.code_size import MAX_CODE, code_size
from tilewright.script import from_source
from tilewright.support.target import Target
from tilewright.tir import For, PrimFunc, Store, walk
from tilewright.tir import dtype as dt


def flat(inputs: object, args: object = None) -> PrimFunc:
    return next(iter(tw.lower(inputs, args).functions.values()))


def lanes(body: object) -> set[int]:
    return {dt.lanes_of(n.value.dtype) for n in walk(body) if isinstance(n, Store)}


def chain(count: int, dtype: str, step, lanes: int):
    """step applied count times to each element, in vectors of `lanes`."""
    x = te.placeholder((128,), dtype, name="X")
    d = te.placeholder((128,), dtype, name="D")

    def value(i):
        e = x[i]
        for k in range(count):
            e = step(e, d[i], k)
        return e

    y = te.compute((128,), value, name="Y")
    s = te.create_schedule(y.op)
    s[y].vectorize(s[y].split(y.op.axis[0], lanes)[1])
    return s, [x, d, y]


@pytest.mark.parametrize("dtype, count, step, expected", [
    ("float32", 300, lambda e, d, k: te.power(e, d), 8),
    ("float32", 20, lambda e, d, k: te.power(e, d), 64),
    ("int64", 200, lambda e, d, k: te.floordiv(e, d) + k, 8),
    ("int64", 20, lambda e, d, k: e + d, 64),
])
def test_vectors_have_fewer_lanes_where_their_code_is_long(dtype, count, step, expected):
    s, args = chain(count, dtype, step, 64)
    assert lanes(flat(s, args).body) == {expected}


def test_the_result_with_fewer_lanes():
    s, args = chain(150, "int64", lambda e, d, k: te.floordiv(e, d) + k, 64)
    x = np.random.default_rng(0).integers(-10**12, 10**12, 128)
    d = np.random.default_rng(1).integers(2, 9, 128)
    out, want = np.zeros(128, "int64"), x
    for k in range(150):
        want = want // d + k
    tw.build(s, args)(x, d, out)
    np.testing.assert_array_equal(out, want)


def transpose_in_short_loops(unrolled: int):
    m, n = te.var("m"), te.var("n")
    a = te.placeholder((m, n), name="A")
    b = te.compute((n, m), lambda i, j: a[j, i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    i, j = b.op.axis
    outer, inner = s[b].split(i, unrolled)
    s[b].unroll(inner)
    _, j = s[b].split(j, nparts=3)
    s[b].split(j, nparts=3)
    s[b].parallel(outer)
    return s, [a, b]


def test_loops_that_llvm_would_copy_count_as_often():
    """LLVM writes the short loops out, and makes vectors of each copy of the innermost one."""
    s, args = transpose_in_short_loops(16)
    body = flat(s, args).body
    assert code_size(body) <= MAX_CODE
    assert any(isinstance(n, For) and n.loop_var.name == "i.inner" for n in walk(body))
    x, y = np.random.rand(50, 70).astype("float32"), np.zeros((70, 50), "float32")
    tw.build(s, args)(x, y)
    np.testing.assert_array_equal(y, x.T + 1)


@pytest.mark.parametrize("kind", ["range", "T.parallel"])
def test_llvm_copies_no_loops_of_a_function_with_many(kind):
    def hints(count: int) -> tuple[int, int]:
        loops = "".join(f"        for i in {kind}(n):\n            B[j, i] = B[j, i] * T.float32({k}) + A[j, i]\n"
                        for k in range(count))
        func = from_source("@T.prim_func\ndef f(a: T.handle, b: T.handle):\n    m, n = T.int32(), T.int32()\n"
                           "    A = T.match_buffer(a, (m, n), \"float32\")\n"
                           "    B = T.match_buffer(b, (m, n), \"float32\")\n    for j in T.parallel(m):\n" + loops)
        text = llvm_ir(split(flat(func)), Target("llvm"))
        kept = re.search(r"(!\d+) = !{!\"llvm.loop.unroll.disable\"}", text)
        marked = re.findall(rf"distinct .*{kept[1]}\b", text) if kept else []
        return len(re.findall(r"br i1 .*!llvm.loop", text)), len(marked)

    loops, kept = hints(150)
    assert kept == loops >= 150
    assert hints(5)[1] == 0


def test_a_loop_whose_inner_loops_are_written_out_is_copied_as_an_innermost_one():
    """A[...] = A[...] + 1 in loops of 16 and 2 steps is 32 copies; LLVM makes vectors of the loop around them."""
    sizes = []
    for inner in ("range(16)", "range(n)"):
        func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4096,), "float32"), n: T.int32):
    for i in range(n):
        for j in {inner}:
            for k in range(2):
                A[i * 32 + j * 2 + k] = A[i * 32 + j * 2 + k] + T.float32(1)
""")
        sizes.append(code_size(func.body))
    assert sizes[0] > 8 * sizes[1]


def test_the_copies_of_all_loops_of_a_function_count_together():
    loop = "    for i in T.unroll(70):\n        A[i] = T.exp(A[i]) + T.sin(A[i + 512]) + T.cos(A[i + 1024])\n"
    for count in (1, 2, 3):
        source = "@T.prim_func\ndef f(A: T.Buffer((4096,), \"float32\")):\n" + count * loop
        left = [n.extent.value for n in walk(flat(from_source(source)).body) if isinstance(n, For)]
        assert left == [70] * (count - 1)


@pytest.mark.parametrize("dtype, index, apart", [
    ("uint8", "i * 17 + j", True), ("float16", "i * 17 + j", True), ("uint8", "i // 2 + j", True),
    ("uint8", "i + j * n", False), ("uint8", "100 - i", False), ("float32", "i * 17 + j", False)])
def test_small_elements_that_do_not_lie_side_by_side_count_one_by_one(dtype, index, apart):
    """LLVM makes vectors of the loop over i, and CPUs gather no elements of 8 or 16 bits: they become 64 stores."""
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4096,), "{dtype}"), n: T.int32):
    for j in range(n):
        for i in range(n):
            A[{index}] = T.{dtype}(1)
""")
    assert (code_size(func.body) > 200) == apart


def test_a_short_loop_around_elements_apart_stays_one():
    """LLVM would write 17 iterations of j out, with 64 stores apart in each: 20,000 instructions."""
    func = from_source("""
@T.prim_func
def main(a: T.handle, b: T.handle, n: T.int32):
    A = T.match_buffer(a, (n,), "uint8")
    B = T.match_buffer(b, (n, 17), "uint8")
    for k in range(n):
        for t in range(2):
            for j, i in T.grid(17, n):
                B[i, j] = A[i] * A[i // 2] + T.Cast("uint8", k) + T.Cast("uint8", t)
""")
    assert len(optimized_ir([flat(func)], Target("llvm")).splitlines()) < 2000


def test_lanes_that_lie_apart_are_some_instructions_each():
    """Written out, the 6,144 bits that 192 vectors gather take LLVM more than ten seconds."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((6144,), "bool"), B: T.Buffer((6144,), "float64")):
    for k in T.unroll(3):
        for i in T.vectorized(32):
            for j in T.unroll(64):
                B[j + k * 64 + i * 192] = T.Cast("float64", A[k + j * 3 + i * 192])
""")
    assert [n.extent.value for n in walk(flat(func).body) if isinstance(n, For)] == [64, 64, 64]
    assert len(optimized_ir([flat(func)], Target("llvm -opt-level=3")).splitlines()) < 2000


def test_deep_nests_are_looked_at_once():
    """Each loop asks what the loops inside of it are; asked anew at each level, 60 of them would take years."""
    n = 60
    loops = "".join(f"{'    ' * (k + 1)}for i{k} in range(n):\n" for k in range(n))
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer((4096,), "float32"), n: T.int32):
{loops}{'    ' * (n + 1)}A[i{n - 1}] = 1.0
""")
    assert 0 < code_size(func.body) < 1000


@pytest.mark.parametrize("cpu, dtype, written_out", [
    ("x86-64-v2", "uint8", False), ("x86-64-v2", "float32", False), ("x86-64-v3", "uint8", False),
    ("x86-64-v3", "float32", True), ("skylake-avx512", "uint8", True), ("cortex-a72", "uint8", False)])
def test_vectors_whose_lanes_the_cpu_cannot_leave_out_are_long(cpu, dtype, written_out):
    """Each lane is a branch there: 31 such vectors took LLVM nine seconds, and 12 are too many."""
    n = te.var("n")
    x, y = te.placeholder((n, 12), dtype, name="X"), te.placeholder((12,), dtype, name="Y")
    k = te.reduce_axis((0, 12), name="k")
    z = te.compute((n,), lambda i: te.max(y[k] * te.if_then_else(te.all(i - k >= 3, i - k < 34), x[k, i - k - 3],
                                                                 te.const(0, dtype)), axis=k), name="Z")
    s = te.create_schedule(z.op)
    inner = s[z].split(z.op.axis[0], 64)[1]
    s[z].reorder(k, inner)
    s[z].vectorize(inner)
    s[z].unroll(k)
    triple = "aarch64-linux-gnu" if cpu.startswith("cortex") else "x86_64-linux-gnu"
    func = next(iter(tw.lower(s, [x, y, z], target=f"llvm -mtriple={triple} -mcpu={cpu}").functions.values()))
    loops = [n for n in walk(func.body) if isinstance(n, For) and "k" in n.loop_var.name]
    assert (not loops) == written_out
