"""The reference page of the primitives is complete and up to date."""
from __future__ import annotations

import inspect

import pytest

from tilewright.schedule import PRIMITIVES

from . import reference

QUERIES = ("get_block", "get_blocks", "get_loops", "get_producers", "get_consumers", "get_child_blocks",
           "get_output_blocks")


@pytest.mark.parametrize("name", [n for n in PRIMITIVES if n not in QUERIES])
def test_a_docstring_has_a_picture_and_a_condition(name):
    text = inspect.getdoc(inspect.unwrap(PRIMITIVES[name])) or ""
    assert "->" in text, f"{name}: no picture"
    assert "Legal when" in text, f"{name}: no condition"


def test_the_page_is_up_to_date():
    assert reference.PAGE.read_text() == reference.page(), "run python -m tests.schedule.reference"
