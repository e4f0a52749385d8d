"""Parallel loops and kernels as functions: what they take, and that nothing else changes."""
import numpy as np
import pytest

import tilewright as tw
from tilewright.codegen.layout import kernel_layout
from tilewright.lowering import lower, split
from tilewright.script import from_source
from tilewright.support.errors import CallError, InterpreterError, LowerError
from tilewright.tir import PARALLEL, Allocate, For, IRModule, interp, structural_equal, verify, walk
from tilewright.tir.node import statements

ADD = """@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), x: T.float32):
    for i in T.parallel(8):
        B[i] = A[i] + x
"""
NESTED = """@T.prim_func
def main(A: T.Buffer((4, 8), "int32"), B: T.Buffer((4, 8), "int32")):
    W = T.decl_buffer((8,), "int32")
    for k in range(3):
        for j in T.parallel(8):
            W[j] = A[k, j] * k
        for i in T.parallel(1, 4):
            for j in T.parallel(8):
                B[i, j] = W[j] + i + k
    for one in T.parallel(1):
        for j in T.parallel(8):
            B[0, j] = one + j
"""
SYMBOLIC = """@T.prim_func
def main(a: T.handle, b: T.handle, index: T.Buffer((4,), "int32")):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for t in range(2):
        m: T.int32 = n - t
        for i in T.parallel(m):
            for j in range(4):
                B[i, j] = A[index[j]] + T.Cast("float32", m * t)
"""
RACE = """@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        B[i // 2] = A[i]
"""
FAILS = """@T.prim_func
def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        with T.Assert(A[i] < T.float32(5), "too large"):
            B[i] = A[i]
    B[0] = T.float32(-1)
"""


def parts(text):
    return split(lower(from_source(text)))


def module(funcs):
    return IRModule({f.name: f for f in funcs})


def results(run, *given):
    arrays = [np.array(x) if isinstance(x, np.ndarray) else x for x in given]
    run(*arrays)
    return [x for x in arrays if isinstance(x, np.ndarray)]


def arguments(text):
    rng = np.random.default_rng(0)
    if text is SYMBOLIC:
        return rng.random(5, "float32"), np.zeros((5, 4), "float32"), np.array([0, 4, 1, 2], "int32")
    if text is ADD:
        return rng.random(8, "float32"), np.zeros(8, "float32"), np.float32(1.5)
    return rng.integers(0, 9, (4, 8)).astype("int32"), np.zeros((4, 8), "int32")


def test_the_loop_becomes_a_function_and_a_call():
    main, part = parts(ADD)
    assert str(main).splitlines()[-1] == '    T.call_parallel("main__par0", 0, 8, B.data, A.data, x)'
    assert str(part) == """\
@T.prim_func
def main__par0(begin: T.int32, end: T.int32, B: T.Buffer((8,), "float32"), A: T.Buffer((8,), "float32"), x: T.float32):
    T.func_attr({"tir.noalias": True, "tilewright.region": "call_parallel"})
    B_1 = T.Buffer((8,), "float32", data=B.data)
    A_1 = T.Buffer((8,), "float32", data=A.data)
    for i in range(begin, end):
        B_1[i] = A_1[i] + x"""


@pytest.mark.parametrize("text, count", [(ADD, 1), (NESTED, 3), (SYMBOLIC, 1)], ids=["add", "nested", "symbolic"])
def test_nothing_else_changes(text, count):
    func, funcs = from_source(text), parts(text)
    given = arguments(text)
    want = results(lambda *x: interp.run(func, *x), *given)
    assert [f.name for f in funcs] == ["main", *(f"main__par{k}" for k in range(count))]
    for f in funcs:
        verify(f, "flat")
        assert not any(isinstance(n, For) and n.kind == PARALLEL for n in walk(f.body))
    parsed = from_source(str(module(funcs)))
    assert structural_equal(parsed, module(funcs))
    for run in (lambda *x: interp.run(module(funcs), *x), lambda *x: interp.run(parsed, *x), tw.build(func),
                tw.build(func, target="c"), tw.build(parsed)):
        for a, b in zip(want, results(run, *given), strict=True):
            np.testing.assert_array_equal(a, b)
    assert tw.build(parsed).names == ("main",)


@pytest.mark.parametrize("text", [ADD, NESTED, SYMBOLIC], ids=["add", "nested", "symbolic"])
def test_arguments_are_written_as_they_were_in_the_loops(text):
    main, *regions = parts(text)
    layout = kernel_layout(main, regions)
    assert layout.signature == kernel_layout(lower(from_source(text))).signature
    assert [p.name for p in layout.signature.params if p.written] == ["B"]


