"""Models of other systems as functions of the graph: a folder for each source, a table with a row for each operator."""
from typing import Any

from tilewright.support.errors import no_attribute
from tilewright.support.registry import load

__all__ = ["entry", "keras", "llama", "onnx", "torch", "weights"]        # loaded by their first use


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise no_attribute("tilewright.frontend", name, __all__)
    return load(f"tilewright.frontend.{name}")


def __dir__() -> list[str]:
    return list(__all__)
