"""The names of `tilewright.graph`. `python -m tests.graph.operator_reference` writes them in docs/graphs.md."""
from __future__ import annotations

import inspect
from pathlib import Path

from tests.schedule.reference import first_sentence
from tilewright import graph  # noqa: F401  (its modules fill the table)
from tilewright.graph import vocabulary

PAGE = Path(__file__).parents[2] / "docs" / "graphs.md"
BEGIN, END = "<!-- operators: begin -->\n", "<!-- operators: end -->\n"


def call(thing: object) -> str:
    """NAME(parameters), without types; of a class those that a user gives."""
    parameters = [p.replace(annotation=p.empty) for p in inspect.signature(thing).parameters.values()]  # type: ignore
    return f"{thing.__name__}{inspect.Signature(parameters)}"  # type: ignore[attr-defined]


def families() -> dict[str, list[object]]:
    """{module below `tilewright.graph`: what it adds}."""
    out: dict[str, list[object]] = {}
    for thing in vocabulary.NAMES.values():
        out.setdefault(thing.__module__.removeprefix("tilewright.graph."), []).append(thing)
    return dict(sorted(out.items()))


def section() -> str:
    lines = ["| call | gives | file |", "| --- | --- | --- |"]
    for family, things in families().items():
        for thing in things:
            text = first_sentence(inspect.getdoc(thing) or "").rstrip(".").replace("|", "&#124;")
            lines.append(f"| `{call(thing).replace('|', '&#124;')}` | {text} | `{family}` |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The text of the page with the section as it is now."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + section() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    print(f"{PAGE}: {len(vocabulary.NAMES)} names")
