"""Functions of the graph as text: what is printed is read back, and means the same."""
import numpy as np
import pytest
from test_functions import array, network

from tilewright import script, te, topi
from tilewright.graph.compile import build_function
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.printer import constants_in
from tilewright.graph.ir.regions import If, Loop
from tilewright.graph.ir.types import size
from tilewright.graph.ir.values import check_function
from tilewright.graph.passes.fuse import fuse
from tilewright.script import ir as I
from tilewright.script import relax as R
from tilewright.script import tir as T
from tilewright.support.errors import GraphError, IRError, ScriptError
from tilewright.tir import IRModule, assert_structural_equal, structural_equal, structural_hash


def again(module, **extra):
    """The module that its text describes, which prints the same."""
    read = script.from_source(module.script(), extra_vars={"metadata": constants_in(module), **extra})
    assert read.script() == module.script()
    for f in read.functions.values():
        if hasattr(f, "calls"):
            check_function(f)
    return read


def test_a_network_is_read_back():
    function, reference = network(size("n"))
    assert "\n".join(function.script().split("\n")[:5]) == """\
@R.function
def main(x: R.Tensor(("n", 20), dtype="float32")) -> R.Tensor(("n", 5), dtype="float32"):
    n = T.int64()
    with R.dataflow():
        matmul: R.Tensor((n, 16), dtype="float32") = R.matmul(x, metadata["relax.expr.Constant"][0])"""
    read = again(IRModule({"main": function}))
    x = array(3, 20)
    np.testing.assert_allclose(np.asarray(build_function(read["main"])(x)), reference(x), atol=1e-5)


def test_kernels_are_members_of_the_module():
    function, reference = network(size("n"))
    fused = fuse(function)
    module = IRModule({"main": fused})
    read = again(module)
    assert len(read.functions) == 1 + len(fused.called_functions) > 2
    for f in fused.called_functions:
        assert_structural_equal(read[f.name], f)
    x = array(4, 20)
    np.testing.assert_allclose(np.asarray(build_function(read["main"])(x)), reference(x), atol=1e-5)


def halved(x):
    return te.compute(x.shape, lambda *i: x(*i) * 0.5, name="halved")


def test_every_kind_of_callee_and_attribute():
    bb = BlockBuilder()
    p = bb.param("p", (2, 3))
    with bb.function("twice", [p]):
        bb.emit_func_output(bb.emit_te(topi.multiply, p, 2.0))
    twice = bb.get()["twice"]
    q = bb.param("q", (2, 3))
    with bb.function("half", [q]):
        bb.emit_func_output(bb.emit_te(halved, q))
    i, c = bb.param("i", (), "int64"), bb.param("c", (2, 3))
    with bb.function("step", [i, c]):
        bb.emit_func_output([bb.const(np.array(True)), bb.emit_te(topi.sqrt, c)])
    x, flag = bb.param("x", (2, 3)), bb.param("flag", (), "bool")
    with bb.function("main", [x, flag]):
        a, b = bb.emit_te(topi.split, x, [1, 2], axis=1)
        y = bb.emit_te(topi.concatenate, [b, a], axis=1)
        (z,) = bb.emit_call(twice, [y])
        (z,) = bb.emit_call(If(twice, bb.get()["half"]), [flag, z])
        (z,) = bb.emit_call(Loop(bb.get()["step"], 1), [bb.const(np.int64(2)), bb.const(np.array(True)), z])
        from tilewright.graph.ir.types import TensorType
        w = bb.call_packed("test.some", [z], [TensorType.of((2, 3)), TensorType.of((4,), "int32")])
        k = bb.emit_te(topi.strided_slice, w[0], begin=[0, 0], end=[2, 2])
        bb.emit_func_output([k, w[1], bb.emit_te(topi.clip, z, float("-inf"), 3)])
    main = bb.get()["main"].replace(attrs={"flag": True, "sizes": (1, 2), "text": 'a "quoted" one'})
    text = IRModule({"main": main}).script()
    for part in ("R.call_if(flag, cls.twice, cls.half, [", "R.call_loop(cls.step, [R.const(2, \"int64\"), ",
                 'R.call_dps_packed("test.some", (', "= cls.twice(concatenate)", "R.call_te(halved, q)",
                 "R.concatenate([", 'float("-inf")', "lv[1]", "R.func_attr({"):
        assert part in text, part
    assert set(again(IRModule({"main": main}), halved=halved).functions) == {"main", "twice", "half", "step"}


