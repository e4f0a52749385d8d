"""Runs loops in order that were to run in another way."""
from __future__ import annotations

from tilewright.lowering.options import PassOptions
from tilewright.support.target import Target
from tilewright.tir.node import Node, rewrite
from tilewright.tir.stmt import SERIAL, UNROLLED, VECTORIZED, For, PrimFunc, Stmt

SERIALIZED = {"vectorize": VECTORIZED, "unroll": UNROLLED}            # pass -> the loops that it does away with


def serialize_loops(func: PrimFunc, options: PassOptions, target: Target) -> PrimFunc:
    """The loops of passes that are disabled are serial."""
    return serial(func, *(kind for name, kind in SERIALIZED.items() if name in options.disable))


def serial(func: PrimFunc, *kinds: str) -> PrimFunc:
    """func whose loops of these kinds are serial."""
    def change(node: Node) -> Node | None:
        return node.replace(kind=SERIAL) if isinstance(node, For) and node.kind in kinds else None

    body = rewrite(func.body, change)
    assert isinstance(body, Stmt)
    return func.with_body(body)
