"""Runs loops in order that were to run in another way."""
from __future__ import annotations

from tilewright.tir.node import Node, rewrite
from tilewright.tir.stmt import SERIAL, UNROLLED, VECTORIZED, For, PrimFunc, Stmt


def serial_vectorized(func: PrimFunc) -> PrimFunc:
    """No vectorised loops are left: they are serial."""
    return serial_loops(func, VECTORIZED)


def serial_unrolled(func: PrimFunc) -> PrimFunc:
    """No unrolled loops are left: they are serial."""
    return serial_loops(func, UNROLLED)


def serial_loops(func: PrimFunc, *kinds: str) -> PrimFunc:
    """func whose loops of these kinds are serial."""
    def change(node: Node) -> Node | None:
        return node.replace(kind=SERIAL) if isinstance(node, For) and node.kind in kinds else None

    body = rewrite(func.body, change)
    assert isinstance(body, Stmt)
    return func.with_body(body)
