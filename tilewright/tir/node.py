"""The traversals of the IR: children, walk, statements, rewrite, substitute. They read the table of `structure`."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter, is_
from typing import Any

from tilewright.tir.structure import FIELDS, STRUCTURE, N, PerClass
from tilewright.tir.structure import Node as Node

Below = Callable[[Any], Sequence[Any]]


def getter(cls: type, names: Sequence[str], backwards: bool = False) -> Below | None:
    """The function that gives the children of a node of cls in these fields, written out; None for no fields."""
    row, parts = STRUCTURE[cls], []
    for name in names[::-1] if backwards else names:
        if name in row.tuples:
            parts.append(f"*n.{name}[::-1]" if backwards else f"*n.{name}")
        else:
            parts.append(f"*(() if n.{name} is None else (n.{name},))" if name in row.optional else f"n.{name}")
    return eval(f"lambda n: ({', '.join(parts)},)") if parts else None


def _values(names: Sequence[str]) -> Below:
    """The function that gives the values of these fields."""
    return attrgetter(*names) if len(names) > 1 else lambda n: tuple([getattr(n, name) for name in names])


_CHILDREN: PerClass[tuple[str, ...]] = PerClass(lambda cls: STRUCTURE[cls].children)
BELOW: PerClass[Below | None] = PerClass(lambda cls: getter(cls, _CHILDREN[cls]))
_BACKWARDS: PerClass[Below | None] = PerClass(lambda cls: getter(cls, _CHILDREN[cls], backwards=True))
_STATEMENTS: PerClass[Below | None] = PerClass(lambda cls: getter(cls, STRUCTURE[cls].statements))
# The values of the fields that tell a node from others; None for symbols, which are the same as themselves only.
COMPARED: PerClass[Below | None] = PerClass(
    lambda cls: None if STRUCTURE[cls].is_symbol else _values(STRUCTURE[cls].compared))


def field_names(cls: type) -> tuple[str, ...]:
    """Names of all fields of a node class, in order."""
    return FIELDS[cls]


def child_names(cls: type) -> tuple[str, ...]:
    """Names of the fields of a node class that hold its children, in order."""
    return _CHILDREN[cls]


def children(node: Node) -> Sequence[Any]:
    """The direct children of node, in field order."""
    below = BELOW[type(node)]
    return () if below is None else below(node)


def map_children(node: N, fn: Callable[[Any], Any], names: Sequence[str] | None = None) -> N:
    """node with fn applied to every child, or to what these fields hold; node itself when nothing changed."""
    changed: dict[str, Any] = {}
    for name in _CHILDREN[type(node)] if names is None else names:
        old = getattr(node, name)
        if type(old) is tuple:
            new: Any = tuple([fn(x) for x in old])             # not by map, which StopIteration would end
            if not all(map(is_, old, new)):
                changed[name] = new
        elif old is not None:
            new = fn(old)
            if new is not old:
                changed[name] = new
    return node.replace(**changed) if changed else node


def walk(node: Node) -> Iterator[Node]:
    """Yield node and every descendant, parents first, in program order."""
    stack = [node]
    while stack:                                               # not by `children`: this is the hottest loop there is
        top = stack.pop()
        yield top
        below = _BACKWARDS[type(top)]
        if below is not None:
            stack += below(top)


def sub_statements(stmt: Node) -> Sequence[Any]:
    """The statements directly below stmt, in program order."""
    below = _STATEMENTS[type(stmt)]
    return () if below is None else below(stmt)


def statements(stmt: Node) -> Iterator[Any]:
    """stmt and every statement below it, parents first, in program order; no expressions."""
    stack = [stmt]
    while stack:
        top = stack.pop()
        yield top
        stack += sub_statements(top)[::-1]


def same(a: Any, b: Any) -> bool:
    """True when a and b are one expression, written twice perhaps: a symbol is the same as itself only.

    `tir.equal.structural_equal` compares up to the names of what is defined.
    """
    cls = type(a)
    if a is b or cls is not type(b):
        return a is b
    if cls is tuple:
        return len(a) == len(b) and all(map(same, a, b))
    if not isinstance(a, Node):
        return repr(a) == repr(b) if cls is float else bool(a == b)           # -0.0 is not 0.0, NaN is NaN
    values = COMPARED[cls]
    return values is not None and all(map(same, values(a), values(b)))


def rewrite(node: Node, fn: Callable[[Node], Node | None]) -> Any:
    """Rebuild bottom-up: each node becomes fn(node), or stays when fn returns None.

    Shared subtrees are rewritten once. Unchanged nodes come back as the same objects.
    """
    done: dict[int, tuple[Node, Node]] = {}          # holds the old node too, so that ids stay unique

    def visit(old: Node) -> Node:
        seen = done.get(id(old))
        if seen is not None:
            return seen[1]
        new = map_children(old, visit) if BELOW[type(old)] else old
        out = fn(new)
        if out is None:
            out = new
        done[id(old)] = (old, out)
        return out

    return visit(node)


def rewrite_top_down(node: Node, fn: Callable[[Node], Node | None]) -> Any:
    """Replace the topmost nodes for which fn gives a result; descend only where it returns None."""
    def visit(old: Node) -> Node:
        out = fn(old)
        return map_children(old, visit) if out is None else out
    return visit(node)


def substitute(node: N, table: Mapping[Any, Node]) -> N:
    """node with every use of a key (a Var, by identity) replaced by its value."""
    if not table:
        return node
    if not _CHILDREN[type(node)]:
        return table.get(node, node)  # type: ignore[return-value]
    done: dict[int, tuple[Node, Node]] = {}          # as in `rewrite`; what has no children needs no note

    def visit(old: Node) -> Node:
        if not _CHILDREN[type(old)]:
            return table.get(old, old)
        seen = done.get(id(old))
        if seen is not None:
            return seen[1]
        new = map_children(old, visit)
        out = table.get(new, new)
        done[id(old)] = (old, out)
        return out

    return visit(node)  # type: ignore[return-value]
