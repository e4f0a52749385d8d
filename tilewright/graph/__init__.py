"""Models: graphs of operators, their gradients, and the executor that runs and trains them.

Modules of `operators` and `optimizers` add their names by `@public`: `vocabulary.py`.
"""
from typing import Any

from tilewright.graph.executor import Executor
from tilewright.graph.gradients import gradients
from tilewright.graph.ir.builder import BlockBuilder
from tilewright.graph.ir.types import TensorType, size
from tilewright.graph.ir.values import Function
from tilewright.graph.memory import MemoryPlan
from tilewright.graph.operator import Operator
from tilewright.graph.optimizers import Optimizer, Update
from tilewright.graph.value import Value, parameter, placeholder
from tilewright.graph.vocabulary import NAMES
from tilewright.support.errors import no_attribute

__all__ = ["BlockBuilder", "Executor", "Function", "MemoryPlan", "Operator", "Optimizer", "TensorType", "Update",
           "Value", "gradients", "parameter", "placeholder", "size"]
__all__ += list(NAMES)


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise no_attribute("tilewright.graph", name, __dir__())
    return NAMES[name]


def __dir__() -> list[str]:
    return sorted({*__all__, *NAMES})
