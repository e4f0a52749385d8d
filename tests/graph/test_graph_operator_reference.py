"""The list of operators in docs/graphs.md is what its generator writes, and each has a docstring."""
from __future__ import annotations

import inspect

import pytest

from tests.graph.operator_reference import PAGE, page
from tilewright import graph  # noqa: F401  (its modules fill the table)
from tilewright.graph import vocabulary


def test_the_page_is_up_to_date():
    assert PAGE.read_text() == page(PAGE.read_text()), "run python -m tests.graph.operator_reference"


@pytest.mark.parametrize("name", vocabulary.NAMES)
def test_every_name_says_what_it_gives(name):
    assert len(inspect.getdoc(vocabulary.NAMES[name]) or "") > 15
