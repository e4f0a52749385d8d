"""The table of wrong uses. `python -m tests.wrong_uses.table` writes docs/errors.md from it."""
from __future__ import annotations

import re
import sys
import traceback
from pathlib import Path

from tilewright.support.errors import TilewrightError

from . import block_schedules, building, calls, definitions, graphs, stages, stored
from .wrong_use import WrongUse, changed

SECTIONS = (definitions.SECTION, stages.SECTION, block_schedules.SECTION, building.SECTION, calls.SECTION,
            graphs.SECTION, stored.FILES, stored.SETTINGS)
ROWS = [row for section in SECTIONS for row in section.rows]
PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def explore(names):
    for section in SECTIONS:
        print("=====", section.title)
        for row in section.rows:
            if names and row.name not in names:
                continue
            changed()
            try:
                row.do()
            except TilewrightError as e:
                ch = changed()
                mark = "ok " + (" CHANGED" if ch else "")
                text = str(e)
                lines = text.split("\n\n")
                if len(lines) > 2: lines = [lines[0], "...", lines[-1]]
                text = "\n\n".join(lines)
                print(f"{mark} {row.name}: {type(e).__name__}: {text}\n")
            except BaseException as e:
                tb = traceback.extract_tb(e.__traceback__)[-1]
                print(f"!!! FOREIGN {row.name} ({row.title}): {type(e).__name__}: {str(e)[:600]}  [{tb.filename}:{tb.lineno}]\n")
            else:
                print(f"!!! ACCEPTED {row.name}: {row.title}\n")


if __name__ == "__main__":
    explore(sys.argv[1:])
