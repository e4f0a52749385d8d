"""Forms of TVMScript."""
import numpy as np
import pytest

from tilewright.compat import tvm
from tilewright.script import tir as T

from . import form
from .shared import product

te, tir = tvm.te, tvm.tir


def again(func):
    """func, after checking that what it prints is parsed to it."""
    tvm.ir.assert_structural_equal(tvm.script.from_source(func.script(show_meta=True)), func)
    return func


def check_fills(main, values):
    """A function of one array, which is zero before, leaves these values in it."""
    a = np.zeros_like(values)
    tvm.build(again(main))(a)
    np.testing.assert_array_equal(a, values)


@form(r"unexpected keyword argument 'show_meta'")
def script_of_a_function():
    again(product())


@form("cannot be called in a script")
def functions_of_the_program():
    twice = lambda i, j: i * 2 + j

    @T.prim_func
    def main(A: T.Buffer((16,), "int32")):
        for i in range(4):
            A[i] = twice(i, 1)
    a = np.zeros(16, "int32")
    tvm.build(again(main))(a)
    assert a[:5].tolist() == [1, 3, 5, 7, 0]


@form("is used, but nothing defines it here")
def loops_in_a_block():
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.block("b"):
                A[i] = T.float32(1)
    check_fills(main, np.ones(16, "float32"))


@form("is used, but nothing defines it here")
def axes_of_dependent_loops():
    @T.prim_func
    def main(A: T.Buffer((8, 8, 8), "float32"), B: T.Buffer((8, 8, 8), "float32")):
        for i in range(8):
            for j, k in T.grid(i, 8):
                with T.block("b"):
                    vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                    B[vi, vj, vk] = A[vi, vj, vk] * T.float32(2)
    a, b = np.random.rand(8, 8, 8).astype("float32"), np.zeros((8, 8, 8), "float32")
    tvm.build(again(main))(a, b)
    np.testing.assert_allclose(b, np.where(np.tri(8, 8, -1)[..., None], a * 2, 0))
    sch = tir.Schedule(main)
    i, j, k = sch.get_loops("b")
    for wrong in (lambda: sch.fuse(i, j), lambda: sch.reorder(j, i)):
        with pytest.raises(tir.ScheduleError):
            wrong()
    sch.reorder(k, j)


@form("unexpected keyword argument 'dtype'")
def dtypes_of_calls():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
        for i in range(8):
            A[i] = T.if_then_else(i < 3, T.float32(1), T.float32(2), dtype="float32")
            B[i] = T.shift_left(1, i, dtype="int32")
    a, b = np.zeros(8, "float32"), np.zeros(8, "int32")
    tvm.build(again(main))(a, b)
    assert a.tolist() == [1] * 3 + [2] * 5 and b.tolist() == [1 << i for i in range(8)]


@form("access_ptr: content_lanes")
def pointers_with_lanes():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        with T.block("b"):
            T.reads(A[0:8])
            T.writes(A[0:8])
            T.evaluate(T.call_extern("int32", "f", A.access_ptr("rw", content_lanes=4, offset=4, extent=4)))
    again(main)


@form("not a storage scope")
def scopes_of_other_machines():
    for scope in ("local.LTB", "local_TB2", "global:tag", "m16n8k8.matrixA", "wmma.accumulator"):
        assert tir.decl_buffer((4,), scope=scope).scope == scope


@form("no name 'Ptr'")
def pointers_to_types():
    @T.prim_func
    def main(a: T.Ptr("float32")):
        A = T.match_buffer(a, (4,), "float32")
        A[0] = T.float32(1)
    check_fills(main, np.array([1, 0, 0, 0], "float32"))


@form("address_of")
def addresses():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        T.evaluate(T.call_extern("int32", "f", T.address_of(A[4])))
    again(main)
    assert tir.address_of(tir.BufferLoad(tir.decl_buffer((4,)), [0])).dtype == "handle"


@form("T has no name 'target'")
def targets():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "main", "target": T.target("cuda", host="llvm -opt-level=0")})
        A[0] = T.float32(1)
    assert again(main).attrs["target"].kind.name == "cuda" and main.attrs["target"].host.kind.name == "llvm"


@form("the annotation target is")
def targets_of_the_program():
    machine = tvm.target.Target("llvm")

    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        T.func_attr({"global_symbol": "main", "target": machine})
        A[0] = T.float32(1)
    assert main.attrs["target"] == machine


@form("allocate_const")
def constants_in_memory():
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        K = T.allocate_const([1.0, 2.0, 3.0, 4.0], "float32", [4])
        KB = T.Buffer((4,), "float32", data=K)
        for i in range(4):
            A[i] = KB[i]
    check_fills(main, np.array([1, 2, 3, 4], "float32"))


