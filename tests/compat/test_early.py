"""Modules and spellings of TVM up to 0.6."""
import numpy as np
import pytest

from tilewright.support.errors import ArgumentError, TilewrightError


def test_nodes_under_their_old_names(tvm):
    n = tvm.expr.Var("n", "int32")
    chosen = tvm.expr.Select(n > 3, tvm.const(1, "int32"), 2)
    assert isinstance(chosen, tvm.expr.Select) and isinstance(chosen, tvm.tir.Select)
    assert isinstance(n + 1, tvm.expr.Add) and not isinstance(n, tvm.expr.Add)
    assert str(tvm.make.Select(n > 3, 1, 2)) == str(chosen)
    assert isinstance(tvm.api.placeholder((4,)), tvm.tensor.Tensor)
    assert isinstance(tvm.placeholder((4,)).op, tvm.tensor.PlaceholderOp)
    assert (tvm.Range(2, 6).min.value, tvm.Range(2, 6).extent.value) == (2, 4)
    assert tvm.make.range_by_min_extent(2, 6).extent.value == 6


def test_statements_of_make(tvm):
    from tilewright.tir import interp
    out = tvm.decl_buffer((8,), "float32", name="out")
    i = tvm.var("i")
    store = tvm.tir.BufferStore(out, tvm.make.Call("float32", "exp", [i.astype("float32")]), [i])
    loop = tvm.make.For(i, 0, 8, 0, 0, store)
    assert isinstance(loop, tvm.stmt.For)
    body = tvm.make.Block(loop, tvm.make.Evaluate(0))
    handle = tvm.expr.Var("h", "handle")
    got = np.zeros(8, "float32")
    interp.run(tvm.tir.PrimFunc([handle], body, {handle: out}), got)
    np.testing.assert_allclose(got, np.exp(np.arange(8)), rtol=1e-6)
    with pytest.raises(ArgumentError, match="For: the kind of the loop is 7"):
        tvm.make.For(i, 0, 8, 7, 0, store)
    kinds = ["parallel", "vectorized", "unroll"]
    assert [tvm.make.For(i, 0, 8, kind, 0, store).kind for kind in range(1, 4)] == kinds
    named = (tvm.stmt.For.Parallel, tvm.stmt.For.Vectorized, tvm.stmt.For.Unrolled)
    assert [tvm.make.For(i, 0, 8, kind, 0, store).kind for kind in named] == kinds


def test_visits_of_ir_pass(tvm):
    n = tvm.var("n")
    seen = []
    tvm.ir_pass.PostOrderVisit(tvm.make.Evaluate(n + 1), seen.append)
    assert n in seen
    assert tvm.ir_pass.Equal(n + 1, n + 1) and not tvm.ir_pass.Equal(n + 1, n + 2)
    assert str(tvm.ir_pass.Substitute(n + 1, {n: 4 * n})) == "4 * n + 1"
    assert str(tvm.ir_pass.Simplify(n + 1 - n)) == "1"
    with pytest.raises(ArgumentError, match="takes an expression"):
        tvm.ir_pass.Simplify(tvm.make.Evaluate(n))


def test_ir_transform_takes_the_names_of_its_time(tvm):
    out, i = tvm.decl_buffer((8,), "int32", name="out"), tvm.var("i")
    loop = tvm.make.For(i, 0, 8, 0, 0, tvm.tir.BufferStore(out, i, [i]))
    for name in ("For", "tir.For"):
        made = tvm.ir_pass.IRTransform(loop, None, lambda s: tvm.tir.For(s.loop_var, 0, 4, "serial", s.body), [name])
        assert made.extent.value == 4


def test_functions_and_modules_at_their_old_places(tvm, tmp_path):
    n, a = 5, tvm.placeholder((5,), name="A")
    b = tvm.compute((n,), lambda i: tvm.atan(a[i]) + tvm.call_pure_intrin("float32", "exp", a[i]), name="B")
    c = tvm.compute((n,), lambda i: tvm.call_llvm_pure_intrin("float32", "llvm.fabs", b[i]), name="C")
    s = tvm.create_schedule(c.op)
    assert isinstance(s, tvm.schedule.Schedule) and tvm.module.enabled("llvm")
    f = tvm.build(s, [a, c], "llvm", name="f")
    f.save(str(tmp_path / "f.o"))
    x, got = np.linspace(-1, 1, n, dtype="float32"), np.zeros(n, "float32")
    tvm.module.load(str(tmp_path / "f.o"))(x, got)
    np.testing.assert_allclose(got, abs(np.arctan(x.astype(float)) + np.exp(x.astype(float))), rtol=1e-5)


def test_constants_of_shapes(tvm):
    import topi
    from topi.utils import get_const_int
    n = tvm.var("n")
    assert topi.utils.get_const_tuple(tvm.placeholder((4, 6)).shape) == (4, 6)
    assert topi.util.get_const_tuple((n, 6)) == (n, 6)
    assert get_const_int(tvm.const(3, "int32")) == 3
    with pytest.raises(ArgumentError, match="get_const_int: n is not a constant integer"):
        get_const_int(n)


@pytest.mark.parametrize("name, hint", [
    ("ir_pass.Inline", "prim_func_pass"), ("contrib.mkl", "TILEWRIGHT_BLAS"),
    ("Expr", "tvm.tir.PrimExpr"), ("stmt.Provide", "BufferStore"), ("expr.UIntImm", "tvm.const"),
    ("make.node", "make_node"), ("codegen.build_module", "tvm.build"),
])
def test_what_is_not_there_says_what_is(tvm, name, hint):
    at = tvm
    with pytest.raises(AttributeError, match=hint):
        for part in name.split("."):
            at = getattr(at, part)


def test_whole_floats_are_extents(tvm):
    """`(N / bn, K, bn)`, as the tutorial on the matrix product of TVM 0.5 to 0.7 has it."""
    N, K, bn = 64, 16, 32
    B = tvm.placeholder((K, N), name="B")
    packed = tvm.compute((N / bn, K, bn), lambda x, y, z: B[y, x * bn + z], name="packed")
    k = tvm.reduce_axis((0, K / 1), name="k")
    C = tvm.compute((N,), lambda j: tvm.sum(packed[j // bn, k, j % bn], axis=k), name="C")
    assert [d.dtype for d in packed.shape] == ["int32"] * 3 and packed.shape[0].value == 2
    assert tvm.thread_axis((0, np.float32(8)), "threadIdx.x").dom.extent.value == 8
    b, c = np.random.default_rng(0).random((K, N), "float32"), np.zeros(N, "float32")
    tvm.build(tvm.create_schedule(C.op), [B, C])(b, c)
    np.testing.assert_allclose(c, b.astype("float64").sum(0), rtol=1e-5)


@pytest.mark.parametrize("make", [
    lambda tvm: tvm.placeholder((65 / 32, 4)), lambda tvm: tvm.compute((4, 65 / 32), lambda i, j: i + j),
    lambda tvm: tvm.reduce_axis((0, 65 / 32)), lambda tvm: tvm.thread_axis((0, 65 / 32), "threadIdx.x"),
    lambda tvm: tvm.placeholder((float("inf"),)), lambda tvm: tvm.placeholder((1e300,)),
])
def test_other_floats_are_not(tvm, make):
    with pytest.raises(TilewrightError, match="integer[^$]*`//` divides integers"):
        make(tvm)
