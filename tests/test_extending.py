"""Every recipe of docs/extending.md, carried out on a copy of the package exactly as the page has it."""
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "extending.md").read_text()
INSTRUCTION = re.compile(
    r"(?:New file `(?P<new>[^`]+)`:"
    r"|In `(?P<file>[^`]+)`, (?P<how>after|before|replace) the line\s`(?P<anchor>[^`]+)`(?:, add| by):"
    r"|(?P<check>Check):|(?P<prints>It prints):)\n\n```(?:python|text)\n(?P<code>.*?)```\n", re.DOTALL)


@dataclass(frozen=True)
class Edit:
    """`how`: new file, or code put before, after or in the place of the one line `anchor`."""
    file: str
    how: str
    anchor: str
    code: str

    def apply(self, root: Path) -> None:
        path = root / self.file
        if self.how == "new":
            assert not path.exists(), f"{self.file} exists already"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.code)
            return
        lines = path.read_text().splitlines(keepends=True)
        places = [n for n, line in enumerate(lines) if line.strip() == self.anchor.strip()]
        assert len(places) == 1, f"{self.file} has the line {self.anchor!r} {len(places)} times"
        at = places[0] + (self.how == "after")
        lines[at:at + (self.how == "replace")] = [self.code]
        path.write_text("".join(lines))


@dataclass(frozen=True)
class Recipe:
    title: str
    edits: list[Edit]
    checks: list[str]
    prints: list[str]


def recipe(section: str) -> Recipe:
    edits, checks, prints = [], [], []
    found = list(INSTRUCTION.finditer(section))
    assert section.count("```") == 2 * len(found), "a block without an instruction above it"
    for m in found:
        if m["check"]:
            checks.append(m["code"])
        elif m["prints"]:
            prints.append(m["code"])
        else:
            edits.append(Edit(m["new"] or m["file"], m["how"] or "new", m["anchor"] or "", m["code"]))
    return Recipe(section.splitlines()[0], edits, checks, prints)


RECIPES = [recipe(text) for text in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]]


def test_the_page_has_the_recipes():
    titles = ["scalar operator", "law", "schedule primitive", "tensor intrinsic", "target", "pass", "rule",
              "kind of statement", "graph operator", "loss", "optimizer", "back end"]
    assert len(RECIPES) == len(titles)
    for found, title in zip(RECIPES, titles):
        assert title in found.title
        assert 1 <= len({e.file for e in found.edits}) <= (4 if title == "kind of statement" else 3)
        assert len(found.checks) == len(found.prints) == 1


@pytest.mark.parametrize("found", RECIPES, ids=lambda r: r.title)
def test_recipe(found, tmp_path):
    for folder in ("tilewright", "tests", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)         # with compiled modules
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tmp_path)
    for edit in found.edits:
        edit.apply(tmp_path)
    files = sorted({edit.file for edit in found.edits if edit.file.endswith(".py")})
    lint = subprocess.run([sys.executable, "-m", "ruff", "check", *files], cwd=tmp_path, capture_output=True, text=True)
    assert lint.returncode == 0, lint.stdout or lint.stderr
    (tmp_path / "check.py").write_text(found.checks[0])
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "TILEWRIGHT_CACHE": "0"}
    done = subprocess.run([sys.executable, "check.py"], cwd=tmp_path, env=environment, capture_output=True, text=True,
                          timeout=240)
    assert done.returncode == 0, done.stderr or done.stdout
    assert done.stdout == found.prints[0]


def test_an_edit_whose_line_is_not_there_once_fails(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\ny = 2\ny = 2\n")
    for anchor in ("z = 3", "y = 2", "x ="):
        with pytest.raises(AssertionError, match="times"):
            Edit("a.py", "after", anchor, "w = 4\n").apply(tmp_path)
    Edit("a.py", "replace", "x = 1", "w = 4\n").apply(tmp_path)
    assert (tmp_path / "a.py").read_text() == "w = 4\ny = 2\ny = 2\n"
