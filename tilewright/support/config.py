"""Every TILEWRIGHT_* knob: name, type, default and what it does, in one table."""
from __future__ import annotations

import os
from dataclasses import dataclass

from tilewright.support.errors import ArgumentError


@dataclass(frozen=True)
class Knob:
    """One environment variable TILEWRIGHT_<NAME>; `kind` is str, int or bool."""
    kind: type
    default: str | int | bool | None
    doc: str


KNOBS: dict[str, Knob] = {
    "DUMP": Knob(str, None, "folder that receives the IR after each pass, the LLVM IR and the assembly"),
    "VERIFY": Knob(bool, False, "run the verifier after every pass"),
    "CACHE": Knob(bool, True, "keep compiled objects on disk between processes"),
    "CACHE_DIR": Knob(str, None, "folder of compiled objects; default: <user cache>/tilewright"),
    "CACHE_SIZE_MB": Knob(int, 512, "size at which the oldest compiled objects are removed, in MiB"),
    "NUM_THREADS": Knob(int, 0, "threads of a parallel region; 0: as many as this process may use"),
    "STRICT_MATH": Knob(bool, False, "turn floating-point contraction (a * b + c as one FMA) off"),
}

_FALSE = {"", "0", "false", "no", "off"}


def get(name: str) -> str | int | bool | None:
    """Value of knob `name` (without the TILEWRIGHT_ prefix), read from the environment at each call.

    Raises ArgumentError when the variable does not parse as the knob's type.
    """
    knob = KNOBS[name]
    raw = os.environ.get(f"TILEWRIGHT_{name}")
    if raw is None:
        return knob.default
    if knob.kind is bool:
        return raw.strip().lower() not in _FALSE
    if knob.kind is int:
        try:
            return int(raw)
        except ValueError:
            raise ArgumentError(f"TILEWRIGHT_{name}={raw!r} is not an integer ({knob.doc})") from None
    return raw or knob.default
