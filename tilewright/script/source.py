"""Errors of scripts: file and line, the line itself, a caret under the column, a hint."""
from __future__ import annotations

import ast
from dataclasses import dataclass

from tilewright.support.errors import ScriptError

MOST_COLUMNS = 160         # of a line that an error shows
TOO_DEEP = ("this is nested too deeply for Python's own stack", "give parts of it names: x = A[i] + B[i]")


@dataclass(frozen=True)
class Source:
    """The text that is parsed: `lines` of `filename` from line `first` on; `indent` columns were cut from each."""
    filename: str
    lines: tuple[str, ...]
    first: int = 1
    indent: int = 0

    def error(self, node: ast.AST, message: str, hint: str = "") -> ScriptError:
        """The error at node: its place, its line and a caret under its first column."""
        row, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        line = self.lines[row - 1].rstrip("\n") if row <= len(self.lines) else ""
        cut = line[self.indent:] if not line[:self.indent].strip() else line
        column = len(cut.encode()[:column].decode(errors="ignore"))         # ast counts bytes
        if getattr(node, "end_lineno", None) in (None, row):
            end = getattr(node, "end_col_offset", None)
            width = len(cut.encode()[:end].decode(errors="ignore")) - column if end else 1
        else:
            width = len(cut.rstrip()) - column
        shown, column = _clipped(cut.expandtabs(1), column)
        text, _, own_hint = message.partition("\n\nhint: ")
        where = f"{self.filename}:{self.first + row - 1}"
        caret = " " * column + "^" * max(1, min(width, len(shown) - column))
        error = ScriptError(f"{where}: {text}\n\n    {shown}\n    {caret}", hint or own_hint)
        error.placed = True
        return error


def _clipped(line: str, column: int) -> tuple[str, int]:
    """The part of a long line around a column, and where the column is in it."""
    if len(line) <= MOST_COLUMNS:
        return line, column
    start = max(0, min(column - MOST_COLUMNS // 4, len(line) - MOST_COLUMNS))
    before, after = "..." if start else "", "..." if start + MOST_COLUMNS < len(line) else ""
    return before + line[start:start + MOST_COLUMNS] + after, column - start + len(before)