@I.ir_module
class Written:
    @T.prim_func
    def scale(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(3)

    @R.function
    def main(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        cls = Written
        with R.dataflow():
            y = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((4, 4), dtype="float32"))
            z = R.add(R.multiply(y, R.const(2.0, "float32")), x)
            R.output(z)
        return z


def test_a_module_that_is_written():
    assert list(Written.functions) == ["scale", "main"]
    x = array(4, 4)
    np.testing.assert_allclose(np.asarray(build_function(Written["main"])(x)), x * 7, rtol=1e-6)
    again(Written)

    @R.function
    def alone(x: R.Tensor(("n", 2), "float32")):
        n = T.int64()
        y = R.reshape(x, (2 * n,))
        return R.exp(y)
    assert str(alone.results[0].type) == "float32[n * 2]"


TEXT = """
@R.function
def main(x: R.Tensor((4, 4), "float32")):
    y = {0}
    return y
"""


@pytest.mark.parametrize("part, message", [
    ("R.matmull(x, x)", "matmull"), ("R.matmul(x, z)", "z is not defined"), ("x if x else x", "no such thing"),
    ('R.matmul(x, metadata["relax.expr.Constant"][0])', "extra_vars"), ("R.reshape(x, (3, 3))", "reshape"),
    ("open('f')", "open is not defined"), ("x.__class__", "nothing that a text may use"), ("3", "not a value"),
    ("cls.f(x)", "cls is not defined"), ("R.dataflow()", "outside a script"), ("x[0]", "no tuple"),
    ("R.call_tir(x, (x,), out_sinfo=R.Tensor((4,)))", "call_tir of"),
    ('R.call_dps_packed("f", (x,), out_sinfo=4)', "out_sinfo is"), ("R.exp(x)\n    z = 1; return z", "not a value"),
    ("R.exp(x, 3, 4)", "exp")])
def test_refusals(part, message):
    with pytest.raises(ScriptError, match=message) as why:
        script.from_source(TEXT.format(part))
    assert "<script>:" in str(why.value)


def test_equal_functions_differ_in_names_alone():
    def made(name, w, rule=topi.relu):
        bb = BlockBuilder()
        x = bb.param(name, (size("n"), 3))
        with bb.function("main", [x]):
            bb.emit_func_output(bb.emit_te(rule, bb.emit_te(topi.matmul, x, bb.const(w))))
        return IRModule({"main": bb.get()["main"]})
    w = array(3, 4)
    assert structural_equal(made("x", w), made("y", w.copy()))
    assert structural_hash(made("x", w)) == structural_hash(made("y", w.copy()))
    assert not structural_equal(made("x", w), made("x", w + 1))
    assert not structural_equal(made("x", w), made("x", w, topi.exp))
    assert structural_equal(Written, again(Written))


def test_modules_hold_functions_alone():
    module = IRModule({"main": network(4)[0]})
    with pytest.raises(IRError, match="holds functions, not int"):
        module.update_func("f", 3)
    with pytest.raises(GraphError, match="truth"):
        bool(module["main"].params[0])


def test_extents_that_are_made_of_functions():
    n = size("n")
    bb = BlockBuilder()
    x, y = bb.param("x", (n,)), bb.param("y", (te.max(n - 2, 1), te.min(n, 4)))
    with bb.function("main", [x, y]):
        bb.emit_func_output([x, bb.emit_te(topi.reshape, bb.emit_te(topi.exp, y), (te.max(n - 2, 1) * te.min(n, 4),))])
    function = bb.get()["main"]
    read = script.from_source(function.script())
    assert read.script() == function.script() and [p.type for p in read.params] == [p.type for p in function.params]
    a, b = array(7), array(5, 4)
    np.testing.assert_allclose(np.asarray(build_function(read)(a, b)[1]), np.exp(b).reshape(-1), rtol=1e-6)
