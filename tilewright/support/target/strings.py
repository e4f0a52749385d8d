"""Target strings: the kind that they name, and its attributes.

Names of triples, CPUs and features are held against tables. LLVM is asked only where this host decides: for a name that
no table has, and for `-mcpu=native` with a triple.
"""
from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from tilewright.support.errors import TargetError
from tilewright.support.registry import hook
from tilewright.support.target.cpus import X86_CPUS, X86_FEATURES, arch_of, host_cpu, is_architecture, platform_of
from tilewright.support.target.kinds import KINDS, TAGS, Attribute


def parse(spec: str) -> tuple[str, dict[str, str | int]]:
    """(kind, attributes) of a target string: those that it gives, and the defaults of the kind."""
    kind, flags = _flags(spec)
    table = KINDS[kind].attributes
    if "mcpu" in table:
        _check_triple(spec, flags)
        _check_cpu(spec, flags)
        _check_features(spec, flags)
    return kind, {**{a.name: a.default for a in table.values() if a.default is not None},
                  **{name: _value(spec, table.get(name), name, text) for name, text in flags.items()}}


def text_of(fields: Mapping[str, Any]) -> str:
    """The target string of TVM's dictionary form."""
    if not isinstance(fields.get("kind"), str):
        raise TargetError(f"{dict(fields)!r} is not a target: it names no kind",
                          'write a string such as "llvm -mcpu=znver4"')
    flags = {name: ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
             for name, value in fields.items() if name != "kind"}
    return " ".join([fields["kind"], *(shlex.quote(f"-{name}={value}") for name, value in flags.items())])


def _flags(text: str) -> tuple[str, dict[str, str]]:
    """(kind, flags) of a target string."""
    try:
        words = shlex.split(text)
    except ValueError as why:
        raise TargetError(f"target {text!r}: {why}") from None
    if len(words) == 1 and words[0] in TAGS:
        kind, found = _flags(TAGS[words[0]])
        return kind, {**found, "tag": words[0]}
    if words and words[0] not in KINDS:
        hook("codegen.load")(words[0])                 # it may be the name of a back end
    if not words or words[0] not in KINDS:
        coded = hook("codegen.kinds")()
        others = ", ".join(kind for kind in KINDS if kind not in coded)
        raise TargetError(f"target {text!r}: unknown kind {words[0] if words else ''!r}",
                          f"a target string starts with {' or '.join(coded)}; for {others} there is no code, but their "
                          "loops can be looked at")
    kind, *rest = words
    table = KINDS[kind].attributes
    flags: dict[str, str] = {}
    while rest:
        word = rest.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or (name not in table and KINDS[kind].strict):
            raise TargetError(f"target {text!r}: {word!r} is not a flag",
                              f"the flags of {kind} are " + ", ".join(f"-{k}" for k in table))
        if not equals:
            # "-mattr -avx2": a feature may start with a dash, a value of any other flag may not
            if not rest or (rest[0].startswith("-") and name != "mattr"):
                meant = table[name].doc if name in table else "of any kind"
                raise TargetError(f"target {text!r}: -{name} needs a value ({meant})")
            value = rest.pop(0)
        name = "mtriple" if name == "target" else name
        if flags.setdefault(name, value) != value:
            raise TargetError(f"target {text!r}: -{name} is given twice")
    return kind, flags


def _value(spec: str, attribute: Attribute | None, name: str, text: str) -> str | int:
    """The value of a flag. One that its kind does not know is a number or a truth value where it is written as one."""
    is_number = text.isascii() and text.isdigit()
    if attribute is None:
        return {"True": True, "False": False}.get(text, int(text) if is_number else text)
    if attribute.type is str:
        return text
    if not is_number or not attribute.least <= int(text) <= attribute.greatest:
        raise TargetError(f"target {spec!r}: -{name}={text} is not an integer from {attribute.least} to "
                          f"{attribute.greatest}")
    return int(text)


def _check_triple(spec: str, flags: Mapping[str, str]) -> None:
    triple = flags.get("mtriple")
    if triple is not None and not is_architecture(arch_of(triple)):
        raise TargetError(f"target {spec!r}: -mtriple={triple}: No available targets are compatible with triple "
                          f'"{triple}"')


def _check_cpu(spec: str, flags: Mapping[str, str]) -> None:
    """LLVM itself only prints a warning for a CPU that it does not know, and generates code for any."""
    cpu, triple = flags.get("mcpu", "generic"), flags.get("mtriple")
    if cpu == "native":
        if triple is not None and platform_of(triple) != platform_of(host_cpu()[2]):
            raise TargetError(f"target {spec!r}: -mcpu=native is this machine, and -mtriple={triple} is another one")
    elif cpu not in X86_CPUS and _is_x86(triple) and cpu != host_cpu()[0]:
        raise TargetError(f"target {spec!r}: LLVM knows no x86-64 CPU {cpu!r}",
                          "e.g. x86-64-v3, x86-64-v4, haswell, skylake-avx512, znver4, znver5")


def _check_features(spec: str, flags: Mapping[str, str]) -> None:
    for item in flags["mattr"].split(",") if "mattr" in flags else ():
        if item[:1] not in ("+", "-") or len(item) < 2:
            raise TargetError(f"target {spec!r}: -mattr item {item!r}", "write +feature or -feature")
        if item[1:] not in X86_FEATURES and _is_x86(flags.get("mtriple")) and not _host_knows(item[1:]):
            raise TargetError(f"target {spec!r}: x86-64 has no feature {item[1:]!r}",
                              "LLVM's names, such as +avx2, +fma, +avx512f")


def _is_x86(triple: str | None) -> bool:
    return arch_of(triple or host_cpu()[2]) in ("x86_64", "amd64")


def _host_knows(feature: str) -> bool:
    """True for a feature by which this LLVM describes this host, present or not: newer ones have more."""
    return not {f"+{feature}", f"-{feature}"}.isdisjoint(host_cpu()[1].split(","))
