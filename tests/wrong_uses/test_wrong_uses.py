"""Every row of the table raises its own error, with its message, and leaves what it watches as it was."""
from __future__ import annotations

import re

import pytest

from tests.wrong_uses.table import PAGE, PRIMITIVES, ROWS, SECTIONS, page, raised
from tests.wrong_uses.wrong_use import Exit, WrongUse, changed


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_is_refused(row: WrongUse):
    changed()
    error = raised(row)
    assert changed() == []
    assert re.search(row.pattern, str(error)), f"{row.title}: {error}"
    shown = None if error.__suppress_context__ or isinstance(error, Exit) else error.__context__
    assert shown is None, "the traceback shows a second error"


def test_names_and_patterns_are_there():
    assert len(ROWS) >= 300 and all(row.pattern for row in ROWS)
    for section in (*SECTIONS, *PRIMITIVES):
        assert len({row.title for row in section.rows}) == len({row.name for row in section.rows}) == len(section.rows)


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(), "run: python -m tests.wrong_uses.table"
