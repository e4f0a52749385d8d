"""Questions about expressions, answered in one quick pass: code generation asks them for every access."""
from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

from tilewright.tir.buffer import Load
from tilewright.tir.expr import Binary, Broadcast, Call, Cast, Expr, FloatImm, IntImm, Ramp, Var
from tilewright.tir.node import Node, children

# The children of the most frequent nodes; `children` serves the rest.
_CHILDREN: dict[type, Callable[[Any], tuple[Node, ...]]] = {
    Binary: lambda e: (e.a, e.b), IntImm: lambda e: (), FloatImm: lambda e: (), Var: lambda e: (),
    Broadcast: lambda e: (e.value,), Ramp: lambda e: (e.base, e.stride), Cast: lambda e: (e.value,),
}


def _others(node: Node) -> tuple[Node, ...]:
    return tuple(children(node))


def nodes(root: Node) -> Iterator[Any]:
    """root and its descendants, parents first, in program order."""
    stack = [root]
    while stack:
        top = stack.pop()
        yield top
        below = _CHILDREN.get(type(top), _others)(top)
        if below:
            stack.extend(below[::-1])


def reads_memory(e: Expr) -> bool:
    """True when evaluating e reads memory or calls a function, so that it must not happen where e is not asked for."""
    kind = type(e)
    if kind is IntImm or kind is Var or kind is FloatImm:
        return False
    if kind is Load or kind is Call:
        return True
    return any(reads_memory(c) for c in _CHILDREN.get(kind, _others)(e))  # type: ignore[arg-type]


def depends_on_data(e: Expr, dependent: Container[Var]) -> bool:
    """True when nothing is known of e's range: it has a value from a buffer, from an external function or of one of
    the variables `dependent`, or asks for a check.
    """
    kind = type(e)
    if kind is IntImm or kind is FloatImm:
        return False
    if kind is Var:
        return e in dependent
    if kind is Load or kind is Call and e.op in ("call_extern", "call_packed", "checked_index"):  # type: ignore[attr-defined]
        return True
    return any(depends_on_data(c, dependent) for c in _CHILDREN.get(kind, _others)(e))  # type: ignore[arg-type]
