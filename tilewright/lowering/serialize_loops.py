"""Runs loops in order that were to run in another way."""
from __future__ import annotations

from tilewright.lowering.options import PassOptions
from tilewright.support.errors import LowerError, with_hint
from tilewright.support.target import Target
from tilewright.tir import dtype as dt
from tilewright.tir.expr import Expr
from tilewright.tir.node import Node, rewrite, walk
from tilewright.tir.printer import show
from tilewright.tir.stmt import SERIAL, UNROLLED, VECTORIZED, For, PrimFunc, Stmt

SERIALIZED = {"vectorize": VECTORIZED, "unroll": UNROLLED}            # pass -> the loops that it does away with


def serialize_loops(func: PrimFunc, options: PassOptions, target: Target) -> PrimFunc:
    """The loops of passes that are disabled are serial."""
    return serial(func, *(kind for name, kind in SERIALIZED.items() if name in options.disable))


def serialize_vectors(func: PrimFunc) -> PrimFunc:
    """Nothing is a vector: loops that were to be vectors are serial. Raises LowerError for vectors of the program."""
    vector = next((n for n in walk(func.body) if isinstance(n, Expr) and dt.lanes_of(n.dtype) > 1), None)
    if vector is not None:
        raise LowerError(with_hint(f"{func.name}: {vector} is a vector, and the target has none\n\n"
                                   f"{show(func, (vector,))}", "write a loop over its elements"))
    return serial(func, VECTORIZED)


def serial(func: PrimFunc, *kinds: str) -> PrimFunc:
    """func whose loops of these kinds are serial."""
    def change(node: Node) -> Node | None:
        return node.replace(kind=SERIAL) if isinstance(node, For) and node.kind in kinds else None

    body = rewrite(func.body, change)
    assert isinstance(body, Stmt)
    return func.with_body(body)
