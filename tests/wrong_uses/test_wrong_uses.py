"""Every row of the table raises its own error, with its message, and leaves what it watches as it was."""
from __future__ import annotations

import re

import pytest

from .table import PAGE, ROWS, page, raised
from .wrong_use import Exit, WrongUse, changed


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_is_refused(row: WrongUse):
    changed()
    error = raised(row)
    assert changed() == []
    assert re.search(row.pattern, str(error)), f"{row.title}: {error}"
    assert error.__suppress_context__ or error.__context__ is None or isinstance(error, Exit), "a second traceback is shown"


def test_names_and_patterns_are_there():
    names = [row.name for row in ROWS]
    assert len(ROWS) >= 300 and all(row.pattern for row in ROWS)
    assert sorted(set(names)) != [] and len({(row.title, row.name) for row in ROWS}) == len(ROWS)


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run: python -m tests.wrong_uses.table"
