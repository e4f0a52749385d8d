"""`tilewright.compat.tvm`: the 2018 and the `te` era spellings of TVM, as thin aliases.

Every module is a row of a table: a name and our object. A name that is not there raises AttributeError that
says what to use instead.
"""
from __future__ import annotations

import difflib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import runtime, te, tir
from tilewright.compat import adapters
from tilewright.driver import Target, build, lower, target
from tilewright.support import errors

# What to say about names of TVM that are not here. Keys are full names without the leading "tvm.".
INSTEAD = {
    "relay": "Relay left TVM in 0.20; build the model with tilewright.graph",
    "relax": "build the model with tilewright.graph",
    "autotvm": "write the schedule with te.create_schedule or tilewright.Schedule",
    "auto_scheduler": "write the schedule with te.create_schedule or tilewright.Schedule",
    "meta_schedule": "write the schedule with te.create_schedule or tilewright.Schedule",
    "rpc": "run the module on this machine; remote devices are not supported",
    "contrib": "write the operator in te; Module.save and Module.export_library write files",
    "contrib.cc": "Module.export_library links by itself",
    "contrib.util": "use tempfile",
    "contrib.utils": "use tempfile",
    "module": "tvm.runtime.load_module",
    "module.load": "tvm.runtime.load_module",
    "build_config": "the passes of Tilewright have no options",
    "transform": "the passes of Tilewright have no options; look at them with TILEWRIGHT_DUMP",
    "tir.transform": "the passes of Tilewright have no options; look at them with TILEWRIGHT_DUMP",
    "ir_builder": "write the kernel in te",
    "tir.ir_builder": "write the kernel in te",
    "hybrid": "write the kernel in te",
    "micro": "save an object for the device with Module.save",
    "graph_executor": "run the model with tilewright.graph.Executor",
    "script": "write the kernel in te; the script parser is not there yet",
    "te.scan": "write the recurrence as one kernel per step",
    "te.hybrid": "write the kernel in te",
    "te.gradient": "differentiate the model with tilewright.graph.gradients",
    "te.decl_tensor_intrin": "vectorize the innermost axis instead",
    "scan": "write the recurrence as one kernel per step",
    "decl_tensor_intrin": "vectorize the innermost axis instead",
    "hardware_intrin": "it is in no release of TVM",
    "topi": "write it in te; the operators of tilewright.graph have compute rules to start from",
    "ir_pass": "print(tvm.lower(s, args, simple_mode=True)) shows the loops",
    "make": "build expressions with te and its operators",
    "driver": "tvm.build and tvm.lower",
    "schedule": "the methods of the stages of te.create_schedule",
}


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


def _missing(full: str) -> str:
    """The message for a name that is not here: what to use instead, a name that is near, or where to look."""
    parent, _, name = full.rpartition(".")
    outer = full.split(".")[1]                                  # what became of the module says it for all in it
    hint = INSTEAD.get(full.removeprefix("tvm.")) or INSTEAD.get(name) or INSTEAD.get(outer, "")
    known = {n.lower(): n for n in dir(MODULES.get(parent, MODULES["tvm"]))}
    near = difflib.get_close_matches(name.lower(), known, 1, 0.8)
    if near and full.removeprefix("tvm.") not in INSTEAD:
        hint = f"did you mean {known[near[0]]}?"
    return errors.with_hint(f"{full} does not exist in tilewright.compat.tvm",
                            hint or f"dir({parent}) lists the names there are")


def _public(module: types.ModuleType) -> dict[str, Any]:
    return {name: getattr(module, name) for name in module.__all__}


_EXPRESSIONS = {name: getattr(te, name) for name in (
    "placeholder", "compute", "reduce_axis", "thread_axis", "var", "size_var", "const", "sum", "max", "min",
    "all", "any", "comm_reducer", "extern", "if_then_else", "create_schedule",
    "exp", "log", "tanh", "sigmoid", "sqrt", "rsqrt", "erf", "sin", "cos", "power", "floor", "ceil",
    "trunc", "round", "abs", "isnan", "truncdiv", "truncmod", "floordiv", "floormod", "select",
    "call_packed", "call_extern",
)}
_EXPRESSIONS |= {"convert": tir.convert, "decl_buffer": tir.decl_buffer, "indexdiv": tir.floordiv,
                 "indexmod": tir.floormod}
