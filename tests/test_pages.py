"""The pages of docs/ that teach by programs: these run one after the other, and print what the page says."""
import functools
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
# how many programs a page has, at least
PAGES = {"deployment.md": 6, "script.md": 11, "te.md": 4, "debugging.md": 8, "performance.md": 6}


@functools.cache
def programs(page):
    """(program, what it prints) in the order of the page."""
    return re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", (DOCS / page).read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def names():
    """By page: what the programs before have defined."""
    return {page: {"__name__": "page"} for page in PAGES}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """By page: where its programs run, and find the files of those before."""
    return {page: tmp_path_factory.mktemp("page") for page in PAGES}


@pytest.mark.parametrize("page, number", [(page, n) for page in PAGES for n in range(len(programs(page)))])
def test_a_program_runs(page, number, names, folders, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(folders[page])
    program, wanted = programs(page)[number]
    path = tmp_path / f"program_{number}.py"
    path.write_text(program)
    exec(compile(program, str(path), "exec"), names[page])
    assert capfd.readouterr().out == wanted


@pytest.mark.parametrize("page, least", PAGES.items())
def test_every_block_is_a_program_or_what_it_prints(page, least):
    blocks = 2 * (len(programs(page)) + sum(bool(wanted) for _, wanted in programs(page)))
    assert (DOCS / page).read_text().count("```") == blocks
    assert len(programs(page)) >= least


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([a-z_]+\.md)", (DOCS / page).read_text())
    assert targets and all((DOCS / t).exists() for t in targets)
