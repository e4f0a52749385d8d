"""The back end for C: what it computes, what it refuses, and how its code looks."""
from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import numpy as np
import pytest

import tilewright as tw
from tests.fuzz.kinds.common import BESIDE, Case, Wrong, run_both
from tests.fuzz.kinds.table import MODULES
from tilewright import te, tir
from tilewright.codegen.c import compile as c_compiler
from tilewright.codegen.c.intrinsics import has_form
from tilewright.runtime import export
from tilewright.script import from_source
from tilewright.script import tir as T
from tilewright.support.errors import ArgumentError, CallError, CodegenError
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Ramp
from tilewright.tir.llvm_intrinsics import TABLE


def elementwise(function, dtypes, n, vectorized=True):
    args = [te.placeholder((n,), t, name=f"A{k}") for k, t in enumerate(dtypes)]
    out = te.compute((n,), lambda i: function(*[a[i] for a in args]), name="B")
    s = te.create_schedule(out.op)
    if vectorized:
        s[out].vectorize(s[out].split(out.op.axis[0], factor=8)[1])
    return tw.build(s, [*args, out], target="c")


@pytest.mark.parametrize("kind", MODULES)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(kind, seed, monkeypatch):
    """Beside LLVM's code for the same loops."""
    monkeypatch.setenv(BESIDE, "1")
    module = MODULES[kind]
    module.check(module.program(seed), Case("c -opt-level=1"))


def test_a_run_beside_llvm_tells_what_differs():
    def leaves(value):
        def f(a):
            if value < 0:
                raise CallError(f"negative: {value}")
            a[1] = value
        return f
    for dtype, one, other in (("int32", 1, 2), ("float32", 1.0, 1.001), ("float32", 1.0, np.nan)):
        run_both(leaves(one), leaves(one), np.zeros(3, dtype))
        with pytest.raises(Wrong, match=rf"element \[1\] of argument 0 is {one}, by LLVM {other}"):
            run_both(leaves(one), leaves(other), np.zeros(3, dtype))
    run_both(leaves(1.0), leaves(1.001), np.zeros(3, "float32"), coarsest=2.0 ** -10)     # an intermediate float16
    with pytest.raises(CallError, match="negative: -1"):
        run_both(leaves(-1), leaves(-1), np.zeros(3))
    with pytest.raises(Wrong, match="the error 'negative: -1', by LLVM ''"):
        run_both(leaves(-1), leaves(1), np.zeros(3))


SOURCE = '''
@T.prim_func
def scale(A: T.Buffer((n, 32), "float32"), B: T.Buffer((n, 32), "float32"), factor: T.float32):
    for i in T.parallel(n):
        for j in T.vectorized(32):
            B[i, j] = A[i, j] * factor + T.float32(0.5)
'''


def test_the_code_is_what_one_would_write():
    func = from_source(SOURCE.replace("(n, 32)", "(4, 32)").replace("parallel(n)", "serial(4)"))
    text = tw.build(func, target="c -mcpu=x86-64-v3").get_source()
    assert text == tw.build(func, target="c -mcpu=x86-64-v3").get_source("c")
    assert """\
void scale__kernel(float *restrict A, float *restrict B, float factor) {
    for (int64_t i = 0; i < 4; ++i) {
        store_f32x8(B + i * 32, load_f32x8(A + i * 32) * splat_f32x8(factor) + splat_f32x8(0.5f));
        store_f32x8(B + (i * 32 + 8), load_f32x8(A + (i * 32 + 8)) * splat_f32x8(factor) + splat_f32x8(0.5f));
""" in text


def test_the_text_is_the_same_in_every_process():
    program = ("import tilewright as tw; from tilewright import te; import numpy as np\n"
               "x = te.placeholder((8,), 'int32', name='X'); w = np.arange(5, dtype='float32')\n"
               "y = te.compute((8,), lambda i: te.exp(te.constant(w)[te.maximum(te.minimum(x[i], 4), 0)]), name='Y')\n"
               "print(tw.build(te.create_schedule(y.op), [x, y], target='c').get_source())")
    texts = {subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": seed}, text=True,
                            capture_output=True, check=True).stdout for seed in ("1", "2")}
    assert len(texts) == 1 and "tw_exp" in texts.pop()


