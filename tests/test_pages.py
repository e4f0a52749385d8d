"""The pages of docs/ that teach by programs: these run one after the other, and print what the page says."""
import functools
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
# how many programs a page has, at least
PAGES = {"deployment.md": 6, "script.md": 11, "te.md": 4, "debugging.md": 8, "performance.md": 14,
         "graphs.md": 6}


@functools.cache
def programs(page):
    """(program, what it prints) in the order of the page."""
    return re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", (DOCS / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_run(page, tmp_path, monkeypatch, capfd):
    """One test for each page: its programs use what those before define and write."""
    (tmp_path / "page").mkdir()
    monkeypatch.chdir(tmp_path / "page")
    names = {"__name__": "page"}
    for number, (program, wanted) in enumerate(programs(page)):
        path = tmp_path / f"program_{number}.py"
        path.write_text(program)
        exec(compile(program, str(path), "exec"), names)
        assert capfd.readouterr().out == wanted, f"{page}, program {number}"


@pytest.mark.parametrize("page, least", PAGES.items())
def test_every_block_is_a_program_or_what_it_prints(page, least):
    blocks = 2 * (len(programs(page)) + sum(bool(wanted) for _, wanted in programs(page)))
    assert (DOCS / page).read_text().count("```") == blocks
    assert len(programs(page)) >= least


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([a-z_]+\.md)", (DOCS / page).read_text())
    assert targets and all((DOCS / t).exists() for t in targets)
