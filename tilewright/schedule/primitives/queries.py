"""Handles of blocks and loops: queries, which a trace records so that the handles that they give can be replayed."""
from __future__ import annotations

from collections.abc import Iterator

from tilewright.schedule.analysis.dataflow import is_output
from tilewright.schedule.primitive import query
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import require
from tilewright.tir.node import sub_statements
from tilewright.tir.stmt import BlockRealize, Stmt


@query
def get_block(sch: Schedule, name: str, func_name: str | None = None) -> BlockRV:
    """The block called name.

    func_name: the function that it is in. Without it: the one that work_on chose, else the one scheduled last, else
    the only one that has such a block.
    """
    require(isinstance(name, str), f"a block is asked for by its name, not by {name!r}")
    if func_name is None and sch.working_on is not None:
        func_name = sch.working_on
    elif func_name is None:
        owners = [f for f in sch.scheduled_functions() if name in sch.block_names(f)]
        func_name = sch.focus if sch.focus in owners or not owners else owners[0]
        require(len(owners) <= 1 or func_name == sch.focus,
                f"functions {', '.join(owners)} have a block {name}", hint="pass func_name")
    _require_kernel(sch, func_name)
    names = sch.block_names(func_name)
    now = sch.current_name(BlockRV(name, func_name))
    require(name in names, f"function {func_name} has no block {name!r}",
            hint=f"it is called {now} now" if now != name else f"its blocks are {', '.join(names)}")
    sch.focus = func_name
    _amend_function(sch, func_name)
    return BlockRV(name, func_name)


def _require_kernel(sch: Schedule, name: str) -> None:
    kernels = sch.scheduled_functions()
    require(isinstance(name, str) and name in kernels, f"the module has no kernel {name!r}",
            hint=f"its kernels are {', '.join(kernels)}")


def _amend_function(sch: Schedule, func_name: str) -> None:
    """Record which of several functions a query is about, whatever earlier queries were about."""
    if len(sch.scheduled_functions()) > 1:
        sch.amend(func_name=func_name)


@query
def get_blocks(sch: Schedule, func_name: str | None = None) -> list[BlockRV]:
    """All blocks of a function except the root, in program order.

    func_name: the function; the one scheduled last without it.
    """
    name = sch.focus if func_name is None else func_name
    _require_kernel(sch, name)
    _amend_function(sch, name)
    return [BlockRV(b, name) for b in sch.block_names(name) if b != "root"]


@query
def get_loops(sch: Schedule, block: BlockRV | str) -> list[LoopRV]:
    """The loops around a block, outermost first."""
    return [sch.loop_rv(loop) for loop in sch.loops_above(sch.realize(block))]


@query
def get_producers(sch: Schedule, block: BlockRV | str) -> list[BlockRV]:
    """The blocks that write a buffer that block reads, in program order, among those in the same enclosing block."""
    return [sch.block_rv(b) for b in sch.producers(sch.realize(block).block.name)]


@query
def get_consumers(sch: Schedule, block: BlockRV | str) -> list[BlockRV]:
    """The blocks that read a buffer that block writes, in program order, among those in the same enclosing block."""
    return [sch.block_rv(b) for b in sch.consumers(sch.realize(block).block.name)]


@query
def get_child_blocks(sch: Schedule, block_or_loop: BlockRV | LoopRV) -> list[BlockRV]:
    """The blocks directly below a loop or block, in program order.

        for i in range(n):
            with block("A"): ...            ->   [A, B]
            with block("B"): ...

    What blocks A and B hold does not count.
    """
    if isinstance(block_or_loop, LoopRV):
        return [sch.block_rv(b) for b in children_blocks(sch.loop(block_or_loop))]
    return [sch.block_rv(b) for b in children_blocks(sch.realize(block_or_loop).block)]


@query
def get_output_blocks(sch: Schedule, scope_block: BlockRV | str) -> list[BlockRV]:
    """The blocks directly below scope_block that write an argument of the function, in program order.

        with block("A"): A[i] = X[i] + 1
        with block("B"): Y[i] = A[i] * 2        ->   [B]

    Y is an argument of the function, A is allocated.
    """
    children = list(children_blocks(sch.realize(scope_block).block))
    return [sch.block_rv(b) for b in children if any(is_output(sch, w.buffer) for w in b.block.writes)]


def children_blocks(stmt: Stmt) -> Iterator[BlockRealize]:
    """The blocks below a statement that lie in no other block below it, in program order."""
    for below in sub_statements(stmt):
        if isinstance(below, BlockRealize):
            yield below
        else:
            yield from children_blocks(below)
