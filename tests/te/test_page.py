"""docs/te.md: its programs run one after the other, and say nothing."""
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "te.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```\n", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def names():
    """What the programs before have defined."""
    return {"__name__": "page"}


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_runs(number, names, tmp_path, capfd):
    path = tmp_path / f"program_{number}.py"
    path.write_text(PROGRAMS[number])
    exec(compile(PROGRAMS[number], str(path), "exec"), names)
    assert capfd.readouterr().out == ""


def test_every_block_is_a_program():
    assert PAGE.count("```") == 2 * len(PROGRAMS) == 8


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([a-z_]+\.md)", PAGE)
    assert targets and all((DOCS / t).exists() for t in targets)
