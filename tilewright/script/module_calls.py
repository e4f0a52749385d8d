"""Functions of a module by the name of its class: `M.f(A.data)` in a function of class M."""
from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright.support.errors import IRError
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import convert
from tilewright.tir.expr import Call, Expr, StringImm


@dataclass(frozen=True)
class ModuleFunction:
    """A function of the module that is being written; called, it is a call of the kernel."""
    name: str
    dtype: str

    def call(self, args: list[Any], pointer_of: Callable[[Any], Any]) -> Expr:
        """The call; pointer_of gives what a pointer leads to as the argument of a call."""
        return Call("call_function", (StringImm(self.name), *(convert(pointer_of(a)) for a in args)), self.dtype)


class ModuleNames:
    """The class of a module, while its functions are written. `results`: the annotation of each function's result."""

    def __init__(self, name: str, results: Callable[[], Mapping[str, ast.expr | None]],
                 dtype_of: Callable[[ast.expr], str]) -> None:
        self._name, self._results, self._dtype_of = name, results, dtype_of

    def __getattr__(self, name: str) -> ModuleFunction:
        if name.startswith("_"):
            raise AttributeError(name)
        known = self._results()
        if name not in known:
            raise IRError(f"the module {self._name} has no function {name}", f"it has {', '.join(known)}")
        stated = known[name]
        return ModuleFunction(name, "int32" if stated is None else self._dtype_of(stated))


def pointer(x: Any, buffers: Mapping[Any, Buffer]) -> Any:
    """x as an argument: a buffer, or the address of one in `buffers`, as access_ptr; anything else as it is."""
    found = x if isinstance(x, Buffer) else buffers.get(x) if isinstance(x, Expr) else None
    return x if found is None else found.access_ptr("rw")


def class_of(func: types.FunctionType) -> str:
    """The name of the class in whose body func is defined; "" where it is in none."""
    parts = func.__qualname__.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else ""


def methods_beside(func: types.FunctionType) -> dict[str, ast.expr | None]:
    """The functions in the class in whose body func is defined, with the annotations of their results."""
    lines, _ = inspect.findsource(func)
    line, name = func.__code__.co_firstlineno, class_of(func)
    for node in ast.walk(ast.parse("".join(lines))):
        if isinstance(node, ast.ClassDef) and node.name == name and node.lineno <= line <= (node.end_lineno or line):
            return methods(node)
    return {}


def methods(node: ast.ClassDef) -> dict[str, ast.expr | None]:
    """The functions of a class with the annotations of their results."""
    return {n.name: n.returns for n in node.body if isinstance(n, ast.FunctionDef)}
