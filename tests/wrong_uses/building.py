"""Wrong uses of lower, build, compile, target strings and devices."""
from __future__ import annotations

import tilewright as tw
from tilewright import te

from .programs import N, chain, matmul, placeholders, staged
from .wrong_use import Section

SECTION = Section("Lowering, building, targets")
wrong = SECTION.wrong


@wrong("`lower(s)` without the argument list", "")
def lower_without_arguments():
    tw.lower(staged()[0])


@wrong("`lower(\"text\")`", "")
def lower_text():
    tw.lower("text")


@wrong("`build` of a function with an argument list", "")
def build_function_with_arguments():
    tensors = matmul()
    tw.build(te.create_prim_func(list(tensors)), list(tensors), "llvm")


@wrong("`build(s, [A, C])`: an input is missing", "")
def build_without_input():
    s, (a, _, c) = staged()
    tw.build(s, [a, c], "llvm")


@wrong("`build(s, [A, B, \"C\"])`", "")
def build_with_text():
    s, (a, b, _) = staged()
    tw.build(s, [a, b, "C"], "llvm")


@wrong("`build(s, A)`: a tensor in place of the list", "")
def build_with_tensor():
    s, (a, _, _) = staged()
    tw.build(s, a, "llvm")


@wrong("`build(s, args, name=\"not a name\")`", "")
def build_bad_name():
    s, tensors = staged()
    tw.build(s, list(tensors), "llvm", name="not a name")


@wrong("`build(s, args, name=7)`", "")
def build_name_is_number():
    s, tensors = staged()
    tw.build(s, list(tensors), "llvm", name=7)


@wrong("`build` of a module without functions", "")
def build_nothing():
    tw.build(tw.IRModule({}), target="llvm")


@wrong("`build` of a lowered module", "")
def build_lowered():
    tensors = matmul()
    tw.build(tw.lower(te.create_prim_func(list(tensors))), target="llvm")


@wrong("a target kind that there is not: `\"opencl\"`", "")
def unknown_target():
    s, tensors = staged()
    tw.build(s, list(tensors), "opencl")


@wrong("a target without code generation: `\"cuda\"`", "")
def cuda_target():
    s, tensors = staged()
    tw.build(s, list(tensors), "cuda")


@wrong("an empty target", "")
def empty_target():
    tw.target("")


@wrong("a target that is a number", "")
def target_is_number():
    tw.target(3)


@wrong("an unknown flag: `llvm -cpu=znver4`", "")
def unknown_flag():
    tw.target("llvm -cpu=znver4")


@wrong("a flag without a value: `llvm -mcpu`", "")
def flag_without_value():
    tw.target("llvm -mcpu")


@wrong("an unknown CPU: `llvm -mcpu=pentium9`", "")
def unknown_cpu():
    tw.target("llvm -mcpu=pentium9")


@wrong("an unknown triple: `llvm -mtriple=toaster-linux-gnu`", "")
def unknown_triple():
    tw.target("llvm -mtriple=toaster-linux-gnu")


@wrong("a feature without a sign: `llvm -mattr=avx2`", "")
def feature_without_sign():
    tw.target("llvm -mattr=avx2")


@wrong("a feature that there is not: `llvm -mattr=+warp`", "")
def unknown_feature():
    tw.target("llvm -mattr=+warp")


@wrong("`llvm -num-cores=0`", "")
def no_cores():
    tw.target("llvm -num-cores=0")


@wrong("`llvm -opt-level=9`", "")
def opt_level():
    tw.target("llvm -opt-level=9")


@wrong("an unclosed quote in a target", "")
def unclosed_quote():
    tw.target('llvm -mcpu="znver4')


@wrong("code of another machine is called", "")
def foreign_code():
    s, tensors = staged(chain)
    tw.build(s, [tensors[0], tensors[2]], "llvm -mtriple=aarch64-linux-gnu")["default_function"]


@wrong("a schedule for GPU threads built for a CPU", "")
def threads_on_cpu():
    s, (a, _, c) = staged(chain)
    s[c].bind(c.op.axis[0], te.thread_axis("threadIdx.x"))
    tw.build(s, [a, c], "llvm")


@wrong("a CPU that lacks the features asked for: `llvm -mcpu=x86-64` on code for 512-bit registers is fine; `-mattr=+`", "")
def empty_feature():
    tw.target("llvm -mattr=+")


@wrong("a symbolic extent that no argument tells", "")
def untold_extent():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n * m,), name="A")
    c = te.compute((n * m,), lambda i: a[i] + 1.0, name="C")
    tw.build(te.create_schedule(c.op), [a, c], "llvm")


@wrong("a free variable that is no argument", "")
def free_variable():
    a, _ = placeholders()
    x = te.var("x", "float32")
    c = te.compute((N, N), lambda i, j: a[i, j] + x, name="C")
    tw.build(te.create_schedule(c.op), [a, c], "llvm")


@wrong("a call of a C function that the process does not have", "")
def missing_symbol():
    a = te.placeholder((N,), name="A")
    c = te.compute((N,), lambda i: te.call_extern("float32", "no_such_function_here", a[i]), name="C")
    tw.build(te.create_schedule(c.op), [a, c], "llvm")["default_function"]


@wrong("more elements than int64 counts: a tensor of 2**40 x 2**40", "")
def too_many_elements():
    a = te.placeholder((2**40, 2**40), name="A")
    c = te.compute((2**40, 2**40), lambda i, j: a[i, j] + 1.0, name="C")
    tw.build(te.create_schedule(c.op), [a, c], "llvm")


@wrong("a device that there is not: `tw.device(\"tpu\")`", "")
def unknown_device():
    tw.device("tpu")


@wrong("a device that is None", "")
def device_is_none():
    tw.device(None)


@wrong("a negative device number: `tw.device(\"cpu\", -1)`", "")
def negative_device():
    tw.device("cpu", -1)


@wrong("an array on a device that is not managed: `tw.nd.array(x, tw.device(\"cuda\"))`", "")
def array_on_gpu():
    tw.nd.array([1.0], tw.device("cuda"))


@wrong("`compile` of a schedule that is scheduled by hand, without its arguments", "")
def compile_without_arguments():
    tw.compile(staged()[0])


@wrong("`m[\"other\"]`: a function that the module does not have", "")
def unknown_function():
    from .programs import matmul_kernel
    matmul_kernel()["other"]


@wrong("`m.get_source(\"java\")`", "")
def unknown_source():
    from .programs import matmul_kernel
    matmul_kernel().get_source("java")


@wrong("`time_evaluator(..., number=0)`", "")
def time_nothing():
    from .programs import matmul_kernel
    matmul_kernel().time_evaluator("matmul", tw.cpu(0), number=0)


@wrong("`time_evaluator(..., number=2.5)`", "")
def time_half():
    from .programs import matmul_kernel, zeros
    matmul_kernel().time_evaluator("matmul", tw.cpu(0), number=2.5)(*(zeros(N, N) for _ in range(3)))
