"""`tilewright.compat.tvm`: the 2018 and the `te` era spellings of TVM, as thin aliases.

Every module is a row of a table: a name and our object. A name that is not there raises AttributeError that
says what to use instead.
"""
from __future__ import annotations

import difflib
import functools
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import runtime, schedule, te, tir
from tilewright.compat import adapters, analyzer, contrib, early, nodes, passes, stmt_functor
from tilewright.compat.instead import INSTEAD
from tilewright.driver import Target, build, lower, target
from tilewright.lowering.pass_context import PassContext, PrimFuncPass, build_config
from tilewright.schedule.index_map import IndexMap
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.schedule.state import ExprRV
from tilewright.schedule.trace import Trace
from tilewright.script import from_source, ir_module
from tilewright.script import ir as script_ir
from tilewright.script import tir as script_tir
from tilewright.support import errors
from tilewright.tir import ir_builder
from tilewright.tir.stmt import GlobalVar


class Namespace(types.ModuleType):
    """A module made of a table of names."""

    def __init__(self, name: str, names: Mapping[str, Any], doc: str) -> None:
        super().__init__(name, doc)
        self.__dict__.update(names)
        self.__file__ = __file__
        self.__path__: list[str] = []
        self.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise AttributeError(_missing(f"{self.__name__}.{name}"))

    def __dir__(self) -> list[str]:
        return sorted(n for n in self.__dict__ if not n.startswith("__"))


def hint_for(full: str) -> str:
    """What to use instead of a name that is not here, or a name that is near; "" where neither is known."""
    parent, _, name = full.rpartition(".")
    words = full.removeprefix("tvm.").split(".")             # what became of a module says it for all in it
    if ".".join(words) in INSTEAD:
        return INSTEAD[".".join(words)]
    known = {n.lower(): n for n in (dir(MODULES[parent]) if parent in MODULES else ())}
    near = difflib.get_close_matches(name.lower(), known, 1, 0.8)
    if near:
        return f"did you mean {known[near[0]]}?"
    around = (".".join(words[:n]) for n in range(len(words) - 1, 0, -1))
    return next((INSTEAD[key] for key in (name, *around) if key in INSTEAD), "")


def _missing(full: str) -> str:
    """The message for a name that is not here: what to use instead, a name that is near, or where to look."""
    parent = full.rpartition(".")[0]
    return errors.with_hint(f"{full} does not exist in tilewright.compat.tvm",
                            hint_for(full) or f"dir({parent}) lists the names there are")


