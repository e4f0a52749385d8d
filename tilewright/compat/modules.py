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
    diagnostics,
    early,
    nnvm,
    node_json,
    node_types,
    nodes,
    params,
    pass_objects,
    registered_ops,
    schedules,
    stmt_functor,
    te_schedule,
    tools,
    transforms,
)
from tilewright.compat.contrib import cblas, graph_executor, toolchain
from tilewright.compat.pass_context import PassContext, PassInfo, PrimFuncPass, build_config
from tilewright.compat.relax import names as relax
from tilewright.compat.relax import script as relax_script
from tilewright.compat.topi import elements, images, nn, transform
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


def _of(module: types.ModuleType, *names: str) -> dict[str, Any]:
    """These names of a module."""
    return {name: getattr(module, name) for name in names}


def _public(module: types.ModuleType) -> dict[str, Any]:
    return _of(module, *module.__all__)


_INDEXING = {"indexdiv": tir.floordiv, "indexmod": tir.floormod}
_INTRINSICS = {**_of(te, "call_packed", "call_extern", "call_llvm_intrin", "call_llvm_pure_intrin"),
               **{name: nodes.FUNCTIONS[name] for name in ("call_intrin", "call_pure_extern")},
               "call_pure_intrin": nodes.call_intrin}
_EXPRESSIONS = {
    **{name: f for name, f in _public(te).items() if callable(f) and not isinstance(f, type)}, **_INTRINSICS,
    **_INDEXING, "Range": nodes.Range, "convert": node_types.convert_any, "decl_buffer": node_types.decl_buffer,
    "build_config": build_config, "register_intrin_rule": registered_ops.register_intrin_rule}
_ERRORS = {
    "TVMError": errors.TilewrightError, "InternalError": errors.TensorExpressionError,
    "OpError": errors.GraphError, "DiagnosticError": errors.ScriptError,
}
_FUNCTIONS = _of(runtime, "register_func", "get_global_func")
_DEVICES = {**{kind: functools.partial(adapters.device, kind) for kind in ("opencl", "metal", "vulkan", "rocm")},
            "cpu": runtime.cpu, "device": adapters.device, "context": adapters.device, "cuda": adapters.cuda,
            "gpu": adapters.cuda}
