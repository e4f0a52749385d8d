"""Printed IR for people: colours in a terminal and in a notebook, plain text everywhere else; TVM's options."""
from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tilewright.support.errors import ArgumentError, described
from tilewright.support.registry import register_hook
from tilewright.support.views import LIGHT, code_html
from tilewright.tir.node import Node
from tilewright.tir.printer import show

DARK = "ansi_dark"
# Options of TVM's printer that choose between forms of which ours has one: types are always written, nodes that have
# no syntax of their own do not exist, and nothing stands beside the text.
_OF_ONE_FORM = ("show_meta", "verbose_expr", "buffer_dtype", "int_dtype", "float_dtype", "module_alias", "relax_prefix",
                "show_all_struct_info", "syntax_sugar")
_FIXED = {"tir_prefix": "T", "ir_prefix": "I"}


@register_hook("tir.script")
def script(node: Node, name: str | None, options: Mapping[str, Any]) -> str:
    """node as text under TVM's options. Raises ArgumentError for one that would need another text."""
    indent = 4
    for key, value in options.items():
        if key == "indent_spaces":
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(f"indent_spaces is {described(value)}, not a number of spaces")
            indent = value
        elif key in _FIXED and value == _FIXED[key]:
            continue
        elif key not in _OF_ONE_FORM:
            raise ArgumentError(f"script has no option {key}={described(value)}",
                                f"name, indent_spaces; without effect: {', '.join(_OF_ONE_FORM)}")
    if name is not None and not (isinstance(name, str) and name.isidentifier()):
        raise ArgumentError(f"name={described(name)} cannot name a function or a class")
    return "\n".join(_indented(line, indent) for line in show(node, name=name).split("\n"))


def _indented(line: str, indent: int) -> str:
    text = line.lstrip(" ")
    return " " * ((len(line) - len(text)) // 4 * indent) + text


@register_hook("tir.show")
def show_highlighted(node: Node, style: str | None = None, name: str | None = None,
                     options: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Print the script of node: highlighted where standard output is a terminal or a notebook, else as print does."""
    text = script(node, name, options)
    if _in_notebook():
        from IPython.display import HTML, display  # here only where a notebook has it loaded already
        display(HTML(code_html(text, style or LIGHT)))
    elif sys.stdout.isatty():
        from rich.console import Console  # loaded at first use: a program that shows nothing pays nothing
        from rich.syntax import Syntax
        width = max(len(line) for line in text.split("\n"))
        Console(width=max(width, 1), soft_wrap=True).print(
            Syntax(text, "python", theme=style or DARK, background_color="default"))
    else:
        print(text)


@register_hook("tir.html")
def as_html(node: Node, style: str | None = None) -> str:
    """node as HTML with its colours in it."""
    return code_html(str(node), style or LIGHT)


def _in_notebook() -> bool:
    """True in a Jupyter kernel; IPython in a terminal is a terminal."""
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
