"""Does a call fit the function that it calls? Told from its form alone."""
from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable
from typing import Any

from tilewright.compat import nodes


def misfit(call: ast.Call, function: Callable[..., Any], method: bool = False) -> str:
    """What is wrong with the arguments of a call of function, and what to write; "" where nothing can be said.

    method: the first parameter is the object. Arguments behind a star are taken to fit.
    """
    signature = _signature(function)
    if signature is None:
        return ""
    parameters = list(signature.parameters.values())[1 if method else 0:]
    signature = signature.replace(parameters=parameters)
    starred = any(isinstance(a, ast.Starred) for a in call.args)
    positional = [] if starred else call.args
    named = {k.arg: k for k in call.keywords if k.arg is not None}
    partly = starred or any(k.arg is None for k in call.keywords)
    try:
        (signature.bind_partial if partly else signature.bind)(*positional, **named)
    except TypeError as why:
        return f"{why}; {_instead(parameters, named)}"
    return ""


def _signature(function: Any) -> inspect.Signature | None:
    """The signature of a function or class; None for one that is not known."""
    if isinstance(function, nodes.Kind):
        function = function.make
    if not (inspect.isroutine(function) or isinstance(function, type)):
        return None
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _instead(parameters: list[inspect.Parameter], named: dict[str, Any]) -> str:
    """What to write: the parameter that a name is near to, or all of them."""
    names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    for name in named:
        near = difflib.get_close_matches(name, names, 1, 0.6) if name not in names else []
        if near:
            return f"did you mean {near[0]}=?"
    return f"the arguments are {', '.join(names)}" if names else "it takes no arguments"
