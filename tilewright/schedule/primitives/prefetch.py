"""How loops run: memory is asked for before it is needed."""
from __future__ import annotations

from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.caching import chosen
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import require
from tilewright.tir.stmt import SERIAL, UNROLLED


@primitive
def prefetch(sch: Schedule, block: BlockRV | str, read_buffer_index: int | str, loop: LoopRV,
             offset: int = 1, spread: bool = False) -> None:
    """Ask, in each iteration of a loop, for the memory that a block reads some iterations later.

        for i in range(n): B[...] = A[f(i)]
    ->
        for i in range(n):
            T.prefetch(A[f(i + offset)])          # one request per cache line, while i + offset < n
            B[...] = A[f(i)]

    read_buffer_index: the position among the buffers that block reads, or a name. offset: how many iterations later.
    spread: where an iteration reads the buffer in the steps of a loop, the last such loop asks step by step, not all at
    the start: a CPU keeps only some tens of requests at a time.
    The requests are written out when the function is lowered, for the whole region of the buffer that an iteration of
    the loop reads. They have no effect on what is computed.

    Legal when the loop is serial or unrolled and stands around the block, and the offset is positive and not asked for
    already.
    """
    realize = sch.realize(block)
    region = chosen(realize, realize.block.reads, read_buffer_index, "reads")
    old = sch.loop(loop)
    require(any(old is above for above in sch.path_to(realize)),
            f"loop {old.loop_var.name} is not around block {realize.block.name}", old, realize)
    require(old.kind in (SERIAL, UNROLLED), f"loop {old.loop_var.name} is {old.thread_tag or old.kind}: its iterations "
            "have no order in which one is later", old, hint="prefetch at a serial loop inside of it")
    require(isinstance(offset, int) and offset > 0, f"the offset {offset} is not a positive number of iterations", old)
    wanted = [region.buffer.name, offset, *["spread"] * spread]
    earlier = list(old.annotations.get("prefetch", []))
    require(all(e[:2] != wanted[:2] for e in earlier),
            f"loop {old.loop_var.name} prefetches {wanted[0]} that far ahead already", old)
    sch.replace(old, old.replace(annotations={**old.annotations, "prefetch": [*earlier, wanted]}))
