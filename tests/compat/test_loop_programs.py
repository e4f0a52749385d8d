"""Names that programs on loops use beside te: nodes, passes over modules, modules and functions, tests."""
import numpy as np
import pytest

from tilewright.support.errors import ArgumentError

SOURCE = """@T.prim_func
def copy(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,), "float32")
    B = T.match_buffer(b, (n,), "float32")
    for i in range(n):
        with T.block("B"):
            vi = T.axis.spatial(n, i)
            B[vi] = A[vi] * T.float32(2)
"""


def twice(tvm, f, n=6):
    x, y = np.arange(n, dtype="float32"), np.zeros(n, "float32")
    f(x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_a_function_for_a_known_shape(tvm):
    func = tvm.script.from_source(SOURCE)
    mod = tvm.IRModule({"main": func})
    gv = mod.get_global_var("main")
    assert isinstance(gv, tvm.ir.GlobalVar) and gv.name_hint == "main"
    a = mod["main"].params[0]
    mod.update_func(gv, mod["main"].specialize({a: tvm.tir.decl_buffer((6,), "float32")}))
    assert "range(6)" in mod.script()
    sch = tvm.tir.schedule.Schedule(mod)
    assert isinstance(sch.get_block("B"), tvm.tir.schedule.BlockRV)
    with pytest.raises(tvm.tir.ScheduleError):
        sch.get_block("C")
    twice(tvm, tvm.build(sch.mod, target="llvm")["main"])


def test_passes_over_a_lowered_module(tvm):
    mod = tvm.lower(tvm.script.from_source(SOURCE))
    for name in ("Simplify", "LoopPartition", "VectorizeLoop", "UnrollLoop"):
        mod = getattr(tvm.tir.transform, name)()(mod)
    twice(tvm, lambda x, y: run(mod["copy"], x, y))
    seen = []
    applied = tvm.tir.transform.Apply(lambda f: seen.append(f) or f)(mod)
    assert seen == [mod["copy"]] and tvm.ir.structural_equal(applied, mod)


def run(func, *arrays):
    from tilewright.tir import interp
    interp.run(func, *arrays)


def test_reductions_are_initialised_by_a_branch(tvm):
    from tvm import te
    a, k = te.placeholder((4, 4), name="A"), te.reduce_axis((0, 4), name="k")
    func = te.create_prim_func([a, te.compute((4,), lambda i: te.sum(a[i, k], axis=k), name="B")])
    mod = tvm.tir.transform.LowerInitBlock()(tvm.IRModule({"main": func}))
    assert "T.init" in str(func) and "T.init" not in str(mod) and "if " in str(mod)


def test_a_pass_gets_the_form_it_is_made_for(tvm):
    func = tvm.script.from_source(SOURCE)
    with pytest.raises(ArgumentError, match="VectorizeLoop takes what tvm.lower gives"):
        tvm.tir.transform.VectorizeLoop()(tvm.IRModule({"main": func}))
    with pytest.raises(ArgumentError, match="LowerInitBlock takes a function of blocks"):
        tvm.tir.transform.LowerInitBlock()(tvm.lower(func))


def test_assertions_as_nodes(tvm):
    n = tvm.tir.Var("n", "int32")
    body = tvm.tir.Evaluate(n)
    stmt = tvm.tir.AssertStmt(n > 3, tvm.tir.StringImm("more than 3"), body)
    assert isinstance(stmt.seq[0], tvm.tir.AssertStmt) and stmt.seq[1] is body
    assert isinstance(tvm.tir.AssertStmt(n > 3, "text"), tvm.tir.AssertStmt)
    assert not isinstance(body, tvm.tir.AssertStmt)


def test_assertions_in_an_ir_builder_kernel(tvm):
    ib = tvm.tir.ir_builder.create()
    a = tvm.tir.decl_buffer((4,), "int32", name="A")
    A = ib.buffer_ptr(a)
    ib.emit(tvm.tir.AssertStmt(A[0] > 0, "the first is positive"))
    with ib.for_range(0, 4) as i:
        A[i] = A[i] + 1
    param = tvm.tir.Var("a", "handle")
    f = tvm.build(tvm.tir.PrimFunc((param,), ib.get(), {param: a}, {"global_symbol": "f"}))
    x = np.ones(4, "int32")
    f(x)
    assert x.tolist() == [2] * 4
    with pytest.raises(tvm.TVMError, match=r"f: the first is positive \(A\[0\] (> 0|>= 1) does not hold\)"):
        f(np.zeros(4, "int32"))


def test_addresses_and_assumptions(tvm):
    a = tvm.tir.decl_buffer((4,), name="A")
    assert str(tvm.tir.address_of(tvm.tir.BufferLoad(a, [1]))) == 'T.access_ptr(A[1], dtype="handle")'
    with pytest.raises(ArgumentError, match="address_of takes an element"):
        tvm.tir.address_of(a)
    n = tvm.tir.Var("n", "int32")
    assert str(tvm.tir.assume(n > 0)) == "T.assume(n > 0)"
    assert tvm.tir.analysis.expr_deep_equal(n + 1, n + 1) and not tvm.tir.analysis.expr_deep_equal(n + 1, n + 2)


def test_hypot_of_tensors(tvm):
    from tvm import te
    a, b = te.placeholder((9,), name="A"), te.placeholder((9,), name="B")
    c = te.compute((9,), lambda i: tvm.tir.hypot(a[i], b[i]), name="C")
    s = te.create_schedule(c.op)
    s[c].vectorize(c.op.axis[0])
    x, y = np.random.default_rng(0).normal(0, 1e25, (2, 9)).astype("float32")
    out = np.zeros(9, "float32")
    tvm.build(s, [a, b, c], "llvm")(x, y, out)
    np.testing.assert_allclose(out, np.hypot(x.astype("float64"), y), rtol=4e-7)


def test_tensors_travel_as_capsules(tvm):
    x = tvm.nd.array(np.arange(4, dtype="float32"))
    y = tvm.nd.from_dlpack(x.to_dlpack())
    y.numpy()
    x[0] = 7
    assert y.numpy().tolist() == [7, 1, 2, 3]
    assert x.same_as(x) and not x.same_as(tvm.nd.array(x.numpy())) and not x.same_as(3)


def test_devices_and_targets_that_tests_ask_for(tvm):
    assert tvm.testing.enabled_targets() == [("llvm", tvm.cpu(0))]
    assert not tvm.opencl(0).exist and tvm.metal(1) == tvm.nd.metal(1) and tvm.runtime.ndarray.cpu(0).exist

    @tvm.testing.requires_llvm
    def test():
        return 3

    @tvm.testing.requires_llvm()
    def other():
        return 4

    assert (test(), other()) == (3, 4)
