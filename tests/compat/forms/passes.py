"""Passes of tvm.tir.transform."""
import numpy as np

from tilewright.compat import tvm
from tilewright.script import tir as T

from . import form
from .shared import check_product, parsed, product

te, tir, passes = tvm.te, tvm.tir, tvm.tir.transform


def blocks():
    return tvm.IRModule.from_expr(product())


@form(r"transform\.RemoveNoOp")
def remove_no_op():
    for body in ("for i in range(16):\n    A[i] = A[i]", "for i in range(16):\n    T.evaluate(0)"):
        assert "for" not in str(passes.RemoveNoOp()(parsed(body)))


@form("FlattenBuffer|StorageFlatten")
def flatten():
    mod = parsed("for i, j in T.grid(4, 4):\n    A[i, j] = T.float32(1)", "A: T.Buffer((4, 4), 'float32')")
    assert "i * 4 + j" in str(passes.FlattenBuffer()(mod)) and "i * 4 + j" in str(passes.StorageFlatten(64)(mod))


@form("LowerOpaqueBlock", "PlanAndUpdate", "LowerMatchBuffer")
def blocks_to_loops():
    steps = [passes.LowerMatchBuffer(), passes.LowerInitBlock(), passes.PlanAndUpdateBufferAllocationLocation(),
             passes.ConvertBlocksToOpaque(), passes.LowerOpaqueBlock()]
    mod = tvm.transform.Sequential(steps)(blocks())
    assert "T.block" not in str(mod)
    check_product(mod["main"])


@form("InjectVirtualThread")
def virtual_threads():
    mod = passes.InjectVirtualThread()(parsed("for i in T.thread_binding(4, 'vthread'):\n    A[i] = T.float32(1)"))
    assert "vthread" not in str(mod)


@form("MakeUnpackedAPI|MakePackedAPI|LowerIntrin|CombineContext|DecorateDeviceScope|ThreadSync|MergeSharedMemory"
      "|PointerValueTypeRewrite|RenormalizeSplitPattern", "CommonSubexprElimTIR", "StorageRewrite")
def passes_that_code_generation_makes():
    mod = tvm.lower(product())
    for name in ("MakeUnpackedAPI", "MakePackedAPI", "LowerIntrin", "LowerTVMBuiltin", "MergeSharedMemoryAllocations",
                 "PointerValueTypeRewrite", "RenormalizeSplitPattern", "DecorateDeviceScope", "CommonSubexprElimTIR",
                 "StorageRewrite", "Simplify"):
        mod = getattr(passes, name)()(mod)
    check_product(passes.ThreadSync("shared")(mod)["main"])


@form("BindTarget|AnnotateEntryFunc|transform.Filter")
def targets_and_entries():
    from tvm.tir.transform.transform import BindTarget
    mod = passes.AnnotateEntryFunc()(BindTarget(tvm.target.Target("llvm"))(blocks()))
    assert mod["main"].attrs["target"].kind.name == "llvm" and mod["main"].attrs["tir.is_entry_func"]
    assert len(passes.Filter(lambda f: False)(mod).functions) == 0
    check_product(mod["main"])


@form("NarrowDataType|ForceNarrowIndex")
def narrow_indices():
    mod = parsed("for i in T.serial(T.int64(0), T.int64(16)):\n    A[i] = T.float32(1)")
    assert "int64" not in str(passes.NarrowDataType(32)(mod))
    mod = passes.ForceNarrowIndexToInt32()(mod)
    a = np.zeros(16, "float32")
    tvm.build(mod)(a)
    assert "int64" not in str(mod) and (a == 1).all()


