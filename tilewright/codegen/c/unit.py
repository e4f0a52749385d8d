"""A file of C under construction: vector types, helper functions, functions, constants."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.codegen.c.types import vector_of
from tilewright.runtime.c_interface import is_reserved

_HEADER = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
"""


class Unit:
    """The parts of a file, each once, in the order in which they are first asked for."""

    def __init__(self, fma: bool = False, own: Mapping[str, str] | None = None) -> None:
        """fma: whether the CPU has fused multiply-adds. own: functions of other files that the file defines itself."""
        self.fma, self._own = fma, own or {}
        self._types: dict[str, None] = {}
        self._declarations: dict[str, str] = {}
        self._helpers: dict[str, str] = {}
        self._functions: list[str] = []
        self._strings: dict[str, str] = {}

    def legal(self, name: str) -> str:
        """name, changed where C has it already."""
        return f"{name}_" if is_reserved(name) else name

    def type(self, name: str) -> str:
        """A type, whose typedef stands in the file when it is a vector."""
        if vector_of(name) is not None:
            self._types[name] = None
        return name

    def declare(self, name: str, text: str) -> str:
        """A function of another file. Returns its name."""
        self._declarations.setdefault(name, self._own.get(name, text))
        return name

    def declared(self, name: str) -> str | None:
        """The declaration of a function of another file."""
        return self._declarations.get(name)

    def data(self, name: str, text: str) -> str:
        """A static object, by its definition."""
        self._strings.setdefault(name, text)
        return name

    def has_data(self, name: str) -> bool:
        return name in self._strings

    def helper(self, name: str, make: Callable[[], str]) -> str:
        """A static inline function that `make` gives the text of at the first request. Returns its name."""
        if name not in self._helpers:
            text = make()                        # what it uses itself comes first
            self._helpers[name] = text
        return name

    def define(self, text: str) -> None:
        """Add a function."""
        self._functions.append(text)

    def source(self) -> str:
        """The file."""
        types = [f"typedef {element} {name} __attribute__((vector_size({lanes} * sizeof({element}))));"
                 for name in self._types for element, lanes in [vector_of(name) or ("", 0)]]
        groups = ("\n".join(types), "\n".join(self._declarations.values()), "\n".join(self._strings.values()),
                  *self._helpers.values(), *self._functions)
        return "\n".join([_HEADER, *(f"{g}\n" for g in groups if g)])


def c_string(value: str) -> str:
    """A literal of the zero-terminated UTF-8 text; lone surrogates, which it has no form for, as `\\ud800`."""
    data = value.encode(errors="backslashreplace")
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in (34, 92, 63) else f"\\{b:03o}" for b in data) + '"'
