"""LLVM IR of the user, linked into a kernel by the pragma import_llvm (TVM's tutorial on tensorize)."""
import llvmlite.binding as llvm
import numpy as np
import pytest

import tilewright as tw
from tilewright import te
from tilewright.codegen.llvm import trial
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


def halved(body, rest=""):
    """An imported text with one function."""
    return f"define float @half(float %x) {{\n{body}\n}}\n{rest}\n"


def call_half(text):
    """A kernel that calls the imported function."""
    @T.prim_func
    def f(A: T.Buffer((4,), "float32")):
        for i in T.serial(1, annotations={"pragma_import_llvm": text}):
            A[i] = T.call_extern("float32", "half", A[0])

    return tw.build(f)


ASSEMBLY = {
    "of the module": 'module asm ".globl half"\n' + halved("  ret float %x"),
    "called": halved('  %y = call float asm "nop", "=x,0"(float %x)\n  ret float %y'),
    "with side effects": halved('  tail call void asm sideeffect inteldialect "nop", "~{memory}"()\n  ret float %x'),
    "in a function that is not called": halved("  ret float %x", 'define void @other() {\n  call void asm "", ""()\n'
                                               "  ret void\n}"),
}


@pytest.mark.parametrize("text", ASSEMBLY.values(), ids=ASSEMBLY)
def test_inline_assembly_is_refused(text):
    with pytest.raises(CodegenError, match=r"(?s)the text has inline assembly.*hint: call an intrinsic"):
        call_half(text)


def test_a_text_that_speaks_of_assembly_has_none():
    f = call_half('@asm = constant [13 x i8] c"call asm \\22\\22()"\n' + halved("  %asm = fmul float %x, 0.5\n"
                                                                          "  ret float %asm"))
    a = np.ones(4, "float32")
    f(a)
    assert a[0] == 0.5


ABORTING = {                                     # LLVM ends the process over each of them
    "an intrinsic of another machine": halved("  %y = call float @llvm.nvvm.sqrt.approx.f(float %x)\n  ret float %y",
                                              "declare float @llvm.nvvm.sqrt.approx.f(float)"),
    "a garbage collector": "define float @half(float %x) gc \"none\" {\n  ret float %x\n}",
    "a register that the features exclude": 'define float @half(float %x) noinline "target-features"="-sse,-sse2" {\n'
                                            "  %y = fmul float %x, %x\n  ret float %y\n}",
}


@pytest.mark.parametrize("text", ABORTING.values(), ids=ABORTING)
def test_what_llvm_cannot_compile_is_our_error(text):
    if "sse" in text and not llvm.get_process_triple().startswith("x86_64"):
        pytest.skip("a feature of x86")
    with pytest.raises(CodegenError, match=r"(?s)LLVM cannot compile or link the text: .*hint: the target"):
        call_half(text)


READS = "  %v = load volatile float, ptr @value\n  %y = fadd float %x, %v\n  ret float %y"


def test_what_llvm_cannot_link_is_our_error():
    """Memory of threads that nobody allocates is compiled, and ends the process when it is linked."""
    if not llvm.get_process_triple().endswith("linux-gnu"):
        pytest.skip("sections of ELF")
    with pytest.raises(CodegenError, match="pragma_import_llvm: LLVM cannot compile or link the text: "):
        call_half(halved(READS, '@value = global float 1.0, section ".tdata"'))


@pytest.mark.parametrize("bits, fine", [(16, True), (17, False), (32, False)])
def test_alignment_fills_object_files(bits, fine):
    text = halved(READS, f"@value = global float 1.0, align {1 << bits}")
    if fine:
        call_half(text)
    else:
        with pytest.raises(CodegenError, match=f"has an alignment of {1 << bits} bytes, more than 65536"):
            call_half(text)


def test_what_a_text_calls_may_be_loaded_later():
    f = call_half(halved("  %y = call float @loaded_later_or_never(float %x)\n  ret float %y",
                         "declare float @loaded_later_or_never(float)"))
    with pytest.raises(CodegenError, match="it calls loaded_later_or_never, which this process does not have"):
        f(np.ones(4, "float32"))


def test_a_text_over_which_llvm_does_not_end_is_given_up(monkeypatch):
    monkeypatch.setattr(trial, "LIMIT_SECONDS", 0.001)
    with pytest.raises(CodegenError, match=r"pragma_import_llvm: LLVM does not finish the text in 0\.001 s"):
        call_half(halved("  %never = fmul float %x, 0.25\n  ret float %never"))


def test_the_triple_and_layout_of_a_text_are_those_of_the_kernel():
    f = call_half('target triple = "armv7-none-eabi"\ntarget datalayout = "E-p:32:32"\n'
                  + halved("  %y = fmul float %x, 0.5\n  ret float %y"))
    a = np.ones(4, "float32")
    f(a)
    assert a[0] == 0.5


def test_a_text_is_tried_for_the_target_and_found_without_help_of_the_folder(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit('not this one')")
    monkeypatch.chdir(tmp_path)
    call_half(halved("  %y = fmul float %x, 0.125\n  ret float %y"))


@pytest.mark.parametrize("text, message", [
    ("define i32 @tw_check_args(ptr %a, i32 %n, ptr %t, ptr %s) {\n  ret i32 0\n}\n", "defines tw_check_args"),
    ("define weak void @tw_parallel(ptr %f, ptr %e, i64 %n) {\n  ret void\n}\n", "defines tw_parallel"),
    ("define internal i32 @other(ptr %x) {\n  ret i32 0\n}\n@tw_free = alias i32 (ptr), ptr @other\n",
     "defines tw_free"),
    ("@tw_alloc = global ptr null\n", "defines tw_alloc"),
    ("define i32 @TVMFFIFunctionCall(ptr %a) {\n  ret i32 0\n}\n", "defines TVMFFIFunctionCall"),
    ("define i32 @__tvm_ffi_x(ptr %a) {\n  ret i32 0\n}\n", "defines __tvm_ffi_x"),
    ("@table = global [3221225472 x i8] zeroinitializer\n", "have 3221225472 bytes, more than"),
])
def test_names_of_ours_and_more_data_than_fits(text, message):
    with pytest.raises(CodegenError, match=message):
        build(text + GEMV)


def test_our_names_may_be_declared():
    check(build("declare i32 @tw_num_threads()\n@sum = global [64 x i8] zeroinitializer\n" + GEMV))
