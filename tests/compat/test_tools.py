"""What stands beside the compiler: questions about IR, targets by model, tests, functions by name, diagnostics."""
import unittest

import numpy as np
import pytest

from tests.compat.test_node_types import scaled
from tilewright.support.errors import ArgumentError, ScriptError, StructuralError

BROKEN = "@T.prim_func\ndef f(A: T.Buffer((16,), 'float32')):\n    A[0] = T.float32(1)\n    A[1] = nothing\n"


def test_what_is_wrong_with_a_script_is_shown(tvm):
    from tvm.ir.diagnostics import get_renderer, override_renderer
    seen = []
    override_renderer(lambda context: seen.extend(context.diagnostics))
    try:
        with pytest.raises(tvm.error.DiagnosticError):
            tvm.script.from_source(BROKEN)
        with pytest.raises(ScriptError):
            tvm.script.from_source(3)
        assert get_renderer() is not None
    finally:
        override_renderer(None)
    assert seen[0].span.line == 4 and "nothing" in seen[0].message and seen[0].span.source_name == "<script>"
    assert (seen[0].level, seen[1].span.line) == (1, 1) and get_renderer() is None
    with pytest.raises(tvm.error.DiagnosticError):
        tvm.script.from_source(BROKEN)
    assert len(seen) == 2 and tvm.script.from_source(BROKEN.replace("nothing", "T.float32(2)"))


def test_questions_about_functions(tvm):
    func = tvm.script.from_source("""@T.prim_func
def main(A: T.Buffer((64,), "float32")):
    for i in T.thread_binding(64, "threadIdx.x"):
        A[i] = T.float32(1)
""")
    ask = tvm.tir.analysis
    assert ask.verify_gpu_code(func, {"max_threads_per_block": 64})
    assert not ask.verify_gpu_code(func, {"max_threads_per_block": 32})
    broken = func.replace(params=())
    assert all(ask.verify_well_formed(x) for x in (func, tvm.IRModule({"main": func}))) and ask.verify_ssa(func)
    assert not ask.verify_well_formed(broken, assert_mode=False) and not ask.verify_ssa(broken)
    with pytest.raises(StructuralError):
        ask.verify_well_formed(broken)
    product = scaled(tvm)
    assert ask.estimate_tir_flops(product) == ask.estimate_tir_flops(tvm.IRModule({"main": product})) == 6
    n = tvm.te.var("n")
    a = tvm.te.placeholder((n,), name="A")
    with pytest.raises(ArgumentError, match="cannot be counted"):
        ask.estimate_tir_flops(tvm.te.create_prim_func([a, tvm.te.compute((n,), lambda i: a[i] * 2.0)]))


def test_targets_by_model(tvm):
    gpu, arm = tvm.target.cuda("1080ti", arch="sm_61"), tvm.target.arm_cpu("rasp4b")
    assert (gpu.kind.name, gpu.model, gpu.arch) == ("cuda", "1080ti", "sm_61")
    assert (arm.model, "arm_cpu" in arm.keys, arm.triple) == ("rasp4b", True, "aarch64-linux-gnu")
    llvm = tvm.target.codegen
    assert llvm.llvm_version_major() >= 14 and llvm.llvm_lookup_intrinsic_id("llvm.sqrt") > 0


def test_hybrid_functions_are_built(tvm):
    @tvm.te.hybrid.script
    def doubled(a):
        b = output_tensor(a.shape, a.dtype)        # noqa: F821
        for i in range(8):
            b[i] = a[i] * 2.0
        return b
    a = tvm.te.placeholder((8,), name="A")
    b = doubled(a)
    f = tvm.te.hybrid.build(tvm.te.create_schedule(b.op), [a], [b], name="twice")
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    f["twice"](x, y)
    np.testing.assert_array_equal(y, 2 * x)


def test_functions_by_name(tvm):
    tvm.register_func("tests.compat.plus", lambda x: x + 1, override=True)
    env = tvm.ir.EnvFunc.get("tests.compat.plus")
    assert env.name == "tests.compat.plus" and env(2) == 3
    with pytest.raises(ArgumentError):
        tvm.ir.EnvFunc.get("tests.compat.nowhere")


def test_tests_that_need_a_device_are_skipped(tvm):
    @tvm.testing.requires_gpu
    def first():
        raise AssertionError

    @tvm.testing.requires_cuda()
    def second():
        raise AssertionError
    for test in (first, second):
        with pytest.raises(unittest.SkipTest, match="no code generation"):
            test()
    assert tvm.testing.device_enabled("llvm") and not tvm.testing.device_enabled("cuda")
    with pytest.raises(ArgumentError, match="is no target"):
        tvm.testing.device_enabled(3)


def test_a_script_runs_its_tests(tvm, tmp_path, monkeypatch):
    path = tmp_path / "test_own.py"
    path.write_text("def test_fails():\n    assert False\n")
    monkeypatch.setattr("sys.argv", [str(path), "-q", "-p", "no:cacheprovider"])
    with pytest.raises(SystemExit) as stopped:
        tvm.testing.main()
    assert stopped.value.code == 1


def test_a_function_is_built_as_it_was(tvm):
    x, y = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    tvm.build(scaled(tvm))(x, y)
    np.testing.assert_array_equal(y, 2 * x)
