"""Objects that look on while passes run."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.tir.stmt import IRModule

METHODS = ("enter_pass_ctx", "exit_pass_ctx", "should_run", "run_before_pass", "run_after_pass")


@dataclass(frozen=True)
class PassInfo:
    """What is known of a pass."""
    opt_level: int
    name: str
    required: tuple[str, ...] = ()


def tell(instruments: Sequence[Any], method: str, *args: Any) -> list[Any]:
    """What the instruments that have a method answer."""
    return [getattr(i, method)(*args) for i in instruments if hasattr(i, method)]


def observed(info: PassInfo, module: IRModule, run: Callable[[IRModule], IRModule],
             instruments: Sequence[Any]) -> IRModule:
    """run(module), seen by the instruments; the module itself where one of them says that the pass should not run."""
    if not all(tell(instruments, "should_run", module, info)):
        return module
    tell(instruments, "run_before_pass", module, info)
    out = run(module)
    tell(instruments, "run_after_pass", out, info)
    return out
