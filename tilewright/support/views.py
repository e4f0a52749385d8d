"""What objects show of themselves, in a terminal and in a notebook: a title, a short table, and listings of code."""
from __future__ import annotations

from collections.abc import Callable, Sequence

MOST_ROWS = 24                # of a table
MOST_LINES = 200              # of a listing in a notebook
WIDEST = 96                   # characters of a cell, and of a title
LIGHT = "default"             # style of Pygments


class View:
    """A title over a table, whose rows are as long as each other.

    listings: (heading, function that gives the code), for notebooks only.
    """

    def __init__(self, title: str, rows: Sequence[Sequence[str]] = (), columns: Sequence[str] = (),
                 listings: Sequence[tuple[str, Callable[[], object]]] = ()) -> None:
        self.title, self.rows, self.columns, self.listings = title, rows, columns, listings

    def __str__(self) -> str:
        """The title alone, or with the table below it, its columns aligned. Long cells and tables are cut."""
        rows = [[_cut(cell) for cell in row] for row in (*([self.columns] if self.columns else ()), *self._shown())]
        widths = [max(map(len, column)) for column in zip(*rows)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
        return "\n".join([_cut(self.title), *(f"  {line}" for line in (*lines, *self._left_out()))])

    def html(self) -> str:
        """The same as HTML; the first listing is open, the others fold."""
        parts = [f"<p><b>{_escaped(self.title)}</b></p>"]
        if self.rows:
            head = "".join(f"<th>{_escaped(c)}</th>" for c in self.columns)
            body = "".join(f"<tr>{''.join(f'<td>{_escaped(c)}</td>' for c in row)}</tr>" for row in self._shown())
            parts.append(f"<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>")
            parts += [f"<p>{text}</p>" for text in self._left_out()]
        for place, (heading, code) in enumerate(self.listings):
            opened = " open" if place == 0 else ""
            parts.append(f"<details{opened}><summary>{_escaped(heading)}</summary>{code_html(_first(str(code())))}</details>")
        return "\n".join(parts)

    def _shown(self) -> Sequence[Sequence[str]]:
        return self.rows[:MOST_ROWS]

    def _left_out(self) -> list[str]:
        more = len(self.rows) - MOST_ROWS
        return [f"... and {more} more"] if more > 0 else []


class Viewed:
    """An object whose repr and HTML are those of `view()`."""

    def view(self) -> View:
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self.view())

    def _repr_html_(self) -> str:
        return self.view().html()


def counted(number: int, what: str) -> str:
    """ "1 block", "2 blocks" """
    return f"{number} {what}{'' if number == 1 else 's'}"


def readable_bytes(size: float) -> str:
    """A size with three digits in the unit that suits it: 512 B, 1.5 KiB, 20 MiB."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"


def code_html(code: str, style: str = LIGHT) -> str:
    """Python source as HTML with its colours in it."""
    from pygments import highlight  # loaded at first use: a program that shows nothing pays nothing
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer
    return highlight(code, PythonLexer(), HtmlFormatter(noclasses=True, style=style))


def _first(code: str) -> str:
    lines = code.splitlines()
    more = len(lines) - MOST_LINES
    return "\n".join([*lines[:MOST_LINES], f"# ... and {more} more lines"]) if more > 0 else code


def _cut(text: str) -> str:
    line = " ".join(text.split("\n"))
    return line if len(line) <= WIDEST else f"{line[:WIDEST - 3]}..."


def _escaped(text: str) -> str:
    return _cut(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
