"""Printed IR for people: colours in a terminal and in a notebook, plain text everywhere else."""
from __future__ import annotations

import sys
from typing import Any

from tilewright.support.registry import register_hook
from tilewright.tir.node import Node

DARK, LIGHT = "ansi_dark", "default"


@register_hook("tir.show")
def show_highlighted(node: Node, style: str | None = None) -> None:
    """Print node: highlighted where standard output is a terminal or a notebook, else as print does."""
    if _in_notebook():
        from IPython.display import HTML, display  # here only where a notebook has it loaded already
        display(HTML(as_html(node, style)))
    elif sys.stdout.isatty():
        from rich.console import Console  # loaded at first use: a program that shows nothing pays nothing
        from rich.syntax import Syntax
        text = str(node)
        width = max(len(line) for line in text.split("\n"))
        Console(width=max(width, 1), soft_wrap=True).print(
            Syntax(text, "python", theme=style or DARK, background_color="default"))
    else:
        print(node)


@register_hook("tir.html")
def as_html(node: Node, style: str | None = None) -> str:
    """node as HTML with its colours in it."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer
    return highlight(str(node), PythonLexer(), HtmlFormatter(noclasses=True, style=style or LIGHT))


def _in_notebook() -> bool:
    """True in a Jupyter kernel; IPython in a terminal is a terminal."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
