"""Names of arith, ir, runtime and target."""
import pytest

from tilewright.compat import tvm

from . import form
from .shared import check_added, product, staged

te, tir = tvm.te, tvm.tir


# ---- arith

@form("'Analyzer' object has no attribute 'update'", r"tvm\.arith\.analyzer\.Analyzer", "ModularSet")
def facts_of_variables():
    from tvm.arith.analyzer import Analyzer
    an, x = Analyzer(), te.var("x")
    an.update(x, tvm.arith.ConstIntBound(-1, 1))
    assert an.const_int_bound(x * 2).max_value == 2
    an.update(x, tvm.arith.ConstIntBound(0, 7), override=True)
    assert an.const_int_bound(x).max_value == 7
    an.update(x, tvm.arith.ModularSet(4, 3))
    assert (an.modular_set(x + 1).coeff, an.modular_set(x + 1).base) == (4, 0)


@form("modular_set")
def modular_sets():
    found = tvm.arith.Analyzer().modular_set(te.var("x") * 4 + 3)
    assert (found.coeff, found.base) == (4, 3)


@form("detect_iter_map|normalize_iter_map|normalize_to_iter_sum|IterMark")
def iterator_maps():
    x, y = te.var("x"), te.var("y")
    domains = {x: tvm.ir.Range(0, 3), y: tvm.ir.Range(0, 4)}
    found = tvm.arith.detect_iter_map([x * 4 + y], domains)
    assert isinstance(found.indices[0], tvm.arith.IterSumExpr) and int(found.indices[0].args[0].extent) == 12
    tvm.ir.assert_structural_equal(tvm.arith.normalize_iter_map_to_expr(found.indices[0]), x * 4 + y)
    assert isinstance(tvm.arith.normalize_to_iter_sum(x * 4 + y, domains), tvm.arith.IterSumExpr)
    made = tvm.arith.IterSumExpr([tvm.arith.IterSplitExpr(tvm.arith.IterMark(x, 4), 1, 4, 1)], 2)
    tvm.ir.assert_structural_equal(tvm.arith.normalize_iter_map_to_expr(made), x + 2)


@form("IntervalSet|IntSet|int_set")
def sets_of_integers():
    an, x, y = tvm.arith.Analyzer(), te.var("x"), te.var("y")
    found = an.int_set(x + y, {x: tvm.arith.IntervalSet(0, 10)})
    assert an.can_prove_equal(found.max_value, y + 10) and an.can_prove_equal(found.min_value, y)
    lanes = tvm.arith.IntSet.vector(tir.Ramp(x, 1, 4))
    assert an.can_prove_equal(lanes.max_value - lanes.min_value, 3)


@form("NEG_INF")
def infinite_bounds():
    bound = tvm.arith.Analyzer().const_int_bound(te.var("n", "int64"))
    assert (bound.min_value, bound.max_value) == (bound.NEG_INF, bound.POS_INF)


@form("detect_linear_equation")
def linear_equations():
    x, y = te.var("x"), te.var("y")
    factor, rest = tvm.arith.detect_linear_equation(x * 4 + y * 6 + 7, [x])
    assert int(factor) == 4 and tvm.arith.Analyzer().can_prove_equal(rest, y * 6 + 7)


@form("solve_linear_equations")
def solved_equations():
    x, y = te.var("x"), te.var("y")
    found = tvm.arith.solve_linear_equations([tir.EQ(x + y, 20), tir.EQ(x - y, 10)], [x, y])
    assert (int(found.src_to_dst[x]), int(found.src_to_dst[y])) == (15, 5)


@form("deduce_bound")
def deduced_bounds():
    a = te.var("a")
    assert int(tvm.arith.deduce_bound(a, a * 2 <= 9, {}, {}).max_value) == 4


@form("detect_clip_bound")
def clipped_bounds():
    a, b = te.var("a"), te.var("b")
    low, high = tvm.arith.detect_clip_bound(tir.all(a < b * 6, a - 1 > 0), [a])
    assert int(low) == 2 and tvm.arith.Analyzer().can_prove_equal(high, b * 6 - 1)


@form("subspace_divide")
def divided_spaces():
    x, y = te.var("x"), te.var("y")
    found = tvm.arith.subspace_divide([x * 4 + y], {x: tvm.ir.Range(0, 3), y: tvm.ir.Range(0, 4)}, [y])
    assert int(found[0][1].extent) == 4


@form("ProofStrength")
def how_hard_to_prove():
    x = te.var("x")
    assert tvm.arith.Analyzer().can_prove(x < x + 1, tvm.arith.ProofStrength.SYMBOLIC_BOUND)


# ---- ir

@form(r"tvm\.ir\.base")
def base_of_nodes():
    tvm.ir.base.assert_structural_equal(te.var("x") + 1, te.var("x") + 1, map_free_vars=True)
    tvm.ir.assert_structural_equal(tvm.ir.base.load_json(tvm.ir.base.save_json(product())), product())


@form("save_json|load_json")
def nodes_as_json():
    tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(product())), product())


@form("override_renderer")
def diagnostics_of_scripts():
    from tvm.ir.diagnostics import override_renderer
    got = []
    override_renderer(lambda e: got.extend(e.diagnostics))
    try:
        with pytest.raises(tvm.error.DiagnosticError):
            tvm.script.from_source("@T.prim_func\ndef f(a: T.handle) -> None:\n"
                                   "    A = T.match_buffer(a, (16,), 'float32')\n    A[0] = undefined_name\n")
    finally:
        override_renderer(None)
    assert [d.span.line for d in got] == [4]


