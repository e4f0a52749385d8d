"""`tvm.ir.diagnostics`: what is wrong with a script, handed to a function of the program's own."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tilewright import script
from tilewright.support.errors import ScriptError
from tilewright.tir import IRModule, PrimFunc

_PLACE = re.compile(r"(.*?):(\d+): (.*)", re.DOTALL)
_renderers: list[Callable[[Any], Any]] = []


@dataclass(frozen=True)
class Span:
    """A line of a text."""
    source_name: str
    line: int


@dataclass(frozen=True)
class Diagnostic:
    """What is wrong, and where. level 1: an error."""
    message: str
    span: Span
    level: int = 1


@dataclass(frozen=True)
class DiagnosticContext:
    """What was found wrong with a text."""
    diagnostics: list[Diagnostic]


def override_renderer(render_func: Callable[[DiagnosticContext], Any] | None = None) -> None:
    """Let render_func see what is wrong before `tvm.script.from_source` raises DiagnosticError; None: nobody."""
    _renderers[:] = [] if render_func is None else [render_func]


def get_renderer() -> Callable[[DiagnosticContext], Any] | None:
    """The function that sees what is wrong."""
    return _renderers[0] if _renderers else None


def from_source(program: str, extra_vars: None = None, check_well_formed: bool = True) -> PrimFunc | IRModule:
    """The function or module that a text describes. Raises ScriptError, which is tvm.error.DiagnosticError."""
    try:
        return script.from_source(program, check_well_formed=check_well_formed)
    except ScriptError as why:
        for render in _renderers:
            render(DiagnosticContext([_diagnostic(str(why))]))
        raise


def _diagnostic(text: str) -> Diagnostic:
    placed = _PLACE.match(text)
    if placed is None:
        return Diagnostic(text, Span("<script>", 1))
    return Diagnostic(placed[3], Span(placed[1], int(placed[2])))


NAMES: dict[str, Any] = {"override_renderer": override_renderer, "get_renderer": get_renderer, "Diagnostic": Diagnostic,
                         "DiagnosticContext": DiagnosticContext}
