"""tvm.relax: functions of bindings are built, shown, rewritten, compiled and run."""
import numpy as np
import pytest

from tests.topi import references
from tilewright.support.errors import TilewrightError

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype("float32")


def ran(tvm, mod, *inputs, name="main"):
    """The result of a function, as NumPy has it."""
    vm = tvm.relax.VirtualMachine(tvm.relax.build(mod, "llvm"), tvm.cpu())
    out = vm[name](*(tvm.nd.array(x) for x in inputs))
    return [x.numpy() for x in out] if isinstance(out, (list, tuple)) else out.numpy()


def layers(tvm, n=4, w=None, b=None):
    """relu(x @ w.T + b) in operators of the graph, and its arrays."""
    relax = tvm.relax
    w, b = f32(5, 7) if w is None else w, f32(5) if b is None else b
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((n, 7), "float32"))
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(relax.op.matmul(x, relax.op.permute_dims(relax.const(w))))
            lv1 = bb.emit(lv + relax.const(b))
            gv = bb.emit_output(relax.op.nn.relu(lv1))
        bb.emit_func_output(gv)
    return bb.get(), w, b


def test_a_function_is_shown(tvm):
    mod, *_ = layers(tvm)
    assert mod.script() == """\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 7), dtype="float32")) -> R.Tensor((4, 5), dtype="float32"):
        with R.dataflow():
            lv: R.Tensor((7, 5), dtype="float32") = R.permute_dims(metadata["relax.expr.Constant"][0])
            lv1: R.Tensor((4, 5), dtype="float32") = R.matmul(x, lv)
            lv2: R.Tensor((4, 5), dtype="float32") = R.add(lv1, metadata["relax.expr.Constant"][1])
            gv: R.Tensor((4, 5), dtype="float32") = R.nn.relu(lv2)
            R.output(gv)
        return gv"""
    assert str(mod["main"]).startswith("@R.function\ndef main(x: R.Tensor((4, 7)")


@pytest.mark.parametrize("passes", [
    [], ["LegalizeOps"], ["LegalizeOps", "AnnotateTIROpPattern", "FuseOps", "FuseTIR"], ["CanonicalizeBindings"],
    ["FoldConstant", "DeadCodeElimination"]])
def test_passes_change_no_result(tvm, passes):
    mod, w, b = layers(tvm)
    for name in passes:
        mod = getattr(tvm.relax.transform, name)()(mod)
    x = f32(4, 7)
    np.testing.assert_allclose(ran(tvm, mod, x), np.maximum(x @ w.T + b, 0), rtol=1e-5, atol=1e-6)
    if "FuseTIR" in passes:
        assert any("fused_matmul_add_relu" in name for name in mod.functions)
    if "FoldConstant" in passes:
        assert "permute_dims" not in mod.script()


def test_sizes_are_symbols(tvm):
    from tvm import relax, topi
    n = tvm.tir.Var("n", "int64")
    mod, w, b = layers(tvm, n)
    assert 'x: R.Tensor(("n", 7), dtype="float32")' in mod.script()
    mod = relax.transform.LegalizeOps()(mod)
    for rows in (1, 9):
        x = f32(rows, 7)
        np.testing.assert_allclose(ran(tvm, mod, x), np.maximum(x @ w.T + b, 0), rtol=1e-5, atol=1e-6)
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo((n, 2, 3), "float32"))
    with bb.function("main", [x]):
        gv = bb.emit_te(topi.reshape, x, (n * 2, 3))
        assert str(gv.struct_info.shape[0]) == "n * T.int64(2)" and gv.struct_info.ndim == 2
        bb.emit_func_output(bb.emit(relax.op.reshape(gv, (n, 6))))
    x = f32(5, 2, 3)
    np.testing.assert_array_equal(ran(tvm, bb.get(), x), x.reshape(5, 6))


def test_tuples_and_inner_functions(tvm):
    from tvm import relax
    bb = relax.BlockBuilder()
    x = relax.Var("x", (6, 4), relax.DynTensorType(2, "float32"))
    with bb.function("halves", [x], attrs={"Primitive": 1}):
        bb.emit_func_output(bb.emit(relax.op.split(x, 2, axis=1)))
    y = relax.Var("y", (6, 4), relax.DynTensorType(2, "float32"))
    with bb.function("main", [y]):
        with bb.dataflow():
            both = bb.emit(relax.Call(tvm.ir.GlobalVar("halves"), [y]))
            a, b = bb.emit(both[0]), bb.emit(relax.TupleGetItem(both, 1))
            out = bb.emit_output(relax.Tuple([a * 2.0, relax.op.sum(b, axis=0), y]))
        bb.emit_func_output(out)
    given = f32(6, 4)
    first, second, third = ran(tvm, bb.get(), given)
    np.testing.assert_array_equal(first, given[:, :2] * 2)
    np.testing.assert_allclose(second, given[:, 2:].sum(0), rtol=1e-5)
    np.testing.assert_array_equal(third, given)


