"""docs/architecture.md has the passes, all of them and in order; the files that it names are there."""
import re
from itertools import groupby
from pathlib import Path

from tilewright.lowering import PASSES, PassOptions
from tilewright.lowering.passes import passes_for
from tilewright.support.target import target as resolve_target

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_passes_are_listed_in_order():
    rows = re.findall(r"^\| (blocks|loops|flat|functions) \| (.*) \|$", PAGE, re.MULTILINE)
    listed = [(form, re.findall(r"`(\w+)`", text)) for form, text in rows]
    forms = {"block": "blocks", "loop": "loops", "flat": "flat", "module": "functions"}
    passes = [*PASSES, *passes_for(PassOptions(), resolve_target("llvm"), module=True)]
    assert listed == [(forms[stage], [p.name for p in group]) for stage, group in groupby(passes, lambda p: p.stage)]


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
