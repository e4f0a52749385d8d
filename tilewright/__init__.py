"""Tilewright: a deep-learning compiler in Python. Tensor expressions and schedules to native code, and training."""
from __future__ import annotations

from typing import Any

from tilewright.support import registry

__version__ = "0.1.0"

# name -> where it lives ("": the package of that name). Loaded at first use, so that a program pays for what it uses.
_NAMES = {
    **dict.fromkeys(("build", "lower"), "tilewright.driver"),
    **dict.fromkeys(("compile", "profile"), "tilewright.frontend.entry"),
    "load": "tilewright.graph.plan.loaded",
    "bisect": "tilewright.graph.bisect",
    "explain": "tilewright.driver.explanation",
    "pass_options": "tilewright.lowering",
    **dict.fromkeys(("Target", "target"), "tilewright.support.target"),
    **dict.fromkeys(("Schedule",), "tilewright.schedule"),
    **dict.fromkeys(("PrimFunc", "IRModule"), "tilewright.tir"),
    **dict.fromkeys(("Device", "Module", "Tensor", "cpu", "device", "load_module", "register_func", "get_global_func",
                     "set_num_threads", "get_num_threads", "nd"), "tilewright.runtime"),
    **dict.fromkeys(("TilewrightError",), "tilewright.support.errors"),
    **dict.fromkeys(("arith", "cli", "codegen", "compat", "driver", "frontend", "graph", "lowering", "records", "rules",
                     "script", "runtime", "schedule", "support", "te", "tir", "topi"), ""),
}
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    home = _NAMES.get(name)
    if home is None:
        raise registry.load("tilewright.support.errors").no_attribute("tilewright", name, __all__)
    value = globals()[name] = getattr(registry.load(home), name) if home else registry.load(f"tilewright.{name}")
    return value


def __dir__() -> list[str]:
    return list(__all__)