def test_packed_functions(tvm):
    from tvm import relax

    @tvm.register_func("test.relax.twice", override=True)
    def twice(x, out):
        out.copyfrom(x.numpy() * 2)

    @tvm.register_func("test.relax.thrice", override=True)
    def thrice(x):
        return tvm.nd.array(x.numpy() * 3)

    bb = relax.BlockBuilder()
    info = relax.TensorStructInfo((3, 4), "float32")
    x = relax.Var("x", info)
    with bb.function("main", [x]):
        y = bb.emit(relax.op.call_dps_packed("test.relax.twice", (x,), out_sinfo=info))
        bb.emit_func_output(bb.emit(relax.op.call_pure_packed("test.relax.thrice", y, sinfo_args=info)))
    given = f32(3, 4)
    np.testing.assert_allclose(ran(tvm, bb.get(), given), given * 6, rtol=1e-6)
    assert 'R.call_dps_packed("test.relax.twice", (x,), out_sinfo=' in bb.get().script()


def test_patterns_make_functions(tvm):
    from tvm import relax
    from tvm.relax.dpl import is_op, rewrite_call, wildcard
    mod, w, b = layers(tvm)
    product = is_op("relax.matmul")(wildcard(), wildcard())
    pattern = is_op("relax.nn.relu")(is_op("relax.add")(product, wildcard()))
    fused = relax.transform.FuseOpsByPattern([("own.layer", pattern)])(mod)
    (name,) = [n for n in fused.functions if n != "main"]
    assert name == "fused_relax_matmul_relax_add_relax_nn_relu" and fused[name].attrs["Composite"] == "own.layer"
    x = f32(4, 7)
    want = np.maximum(x @ w.T + b, 0)
    np.testing.assert_allclose(ran(tvm, fused, x), want, rtol=1e-5, atol=1e-6)
    plain = rewrite_call(is_op("relax.nn.relu")(wildcard()), lambda call, found: relax.op.nn.gelu(call.args[0]),
                         mod["main"])
    assert "R.nn.gelu" in str(plain) and "R.nn.relu" not in str(plain)


def test_visitors_and_mutators(tvm):
    from tvm import relax
    mod, *_ = layers(tvm)
    seen = []

    @relax.expr_functor.visitor
    class Names(relax.PyExprVisitor):
        def visit_call_(self, op):
            seen.append(op.op.name)
            super().visit_call_(op)

    @relax.expr_functor.mutator
    class Squared(relax.PyExprMutator):
        def visit_call_(self, op):
            call = self.visit_expr_post_order(op)
            if call.op == tvm.ir.Op.get("relax.nn.relu"):
                x = self.builder_.emit(relax.op.multiply(call.args[0], call.args[0]))
                return relax.op.nn.softmax(x, axis=0)
            return call
    Names().visit_expr(mod["main"])
    assert seen == ["relax.permute_dims", "relax.matmul", "relax.add", "relax.nn.relu"]
    new = Squared(mod).visit_expr(mod["main"])
    assert relax.analysis.well_formed(tvm.IRModule({"main": new})) and "R.nn.softmax(lv3, axis=0)" in str(new)
    assert [b.var.name_hint for b in new.body.blocks[0].bindings] == ["lv", "lv1", "lv2", "lv3", "gv"]


def test_parameters_are_bound_and_timed(tvm):
    from tvm import relax
    bb = relax.BlockBuilder()
    x, w = (relax.Var(name, (4, 4), relax.DynTensorType(2, "float32")) for name in "xw")
    with bb.function("main", [x, w]):
        bb.emit_func_output(bb.emit(relax.op.matmul(x, w)))
    given, weight = f32(4, 4), f32(4, 4)
    mod = relax.transform.BindParams("main", {"w": weight})(bb.get())
    assert [p.name_hint for p in mod["main"].params] == ["x"]
    np.testing.assert_allclose(ran(tvm, mod, given), given @ weight, rtol=1e-5, atol=1e-5)
    vm = relax.VirtualMachine(relax.build(bb.get(), tvm.target.Target("llvm")), tvm.cpu())
    vm.set_input("main", tvm.nd.array(given), w=tvm.nd.array(weight))
    vm.invoke_stateful("main")
    np.testing.assert_allclose(vm.get_outputs("main").numpy(), given @ weight, rtol=1e-5, atol=1e-5)
    assert vm.time_evaluator("main", tvm.cpu(), number=2)().mean > 0


