"""Modules as LLVM prints them: where functions stand in the text. Patterns are compiled by the first search."""
from __future__ import annotations

import re
from collections.abc import Callable


def in_functions(text: str, changed: Callable[[re.Match[str]], str]) -> str:
    """The module with each function as `changed` gives it."""
    return re.sub(r"(?ms)^define .*?^}", changed, text)


def with_first_line(function: str, line: str) -> str:
    """The function with a line before its first instruction."""
    return re.sub(r'define .*\n(?:(?:"[^"]*"|[\w.$-]+):.*\n)?', lambda start: start[0] + line, function, count=1)
