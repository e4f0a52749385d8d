"""`tvm.tir.stmt_functor`: visits and rewrites of loops with TVM's calling conventions."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright import tir
from tilewright.compat.node_json import load_json, save_json
from tilewright.compat.nodes import OPERATORS
from tilewright.support.errors import ArgumentError, nearest
from tilewright.tir import Node, PrimFunc, children, map_children

TYPES: dict[str, Any] = {
    **{f"tir.{name}": kind for name, kind in OPERATORS.items()},
    **{f"tir.{name}": getattr(tir, name) for name in (
        "Var", "For", "While", "IfThenElse", "LetStmt", "Evaluate", "Allocate", "Block", "BlockRealize", "Select",
        "Cast", "Call", "Let", "Ramp", "Broadcast", "Shuffle", "Not", "IntImm", "FloatImm", "StringImm", "PrimFunc")},
    "tir.BufferLoad": tir.Load, "tir.BufferStore": tir.Store, "tir.SeqStmt": tir.Seq, "IntImm": tir.IntImm,
    "FloatImm": tir.FloatImm, "tir.Load": tir.Load, "tir.Store": tir.Store,
}


def post_order_visit(stmt: Node, fvisit: Callable[[Any], Any]) -> None:
    """fvisit(node) for every node, children first, each object once."""
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if id(node) in seen:
            return
        seen.add(id(node))
        for child in children(node):
            visit(child)
        fvisit(node)

    visit(stmt)


def pre_order_visit(stmt: Node, fvisit: Callable[[Any], Any]) -> None:
    """fvisit(node) for every node, parents first; where it gives False the children are left out."""
    stack = [stmt]
    while stack:
        node = stack.pop()
        if fvisit(node) is not False:
            stack.extend(reversed(list(children(node))))


def ir_transform(stmt: Any, preorder: Callable[[Any], Any] | None, postorder: Callable[[Any], Any] | None,
                 only_enable: Sequence[str] | None = None) -> Any:
    """stmt rewritten.

    What preorder gives for a node replaces it, and is not visited; after None the children are visited, and what
    postorder then gives replaces the node (None: it stays). only_enable: names of the types that are offered, such as
    "tir.For" (TVM up to 0.6: "For"). Raises ArgumentError for a name that there is not.
    """
    kinds = tuple(map(_kind, only_enable or ()))

    def offered(node: Node) -> bool:
        return not kinds or any(isinstance(node, k) for k in kinds)

    def visit(node: Node) -> Node:
        if preorder is not None and offered(node):
            made = preorder(node)
            if made is not None:
                return _node(made)
        node = map_children(node, visit)
        made = postorder(node) if postorder is not None and offered(node) else None
        return node if made is None else _node(made)

    return visit(stmt)


def substitute(node: Any, vmap: Mapping[Any, Any]) -> Any:
    """node with every variable of vmap replaced by its value."""
    return tir.substitute(node, {v: tir.convert(x) for v, x in vmap.items()})


def renew_defs(func: PrimFunc) -> PrimFunc:
    """func with variables, buffers and blocks of its own, structurally equal to func."""
    out: PrimFunc = load_json(save_json(func))
    return out


def _kind(name: str) -> Any:
    for known in (name, f"tir.{name}"):
        if known in TYPES:
            return TYPES[known]
    raise ArgumentError(f"ir_transform: only_enable has {name!r}, which is no type of node here",
                        nearest(str(name), TYPES) or f"the types are {', '.join(TYPES)}")


def _node(made: Any) -> Node:
    if not isinstance(made, Node):
        raise ArgumentError(f"ir_transform: a visitor gives {made!r}, neither None nor a node")
    return made
