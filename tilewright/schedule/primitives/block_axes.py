"""Primitives on the place and the axes of blocks: child and output blocks, order of iter vars, unit loops."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.schedule.analysis.dataflow import is_output
from tilewright.schedule.primitive import primitive, query
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import described, require
from tilewright.tir.expr import IntImm, Var
from tilewright.tir.node import sub_statements
from tilewright.tir.stmt import SERIAL, BlockRealize, For, Stmt


def children_blocks(stmt: Stmt) -> Iterator[BlockRealize]:
    """The blocks below a statement that lie in no other block below it, in program order."""
    for below in sub_statements(stmt):
        if isinstance(below, BlockRealize):
            yield below
        else:
            yield from children_blocks(below)


@query
def get_child_blocks(sch: Schedule, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
    """The blocks directly below a loop or block, in program order.

        for i in range(n):
            with block("A"): ...            ->   [A, B]: what blocks A and B hold does not count
            with block("B"): ...
    """
    if isinstance(block_or_loop, LoopRV):
        return [sch.block_rv(b) for b in children_blocks(sch.loop(block_or_loop))]
    return [sch.block_rv(b) for b in children_blocks(sch.realize(block_or_loop).block)]


@query
def get_output_blocks(sch: Schedule, scope_block: BlockRV | str) -> list[BlockRV]:
    """The blocks directly below scope_block that write an argument of the function, in program order.

        with block("A"): A[i] = X[i] + 1    # A is allocated by the function
        with block("B"): Y[i] = A[i] * 2    # Y is its argument        ->   [B]
    """
    children = list(children_blocks(sch.realize(scope_block).block))
    return [sch.block_rv(b) for b in children if any(is_output(sch, w.buffer) for w in b.block.writes)]


@primitive
def reorder_block_iter_var(sch: Schedule, block: BlockRV | str, new_order: Sequence[int]) -> None:
    """List the iter vars of a block in another order.

        with block("C"):                             with block("C"):
            vi = axis.spatial(n, i)         ->           vk = axis.reduce(m, k)        # new_order: [1, 0]
            vk = axis.reduce(m, k)                       vi = axis.spatial(n, i)

    new_order: the old places, in the new order. The order decides in which order compute_at, reverse_compute_at and
    cache_* make the loops of a block that they move or copy.

    Legal when new_order has each place once; the iterations run as before.
    """
    realize = sch.realize(block)
    old, count = realize.block, len(realize.block.iter_vars)
    fine = isinstance(new_order, (list, tuple)) and all(type(k) is int for k in new_order)
    require(fine and sorted(new_order) == list(range(count)),
            f"new_order is {described(new_order)}, not a permutation of the {count} iter vars of block {old.name}",
            realize, hint=f"the places are 0 to {count - 1}")
    new = old.replace(iter_vars=tuple(old.iter_vars[k] for k in new_order))
    sch.replace(realize, realize.replace(iter_values=tuple(realize.iter_values[k] for k in new_order), block=new))


@primitive
def add_unit_loop(sch: Schedule, block_or_loop: BlockRV | LoopRV) -> LoopRV:
    """Put a loop of one iteration around a block or loop.

        with block("C"): ...        ->      for u in range(1):
                                                with block("C"): ...

    Returns the new loop, which can be bound, or be the place of a compute_at.

    Legal when the block is not the root block.
    """
    old: Stmt = sch.loop(block_or_loop) if isinstance(block_or_loop, LoopRV) else sch.realize(block_or_loop)
    require(old is not sch.root, "the root block has no loops", hint="name a block inside it")
    var = Var("u", "int32")
    sch.replace(old, For(var, IntImm(0), IntImm(1), SERIAL, old))
    return LoopRV(var, sch.focus)
