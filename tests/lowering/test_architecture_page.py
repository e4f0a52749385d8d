"""docs/architecture.md has the passes, all of them and in order, and names files that are there; what a pass says."""
import re
from pathlib import Path

import pytest

from tests.lowering import pass_table
from tilewright.lowering import PASSES, passes
from tilewright.lowering.options import BOTH, OPTIONAL, Pass
from tilewright.support.errors import ArgumentError

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_page_has_the_passes_of_today():
    assert pass_table.page() == PAGE, "run: python -m tests.lowering.pass_table"
    assert all(f"| `{p.name}` | {p.stage} |" in PAGE for p in PASSES)


def test_every_pass_says_what_holds_of_its_result():
    results = [p.result for p in passes.CPU]
    assert all(20 < len(r) < 240 for r in results) and len(set(results)) == len(results)


@pytest.mark.parametrize("wrong", [{"stage": "blocks"}, {"mode": OPTIONAL}, {"use": BOTH}, {"use": "never"}])
def test_a_pass_of_unknown_words_is_refused(wrong):
    with pytest.raises(ArgumentError, match=f"Pass mine: {next(iter(wrong))}=.* is none of"):
        Pass(**{"name": "mine", "run": len, "stage": "flat", **wrong})


def test_files_that_are_named_are_there():
    files = re.findall(r"`([a-z_]+/[a-z_/]+\.(?:py|ll))`", PAGE)
    assert len(files) >= 10
    assert [f for f in files if not ((ROOT / "tilewright" / f).exists() or (ROOT / f).exists())
            and not any((ROOT / "tilewright").glob(f"*/{f}"))] == []


def test_helpers_of_lowering_are_no_passes():
    (names,) = re.findall(r"what they share \(([^)]*)\)", PAGE)
    helpers = re.findall(r"`(\w+)`", names)
    assert len(helpers) >= 5 and not {p.name for p in PASSES} & set(helpers)
    assert all((ROOT / "tilewright" / "lowering" / f"{name}.py").exists() for name in helpers)
