"""What the parser of graph functions asks of a dialect: what the names of R mean, and what a function is made of."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from tilewright.script.members import Members
from tilewright.support.errors import ScriptError
from tilewright.tir.functions import BaseFunc


class Names:
    """The names below one: R.nn."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self.names = names

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self.names:
            raise AttributeError(f"there is no {name}; there are {', '.join(self.names)}")
        return self.names[name]


class Form:
    """A name of R that shapes statements."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise ScriptError(f"R.{self.name} was called outside a script",
                          "it stands in the body of a function under @R.function")


FORMS = {name: Form(name) for name in ("dataflow", "output", "func_attr", "update")}


class Annotation:
    """A name of R that says what is known of a value; texts in its shapes are expressions of sizes."""

    def __init__(self, name: str, make: Callable[..., Any]) -> None:
        self.name, self.make = name, make

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.make(*args, **kwargs)


class Dialect(Protocol):
    """Makes the nodes of one function."""

    @property
    def names(self) -> Mapping[str, Any]: ...
    def size(self, name: str) -> Any: ...
    def parameter(self, name: str, annotation: Any) -> Any: ...
    def reserve(self, names: set[str]) -> None: ...
    def bind(self, name: str, value: Any, annotation: Any) -> Any: ...
    def dataflow(self, outputs: Sequence[str]) -> AbstractContextManager[Any]: ...
    def attrs(self, given: Mapping[str, Any]) -> None: ...
    def constant(self, array: np.ndarray) -> Any: ...
    def update(self, target: Any, value: Any) -> None: ...
    def member(self, name: str, module: Members) -> Any: ...
    def call(self, callee: Any, args: Sequence[Any]) -> Any: ...
    def item(self, value: Any, index: int) -> Any: ...
    def choice(self, name: str, condition: Any, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any: ...
    def finish(self, name: str, result: Any, annotation: Any, private: bool) -> BaseFunc: ...
