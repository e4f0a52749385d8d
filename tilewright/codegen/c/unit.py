"""A file of C under construction: vector types, helper functions, functions, constants."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tilewright.codegen.c.types import vector_of
from tilewright.runtime.c_interface import LIBRARY, is_reserved
from tilewright.support.errors import CodegenError, with_hint
from tilewright.tir.stmt import PrimFunc

_TAKEN = {"memcpy", "snprintf", "times", "record_fault", "last_error", "threads", "NULL", "omp_get_max_threads",
          "flushed"}
# helpers, vector types and what begins like the names of the package
_MADE = re.compile(r"(load|store|splat|ramp|gather|scatter|select|reverse|any|min|max|abs|popcount|clz|checked_index|"
                   r"slot|at|each|table|dot\d|dpbf16ps|interleave|c)_|"
                   r"[fiu]\d+x\d+$|tw_|tilewright_|TILEWRIGHT_|\w+_of_\w+_bits$")
_HEADER = """\
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("no-mmx")        /* GCC 12 moves halves of vectors through MMX registers and does not free them */
#endif
"""


class Unit:
    """The parts of a file, each once, in the order in which they are first asked for."""

    def __init__(self, fma: bool = False, own: Mapping[str, str] | None = None) -> None:
        """fma: whether the CPU has fused multiply-adds. own: functions of other files that the file defines itself."""
        self.fma, self._own = fma, own or {}
        self.functions: dict[str, PrimFunc] = {}             # the regions, which calls define
        self._types: dict[str, None] = {}
        self._declarations: dict[str, str] = {}
        self._helpers: dict[str, str] = {}
        self._functions: list[str] = []
        self._strings: dict[str, str] = {}

    def legal(self, name: str) -> str:
        """name, changed where C, its library or a file that is made here has it already."""
        taken = is_reserved(name) or name in LIBRARY or name in _TAKEN or _MADE.match(name) or "__" in name
        return f"x_{name.replace('__', '_')}" if taken else name

    def type(self, name: str) -> str:
        """A type, whose typedef stands in the file when it is a vector. Raises CodegenError where C has none."""
        vector = vector_of(name)
        if vector is not None:
            if vector[1] & (vector[1] - 1):
                raise CodegenError(with_hint(f"a vector of {vector[1]} lanes has no type in C", "use a power of two"))
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
