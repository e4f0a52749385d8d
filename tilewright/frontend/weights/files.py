"""Files of weights as bytes in memory, and JSON whose names are each there once."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.support.errors import ImportModelError


def mapped(path: Path) -> np.ndarray:
    """The bytes of a file, in place. Raises ImportModelError where it cannot be read; pipes are not waited for."""
    try:
        if path.exists() and not path.is_file():
            raise ImportModelError(f"{path} cannot be read: it is no file",
                                   "pass the path of a file, not of a pipe or folder")
        return np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as why:
        raise ImportModelError(f"{path} cannot be read: {why}", "is the path right, and the file not empty?") from None


def parsed(text: bytes) -> Any:
    """The value of JSON. Raises ValueError, also for an object with two members of one name, or RecursionError."""
    return json.loads(text, object_pairs_hook=_distinct)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"{name!r} is there twice")
        found[name] = value
    return found
