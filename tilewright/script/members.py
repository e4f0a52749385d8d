"""Functions of other kinds in scripts: what reads them, and when, if they stand in the class of a module."""
from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.script.source import Source
from tilewright.support.errors import ScriptError
from tilewright.tir.functions import BaseFunc


class Member:
    """A function in a class that is not read yet: `finish` reads it, when the others can be found."""

    def __init__(self, finish: Callable[[Members], BaseFunc]) -> None:
        self.finish = finish


class Members:
    """The functions of a class, those that are not read yet when they are asked for."""

    def __init__(self, name: str, given: Mapping[str, BaseFunc | Member]) -> None:
        self.name, self.given = name, given
        self.found: dict[str, BaseFunc] = {n: f for n, f in given.items() if isinstance(f, BaseFunc)}
        self._open: list[str] = []

    def find(self, name: str) -> BaseFunc:
        """The function of that name. Raises ScriptError where there is none, or where it is being read."""
        if name not in self.found:
            member = self.given.get(name)
            if not isinstance(member, Member):
                where = f"the module {self.name} has no" if self.name else "there is no module that has a"
                raise ScriptError(f"{where} function {name}", f"it has {', '.join(self.given)}" if self.given else
                                  "put both into a class under @I.ir_module")
            if name in self._open:
                raise ScriptError(f"the function {name} calls itself")
            self._open.append(name)
            self.found[name] = member.finish(self)
            self._open.pop()
        return self.found[name]

    def all(self) -> dict[str, BaseFunc]:
        """All of them, in their order."""
        return {name: self.find(name) for name in self.given}


@dataclass(frozen=True)
class Place:
    """Where a function stands: its source, the names around it, its module's class and functions, which find reads.

    runs_python: functions of the Python around it may be called.
    """
    source: Source
    names: Mapping[str, Any]
    module: Members
    runs_python: bool


class Decorator(ABC):
    """What stands above a function of another kind, `R.function`."""

    @abstractmethod
    def read(self, node: ast.FunctionDef, place: Place, options: Mapping[str, Any]) -> BaseFunc:
        """The function that node describes. Raises ScriptError."""
