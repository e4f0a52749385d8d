"""The table of wrong uses. `python -m tests.wrong_uses.table` writes docs/errors.md from it."""
from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.schedule.case import CASES
from tests.schedule.primitives import parallel
from tilewright.runtime.llvm import host_triple
from tilewright.support.errors import TilewrightError

from . import (
    block_schedules,
    building,
    calls,
    commands,
    definitions,
    graphs,
    lowering,
    operations,
    scans,
    scripts,
    stage_primitives,
    stages,
    stored,
    tensor_intrinsics,
    tools,
    traces,
    tvm_programs,
)
from .wrong_use import Exit, WrongUse

SECTIONS = (definitions.SECTION, operations.SECTION, scans.SECTION, scripts.SECTION, stages.SECTION,
            stage_primitives.SECTION, block_schedules.SECTION, traces.SECTION, tensor_intrinsics.SECTION,
            building.SECTION, lowering.SECTION, calls.SECTION,
            graphs.SECTION, tools.SECTION, tvm_programs.SECTION, stored.FILES, stored.SETTINGS, commands.SECTION)
PRIMITIVES = tuple(CASES.values())                     # whose refusals stand in docs/primitives.md
ROWS = [row for section in (*SECTIONS, *PRIMITIVES) for row in section.rows]
PAGE = Path(__file__).parents[2] / "docs" / "errors.md"

INTRODUCTION = """# Wrong uses and what they say

Written by `python -m tests.wrong_uses.table` from the table in `tests/wrong_uses/`, every row of which is a test:
the wrong use raises the error that stands here and nothing else, before anything is changed or written. All errors
are subclasses of `tilewright.TilewrightError`. What a schedule primitive refuses stands with it, in
[primitives.md](primitives.md). A `CallError` is also a `ValueError` or a `TypeError`. Python's own
`TypeError` remains for a call that does not fit a signature, a keyword that there is not, and its `AttributeError` for
a name that there is not.

The tables show the first line of each message and the hint at its end. Errors of schedules show the function in
between, the guilty lines marked:

```
{example}
```
"""

# What differs between machines and versions of libraries, and what stands for it.
_VARIES = [
    (r"(?<!\S)\S*/(\w+\.py):\d+", r"\1:LINE"), (r"/tmp/\S*/", ""), (r"0x[0-9a-f]+", "0x..."),
    (re.escape(host_triple()), "THIS-MACHINE"), (r"No available targets .*", "..."), (r"'dump': \S+", "'dump': FILE"),
    (r"(is not an array of numbers): .*", r"\1: ..."), (r"could not convert string to float: .*", "..."),
    (r"(index_map does not take 2 indices): .*", r"\1: ..."), (r"(registered: ).*", r"\1..."),
]


def raised(row: WrongUse) -> Exception:
    """What the wrong use raises. Anything but an error of ours passes through; to be accepted is an error too."""
    try:
        row.do()
    except (TilewrightError, Exit) as error:
        return error
    raise AssertionError(f"{row.name} was accepted: {row.title}")


def page(line_of: Callable[[WrongUse], str]) -> str:
    """The text of docs/errors.md, with what line_of says of each wrong use."""
    example = next(row for row in ROWS if row.do is parallel.parallel_reduction)
    parts = [INTRODUCTION.format(example=str(raised(example)))]
    for section in SECTIONS:
        parts.append(f"## {section.title}\n\n| wrong use | error | message | hint |\n| --- | --- | --- | --- |")
        parts += [line_of(row) for row in section.rows]
        parts.append("")
    return "\n".join(parts)


def line(*cells: str) -> str:
    """A line of a table."""
    return f"| {' | '.join(map(_cell, cells))} |"


def texts(row: WrongUse) -> tuple[str, str, str]:
    """What the wrong use raises: (class, first line of the message, hint)"""
    return texts_of(raised(row))


def texts_of(error: Exception) -> tuple[str, str, str]:
    text = str(error)
    for pattern, replacement in _VARIES:
        text = re.sub(pattern, replacement, text)
    body, _, hint = text.partition("\n\nhint: ")
    if isinstance(error, Exit):
        message = "the usage, and what is wrong with it" if body.startswith("Usage:") else body
        return f"exit status {error.status}", " ".join(message.split()), hint
    lines = body.split("\n")
    in_replay = lines[0].startswith(("stages.py:", "stage_primitives.py:", "building.py:"))
    located = in_replay and len(lines) > 1
    return type(error).__name__, lines[1] if located else lines[0], hint


def _cell(text: str) -> str:
    escaped = text.replace("|", "\\|").replace("\n", " ")
    return escaped if "`" in text else re.sub(r"([<>*_])", r"\\\1", escaped)


if __name__ == "__main__":
    PAGE.write_text(page(lambda row: line(row.title, *texts(row))))
    print(f"{PAGE}: {sum(len(section.rows) for section in SECTIONS)} wrong uses")
