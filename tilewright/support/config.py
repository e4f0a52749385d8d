"""Every TILEWRIGHT_* knob: name, type, default and what it does, in one table."""
from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tilewright.support.errors import ArgumentError, nearest


@dataclass(frozen=True)
class Knob:
    """One environment variable TILEWRIGHT_<NAME>; `kind` is str, int (0 to `most`) or bool."""
    kind: type
    default: str | int | bool | None
    doc: str
    most: int = 0


KNOBS: dict[str, Knob] = {
    "DUMP": Knob(str, None, "folder that receives the IR after each pass, the LLVM IR and the assembly"),
    "VERIFY": Knob(bool, False, "run the verifier after every pass"),
    "CACHE": Knob(bool, True, "keep compiled objects on disk between processes"),
    "CACHE_DIR": Knob(str, None, "folder of compiled objects; default: <user cache>/tilewright"),
    "CACHE_SIZE_MB": Knob(int, 512, "size at which the oldest compiled objects are removed, in MiB", most=1 << 30),
    "COMPILE_WORKERS": Knob(int, 64, "processes that compile kernels of a graph beside this one, at most", most=1024),
    "PROGRESS": Knob(bool, True, "show on a terminal how many kernels of a graph are compiled"),
    "NUM_THREADS": Knob(int, 0, "threads of a parallel region; 0: as many as this process may use", most=1024),
    "CHECKED": Knob(bool, False, "compare every index of a load or store with its extent while a kernel runs"),
    "PERF": Knob(bool, False, "write the names of compiled functions to /tmp/perf-<process>.map, for Linux perf"),
    "BLAS": Knob(str, None, "path of the library that tvm.contrib.cblas calls"),
    "STRICT_MATH": Knob(bool, False, "turn floating-point contraction (a * b + c as one FMA) off"),
}

_PREFIX = "TILEWRIGHT_"
_DIGITS = 18                                  # of an integer, at most
_TRUTH = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("", "0", "false", "no", "off"), False)}


def get(name: str) -> str | int | bool | None:
    """Value of knob `name` (without the TILEWRIGHT_ prefix), read from the environment at each call.

    Raises ArgumentError when a TILEWRIGHT_ variable of the environment, be it another one, does not parse as the
    type of its knob, is out of its range, or is no knob: nothing might read it, and it would be ignored silently.
    """
    value = KNOBS[name].default
    for variable in os.environ:
        raw = os.environ.get(variable) if variable.startswith(_PREFIX) else None
        if raw is not None:
            read = _parsed(variable[len(_PREFIX):], raw)
            value = read if variable == _PREFIX + name else value
    return value


def _parsed(name: str, raw: str) -> str | int | bool | None:
    """The value of the variable TILEWRIGHT_<name> whose text is raw."""
    knob = KNOBS.get(name)
    if knob is None:
        raise _unknown(_PREFIX + name)
    if knob.kind is bool:
        truth = _TRUTH.get(raw.strip().lower())
        if truth is None:
            raise ArgumentError(f"{_PREFIX}{name}={raw!r} is neither yes nor no ({knob.doc})", "write 1 or 0")
        return truth
    if knob.kind is int:
        text = raw.strip()
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS) or int(text) > knob.most:
            raise ArgumentError(f"{_PREFIX}{name}={raw!r} is not an integer from 0 to {knob.most} ({knob.doc})")
        return int(text)
    return raw or knob.default


def dump(name: str, text: str) -> None:
    """Write text to the file `name` in the TILEWRIGHT_DUMP folder, which is made. Raises ArgumentError."""
    folder = Path(str(get("DUMP")))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    except OSError as error:
        raise ArgumentError(f"TILEWRIGHT_DUMP={str(folder)!r}: {name} cannot be written: {error.strerror}") from None


def _unknown(variable: str) -> ArgumentError:
    known = [_PREFIX + knob for knob in KNOBS]
    return ArgumentError(f"{variable} is no setting of Tilewright",
                         nearest(variable, known) or f"the settings are {', '.join(known)}")
