"""`tvm.lower` and `tvm.build` in the forms that they had from 0.5 to 0.20."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright import driver
from tilewright.compat.relax.expr import Function
from tilewright.compat.relax.vm import build as relax_build
from tilewright.driver.lower import functions
from tilewright.runtime import Module
from tilewright.schedule import Schedule
from tilewright.schedule.stages.facade import StageSchedule
from tilewright.support.errors import ArgumentError, IRError, described
from tilewright.support.target import Target
from tilewright.tir import IRModule, PrimFunc, Stmt

_NAMES = ("main", "default_function")         # of what a schedule of stages becomes, since 0.7 and before


class LoweredModule(IRModule):
    """What `tvm.lower` gives: one function, by its name, by "main" and by "default_function" alike.

    `body`, `args` and `name` are those of its function, as what `tvm.lower` gave up to 0.6 had them.
    """

    def __getitem__(self, name: str) -> PrimFunc:
        if name not in self.functions and name in _NAMES:
            return self._only
        return super().__getitem__(name)

    @property
    def _only(self) -> PrimFunc:
        if len(self.functions) != 1:
            raise IRError(f"the module has no one function; it has {', '.join(self.functions)}")
        return next(iter(self.functions.values()))

    @property
    def body(self) -> Stmt:
        """The body of the one function."""
        return self._only.body

    @property
    def args(self) -> tuple[Any, ...]:
        """The parameters of the one function."""
        return self._only.params

    @property
    def name(self) -> str:
        """The name of the one function."""
        return self._only.name


def lower(inp: Any, args: Sequence[Any] | None = None, name: str = "main", binds: Mapping[Any, Any] | None = None,
          simple_mode: bool = False) -> LoweredModule:
    """The loops of a schedule (with its args), a function or a module. binds: see `build`."""
    _check_binds("lower", binds)
    stages = isinstance(inp, StageSchedule)
    made = driver.lower(inp, args, name if stages or name != "main" else None, simple_mode)
    return LoweredModule(made.functions)


def build(inputs: Any, args: Any = None, target: Any = None, target_host: Any = None, name: str | None = None,
          binds: Mapping[Any, Any] | None = None, *, runtime: None = None, tir_pipeline: None = None) -> Module:
    """Machine code for a schedule (with its args), a function, a module, a list of these, or {target: these}.

    build(mod, "llvm"), the form of 0.20, is taken too. binds, buffers in the place of those of tensors, is refused:
    te.extern and match_buffer take buffers of one's own; so are a runtime and a pipeline of passes.
    """
    _check_binds("build", binds)
    if runtime is not None or tir_pipeline is not None:
        raise ArgumentError("build: a runtime and a pipeline of passes are not supported")
    if isinstance(args, (str, Target)):                          # build(mod, target)
        if target is not None:
            raise ArgumentError(f"build: {described(args)} stands in the place of the arguments")
        args, target = None, args
    if isinstance(inputs, Mapping):
        inputs = _bound(inputs)
    elif isinstance(inputs, (list, tuple)):
        inputs = merged(inputs)
    host = target_host if isinstance(target_host, (str, Target)) else None
    return driver.build(inputs, args, Target(target, host) if target is not None and host else target, host, name)


def compile_(mod: Any, target: Any = None, **options: Any) -> Any:
    """`tvm.compile`: of a module with relax functions what relax.build gives, else what `build` gives."""
    if isinstance(mod, IRModule) and any(isinstance(f, Function) for f in mod.functions.values()):
        return relax_build(mod, target, **options)
    return build(mod, target, **options)


def merged(inputs: Sequence[Any]) -> IRModule:
    """One module with all functions of some functions, modules and schedules of blocks. Raises ArgumentError."""
    found: dict[str, PrimFunc] = {}
    for item in inputs:
        if not isinstance(item, (PrimFunc, IRModule, Schedule)):
            raise ArgumentError(f"build: the list has {described(item)}",
                                'a list holds functions and modules: build([lower(s, args, name="f")])')
        for name, func in functions(item, None, None).items():
            if found.get(name, func) is not func:
                raise ArgumentError(f"build: two functions of the list are called {name!r}")
            found[name] = func
    return IRModule(found)


def _bound(table: Mapping[Any, Any]) -> IRModule:
    """The functions of {target: functions}, each with its target."""
    found: dict[str, PrimFunc] = {}
    for target, inputs in table.items():
        part = merged(inputs if isinstance(inputs, (list, tuple)) else [inputs])
        for name, func in part.functions.items():
            if name in found:
                raise ArgumentError(f"build: two functions of the targets are called {name!r}")
            found[name] = func.with_attr("target", Target(target))
    return IRModule(found)


def _check_binds(what: str, binds: Any) -> None:
    if binds:
        raise ArgumentError(f"{what}: binds, buffers in the place of those of tensors, are not supported",
                            "T.match_buffer declares strides and offsets of an argument")