@form("HoistIfThenElse|HoistedConditionals|HoistExpression")
def hoisting():
    mod = parsed("for i in range(4):\n    if n < 3:\n        A[i] = T.float32(1)",
                 "A: T.Buffer((4,), 'float32'), n: T.int32")
    kinds = passes.HoistedConditionals
    assert kinds.IfElseStmt.value != kinds.IfElseExpr.value and kinds.Never.value == 0
    options = {"hoisted_conditionals": kinds.All.value, "hoisted_let_bindings": passes.HoistedLetBindings.All.value}
    with tvm.transform.PassContext(config={"tir.HoistExpression": options}):
        assert isinstance(passes.HoistExpression()(mod)["main"].body, tir.IfThenElse)
    assert isinstance(passes.HoistIfThenElse()(mod)["main"].body, tir.IfThenElse)


@form("InlinePrivateFunctions")
def inline_private():
    @tvm.script.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            for i in range(4):
                Module.one(A.data, i)

        @T.prim_func(private=True)
        def one(data: T.handle("float32"), i: T.int32):
            B = T.decl_buffer((4,), "float32", data=data)
            B[i] = T.float32(1)
    mod = passes.InlinePrivateFunctions()(Module)
    assert list(map(str, mod.functions)) == ["main"] or len(mod.functions) == 1
    a = np.zeros(4, "float32")
    tvm.build(mod)(a)
    assert (a == 1).all()


@form("ConvertSSA")
def single_assignment():
    i, A = te.var("i"), tir.decl_buffer((8,))
    loop = tir.For(i, 0, 8, tir.ForKind.SERIAL, tir.BufferStore(A, 1.0, [i]))
    mod = passes.ConvertSSA()(tvm.IRModule.from_expr(tir.PrimFunc([A], tir.SeqStmt([loop, loop]))))
    a = np.zeros(8, "float32")
    tvm.build(mod)(a)
    assert (a == 1).all()


@form("LowerCrossThreadReduction")
def shared_reductions():
    mod = parsed("""for i in T.thread_binding(4, 'blockIdx.x'):
    for k in T.thread_binding(8, 'threadIdx.x'):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]""", "A: T.Buffer((4, 8), 'float32'), B: T.Buffer((4,), 'float32')")
    assert not tvm.ir.structural_equal(passes.LowerCrossThreadReduction()(mod)["main"], mod["main"])


@form("UnifyThreadBinding")
def unify_threads():
    mod = parsed("for i in T.thread_binding(4, 'blockIdx.x'):\n    for j in T.thread_binding(4, 'threadIdx.x'):\n"
                 "        A[i * 4 + j] = T.float32(1)")
    assert "threadIdx.x" in str(passes.UnifyThreadBinding()(mod))


@form("RemoveAssume")
def remove_assumptions():
    assert "assume" not in str(passes.RemoveAssume()(parsed("T.assume(A[0] > T.float32(1))\nA[1] = T.float32(2)")))


@form("RewriteUnsafeSelect")
def unsafe_selects():
    mod = parsed("for i in range(16):\n    A[i] = T.Select(i > 0, A[i - 1], T.float32(0))")
    assert "if_then_else" in str(passes.RewriteUnsafeSelect()(mod))


@form("with_attr")
def attributes_in_a_dict():
    assert product().with_attr({"a": 1, "b": 2}).attrs["b"] == 2


@form("'BufferVar' object has no attribute 'type'|'Buffer' object has no attribute 'type'"
      "|'BufferVar' object has no attribute 'name'")
def pointers_as_parameters():
    ib, n = tir.ir_builder.create(), te.var("n")
    A = ib.buffer_ptr(tir.decl_buffer((8,), name="A"))
    with ib.for_range(0, n, name="i") as i:
        A[i] = A[i] + 1.0
    mod = tvm.IRModule.from_expr(tir.PrimFunc([A.buffer, n], ib.get()))
    values = np.zeros(8, "float32")
    tvm.build(passes.Simplify()(mod))(values, 3)
    assert values.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]
    ib = tir.ir_builder.create()
    P = ib.pointer("float32", name="P", size=8)
    with ib.for_range(0, n, name="i") as i:
        P[i] = 1.0
    assert "P" in str(passes.LoopPartition()(tvm.IRModule.from_expr(tir.PrimFunc([P, n], ib.get()))))
