"""A table of forms in which programs of all years call TVM, a small program for each, with what must come out."""
import numpy as np
import pytest

SHARED = '''
import numpy as np
import tvm
from tvm import te, tir
from tvm.script import tir as T

def staged(n=8):
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    return te.create_schedule(B.op), [A, B]

def product():
    A = te.placeholder((8, 6), name="A")
    k = te.reduce_axis((0, 6), name="k")
    return te.create_prim_func([A, te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")])

def check_product(func):
    a, b = np.random.rand(8, 6).astype("float32"), np.zeros(8, "float32")
    tvm.build(func)(a, b)
    np.testing.assert_allclose(b, a.sum(1), rtol=1e-5)

def check_added(func):
    a, b = np.random.rand(8).astype("float32"), np.zeros(8, "float32")
    func(a, b)
    np.testing.assert_allclose(b, a + 1, rtol=1e-6)

def parsed(body, parameters="A: T.Buffer((16,), 'float32')"):
    lines = "".join("    " + line + chr(10) for line in body.split(chr(10)))
    func = tvm.script.from_source("@T.prim_func" + chr(10) + "def main(" + parameters + "):" + chr(10) + lines)
    return tvm.IRModule.from_expr(func)

passes = tvm.tir.transform
'''

FORMS = {
    # schedules of stages and what becomes of them
    "bounds of stages": """
s, (A, B) = staged()
s = s.normalize()
bounds = te.schedule.InferBound(s)
assert tvm.schedule.InferBound and any(int(r.extent) == 8 for r in bounds.values())
assert te.schedule.ScheduleOps(s, bounds) is not None""",
    "schedule_to_module": """
from tvm.driver.build_module import schedule_to_module
s, args = staged()
check_added(tvm.build(schedule_to_module(s, args)))""",
    "driver": """
s, args = staged()
check_added(tvm.driver.build(tvm.driver.lower(s, args)))
check_added(tvm.driver.build_module.build(s, args, "llvm"))""",
    "lower under both names": """
s, args = staged()
mod = tvm.lower(s, args)
assert mod["main"] is mod["default_function"]""",
    "output that is no argument": "s, (A, B) = staged()\nassert 'B' in str(tvm.lower(s, [A], simple_mode=True))",
    "split without predicates": "s, (A, B) = staged()\ns[B].split(B.op.axis[0], factor=4, disable_predication=True)",
    # blocks
    "isinstance of a schedule": "assert isinstance(tir.Schedule(product()), tir.Schedule)",
    "references to statements": """
sch = tir.Schedule(product())
assert sch.get_sref(sch.get_block("B")).stmt.name_hint == "B" """,
    "state of a schedule": "assert tir.ScheduleState(product(), debug_mask='all').mod is not None",
    "errors of schedules": """
from tvm.tir.schedule.schedule import ScheduleError
sch = tir.Schedule(product())
try:
    sch.get_block("nowhere")
except ScheduleError:
    pass
else:
    raise AssertionError""",
    "script of a function": "assert tvm.script.from_source(product().script(show_meta=True)) is not None",
    "attributes in a dict": "assert product().with_attr({'a': 1, 'b': 2}).attrs['b'] == 2",
    "target of a function": """
mod = parsed("T.func_attr({'target': T.target('cuda', host='llvm')})" + chr(10) + "A[0] = T.float32(1)")
assert mod["main"].attrs["target"].host.kind.name == "llvm" """,
    # arith
    "facts of variables": """
from tvm.arith.analyzer import Analyzer
an, x = Analyzer(), te.var("x")
an.update(x, tvm.arith.ConstIntBound(-1, 1))
assert an.const_int_bound(x * 2).max_value == 2
an.update(x, tvm.arith.ConstIntBound(0, 7), override=True)
an.update(x, tvm.arith.ModularSet(4, 3))
assert (an.modular_set(x + 1).coeff, an.modular_set(x + 1).base) == (4, 0)""",
    "iterator maps": """
x, y = te.var("x"), te.var("y")
found = tvm.arith.detect_iter_map([x * 4 + y], {x: tvm.ir.Range(0, 3), y: tvm.ir.Range(0, 4)})
assert int(found.indices[0].args[0].extent) == 12
tvm.ir.assert_structural_equal(tvm.arith.normalize_iter_map_to_expr(found.indices[0]), x * 4 + y)
made = tvm.arith.IterSumExpr([tvm.arith.IterSplitExpr(tvm.arith.IterMark(x, 4), 1, 4, 1)], 2)
tvm.ir.assert_structural_equal(tvm.arith.normalize_iter_map_to_expr(made), x + 2)""",
    "sets of integers": """
x, y = te.var("x"), te.var("y")
found = tvm.arith.Analyzer().int_set(x + y, {x: tvm.arith.IntervalSet(0, 10)})
assert tvm.arith.Analyzer().can_prove_equal(found.max_value, y + 10)""",
    "how hard to prove": """
x = te.var("x")
assert tvm.arith.Analyzer().can_prove(x < x + 1, tvm.arith.ProofStrength.SYMBOLIC_BOUND)""",
    # passes
    "RemoveNoOp": """
mod = passes.RemoveNoOp()(parsed("for i in range(16):" + chr(10) + "    A[i] = A[i]"))
assert "for" not in str(mod)""",
    "FlattenBuffer": """
mod = parsed("for i, j in T.grid(4, 4):" + chr(10) + "    A[i, j] = T.float32(1)", "A: T.Buffer((4, 4), 'float32')")
assert "i * 4 + j" in str(passes.FlattenBuffer()(mod)) and "i * 4 + j" in str(passes.StorageFlatten(64)(mod))""",
    "blocks to loops": """
steps = [passes.LowerInitBlock(), passes.PlanAndUpdateBufferAllocationLocation(), passes.ConvertBlocksToOpaque(),
         passes.LowerOpaqueBlock()]
mod = tvm.transform.Sequential(steps)(tvm.IRModule.from_expr(product()))
assert "T.block" not in str(mod)
check_product(mod)""",
    "virtual threads": """
mod = parsed("for i in T.thread_binding(4, 'vthread'):" + chr(10) + "    A[i] = T.float32(1)")
assert "vthread" not in str(passes.InjectVirtualThread()(mod))""",
    "passes that code generation makes": """
mod = tvm.lower(product())
for name in ("MakePackedAPI", "LowerIntrin", "LowerTVMBuiltin", "CommonSubexprElimTIR", "StorageRewrite", "Simplify"):
    mod = getattr(passes, name)()(mod)
check_product(mod)""",
    "target of every function": """
from tvm.tir.transform.transform import BindTarget
mod = BindTarget(tvm.target.Target("llvm"))(tvm.IRModule.from_expr(product()))
assert mod["main"].attrs["target"].kind.name == "llvm"
check_product(mod)""",
    # ir, runtime, target
    "ir.base": """
tvm.ir.base.assert_structural_equal(te.var("x") + 1, te.var("x") + 1, map_free_vars=True)
tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(product())), product())""",
    "pointers as parameters": """
ib, n = tir.ir_builder.create(), te.var("n")
A = ib.buffer_ptr(tir.decl_buffer((8,), name="A"))
with ib.for_range(0, n, name="i") as i:
    A[i] = A[i] + 1.0
mod = tvm.IRModule.from_expr(tir.PrimFunc([A.buffer, n], ib.get()))
values = np.zeros(8, "float32")
tvm.build(passes.Simplify()(mod))(values, 3)
assert values.tolist() == [1, 1, 1, 0, 0, 0, 0, 0]""",
    "modules by target": "s, args = staged()\ncheck_added(tvm.build({'llvm': tvm.lower(s, args, name='f')})['f'])",
    "modules in a list": "s, args = staged()\ncheck_added(tvm.build([tvm.lower(s, args, name='f')], 'llvm')['f'])",
    "the device by its old name": """
s, args = staged()
f, ctx = tvm.build(s, args), tvm.context("llvm", 0)
x = tvm.nd.array(np.zeros(8, "float32"), ctx=ctx)
assert f.time_evaluator(f.entry_name, ctx=ctx, number=2)(x, tvm.nd.array(np.zeros(8, "float32"), ctx)).mean > 0""",
    "names of machines": """
assert tvm.target.Target("nvidia/geforce-rtx-3090").arch == "sm_86"
assert tvm.target.Target.canon_target_and_host("llvm", "llvm")[1].kind.name == "llvm"
assert "llvm" in tvm.target.Target.list_kinds() and tvm.target.Target("cuda", host="llvm").host.kind.name == "llvm" """,
    "types": """
assert tvm.DataType("float32x4").lanes == 4 and tvm.runtime.String("a") == "a"
assert tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32"), "global")).dtype == "handle"
assert tir.Var("x", dtype="float32").dtype == "float32" and tvm.var("x", dtype=tvm.float32).dtype == "float32" """,
}


@pytest.mark.parametrize("name", FORMS)
def test_the_form_works(name, tvm):
    np.random.seed(0)
    exec(compile(SHARED + FORMS[name], f"<{name}>", "exec"), {"__name__": "form"})
