"""Named hooks by which a higher floor gives a lower one something to call (printers, façades)."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

_HOOKS: dict[str, Callable[..., Any]] = {}


def register_hook(name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: make the function available under `name` to lower floors."""
    def keep(fn: Callable[..., Any]) -> Callable[..., Any]:
        _HOOKS[name] = fn
        return fn
    return keep


def hook(name: str) -> Callable[..., Any]:
    """The function registered under `name`."""
    assert name in _HOOKS, f"hook {name!r} is not registered: its module was never imported"
    return _HOOKS[name]
