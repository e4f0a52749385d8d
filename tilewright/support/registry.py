"""Named hooks by which a higher floor, or file, gives a lower one something to call (operators, printers, façades)."""
from __future__ import annotations

import importlib
import pkgutil
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tilewright.support.locks import hold_over_fork

_Function = TypeVar("_Function", bound=Callable[..., Any])
_HOOKS: dict[str, Callable[..., Any]] = {}
# Where a hook is registered, for a program that has imported the lower floor only: `from tilewright import te`.
_HOMES = {"runtime.host_cpu": "tilewright.runtime.llvm", "codegen.load": "tilewright.codegen.registry",
          "codegen.kinds": "tilewright.codegen.registry",
          "te.create_schedule": "tilewright.schedule.stages.facade", "tir.print": "tilewright.tir.printer",
          "tir.show": "tilewright.tir.printer.text", "tir.script": "tilewright.tir.printer.text",
          "tir.html": "tilewright.tir.printer.text", "tir.store": "tilewright.tir.stmt",
          "graph.lines": "tilewright.graph.ir.printer", "script.relax": "tilewright.graph.ir.script",
          "tir.link": "tilewright.lowering.link_calls", "tir.specialize": "tilewright.tir.specialize"}
_loading = threading.RLock()
hold_over_fork(_loading)         # else a child would wait for ever for the modules that another thread was loading


def load(name: str) -> Any:
    """The module of that name, imported with its first use."""
    with _loading:
        return importlib.import_module(name)


def load_folder(name: str) -> None:
    """Import every module of a package, by which each registers what it has. The package's `__init__` calls it."""
    for module in pkgutil.iter_modules(load(name).__path__, f"{name}."):
        load(module.name)


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
        load(_HOMES[name])
    assert name in _HOOKS, f"hook {name!r} is registered nowhere"
    return _HOOKS[name]
