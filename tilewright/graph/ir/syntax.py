"""Small forms of Python's syntax in graph functions: texts that are expressions, numbers of a dtype."""
from __future__ import annotations

import ast

from tilewright.runtime.dtypes import dtype_string
from tilewright.support.errors import ArgumentError, GraphError


def is_text(e: ast.expr) -> bool:
    return isinstance(e, ast.Constant) and isinstance(e.value, str)


def scalar(e: ast.expr) -> str:
    """The dtype of T.int64(...)."""
    if isinstance(e, ast.Call) and isinstance(e.func, ast.Attribute) and isinstance(e.func.value, ast.Name):
        if e.func.value.id == "T":
            try:
                return dtype_string(e.func.attr)
            except ArgumentError:
                return ""
    return ""


def unquoted(e: ast.expr) -> ast.expr:
    """The expression in a text that stands for it."""
    if not (isinstance(e, ast.Constant) and isinstance(e.value, str)):
        return e
    try:
        inner = ast.parse(e.value, mode="eval").body
    except SyntaxError:
        raise GraphError(f"{e.value!r} is no expression") from None
    for n in ast.walk(inner):
        ast.copy_location(n, e)
    return inner
