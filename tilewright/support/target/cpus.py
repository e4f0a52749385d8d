"""Which instruction sets CPUs have, the one table that rules and code generation read; triples; this host."""
from __future__ import annotations

import functools
import os
import re
from collections.abc import Sequence

from tilewright.support.registry import hook

# feature -> the features that it needs. LLVM turns these on with it, and turns it off with any of them.
_NEEDS = {
    "sse3": ("sse2",), "ssse3": ("sse3",), "sse4.1": ("ssse3",), "sse4.2": ("sse4.1",), "popcnt": (),
    "avx": ("sse4.2",), "f16c": ("avx",), "fma": ("avx",), "avx2": ("avx",), "bmi": (), "bmi2": (),
    "avx512f": ("avx2", "f16c", "fma"), "avxvnni": ("avx2",), "avx512vnni": ("avx512bw",), "avx512bf16": ("avx512bw",),
    "fast-gather": ("avx2",), "dotprod": ("neon",), "i8mm": ("neon",),
}
_V2 = ("sse4.2", "popcnt")
_AVX = (*_V2, "avx")
_V3 = (*_AVX, "avx2", "fma", "f16c", "bmi", "bmi2")
_V4 = (*_V3, "avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl")
_GATHER = "fast-gather"        # a gather instruction takes less time than as many loads: not so on any CPU of AMD
_VNNI = (*_V4, "avx512vnni")
_BF16 = (*_VNNI, "avx512bf16")
_GROUPS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("sse2",), "generic x86-64 nocona core2 penryn bonnell k8 k8-sse3 opteron athlon64 amdfam10 barcelona btver1"),
    (_V2, "x86-64-v2 nehalem westmere silvermont goldmont tremont corei7"),
    (_AVX, "sandybridge corei7-avx"),
    ((*_AVX, "f16c"), "ivybridge core-avx-i btver2"),
    (_AVX, "bdver1"),
    ((*_AVX, "fma", "f16c", "bmi"), "bdver2 bdver3"),
    (_V3, "x86-64-v3 haswell core-avx2 broadwell bdver4 znver1 znver2 znver3"),
    ((*_V3, _GATHER), "skylake"),
    ((*_V3, "avxvnni"), "gracemont sierraforest grandridge"),
    ((*_V3, "avxvnni", _GATHER), "alderlake raptorlake meteorlake arrowlake"),
    ((*_V3, "avx512f", "avx512cd", _GATHER), "knl knm"),
    ((*_V4, _GATHER), "x86-64-v4 skylake-avx512 cannonlake"),
    ((*_VNNI, _GATHER), "cascadelake icelake-client icelake-server tigerlake rocketlake"),
    ((*_BF16, _GATHER), "cooperlake"),
    (_BF16, "znver4"),
    ((*_BF16, "avxvnni", _GATHER), "sapphirerapids emeraldrapids graniterapids"),
    ((*_BF16, "avxvnni"), "znver5"),
)
_ARM = {
    "dotprod": "cortex-a76 cortex-a77 cortex-a78 cortex-x1 neoverse-n1 neoverse-v1 neoverse-n2 neoverse-v2 apple-m1 "
               "apple-m2 apple-m3 apple-m4 grace",
    "i8mm": "neoverse-v1 neoverse-n2 neoverse-v2 apple-m2 apple-m3 apple-m4 grace",
}
ARM_CPUS = {name: tuple(f for f, names in _ARM.items() if name in names.split()) for name in _ARM["dotprod"].split()}
X86_CPUS = {name: features for features, names in _GROUPS for name in names.split()}

# LLVM's names of x86 features: what CPUs report, and some that choose between ways to do the same
X86_FEATURES = frozenset("""
    64bit adx aes amx-avx512 amx-bf16 amx-complex amx-fp16 amx-fp8 amx-int8 amx-movrs amx-tf32 amx-tile avx avx10.1
    avx10.2 avx2 avx512bf16 avx512bitalg avx512bw avx512cd avx512dq avx512f avx512fp16 avx512ifma avx512vbmi avx512vbmi2
    avx512vl avx512vnni avx512vp2intersect avx512vpopcntdq avxifma avxneconvert avxvnni avxvnniint16 avxvnniint8 bmi
    bmi2 ccmp cf cldemote clflushopt clwb clzero cmov cmpccxadd crc32 cx16 cx8 egpr enqcmd f16c fma fma4 fsgsbase fxsr
    gfni hreset invpcid kl lwp lzcnt mmx movbe movdir64b movdiri movrs mwaitx ndd nf pclmul pconfig pku popcnt ppx
    prefetchi prfchw ptwrite push2pop2 raoint rdpid rdpru rdrnd rdseed rtm sahf serialize sgx sha sha512 shstk sm3 sm4
    sse sse2 sse3 sse4.1 sse4.2 sse4a ssse3 tbm tsxldtrk uintr usermsr vaes vpclmulqdq waitpkg wbnoinvd widekl xop xsave
    xsavec xsaveopt xsaves zu
    prefer-128-bit prefer-256-bit soft-float false-deps-popcnt fast-gather retpoline x87 nopl
""".split())

# The architectures that LLVM generates code for, as triples begin.
_ARCHITECTURES = re.compile(
    r"x86_64h?|amd64|i[3-9]86|aarch64(_be|_32)?|arm64(e|ec|_32)?|(arm|thumb)(eb)?(v\d.*)?|xscale(eb)?|riscv(32|64)(be)?|"
    r"wasm(32|64)|nvptx(64)?|amdgcn|r600|spirv(32|64)?|(powerpc|ppc)(64)?(le)?|powerpcspe|ppc32(le)?|ppu|s390x|systemz|"
    r"mips.*|sparc(el|v9|64)?|loongarch(32|64)|bpf(el|eb)?|bpf_[bl]e|hexagon|avr|msp430|lanai|xcore|ve")


def is_architecture(name: str) -> bool:
    """True when a triple may begin with the name."""
    return _ARCHITECTURES.fullmatch(name) is not None


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


@functools.lru_cache(maxsize=256)
def feature_set(triple: str, mcpu: str, features: str) -> frozenset[str]:
    """The instruction sets of a CPU by LLVM's name for it, changed by a feature string `+a,-b`."""
    return resolve(arch_of(triple), mcpu, [item for item in features.split(",") if item])


def gathers(features: frozenset[str], bits: int) -> bool:
    """True when elements of so many bits are gathered by an instruction, rather than lane by lane."""
    return _GATHER in features and bits in (32, 64)


def arch_of(triple: str) -> str:
    """The architecture of a triple, as it is written there."""
    return triple.split("-")[0]


def platform_of(triple: str) -> tuple[str, str]:
    """(architecture, operating system) of a triple."""
    rest = triple.split("-", 1)[-1]
    systems = ("linux", "darwin", "macos", "ios", "windows", "freebsd", "wasi", "none")
    system = next((s for s in systems if s in rest), rest)
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get(arch_of(triple), arch_of(triple))
    return arch, "darwin" if system == "macos" else system


def host_cpu() -> tuple[str, str, str]:
    """(CPU, features, triple) of this machine, as LLVM names them: the first call loads LLVM."""
    cpu, features, triple = hook("runtime.host_cpu")()
    return cpu, features, triple


@functools.cache
def usable_cores() -> int:
    """Cores that this process may run on (its affinity mask)."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
