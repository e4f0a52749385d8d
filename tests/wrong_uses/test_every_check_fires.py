"""Every check of the schedule package refuses in some row of the table of wrong uses.

`python -m tests.wrong_uses.test_every_check_fires` lists those that never do, and the refusals of te, script and the
lowering that no row comes to.
"""
from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tilewright
from tests.wrong_uses.table import ROWS, raised
from tilewright.schedule.stages.records import Call
from tilewright.support.errors import Illegal, LowerError, ScriptError, TensorExpressionError, TilewrightError

PACKAGE = Path(tilewright.__file__).parent
CHECKS = ("require", "legal", "refuse", "Illegal")
OTHERS = {                                             # folder -> its error, the calls that make it
    "te": (TensorExpressionError, ("TensorExpressionError",)),
    "script": (ScriptError, ("ScriptError", "fail", "error")),
    "lowering": (LowerError, ("LowerError",)),
}
MAKERS = ("require", "legal", "fail", "error")         # functions that raise for their callers
Site = tuple[str, int]                                 # (path from the package, line)


def checks(folder: str = "schedule", names: tuple[str, ...] = CHECKS) -> dict[Site, int]:
    """First and last line of every call of one of the names in a folder of the package, outside of MAKERS."""
    found: dict[Site, int] = {}

    def visit(node: ast.AST, path: Path) -> None:
        if isinstance(node, ast.Call) and _name(node.func) in names:
            found[str(path.relative_to(PACKAGE)), node.lineno] = node.end_lineno or node.lineno
        for below in ast.iter_child_nodes(node):
            if not (isinstance(below, ast.FunctionDef) and below.name in MAKERS):
                visit(below, path)
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        visit(ast.parse(path.read_text()), path)
    return found


def _name(func: ast.expr) -> str:
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


@contextmanager
def recorded() -> Iterator[set[Site]]:
    """The lines of the package at which an error was made, or a check refused, while the block runs."""
    fired: set[Site] = set()

    def note() -> None:
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_name in MAKERS:
            frame = frame.f_back
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            fired.add((str(path.relative_to(PACKAGE)), frame.f_lineno))

    refuse = Call.refuse
    made = {error: error.__init__ for error in (Illegal, *(error for error, _ in OTHERS.values()))}

    def noting(before):
        def make(self: object, *args: object, **more: object) -> None:
            note()
            before(self, *args, **more)
        return make

    Call.refuse = noting(refuse)                       # type: ignore[method-assign,assignment]
    for error, before in made.items():
        error.__init__ = noting(before)                # type: ignore[method-assign]
    try:
        yield fired
    finally:
        Call.refuse = refuse                           # type: ignore[method-assign]
        for error, before in made.items():
            if before is TilewrightError.__init__:
                del error.__init__
            else:
                error.__init__ = before                # type: ignore[method-assign]


def fired_by_rows() -> set[Site]:
    """The lines at which the rows of the table were refused."""
    with recorded() as fired:
        for row in ROWS:
            raised(row)
    return fired


def never_fired(fired: set[Site], found: dict[Site, int]) -> list[str]:
    """The checks in found that are not among the fired ones, with their source."""
    silent = [(file, first) for (file, first), last in found.items()
              if not any((file, line) in fired for line in range(first, last + 1))]
    return [f"{file}:{line}: {(PACKAGE / file).read_text().splitlines()[line - 1].strip()}" for file, line in silent]


def test_every_check_fires() -> None:
    assert len(checks()) > 100
    assert never_fired(fired_by_rows(), checks()) == []


def test_a_check_that_never_fires_is_found() -> None:
    with recorded() as fired:
        pass
    silent = never_fired(fired, checks())
    assert len(silent) == len(checks()) and any("legal(" in text for text in silent)


if __name__ == "__main__":
    rows = fired_by_rows()
    for folder, names in (("schedule", CHECKS), *((folder, names) for folder, (_, names) in OTHERS.items())):
        sites = checks(folder, names)
        silent = never_fired(rows, sites)
        print(f"{folder}: {len(sites)} refusals, {len(silent)} that no row comes to", *silent, sep="\n    ")
