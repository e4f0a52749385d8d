"""From a target description to LLVM's target machine."""
from __future__ import annotations

import functools
from typing import Protocol

import llvmlite.binding as llvm

from tilewright.support.errors import TargetError, with_hint


class CpuTarget(Protocol):
    """What code generation reads of a target. mcpu "" or "native" means this host; triple None too."""
    mcpu: str
    features: str
    triple: str | None
    opt_level: int


@functools.cache
def _initialize() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@functools.cache
def host_cpu() -> tuple[str, str]:
    """(CPU name, feature string) of this machine."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


@functools.lru_cache(64)
def _machine(triple: str | None, mcpu: str, features: str, level: int) -> llvm.TargetMachine:
    _initialize()
    if triple is None and mcpu in ("", "native"):
        mcpu, host_features = host_cpu()
        features = ",".join(filter(None, (host_features, features)))
    try:
        target = llvm.Target.from_triple(triple or llvm.get_process_triple())
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
    return _machine(target.triple or None, target.mcpu or "", target.features or "", int(target.opt_level))


@functools.lru_cache(64)
def _feature_set(triple: str | None, mcpu: str, features: str) -> frozenset[str]:
    base: set[str] = set()
    if triple is None and mcpu in ("", "native"):
        base = {f[1:] for f in host_cpu()[1].split(",") if f.startswith("+")}
    else:
        base = set(_PROFILES.get(mcpu, ()))
        arch = (triple or llvm.get_process_triple()).split("-")[0]
        base |= _ARCHITECTURES.get(arch, {"fma"})
    for flag in filter(None, features.split(",")):
        (base.add if flag[0] == "+" else base.discard)(flag.lstrip("+-"))
    return frozenset(base)


# Every 64-bit ARM has fused multiply-add, and so has every RISC-V with doubles.
_ARCHITECTURES = {"x86_64": {"sse2"}, "amd64": {"sse2"}, "i686": {"sse2"},
                  "aarch64": {"neon", "fma"}, "arm64": {"neon", "fma"}}
_AVX2 = ("sse2", "sse4.1", "avx", "avx2", "fma", "f16c", "bmi2")
_AVX512 = (*_AVX2, "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd")
_AVX2_CPUS = """x86-64-v3 haswell core-avx2 broadwell skylake znver1 znver2 znver3 alderlake raptorlake meteorlake
arrowlake gracemont sierraforest grandridge""".split()
_AVX512_CPUS = """x86-64-v4 skylake-avx512 cascadelake cooperlake cannonlake icelake-client icelake-server tigerlake
rocketlake sapphirerapids emeraldrapids graniterapids znver4 znver5""".split()
_PROFILES = {**dict.fromkeys(_AVX2_CPUS, _AVX2), **dict.fromkeys(_AVX512_CPUS, _AVX512)}


def feature_set(target: CpuTarget) -> frozenset[str]:
    """Features that the target is known to have; for a CPU by name, those of the table of common ones."""
    return _feature_set(target.triple or None, target.mcpu or "", target.features or "")
