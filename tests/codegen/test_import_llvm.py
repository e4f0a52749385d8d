"""LLVM IR of the user, linked into a kernel by the pragma import_llvm (TVM's tutorial on tensorize)."""
import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.compat import tvm
from tilewright.script import tir as T
from tilewright.support.errors import CodegenError

GEMV = """
define i32 @gemv_update(ptr %c, ptr %a, ptr %b, i32 %m, i32 %l, i32 %stride) {
entry:
  br label %rows
rows:
  %i = phi i32 [0, %entry], [%i.next, %done]
  %row = mul i32 %i, %stride
  %pb = getelementptr float, ptr %b, i32 %row
  br label %loop
loop:
  %k = phi i32 [0, %rows], [%k.next, %loop]
  %s = phi float [0.0, %rows], [%t, %loop]
  %pa = getelementptr float, ptr %a, i32 %k
  %px = getelementptr float, ptr %pb, i32 %k
  %x = load float, ptr %pa
  %y = load float, ptr %px
  %p = fmul float %x, %y
  %t = fadd float %s, %p
  %k.next = add i32 %k, 1
  %k.more = icmp slt i32 %k.next, %l
  br i1 %k.more, label %loop, label %done
done:
  %pc = getelementptr float, ptr %c, i32 %i
  store float %t, ptr %pc
  %i.next = add i32 %i, 1
  %i.more = icmp slt i32 %i.next, %m
  br i1 %i.more, label %rows, label %end
end:
  ret i32 0
}
"""


def intrin_gemv(m, n):
    a = te.placeholder((n,), name="a")
    b = te.placeholder((m, n), name="b")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((m,), lambda i: te.sum(a[k] * b[i, k], axis=k), name="c")
    Ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
    Bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
    Cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

    def intrin_func(ins, outs):
        ib = tvm.tir.ir_builder.create()
        aa, bb = ins
        cc = outs[0]
        ib.emit(tvm.tir.call_extern("int32", "gemv_update", cc.access_ptr("w"), aa.access_ptr("r"),
                                    bb.access_ptr("r"), m, n, bb.strides[0]))
        return ib.get()

    return te.decl_tensor_intrin(c.op, intrin_func, binds={a: Ab, b: Bb, c: Cb})


def build(text):
    A, B = te.placeholder((4, 64), name="A"), te.placeholder((32, 64), name="B")
    k = te.reduce_axis((0, 64), name="k")
    C = te.compute((4, 32), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)
    x, y = C.op.axis
    yo, yi = s[C].split(y, factor=16)
    s[C].reorder(x, yo, yi, k)
    s[C].tensorize(yi, intrin_gemv(16, 64))
    s[C].pragma(x, "import_llvm", text)
    return tw.build(s, [A, B, C])


def check(f):
    rng = np.random.default_rng(0)
    a, b, c = rng.random((4, 64), "float32"), rng.random((32, 64), "float32"), np.zeros((4, 32), "float32")
    f(a, b, c)
    np.testing.assert_allclose(c, a.astype("float64") @ b.T.astype("float64"), rtol=1e-5)


def test_text_and_path(tmp_path):
    check(build(GEMV))
    path = tmp_path / "gemv.ll"
    path.write_text(GEMV)
    check(build(str(path)))
    check(build(path))


def test_the_code_is_part_of_files(tmp_path):
    f = build(GEMV)
    f.export_library(tmp_path / "f.so")
    check(tw.load_module(tmp_path / "f.so"))
    assert "mulss" in f.get_source("s") or "fmul" in f.get_source("s") or "gemv_update" in f.get_source("s")


def two(text):
    """Two functions that call one symbol, which each of them imports."""
    @T.prim_func
    def once(B: T.Buffer((4,), "int32")):
        for i in T.serial(4, annotations={"pragma_import_llvm": text}):
            B[i] = T.call_extern("int32", "step", i)

    @T.prim_func
    def twice(B: T.Buffer((4,), "int32")):
        for i in T.vectorized(4, annotations={"pragma_import_llvm": text}):
            B[i] = 2 * T.call_extern("int32", "step", 3)

    return tw.build(tw.IRModule({"once": once, "twice": twice}))


def test_functions_with_one_import_and_loops_that_vanish():
    lib = two("@base = global i32 5\n"
              "define i32 @step(i32 %x) {\n  %b = load i32, ptr @base\n  %y = add i32 %x, %b\n  ret i32 %y\n}")
    b = np.zeros(4, "int32")
    lib["once"](b)
    assert b.tolist() == [5, 6, 7, 8]
    lib["twice"](b)
    assert b.tolist() == [16] * 4


@pytest.mark.parametrize("text, message", [
    ("define i32 @step(i32 %x) { ret }", "refuses the text"),
    ("define i32 @once__kernel() {\n  ret i32 0\n}", "symbol multiply defined"),
])
def test_text_that_cannot_be_linked(text, message):
    with pytest.raises(CodegenError, match=message):
        two(text)


def test_an_import_that_is_no_text():
    with pytest.raises(CodegenError, match="pragma_import_llvm is .*, expected LLVM IR as text"):
        two(3)