@form(r"T\.handle\('\w+'\) is no constant")
def pointers_from_functions():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        data: T.handle("float32") = T.call_extern("handle", "dummy_extern_function")
        B = T.Buffer((8,), data=data)
        A[0] = B[0]
    again(main)


@form("'' is not a dtype")
def calls_without_a_result():
    @T.prim_func
    def main(A: T.Buffer((8,), "float32")):
        T.call_extern("myfunc", A.data, dtype="")
    again(main)


@form("index sum_red")
def indices_from_memory():
    @T.prim_func
    def main(a: T.Buffer((16,), "int32"), r: T.Buffer((16,), "float32"), o: T.Buffer((16,), "float32")):
        for i in range(16):
            o[i] = r[a[i]]
    a, r, o = np.arange(16, dtype="int32")[::-1].copy(), np.random.rand(16).astype("float32"), np.zeros(16, "float32")
    tvm.build(again(main))(a, r, o)
    np.testing.assert_array_equal(o, r[::-1])


@form("is ambiguous")
def divisions():
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        for i in range(16):
            A[T.Div(i * 2, 2)] = T.float32(1)
    check_fills(main, np.ones(16, "float32"))


@form("tvm.tir.const cannot be called")
def constants_of_tvm():
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        A[0] = T.call_llvm_pure_intrin("float32", "llvm.sqrt", tvm.tir.const(4, "float32"))
    a = np.zeros(16, "float32")
    tvm.build(main)(a)
    assert a[0] == 2


@form(r"tvm_fill_fragment", r"tvm_load_matrix_sync", "ptx_")
def instructions_of_gpus():
    """They parse, print and are scheduled; there is no code for a CPU."""
    @T.prim_func
    def load(a: T.handle, c: T.handle):
        A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=16, scope="shared")
        C = T.match_buffer(c, (16, 16), "float16", align=64, offset_factor=16, scope="wmma.matrix_a")
        with T.block("root"):
            T.reads(A[0:16, 0:16])
            T.writes(C[0:16, 0:16])
            T.evaluate(T.tvm_load_matrix_sync(C.data, 16, 16, 16, C.elem_offset // 256, A.access_ptr("r"), 16,
                                              "row_major", dtype="handle"))

    @T.prim_func
    def fill(B: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads([])
                T.writes([B[0:16, 0:16]])
                T.evaluate(T.tvm_fill_fragment(B.data, 16, 16, 16, 0, vi * 16 + vj, dtype="handle"))

    @T.prim_func
    def copy(A: T.Buffer((32, 128), "float16"), B: T.Buffer((32, 128), "float16")):
        for tx in T.thread_binding(32, "threadIdx.x"):
            with T.block("copy"):
                A_shared = T.alloc_buffer((32, 128), "float16", scope="shared")
                T.reads(A[0:32, 0:128])
                T.writes(B[0:32, 0:128])
                for i in range(16):
                    T.ptx_cp_async("float16", A_shared.data, tx * 128 + 8 * i, A.data, tx * 128 + 8 * i, 16)
                T.evaluate(T.ptx_wait_group(0, dtype=""))
                T.ptx_ldmatrix("float16", T.bool(False), 4, ".b16", B.data, 0, A_shared.data, 0)
    for func in (load, fill, copy):
        assert tvm.tir.Schedule(again(func)).mod is not None
        with pytest.raises(tvm.TVMError):
            tvm.build(func, target="llvm")
    for change in (lambda s, i, j: s.fuse(i, j), lambda s, i, j: s.split(j, [None, 4])):
        sch = tir.Schedule(fill)
        change(sch, *sch.get_loops("B"))
        again(sch.mod["main"])


@form(r"tvm_fill_fragment", refused="blocks that are said to write all of a buffer are not reordered")
def reordered_instructions_of_gpus():
    @T.prim_func
    def fill(B: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(16, 16):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads([])
                T.writes([B[0:16, 0:16]])
                T.evaluate(T.tvm_fill_fragment(B.data, 16, 16, 16, 0, vi * 16 + vj, dtype="handle"))
    sch = tir.Schedule(fill)
    sch.reorder(*reversed(sch.get_loops("B")))


@form()
def threads():
    @T.prim_func
    def main(A: T.Buffer((16,), "float32")):
        tx = T.env_thread("threadIdx.x")
        T.launch_thread(tx, 16)
        A[tx] = T.float32(1)
    again(main)


@form("thread_extent|T has no name 'iter_var'", refused="T.env_thread and T.launch_thread name threads")
def threads_as_attributes():
    tvm.script.from_source('''@T.prim_func
def main(A: T.Buffer((16,), "float32")):
    tx = T.env_thread("threadIdx.x")
    with T.attr(T.iter_var(tx, T.Range(0, 16), "ThreadIndex", "threadIdx.x"), "thread_extent", 16):
        A[tx] = T.float32(1)
''')
