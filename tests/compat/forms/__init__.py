"""Forms in which programs of all years call TVM: a small program each, which checks what comes out.

A form may say which messages it answers: those that old programs stopped at before it worked. `names_share` counts by
them which part of a list of such messages works. Forms that are refused say why.
"""
from __future__ import annotations

from collections.abc import Callable

Program = Callable[[], None]

FORMS: dict[str, Program] = {}                  # file.function -> the program
REFUSED: dict[str, str] = {}                    # of those that are refused: why
ASKED: dict[str, list[str]] = {}                # pattern of messages -> the forms that answer them, in order


def form(*patterns: str, refused: str = "") -> Callable[[Program], Program]:
    """Decorator: the function is a form, and answers messages in which one of the patterns is found."""
    def enter(program: Program) -> Program:
        name = f"{program.__module__.rpartition('.')[2]}.{program.__name__}"
        assert name not in FORMS, name
        FORMS[name] = program
        if refused:
            REFUSED[name] = refused
        for pattern in patterns:
            ASKED.setdefault(pattern, []).append(name)
        return program
    return enter
