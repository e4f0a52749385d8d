"""The base class of the IR and the only traversals: walk, rewrite and substitute."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from operator import is_
from typing import Any, TypeVar

from tilewright.support.registry import hook

N = TypeVar("N", bound="Node")

# A field is a child when its annotation says that it holds IR that is evaluated or executed here.
# Fields annotated `Var` or `Buffer` are symbols: definitions and references that traversals leave alone.
_CHILD_TYPES = {
    "Expr", "Stmt", "Range", "Block", "IterVar", "BufferRegion",
    "Expr | None", "Stmt | None", "IterVar | None", "Range | None",
    "tuple[Expr, ...]", "tuple[Stmt, ...]", "tuple[Range, ...]", "tuple[IterVar, ...]",
    "tuple[BufferRegion, ...]", "tuple[MatchBuffer, ...]",
}


class FieldNames(dict[type, tuple[str, ...]]):
    """Names of fields of each class; `choose` finds those of a class that is asked for the first time."""
    __slots__ = ("choose",)

    def __init__(self, choose: Callable[[type], Iterable[str]]) -> None:
        self.choose = choose

    def __missing__(self, cls: type) -> tuple[str, ...]:
        found = self[cls] = tuple(self.choose(cls))
        return found


_FIELDS = FieldNames(lambda cls: [f.name for f in fields(cls)])
_CHILDREN = FieldNames(lambda cls: [f.name for f in fields(cls) if f.type in _CHILD_TYPES])
_WALKED = FieldNames(lambda cls: _CHILDREN[cls][::-1])             # last child first


def field_names(cls: type) -> tuple[str, ...]:
    """Names of all fields of a node class, in order."""
    return _FIELDS[cls]


def child_names(cls: type) -> tuple[str, ...]:
    """Names of the fields of a node class that hold its children, in order."""
    return _CHILDREN[cls]


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """An IR node. Immutable by agreement: nothing assigns to a field after construction.

    `hash` is by identity; compare structure with `tir.equal.structural_equal`.
    """

    def replace(self: N, **changed: Any) -> N:
        """A copy with some fields changed."""
        cls = type(self)
        return cls(*[changed[k] if k in changed else getattr(self, k) for k in _FIELDS[cls]])

    def same_as(self, other: object) -> bool:
        return self is other

    def __str__(self) -> str:
        return hook("tir.print")(self)

    def __repr__(self) -> str:
        return hook("tir.print")(self)


def children(node: Node) -> Iterator[Node]:
    """The direct children of node, in field order."""
    for name in _CHILDREN[type(node)]:
        value = getattr(node, name)
        if type(value) is tuple:
            yield from value
        elif value is not None:
            yield value


def map_children(node: N, fn: Callable[[Node], Any]) -> N:
    """node with fn applied to every child; node itself when nothing changed."""
    changed: dict[str, Any] = {}
    for name in _CHILDREN[type(node)]:
        old = getattr(node, name)
        if type(old) is tuple:
            new: Any = tuple(map(fn, old))
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
        for name in _WALKED[type(top)]:
            value = getattr(top, name)
            if type(value) is tuple:
                stack.extend(value[::-1])
            elif value is not None:
                stack.append(value)


def rewrite(node: Node, fn: Callable[[Node], Node | None]) -> Any:
    """Rebuild bottom-up: each node becomes fn(node), or stays when fn returns None.

    Shared subtrees are rewritten once. Unchanged nodes come back as the same objects.
    """
    done: dict[int, tuple[Node, Node]] = {}          # holds the old node too, so that ids stay unique

    def visit(old: Node) -> Node:
        seen = done.get(id(old))
        if seen is not None:
            return seen[1]
        new = map_children(old, visit) if _CHILDREN[type(old)] else old
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
