"""docs/script.md: its programs run one after the other, and print what the page says."""
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "script.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def names():
    """What the programs before have defined."""
    return {"__name__": "page"}


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_runs(number, names, tmp_path, capfd):
    program, wanted = PROGRAMS[number]
    path = tmp_path / f"program_{number}.py"
    path.write_text(program)
    exec(compile(program, str(path), "exec"), names)
    assert capfd.readouterr().out == wanted


def test_every_block_is_a_program_or_what_it_prints():
    assert PAGE.count("```") == 2 * (len(PROGRAMS) + sum(bool(wanted) for _, wanted in PROGRAMS))
    assert len(PROGRAMS) >= 10


def test_links_lead_somewhere():
    targets = re.findall(r"\]\(([a-z_]+\.md)", PAGE)
    assert targets and all((Path(__file__).parents[2] / "docs" / t).exists() for t in targets)
