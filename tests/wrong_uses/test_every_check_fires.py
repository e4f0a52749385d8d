"""Every legality check of the schedule package refuses in some row of the table of wrong uses."""
from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tilewright.schedule
from tilewright.schedule.stages_records import Call
from tilewright.support.errors import Illegal

from .table import ROWS, raised

FOLDER = Path(tilewright.schedule.__file__).parent
Site = tuple[str, int]                                 # (file, line)


def checks() -> dict[Site, int]:
    """First and last line of every call of require, legal and refuse, and of every `raise Illegal`, in the package."""
    found: dict[Site, int] = {}
    for path in sorted(FOLDER.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _name(node.func) in ("require", "legal", "refuse", "Illegal"):
                found[path.name, node.lineno] = node.end_lineno or node.lineno
    return found


def _name(func: ast.expr) -> str:
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


@contextmanager
def recorded() -> Iterator[set[Site]]:
    """The lines of the package from which a check refuses, while the block runs."""
    fired: set[Site] = set()

    def note(depth: int) -> None:
        frame = sys._getframe(depth)
        while frame.f_back is not None and frame.f_code.co_filename.endswith("support/errors.py"):
            frame = frame.f_back
        fired.add((Path(frame.f_code.co_filename).name, frame.f_lineno))

    illegal, refuse = Illegal.__init__, Call.refuse

    def make(self: Illegal, *args: object, **more: object) -> None:
        note(2)
        illegal(self, *args, **more)  # type: ignore[arg-type]

    def decline(self: Call, *args: object, **more: object) -> None:
        note(2)
        refuse(self, *args, **more)  # type: ignore[arg-type]

    Illegal.__init__, Call.refuse = make, decline  # type: ignore[method-assign,assignment]
    try:
        yield fired
    finally:
        Illegal.__init__, Call.refuse = illegal, refuse  # type: ignore[method-assign]


def never_fired() -> list[str]:
    """The checks that no row of the table makes refuse."""
    with recorded() as fired:
        for row in ROWS:
            raised(row)
    return [f"{file}:{first}" for (file, first), last in checks().items()
            if not any((file, line) in fired for line in range(first, last + 1))]


def test_every_check_fires() -> None:
    assert len(checks()) > 100
    assert never_fired() == []


def test_a_check_that_never_fires_is_found() -> None:
    with recorded() as fired:
        pass
    assert not fired and len(checks()) > 100
