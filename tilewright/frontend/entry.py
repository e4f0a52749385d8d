"""`tilewright.compile` and `tilewright.profile`: kernels, functions of the graph, models of PyTorch and ONNX files."""
from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright import driver
from tilewright.support.errors import ArgumentError, described
from tilewright.support.registry import load
from tilewright.support.target import Target

_GRAPH = "tilewright.graph.compile"                # loaded with the first model: kernels need none of it


def compile(inputs: Any, args: Sequence[Any] | None = None, target: str | Target | None = None,
            name: str | None = None, *, shapes: Mapping[str, Sequence[Any]] | None = None) -> Any:
    """Native code for what is given, scheduled by the built-in rules of the target.

    - tensors, a PrimFunc, an IRModule: the Module of its functions, as `build` gives. Raises ArgumentError where loops
      have been scheduled already: `build` takes those as they are;
    - a function of the graph: an Executable;
    - an ONNX model, or the path of one: an Executable; shapes gives those of inputs by name;
    - an exported program of torch.export, or a torch.nn.Module with example inputs in args: an Executable.

    An Executable is called with arrays, and writes itself to a file with `export`.
    """
    if _is_model(inputs):
        function = imported(inputs, args, shapes)
        return load(_GRAPH).build_function(function, target)
    if isinstance(inputs, (str, Path)):
        raise ArgumentError(f"compile: {str(inputs)!r}: unknown kind of file", "give the path of an .onnx file")
    if shapes is not None:
        raise ArgumentError(f"compile: shapes are those of an ONNX model, and {described(inputs)} is none")
    return driver.compile(inputs, args, target, name)


def profile(f: Any, /, *args: Any, **named: Any) -> Any:
    """The time of f(*args, **named): of a kernel a Profile, of a model that `compile` gave a ModelProfile.

    f runs many times. Peaks are those that `tilewright bench` stored on this machine; without them they are measured
    first, which takes seconds. Raises ArgumentError for what is no compiled function, and what the call raises.
    """
    plans = sys.modules.get("tilewright.graph.plan.executable")
    if plans is not None and isinstance(f, plans.Executable):
        return load("tilewright.graph.plan.profiling").profile_model(f, *args, **named)
    return load("tilewright.driver.profiles").profile(f, *args, **named)


def _is_model(x: Any) -> bool:
    values = sys.modules.get("tilewright.graph.ir.values")
    is_function = values is not None and isinstance(x, values.Function)
    return is_function or _is_onnx(x) or _is_exported(x) or _is_torch_module(x)


def imported(x: Any, args: Sequence[Any] | None = None, shapes: Mapping[str, Sequence[Any]] | None = None) -> Any:
    """A model as a function of the graph; arguments as those of `compile`. Raises the error of the importer."""
    if _is_onnx(x):
        return load("tilewright.frontend.onnx").from_onnx(x, shapes=shapes)
    if _is_exported(x):
        return load("tilewright.frontend.torch").from_exported_program(x)
    if _is_torch_module(x):
        if args is None:
            raise ArgumentError("compile: a torch.nn.Module needs example inputs",
                                "write compile(model, (example,)), or export it with torch.export and compile that")
        torch = sys.modules["torch"]
        program = torch.export.export(x, tuple(args))
        return load("tilewright.frontend.torch").from_exported_program(program)
    return x


def _is_onnx(x: Any) -> bool:
    return type(x).__name__ == "ModelProto" or isinstance(x, (str, Path)) and Path(x).suffix == ".onnx"


def _is_exported(x: Any) -> bool:
    return type(x).__name__ == "ExportedProgram"


def _is_torch_module(x: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(x, torch.nn.Module)