@pytest.mark.parametrize("wrong, message", [
    (lambda tvm, bb, x: bb.emit(tvm.relax.op.matmul(x, x)), "matmul"),
    (lambda tvm, bb, x: tvm.relax.op.nn.relu(x, 3), "relax.nn.relu"),
    (lambda tvm, bb, x: tvm.relax.op.call_tir(tvm.ir.GlobalVar("f"), (x,)), "results of the call are not stated"),
    (lambda tvm, bb, x: tvm.ir.Op.get("relax.nothing"), "there is no function"),
    (lambda tvm, bb, x: bb.emit("x"), "no expression"),
    (lambda tvm, bb, x: bb.emit_output(x), "no dataflow block"),
    (lambda tvm, bb, x: bb.emit_te(lambda t: 1, x), "not a tensor"),
])
def test_refusals(tvm, wrong, message):
    bb = tvm.relax.BlockBuilder()
    x = tvm.relax.Var("x", tvm.relax.TensorStructInfo((3, 4), "float32"))
    with pytest.raises(TilewrightError, match=message):
        with bb.function("main", [x]):
            wrong(tvm, bb, x)
            bb.emit_func_output(x)


def test_what_cannot_be_built(tvm):
    from tvm import relax
    bb = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorStructInfo(ndim=-1, dtype="float32"))
    with bb.function("main", [x]):
        bb.emit_func_output(x)
    with pytest.raises(TilewrightError, match="shape of main: the parameter x is not known"):
        relax.build(bb.get(), "llvm")
    with pytest.raises(TilewrightError, match="no relax function"):
        relax.build(tvm.IRModule({}), "llvm")


def test_operators_agree_with_numpy(tvm):
    op = tvm.relax.op
    x, y = f32(2, 4, 6, 6), f32(2, 4, 6, 6)
    mask = np.array(x > 0)
    softplus = np.log1p(np.exp(x.astype("float64")))
    mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    gamma, beta = f32(4), f32(4)
    rows = [
        (lambda a, b: op.nn.softplus(a), softplus), (lambda a, b: op.concat([a, b], axis=1), np.concatenate([x, y], 1)),
        (lambda a, b: op.masked_fill(a, tvm.relax.const(mask), 3.0), np.where(mask, 3, x)),
        (lambda a, b: op.where(tvm.relax.const(mask), a, b), np.where(mask, x, y)),
        (lambda a, b: op.nn.adaptive_avg_pool2d(a, 1), x.mean((2, 3), keepdims=True)),
        (lambda a, b: op.nn.instance_norm(a, tvm.relax.const(gamma), tvm.relax.const(beta), axes=[2, 3]),
         (x - mean) / np.sqrt(var + 1e-5) * gamma.reshape(4, 1, 1) + beta.reshape(4, 1, 1)),
        (lambda a, b: op.nn.max_pool2d(a, (2, 2), (2, 2)), x.reshape(2, 4, 3, 2, 3, 2).max((3, 5))),
        (lambda a, b: op.nn.pad(a, (0, 0, 0, 0, 1, 2, 0, 0)), np.pad(x, ((0, 0), (0, 0), (1, 2), (0, 0)))),
        (lambda a, b: op.strided_slice(a, [2, 3], [1, 0], [5, 6], [2, 3]), x[:, :, 1:5:2, 0:6:3]),
        (lambda a, b: op.argmax(a, axis=1), x.argmax(1)), (lambda a, b: op.cumsum(a, axis=2), x.cumsum(2)),
        (lambda a, b: op.einsum((a, b), "nchw,nchw->nc"), np.einsum("nchw,nchw->nc", x, y)),
        (lambda a, b: op.take(a, tvm.relax.const(np.array([3, 0])), axis=1), x[:, [3, 0]]),
        (lambda a, b: op.broadcast_to(op.mean(a, axis=[2, 3], keepdims=True), (2, 4, 3, 5)),
         np.broadcast_to(x.mean((2, 3), keepdims=True), (2, 4, 3, 5))),
        (lambda a, b: op.add(op.zeros((6,), "float32"), op.full_like(a, 2.0)), np.full_like(x, 2)),
        (lambda a, b: op.astype(op.greater(a, b), "int32"), (x > y).astype("int32")),
        (lambda a, b: op.variance(a, axis=1), x.var(1)), (lambda a, b: 1.0 - a / b, 1 - x / y)]
    agrees(tvm, rows, x, y)


