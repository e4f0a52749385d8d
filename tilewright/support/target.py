"""Targets: what machine code is made for, parsed from strings such as `llvm -mcpu=znver4 -num-cores=2`."""
from __future__ import annotations

import functools
import os
import shlex
import threading
from dataclasses import dataclass, field

import llvmlite.binding as llvm

from tilewright.support.errors import TargetError, with_hint

KINDS = {"llvm": "cpu", "c": "cpu", "cuda": "cuda"}
_FLAGS = {
    "mcpu": "CPU name", "mattr": "features, +a,-b", "mtriple": "target triple", "num-cores": "cores",
    "opt-level": "0 to 3", "keys": "words for schedule rules", "libs": "libraries", "device": "device words",
    "model": "device model", "arch": "GPU architecture", "max_threads_per_block": "GPU limit",
    "thread_warp_size": "GPU limit", "host": "host target",
}
_X86_CPUS = """generic x86-64 x86-64-v2 x86-64-v3 x86-64-v4 nocona core2 penryn nehalem westmere
sandybridge ivybridge haswell broadwell skylake skylake-avx512 cascadelake cooperlake cannonlake
icelake-client icelake-server tigerlake rocketlake alderlake raptorlake meteorlake arrowlake
sapphirerapids emeraldrapids graniterapids sierraforest grandridge knl knm bonnell silvermont goldmont
tremont gracemont core-avx2 core-avx-i corei7 corei7-avx btver1 btver2 bdver1 bdver2 bdver3 bdver4
amdfam10 barcelona k8 k8-sse3 opteron athlon64 znver1 znver2 znver3 znver4 znver5""".split()


@functools.cache
def host_cpu() -> tuple[str, str, str]:
    """(cpu name, feature string, triple) of this machine, as LLVM names them."""
    features = ",".join(sorted(f"{'+' if on else '-'}{name}"
                               for name, on in llvm.get_host_cpu_features().items()))
    return llvm.get_host_cpu_name(), features, llvm.get_process_triple()


