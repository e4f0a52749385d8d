"""Named hooks by which a higher floor, or file, gives a lower one something to call (operators, printers, façades)."""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_HOOKS: dict[str, Callable[..., Any]] = {}
# Where a hook is registered, for a program that has imported the lower floor only: `from tilewright import te`.
_HOMES = {"te.create_schedule": "tilewright.schedule.stages.facade", "tir.print": "tilewright.tir.printer",
          "tir.show": "tilewright.tir.printer.views", "tir.script": "tilewright.tir.printer.views",
          "tir.html": "tilewright.tir.printer.views", "tir.store": "tilewright.tir.stmt",
          "tir.link": "tilewright.lowering.link_calls", "tir.specialize": "tilewright.tir.specialize"}


def register_hook(name: str) -> Callable[[_Function], _Function]:
    """Decorator: make the function available under `name` to lower floors."""
    def keep(fn: _Function) -> _Function:
        _HOOKS[name] = fn
        return fn
    return keep


def hook(name: str) -> Callable[..., Any]:
    """The function registered under `name`; the module that registers it is imported if need be."""
    found = _HOOKS.get(name)                       # operators of expressions come through here: one look-up
    if found is not None:
        return found
    if name in _HOMES:
        importlib.import_module(_HOMES[name])
    assert name in _HOOKS, f"hook {name!r} is registered nowhere"
    return _HOOKS[name]