def agrees(tvm, rows, *arrays):
    """Each row is an operator of the arrays and what NumPy has; the types are of one kind."""
    bb = tvm.relax.BlockBuilder()
    params = [tvm.relax.Var(f"x{n}", tvm.relax.TensorStructInfo(x.shape, str(x.dtype))) for n, x in enumerate(arrays)]
    with bb.function("main", params):
        bb.emit_func_output(tvm.relax.Tuple([bb.emit(f(*params)) for f, _ in rows]))
    for mod in (bb.get(), tvm.relax.transform.LegalizeOps()(bb.get())):
        for got, (_, want) in zip(ran(tvm, mod, *arrays), rows, strict=True):
            assert got.dtype.kind == np.asarray(want).dtype.kind and got.shape == np.shape(want)
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


def attended(x, offset):
    """Attention of x to its first 3 places: query i asks for the keys up to i + offset."""
    keys = x[:, :3]
    scores = np.exp(np.einsum("bihd,bjhd->bhij", x, keys) / np.sqrt(x.shape[-1])) * np.tril(np.ones((4, 3)), offset)
    return np.einsum("bhij,bjhd->bihd", scores / scores.sum(-1, keepdims=True), keys)


def test_attributes_have_their_documented_effect(tvm):
    op, const = tvm.relax.op, tvm.relax.const
    x, w, g = f32(1, 4, 5, 5), f32(4, 3, 2, 2), f32(4)
    last, c = np.moveaxis(x, 1, -1), g.reshape(4, 1, 1)
    standard = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
    rows = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    scale = f32(5)
    spread = references.conv_transpose(x, w, 1, 0, 0, 2)
    chosen = x[:, :, [0, 1, 3]][:, :, :, [0, 1, 3]]
    agrees(tvm, [
        (lambda a: op.nn.conv2d_transpose(a, const(w), dilation=2), spread),
        (lambda a: op.nn.conv2d_transpose(op.permute_dims(a, [0, 2, 3, 1]), const(w.transpose(2, 3, 1, 0)), dilation=2,
                                          data_layout="NHWC", kernel_layout="HWOI"), np.moveaxis(spread, 1, -1)),
        (lambda a: op.nn.adaptive_avg_pool2d(a), x),
        (lambda a: op.nn.adaptive_avg_pool2d(op.permute_dims(a, [0, 2, 3, 1]), 1, layout="NHWC"),
         last.mean((1, 2), keepdims=True)),
        (lambda a: op.nn.layer_norm(a, const(scale), const(scale), [-1], scale=False), rows + scale),
        (lambda a: op.nn.layer_norm(a, const(scale), const(scale), [-1], center=False), rows * scale),
        (lambda a: op.nn.group_norm(a, const(g), const(g), 4, 1, [2, 3], center=False), standard * c),
        (lambda a: op.nn.instance_norm(a, const(g), const(g), 1, [2, 3], scale=False), standard + c),
        (lambda a: op.nn.instance_norm(a, const(g), const(g), [2, 3]), standard * c + c),
        (lambda a: op.nn.batch_norm(a, const(g), const(g), const(g), const(g), 1)[0], standard * c + c),
        (lambda a: op.nn.batch_norm(a, const(g), const(g), const(g), const(g), 1)[1],
         g * 0.9 + x.mean((0, 2, 3)) * 0.1),
        (lambda a: op.nn.batch_norm(a, const(g), const(g), const(g), const(g * g), 1, training=False)[0],
         (x - c) / np.sqrt(c * c + 1e-5) * c + c),
        (lambda a: op.nn.dropout(a)[1], np.ones_like(x)), (lambda a: op.nn.pixel_shuffle(a, 2),
                                                           x.reshape(1, 1, 2, 2, 5, 5).transpose(0, 1, 4, 2, 5, 3)
                                                           .reshape(1, 1, 10, 10)),
        (lambda a: op.nn.softplus(a, 2.0, 0.5), np.where(x > 0.25, x, np.log1p(np.exp(2 * x)) / 2)),
        (lambda a: op.nn.cross_entropy_with_logits(op.reshape(a, (4, 25)), op.reshape(a, (4, 25))),
         np.float32(-(x * x).sum() / 4)),
        (lambda a: op.nn.attention(a, op.strided_slice(a, [1], [0], [3]), op.strided_slice(a, [1], [0], [3]),
                                   causal_mask="TopLeft"), attended(x, 0)),
        (lambda a: op.nn.attention(a, op.strided_slice(a, [1], [0], [3]), op.strided_slice(a, [1], [0], [3]),
                                   causal_mask="BottomRight"), attended(x, 1)),
        (lambda a: op.image.resize2d(a, (3, 3), method="nearest_neighbor", rounding_method="floor",
                                     coordinate_transformation_mode="asymmetric"), chosen),
        (lambda a: op.nn.relu(data=a), np.maximum(x, 0))], x)
    n, m = RNG.integers(-9, 9, (2, 3)).astype("int32"), RNG.integers(1, 4, (2, 3)).astype("int32")
    agrees(tvm, [
        (lambda a, b: op.divide(a, b), np.trunc(n / m).astype("int32")), (lambda a, b: op.full((2,), 3), np.full(2, 3)),
        (lambda a, b: op.one_hot(b, tvm.relax.PrimValue(1), tvm.relax.PrimValue(0), 4), np.eye(4, dtype=int)[m])], n, m)
    total = tvm.relax.BlockBuilder().normalize(op.sum(tvm.relax.const(n)))
    assert total.struct_info.dtype == "int32"


