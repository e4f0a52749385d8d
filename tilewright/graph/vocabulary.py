"""The names that modules of `operators` and `optimizers` add to `tilewright.graph` and to its values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tilewright.graph.value import Value
from tilewright.support.errors import GraphError

NAMES: dict[str, Any] = {}
_Named = TypeVar("_Named", bound=Callable[..., Any])


def public(thing: _Named) -> _Named:
    """Decorator: the function or class is `tilewright.graph.NAME`. Raises GraphError for a name of another module."""
    name, other = thing.__name__, NAMES.get(thing.__name__)
    if other is not None and other.__module__ != thing.__module__:
        raise GraphError(f"graph.{name} is a name of {other.__module__} already", "give the new one another name")
    NAMES[name] = thing
    return thing


def method(*names: str) -> Callable[[_Named], _Named]:
    """Decorator: the function is these methods of Value, which stands on a lower floor than the operators."""
    def keep(fn: _Named) -> _Named:
        for name in names:
            setattr(Value, name, fn)
        return fn
    return keep
