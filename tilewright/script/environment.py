"""The names that a script sees: its own, in nested scopes, then those of the Python around it."""
from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

LET, UNBOUND, OTHER = "let", "unbound", "other"


def captured(func: types.FunctionType) -> dict[str, Any]:
    """The globals of a function, and what its closure holds."""
    names = dict(func.__globals__)
    for name, cell in zip(func.__code__.co_freevars, func.__closure__ or ()):
        try:
            names[name] = cell.cell_contents
        except ValueError:                              # a name that the outer function binds later
            names.pop(name, None)
    return names


class Environment:
    """Names of one function while it is parsed. A name belongs to the innermost scope that defines it.

    `runs_python`: functions of the Python around the script may be called while it is parsed. They may not for a text.
    """

    def __init__(self, outer: Mapping[str, Any], runs_python: bool = False) -> None:
        self.outer, self.runs_python = outer, runs_python
        self.scopes: list[dict[str, tuple[Any, str]]] = [{}]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names defined inside are gone afterwards."""
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()

    def define(self, name: str, value: Any, kind: str = OTHER) -> None:
        self.scopes[-1][name] = value, kind

    def is_outer_variable(self, name: str) -> bool:
        """True when name is a variable that was bound outside the innermost scope, and not again inside."""
        if name in self.scopes[-1]:
            return False
        return next((scope[name][1] == LET for scope in reversed(self.scopes) if name in scope), False)

    def is_unbound(self, name: str) -> bool:
        """True for a variable that was made without a value."""
        return next((scope[name][1] == UNBOUND for scope in reversed(self.scopes) if name in scope), False)

    def find(self, name: str) -> Any:
        """The value of name. Raises KeyError."""
        for scope in reversed(self.scopes):
            found = scope.get(name)
            if found is not None:
                return found[0]
        return self.outer[name]

    def around(self) -> Environment:
        """A new environment whose surroundings are what is visible here."""
        own = {name: value for scope in self.scopes for name, (value, _) in scope.items()}
        return Environment({**self.outer, **own}, self.runs_python)

    def values(self) -> Iterator[Any]:
        """What the names of the script itself stand for; of a name that is defined twice, both."""
        for scope in self.scopes:
            yield from (value for value, _ in scope.values())

    def has(self, name: str) -> bool:
        """True for a name that is defined."""
        return name in self.outer or any(name in scope for scope in self.scopes)

    def known(self) -> list[str]:
        """All names, those of the script first."""
        own = [name for scope in reversed(self.scopes) for name in scope]
        return [*own, *(name for name in self.outer if not name.startswith("_"))]
