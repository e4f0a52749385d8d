"""Relax functions in scripts: as courses write them, and as they are printed."""
import numpy as np
import pytest

from tilewright.support.errors import ScriptError, TilewrightError

RNG = np.random.default_rng(1)

COURSE = '''
import numpy as np
import tvm
from tvm.script import ir as I, relax as R, tir as T


@tvm.register_func("env.linear", override=True)
def linear(x, w, b, out):
    out.copyfrom(x.numpy() @ w.numpy().T + b.numpy())


@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def relu0(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (1, n), "float32")
        Y = T.match_buffer(y, (1, n), "float32")
        for i, j in T.grid(1, n):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @T.prim_func
    def linear0(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        m, n, k = T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (1, m), "float32")
        W = T.match_buffer(w, (n, m), "float32")
        B = T.match_buffer(b, (n,), "float32")
        Z = T.match_buffer(z, (1, n), "float32")
        Y = T.alloc_buffer((1, n), "float32")
        for i, j, k in T.grid(1, n, m):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, n):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(x: R.Tensor((1, "m"), "float32"), w0: R.Tensor(("n", "m"), "float32"), b0: R.Tensor(("n",), "float32"),
             w1: R.Tensor(("k", "n"), "float32"), b1: R.Tensor(("k",), "float32")) -> R.Tensor((1, "k"), "float32"):
        m, n, k = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            cls = MyModule
            lv0 = R.call_tir(cls.linear0, (x, w0, b0), R.Tensor((1, n), "float32"))
            lv1 = R.call_tir(cls.relu0, (lv0,), R.Tensor((1, n), "float32"))
            out = R.call_dps_packed("env.linear", (lv1, w1, b1), R.Tensor((1, k), dtype="float32"))
            R.output(out)
        return out
'''


def arrays():
    return [RNG.standard_normal(s).astype("float32") for s in ((1, 30), (20, 30), (20,), (10, 20), (10,))]


def test_a_program_of_a_course(tvm, tmp_path):
    file = tmp_path / "course.py"
    file.write_text(COURSE)
    space = {"__name__": "course"}
    exec(compile(COURSE, str(file), "exec"), space)          # the parser reads the file that the code object names
    mod = space["MyModule"]
    x, w0, b0, w1, b1 = arrays()
    want = np.maximum(x @ w0.T + b0, 0) @ w1.T + b1
    ex = tvm.relax.build(mod, target="llvm")
    vm = tvm.relax.VirtualMachine(ex, tvm.cpu())
    got = vm["main"](*map(tvm.nd.array, (x, w0, b0, w1, b1)))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-4)
    assert isinstance(mod["main"], tvm.relax.Function) and isinstance(mod["relu0"], tvm.tir.PrimFunc)
    again = tvm.script.from_source(mod.script())
    assert again.script() == mod.script()
    with_params = tvm.relax.transform.BindParams("main", {"w0": w0, "b0": b0, "w1": w1, "b1": b1})(again)
    vm = tvm.relax.VirtualMachine(tvm.relax.build(with_params, "llvm"), tvm.cpu())
    np.testing.assert_allclose(vm["main"](tvm.nd.array(x)).numpy(), want, rtol=1e-4, atol=1e-4)


OPERATORS = '''
from tvm.script import relax as R

@R.function
def main(x: R.Tensor((2, 8), "float32"), w: R.Tensor((4, 8), "float32")):
    with R.dataflow():
        lv = R.matmul(x, R.permute_dims(w))
        lv1 = R.nn.softmax(R.add(lv, R.const(1.5, "float32")), axis=-1)
        lv2 = R.split(lv1, 2, axis=1)
        a = lv2[0]
        R.output(a, lv1)
    b: R.Tensor((8,), "float32") = R.reshape(lv1, R.shape([8]))
    return (a, b, R.sum(lv1, axis=[0]))
'''


def test_operators_and_tuples(tvm):
    from tvm import relax
    func = tvm.script.from_source(OPERATORS)
    text = func.script()
    assert "lv3: R.Tensor((8, 4)" in text and "R.output(lv1, a)" in text and "R.reshape(lv1, R.shape([8]))" in text
    assert tvm.script.from_source(text).script() == text
    vm = relax.VirtualMachine(relax.build(tvm.IRModule({"main": func}), "llvm"), tvm.cpu())
    x, w = (RNG.standard_normal(s).astype("float32") for s in ((2, 8), (4, 8)))
    a, b, total = (t.numpy() for t in vm["main"](tvm.nd.array(x), tvm.nd.array(w)))
    e = np.exp(x @ w.T + 1.5)
    want = e / e.sum(1, keepdims=True)
    for got, expected in ((a, want[:, :2]), (b, want.reshape(8)), (total, want.sum(0))):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("part, message", [
    ("R.matmul(x, x)", "matmul"), ("R.nn.relux(x)", "relux"), ("R.const", "no expression|says nothing"),
    ("3", "not a value"), ("y", "y is not defined")])