@functools.cache
def usable_cores() -> int:
    """Cores that this process may run on (its affinity mask)."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


@dataclass(frozen=True)
class Target:
    """A code generation target. `mcpu`, `features` and `triple` are LLVM's names.

    `str(target)` parses back to an equal target.
    """
    kind: str
    mcpu: str = ""
    features: str = ""
    triple: str = ""
    num_cores: int = 1
    opt_level: int = 3
    keys: tuple[str, ...] = ()
    text: str = field(default="", compare=False)

    _stack = threading.local()

    def __str__(self) -> str:
        return self.text or self.kind

    @property
    def is_host(self) -> bool:
        """True when code for this target runs in this process."""
        return self.kind == "llvm" and _arch(self.triple) == _arch(host_cpu()[2])

    @property
    def attrs(self) -> dict[str, object]:
        return {"mcpu": self.mcpu, "mattr": self.features, "mtriple": self.triple, "num-cores": self.num_cores}

    def has_feature(self, name: str) -> bool:
        """True when the feature string turns `name` (LLVM's spelling, e.g. "avx512f") on."""
        return f"+{name}" in self.features.split(",")

    @property
    def vector_bytes(self) -> int:
        """Width of the widest vector register that code should use, in bytes."""
        if self.has_feature("avx512f"):
            return 64
        if self.has_feature("avx2") or self.has_feature("avx"):
            return 32
        return 16

    def __enter__(self) -> Target:
        stack = self._stack.__dict__.setdefault("targets", [])
        stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.__dict__["targets"].pop()

    @classmethod
    def current(cls) -> Target | None:
        """The innermost `with Target(...)` of this thread, or None."""
        stack = cls._stack.__dict__.get("targets", [])
        return stack[-1] if stack else None


def _arch(triple: str) -> str:
    return triple.split("-")[0]


def parse_flags(text: str) -> tuple[str, dict[str, str]]:
    """(kind, flags) of a target string; flags are read with one dash or two, `-k=v` or `-k v`."""
    try:
        words = shlex.split(text)
    except ValueError as why:
        raise TargetError(f"target {text!r}: {why}") from None
    if not words or words[0] not in KINDS:
        raise TargetError(with_hint(f"target {text!r}: unknown kind {words[0] if words else ''!r}",
                                    f"a target string starts with one of {', '.join(KINDS)}"))
    flags: dict[str, str] = {}
    rest = words[1:]
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or name not in _FLAGS:
            raise TargetError(with_hint(f"target {text!r}: {word!r} is not a flag",
                                        "the flags are " + ", ".join(f"-{k}" for k in _FLAGS)))
        if not equals:
            if not rest or rest[0].startswith("-"):
                raise TargetError(f"target {text!r}: -{name} needs a value ({_FLAGS[name]})")
            value = rest.pop(0)
        flags[name] = value
    return words[0], flags


def _natural(text: str, flags: dict[str, str], name: str, default: int, low: int, high: int) -> int:
    raw = flags.get(name)
    if raw is None:
        return default
    if not raw.isdigit() or not low <= int(raw) <= high:
        raise TargetError(f"target {text!r}: -{name}={raw} is not an integer from {low} to {high}")
    return int(raw)


def target(spec: str | Target | None = None) -> Target:
    """The Target for a string, a Target, or None (the `with Target` in force, else `llvm`).

    `llvm` without -mcpu and -mtriple means this host. Raises TargetError with the flag that is wrong.
    """
    if isinstance(spec, Target):
        return spec
    if spec is None:
        return Target.current() or _parse("llvm")
    if not isinstance(spec, str):
        raise TargetError(with_hint(f"{spec!r} is not a target", 'write a string such as "llvm -mcpu=znver4"'))
    return _parse(spec)


@functools.lru_cache(maxsize=256)
def _parse(spec: str) -> Target:
    kind, flags = parse_flags(spec)
    cpu, features, triple = host_cpu()
    cross = "mtriple" in flags and _arch(flags["mtriple"]) != _arch(triple)
    if cross:
        cpu, features, triple = "generic", "", flags["mtriple"]
        _check_triple(spec, triple)
    if "mcpu" in flags and flags["mcpu"] != cpu:
        cpu, features = flags["mcpu"], _features_of(spec, flags["mcpu"], triple)
    if "mattr" in flags:
        _check_features(spec, flags["mattr"])
        features = ",".join(filter(None, [features, flags["mattr"]]))
    return Target(
        kind, cpu, features, triple,
        _natural(spec, flags, "num-cores", usable_cores(), 1, 65536),
        _natural(spec, flags, "opt-level", 3, 0, 3),
        tuple(filter(None, flags.get("keys", "").split(","))) or (KINDS[kind],), spec)


def _check_triple(spec: str, triple: str) -> None:
    try:
        llvm.initialize_all_targets()
        llvm.Target.from_triple(triple)
    except RuntimeError as why:
        raise TargetError(f"target {spec!r}: -mtriple={triple}: {str(why).strip()}") from None


def _check_features(spec: str, mattr: str) -> None:
    for item in mattr.split(","):
        if item[:1] not in "+-" or len(item) < 2:
            raise TargetError(with_hint(f"target {spec!r}: -mattr item {item!r}", "write +feature or -feature"))


def _features_of(spec: str, cpu: str, triple: str) -> str:
    """The SIMD features that rules ask about, for a CPU that is not the host; LLVM adds the rest."""
    if _arch(triple) not in ("x86_64", "amd64"):
        return ""
    if cpu not in _X86_CPUS:
        raise TargetError(with_hint(f"target {spec!r}: LLVM knows no x86-64 CPU {cpu!r}",
                                    "e.g. " + ", ".join(("x86-64-v3", "x86-64-v4", "haswell", "skylake-avx512",
                                                         "znver4", "znver5"))))
    wide = {"x86-64-v4", "skylake-avx512", "cascadelake", "cooperlake", "cannonlake", "icelake-client",
            "icelake-server", "tigerlake", "rocketlake", "sapphirerapids", "emeraldrapids", "graniterapids",
            "knl", "knm", "znver4", "znver5"}
    avx2 = {"x86-64-v3", "haswell", "broadwell", "skylake", "core-avx2", "alderlake", "raptorlake", "meteorlake",
            "arrowlake", "sierraforest", "grandridge", "gracemont", "bdver4", "znver1", "znver2", "znver3"}
    if cpu in wide:
        return "+avx,+avx2,+fma,+avx512f" + ("" if cpu in ("knl", "knm") else ",+avx512bw,+avx512dq,+avx512vl")
    if cpu in avx2:
        return "+avx,+avx2,+fma"
    return "+avx" if cpu in ("sandybridge", "ivybridge", "corei7-avx", "core-avx-i", "btver2", "bdver1",
                             "bdver2", "bdver3") else ""
