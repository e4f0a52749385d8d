"""The names of TVM's modules and what they are here: a table that compat.namespace makes modules of."""
from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any

from tilewright import runtime, te, tir
from tilewright.compat import (
    adapters,
    arith,
    building,
    contrib,
    contrib_cblas,
    contrib_clang,
    diagnostics,
    early,
    intrinsics,
    node_json,
    nodes,
    passes,
    schedules,
    stmt_functor,
    te_schedule,
    tools,
    transforms,
    values,
)
from tilewright.compat.pass_context import PassContext, PassInfo, PrimFuncPass, build_config
from tilewright.driver import Target, target
from tilewright.runtime.timing import BenchmarkResult
from tilewright.schedule.index_map import IndexMap
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.script import ir as script_ir
from tilewright.script import ir_module
from tilewright.script import tir as script_tir
from tilewright.support import errors
from tilewright.tir import ir_builder
from tilewright.tir.stmt import GlobalVar


def _public(module: types.ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


_INDEXING = {"indexdiv": tir.floordiv, "indexmod": tir.floormod}
_INTRINSICS = {**{name: getattr(te, name) for name in (
    "call_packed", "call_extern", "call_llvm_intrin", "call_llvm_pure_intrin")}, **{
        name: nodes.FUNCTIONS[name] for name in ("call_intrin", "call_pure_extern")},
    "call_pure_intrin": nodes.call_intrin}
_EXPRESSIONS = {
    **{name: f for name, f in _public(te).items() if callable(f) and not isinstance(f, type)}, **_INTRINSICS,
    **_INDEXING, "Range": nodes.Range, "convert": values.convert_any, "decl_buffer": values.decl_buffer,
    "build_config": build_config,
    "register_intrin_rule": intrinsics.register_intrin_rule}
_ERRORS = {
    "TVMError": errors.TilewrightError, "InternalError": errors.TensorExpressionError,
    "OpError": errors.GraphError, "DiagnosticError": errors.ScriptError,
}
_FUNCTIONS = {"register_func": runtime.register_func, "get_global_func": runtime.get_global_func}
_DEVICES = {**{kind: functools.partial(adapters.device, kind) for kind in ("opencl", "metal", "vulkan", "rocm")},
            "cpu": runtime.cpu, "device": adapters.device, "context": adapters.device, "cuda": adapters.cuda,
            "gpu": adapters.cuda}
_TIR = {
    **{name: getattr(tir, name) for name in ("StringImm", "Buffer", "min_value", "max_value", "TensorIntrin", "Load",
                                             "Store", "Seq")},
    **{name: f for name, f in _public(te).items()
       if getattr(f, "__module__", "") in ("tilewright.te.math", "tilewright.te.reduction", "tilewright.tir.expr",
                                          "tilewright.tir.iter_var", "tilewright.tir.conversion",
                                          "tilewright.tir.arithmetic")},
    **_INDEXING, **nodes.OPERATORS, **nodes.FUNCTIONS, **nodes.LITERALS, **nodes.NODES, **values.NODES,
    "Range": nodes.Range, "ForKind": nodes.ForKind, "CallEffectKind": intrinsics.CallEffectKind,
    "decl_buffer": values.decl_buffer,
    "PrimExpr": tir.Expr, "Stmt": tir.Stmt, "IndexMap": IndexMap, "stmt_seq": lambda *stmts: tir.seq(stmts),
    **schedules.NAMES,
    "assume": lambda condition: tir.intrinsic("assume", condition),
    **_INTRINSICS,
}
_IR = {
    "IRModule": tir.IRModule, "GlobalVar": GlobalVar, "Range": nodes.Range, "PrimExpr": tir.Expr,
    "make_node": nodes.make_node, "IntImm": nodes.LITERALS["IntImm"], "FloatImm": nodes.LITERALS["FloatImm"],
    "structural_equal": tir.structural_equal, "structural_hash": tir.structural_hash,
    "assert_structural_equal": tir.assert_structural_equal, "save_json": node_json.save_json,
    "load_json": node_json.load_json, "Node": tir.Node, **values.TYPES, **intrinsics.IR_NAMES, "EnvFunc": tools.EnvFunc,
    "Array": values.Array, "Map": values.Map,
}
_DTYPES = {name: name for name in ("int32", "float32", "handle")}              # as attributes of tvm, up to 0.6
_BUILDING = {"lower": building.lower, "build": building.build}
_TOP = {**_DTYPES, **_EXPRESSIONS, **_DEVICES, **_FUNCTIONS, **_BUILDING, "compile": building.build,
        "IRModule": tir.IRModule, "TVMError": errors.TilewrightError, "Target": Target, "DataType": values.DataType,
        "save_json": node_json.save_json, "load_json": node_json.load_json,
        "__version__": "0.0.0+tilewright"}

# of each module: its names and its docstring
TABLE: dict[str, tuple[Mapping[str, Any], str]] = {
    "tvm": (_TOP, "TVM's names on Tilewright."),
    "tvm.te": ({**_public(te), **_INDEXING, "Schedule": StageSchedule}, "Tensor expressions."),
    "tvm.te.hybrid": ({"script": te.hybrid.script, "build": tools.hybrid_build}, "Functions with loops as operations."),
    "tvm.te.tensor": (early.TENSOR, "Tensors and operations."),
    "tvm.tir": (_TIR, "The loop IR."),
    **schedules.MODULES,
    "tvm.tir.analysis": (tools.ANALYSIS, "Questions about IR."),
    "tvm.target.codegen": (tools.CODEGEN, "What LLVM has."),
    "tvm.tir.transform": ({"prim_func_pass": passes.prim_func_pass, "PrimFuncPass": PrimFuncPass,
                           **transforms.TRANSFORMS}, "Passes over functions."),
    **{f"tvm.tir.{file}": (_TIR, "A part of tvm.tir.") for file in ("expr", "op", "stmt", "buffer", "function")},
    "tvm.tir.stmt_functor": ({name: getattr(stmt_functor, name) for name in (
        "ir_transform", "post_order_visit", "pre_order_visit", "renew_defs", "substitute")}, "Rewriting loops."),
    "tvm.tir.ir_builder": ({"create": ir_builder.create, "IRBuilder": ir_builder.IRBuilder,
                            "BufferVar": ir_builder.BufferVar}, "Loops written imperatively."),
    "tvm.script": ({"tir": script_tir, "ir": script_ir, "ir_module": ir_module,
                    "from_source": diagnostics.from_source}, "Scripts."),
    "tvm.ir.diagnostics": (diagnostics.NAMES, "What is wrong with a script."),
    "tvm.arith": (arith.NAMES, "Simplification, bounds and iterator maps."),
    **{f"tvm.arith.{file}": (names, "A part of tvm.arith.") for file, names in arith.FILES.items()},
    "tvm.ir": (_IR, "Modules and what they hold."),
    "tvm.ir.base": ({name: _IR[name] for name in (
        "Node", "structural_equal", "structural_hash", "assert_structural_equal", "save_json", "load_json")},
        "What all nodes have."),
    "tvm.ir.type": (values.TYPES, "Types."),
    "tvm.ir.container": ({"Array": values.Array, "Map": values.Map}, "Lists and dicts."),
    "tvm.ir.module": ({"IRModule": tir.IRModule}, "Modules."),
    "tvm.tir.transform.transform": (transforms.TRANSFORMS, "Passes over functions."),
    "tvm.transform": ({"PassContext": PassContext, "Sequential": passes.Sequential, "PassInfo": PassInfo,
                       "Pass": nodes.kind("Pass", passes.ModulePass, passes.is_pass), "PrintIR": passes.print_ir,
                       "module_pass": passes.module_pass, "ModulePass": passes.ModulePass}, "Passes."),
    "tvm.ir.instrument": (passes.INSTRUMENTS, "What looks on while passes run."),
    "tvm.target": ({"Target": Target, "create": target, "cuda": tools.cuda_target, "arm_cpu": tools.arm_cpu,
                    "build_config": build_config,
                    "current_target": Target.current}, "Targets."),
    "tvm.runtime": ({
        "Module": runtime.Module, "enabled": adapters.enabled, "load_module": runtime.load_module,
        "NDArray": runtime.Tensor, "convert": values.convert_any, "const": te.const, "Device": runtime.Device,
        "PackedFunc": runtime.Function, "DataType": values.DataType, **values.CONTAINERS, **_FUNCTIONS, **_DEVICES},
        "Compiled modules."),
    "tvm.runtime.module": ({"Module": runtime.Module, "BenchmarkResult": BenchmarkResult,
                            "load_module": runtime.load_module, "enabled": adapters.enabled}, "Compiled modules."),
    "tvm.runtime.container": (values.CONTAINERS, "Texts and shapes."),
    "tvm.nd": ({"array": adapters.array, "empty": adapters.empty, "from_dlpack": runtime.from_dlpack,
                "NDArray": runtime.Tensor, **_DEVICES}, "Arrays."),
    "tvm.error": (_ERRORS, "Errors."),
    "tvm._ffi": (_FUNCTIONS, "The calling convention."),
    "tvm.testing": ({
        **tools.TESTING, "assert_allclose": adapters.assert_allclose, "enabled_targets": adapters.enabled_targets,
        "requires_llvm": adapters.requires_llvm}, "Checks."),
    "tvm.topi": ({}, "Operators in te (none yet under TVM's names)."),
    "tvm.topi.utils": (early.TOPI_UTILS, "Helpers of operators."),
    "tvm.contrib": ({}, "Helpers of programs."),
    "tvm.contrib.utils": ({"tempdir": contrib.tempdir, "TempDirectory": contrib.TempDirectory}, "Temporary folders."),
    "tvm.contrib.cc": ({"create_shared": contrib.create_shared, "create_executable": contrib.create_executable,
                        "get_cc": contrib.get_cc}, "The linker."),
    "tvm.contrib.tar": ({"tar": contrib.tar, "untar": contrib.untar}, "Archives of objects."),
    "tvm.contrib.clang": ({"create_llvm": contrib_clang.create_llvm, "find_clang": contrib_clang.find_clang},
                          "C and C++ as LLVM IR."),
    "tvm.contrib.cblas": ({"matmul": contrib_cblas.matmul, "batch_matmul": contrib_cblas.batch_matmul},
                          "Products by a BLAS."),
    "tvm.api": ({**_DTYPES, **_EXPRESSIONS}, "Tensor expressions, 2018 spelling."),
    "tvm.expr": (early.EXPR, "Expressions, 2018 spelling."),
    "tvm.stmt": (early.STMT, "Statements, 2018 spelling."),
    "tvm.make": (early.MAKE, "Nodes, 2018 spelling."),
    "tvm.tensor": (early.TENSOR, "Tensors and operations, 2018 spelling."),
    "tvm.ir_pass": (early.IR_PASS, "Visits of IR, 2018 spelling."),
    "tvm.intrin": ({**{name: _TIR[name] for name in (
        "exp", "log", "tanh", "sigmoid", "sqrt", "floor", "ceil", "trunc", "round", "power", "popcount")},
        **_INTRINSICS, "register_intrin_rule": intrinsics.register_intrin_rule}, "Functions, 2018 spelling."),
    "tvm.ir.op": (intrinsics.IR_NAMES, "Functions that are called by name."),
    "tvm.module": ({"Module": runtime.Module, "load": runtime.load_module, "enabled": adapters.enabled},
                   "Compiled modules, 2018 spelling."),
    "tvm.te.schedule": (te_schedule.NAMES, "Schedules of stages."),
    "tvm.driver": (_BUILDING, "Lowering and building."),
    "tvm.driver.build_module": ({**_BUILDING,
                                 "schedule_to_module": te_schedule.schedule_to_module}, "Lowering and building."),
}
# other names that TVM has given these modules over the years
ALIASES = {
    "tvm.schedule": "tvm.te.schedule",
    "tvm.hybrid": "tvm.te.hybrid", "tvm.instrument": "tvm.ir.instrument",
    "tvm.ir_builder": "tvm.tir.ir_builder", "tvm.ir.transform": "tvm.transform",
    "tvm.ndarray": "tvm.nd", "tvm.runtime.ndarray": "tvm.nd", "tvm._ffi.base": "tvm.error",
    "tvm.script.parser": "tvm.script", "tvm.topi.util": "tvm.topi.utils", "tvm.contrib.util": "tvm.contrib.utils",
}
