"""Passes under TVM's names: singly and in TVM's order, results against NumPy; contexts and what looks on."""
import numpy as np
import pytest

from tilewright.compat import coverage
from tilewright.compat.transforms import IDLE, PASSES
from tilewright.support.errors import ArgumentError, LowerError
from tilewright.tir import For, IfThenElse, LetStmt, interp, structural_equal, verify, walk

N, K = 10, 6


def product(tvm):
    """A program of blocks with a reduction, a cache in a loop, a view, and a condition that does not change."""
    return tvm.script.from_source(f"""
@T.prim_func
def main(A: T.Buffer(({N}, {K}), "float32"), B: T.Buffer(({N},), "float32")):
    copy = T.alloc_buffer(({N}, {K}), "float32")
    for i in T.serial({N}):
        for j in T.serial({K}):
            with T.block("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                copy[vi, vj] = A[vi, vj] * T.float32(2)
        for k in T.serial({K}):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                row = T.match_buffer(copy[vi, 0:{K}], ({K},))
                with T.init():
                    B[vi] = T.float32(1)
                B[vi] = B[vi] + row[vk]
""")


def check(func, tvm):
    assert tvm.tir.analysis.verify_well_formed(func)
    a, b = np.random.rand(N, K).astype("float32"), np.zeros(N, "float32")
    interp.run(func, a, b)
    np.testing.assert_allclose(b, 1 + 2 * a.sum(1), rtol=1e-5)


ORDER = ["LowerCrossThreadReduction", "LowerInitBlock", "PlanAndUpdateBufferAllocationLocation",
         "ConvertBlocksToOpaque", "LiftAttrScope", "CompactBufferAllocation", "LowerMatchBuffer",
         "InjectSoftwarePipeline", "LowerOpaqueBlock", "UnifyThreadBinding", "FlattenBuffer", "BF16ComputeLegalize",
         "NarrowDataType", "Simplify", "LoopPartition", "VectorizeLoop", "InjectVirtualThread", "StorageRewrite",
         "UnrollLoop", "RenormalizeSplitPattern", "Simplify", "RemoveNoOp", "RewriteUnsafeSelect", "HoistIfThenElse",
         "CommonSubexprElimTIR", "ThreadSync", "MakePackedAPI"]


def test_the_passes_in_the_order_of_tvm_give_code(tvm):
    mod = tvm.IRModule({"main": product(tvm)})
    for name in ORDER:
        mod = getattr(tvm.tir.transform, name)(*([32] if name == "NarrowDataType" else []))(mod)
        check(mod["main"], tvm)
    verify(mod["main"], "flat")
    a, b = np.random.rand(N, K).astype("float32"), np.zeros(N, "float32")
    tvm.build(mod)(a, b)
    np.testing.assert_allclose(b, 1 + 2 * a.sum(1), rtol=1e-5)
    whole = tvm.transform.Sequential([getattr(tvm.tir.transform, n)() for n in ORDER])
    tvm.ir.assert_structural_equal(whole(tvm.IRModule({"main": product(tvm)})), mod)


FORMS = ("block", "loop", "flat")


def forms(tvm):
    """The program in each of the three forms."""
    t = tvm.tir.transform
    block = tvm.IRModule({"main": product(tvm)})
    loop = tvm.transform.Sequential([t.LowerMatchBuffer(), t.LowerInitBlock(), t.LowerOpaqueBlock()])(block)
    return {"block": block, "loop": loop, "flat": t.FlattenBuffer()(loop)}


@pytest.mark.parametrize("name", sorted(PASSES))
def test_each_pass_keeps_the_numbers_of_what_it_takes(name, tvm):
    taken = 0
    for form, mod in forms(tvm).items():
        p = getattr(tvm.tir.transform, name)()
        if PASSES[name][1] in FORMS and FORMS.index(form) < FORMS.index(PASSES[name][1]) or (
                PASSES[name][1] == "block" and form != "block"):
            with pytest.raises(ArgumentError, match=f"{name} takes"):
                p(mod)
            continue
        if name in ("ConvertBlocksToOpaque", "LowerOpaqueBlock") and form == "block":
            mod = tvm.tir.transform.LowerInitBlock()(mod)
        check(p(mod)["main"], tvm)
        taken += 1
    assert taken


