"""Copies of statements that may stand beside the original: loops, blocks and local buffers of their own."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.schedule.primitives.scopes import replace_buffers
from tilewright.schedule.state import statements
from tilewright.tir.buffer import Buffer
from tilewright.tir.expr import Expr, Let, Var
from tilewright.tir.iter_var import IterVar
from tilewright.tir.node import Node, rewrite, substitute, walk
from tilewright.tir.stmt import Block, For, LetStmt, Stmt


def fresh_copy(stmt: Stmt, block_name: Callable[[str], str]) -> Stmt:
    """stmt with new loop variables, iter vars and let variables, its own copies of the buffers that its blocks
    allocate or view, and blocks called block_name(old name)."""
    variables: dict[Var, Var] = {}
    buffers: dict[Buffer, Buffer] = {}
    for node in walk(stmt):
        if isinstance(node, For):
            variables[node.loop_var] = _like(node.loop_var)
        elif isinstance(node, (IterVar, Let, LetStmt)):
            variables[node.var] = _like(node.var)
    for block in (s for s in statements(stmt) if isinstance(s, Block)):
        for view in block.match_buffers:
            defined = [e for e in (*view.buffer.strides, view.buffer.elem_offset) if isinstance(e, Var)]
            variables.update((v, _like(v)) for v in defined)
            buffers[view.buffer] = view.buffer
        buffers.update((b, b) for b in block.alloc_buffers)

    def own(node: Node) -> Node | None:
        if isinstance(node, Var):
            return variables.get(node)
        if isinstance(node, For):
            return node.replace(loop_var=variables[node.loop_var])
        if isinstance(node, (IterVar, Let, LetStmt)):
            return node.replace(var=variables[node.var])
        if isinstance(node, Block):
            return node.replace(name=block_name(node.name))
        return None

    copied: Stmt = rewrite(stmt, own)
    return replace_buffers(copied, {b: _renamed(b, variables) for b in buffers}) if buffers else copied


def _like(var: Var) -> Var:
    return Var(var.name, var.type)


def _renamed(buffer: Buffer, variables: dict[Var, Var]) -> Buffer:
    def put(e: Any) -> Any:
        return substitute(e, variables) if isinstance(e, Expr) else e

    return buffer.replace(shape=tuple(map(put, buffer.shape)), strides=tuple(map(put, buffer.strides)),
                          elem_offset=put(buffer.elem_offset), data=_like(buffer.data))
