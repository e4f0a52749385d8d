"""Copies of buffers: what the iterations of a loop touch is staged through another one."""
from __future__ import annotations

from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.annotations import annotate
from tilewright.schedule.primitives.blockize import blockize
from tilewright.schedule.primitives.cache import cache_read, cache_write
from tilewright.schedule.primitives.compute_at import compute_at, reverse_compute_at
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV, LoopRV

AUTO_COPY = "auto_copy"


@primitive
def read_at(sch: Schedule, loop: LoopRV, block: BlockRV, read_buffer_index: int | str, storage_scope: str) -> BlockRV:
    """Copy, in each iteration of loop, the part of a buffer that a block below it reads then, and let it read that.

        for io in range(n // 4):
            for ii in range(4): C[io*4 + ii] = A[io*4 + ii] + 1
    ->
        for io in range(n // 4):
            with block("A_shared_o"):                     # of all that the iteration reads
                for i in range(4): A_shared[io*4 + i] = A[io*4 + i]
            for ii in range(4): C[io*4 + ii] = A_shared[io*4 + ii] + 1

    cache_read of that one consumer, compute_at, and blockize of the copy, which is annotated with "auto_copy" and
    returned. read_buffer_index and storage_scope are those of cache_read.

    Legal when these are.
    """
    copy = cache_read(sch, block, read_buffer_index, storage_scope, [block])
    compute_at(sch, copy, loop, preserve_unit_loops=True)
    return _as_copy(sch, copy, loop)


@primitive
def write_at(sch: Schedule, loop: LoopRV, block: BlockRV, write_buffer_index: int | str, storage_scope: str) -> BlockRV:
    """Let a block below loop write a new buffer, and copy, at the end of each iteration of loop, what it wrote then.

        for io in range(n // 4):
            for ii in range(4): C[io*4 + ii] = A[io*4 + ii] + 1
    ->
        for io in range(n // 4):
            for ii in range(4): C_shared[io*4 + ii] = A[io*4 + ii] + 1
            with block("C_shared_o"):                     # of all that the iteration wrote
                for i in range(4): C[io*4 + i] = C_shared[io*4 + i]

    cache_write, reverse_compute_at, and blockize of the copy, which is annotated with "auto_copy" and returned.
    write_buffer_index and storage_scope are those of cache_write.

    Legal when these are.
    """
    copy = cache_write(sch, block, write_buffer_index, storage_scope)
    reverse_compute_at(sch, copy, loop, preserve_unit_loops=True)
    return _as_copy(sch, copy, loop)


def _as_copy(sch: Schedule, copy: BlockRV, loop: LoopRV) -> BlockRV:
    """The loops of the copy below loop as one block, with the annotation."""
    loops = [sch.loop_rv(x) for x in sch.loops_above(copy)]
    inner = loops[loops.index(loop) + 1:]
    whole = blockize(sch, inner[0] if inner else [copy])          # no loop: a buffer of no dimensions
    annotate(sch, whole, AUTO_COPY, True)
    return whole
