"""Wrong uses of lower, build, compile, target strings and devices."""
from __future__ import annotations

import pickle

import tilewright as tw
from tilewright import te

from .programs import N, chain, matmul, matmul_kernel, placeholders, staged, zeros
from .wrong_use import Section

SECTION = Section("Lowering, building, targets")
wrong = SECTION.wrong


@wrong("`lower(s)` without the argument list",
       r"a schedule of stages needs the argument list")
def lower_without_arguments():
    tw.lower(staged()[0])


@wrong("`lower(\"text\")`",
       r"cannot lower a str")
def lower_text():
    tw.lower("text")


@wrong("`compile([a, b])` of arrays",
       r"the list holds an object of type ndarray, which has values: a function is made from tensors of te")
def compile_arrays():
    tw.compile([zeros(N, N), zeros(N, N)])


@wrong("`explain(f)` of a compiled function",
       r"the module of matmul is compiled already")
def explain_compiled():
    tw.explain(matmul_kernel())


@wrong("`build` of a function with an argument list",
       r"args are given with a PrimFunc, which has its own parameters")
def build_function_with_arguments():
    tensors = matmul()
    tw.build(te.create_prim_func(list(tensors)), list(tensors), "llvm")


@wrong("`build(s, [A, C])`: an input is missing",
       r"placeholder B is used by C and is not among the arguments")
def build_without_input():
    s, (a, _, c) = staged()
    tw.build(s, [a, c], "llvm")


@wrong("`build(s, [A, B, \"C\"])`",
       r"argument 2 is 'C'")
def build_with_text():
    s, (a, b, _) = staged()
    tw.build(s, [a, b, "C"], "llvm")


@wrong("`build(s, A)`: a tensor in place of the list",
       r"the arguments are Tensor\(.*\), not a list")
def build_with_tensor():
    s, (a, _, _) = staged()
    tw.build(s, a, "llvm")


@wrong("`build(s, args, name=\"not a name\")`",
       r"name='not a name' cannot name a function")
def build_bad_name():
    s, tensors = staged()
    tw.build(s, list(tensors), "llvm", name="not a name")


@wrong("`build(s, args, name=7)`",
       r"name=7 cannot name a function")
def build_name_is_number():
    s, tensors = staged()
    tw.build(s, list(tensors), "llvm", name=7)


@wrong("`build` of a module without functions",
       r"the module has no functions")
def build_nothing():
    tw.build(tw.IRModule({}), target="llvm")


@wrong("a target without code generation: `\"opencl\"`",
       r"there is no code generation for 'opencl' yet")
def unknown_target():
    s, tensors = staged()
    tw.build(s, list(tensors), "opencl")


@wrong("a target without code generation: `\"cuda\"`",
       r"there is no code generation for 'cuda' yet")
def cuda_target():
    s, tensors = staged()
    tw.build(s, list(tensors), "cuda")


@wrong("a target in the place of the arguments: `build(func, \"c\")`",
       r"the arguments are 'c', not a list")
def target_for_arguments():
    s, tensors = staged()
    tw.build(te.create_prim_func(list(tensors)), "c")


@wrong("an empty target",
       r"target '': unknown kind ''")
def empty_target():
    tw.target("")


@wrong("a target that is a number",
       r"3 is not a target")
def target_is_number():
    tw.target(3)


@wrong("an unknown flag: `llvm -cpu=znver4`",
       r"target 'llvm -cpu=znver4': '-cpu=znver4' is not a flag")
def unknown_flag():
    tw.target("llvm -cpu=znver4")


@wrong("a flag without a value: `llvm -mcpu`",
       r"target 'llvm -mcpu': -mcpu needs a value \(CPU name\)")
def flag_without_value():
    tw.target("llvm -mcpu")


@wrong("an unknown CPU: `llvm -mcpu=pentium9`",
       r"LLVM knows no x86-64 CPU 'pentium9'")
def unknown_cpu():
    tw.target("llvm -mtriple=x86_64-linux-gnu -mcpu=pentium9")


@wrong("an unknown triple: `llvm -mtriple=toaster-linux-gnu`",
       r"target 'llvm -mtriple=toaster-linux-gnu': -mtriple=toaster-linux-gnu: No available targets are")
def unknown_triple():
    tw.target("llvm -mtriple=toaster-linux-gnu")


@wrong("a feature without a sign: `llvm -mattr=avx2`",
       r"target 'llvm -mattr=avx2': -mattr item 'avx2'")
def feature_without_sign():
    tw.target("llvm -mattr=avx2")


@wrong("a feature that there is not: `llvm -mattr=+warp`",
       r"x86-64 has no feature 'warp'")
def unknown_feature():
    tw.target("llvm -mtriple=x86_64-linux-gnu -mattr=+warp")


@wrong("`llvm -num-cores=0`",
       r"target 'llvm -num-cores=0': -num-cores=0 is not an integer from 1 to 65536")
def no_cores():
    tw.target("llvm -num-cores=0")


@wrong("`llvm -opt-level=9`",
       r"target 'llvm -opt-level=9': -opt-level=9 is not an integer from 0 to 3")
def opt_level():
    tw.target("llvm -opt-level=9")


@wrong("an unclosed quote in a target",
       r"target 'llvm -mcpu=.znver4': No closing quotation")
def unclosed_quote():
    tw.target('llvm -mcpu="znver4')


@wrong("code of another machine is called",
       r"code for aarch64-linux-gnu cannot run on this machine \(x86_64-unknown-linux-gnu\)")
def foreign_code():
    s, tensors = staged(chain)
    tw.build(s, [tensors[0], tensors[2]], "llvm -mtriple=aarch64-linux-gnu")["default_function"]