def test_parallel_loops_and_symbolic_sizes():
    func = from_source('''
@T.prim_func
def scale(a: T.handle, b: T.handle, factor: T.float32):
    n = T.int32()
    A = T.match_buffer(a, (n, 32), "float32")
    B = T.match_buffer(b, (n, 32), "float32")
    for i in T.parallel(n):
        for j in T.vectorized(32):
            B[i, j] = A[i, j] * factor
''')
    f = tw.build(func, target="c")
    for n in (0, 1, 7):
        a = np.random.default_rng(n).normal(size=(n, 32)).astype("float32")
        out = np.zeros_like(a)
        f(a, out, 1.5)
        np.testing.assert_array_equal(out, a * np.float32(1.5))


@pytest.mark.parametrize("vectorized", [False, True])
def test_an_index_from_data_that_is_outside(vectorized):
    x, at = te.placeholder((4, 8), name="X"), te.placeholder((16,), "int32", name="I")
    y = te.compute((16,), lambda i: x[at[i], at[i]], name="Y")
    s = te.create_schedule(y.op)
    if vectorized:
        s[y].vectorize(s[y].split(y.op.axis[0], factor=8)[1])
    data, out = np.arange(32, dtype="float32").reshape(4, 8), np.zeros(16, "float32")
    index = np.arange(16, dtype="int32") % 4
    said = []
    for target in ("c", "llvm"):
        f = tw.build(s, [x, at, y], target=target)
        f(data, index, out)
        np.testing.assert_array_equal(out, data[index, index])
        bad = index.copy()
        bad[11] = 5
        with pytest.raises(CallError) as caught:
            f(data, bad, out)
        said.append(str(caught.value).partition("\n")[0])
        f(data, index, out)                                # the fault is gone
    assert said[0] == said[1] and "5 of X is outside of its extent 4" in said[0]


def test_an_assertion_in_a_parallel_loop():
    func = from_source('''
@T.prim_func
def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.parallel(8):
        assert A[i] > 0, "not positive"
        B[i] = A[i]
''')
    f, a, out = tw.build(func, target="c"), np.arange(1, 9, dtype="int32"), np.zeros(8, "int32")
    f(a, out)
    np.testing.assert_array_equal(out, a)
    a[3] = -1
    with pytest.raises(CallError, match="not positive"):
        f(a, out)


def test_results_and_calls_of_c_functions():
    @T.prim_func
    def main(x: T.float64, y: T.int32) -> T.float64:
        T.func_attr({"global_symbol": "main"})
        T.ret(T.call_extern("float64", "cbrt", x) + T.cast(y, "float64"))

    assert tw.build(main, target="c")(27.0, 2) == 5.0


