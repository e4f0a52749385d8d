"""`tvm.ir.diagnostics`: what is wrong with a script, handed to a function of the program's own."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tilewright import script
from tilewright.compat.relax.script import NAMES as RELAX
from tilewright.support.errors import ScriptError

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


def from_source(program: str, extra_vars: Mapping[str, Any] | None = None, check_well_formed: bool = True) -> Any:
    """The function or module that a text describes. Raises ScriptError, which is tvm.error.DiagnosticError."""
    known = {"R": _Relax(), **(extra_vars or {})}
    try:
        return script.from_source(program, extra_vars=known, check_well_formed=check_well_formed)
    except ScriptError as why:
        for render in _renderers:
            render(DiagnosticContext([_diagnostic(str(why))]))
        raise


class _Relax:
    """R in a text: the names of tvm.script.relax."""
    __name__ = "tvm.script.relax"

    def __getattr__(self, name: str) -> Any:
        if name not in RELAX:
            raise AttributeError(f"R has no name {name!r}")
        return RELAX[name]


def _diagnostic(text: str) -> Diagnostic:
    placed = _PLACE.match(text)
    if placed is None:
        return Diagnostic(text, Span("<script>", 1))
    return Diagnostic(placed[3], Span(placed[1], int(placed[2])))


NAMES: dict[str, Any] = {"override_renderer": override_renderer, "get_renderer": get_renderer, "Diagnostic": Diagnostic,
                         "DiagnosticContext": DiagnosticContext}
