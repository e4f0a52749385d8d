"""Every row of the table raises its own error, with its message, and leaves what it watches as it was."""
from __future__ import annotations

import re

import pytest

from tests.wrong_uses.table import PAGE, PRIMITIVES, ROWS, SECTIONS, line, page, raised, texts_of
from tests.wrong_uses.wrong_use import Exit, WrongUse, changed

LINES = set(PAGE.read_text().splitlines())
LISTED = {id(row) for section in SECTIONS for row in section.rows}
WRITE_IT = "run: python -m tests.wrong_uses.table"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_it_is_refused(row: WrongUse):
    changed()
    error = raised(row)
    assert changed() == []
    assert re.search(row.pattern, str(error)), f"{row.title}: {error}"
    shown = None if error.__suppress_context__ or isinstance(error, Exit) else error.__context__
    assert shown is None, "the traceback shows a second error"
    assert id(row) not in LISTED or line(row.title, *texts_of(error)) in LINES, WRITE_IT


def test_names_and_patterns_are_there():
    assert len(ROWS) >= 300 and all(row.pattern for row in ROWS)
    for section in (*SECTIONS, *PRIMITIVES):
        assert len({row.title for row in section.rows}) == len({row.name for row in section.rows}) == len(section.rows)


def test_the_page_has_all_rows():
    """And nothing else; what stands in a line, the test of its row says."""
    lines = PAGE.read_text().split("\n")
    expected = page(lambda row: line(row.title)).split("\n")
    assert len(lines) == len(expected), WRITE_IT
    begins = {line(row.title) for section in SECTIONS for row in section.rows}
    assert all(a.startswith(b[:-1]) if b in begins else a == b for a, b in zip(lines, expected)), WRITE_IT
