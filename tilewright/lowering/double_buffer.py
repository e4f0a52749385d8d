"""Turns blocks annotated as double-buffered into software pipelines of two stages."""
from __future__ import annotations

from typing import Any

from tilewright.lowering.software_pipeline import STAGE, annotated_steps
from tilewright.support.errors import LowerError
from tilewright.tir.node import map_children, walk
from tilewright.tir.stmt import Allocate, Block, For, PrimFunc, Seq, Stmt

DOUBLE_BUFFER = "double_buffer_scope"


def lower_double_buffers(func: PrimFunc) -> PrimFunc:
    """No block is annotated with double_buffer_scope: the loop around it is a software pipeline.

    Its first stage is the statement that holds the annotated block, its second the others: the block of the next
    iteration runs before what reads its result in this one, and the buffer has two versions. Raises LowerError for a
    block that no loop repeats beside another statement.
    """
    if not any(isinstance(n, Block) and DOUBLE_BUFFER in n.annotations for n in walk(func.body)):
        return func
    body = _visit(func.body)
    for n in walk(body):
        if isinstance(n, Block) and DOUBLE_BUFFER in n.annotations:
            raise LowerError(
                f"block {n.name} is annotated with {DOUBLE_BUFFER}, and no loop runs it beside another statement",
                "compute it at the loop that should load ahead")
    return func.with_body(body)


def _visit(node: Any) -> Any:
    """Pipelines are made at the innermost loop whose body has several statements."""
    new = map_children(node, lambda n: _visit(n) if isinstance(n, Stmt) else n)
    if not isinstance(new, For) or STAGE in new.annotations:
        return new
    body: Stmt = new.body
    while isinstance(body, Allocate):
        body = body.body
    if not isinstance(body, Seq):
        return new
    stages = [0 if _loads_ahead(s) else 1 for s in body.stmts]
    if 0 not in stages:
        return new
    rest = _without_marks(new.body)
    return new.replace(body=rest, annotations={**new.annotations, **annotated_steps(stages)})


def _loads_ahead(stmt: Stmt) -> bool:
    return any(isinstance(n, Block) and DOUBLE_BUFFER in n.annotations for n in walk(stmt))


def _without_marks(node: Any) -> Any:
    new = map_children(node, lambda n: _without_marks(n) if isinstance(n, Stmt) else n)
    if isinstance(new, Block) and DOUBLE_BUFFER in new.annotations:
        return new.replace(annotations={k: v for k, v in new.annotations.items() if k != DOUBLE_BUFFER})
    return new
