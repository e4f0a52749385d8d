"""Names of compiled functions for Linux `perf`: the map file that it reads for code without an object file.

One line per function, `START SIZE name` in hexadecimal (Linux: tools/perf/Documentation/jit-interface.txt).
"""
from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tilewright.runtime import elf
from tilewright.support.errors import ArgumentError

# the folder is everybody's: no link that somebody left there is followed, no pipe waited for
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def map_file() -> Path:
    """Where `perf` looks for the names of this process."""
    return Path(f"/tmp/perf-{os.getpid()}.map")


def write_names(objects: Sequence[bytes], address: Callable[[str], int]) -> None:
    """Append the functions of loaded objects to the map file; address: of an exported symbol.

    Raises ArgumentError where the file cannot be written.
    """
    lines = [f"{start:x} {size:x} {name}\n" for data in objects for name, start, size in _placed(data, address)]
    try:
        with open(os.open(map_file(), _APPEND, 0o644), "a") as file:
            file.writelines(lines)
    except OSError as error:
        raise ArgumentError(f"TILEWRIGHT_PERF=1: {map_file()} cannot be written: {error.strerror}") from None


def _placed(data: bytes, address: Callable[[str], int]) -> Iterator[tuple[str, int, int]]:
    """(name, address, bytes) of each function: a local one lies where its section does, which an exported one tells."""
    found = elf.functions(data)
    base: dict[int, int] = {}
    for f in found:
        if f.exported and f.section not in base:
            base[f.section] = address(f.name) - f.offset
    for f in found:
        if f.section in base:
            yield f.name, base[f.section] + f.offset, f.size