@pytest.mark.parametrize("wrong, message", [
    (lambda op, x: op.nn.conv2d(x, x, out_layout="NHWC"), "out_layout is 'NHWC'"),
    (lambda op, x: op.nn.max_pool2d(x, out_layout="NHWC"), "out_layout is 'NHWC'"),
    (lambda op, x: op.nn.pad(x, [1, 1, 1]), "two numbers for each dimension"),
    (lambda op, x: op.nn.attention(x, x, x, causal_mask="Top"), "causal_mask is 'Top'"),
    (lambda op, x: op.nn.attention(x, x, x, window_size=2), "window_size is 2"),
    (lambda op, x: op.image.resize2d(x, (3, 3), method="best"), "the method is 'best'")])
def test_attributes_without_an_effect_are_refused(tvm, wrong, message):
    x = tvm.relax.Var("x", tvm.relax.TensorStructInfo((1, 4, 5, 5), "float32"))
    with pytest.raises(TilewrightError, match=message):
        tvm.relax.BlockBuilder().normalize(wrong(tvm.relax.op, x))


def test_functions_of_the_graph_become_relax_functions(tvm):
    from tilewright import topi
    from tilewright.compat.relax.lift import lift
    from tilewright.graph.ir.builder import BlockBuilder
    from tilewright.graph.ir.types import size
    w = f32(6, 4)
    bb = BlockBuilder()
    x = bb.param("x", (size("n"), 6))
    with bb.function("main", [x]):
        y = bb.emit_te(topi.relu, bb.emit_te(topi.matmul, x, bb.const(w)))
        a, b = bb.emit_te(topi.split, y, [1, 3], axis=1)
        bb.emit_func_output([bb.emit_te(topi.concatenate, [b, a], axis=1), bb.emit_te(topi.relu, a)])
    mod = lift(bb.get()["main"])
    assert list(mod.functions)[-1] == "main" and "R.call_tir(cls.matmul, (x, metadata" in mod.script()
    given = f32(5, 6)
    want = np.maximum(given @ w, 0)
    first, second = ran(tvm, mod, given)
    np.testing.assert_allclose(first, np.roll(want, -1, 1), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(second, want[:, :1], rtol=1e-5, atol=1e-5)


def test_models_of_other_systems(tvm):
    torch = pytest.importorskip("torch")
    from tvm import relax
    from tvm.relax.frontend.torch import from_exported_program
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.GELU(), torch.nn.Linear(7, 3)).eval()
    x = torch.randn(4, 5)
    mod = from_exported_program(torch.export.export(model, (x,)))
    ex = relax.build(relax.get_pipeline("zero")(mod), "llvm")
    got = relax.VirtualMachine(ex, tvm.cpu())["main"](tvm.nd.array(x.numpy()))
    got = got[0] if isinstance(got, (list, tuple)) else got
    np.testing.assert_allclose(got.numpy(), model(x).detach().numpy(), rtol=1e-4, atol=1e-5)