@wrong("a schedule for GPU threads built for a CPU",
       r"default_function: loop i is bound to threadIdx\.x, but the target llvm has no GPU threads")
def threads_on_cpu():
    s, (a, _, c) = staged(chain)
    s[c].bind(c.op.axis[0], te.thread_axis("threadIdx.x"))
    tw.build(s, [a, c], "llvm")


@wrong("a symbolic extent that no argument tells",
       r"the variable n is bound by no argument: it is neither an axis of the operation that uses it, nor an")
def untold_extent():
    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n * m,), name="A")
    c = te.compute((n * m,), lambda i: a[i] + 1.0, name="C")
    tw.build(te.create_schedule(c.op), [a, c], "llvm")


@wrong("a free variable that is no argument",
       r"the variable x is bound by no argument: it is neither an axis of the operation that uses it, nor an")
def free_variable():
    a, _ = placeholders()
    x = te.var("x", "float32")
    c = te.compute((N, N), lambda i, j: a[i, j] + x, name="C")
    tw.build(te.create_schedule(c.op), [a, c], "llvm")


@wrong("a call of a C function that the process does not have",
       r"compiled code cannot be loaded: it calls no_such_function_here, which this process does not have")
def missing_symbol():
    a = te.placeholder((N,), name="A")
    c = te.compute((N,), lambda i: te.call_extern("float32", "no_such_function_here", a[i]), name="C")
    tw.build(te.create_schedule(c.op), [a, c], "llvm")["default_function"]


@wrong("a call of a C function by a text that is no symbol",
       r"call_extern: 'no symbol' is not the name of a C function")
def no_symbol():
    a = te.placeholder((N,), name="A")
    c = te.compute((N,), lambda i: te.call_extern("float32", "no symbol", a[i]), name="C")
    tw.build(te.create_schedule(c.op), [a, c], "llvm")


@wrong("`build` of a function whose global symbol is no name",
       r"the global symbol 'two\\nlines' cannot name compiled code")
def build_odd_symbol():
    s, tensors = staged()
    tw.build(tw.lower(s, list(tensors))["default_function"].with_attr("global_symbol", "two\nlines"), target="llvm")


@wrong("a device that there is not: `tw.device(\"tpu\")`",
       r"'tpu' is not a device")
def unknown_device():
    tw.device("tpu")


@wrong("a device that is None",
       r"None is not a device")
def device_is_none():
    tw.device(None)


@wrong("a negative device number: `tw.device(\"cpu\", -1)`",
       r"cpu device -1: devices are counted 0, 1, 2, \.\.\.")
def negative_device():
    tw.device("cpu", -1)


@wrong("an array on a device that is not managed: `tw.nd.array(x, tw.device(\"cuda\"))`",
       r"allocating a tensor on cuda\(0\): this build of Tilewright runs on cpu only")
def array_on_gpu():
    tw.nd.array([1.0], tw.device("cuda"))


@wrong("`compile` of a schedule that is scheduled by hand, without its arguments",
       r"a schedule of stages needs the argument list")
def compile_without_arguments():
    tw.compile(staged()[0])


@wrong("`compile` of a placeholder",
       r"A is a placeholder: there is nothing to compute")
def compile_a_placeholder():
    tw.compile(placeholders()[0])


@wrong("`pickle.dumps` of a function of a module",
       r"the function matmul cannot be pickled: it is loaded code")
def pickle_a_function():
    pickle.dumps(matmul_kernel()["matmul"])


@wrong("`pickle.loads` of a module, with a bit of its code changed",
       r"the pickled module is damaged: its checksum is another one")
def damaged_pickle():
    data = bytearray(pickle.dumps(matmul_kernel()))
    data[data.index(b".text")] ^= 1
    pickle.loads(bytes(data))


@wrong("`explain` of a module of two functions",
       r"explain: the module has 2 functions")
def explain_a_module():
    func = te.create_prim_func(list(chain()))
    tw.explain(tw.IRModule({"f": func, "g": func.with_attr("global_symbol", "g")}))


@wrong("`profile` of what is not compiled",
       r"profile: an object of type StageSchedule is no compiled function")
def profile_a_schedule():
    tw.profile(staged()[0])


@wrong("`m[\"other\"]`: a function that the module does not have",
       r"the module has no function 'other'; it has matmul")
def unknown_function():
    matmul_kernel()["other"]


@wrong("`m.get_source(\"java\")`",
       r"the module keeps no source 'java'; it has ll, s, tir")
def unknown_source():
    matmul_kernel().get_source("java")


@wrong("`time_evaluator(..., number=0)`",
       r"time_evaluator: number is 0, not an integer of at least 1")
def time_nothing():
    matmul_kernel().time_evaluator("matmul", tw.cpu(0), number=0)


@wrong("`time_evaluator(..., number=2.5)`",
       r"time_evaluator: number is 2\.5, not an integer of at least 1")
def time_half():
    matmul_kernel().time_evaluator("matmul", tw.cpu(0), number=2.5)(*(zeros(N, N) for _ in range(3)))


@wrong("`lower(s, A, B, C)`: the list is forgotten",
       r"the arguments are Tensor\(shape=\[\d+, \d+\], op.name=A\), not a list")
def lower_without_list():
    s, tensors = staged()
    tw.lower(s, *tensors)


@wrong("`build(s, A, C)`: the list is forgotten",
       r"the arguments are Tensor\(shape=\[\d+, \d+\], op.name=A\), not a list")
def build_without_list():
    s, (a, _, c) = staged()
    tw.build(s, a, c)
