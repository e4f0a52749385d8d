"""docs/tvm.md is what the table of names and the namespace say."""
from pathlib import Path

import pytest
from click.testing import CliRunner

from tilewright.compat import coverage

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_up_to_date():
    assert (DOCS / "tvm.md").read_text() == coverage.page(), "run: python -m tilewright.compat.coverage docs/tvm.md"


def test_every_name_counts_once():
    for title, here, missing in coverage.sections():
        assert len({*here, *missing}) == len(here) + len(missing) > 0, title
    table = {title: (here, missing) for title, here, missing in coverage.sections()}
    assert "compute" in table["tvm.te"][0] and "UIntImm" in table["tvm.expr"][1]
    assert "split" in table["tir.Schedule"][0] and "get_sref" in table["tir.Schedule"][0]


@pytest.mark.parametrize("page", ["migration.md", "tvm.md"])
def test_links_between_the_pages_lead_somewhere(page):
    text = (DOCS / page).read_text()
    targets = [part.split(")")[0].split("#")[0] for part in text.split("](")[1:]]
    assert targets and all((DOCS / t).exists() for t in targets)


def test_the_command_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(coverage.main, ["names.md"])
    assert done.exit_code == 0 and (tmp_path / "names.md").read_text() == coverage.page()


@pytest.mark.parametrize("arguments, status, text", [
    (["--help"], 0, "Usage: main [OPTIONS] FILE"), (["-h"], 0, "Write the table"), ([], 2, "Missing argument 'FILE'"),
    (["--pages"], 2, "No such option"), (["a.md", "b.md"], 2, "unexpected extra argument"),
    (["nowhere/a.md"], 1, "nowhere/a.md cannot be written: No such file or directory"), (["."], 2, "is a directory")])
def test_the_command_writes_nothing_else(arguments, status, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(coverage.main, arguments)
    assert done.exit_code == status and text in done.output
    assert list(tmp_path.iterdir()) == []
