"""Files of weights as bytes in memory, and JSON whose names are each there once."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.support.errors import ImportModelError
from tilewright.support.files import open_regular, shown

MOST_INDEX = 1 << 26             # bytes of an index of several files
MOST_CONFIG = 1 << 20            # bytes of the description of a model
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, OverflowError, ZeroDivisionError, RecursionError,
          MemoryError)           # what the reading of damaged files raises


def mapped(path: Path) -> np.ndarray:
    """The bytes of a file, in place. Raises ImportModelError where it cannot be read; pipes are not waited for."""
    try:
        with os.fdopen(open_regular(path, str(path))[0], "rb") as file:
            return np.memmap(file, np.uint8, "r")
    except (OSError, ValueError) as why:
        raise ImportModelError(f"{path} cannot be read: {why}", "is the path right, and the file not empty?") from None


def content(path: Path, most: int) -> bytes:
    """All bytes of a file. Raises ImportModelError where it cannot be read, and for more than `most`."""
    try:
        with os.fdopen(open_regular(path, str(path))[0], "rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as why:
        raise ImportModelError(f"{path} cannot be read: {why}") from None
    if len(data) > most:
        raise ImportModelError(f"{path} has more than {most} bytes", "is it the file that its name says?")
    return data


def parsed(text: bytes) -> Any:
    """The value of JSON. Raises ValueError, also for an object with two members of one name, or RecursionError."""
    return json.loads(text, object_pairs_hook=_distinct)


def damage(why: BaseException) -> str:
    """What an exception says of a damaged file."""
    return f"{type(why).__name__}: {shown(why)}"


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} is there twice")
        found[name] = value
    return found