@pytest.mark.parametrize("name", sorted(IDLE))
def test_passes_that_have_nothing_to_do_say_so(name, tvm):
    p = getattr(tvm.tir.transform, name)
    mod = tvm.IRModule({"main": product(tvm)})
    assert p()(mod)["main"] is mod["main"] and IDLE[name] in p.__doc__ and f"| `{name}` |" in coverage.page()


def script(tvm, body, parameters='A: T.Buffer((16,), "float32")'):
    lines = "\n".join("    " + line for line in body.strip("\n").split("\n"))
    return tvm.script.from_source(f"@T.prim_func\ndef main({parameters}):\n{lines}\n")


@pytest.mark.parametrize("body, left", [
    ("for i in range(16):\n    T.evaluate(0)\nA[0] = T.float32(1)", "A[0] = T.float32(1)"),
    ("for i in range(0):\n    A[i] = T.float32(1)\nA[0] = T.float32(1)", "A[0] = T.float32(1)"),
    ("for i in range(16):\n    A[i] = A[i]\nA[0] = T.float32(1)", "A[0] = T.float32(1)"),
    ("for i in range(16):\n    if i < 3:\n        T.evaluate(A[i])\n    else:\n        A[i] = T.float32(1)",
     "for i in range(16):\n    if not i < 3:\n        A[i] = T.float32(1)"),
    ("for i in range(16):\n    if i < 3:\n        A[i] = T.float32(1)\n    else:\n        T.evaluate(0)",
     "for i in range(16):\n    if i < 3:\n        A[i] = T.float32(1)"),
    ("for i in range(8):\n    x: T.int32 = i * 2\n    A[i] = T.float32(1)",
     "for i in range(8):\n    A[i] = T.float32(1)"),
    ("for i in range(8):\n    A[i] = A[i + 1]", None), ("T.evaluate(T.call_extern(\"int32\", \"f\", A.data))", None)])
def test_what_does_nothing_goes(body, left, tvm):
    before, after = script(tvm, body), script(tvm, left or body)
    got = tvm.tir.transform.RemoveNoOp()(tvm.IRModule({"main": before}))["main"]
    assert structural_equal(got, after), got
    blocks = script(tvm, """
for i in range(16):
    with T.block("none"):
        vi = T.axis.spatial(16, i)
        A[vi] = A[vi]
with T.block("one"):
    A[0] = T.float32(1)""")
    kept = tvm.tir.transform.RemoveNoOp()(tvm.IRModule({"main": blocks}))["main"]
    assert "none" not in str(kept) and "one" in str(kept)


def test_indices_become_narrow_where_that_is_enough(tvm):
    func = script(tvm, """
for i in T.serial(T.int64(0), T.int64(4)):
    for j in T.serial(T.int64(0), T.int64(4)):
        A[i * T.int64(4) + j] = T.Cast("float32", i * T.int64(3000000000) + j)
for k in T.serial(T.int64(0), n):
    A[k] = A[k] + T.float32(1)""", 'A: T.Buffer((16,), "float32"), n: T.int64')
    got = tvm.tir.transform.NarrowDataType(32)(tvm.IRModule({"main": func}))["main"]
    loops = {s.loop_var.name: s.loop_var.dtype for s in walk(got.body) if isinstance(s, For)}
    assert loops == {"i": "int32", "j": "int32", "k": "int64"} and "T.int64(3000000000)" in str(got)
    results = []
    for f in (func, got):
        values = np.zeros(16, "float32")
        interp.run(f, values, 5)
        results.append(values)
    np.testing.assert_array_equal(*results)
    i, j = np.mgrid[:4, :4]
    np.testing.assert_array_equal(results[0][5:], (i * 3e9 + j).astype("float32").ravel()[5:])


