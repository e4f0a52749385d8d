"""The table of passes in docs/architecture.md: `python -m tests.lowering.pass_table` writes it from the list."""
from __future__ import annotations

from pathlib import Path

from tilewright.lowering.passes import CPU

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
BEGIN, END = "<!-- passes: begin -->", "<!-- passes: end -->"


def table() -> str:
    """A row for each pass: name, form of the result, when it runs if not always, what holds of the result."""
    rows = [f"| `{p.name}` | {p.stage} | {', '.join(p.conditions)} | {p.result.replace('|', '&#124;')} |" for p in CPU]
    return "\n".join(["| pass | result | runs | then |", "| --- | --- | --- | --- |", *rows])


def page() -> str:
    """The page with the table of today between its marks."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"{PAGE}: {len(CPU)} passes")
