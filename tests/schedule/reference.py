"""The reference page of the primitives. `python -m tests.schedule.reference` writes docs/primitives.md."""
from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

from tilewright.schedule import PRIMITIVES

PAGE = Path(__file__).parents[2] / "docs" / "primitives.md"

INTRODUCTION = """# Schedule primitives

Written by `python -m tests.schedule.reference` from the docstrings of the functions in `tilewright/schedule/`.

`sch = tilewright.Schedule(func)` takes a function in block form; each primitive below is a method of it. It rewrites
the function, or raises `ScheduleError` and changes nothing; the message shows the call, the numbers that clash, the
function with the guilty lines marked, and a hint ([errors.md](errors.md) has every refusal). What was done is recorded
in `sch.trace`, which prints as Python, is stored as JSON, and replays on another function.
"""


def families() -> dict[str, list[str]]:
    """The names of the primitives by the first line of the docstring of their module."""
    found: dict[str, list[str]] = {}
    for name, fn in PRIMITIVES.items():
        module = inspect.getmodule(inspect.unwrap(fn))
        title = (module.__doc__ or "").strip().splitlines()[0]
        found.setdefault(title, []).append(name)
    return found


def signature(name: str) -> str:
    """The call as it is written on a schedule, without annotations."""
    fn = inspect.signature(inspect.unwrap(PRIMITIVES[name]))
    parameters = [p.replace(annotation=p.empty) for p in list(fn.parameters.values())[1:]]
    return f"sch.{name}({', '.join(map(str, parameters))})"


def section(name: str) -> str:
    """Signature and docstring of a primitive; indented parts of the docstring become code."""
    parts = [f"### {name}", f"```python\n{signature(name)}\n```"]
    text = inspect.getdoc(inspect.unwrap(PRIMITIVES[name])) or ""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("    "):
            picture = textwrap.dedent(_without_indent(paragraph))
            previous = parts[-1]
            if previous.startswith("```\n"):
                parts[-1] = f"{previous[:-4]}\n\n{picture}\n```"
            else:
                parts.append(f"```\n{picture}\n```")
        else:
            parts.append(paragraph)
    return "\n\n".join(parts)


def _without_indent(paragraph: str) -> str:
    """The picture with its arrow, which stands at the margin of the docstring, among the code."""
    return "\n".join(line if line.startswith("    ") or not line else f"    {line}" for line in paragraph.splitlines())


def page() -> str:
    parts = [INTRODUCTION]
    for title, names in families().items():
        parts.append(f"## {title}")
        parts += [section(name) for name in names]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE}: {len(PRIMITIVES)} primitives")