def test_names_that_are_defined_twice(tvm):
    i, a = tvm.te.var("i"), tvm.tir.decl_buffer((8,), "float32", name="A")
    one = tvm.tir.For(i, 0, 8, "serial", tvm.tir.BufferStore(a, i.astype("float32"), [i]))
    func = tvm.tir.PrimFunc([a], tvm.tir.SeqStmt([one, one]))
    got = tvm.tir.transform.ConvertSSA()(tvm.IRModule({"main": func}))["main"]
    verify(got, "loop")
    first, second = (s.loop_var for s in walk(got.body) if isinstance(s, For))
    assert first is i and second is not i
    values = np.zeros(8, "float32")
    interp.run(got, values)
    np.testing.assert_array_equal(values, np.arange(8))


def guarded(tvm):
    return script(tvm, """
for i in range(16):
    if n < 3:
        A[i] = T.float32(1)""", 'A: T.Buffer((16,), "float32"), n: T.int32')


def test_what_is_hoisted_is_said_by_the_context(tvm):
    t = tvm.tir.transform
    mod = tvm.IRModule({"main": guarded(tvm)})
    for setting, hoisted in ((t.HoistedConditionals.All, True), (t.HoistedConditionals.IfElseStmt.value, True),
                             (t.HoistedConditionals.Never, False), (t.HoistedConditionals.IfElseExpr, False)):
        with tvm.transform.PassContext(config={"tir.HoistExpression": {"hoisted_conditionals": setting}}):
            body = t.HoistExpression()(mod)["main"].body
        assert isinstance(body, IfThenElse if hoisted else For)
    assert isinstance(t.HoistIfThenElse()(mod)["main"].body, IfThenElse)


def test_passes_over_the_functions_of_a_module(tvm):
    t = tvm.tir.transform
    mod = tvm.IRModule({"f": guarded(tvm), "g": guarded(tvm).with_attr("target", tvm.target.Target("cuda"))})
    bound = t.BindTarget(tvm.target.Target("llvm"))(mod)
    assert [str(f.attrs["target"]) for f in bound.functions.values()] == ["llvm", "cuda"]
    assert list(t.Filter(lambda f: str(f.attrs["target"]) == "llvm")(bound).functions) == ["f"]
    with pytest.raises(ArgumentError, match="several functions"):
        t.AnnotateEntryFunc()(mod)
    one = t.AnnotateEntryFunc()(tvm.IRModule({"f": mod["f"]}))
    assert one["f"].attrs["tir.is_entry_func"] is True
    parallel = script(tvm, """
for i in T.parallel(16):
    A[i] = T.float32(1)
T.evaluate(T.assume(A[0] > T.float32(0)))""")
    changed = tvm.transform.Sequential([t.ConvertForLoopsToSerial(), t.RemoveAssume()])(tvm.IRModule({"f": parallel}))
    assert "parallel" not in str(changed) and "assume" not in str(changed) and "A[i]" in str(changed)


def test_choices_read_only_what_they_choose(tvm):
    func = script(tvm, """
for i in range(32):
    B[i] = T.Select(i < 16, A[i], T.float32(7))""", 'A: T.Buffer((16,), "float32"), B: T.Buffer((32,), "float32")')
    a, b = np.random.rand(16).astype("float32"), np.zeros(32, "float32")
    with pytest.raises(LowerError, match="out of bounds"):
        tvm.build(func)
    tvm.build(tvm.tir.transform.RewriteUnsafeSelect()(tvm.IRModule({"main": func})))(a, b)
    np.testing.assert_array_equal(b, np.concatenate([a, np.full(16, 7, "float32")]))


