"""From a target description to LLVM's target machine."""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol

import llvmlite.binding as llvm

from tilewright.runtime.llvm import initialize_targets
from tilewright.support.errors import TargetError, with_hint
from tilewright.support.target import cpus


class CpuTarget(Protocol):
    """What code generation reads of a target. mcpu "" or "native" means this host; triple None too."""

    @property
    def mcpu(self) -> str: ...
    @property
    def features(self) -> str: ...
    @property
    def triple(self) -> str | None: ...
    @property
    def opt_level(self) -> int: ...


@dataclass(frozen=True)
class PlainTarget:
    """A target whose triple, CPU and features are known."""
    triple: str
    mcpu: str
    features: str
    opt_level: int


def described(target: CpuTarget) -> tuple[str, str, str]:
    """(triple, CPU, features) with this host's where the target leaves them open."""
    cpu, features, triple = cpus.host_cpu()
    if target.triple is None and target.mcpu in ("", "native"):
        return triple, cpu, ",".join(filter(None, (features, target.features)))
    return target.triple or triple, target.mcpu, target.features


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


def target_machine(target: CpuTarget) -> llvm.TargetMachine:
    """LLVM's machine for the target (one object per description). Raises TargetError for an
    unknown triple.
    """
    return _machine(*described(target), int(target.opt_level))


def feature_set(target: CpuTarget) -> frozenset[str]:
    """Features that the target is known to have."""
    return cpus.feature_set(*described(target))
