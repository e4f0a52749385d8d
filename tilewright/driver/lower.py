"""`lower`: what the user wrote, as the loops that will run."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te
from tilewright.lowering import lower as run_passes
from tilewright.schedule import Schedule
from tilewright.schedule.stages import StageSchedule
from tilewright.support.errors import ArgumentError, TargetError, with_hint
from tilewright.support.target import Target, target
from tilewright.tir import IRModule, PrimFunc

Input = StageSchedule | Schedule | PrimFunc | IRModule


def functions(inputs: Any, args: Sequence[Any] | None, name: str | None) -> dict[str, PrimFunc]:
    """The functions in block form behind any form of input, by name; stage schedules are replayed.

    Raises ArgumentError for anything else, for missing or superfluous args.
    """
    if isinstance(inputs, StageSchedule):
        if args is None:
            raise ArgumentError(with_hint("a schedule of stages needs the argument list",
                                          "lower(s, [A, B, C]), build(s, [A, B, C], target)"))
        name = name or "default_function"
        return {name: inputs.replay(args, name).func}
    if args:
        raise ArgumentError(with_hint(f"args are given with a {type(inputs).__name__}, which has its own parameters",
                                      "args belong to a schedule of stages (te.create_schedule)"))
    if isinstance(inputs, Schedule):
        return functions(inputs.mod, None, name)
    if isinstance(inputs, PrimFunc):
        own = name or inputs.name
        return {own: inputs.with_attr("global_symbol", own)}
    if isinstance(inputs, IRModule):
        if not inputs.functions:
            raise ArgumentError("the module has no functions")
        return {key: f.with_attr("global_symbol", f.attrs.get("global_symbol", key))
                for key, f in inputs.functions.items()}
    raise ArgumentError(with_hint(f"cannot lower a {type(inputs).__name__}",
                                  "pass a schedule (te.create_schedule or tilewright.Schedule), a PrimFunc or an IRModule"))


def lower(inputs: Input, args: Sequence[te.Tensor] | None = None, name: str | None = None,
          simple_mode: bool = False, target: str | Target | None = None) -> IRModule:
    """The loops of `inputs` as a module that prints as script.

    With simple_mode, before loop partition, vectorisation and unrolling: the form to read. args: the parameters,
    in the order of the call, of a schedule of stages.
    """
    resolved = _target(target)
    lowered = {key: run_passes(f, resolved, simple_mode=simple_mode)
               for key, f in functions(inputs, args, name).items()}
    return IRModule(lowered)


def _target(spec: str | Target | None) -> Target:
    return target(spec)


def check_target(spec: str | Target | None) -> Target:
    """The target, when code can be generated for it. Raises TargetError."""
    resolved = target(spec)
    if resolved.kind != "llvm":
        raise TargetError(with_hint(f"there is no code generation for {resolved.kind!r} yet",
                                    'build for "llvm", or look at the loops with lower(..., simple_mode=True)'))
    return resolved
