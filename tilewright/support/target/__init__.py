"""Targets: what machine code is made for, parsed from strings such as `llvm -mcpu=znver4 -num-cores=2`.

`strings` reads one, by the tables of `kinds` and `cpus`.
"""
from __future__ import annotations

import functools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.support.errors import TargetError, described
from tilewright.support.registry import hook
from tilewright.support.target.cpus import arch_of, feature_set, host_cpu, platform_of, usable_cores
from tilewright.support.target.kinds import ATTRIBUTES, KINDS
from tilewright.support.target.strings import parse, text_of

_NOT_OF_CODE = ("num-cores", "host", "tag", "keys")


class TargetKind(str):
    """The kind of a target: "llvm", "cuda", ...; `kind.name` is the same string."""

    @property
    def name(self) -> str:
        return str(self)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Target:
    """What code is generated for: a kind, and what its string says of the attributes of the kind (`kinds.py`).

    Made from a string (see `target`); `str(t)` is that string, so `Target(str(t)) == t`. What this host is, where the
    string means it, is found out when it is asked for. As a context manager it is the target of everything inside
    that names none.
    """
    kind: TargetKind
    attributes: Mapping[str, str | int]      # by name: what is given, and the defaults of the kind
    text: str
    host: Target | None

    _stack = threading.local()

    def __init__(self, target: str | Mapping[str, Any] | Target | None = None, host: object = None) -> None:
        """`host` is a description: host code is always for this machine."""
        vars(self).update(vars(_target(target)))
        if host is not None:
            vars(self)["host"] = _target(host)  # type: ignore[arg-type]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Target({self.text!r})"

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Target) and self.code_record == other.code_record
                and self.num_cores == other.num_cores)

    def __hash__(self) -> int:
        return hash(self.code_record)

    def __reduce__(self) -> tuple[Any, ...]:
        return Target, (self.text, self.host)

    @functools.cached_property
    def code_record(self) -> tuple[object, ...]:
        """All that the code of a scheduled function depends on, the kind first, with this host where it is meant.

        Out stay `num-cores`, which schedules depend on, `host` (host code is always for this machine) and `tag`.
        """
        said = {name: value for name, value in self.attrs.items() if name not in _NOT_OF_CODE}
        return str(self.kind), self.keys, *sorted(said.items())

    @functools.cached_property
    def mcpu(self) -> str:
        """The CPU, by LLVM's name."""
        given = self.attributes.get("mcpu", "generic" if "mtriple" in self.attributes else "native")
        return host_cpu()[0] if given == "native" else str(given)

    @functools.cached_property
    def features(self) -> str:
        """What is said of features beyond the name of the CPU: of this host all, as `+a,-b`."""
        cpu, features, triple = host_cpu()
        of_host = features if self.mcpu == cpu and arch_of(self.triple) == arch_of(triple) else ""
        return ",".join(filter(None, (of_host, str(self.attributes.get("mattr", "")))))

    @functools.cached_property
    def triple(self) -> str:
        """The machine and its system, as LLVM writes them."""
        return str(self.attributes.get("mtriple") or host_cpu()[2])

    @property
    def num_cores(self) -> int:
        """The cores that code is scheduled for."""
        return int(self.attributes.get("num-cores") or usable_cores())

    @property
    def opt_level(self) -> int:
        """0 to 3."""
        return int(self.attributes["opt-level"])

    @property
    def keys(self) -> tuple[str, ...]:
        """The words by which schedule rules know the target."""
        return tuple(filter(None, str(self.attributes.get("keys", "")).split(","))) or (KINDS[self.kind].word,)

    @property
    def libs(self) -> list[str]:
        """The libraries named in the string."""
        return list(filter(None, str(self.attributes.get("libs", "")).split(",")))

    @property
    def is_host(self) -> bool:
        """True when code for this target runs in this process."""
        return self.kind in ("llvm", "c") and platform_of(self.triple) == platform_of(host_cpu()[2])

    @property
    def attrs(self) -> dict[str, str | int]:
        """The attributes by name, as TVM has them; of a CPU what the string leaves open too."""
        if "mcpu" not in KINDS[self.kind].attributes:
            return dict(self.attributes)
        return {**self.attributes, "mcpu": self.mcpu, "mattr": self.features, "mtriple": self.triple,
                "num-cores": self.num_cores}

    def __getattr__(self, name: str) -> Any:
        """An attribute: `target.arch`, `target.max_num_threads`; where it is not given "", or None for a number."""
        if not name.startswith("_"):
            for attribute in (name, name.replace("_", "-")):
                if attribute in self.attrs:
                    return self.attrs[attribute]
                if attribute in ATTRIBUTES:
                    return "" if ATTRIBUTES[attribute].type is str else None
        raise AttributeError(f"a target has no {name!r}")

    def with_host(self, host: str | Mapping[str, Any] | Target) -> Target:
        """This target with another description of its host."""
        return Target(self, host)

    def export(self) -> dict[str, Any]:
        """This target as the dict that makes it."""
        return {"kind": str(self.kind), **self.attributes, **({"host": str(self.host)} if self.host else {})}

    @staticmethod
    def list_kinds() -> list[str]:
        """The kinds that strings may name: those of back ends, and those that are lowered to be looked at."""
        return [*dict.fromkeys((*hook("codegen.kinds")(), *KINDS))]

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
            raise TargetError(f"from_device: {described(device)} is no device of this machine", "tvm.cpu(0)")
        return _parse("llvm")

    @functools.cached_property
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
            raise TargetError("there is no target in force", 'write `with Target("llvm"):` around it')
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
        spec = text_of(spec)
    if not isinstance(spec, str):
        raise TargetError(f"{spec!r} is not a target", 'write a string such as "llvm -mcpu=znver4"')
    return _parse(spec)


_target = target


@functools.lru_cache(maxsize=256)
def _parse(spec: str) -> Target:
    kind, attributes = parse(spec)
    host = attributes.get("host")
    made = Target.__new__(Target)
    vars(made).update(kind=TargetKind(kind), attributes=attributes, text=spec, host=host and _parse(str(host)))
    return made
