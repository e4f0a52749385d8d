"""Models: graphs of operators, their gradients, and the executor that runs and trains them.

Modules of `operators` and `optimizers` add their names by `@public`: `vocabulary.py`. All are loaded with the first
name that is asked for: a program that runs a model from a file needs none.
"""
import functools
from typing import Any

from tilewright.support.errors import no_attribute
from tilewright.support.registry import load

_HOMES = {"BlockBuilder": "ir.builder", "Executor": "executor", "Function": "ir.values", "MemoryPlan": "memory",
          "Operator": "operator", "Optimizer": "optimizers", "TensorType": "ir.types", "Update": "optimizers",
          "Value": "value", "gradients": "differentiation", "parameter": "value", "placeholder": "value",
          "size": "ir.types"}


@functools.cache
def _names() -> dict[str, Any]:
    own = {name: getattr(load(f"{__name__}.{home}"), name) for name, home in _HOMES.items()}
    load(f"{__name__}.operators")
    return {**own, **load(f"{__name__}.vocabulary").NAMES}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(_names())
    if name.startswith("__") or name not in _names():
        raise no_attribute("tilewright.graph", name, () if name.startswith("__") else __dir__())
    value = globals()[name] = _names()[name]
    return value


def __dir__() -> list[str]:
    return sorted(_names())