_ERRORS = {
    "TVMError": errors.TilewrightError, "InternalError": errors.TensorExpressionError,
    "OpError": errors.GraphError,
}
_FUNCTIONS = {"register_func": runtime.register_func, "get_global_func": runtime.get_global_func}
_DEVICES = {"cpu": runtime.cpu, "device": adapters.device, "context": adapters.device, "cuda": adapters.cuda,
            "gpu": adapters.cuda}
_ND = {"array": adapters.array, "empty": adapters.empty, "NDArray": runtime.Tensor, **_DEVICES}
_TIR = {
    **{name: getattr(tir, name) for name in (
        "Var", "IntImm", "FloatImm", "StringImm", "IterVar", "Buffer", "PrimFunc", "Select", "Cast", "Not",
        "Call", "Let", "Ramp", "Broadcast", "For", "Block", "BlockRealize", "IfThenElse", "Evaluate",
        "decl_buffer", "min_value", "max_value", "Load", "Store", "Seq", "LetStmt", "While")},
    **{name: getattr(te, name) for name in (
        "if_then_else", "exp", "log", "tanh", "sigmoid", "sqrt", "erf", "all", "any", "const", "max", "min",
        "truncdiv", "truncmod", "floordiv", "floormod")},
    "indexdiv": tir.floordiv, "indexmod": tir.floormod,
    "BufferLoad": tir.Load, "BufferStore": tir.Store, "SeqStmt": tir.Seq, "Schedule": adapters.Schedule,
    "call_packed": adapters.call_packed, "call_extern": adapters.call_extern,
}


def _modules() -> dict[str, Namespace]:
    def make(name: str, names: Mapping[str, Any], doc: str) -> Namespace:
        return Namespace(name, names, doc)

    modules = {
        "tvm.te": make("tvm.te", {**_public(te)}, "Tensor expressions."),
        "tvm.tir": make("tvm.tir", _TIR, "The loop IR."),
        "tvm.topi": make("tvm.topi", {}, "Operators in te (none yet under TVM's names)."),
        "tvm.nd": make("tvm.nd", _ND, "Arrays."),
        "tvm.ndarray": make("tvm.ndarray", _ND, "Arrays."),
        "tvm.error": make("tvm.error", _ERRORS, "Errors."),
        "tvm._ffi": make("tvm._ffi", _FUNCTIONS, "The calling convention."),
        "tvm._ffi.base": make("tvm._ffi.base", _ERRORS, "Errors, 2018 spelling."),
        "tvm.ir": make("tvm.ir", {"IRModule": tir.IRModule, "Range": tir.Range,
                                  "structural_equal": tir.structural_equal,
                                  "assert_structural_equal": tir.assert_structural_equal}, "Modules."),
        "tvm.runtime": make("tvm.runtime", {
            "Module": runtime.Module, "enabled": adapters.enabled, "load_module": runtime.load_module,
            "NDArray": runtime.Tensor, **_DEVICES}, "Compiled modules."),
        "tvm.target": make("tvm.target", {"Target": Target, "create": target}, "Targets."),
        "tvm.testing": make("tvm.testing", {"assert_allclose": adapters.assert_allclose}, "Checks."),
    }
    children: dict[str, dict[str, Any]] = {}
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        children.setdefault(parent, {})[child] = module
    for name, module in modules.items():
        module.__dict__.update(children.get(name, {}))
    top = {
        **_EXPRESSIONS, **_DEVICES, **children["tvm"],
        "lower": lower, "build": build, "IRModule": tir.IRModule, "TVMError": errors.TilewrightError,
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
    sys.modules["topi"] = MODULES["tvm.topi"]
    if not any(isinstance(f, _MissingModules) for f in sys.meta_path):
        sys.meta_path.insert(0, _MissingModules())
