"""Which instruction sets CPUs have: the one table that rules and code generation read."""
from __future__ import annotations

import functools
from collections.abc import Sequence

# feature -> the features that it needs. LLVM turns these on with it, and turns it off with any of them.
_NEEDS = {
    "sse3": ("sse2",), "ssse3": ("sse3",), "sse4.1": ("ssse3",), "sse4.2": ("sse4.1",), "popcnt": (),
    "avx": ("sse4.2",), "f16c": ("avx",), "fma": ("avx",), "avx2": ("avx",), "bmi": (), "bmi2": (),
    "avx512f": ("avx2", "f16c", "fma"), "avxvnni": ("avx2",), "avx512vnni": ("avx512bw",), "avx512bf16": ("avx512bw",),
    "dotprod": ("neon",), "i8mm": ("neon",),
}
_V2 = ("sse4.2", "popcnt")
_AVX = (*_V2, "avx")
_V3 = (*_AVX, "avx2", "fma", "f16c", "bmi", "bmi2")
_V4 = (*_V3, "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
_VNNI = (*_V4, "avx512vnni")
_BF16 = (*_VNNI, "avx512bf16")
_GROUPS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sse2",), "generic x86-64 nocona core2 penryn bonnell k8 k8-sse3 opteron athlon64 amdfam10 barcelona btver1"),
    (_V2, "x86-64-v2 nehalem westmere silvermont goldmont tremont corei7"),
    (_AVX, "sandybridge corei7-avx"),
    ((*_AVX, "f16c"), "ivybridge core-avx-i btver2"),
    (_AVX, "bdver1"),
    ((*_AVX, "fma", "f16c", "bmi"), "bdver2 bdver3"),
    (_V3, "x86-64-v3 haswell core-avx2 broadwell skylake bdver4 znver1 znver2 znver3"),
    ((*_V3, "avxvnni"), "alderlake raptorlake meteorlake arrowlake gracemont sierraforest grandridge"),
    ((*_V3, "avx512f", "avx512cd"), "knl knm"),
    (_V4, "x86-64-v4 skylake-avx512 cannonlake"),
    (_VNNI, "cascadelake icelake-client icelake-server tigerlake rocketlake"),
    (_BF16, "cooperlake znver4"),
    ((*_BF16, "avxvnni"), "sapphirerapids emeraldrapids graniterapids znver5"),
)
_ARM = {
    "dotprod": "cortex-a76 cortex-a77 cortex-a78 cortex-x1 neoverse-n1 neoverse-v1 neoverse-n2 neoverse-v2 apple-m1 "
               "apple-m2 apple-m3 apple-m4 grace",
    "i8mm": "neoverse-v1 neoverse-n2 neoverse-v2 apple-m2 apple-m3 apple-m4 grace",
}
ARM_CPUS = {name: tuple(f for f, names in _ARM.items() if name in names.split()) for name in _ARM["dotprod"].split()}
X86_CPUS = {name: features for features, names in _GROUPS for name in names.split()}

# Features of LLVM that no CPU reports: they choose between ways to do the same.
X86_TUNING = ("prefer-128-bit", "prefer-256-bit", "soft-float", "false-deps-popcnt", "fast-gather", "retpoline",
              "x87", "64bit", "sse", "sse2", "mmx", "cx8", "cmov", "nopl")

# What every CPU of an architecture has (of RISC-V: every one with doubles).
_BASE = {"x86_64": ("sse2",), "amd64": ("sse2",), "aarch64": ("neon", "fma"), "arm64": ("neon", "fma"),
         "i686": ("sse2",), "riscv64": ("fma",)}


def resolve(arch: str, cpu: str, changes: Sequence[str]) -> frozenset[str]:
    """The features of a CPU after `changes` (+a or -a, in order), with what they imply.

    A CPU that is not in the table has what every machine of its architecture has.
    """
    have: set[str] = set(_BASE.get(arch, ()))
    if arch in ("x86_64", "amd64"):
        for feature in X86_CPUS.get(cpu, ()):
            have |= _needed(feature)
    elif arch in ("aarch64", "arm64"):
        have.update(ARM_CPUS.get(cpu, ()))
    for change in changes:
        name = change.lstrip("+-")
        if change.startswith("+"):
            have |= _needed(name)
        else:
            have -= {f for f in (*have, name) if name in _needed(f)}
    return frozenset(have)


def known_features() -> tuple[str, ...]:
    """The instruction sets that rules or code generation choose by, or that these need."""
    return tuple(_NEEDS)


@functools.cache
def _needed(feature: str) -> frozenset[str]:
    """feature and all that it needs; what is called avx512 something needs avx512f."""
    other = ("avx512f",) if feature.startswith("avx512") else ()
    return frozenset({feature}.union(*(_needed(f) for f in _NEEDS.get(feature, other))))