def _public(module: types.ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


_EXPRESSIONS = {name: getattr(te, name) for name in (
    "placeholder", "compute", "reduce_axis", "thread_axis", "var", "size_var", "const", "sum", "max", "min",
    "all", "any", "comm_reducer", "extern", "if_then_else", "scan", "create_schedule", "decl_tensor_intrin",
    "exp", "log", "tanh", "sigmoid", "sqrt", "rsqrt", "erf", "sin", "cos", "power", "floor", "ceil",
    "trunc", "round", "abs", "isnan", "truncdiv", "truncmod", "floordiv", "floormod", "select",
    "call_packed", "call_extern",
)}
_INDEXING = {"indexdiv": tir.floordiv, "indexmod": tir.floormod}
_EXPRESSIONS |= {"Range": nodes.Range, "convert": tir.convert, "decl_buffer": tir.decl_buffer, **_INDEXING,
                 "div": te.div,
                 "min_value": tir.min_value, "max_value": tir.max_value, "nearbyint": te.nearbyint,
                 "tag_scope": te.tag_scope, "build_config": build_config, "popcount": te.popcount, "clz": te.clz,
                 "fmod": te.fmod}
_ERRORS = {
    "TVMError": errors.TilewrightError, "InternalError": errors.TensorExpressionError,
    "OpError": errors.GraphError,
}
_FUNCTIONS = {"register_func": runtime.register_func, "get_global_func": runtime.get_global_func}
_DEVICES = {**{kind: functools.partial(adapters.device, kind) for kind in ("opencl", "metal", "vulkan", "rocm")},
            "cpu": runtime.cpu, "device": adapters.device, "context": adapters.device, "cuda": adapters.cuda,
            "gpu": adapters.cuda}
_ND = {"array": adapters.array, "empty": adapters.empty, "from_dlpack": runtime.from_dlpack,
       "NDArray": runtime.Tensor, **_DEVICES}
_TIR = {
    **{name: getattr(tir, name) for name in (
        "Var", "IntImm", "FloatImm", "StringImm", "Buffer", "PrimFunc", "Cast", "Call", "Block", "BlockRealize",
        "decl_buffer", "min_value", "max_value", "TensorIntrin", "Load", "Store", "Seq")},
    **{name: f for name, f in _public(te).items()
       if getattr(f, "__module__", "") in ("tilewright.te.math", "tilewright.te.reduction", "tilewright.tir.expr",
                                          "tilewright.tir.iter_var", "tilewright.tir.conversion",
                                          "tilewright.tir.arithmetic")},
    **_INDEXING, **nodes.OPERATORS, **nodes.FUNCTIONS, **nodes.LITERALS, **nodes.NODES, "Range": nodes.Range,
    "ForKind": nodes.ForKind,
    "PrimExpr": tir.Expr, "Stmt": tir.Stmt, "IndexMap": IndexMap,
    "BufferRegion": tir.BufferRegion, "stmt_seq": lambda *stmts: tir.seq(stmts), "SizeVar": tir.Var,
    "Schedule": adapters.Schedule, "ScheduleError": errors.ScheduleError,
    "assume": lambda condition: tir.intrinsic("assume", condition),
    "call_packed": te.call_packed, "call_extern": te.call_extern,
    "call_llvm_pure_intrin": te.call_llvm_pure_intrin, "call_llvm_intrin": te.call_llvm_intrin,
}
_IR_BUILDER = {"create": ir_builder.create, "IRBuilder": ir_builder.IRBuilder, "BufferVar": ir_builder.BufferVar}
_PASSES = {"PassContext": PassContext, "Sequential": passes.Sequential, "module_pass": passes.module_pass}
_FOLDERS = {"tempdir": contrib.tempdir, "TempDirectory": contrib.TempDirectory}
_CC = {"create_shared": contrib.create_shared, "create_executable": contrib.create_executable,
       "get_cc": contrib.get_cc}
_HYBRID = {"script": te.hybrid.script}
_SCRIPT = {"tir": script_tir, "ir": script_ir, "ir_module": ir_module, "from_source": from_source}


def _modules() -> dict[str, Namespace]:
    def make(name: str, names: Mapping[str, Any], doc: str) -> Namespace:
        return Namespace(name, names, doc)

    modules = {
        "tvm.te": make("tvm.te", {**_public(te), **_INDEXING, "Schedule": StageSchedule}, "Tensor expressions."),
        "tvm.te.hybrid": make("tvm.te.hybrid", _HYBRID, "Functions with loops as operations."),
        "tvm.hybrid": make("tvm.hybrid", _HYBRID, "Functions with loops as operations."),
        "tvm.transform": make("tvm.transform", _PASSES, "Passes."),
        "tvm.ir.transform": make("tvm.ir.transform", _PASSES, "Passes."),
        "tvm.tir.transform": make("tvm.tir.transform", {
            "prim_func_pass": passes.prim_func_pass, "PrimFuncPass": PrimFuncPass, **passes.TRANSFORMS},
            "Passes over functions."),
        "tvm.tir.schedule": make("tvm.tir.schedule", {
            "Schedule": adapters.Schedule, "BlockRV": schedule.BlockRV, "LoopRV": schedule.LoopRV, "ExprRV": ExprRV,
            "ScheduleError": errors.ScheduleError, "Trace": Trace}, "Schedules of blocks."),
        "tvm.tir.analysis": make("tvm.tir.analysis", {"expr_deep_equal": tir.structural_equal}, "Questions about IR."),
        "tvm.runtime.ndarray": make("tvm.runtime.ndarray", _ND, "Arrays."),
        "tvm.tir.stmt_functor": make("tvm.tir.stmt_functor", {name: getattr(stmt_functor, name) for name in (
            "ir_transform", "post_order_visit", "pre_order_visit", "substitute")}, "Rewriting loops."),
        "tvm.tir.ir_builder": make("tvm.tir.ir_builder", _IR_BUILDER, "Loops written imperatively."),
        "tvm.ir_builder": make("tvm.ir_builder", _IR_BUILDER, "Loops written imperatively."),
        "tvm.arith": make("tvm.arith", {"Analyzer": analyzer.Analyzer, "ConstIntBound": analyzer.ConstIntBound},
                          "Simplification and proofs."),
        "tvm.tir": make("tvm.tir", _TIR, "The loop IR."),
        "tvm.topi": make("tvm.topi", {}, "Operators in te (none yet under TVM's names)."),
        "tvm.topi.utils": make("tvm.topi.utils", early.TOPI_UTILS, "Helpers of operators."),
        "tvm.topi.util": make("tvm.topi.util", early.TOPI_UTILS, "Helpers of operators."),
        "tvm.expr": make("tvm.expr", early.EXPR, "Expressions, 2018 spelling."),
        "tvm.stmt": make("tvm.stmt", early.STMT, "Statements, 2018 spelling."),
        "tvm.make": make("tvm.make", early.MAKE, "Nodes, 2018 spelling."),
        "tvm.tensor": make("tvm.tensor", early.TENSOR, "Tensors and operations, 2018 spelling."),
        "tvm.te.tensor": make("tvm.te.tensor", early.TENSOR, "Tensors and operations."),
        "tvm.ir_pass": make("tvm.ir_pass", early.IR_PASS, "Visits of IR, 2018 spelling."),
        "tvm.api": make("tvm.api", _EXPRESSIONS, "Tensor expressions, 2018 spelling."),
        "tvm.intrin": make("tvm.intrin", {name: _TIR[name] for name in (
            "exp", "log", "tanh", "sigmoid", "sqrt", "floor", "ceil", "trunc", "round", "power", "popcount",
            "call_intrin", "call_packed", "call_extern", "call_pure_extern", "call_llvm_intrin")} | {
                "call_pure_intrin": nodes.call_intrin}, "Functions, 2018 spelling."),
        "tvm.contrib": make("tvm.contrib", {}, "Helpers of programs."),
        "tvm.contrib.utils": make("tvm.contrib.utils", _FOLDERS, "Temporary folders."),
        "tvm.contrib.util": make("tvm.contrib.util", _FOLDERS, "Temporary folders."),
        "tvm.contrib.cc": make("tvm.contrib.cc", _CC, "The linker."),
        "tvm.nd": make("tvm.nd", _ND, "Arrays."),
        "tvm.ndarray": make("tvm.ndarray", _ND, "Arrays."),
        "tvm.error": make("tvm.error", _ERRORS, "Errors."),
        "tvm._ffi": make("tvm._ffi", _FUNCTIONS, "The calling convention."),
        "tvm._ffi.base": make("tvm._ffi.base", _ERRORS, "Errors, 2018 spelling."),
        "tvm.ir": make("tvm.ir", {"IRModule": tir.IRModule, "GlobalVar": GlobalVar, "Range": nodes.Range,
                                  "PrimExpr": tir.Expr,
                                  "make_node": nodes.make_node,
                                  "structural_equal": tir.structural_equal, "structural_hash": tir.structural_hash,
                                  "IntImm": nodes.LITERALS["IntImm"],
                                  "assert_structural_equal": tir.assert_structural_equal}, "Modules."),
        "tvm.ir.module": make("tvm.ir.module", {"IRModule": tir.IRModule}, "Modules."),
        "tvm.script": make("tvm.script", _SCRIPT, "Scripts."),
        "tvm.script.parser": make("tvm.script.parser", _SCRIPT, "Scripts."),
        "tvm.runtime": make("tvm.runtime", {
            "Module": runtime.Module, "enabled": adapters.enabled, "load_module": runtime.load_module,
            "NDArray": runtime.Tensor, "convert": tir.convert, "const": te.const, "Device": runtime.Device,
            "PackedFunc": runtime.Function, **_FUNCTIONS, **_DEVICES},
            "Compiled modules."),
        "tvm.target": make("tvm.target", {"Target": Target, "create": target, "build_config": build_config,
                                          "current_target": Target.current},
                           "Targets."),
        "tvm.testing": make("tvm.testing", {
            "assert_allclose": adapters.assert_allclose, "enabled_targets": adapters.enabled_targets,
            "requires_llvm": adapters.requires_llvm}, "Checks."),
    }
    children: dict[str, dict[str, Any]] = {}
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        children.setdefault(parent, {})[child] = module
    for name, module in modules.items():
        module.__dict__.update(children.get(name, {}))
    top = {
        **_EXPRESSIONS, **_DEVICES, **children["tvm"],
        "lower": lower, "build": build, "compile": build, "IRModule": tir.IRModule, "TVMError": errors.TilewrightError,
        **_FUNCTIONS,
        "Target": Target, "__version__": "0.0.0+tilewright",
    }
    modules["tvm"] = make("tvm", top, "TVM's names on Tilewright.")
    return modules


MODULES = _modules()
tvm = MODULES["tvm"]


class _MissingModules(importlib.abc.MetaPathFinder):
    """Turns `import tvm.something` that we lack into an error with a hint."""

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: types.ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith("tvm.") and isinstance(sys.modules.get("tvm"), Namespace):
            # no `name`: with one, `from tvm import missing` would replace this error by a bare ImportError
            raise ModuleNotFoundError(_missing(fullname))
        return None


def install() -> None:
    """Make `import tvm` and `import topi` mean this namespace, in this process."""
    sys.modules.update(MODULES)
    sys.modules |= {name.removeprefix("tvm."): MODULES[name] for name in MODULES if name.startswith("tvm.topi")}
    sys.modules |= {"tvm.script.tir": script_tir, "tvm.script.ir": script_ir,
                    "tvm.script.parser.tir": script_tir, "tvm.script.parser.ir": script_ir}
    if not any(isinstance(f, _MissingModules) for f in sys.meta_path):
        sys.meta_path.insert(0, _MissingModules())
