"""From a target to LLVM's target machine."""
from __future__ import annotations

import functools

import llvmlite.binding as llvm

from tilewright.runtime.llvm import initialize_targets
from tilewright.support.errors import TargetError, with_hint
from tilewright.support.target import Target


@functools.lru_cache(64)
def _machine(triple: str, mcpu: str, features: str, level: int) -> llvm.TargetMachine:
    initialize_targets()
    try:
        target = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise TargetError(
            with_hint(
                f"LLVM does not know the triple {triple!r}: {error}",
                "for instance x86_64-unknown-linux-gnu, aarch64-unknown-linux-gnu",
            )
        ) from None
    return target.create_target_machine(
        cpu=mcpu, features=features, opt=level, reloc="pic", codemodel="small"
    )


def target_machine(target: Target, level: int | None = None) -> llvm.TargetMachine:
    """LLVM's machine for the target (one object per description), which emits code at its opt_level or another one.

    Raises TargetError for an unknown triple.
    """
    return _machine(target.triple, target.mcpu, target.features, target.opt_level if level is None else level)


def forget_machines() -> None:
    """Make other ones from now on: what LLVM has left in the middle of its work is not used again."""
    _machine.cache_clear()
