"""Targets: what machine code is made for, parsed from strings such as `llvm -mcpu=znver4 -num-cores=2`."""
from __future__ import annotations

import functools
import os
import shlex
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm

from tilewright.support.cpus import X86_CPUS, X86_TUNING, resolve
from tilewright.support.errors import TargetError, described, with_hint
from tilewright.support.target_kinds import FLAGS, KINDS, LIMITS, STRICT, TAGS

_SPOKEN = ("mcpu", "mattr", "mtriple", "num-cores", "opt-level", "keys", "host", "tag")
_X86 = ("x86_64", "amd64")


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


class TargetKind(str):
    """The kind of a target: "llvm", "cuda", ...; `kind.name` is the same string."""

    @property
    def name(self) -> str:
        return str(self)


@dataclass(frozen=True, init=False)
class Target:
    """What code is generated for. `mcpu`, `features` (+a,-b) and `triple` are LLVM's names, opt_level is 0 to 3.

    Made from a string (see `target`); `str(t)` is that string, so `Target(str(t)) == t`. As a context manager it is
    the target of everything inside that names none.
    """
    kind: TargetKind
    mcpu: str
    features: str
    triple: str
    num_cores: int
    opt_level: int
    keys: tuple[str, ...]
    text: str = field(compare=False)
    flags: Mapping[str, str] = field(compare=False, repr=False)
    description: tuple[tuple[str, str], ...] = field(repr=False)      # the flags of which no field above speaks
    host: Target | None = field(compare=False, repr=False)

    _stack = threading.local()

    def __init__(self, target: str | Mapping[str, Any] | Target | None = None, host: object = None) -> None:
        """`host` is a description: host code is always for this machine."""
        made = _target(target)
        for name, value in vars(made).items():
            object.__setattr__(self, name, value)
        if host is not None:
            object.__setattr__(self, "host", _target(host))  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Target({self.text!r})"

    @property
    def is_host(self) -> bool:
        """True when code for this target runs in this process."""
        return self.kind == "llvm" and _platform(self.triple) == _platform(host_cpu()[2])

    @property
    def attrs(self) -> dict[str, object]:
        """The flags by name, as TVM has them."""
        given = {name: _typed(text) for name, text in {**LIMITS.get(self.kind, {}), **self.flags}.items()}
        return {**given, "mcpu": self.mcpu, "mattr": self.features, "mtriple": self.triple,
                "num-cores": self.num_cores}

    def __getattr__(self, name: str) -> Any:
        """A flag: `target.arch`, `target.max_num_threads`; "" or None where it was not given."""
        given = vars(self).get("flags", {})
        flag = next((f for f in (name, name.replace("_", "-")) if f in FLAGS or f in given), None)
        if name.startswith("_") or flag is None:
            raise AttributeError(f"a target has no {name!r}")
        return self.attrs.get(flag, "" if flag in ("arch", "model", "device") else None)

    @property
    def libs(self) -> list[str]:
        """The libraries named in the string."""
        return list(filter(None, self.flags.get("libs", "").split(",")))

    def with_host(self, host: str | Mapping[str, Any] | Target) -> Target:
        """This target with another description of its host."""
        return Target(self, host)

    def export(self) -> dict[str, Any]:
        """This target as the dict that makes it."""
        return {"kind": str(self.kind), **self.flags, **({"host": str(self.host)} if self.host else {})}

    @staticmethod
    def list_kinds() -> list[str]:
        """The kinds that strings may name; there is code generation for "llvm"."""
        return list(KINDS)

    @staticmethod
    def canon_target(target: Any) -> Target | None:
        """A Target of whatever stands for one; None for None."""
        return None if target is None else _target(target)

    @staticmethod
    def canon_target_and_host(target: Any, target_host: Any = None, **_: object) -> tuple[Any, Target | None]:
        """(target with its host, host), of whatever stands for them."""
        if target is None:
            if target_host is not None:
                raise TargetError("a host is given, and no target")
            return None, None
        made = _target(target) if target_host is None else Target(target, target_host)
        return made, made.host

    @staticmethod
    def canon_multi_target_and_host(target: Any, target_host: Any = None) -> list[Target]:
        """The targets of one or of a list, each with its host."""
        several = list(target) if isinstance(target, (list, tuple)) else [target]
        return [Target.canon_target_and_host(t, target_host)[0] for t in several]

    @staticmethod
    def canon_target_map_and_host(target_map: Mapping[Any, Any],
                                  target_host: Any = None) -> tuple[dict[Target, Any], Target | None]:
        """({target: value}, host) of a dict whose keys stand for targets."""
        made = {Target.canon_target_and_host(t, target_host)[0]: value for t, value in target_map.items()}
        return made, next((t.host for t in made if t.host is not None), None)

    @classmethod
    def from_device(cls, device: Any) -> Target:
        """The target of a device: this machine for cpu(0). Raises TargetError for a device that is not here."""
        name = str(device)
        if not name.startswith(("cpu", "llvm")):
            raise TargetError(with_hint(f"from_device: {described(device)} is no device of this machine", "tvm.cpu(0)"))
        return _parse("llvm")

    @property
    def feature_set(self) -> frozenset[str]:
        """The instruction sets that code may use, in LLVM's spelling ("avx512f"), those implied included."""
        return feature_set(self.triple, self.mcpu, self.features)

    def has_feature(self, name: str) -> bool:
        """True when code may use the instruction set `name` (LLVM's spelling, e.g. "avx512f")."""
        return name in self.feature_set

    @property
    def vector_bytes(self) -> int:
        """Width of the widest vector register that code should use, in bytes."""
        have = self.feature_set
        return 64 if "avx512f" in have else 32 if "avx" in have else 16

    def __enter__(self) -> Target:
        self._stack.__dict__.setdefault("targets", []).append(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.__dict__["targets"].pop()

    @classmethod
    def current(cls, allow_none: bool = True) -> Target | None:
        """The innermost `with Target(...)` of this thread; without one None, or TargetError unless allow_none."""
        stack = cls._stack.__dict__.get("targets", [])
        if not stack and not allow_none:
            raise TargetError(with_hint("there is no target in force", 'write `with Target("llvm"):` around it'))
        return stack[-1] if stack else None


def target(spec: str | Mapping[str, Any] | Target | None = None) -> Target:
    """The Target for a string, a Target, or None (the `with Target(...)` in force, else `llvm`).

    {"kind": "llvm", "mcpu": "znver4", "mattr": ["+avx512f"]} is "llvm -mcpu=znver4 -mattr=+avx512f".

    `llvm` without -mcpu and -mtriple, or with -mcpu=native, means this host; with -mtriple alone it means any CPU of
    that kind. Flags are read with one dash or two, as `-k=v` or `-k v`. Raises TargetError with the flag that is wrong.
    """
    if isinstance(spec, Target):
        return spec
    if spec is None:
        return Target.current() or _parse("llvm")
    if isinstance(spec, Mapping):
        spec = _as_text(spec)
    if not isinstance(spec, str):
        raise TargetError(with_hint(f"{spec!r} is not a target", 'write a string such as "llvm -mcpu=znver4"'))
    return _parse(spec)


_target = target


def _as_text(fields: Mapping[str, Any]) -> str:
    """The target string of TVM's dictionary form."""
    if not isinstance(fields.get("kind"), str):
        raise TargetError(with_hint(f"{dict(fields)!r} is not a target: it names no kind",
                                    'write a string such as "llvm -mcpu=znver4"'))
    flags = {name: ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
             for name, value in fields.items() if name != "kind"}
    return " ".join([fields["kind"], *(shlex.quote(f"-{name}={value}") for name, value in flags.items())])


@functools.lru_cache(maxsize=256)
def feature_set(triple: str, mcpu: str, features: str) -> frozenset[str]:
    """The instruction sets of a CPU by LLVM's name for it, changed by a feature string `+a,-b`."""
    return resolve(_arch(triple), mcpu, [item for item in features.split(",") if item])


def _arch(triple: str) -> str:
    return triple.split("-")[0]


def _platform(triple: str) -> tuple[str, str]:
    """(architecture, operating system) of a triple."""
    rest = triple.split("-", 1)[-1]
    systems = ("linux", "darwin", "macos", "ios", "windows", "freebsd", "wasi", "none")
    system = next((s for s in systems if s in rest), rest)
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get(_arch(triple), _arch(triple))
    return arch, "darwin" if system == "macos" else system


def _flags(text: str) -> tuple[str, dict[str, str]]:
    """(kind, flags) of a target string."""
    try:
        words = shlex.split(text)
    except ValueError as why:
        raise TargetError(f"target {text!r}: {why}") from None
    if len(words) == 1 and words[0] in TAGS:
        kind, found = _flags(TAGS[words[0]])
        return kind, {**found, "tag": words[0]}
    if not words or words[0] not in KINDS:
        raise TargetError(with_hint(f"target {text!r}: unknown kind {words[0] if words else ''!r}",
                                    f"a target string starts with one of {', '.join(KINDS)}"))
    flags: dict[str, str] = {}
    rest = words[1:]
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or (name not in FLAGS and words[0] in STRICT):
            raise TargetError(with_hint(f"target {text!r}: {word!r} is not a flag",
                                        "the flags are " + ", ".join(f"-{k}" for k in FLAGS)))
        if not equals:
            # "-mattr -avx2": a feature may start with a dash, a value of any other flag may not
            if not rest or (rest[0].startswith("-") and name != "mattr"):
                raise TargetError(f"target {text!r}: -{name} needs a value ({FLAGS.get(name, 'of any kind')})")
            value = rest.pop(0)
        name = "mtriple" if name == "target" else name
        if flags.setdefault(name, value) != value:
            raise TargetError(f"target {text!r}: -{name} is given twice")
    return words[0], flags


def _typed(text: str) -> object:
    """The value of a flag: an integer or a truth value where it is written as one."""
    return {"True": True, "False": False}.get(text, int(text) if text.isascii() and text.isdigit() else text)


def _natural(text: str, flags: dict[str, str], name: str, default: int, low: int, high: int) -> int:
    raw = flags.get(name)
    if raw is None:
        return default
    if not (raw.isascii() and raw.isdigit()) or not low <= int(raw) <= high:
        raise TargetError(f"target {text!r}: -{name}={raw} is not an integer from {low} to {high}")
    return int(raw)


@functools.lru_cache(maxsize=256)
def _parse(spec: str) -> Target:
    kind, flags = _flags(spec)
    cpu, features, triple = host_cpu()
    wanted = flags.get("mcpu", "generic" if "mtriple" in flags else "native")
    if "mtriple" in flags:
        triple = flags["mtriple"]
        _check_triple(spec, triple)
    if wanted == "native" and _platform(triple) != _platform(host_cpu()[2]):
        raise TargetError(f"target {spec!r}: -mcpu=native is this machine, and -mtriple={triple} is another one")
    if wanted not in ("native", cpu):
        _check_cpu(spec, wanted, triple)
        cpu, features = wanted, ""
    if "mattr" in flags:
        _check_features(spec, flags["mattr"], triple)
        features = ",".join(filter(None, [features, flags["mattr"]]))
    fields: dict[str, Any] = {
        "kind": TargetKind(kind), "mcpu": cpu, "features": features, "triple": triple,
        "num_cores": _natural(spec, flags, "num-cores", usable_cores(), 1, 65536),
        "opt_level": _natural(spec, flags, "opt-level", 3, 0, 3),
        "keys": tuple(filter(None, flags.get("keys", "").split(","))) or (KINDS[kind],), "text": spec,
        "flags": flags, "description": tuple(sorted((k, v) for k, v in flags.items() if k not in _SPOKEN)),
        "host": _parse(flags["host"]) if "host" in flags else None}
    made = Target.__new__(Target)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def _check_triple(spec: str, triple: str) -> None:
    try:
        llvm.initialize_all_targets()
        llvm.Target.from_triple(triple)
    except RuntimeError as why:
        raise TargetError(f"target {spec!r}: -mtriple={triple}: {str(why).strip()}") from None


def _check_cpu(spec: str, cpu: str, triple: str) -> None:
    """LLVM itself only prints a warning for a CPU that it does not know, and generates code for any."""
    if _arch(triple) in _X86 and cpu not in X86_CPUS:
        raise TargetError(with_hint(f"target {spec!r}: LLVM knows no x86-64 CPU {cpu!r}",
                                    "e.g. x86-64-v3, x86-64-v4, haswell, skylake-avx512, znver4, znver5"))


def _check_features(spec: str, mattr: str, triple: str) -> None:
    known = {*llvm.get_host_cpu_features(), *X86_TUNING}
    check_names = _arch(triple) in _X86 and _arch(host_cpu()[2]) in _X86
    for item in mattr.split(","):
        if item[:1] not in ("+", "-") or len(item) < 2:
            raise TargetError(with_hint(f"target {spec!r}: -mattr item {item!r}", "write +feature or -feature"))
        if check_names and item[1:] not in known:
            raise TargetError(with_hint(f"target {spec!r}: x86-64 has no feature {item[1:]!r}",
                                        "LLVM's names, such as +avx2, +fma, +avx512f"))
