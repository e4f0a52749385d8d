"""Attributes of operators: numbers, integers, flags and words, where a signature says that they are."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.support.errors import described
from tilewright.topi.shapes import check, check_numbers


def checked(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, which refuses an attribute that is not of the type in its signature; numbers of NumPy become Python's."""
    rules = {p.name: _RULES[p.annotation] for p in inspect.signature(f).parameters.values()
             if p.kind is p.KEYWORD_ONLY and p.annotation in _RULES}
    if not rules:
        return f

    @functools.wraps(f)
    def function(*args: Any, **attrs: Any) -> Any:
        return f(*args, **{name: rules[name](f.__name__, name, v) if name in rules else v for name, v in attrs.items()})
    return function


def _number(op: str, name: str, value: Any) -> Any:
    check_numbers(op, **{name: value})
    return value.item() if isinstance(value, np.generic) else value


def _element(op: str, name: str, value: Any) -> Any:
    """A number, or True or False for a tensor of bool."""
    return bool(value) if isinstance(value, (bool, np.bool_)) else _number(op, name, value)


def _integer(op: str, name: str, value: Any) -> int:
    check(isinstance(value, (int, np.integer)) and not isinstance(value, bool), op, f"{name} is {described(value)}, "
          "not an integer")
    return int(value)


def _flag(op: str, name: str, value: Any) -> bool:
    """True or False, also as 1 or 0."""
    check(isinstance(value, (int, np.integer, np.bool_)) and value in (0, 1), op, f"{name} is {described(value)}, not "
          "True or False")
    return bool(value)


def _word(op: str, name: str, value: Any) -> str:
    check(isinstance(value, str), op, f"{name} is {described(value)}, not a string")
    return str(value)


def _or_none(rule: Callable[[str, str, Any], Any]) -> Callable[[str, str, Any], Any]:
    return lambda op, name, value: None if value is None else rule(op, name, value)


_PLAIN: dict[str, Callable[[str, str, Any], Any]] = {"float": _number, "float | bool": _element, "int": _integer,
                                                      "bool": _flag, "str": _word}
_RULES = _PLAIN | {f"{kind} | None": _or_none(rule) for kind, rule in _PLAIN.items()}