def test_private_functions_stand_where_they_are_called(tvm):
    mod = tvm.script.from_source("""
@I.ir_module
class mod:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32")):
        for i in range(4):
            mod.sub(A.data, i)
    @T.prim_func(private=True)
    def sub(p: T.handle("float32"), i: T.int32):
        A = T.decl_buffer((4,), "float32", data=p)
        A[i] = T.float32(1)
""")
    assert set(mod.functions) == {"main", "sub"}
    got = tvm.tir.transform.InlinePrivateFunctions()(mod)
    assert list(got.functions) == ["main"] and "call_function" not in str(got)
    values = np.zeros(4, "float32")
    interp.run(got["main"], values)
    np.testing.assert_array_equal(values, [1] * 4)


def test_let_bindings_keep_their_values(tvm):
    func = script(tvm, "x: T.float32 = A[0]\nA[0] = T.float32(2)\nA[1] = x")
    got = tvm.tir.transform.RemoveNoOp()(tvm.IRModule({"main": func}))["main"]
    assert any(isinstance(s, LetStmt) for s in walk(got.body))


# ------------------------------------------------------------------------------------------ contexts


class Watch:
    def __init__(self, skip=()):
        self.seen, self.skip = [], skip

    def enter_pass_ctx(self):
        self.seen.append("enter")

    def exit_pass_ctx(self):
        self.seen.append("exit")

    def should_run(self, mod, info):
        return info.name not in self.skip

    def run_before_pass(self, mod, info):
        self.seen.append(f"before {info.name}")

    def run_after_pass(self, mod, info):
        self.seen.append(f"after {info.name}")


def test_what_looks_on_sees_every_pass(tvm, capsys):
    watch = tvm.instrument.pass_instrument(Watch)(skip=("Simplify",))
    mod = tvm.IRModule({"main": guarded(tvm)})
    with tvm.transform.PassContext(instruments=[watch, tvm.ir.instrument.PrintAfterAll()]) as context:
        assert context.instruments[0] is watch
        tvm.transform.Sequential([tvm.tir.transform.Simplify(), tvm.tir.transform.RemoveNoOp()])(mod)
        assert watch.seen == ["enter", "before RemoveNoOp", "after RemoveNoOp"]
        assert "after RemoveNoOp:" in capsys.readouterr().out
        del watch.seen[:]
        tvm.build(mod)
        assert "before vectorize" in watch.seen and "after unroll" in watch.seen
        context.override_instruments(None)
        assert watch.seen[-1] == "exit" and context.instruments == ()
    with pytest.raises(ArgumentError, match="is no instrument"):
        tvm.transform.PassContext(instruments=[3])
    with pytest.raises(ArgumentError, match="is not a class"):
        tvm.instrument.pass_instrument(3)


def test_sequential_leaves_out_what_the_context_does(tvm):
    ran = []

    def make(name, level):
        @tvm.transform.module_pass(opt_level=level, name=name)
        def run(mod, ctx):
            ran.append(name)
            return mod
        return run

    passes = tvm.transform.Sequential([make("RemoveNoOp", 0), make("one", 1), make("three", 3)])
    assert isinstance(passes, tvm.transform.Pass) and make("a", 2).info == tvm.transform.PassInfo(2, "a")
    with tvm.transform.PassContext(opt_level=1, disabled_pass=["tir.RemoveNoOp"], required_pass=["three"]):
        passes(tvm.IRModule({"main": guarded(tvm)}))
    assert ran == ["one", "three"]


def test_a_module_is_printed_on_the_way(tvm, capsys):
    mod = tvm.IRModule({"main": guarded(tvm)})
    assert tvm.transform.PrintIR("here")(mod) is mod
    assert capsys.readouterr().out == f"here\n{mod}\n"

    @tvm.transform.module_pass
    def wrong(mod, ctx):
        return 3
    with pytest.raises(ArgumentError, match="the pass wrong gives 3, not an IRModule"):
        wrong(mod)


def test_renewed_functions_share_nothing(tvm):
    func = product(tvm)
    new = tvm.tir.stmt_functor.renew_defs(func)
    tvm.ir.assert_structural_equal(new, func)
    assert not {id(n) for n in walk(new.body)} & {id(n) for n in walk(func.body)}
    assert new.params[0] is not func.params[0]
    check(new, tvm)
