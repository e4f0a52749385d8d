"""The programs of the README run as they stand, and the pages that it names are there."""
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_runs(number, tmp_path, capsys):
    path = tmp_path / f"readme_{number}.py"
    path.write_text(PROGRAMS[number])
    exec(compile(path.read_text(), str(path), "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out


def test_there_are_programs():
    assert len(PROGRAMS) >= 4


def test_pages_are_there():
    pages = re.findall(r"\]\((docs/[a-z_]+\.md)\)", README)
    assert len(pages) >= 8
    assert [p for p in pages if not (ROOT / p).exists()] == []
