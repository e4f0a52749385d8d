"""`from tilewright.script import relax as R`: the names of graph functions, which the floor of graphs registers."""
from __future__ import annotations

from typing import Any

from tilewright.support.errors import no_attribute
from tilewright.support.registry import hook


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    names: dict[str, Any] = hook("script.relax")()
    if name not in names:
        raise no_attribute("R", name, names)
    return names[name]


def __dir__() -> list[str]:
    return sorted(hook("script.relax")())