def test_iterations_of_a_part_share_the_memory_that_they_allocate():
    func = from_source("""
@T.prim_func
def main(n: T.int32, C: T.Buffer((9,), "float32")):
    for i in T.parallel(9):
        P = T.decl_buffer((n,), "float32")
        S = T.decl_buffer((4,), "float32", scope="local")
        for j in range(n):
            P[j] = T.Cast("float32", i + j)
        S[0] = P[n - 1]
        C[i] = S[0]
""")
    _, part = split(lower(func))
    order = [s.buffer.name if isinstance(s, Allocate) else "loop" for s in statements(part.body)
             if isinstance(s, (Allocate, For))]
    assert order == ["P", "loop", "S", "loop"]
    for run in (lambda *a: interp.run(lower(func), *a), tw.build(func)["main"]):
        out = np.zeros(9, "float32")
        run(3, out)
        np.testing.assert_array_equal(out, np.arange(9) + 2)


def test_iterations_that_meet_still_raise():
    with pytest.raises(InterpreterError, match="loop i"):
        interp.run(module(parts(RACE)), np.zeros(8, "float32"), np.zeros(8, "float32"))


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_part_that_fails_ends_the_function(target):
    a, b = np.full(8, 9, "float32"), np.zeros(8, "float32")
    with pytest.raises(CallError, match="too large"):
        tw.build(from_source(FAILS), target=target)(a, b)
    assert not b.any()


def test_a_call_that_fits_no_function_is_refused():
    main, part = parts(ADD)
    for wrong in ({"main": main, "other": part.with_attr("global_symbol", "other")},
                  {"main": main, "main__par0": part.replace(params=part.params[:-1])}):
        with pytest.raises(LowerError, match="fits no function of the module"):
            interp.run(IRModule(wrong), *arguments(ADD))


def test_a_module_pass_of_a_program_sees_the_functions():
    seen = []

    def mine(m):
        seen.append(list(m.functions))
        return m

    with tw.pass_options(passes=[tw.lowering.own_pass("after outline_parallel_loops", mine)]):
        tw.build(from_source(ADD))
    assert seen == [["main", "main__par0"]]


SHIFTED = """@T.prim_func
def main(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    S = T.decl_buffer((8,), "int32", scope="shared")
    for row in range(4):
        with T.launch_thread("threadIdx.x", 8) as thread:
            S[thread] = A[row * 8 + thread] + row
            T.sync("shared")
            B[row * 8 + thread] = S[(thread + 1) % 8]
    with T.launch_thread("blockIdx.x", 4) as block:
        with T.launch_thread("threadIdx.x", 8) as thread:
            B[block * 8 + thread] = B[block * 8 + thread] * 2
    for i in range(2):
        B[i] = 0
"""


def kernels(text):
    return split(from_source(text), "cuda")


def test_a_device_runs_nests_of_threads_and_the_host_calls_them():
    main, first, *others = kernels(SHIFTED)
    assert str(main).splitlines()[2:] == [
        "    for row in range(4):",
        '        T.call_kernel("main__kernel0", "threadIdx.x", 8, A.data, row, B.data)',
        '    T.call_kernel("main__kernel1", "blockIdx.x", 4, "threadIdx.x", 8, B.data)',
        '    T.call_kernel("main__kernel2", B.data)']
    assert [[p.name for p in f.params] for f in (first, *others)] == [["A", "row", "B"], ["B"], ["B"]]
    assert 'S = T.decl_buffer((8,), "int32", scope="shared")' in str(first) and "shared" not in str(main)
    a, want = np.arange(32, dtype="int32"), np.zeros(32, "int32")
    interp.run(from_source(SHIFTED), a, want)
    parsed = from_source(str(module([main, first, *others])))
    for what in (module([main, first, *others]), parsed):
        got = np.zeros(32, "int32")
        interp.run(what, a, got)
        np.testing.assert_array_equal(got, want)


def test_threads_that_meet_still_raise():
    funcs = kernels(SHIFTED.replace('T.sync("shared")', "pass"))
    with pytest.raises(InterpreterError, match="threadIdx.x"):
        interp.run(module(funcs), np.zeros(32, "int32"), np.zeros(32, "int32"))


@pytest.mark.parametrize("wrong, message", [
    (SHIFTED.replace("S[thread] = A[row * 8 + thread] + row", "S[thread] = S[thread] + row"),
     "main__kernel0: S, in scope shared, is read before the kernel writes it"),
    (SHIFTED.replace('    with T.launch_thread("threadIdx.x", 8) as thread:\n            B', '    with T.launch_thread('
                     '"threadIdx.x", block + 1) as thread:\n            B'), "depends on block, which is"),
    (SHIFTED.replace("range(4)", "range(A[0])"), "A.* is asked for outside of kernels"),
])
def test_what_no_kernel_can_have_is_refused(wrong, message):
    with pytest.raises(LowerError, match=message):
        kernels(wrong)
