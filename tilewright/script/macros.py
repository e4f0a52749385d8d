"""Macros: statements that are written once and stand wherever the macro is called."""
from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tilewright.script.environment import Environment
from tilewright.script.expressions import Expressions
from tilewright.script.source import Source
from tilewright.script.suites import Suites
from tilewright.support.errors import ScriptError
from tilewright.tir.stmt import Stmt

_KINDS = ("posonlyargs", "args", "kwonlyargs")


@dataclass(frozen=True, eq=False, repr=False)
class Macro:
    """A function under @T.macro. outer() gives the names around its definition.

    hygienic: names that it does not define are those of the place where it was written, else of where it is called.
    """
    source: Source
    node: ast.FunctionDef
    outer: Callable[[], Mapping[str, Any]]
    hygienic: bool = True
    runs_python: bool = True                  # see Environment

    @property
    def name(self) -> str:
        return self.node.name

    def __repr__(self) -> str:
        return f"macro {self.name}"

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        raise ScriptError(f"the macro {self.name} was called outside a script",
                          "it stands on a line of its own in a function under @T.prim_func")

    def environment(self) -> Environment:
        """The names at its definition."""
        return Environment(self.outer(), self.runs_python)

    def bind(self, args: list[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The values of its parameters. Raises TypeError where the arguments do not fit."""
        bound = self.signature().bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.arguments

    def signature(self) -> inspect.Signature:
        """Its parameters; defaults are evaluated where the macro is defined."""
        a, names = self.node.args, self.environment()
        values = [*([None] * (len(a.posonlyargs) + len(a.args) - len(a.defaults))), *a.defaults, *a.kw_defaults]
        kinds = (*(inspect.Parameter.POSITIONAL_ONLY for _ in a.posonlyargs),
                 *(inspect.Parameter.POSITIONAL_OR_KEYWORD for _ in a.args),
                 *(inspect.Parameter.KEYWORD_ONLY for _ in a.kwonlyargs))
        written = [arg for kind in _KINDS for arg in getattr(a, kind)]
        parameters = [
            inspect.Parameter(arg.arg, kind, default=inspect.Parameter.empty if value is None else
                              Expressions(self.source, names).value(value))
            for arg, kind, value in zip(written, kinds, values, strict=True)]
        if a.vararg is not None:
            parameters.insert(len(a.posonlyargs) + len(a.args),
                              inspect.Parameter(a.vararg.arg, inspect.Parameter.VAR_POSITIONAL))
        if a.kwarg is not None:
            parameters.append(inspect.Parameter(a.kwarg.arg, inspect.Parameter.VAR_KEYWORD))
        return inspect.Signature(parameters)


class Macros(Suites):
    """Calls of macros as statements."""

    def macro_of(self, node: ast.AST) -> Macro | None:
        """The macro that node calls, if it calls one."""
        if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
            return None
        fn = self.value(node.func)
        return fn if isinstance(fn, Macro) else None

    def not_called(self, node: ast.Call, fn: Any) -> NoReturn:
        if isinstance(fn, Macro):
            self.fail(node, f"the macro {fn.name} stands for statements, it has no value here",
                      "a macro stands on a line of its own")
        super().not_called(node, fn)

    def expanded(self, node: ast.Call, macro: Macro) -> Stmt:
        """The statements of a macro with its parameters bound to the arguments of a call.

        They belong to the block around the call; names that they define end with them.
        """
        args, kwargs = self.arguments(node)
        given = self.guard(node, macro.bind, args, kwargs)
        source, names, place = self.source, self.names, self.called_at
        self.called_at = place or node
        self.names = macro.environment() if macro.hygienic else names.around()
        for name, value in given.items():
            self.names.define(name, value)
        self.source = macro.source
        try:
            return self.suite(macro.node.body)
        finally:
            self.source, self.names, self.called_at = source, names, place
