"""`relax.build` and `relax.VirtualMachine`: modules compiled through the graph, and run."""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from tilewright.compat.relax.expr import Function
from tilewright.compat.relax.lower import Lowered, lower
from tilewright.driver import Target, target
from tilewright.graph.compile import build_function
from tilewright.graph.plan.executable import Executable as GraphExecutable
from tilewright.graph.plan.loaded import Model
from tilewright.runtime import Device, Module
from tilewright.runtime.timing import BenchmarkResult
from tilewright.support.errors import ArgumentError, GraphError, described, nearest
from tilewright.tir import IRModule


class Executable:
    """A compiled module. What `main` needs is compiled at once, other functions with their first use."""

    def __init__(self, mod: IRModule, spec: Target) -> None:
        self.mod, self.target = mod, spec
        self._built: dict[str, tuple[Lowered, GraphExecutable]] = {}
        names = [name for name, f in mod.functions.items() if isinstance(f, Function)]
        if not names:
            raise GraphError("build: the module has no relax function", "tvm.build compiles functions of blocks")
        for name in ["main"] if "main" in names else names:
            self.function(name)

    def function(self, name: str) -> tuple[Lowered, GraphExecutable]:
        """A function, as it was lowered and as it was compiled."""
        if name not in self._built:
            if not isinstance(self.mod.functions.get(name), Function):
                known = [n for n, f in self.mod.functions.items() if isinstance(f, Function)]
                raise GraphError(f"the module has no relax function {name!r}", nearest(name, known) or ", ".join(known))
            lowered = lower(self.mod, name)
            self._built[name] = lowered, build_function(lowered.function, self.target)
        return self._built[name]

    def as_text(self) -> str:
        """The steps of what was compiled."""
        lines = []
        for name, (_, built) in self._built.items():
            lines.append(f"@{name}:")
            lines += [f"  {getattr(s.callee, 'name', s.callee)} {list(s.slots)}" for s in built.plan.steps]
        return "\n".join(lines)

    def stats(self) -> str:
        """How much there is."""
        return "\n".join(f"{name}: {len(b.plan.steps)} steps, {len(b.plan.constants)} constants"
                         for name, (_, b) in self._built.items())

    def export_library(self, file_name: str, workspace_dir: str | None = None, **options: Any) -> None:
        """Write `main`, with its constants, to a shared library, for tvm.runtime.load_module and VirtualMachine."""
        _, built = self.function("main" if "main" in self.mod.functions else next(iter(self._built)))
        built.export(file_name)

    def jit(self, *options: Any, **named: Any) -> Executable:
        """The module, which is compiled already."""
        return self


def build(mod: IRModule, target_: Any = None, params: Any = None, exec_mode: str = "bytecode", *,
          target: Any = None, **options: Any) -> Executable:
    """A relax module compiled for this machine. Raises GraphError for what cannot be compiled."""
    if not isinstance(mod, IRModule):
        raise ArgumentError(f"relax.build takes an IRModule, not {described(mod)}")
    if params:
        raise ArgumentError("relax.build: bind parameters with relax.transform.BindParams")
    return Executable(mod, _target(target if target_ is None else target_))


def _target(spec: Any) -> Target:
    return spec if isinstance(spec, Target) else target(str(spec) if spec is not None else None)


class VirtualMachine:
    """Runs a compiled module: vm["main"](x)."""

    def __init__(self, rt_mod: Any = None, device: Any = None, memory_cfg: Any = None, profile: bool = False, *,
                 exec: Any = None) -> None:
        given = rt_mod if rt_mod is not None else exec
        self._loaded = Model(given) if isinstance(given, Module) else None
        self.module: Executable = given
        if not isinstance(given, (Executable, Module)):
            raise ArgumentError(f"VirtualMachine takes what relax.build gives, not {described(self.module)}")
        for d in device if isinstance(device, (list, tuple)) else [device]:
            if isinstance(d, Device) and d.kind != "cpu":
                raise ArgumentError(f"VirtualMachine: there is no code for {d}", "tvm.cpu()")
        self._inputs: dict[str, tuple[Any, ...]] = {}
        self._outputs: dict[str, Any] = {}
        self._saved: dict[str, Callable[[], Any]] = {}

    def __getitem__(self, name: str) -> Callable[..., Any]:
        if name in self._saved:
            return self._saved[name]
        if self._loaded is not None:
            return self._loaded
        lowered, built = self.module.function(name)

        def run(*args: Any) -> Any:
            return lowered.result_of(built(*lowered.flat(args)))
        run.__name__ = name
        return run

    def invoke_closure(self, closure: Callable[..., Any], *args: Any) -> Any:
        """Call what `vm[name]` gives."""
        return closure(*args)

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Keep the arguments of a function for invoke_stateful."""
        f: Function = self.module.mod[func_name]
        names = [p.name_hint for p in f.params]
        wrong = next((k for k in kwargs if k not in names), None)
        if wrong is not None:
            raise ArgumentError(f"set_input: {func_name} has no parameter {wrong}", ", ".join(names))
        self._inputs[func_name] = (*args, *(kwargs[n] for n in names[len(args):] if n in kwargs))

    def invoke_stateful(self, func_name: str) -> None:
        """Run a function on the arguments that set_input keeps."""
        if func_name not in self._inputs:
            raise GraphError(f"invoke_stateful({func_name!r}) before set_input")
        self._outputs[func_name] = self[func_name](*self._inputs[func_name])

    def get_outputs(self, func_name: str) -> Any:
        """What the last invoke_stateful gave."""
        if func_name not in self._outputs:
            raise GraphError(f"get_outputs({func_name!r}) before invoke_stateful")
        return self._outputs[func_name]

    def save_function(self, func_name: str, saved_name: str, *args: Any, include_return: bool = True,
                      **kwargs: Any) -> None:
        """Keep a call of a function under a name: vm[saved_name]()."""
        self.set_input(func_name, *args, **kwargs)
        bound, called = self._inputs.pop(func_name), self[func_name]
        self._saved[saved_name] = lambda: called(*bound)

    def time_evaluator(self, func_name: str, dev: Any = None, number: int = 10, repeat: int = 1,
                       min_repeat_ms: float = 0, **options: Any) -> Callable[..., BenchmarkResult]:
        """A callable that measures a function, with the calls of Python around it, on the arguments it is given."""
        called = self[func_name]

        def measure(*args: Any) -> BenchmarkResult:
            given: Sequence[Any] = args or self._inputs.get(func_name, ())
            called(*given)
            results, count = [], number
            for _ in range(repeat):
                seconds = _seconds(called, given, count)
                while seconds * 1e3 < min_repeat_ms:
                    count *= 2
                    seconds = _seconds(called, given, count)
                results.append(seconds / count)
            return BenchmarkResult(tuple(results))
        return measure


def _seconds(called: Callable[..., Any], args: Sequence[Any], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        called(*args)
    return time.perf_counter() - start


NAMES: dict[str, Any] = {"build": build, "VirtualMachine": VirtualMachine, "Executable": Executable,
                         "VMExecutable": Executable}