def test_a_matrix_product_by_the_rules():
    a, b = te.placeholder((70, 65), name="A"), te.placeholder((65, 90), name="B")
    r = te.reduce_axis((0, 65), name="k")
    f = tw.compile([a, b, te.compute((70, 90), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")], target="c")
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(70, 65)).astype("float32"), rng.normal(size=(65, 90)).astype("float32")
    out = np.zeros((70, 90), "float32")
    f(x, y, out)
    np.testing.assert_allclose(out, x.astype("float64") @ y, rtol=1e-4, atol=1e-5)


def test_an_exported_library_and_a_pickle(tmp_path):
    f = elementwise(lambda x: te.tanh(x) * 2, ["float32"], 16)
    f.export_library(str(tmp_path / "f.so"))
    x = np.linspace(-3, 3, 16, dtype="float32")
    for g in (f, tw.load_module(str(tmp_path / "f.so"))):
        out = np.zeros_like(x)
        g(x, out)
        np.testing.assert_allclose(out, np.tanh(x.astype("f8")) * 2, rtol=1e-6)


@pytest.mark.parametrize("flags", [(), ("-DTILEWRIGHT_SCALAR",), ("-fopenmp",)])
def test_files_that_need_nothing_of_tilewright(tmp_path, flags):
    a, b, n = te.placeholder((te.var("n"), 24), name="A"), te.placeholder((24, 40), name="B"), 19
    r = te.reduce_axis((0, 24), name="k")
    c = te.compute((a.shape[0], 40), lambda i, j: te.sum(te.tanh(a[i, r]) * b[r, j], axis=r), name="C")
    module = tw.compile([a, b, c], target="c", name="product")
    assert [p.name for p in module.export_source(tmp_path)] == ["product.h", "product.c", "main.c"]
    cc = [*export.linker(tw.target("c").triple), "-std=gnu11", "-O1", "-fwrapv", "-Wall", "-Werror", *flags]
    if "ziglang" in cc and "-fopenmp" in flags:
        pytest.skip("no OpenMP")
    subprocess.run([*cc, "product.c", "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True)
    shown = subprocess.run(["./main"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert shown.startswith("product: ")
    subprocess.run([*cc, "-shared", "-fPIC", "product.c", "-o", "product.so", "-lm"], cwd=tmp_path, check=True)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, 24)).astype("float32"), rng.normal(size=(24, 40)).astype("float32")
    out = np.zeros((n, 40), "float32")
    product = ctypes.CDLL(str(tmp_path / "product.so")).product
    assert product(*[ctypes.c_void_p(v.ctypes.data) for v in (x, y, out)], ctypes.c_int64(n)) == 0
    np.testing.assert_allclose(out, np.tanh(x.astype("float64")) @ y, rtol=1e-4, atol=1e-5)


def test_files_are_of_c_and_of_functions_without_results(tmp_path):
    x = te.placeholder((4,), name="X")
    s = te.create_schedule(te.compute((4,), lambda i: x[i], name="Y").op)
    with pytest.raises(ArgumentError, match='build it for target="c"'):
        tw.build(s, [x, s.outputs[0].output(0)], target="llvm").export_source(tmp_path)

    @T.prim_func
    def main(x: T.float64) -> T.float64:
        T.ret(x + T.float64(1))

    with pytest.raises(CodegenError, match="main has a result"):
        tw.build(main, target="c").export_source(tmp_path)

    @T.prim_func
    def talk(A: T.Buffer((4,), "float32")):
        T.print(A[0])

    with pytest.raises(CodegenError, match='talk calls the packed function "print"'):
        tw.build(talk, target="c").export_source(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_compiler(monkeypatch):
    def nothing(*_):
        raise CodegenError("there is no C compiler to link for this")

    monkeypatch.setattr(c_compiler, "linker", nothing)
    monkeypatch.setattr(export, "linker", nothing)
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    with pytest.raises(CodegenError, match="no C compiler"):
        elementwise(lambda x: x + 1, ["float32"], 8)


def both(source, *arrays):
    """What a script leaves in its arguments by C and by LLVM."""
    out = []
    for target in ("c", "llvm"):
        args = [a.copy() for a in arrays]
        tw.build(from_source("@T.prim_func\n" + source), target=target)(*args)
        out.append(args)
    return zip(*out)


@pytest.mark.parametrize("width", [2, 3, 4, 5])
def test_guarded_loads_side_by_side(width, tmp_path):
    """As written, by GCC 12 at -O3: for 3 and 5 its vectors have wrong lanes."""
    n, at = 11 * width, [f"i * {width} + {k}" for k in range(width)]
    lines = "\n        ".join(f"C[{k}] = T.if_then_else(B[{k}] != 0, A[{k}], 4)" for k in at)
    func = from_source(f"""
@T.prim_func
def main(A: T.Buffer(({n},), "int32"), B: T.Buffer(({n},), "int32"), C: T.Buffer(({n},), "int32")):
    for i in range(11):
        {lines}
""")
    f = tw.build(func, target="c -opt-level=3")
    a, b, c = np.arange(100, 100 + n, dtype="int32"), np.arange(n, dtype="int32") % 5, np.zeros(n, "int32")
    f(a, b, c)
    np.testing.assert_array_equal(c, np.where(b != 0, a, 4))
    _, kernels, _ = f.export_source(tmp_path)
    assert "-fno-tree-loop-vectorize" in kernels.read_text()


def test_a_choice_of_converted_integers():
    """As written, by GCC 12 at -O3: it makes vectors of two, of which the second lane has the other choice."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2**62, (2, 36)).astype("uint64")
    z = rng.choice(np.array([2**63 - 1, -2**63, -5, 0, 7]), 36)
    *_, (d, by_llvm) = both("""def main(X: T.Buffer((36,), "uint64"), Y: T.Buffer((36,), "uint64"),
         Z: T.Buffer((36,), "int64"), D: T.Buffer((36,), "float32")):
    for i in range(18):
        for j in T.unroll(2):
            D[i * 2 + j] = T.if_then_else(Z[i * 2 + j] >= T.int64(0), T.Cast("float32", Y[i * 2 + j]),
                                          T.Cast("float32", X[i * 2 + j]))
""", x, y, z, np.zeros(36, "float32"))
    np.testing.assert_array_equal(d, by_llvm)
    np.testing.assert_array_equal(d, np.where(z >= 0, y, x).astype("float32"))


def test_what_one_iteration_leaves_for_the_next():
    """As written, by GCC 12 at -O3: its vectors of two iterations read before they write."""
    x = np.random.default_rng(0).random(280, "float32")
    for c, by_llvm in both("""def main(X: T.Buffer((280,), "float32"), Y: T.Buffer((386,), "float32")):
    for t in range(6):
        for c in T.unroll(7):
            for i in range(5):
                Y[t * 43 + i * 7 + c + 50] = (T.if_then_else(i >= 1, Y[t * 43 + i * 7 + c], T.float32(0))
                                              + X[t * 35 + c * 5 + i + 35])
""", x, np.zeros(386, "float32")):
        np.testing.assert_array_equal(c, by_llvm)


FLOATS, BOOLS = np.arange(8, dtype="float32"), np.array([0, 1] * 4, bool)


@pytest.mark.parametrize("source, arrays", [
    ("""def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.vectorized(8):
        B[i] = -(-A[i]) + (-(-(-A[i]))) - T.float32(-1)
""", (FLOATS, FLOATS)),
    ("""def main(p: T.Buffer((1,), "int32"), B: T.Buffer((8,), "int32")):
    for k in range(p[0]):
        p[0] = p[0] - 1
        B[k] = B[k] + 1
""", (np.array([8], "int32"), np.zeros(8, "int32"))),
    ("""def main(A: T.Buffer((8,), "bool"), B: T.Buffer((8,), "bool"), C: T.Buffer((9, 8), "bool")):
    for i in T.vectorized(8):
        C[0, i] = T.min(A[i], B[i])
        C[1, i] = T.max(A[i], B[i])
        C[2, i] = A[i] < B[i]
        C[3, i] = A[i] <= B[i]
        C[4, i] = A[i] > B[i]
        C[5, i] = A[i] >= B[i]
        C[6, i] = A[i] == B[i]
        C[7, i] = A[i] != B[i]
""", (BOOLS, np.array([0, 0, 1, 1] * 2, bool), np.zeros((9, 8), bool))),
    ("""def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    B[0:8] = A.vload([T.Broadcast(3, 8)], predicate=(A[0:8] > T.Broadcast(T.float32(2), 8)))
""", (FLOATS, FLOATS)),
    ("""def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float64")):
    for i in T.vectorized(8):
        B[i] = T.float64(1) / T.cast(A[i] > T.float32(3), "float64")
""", (FLOATS, FLOATS.astype("float64"))),
    ("""def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = T.cast(T.call_extern("bool", "abs", A[i]), "int32") + 10
""", (np.arange(8, dtype="int32"), np.zeros(8, "int32"))),
    ("""def main(load_f32x8: T.Buffer((8,), "float32"), main__part0: T.Buffer((8,), "float32"), memcpy: T.float32):
    for end in T.parallel(8):
        assert load_f32x8[end] >= T.float32(0), "negative"
        main__part0[end] = T.exp(load_f32x8[end]) + memcpy
""", None),
])
def test_as_llvm(source, arrays):
    if arrays is None:
        out = np.zeros(8, "float32")
        tw.build(from_source("@T.prim_func\n" + source), target="c")(FLOATS, out, 1.5)
        np.testing.assert_allclose(out, np.exp(FLOATS) + 1.5, rtol=1e-6)
        return
    for c, llvm in both(source, *arrays):
        np.testing.assert_array_equal(c, llvm)
        assert not c.dtype.kind == "f" or (np.signbit(c) == np.signbit(llvm)).all()


@pytest.mark.parametrize("name", ["flag_", "environment", "first_", "left_", "part", "record_fault", "tw_parallel",
                                  "int", "f32x8", "splat_f32x8", "store_f32x8", "slots", "result", "NULL", "fault"])
def test_names_that_the_file_has_already(name):
    x = te.placeholder((te.var("n"), 8), name=name)
    y = te.compute(x.shape, lambda i, j: x[i, j] * 2, name=f"{name}_of")
    s = te.create_schedule(y.op)
    s[y].parallel(y.op.axis[0])
    s[y].vectorize(y.op.axis[1])
    data, out = np.arange(24, dtype="float32").reshape(3, 8), np.zeros((3, 8), "float32")
    tw.build(s, [x, y], target="c", name="f")(data, out)
    np.testing.assert_array_equal(out, data * 2)


def test_vectors_and_names_that_c_does_not_have():
    with pytest.raises(CodegenError, match="a vector of 3 lanes has no type in C"):
        tw.build(from_source("""
@T.prim_func
def main(A: T.Buffer((8,), "float32")):
    A[0:3] = A[2:5] * T.Broadcast(T.float32(2), 3)
"""), target="c")
    func = from_source("@T.prim_func\ndef main(A: T.Buffer((8,), \"float32\")):\n    A[0] = T.float32(1)\n")
    with pytest.raises(CodegenError, match="'conv-1' cannot be the name of a function in C"):
        tw.build(func.with_attr("global_symbol", "conv-1"), target="c")


def test_without_a_folder_for_temporary_files(monkeypatch, tmp_path):
    monkeypatch.setattr(c_compiler.tempfile, "tempdir", str(tmp_path / "gone"))
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    with pytest.raises(CodegenError, match="cannot compile the C code: .*No such file"):
        elementwise(lambda x: x + 3, ["float32"], 8)


def test_what_the_compiler_refuses():
    with pytest.raises(CodegenError, match="refuses the C code"):
        c_compiler.compile_text("int f( {", tw.target("c"))


def intrinsic_of(name):
    """(dtype of the result, dtypes of the arguments) of a call of an intrinsic."""
    op, bits = name.removeprefix("llvm.").rsplit(".", 1)[0], name.rsplit(".", 1)[-1]
    lanes = int(bits) // 32 if bits in ("128", "256", "512") else 4 if "sse" in name or "neon" in name else 8
    if "pmadd" in name:
        bytewise = ".ub" in name or "ubs" in name
        lanes *= 2 if bytewise and "128" not in name and "512" not in name else 2 if bytewise else 1
        return (f"int16x{lanes}", [f"uint8x{2 * lanes}", f"int8x{2 * lanes}"]) if bytewise else (
            f"int32x{lanes}", [f"int16x{2 * lanes}"] * 2)
    if "dpbf16" in name:
        return f"float32x{lanes}", [f"float32x{lanes}"] + [f"bfloat16x{2 * lanes}"] * 2
    if "vpdp" in name:
        parts = ["uint8", "int8"] if "bus" in op else ["int16"] * 2
        return f"int32x{lanes}", [f"int32x{lanes}", *(f"{t}x{(4 if 'bus' in op else 2) * lanes}" for t in parts)]
    if "neon" in name:
        a, b = {"sdot": ("int8", "int8"), "udot": ("uint8", "uint8"), "usdot": ("uint8", "int8")}[name.split(".")[-1]]
        return "int32x4", ["int32x4", f"{a}x16", f"{b}x16"]
    if "interleave" in name:
        return "bfloat16x16", ["bfloat16x8"] * 2
    if name in ("llvm.fma", "llvm.fabs", "llvm.sqrt"):
        return "float32x8", ["float32x8"] * (3 if name == "llvm.fma" else 1)
    return "int32x8", ["int32x8"] * (2 if name in ("llvm.smax", "llvm.smin") else 1)


@pytest.mark.parametrize("name", [name for name in TABLE if has_form(name)])
def test_intrinsics_of_llvm_compute_what_the_table_says(name):
    result, types = intrinsic_of(name)
    buffers = [tir.decl_buffer((dt.lanes_of(t),), dt.element_of(t), f"A{k}") for k, t in enumerate([result, *types])]
    out, *ins = buffers
    value = te.call_llvm_pure_intrin(result, name, *(b.vload(0, t) for b, t in zip(ins, types)))
    params = [tir.Var(f"a{k}", "handle") for k in range(len(buffers))]
    store = tir.Store(out, value, (Ramp(tir.IntImm(0), tir.IntImm(1), dt.lanes_of(result)),))
    func = tir.PrimFunc(tuple(params), store, dict(zip(params, buffers)), {"global_symbol": "main"})
    f = tw.build(func, target="c -opt-level=1")
    random = np.random.default_rng(0)
    for _ in range(20):
        arrays = []
        for b in buffers:
            kind, n = dt.numpy_dtype(b.dtype), b.shape[0].value
            if dt.is_float(b.dtype):
                arrays.append(random.choice([0.0, 1.5, 1e-39, 3e38, 2.25, 7.0], n).astype(kind))
            else:
                low, high = dt.integer_range(b.dtype)
                arrays.append(random.choice(np.array([low, high, low + 1, 0, 1, 17], b.dtype), n))
        want, got = arrays[0].copy(), arrays[0].copy()
        tir.run(func, want, *arrays[1:])
        f(got, *arrays[1:])
        np.testing.assert_array_equal(got, want)


def test_what_has_no_form_in_c():
    x = te.placeholder((4,), "int32", name="X")
    y = te.compute((4,), lambda i: te.call_llvm_pure_intrin("int32", "llvm.bitreverse", x[i]), name="Y")
    with pytest.raises(CodegenError, match='llvm.bitreverse has no form in C\\n\\nhint: build for "llvm"'):
        tw.build(te.create_schedule(y.op), [x, y], target="c")


def test_a_compiler_that_crashes_is_asked_again_for_no_vectors(monkeypatch, tmp_path):
    script = tmp_path / "cc.py"
    script.write_text("import sys\n"
                      "if '-fno-tree-vectorize' not in sys.argv:\n"
                      "    sys.exit('kernel.c:1:1: internal compiler error: Segmentation fault')\n"
                      "open(sys.argv[-1], 'wb').write(b'object')\n")
    monkeypatch.setattr(c_compiler, "linker", lambda triple: [sys.executable, str(script)])
    assert c_compiler.compile_text("int f;", tw.target("c")) == b"object"
    script.write_text("import sys\nsys.exit('kernel.c:1:1: internal compiler error: Segmentation fault')\n")
    with pytest.raises(CodegenError, match="refuses the C code: .*internal compiler error"):
        c_compiler.compile_text("int f;", tw.target("c"))


def test_registers_of_long_double_are_free_after_a_call():
    """GCC 12 moves halves of these vectors through MMX registers, which are those of long double, and does not free
    them: what the caller computes with long double would be NaN."""
    func = from_source("""
@T.prim_func
def main(A: T.Buffer((16,), "int16"), P: T.Buffer((16,), "float16"), Q: T.Buffer((16,), "int16")):
    for i in T.vectorized(16):
        P[i] = T.Cast("float16", T.Cast("float64", A[i]))
        Q[i] = T.Cast("int16", T.Cast("float32", T.Cast("uint32", A[i])))
""")
    a, p, q = np.arange(16, dtype="int16"), np.zeros(16, "float16"), np.zeros(16, "int16")
    tw.build(func, target="c -mcpu=nehalem")(a, p, q)
    thirds = [np.longdouble(k) / np.longdouble(3) for k in range(16)]
    np.testing.assert_array_equal(np.array(thirds, "float64"), np.arange(16) / 3)
    np.testing.assert_array_equal(p, a.astype("float16"))
    np.testing.assert_array_equal(q, a)