def test_refusals(tvm, part, message):
    text = f'@R.function\ndef main(x: R.Tensor((2, 8), "float32")):\n    z = {part}\n    return z\n'
    with pytest.raises(ScriptError, match=message):
        tvm.script.from_source(text)


OLD = '''
from __future__ import annotations
import tvm
from tvm.script import relax as R, tir as T


@tvm.register_func("env.biased", override=True)
def biased(x, b, out):
    out.copyfrom(x.numpy() + b.numpy())


@tvm.script.ir_module
class Mixture:
    @T.prim_func
    def product(X: T.Buffer[(2, 8), "float32"], W: T.Buffer[(4, 8), "float32"], Y: T.Buffer[(2, 4), "float32"]):
        T.func_attr({"global_symbol": "product", "tir.noalias": True})
        for i, j, k in T.grid(2, 4, 8):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]

    @R.function
    def main(x: Tensor((2, 8), "float32"), w: Tensor((4, 8), "float32"), b: Tensor((4,), "float32")):
        with R.dataflow():
            lv0 = R.call_tir(product, (x, w), (2, 4), dtype="float32")
            lv1 = R.nn.relu(lv0)
            out = R.call_tir("env.biased", (lv1, b), (2, 4), dtype="float32")
            R.output(out)
        return out
'''


def test_a_program_of_2022_with_a_schedule_for_one_function(tvm, tmp_path):
    from tvm import relax
    file = tmp_path / "old.py"
    file.write_text(OLD)
    space = {"__name__": "old"}
    exec(compile(OLD, str(file), "exec"), space)
    x, w, b = (RNG.standard_normal(s).astype("float32") for s in ((2, 8), (4, 8), (4,)))
    mod = relax.transform.BindParams("main", {"w": tvm.nd.array(w), "b": tvm.nd.array(b)})(space["Mixture"])
    sch = tvm.tir.Schedule(tvm.IRModule.from_expr(mod["product"].with_attr("global_symbol", "main")))
    block = sch.get_block("Y", "main")
    i, j, k = sch.get_loops(block)
    sch.reorder(k, j)
    sch.unroll(j)
    mod.update_func(mod.get_global_var("product"), sch.mod["main"].with_attr("global_symbol", "product"))
    want = np.maximum(x @ w.T, 0) + b
    for ex in (relax.vm.build(mod, target="llvm"), tvm.compile(relax.get_pipeline("zero")(mod), target="llvm")):
        got = relax.VirtualMachine(ex, tvm.cpu())["main"](tvm.nd.array(x)).numpy()
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    with pytest.raises(TilewrightError, match="main is a function of the graph"):
        tvm.build(mod, "llvm")


def test_a_library_is_loaded_by_the_machine(tvm, tmp_path):
    from tvm import relax
    func = tvm.script.from_source(
        '@R.function\ndef main(x: R.Tensor(("n", 8), "float32")):\n    y = R.exp(x)\n    return y\n')
    path = str(tmp_path / "model.so")
    relax.build(tvm.IRModule({"main": func}), "llvm").export_library(path)
    vm = relax.VirtualMachine(tvm.runtime.load_module(path), tvm.cpu())
    x = RNG.standard_normal((3, 8)).astype("float32")
    np.testing.assert_allclose(vm["main"](tvm.nd.array(x)).numpy(), np.exp(x), rtol=1e-5)


BRANCHES = '''
from tvm.script import relax as R

@R.function
def main(flag: R.Tensor((), "bool"), x: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):
    y = R.exp(x)
    if flag:
        a = R.multiply(y, x)
        z = R.add(a, R.const(1.0, "float32"))
    else:
        z = R.nn.relu(x)
    return z
'''


def test_branches(tvm):
    from tvm import relax
    func = tvm.script.from_source(BRANCHES)
    text = func.script()
    assert "    if flag:\n" in text and "    else:\n" in text and tvm.script.from_source(text).script() == text
    mod = tvm.IRModule({"main": func})
    x = RNG.standard_normal((3, 4)).astype("float32")
    for m in (mod, relax.transform.LegalizeOps()(mod)):
        vm = relax.VirtualMachine(relax.build(m, "llvm"), tvm.cpu())
        for flag, want in ((True, np.exp(x) * x + 1), (False, np.maximum(x, 0))):
            got = vm["main"](tvm.nd.array(np.array(flag)), tvm.nd.array(x)).numpy()
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    with pytest.raises(ScriptError, match="both branches end"):
        tvm.script.from_source(BRANCHES.replace("z = R.nn", "b = R.nn"))
