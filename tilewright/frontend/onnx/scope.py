"""Names of a graph within a file: those of the graphs around it are seen too, those of a function's caller are not."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class Poison:
    """Stands for the result of a node that could not be imported; what reads it is not reported again."""


POISON = Poison()


class Unmade:
    """Stands for a result of a node that its function does not make; what reads it is refused."""


UNMADE = Unmade()


class Poisoned(Exception):
    """A node reads what a node that could not be imported would have made."""


@dataclass(eq=False)
class Scope:
    """The tensors by name of one graph, the versions of the operators' domains, the attributes of a function."""
    versions: Mapping[str, int]
    outer: Scope | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    prefix: str = ""
    names: dict[str, Any] = field(default_factory=dict)

    def find(self, name: str) -> tuple[bool, Any]:
        """(whether the name is known, what it stands for)."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.names:
                return True, scope.names[name]
            scope = scope.outer
        return False, None

    def inner(self, prefix: str) -> Scope:
        """The scope of a graph within a node."""
        return Scope(self.versions, self, self.attributes, prefix)