@form(r"tvm\.ir\.EnvFunc")
def functions_by_name():
    tvm.register_func("forms.add_one", lambda x: x + 1, override=True)
    found = tvm.ir.EnvFunc.get("forms.add_one")
    assert found.name == "forms.add_one" and found(1) == 2


@form(r"tvm\.ir\.Op ")
def operators_by_name():
    assert tvm.ir.Op.get("tir.exp").name == "tir.exp"


@form("PointerType", r"Var\.__init__\(\) got an unexpected")
def types_of_variables():
    assert tir.Var("p", tvm.ir.PointerType(tvm.ir.PrimType("float32"), "global")).dtype == "handle"
    assert tir.Var("x", dtype="float32").dtype == "float32" and tvm.var("x", dtype=tvm.float32).dtype == "float32"


@form(r"tvm\.tir\.op does|tvm\.tir\.expr|tir\.expr\.IntImm")
def files_of_tir():
    from tvm.tir import op
    from tvm.tir.expr import Add, IntImm
    assert isinstance(te.var("x") + 1, Add) and int(IntImm("int32", 3)) == 3 and op.exp is tir.exp


# ---- runtime

@form(r"tvm\.DataType", r"runtime\.String|runtime\.container")
def types_and_texts():
    assert tvm.DataType("float32x4").lanes == 4 and tvm.runtime.String("a") == "a"
    assert tvm.runtime.container.String is tvm.runtime.String


@form("import_module|implements_function")
def modules_in_modules():
    f = tvm.build(product())
    f.import_module(tvm.build(*staged(), name="other"))
    assert f.implements_function("main") and len(f.imported_modules) == 1
    check_added(f.get_function("other", query_imports=True))


@form("BenchmarkResult")
def results_of_timing():
    from tvm.runtime.module import BenchmarkResult
    assert BenchmarkResult([1.0, 3.0]).mean == 2.0


@form("llvm_version_major|llvm_lookup")
def what_llvm_has():
    from tvm.target.codegen import llvm_lookup_intrinsic_id, llvm_version_major
    assert llvm_version_major() >= 9 and llvm_lookup_intrinsic_id("llvm.sqrt") > 0


@form()
def modules_by_target():
    s, args = staged()
    check_added(tvm.build({"llvm": tvm.lower(s, args, name="f")})["f"])
    check_added(tvm.build([tvm.lower(s, args, name="f")], "llvm")["f"])


@form()
def the_device_by_its_old_name():
    import numpy as np
    s, args = staged()
    f, ctx = tvm.build(s, args), tvm.context("llvm", 0)
    x = tvm.nd.array(np.zeros(8, "float32"), ctx=ctx)
    assert f.time_evaluator(f.entry_name, ctx=ctx, number=2)(x, tvm.nd.array(np.zeros(8, "float32"), ctx)).mean > 0


# ---- target

@form("canon_")
def canonical_targets():
    Target = tvm.target.Target
    assert [t.kind.name for t in Target.canon_target_and_host("llvm", "llvm")] == ["llvm", "llvm"]
    assert Target.canon_multi_target_and_host(["llvm"], "llvm")[0].host.kind.name == "llvm"
    targets, host = Target.canon_target_map_and_host({"llvm": 1}, "llvm")
    assert list(targets.values()) == [1] and host.kind.name == "llvm"


@form("no attribute 'host'|with_host")
def hosts_of_targets():
    assert tvm.target.Target("cuda", host="llvm").host.kind.name == "llvm"
    assert tvm.target.Target("llvm").with_host("llvm").host.kind.name == "llvm"


@form("unknown kind 'nvidia")
def names_of_machines():
    assert tvm.target.Target("nvidia/geforce-rtx-3090").arch == "sm_86"
    assert tvm.target.Target("nvidia/nvidia-a100").kind.name == "cuda"


@form("vulkan")
def options_of_other_kinds():
    target = tvm.target.Target("vulkan -keys=vulkan,gpu -max_num_threads=256 -device_name='Name with spaces'")
    assert target.kind.name == "vulkan" and target.device_name == "Name with spaces"


@form("composite|stackvm")
def kinds_without_code():
    assert tvm.target.Target("composite --host=llvm --devices=cuda,opencl").kind.name == "composite"
    assert tvm.target.Target("stackvm").kind.name == "stackvm"


@form("list_kinds")
def kinds_of_targets():
    assert "llvm" in tvm.target.Target.list_kinds()


@form(r"Target' object has no attribute|tvm\.target\.cuda")
def models_of_targets():
    assert tvm.target.Target("cuda").model == "" and tvm.target.cuda("1080ti").kind.name == "cuda"


@form(r"llvm -keys=arm_cpu,cpu -device", refused="flags of targets that change nothing here are refused")
def options_of_arm():
    assert "neon" in str(tvm.target.Target("llvm -keys=arm_cpu,cpu -device=arm_cpu -mfloat-abi=hard -mattr=+neon"))


@form(r"-cl-opt=", refused="flags of targets that change nothing here are refused")
def options_of_llvm():
    tvm.target.Target("llvm -cl-opt='-unroll-threshold:uint=100,-unroll-count:uint=3'")


@form("_type_checker")
def types_of_arguments():
    @tvm.tir.schedule._type_checker.type_checked
    def double(x: int):
        return 2 * x
    assert double(3) == 6
    with pytest.raises(TypeError):
        double("3")


