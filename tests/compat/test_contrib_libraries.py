"""`tvm.contrib.tar`, `clang` and `cblas`: archives, C as LLVM IR, a BLAS of the user's."""
import subprocess
import tarfile

import numpy as np
import pytest

import tilewright as tw
from tilewright.compat.contrib.toolchain import create_llvm, find_clang
from tilewright.runtime import export
from tilewright.runtime.llvm import host_triple
from tilewright.support.errors import ArgumentError, CodegenError, LoadError

needs_linker = pytest.mark.skipif(not export.has_linker(host_triple()), reason="needs a linker")
needs_clang = pytest.mark.skipif(not find_clang(required=False), reason="needs clang")


def add_one(tvm):
    a = tvm.te.placeholder((8,), name="A")
    b = tvm.te.compute((8,), lambda i: a[i] + 1.0, name="B")
    return tvm.build(tvm.te.create_schedule(b.op), [a, b], "llvm", name="add_one")


@pytest.mark.parametrize("own", (True, False))
def test_an_archive_loads_again(tvm, tmp_path, own):
    from tvm.contrib import tar

    f, path = add_one(tvm), str(tmp_path / "f.tar")
    f.export_library(path) if own else f.export_library(path, fcompile=tar.tar)
    assert len(tarfile.open(path).getnames()) == 1
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tvm.runtime.load_module(path)["add_one"](x, y)
    np.testing.assert_array_equal(y, x + 1)
    tar.untar(path, str(tmp_path / "out"))
    tw.load_module(next((tmp_path / "out").iterdir()))(x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_an_archive_without_a_linker(tvm, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(export.importlib.util, "find_spec", lambda name: None)
    add_one(tvm).export_library(tmp_path / "f.tar")
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    tw.load_module(tmp_path / "f.tar")(x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_archives_of_something_else_are_refused(tvm, tmp_path):
    from tvm.contrib import tar

    (tmp_path / "a.txt").write_text("a")
    tar.tar(tmp_path / "text.tar", [tmp_path / "a.txt"])
    with pytest.raises(LoadError, match=r"text.tar holds a.txt, expected one object file"):
        tw.load_module(tmp_path / "text.tar")
    (tmp_path / "b.tar").write_bytes(b"no archive")
    with pytest.raises(LoadError, match="is no tar archive"):
        tw.load_module(tmp_path / "b.tar")
    add_one(tvm).export_library(tmp_path / "f.tar")
    data = bytearray((tmp_path / "f.tar").read_bytes())
    data[1500] ^= 1
    (tmp_path / "f.tar").write_bytes(data)
    with pytest.raises(LoadError):
        tw.load_module(tmp_path / "f.tar")


GEMV = """
extern "C" int gemv_update(float *cc, float *aa, float *bb, int m, int l, int stride) {
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < l; ++j)
      cc[i] += aa[j] * bb[i * stride + j];
  return 0;
}
extern "C" int gemv_reset(float *cc, int m) {
  for (int i = 0; i < m; ++i) cc[i] = 0.0;
  return 0;
}
"""


@needs_clang
def test_tensorize_with_an_instruction_in_c(tvm, tmp_path):
    """The idiom of TVM's tutorial: a tile of a product by a function of C, whose IR the kernel imports."""
    from tvm import te
    from tvm.contrib import clang

    n, m, length, tile = 32, 64, 16, 16
    a, b = te.placeholder((n, length), name="A"), te.placeholder((m, length), name="B")
    k = te.reduce_axis((0, length), name="k")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")

    def gemv():
        x, w = te.placeholder((length,), name="x"), te.placeholder((tile, length), name="w")
        r = te.reduce_axis((0, length), name="r")
        z = te.compute((tile,), lambda i: te.sum(x[r] * w[i, r], axis=r), name="z")
        xb = tvm.tir.decl_buffer(x.shape, x.dtype, name="X", offset_factor=1, strides=[1])
        wb = tvm.tir.decl_buffer(w.shape, w.dtype, name="W", offset_factor=1, strides=[te.var("s1"), 1])
        zb = tvm.tir.decl_buffer(z.shape, z.dtype, name="Z", offset_factor=1, strides=[1])

        def emit(ins, outs):
            xx, ww, zz = *ins, outs[0]

            def update():
                ib = tvm.tir.ir_builder.create()
                ib.emit(tvm.tir.call_extern("int32", "gemv_update", zz.access_ptr("w"), xx.access_ptr("r"),
                                            ww.access_ptr("r"), tile, length, ww.strides[0]))
                return ib.get()

            def reset():
                ib = tvm.tir.ir_builder.create()
                ib.emit(tvm.tir.call_extern("int32", "gemv_reset", zz.access_ptr("w"), tile))
                return ib.get()

            def body():
                ib = tvm.tir.ir_builder.create()
                ib.emit(reset())
                ib.emit(update())
                return ib.get()
            return body(), reset(), update()
        return te.decl_tensor_intrin(z.op, emit, binds={x: xb, w: wb, z: zb})

    s = te.create_schedule(c.op)
    x, y = c.op.axis
    yo, yi = s[c].split(y, factor=tile)
    s[c].reorder(x, yo, yi, s[c].op.reduce_axis[0])
    s[c].tensorize(yi, gemv())
    s[c].pragma(x, "import_llvm", clang.create_llvm(GEMV, output=str(tmp_path / "gemv.ll")))
    f = tvm.build(s, [a, b, c], "llvm", name="gemv")
    p, q = (np.random.default_rng(0).random(size, "float32") for size in ((n, length), (m, length)))
    out = np.empty((n, m), "float32")
    f(p, q, out)
    np.testing.assert_allclose(out, p @ q.T, rtol=1e-5)
    assert "gemv_update" in (tmp_path / "gemv.ll").read_text()


@needs_clang
def test_a_source_that_does_not_compile_is_shown():
    with pytest.raises(CodegenError, match="no_such_type"):
        create_llvm("no_such_type f();\n")
    with pytest.raises(ArgumentError, match="expected one source"):
        create_llvm(["int f();\n", "int g();\n"])


BLAS = """
#define GEMM(name, real) \\
void name(int order, int ta, int tb, int m, int n, int k, real alpha, const real *a, int lda, const real *b, int ldb, \\
          real beta, real *c, int ldc) { \\
    for (int i = 0; i < m; i++) for (int j = 0; j < n; j++) { \\
        real sum = 0; \\
        for (int l = 0; l < k; l++) \\
            sum += (ta == 112 ? a[l * lda + i] : a[i * lda + l]) * (tb == 112 ? b[j * ldb + l] : b[l * ldb + j]); \\
        c[i * ldc + j] = order == 101 ? alpha * sum + (beta ? beta * c[i * ldc + j] : 0) : -1; \\
    } \\
}
GEMM(cblas_sgemm, float)
GEMM(cblas_dgemm, double)
"""


@pytest.fixture(scope="module")
def blas(tmp_path_factory):
    """A library with the two functions, written here: what is tested is how they are called."""
    folder = tmp_path_factory.mktemp("blas")
    (folder / "blas.c").write_text(BLAS)
    subprocess.run([*export.linker(host_triple()), "-shared", "-fPIC", "blas.c", "-o", "libblas.so"], cwd=folder,
                   check=True)
    return folder / "libblas.so"


@needs_linker
@pytest.mark.parametrize("dtype", ("float32", "float64"))
@pytest.mark.parametrize("ta", (False, True))
@pytest.mark.parametrize("tb", (False, True))
def test_products_by_a_blas(tvm, blas, dtype, ta, tb):
    from tvm import te
    from tvm.contrib import cblas

    rng, n = np.random.default_rng(0), te.var("n")
    for shape, product in (((), cblas.matmul), ((3,), cblas.batch_matmul)):
        a = te.placeholder((*shape, *((5, n) if ta else (n, 5))), dtype, name="A")
        b = te.placeholder((*shape, *((7, 5) if tb else (5, 7))), dtype, name="B")
        c = product(a, b, ta, tb, library=blas)
        d = te.compute(c.shape, lambda *i, c=c: c[i] + 1.0, name="D")
        f = tvm.build(te.create_schedule(d.op), [a, b, d], "llvm", name="products")
        x, y = (rng.random([4 if e is n else int(e) for e in t.shape]).astype(dtype) for t in (a, b))
        out = np.zeros((*shape, 4, 7), dtype)
        f(x, y, out)
        left, right = (np.swapaxes(v, -1, -2) if t else v for v, t in ((x, ta), (y, tb)))
        np.testing.assert_allclose(out, left @ right + 1, rtol=1e-5)


@needs_linker
def test_the_environment_names_the_blas(tvm, blas, monkeypatch):
    from tvm import te
    from tvm.contrib import cblas

    a, b = te.placeholder((4, 5), name="A"), te.placeholder((5, 6), name="B")
    with pytest.raises(ArgumentError, match="no BLAS is named"):
        cblas.matmul(a, b)
    monkeypatch.setenv("TILEWRIGHT_BLAS", "/no/such/libblas.so")
    with pytest.raises(ArgumentError, match="/no/such/libblas.so cannot be loaded"):
        cblas.matmul(a, b)
    monkeypatch.setenv("TILEWRIGHT_BLAS", str(blas))
    assert [int(e) for e in cblas.matmul(a, b).shape] == [4, 6]
    with pytest.raises(ArgumentError, match="extents 5 and 4 differ"):
        cblas.matmul(a, a)
    with pytest.raises(ArgumentError, match="A has 2 axes, expected 3"):
        cblas.batch_matmul(a, b)
    with pytest.raises(ArgumentError, match="int32 and int32"):
        cblas.matmul(*[te.placeholder((4, 4), "int32") for _ in range(2)])


def test_a_library_that_is_no_blas(tvm):
    from tvm import te
    from tvm.contrib import cblas

    with pytest.raises(ArgumentError, match="has no function cblas_sgemm"):
        cblas.matmul(te.placeholder((4, 4)), te.placeholder((4, 4)), library="libm.so.6")
