"""The reference page of the primitives. `python -m tests.schedule.reference` writes docs/primitives.md."""
from __future__ import annotations

import inspect
import sys
import textwrap
from pathlib import Path
from typing import Any

from tests.schedule.case import CASES
from tests.wrong_uses.table import line, texts
from tests.wrong_uses.wrong_use import WrongUse
from tilewright.schedule import PRIMITIVES, Schedule, Trace

PAGE = Path(__file__).parents[2] / "docs" / "primitives.md"

INTRODUCTION = """# Schedule primitives

Written by `python -m tests.schedule.reference` from the docstrings of the functions in `tilewright/schedule/`.

`sch = tilewright.Schedule(func)` takes a function in block form; each primitive below is a method of it. It rewrites
the function, or raises `ScheduleError` and changes nothing; the message shows the call, the numbers that clash, the
function with the guilty lines marked, and a hint. What was done is recorded in `sch.trace`, which prints as Python, is
stored as JSON, and replays on another function. Below a primitive stand calls that it refuses, with the first line of
the message and the hint; every row is a test.

A block is given by the handle that `get_block` returned, or by its name; a loop by the handle that `get_loops`, or
the primitive that made it, returned. In the pictures the program before stands left of, or above, the arrow `->`, and
is written short: `B[i] = f(i)` stands for the block B around this statement, `grid` for nested loops. A producer of a
block writes what the block reads, a consumer reads what it writes. A block's iteration variables (iter vars) are data-
parallel (spatial), of a reduction, ordered or opaque; the loops around it drive them: they occur in their values.
Loops are serial until they are made parallel, vectorized, unrolled or bound to GPU threads.
"""


# The families in the order of the page; others follow. A module names its family before the colon of its docstring.
ORDER = ("Handles of blocks and loops", "Loops", "How loops run", "Where blocks are computed", "Reductions",
         "Copies of buffers", "Memory of buffers", "Iterations of blocks", "Tensor intrinsics",
         "Random choices, and the trace")

# What is no primitive: (heading, name in the calls, class, members).
OTHERS = (
    ("Methods that are not recorded", "sch", Schedule, (
        "mod", "func", "get", "copy", "show", "work_on", "enter", "exit", "seed", "fork_seed", "remove_rv")),
    ("The trace", "sch.trace", Trace, (
        "as_python", "show", "as_json", "from_json", "apply_to_schedule", "apply_json_to_schedule", "simplified",
        "with_decision", "get_decision", "insts", "decisions", "copy", "append", "pop")),
)


def families() -> dict[str, list[str]]:
    """The primitives of each family, in the order of their modules."""
    found: dict[str, list[str]] = {title: [] for title in ORDER}
    for name, fn in sorted(PRIMITIVES.items(), key=lambda row: _place(row[1])):
        title, colon, _ = (sys.modules[fn.__module__].__doc__ or "").partition(": ")
        assert colon, f"the docstring of {fn.__module__} does not begin with `FAMILY: `"
        found.setdefault(title, []).append(name)
    return found


def _place(fn: Any) -> tuple[str, int]:
    return fn.__module__, inspect.unwrap(fn).__code__.co_firstlineno


def signature(name: str, fn: Any, owner: str = "sch") -> str:
    """The call as it is written on owner, without annotations; properties without parentheses."""
    if isinstance(fn, property):
        return f"{owner}.{name}"
    inner = inspect.unwrap(fn)
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(inner).parameters.values()]
    if parameters and parameters[0].name in ("self", "sch"):
        return f"{owner}.{name}({', '.join(map(str, parameters[1:]))})"
    return f"Trace.{name}({', '.join(map(str, parameters))})"


def documentation(fn: Any) -> str:
    """The docstring without the indentation of a function's body; pictures keep theirs."""
    return inspect.cleandoc(inspect.unwrap(fn).__doc__ or "")


def section(name: str) -> str:
    """Signature and docstring of a primitive; indented parts of the docstring become code."""
    parts = [f"### {name}", f"```python\n{signature(name, PRIMITIVES[name])}\n```"]
    for paragraph in documentation(PRIMITIVES[name]).split("\n\n"):
        if paragraph.startswith("    "):
            picture = textwrap.dedent(_without_indent(paragraph))
            previous = parts[-1]
            if previous.startswith("```\n"):
                parts[-1] = f"{previous[:-4]}\n\n{picture}\n```"
            else:
                parts.append(f"```\n{picture}\n```")
        else:
            parts.append(paragraph)
    if CASES[name].rows:
        rows = map(_refusal, CASES[name].rows)
        parts.append("\n".join(["| refused | message | hint |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(parts)


def _refusal(row: WrongUse) -> str:
    error, message, hint = texts(row)
    return line(row.title, message if error == "ScheduleError" else f"{error}: {message}", hint)


def _without_indent(paragraph: str) -> str:
    """The picture with its arrow, which stands at the margin of the docstring, among the code."""
    return "\n".join(line if line.startswith("    ") or not line else f"    {line}" for line in paragraph.splitlines())


def first_sentence(text: str) -> str:
    """The first paragraph of a docstring up to its first full stop or semicolon."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return paragraph.partition(". ")[0].rstrip(".") + "."


def contents() -> str:
    """A line per family, with links to its primitives."""
    rows = ["| family | primitives |", "| --- | --- |"]
    for title, names in families().items():
        rows.append(f"| {title} | {', '.join(f'[{name}](#{name})' for name in names)} |")
    return "\n".join(rows)


def others(heading: str, owner: str, kind: type, names: tuple[str, ...]) -> str:
    """A table of the members of a class that users call."""
    rows = [f"## {heading}\n", "| call | meaning |", "| --- | --- |"]
    for name in names:
        fn = inspect.getattr_static(kind, name)
        fn = fn.__func__ if isinstance(fn, staticmethod) else fn
        text = inspect.getdoc(fn) or ""
        rows.append(f"| `{signature(name, fn, owner)}` | {first_sentence(text).replace('|', '&#124;')} |")
    return "\n".join(rows)


def page() -> str:
    parts = [INTRODUCTION, contents()]
    for title, names in families().items():
        parts.append(f"## {title}")
        parts += [section(name) for name in names]
    parts += [others(*row) for row in OTHERS]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE}: {len(PRIMITIVES)} primitives")