_TIR = {
    **_of(tir, "StringImm", "Buffer", "min_value", "max_value", "TensorIntrin", "Load", "Store", "Seq"),
    **{name: f for name, f in _public(te).items()
       if getattr(f, "__module__", "") in ("tilewright.te.math", "tilewright.te.reduction", "tilewright.tir.expr",
                                          "tilewright.tir.iter_var", "tilewright.tir.conversion",
                                          "tilewright.tir.arithmetic")},
    **_INDEXING, **nodes.OPERATORS, **nodes.FUNCTIONS, **nodes.LITERALS, **nodes.NODES, **node_types.NODES,
    "Range": nodes.Range, "ForKind": nodes.ForKind, "CallEffectKind": registered_ops.CallEffectKind,
    "decl_buffer": node_types.decl_buffer, "PrimExpr": tir.Expr, "Stmt": tir.Stmt, "IndexMap": IndexMap,
    "stmt_seq": lambda *stmts: tir.seq(stmts), "assume": lambda condition: tir.intrinsic("assume", condition),
    **schedules.NAMES, **_INTRINSICS,
}
_JSON = _of(node_json, "save_json", "load_json")
_CONTAINERS = _of(node_types, "Array", "Map")
_IR = {
    "IRModule": tir.IRModule, "GlobalVar": GlobalVar, "Range": nodes.Range, "PrimExpr": tir.Expr,
    "make_node": nodes.make_node, "IntImm": nodes.LITERALS["IntImm"], "FloatImm": nodes.LITERALS["FloatImm"],
    **_of(tir, "structural_equal", "structural_hash", "assert_structural_equal", "Node"), **_JSON, **node_types.TYPES,
    **registered_ops.IR_NAMES, "EnvFunc": tools.EnvFunc, **_CONTAINERS,
}
_DTYPES = {name: name for name in ("int32", "float32", "handle")}              # as attributes of tvm, up to 0.6
_BUILDING = _of(building, "lower", "build")
_TOP = {**_DTYPES, **_EXPRESSIONS, **_DEVICES, **_FUNCTIONS, **_BUILDING, "compile": building.compile_,
        "IRModule": tir.IRModule, "TVMError": errors.TilewrightError, "Target": Target, "DataType": node_types.DataType,
        **_JSON, "__version__": "0.0.0+tilewright"}

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
    "tvm.tir.transform": ({"prim_func_pass": pass_objects.prim_func_pass, "PrimFuncPass": PrimFuncPass,
                           **transforms.TRANSFORMS}, "Passes over functions."),
    **{f"tvm.tir.{file}": (_TIR, "A part of tvm.tir.") for file in ("expr", "op", "stmt", "buffer", "function")},
    "tvm.tir.stmt_functor": (_of(stmt_functor, "ir_transform", "post_order_visit", "pre_order_visit", "renew_defs",
                                 "substitute"), "Rewriting loops."),
    "tvm.tir.ir_builder": (_of(ir_builder, "create", "IRBuilder", "BufferVar"), "Loops written imperatively."),
    "tvm.script": ({"tir": script_tir, "ir": script_ir, "ir_module": ir_module,
                    "from_source": diagnostics.from_source}, "Scripts."),
    "tvm.script.relax": (relax_script.NAMES, "Relax in scripts."),
    "tvm.script.parser.relax": (relax_script.NAMES, "Relax in scripts."),
    "tvm.ir.diagnostics": (diagnostics.NAMES, "What is wrong with a script."),
    **relax.MODULES,
    **nnvm.MODULES,
    "tvm.arith": (arith.NAMES, "Simplification, bounds and iterator maps."),
    **{f"tvm.arith.{file}": (names, "A part of tvm.arith.") for file, names in arith.FILES.items()},
    "tvm.ir": (_IR, "Modules and what they hold."),
    "tvm.ir.base": ({name: _IR[name] for name in (
        "Node", "structural_equal", "structural_hash", "assert_structural_equal", "save_json", "load_json")},
        "What all nodes have."),
    "tvm.ir.type": (node_types.TYPES, "Types."),
    "tvm.ir.container": (_CONTAINERS, "Lists and dicts."),
    "tvm.ir.module": ({"IRModule": tir.IRModule}, "Modules."),
    "tvm.tir.transform.transform": (transforms.TRANSFORMS, "Passes over functions."),
    "tvm.transform": ({
        "PassContext": PassContext, "PassInfo": PassInfo, "PrintIR": pass_objects.print_ir,
        "Pass": nodes.kind("Pass", pass_objects.ModulePass, pass_objects.is_pass),
        **_of(pass_objects, "Sequential", "module_pass", "ModulePass")}, "Passes."),
    "tvm.ir.instrument": (pass_objects.INSTRUMENTS, "What looks on while passes run."),
    "tvm.target": ({"Target": Target, "create": target, "cuda": tools.cuda_target, "arm_cpu": tools.arm_cpu,
                    "build_config": build_config, "current_target": Target.current}, "Targets."),
    "tvm.runtime": ({
        "Module": runtime.Module, "enabled": adapters.enabled, "load_module": runtime.load_module,
        "NDArray": runtime.Tensor, "convert": node_types.convert_any, "const": te.const, "Device": runtime.Device,
        **params.NAMES, **params.FILES, "PackedFunc": runtime.Function,
        "DataType": node_types.DataType, **node_types.CONTAINERS, **_FUNCTIONS,
        **_DEVICES}, "Compiled modules."),
    "tvm.runtime.module": ({"Module": runtime.Module, "BenchmarkResult": BenchmarkResult,
                            "load_module": runtime.load_module, "enabled": adapters.enabled}, "Compiled modules."),
    "tvm.runtime.container": (node_types.CONTAINERS, "Texts and shapes."),
    "tvm.nd": ({"array": adapters.array, "empty": adapters.empty, "from_dlpack": runtime.from_dlpack,
                "NDArray": runtime.Tensor, **_DEVICES}, "Arrays."),
    "tvm.error": (_ERRORS, "Errors."),
    "tvm._ffi": (_FUNCTIONS, "The calling convention."),
    "tvm.testing": ({
        **tools.TESTING, **_of(adapters, "assert_allclose", "enabled_targets", "requires_llvm")}, "Checks."),
    "tvm.topi": ({**elements.NAMES, **transform.NAMES}, "Operators in te."),
    "tvm.topi.nn": (nn.NAMES, "Layers in te."),
    "tvm.topi.image": (images.IMAGE, "Images in te."),
    "tvm.topi.vision": (images.VISION, "Regions of images in te."),
    "tvm.topi.sparse": (images.SPARSE, "Sparse products in te."),
    "tvm.topi.generic": (images.GENERIC, "Schedules of operators: none but the default."),
    "tvm.topi.tag": (images.TAG, "Tags of operators."),
    "tvm.topi.utils": (early.TOPI_UTILS, "Helpers of operators."),
    "tvm.contrib": ({}, "Helpers of programs."),
    "tvm.contrib.utils": (_of(toolchain, "tempdir", "TempDirectory"), "Temporary folders."),
    "tvm.contrib.cc": (_of(toolchain, "create_shared", "create_executable", "get_cc"), "The linker."),
    "tvm.contrib.tar": (_of(toolchain, "tar", "untar"), "Archives of objects."),
    "tvm.contrib.clang": (_of(toolchain, "create_llvm", "find_clang"), "C and C++ as LLVM IR."),
    "tvm.contrib.graph_executor": (graph_executor.NAMES, "Graphs run node by node."),
    "tvm.contrib.cblas": (_of(cblas, "matmul", "batch_matmul"), "Products by a BLAS."),
    "tvm.api": ({**_DTYPES, **_EXPRESSIONS}, "Tensor expressions, 2018 spelling."),
    "tvm.expr": (early.EXPR, "Expressions, 2018 spelling."),
    "tvm.stmt": (early.STMT, "Statements, 2018 spelling."),
    "tvm.make": (early.MAKE, "Nodes, 2018 spelling."),
    "tvm.tensor": (early.TENSOR, "Tensors and operations, 2018 spelling."),
    "tvm.ir_pass": (early.IR_PASS, "Visits of IR, 2018 spelling."),
    "tvm.intrin": ({**{name: _TIR[name] for name in (
        "exp", "log", "tanh", "sigmoid", "sqrt", "floor", "ceil", "trunc", "round", "power", "popcount")},
        **_INTRINSICS, "register_intrin_rule": registered_ops.register_intrin_rule}, "Functions, 2018 spelling."),
    "tvm.ir.op": (registered_ops.IR_NAMES, "Functions that are called by name."),
    "tvm.module": ({"Module": runtime.Module, "load": runtime.load_module, "enabled": adapters.enabled},
                   "Compiled modules, 2018 spelling."),
    "tvm.te.schedule": (te_schedule.NAMES, "Schedules of stages."),
    "tvm.driver": (_BUILDING, "Lowering and building."),
    "tvm.driver.build_module": ({**_BUILDING, **_of(te_schedule, "schedule_to_module")}, "Lowering and building."),
}
# other names that TVM has given these modules over the years
ALIASES = {
    "tvm.schedule": "tvm.te.schedule", "tvm.contrib.graph_runtime": "tvm.contrib.graph_executor",
    "tvm.hybrid": "tvm.te.hybrid", "tvm.instrument": "tvm.ir.instrument",
    "tvm.ir_builder": "tvm.tir.ir_builder", "tvm.ir.transform": "tvm.transform",
    "tvm.ndarray": "tvm.nd", "tvm.runtime.ndarray": "tvm.nd", "tvm._ffi.base": "tvm.error",
    "tvm.script.parser": "tvm.script", "tvm.topi.util": "tvm.topi.utils", "tvm.contrib.util": "tvm.contrib.utils",
}
