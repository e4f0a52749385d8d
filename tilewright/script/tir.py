"""`from tilewright.script import tir as T`: the names of scripts."""
from __future__ import annotations

from typing import Any

from tilewright.script.decorators import macro, prim_func
from tilewright.script.language import NAMES, lookup

__all__ = ["macro", "prim_func"]


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = globals()[name] = lookup(name)
    return value


def __dir__() -> list[str]:
    return sorted({*NAMES, *__all__})
