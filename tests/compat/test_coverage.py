"""docs/tvm.md is what the table of names and the namespace say."""
from pathlib import Path

import pytest

from tilewright.compat import coverage

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date():
    assert (DOCS / "tvm.md").read_text() == coverage.page(), "run: python -m tilewright.compat.coverage docs/tvm.md"


def test_every_name_counts_once():
    for title, here, missing in coverage.sections():
        assert len({*here, *missing}) == len(here) + len(missing) > 0, title
    table = {title: (here, missing) for title, here, missing in coverage.sections()}
    assert "compute" in table["tvm.te"][0] and "renew_defs" in table["tvm.tir.stmt_functor"][1]
    assert "split" in table["tir.Schedule"][0] and "get_sref" in table["tir.Schedule"][1]


@pytest.mark.parametrize("page", ["migration.md", "tvm.md"])
def test_links_between_the_pages_lead_somewhere(page):
    text = (DOCS / page).read_text()
    targets = [part.split(")")[0].split("#")[0] for part in text.split("](")[1:]]
    assert targets and all((DOCS / t).exists() for t in targets)
