"""Copies of buffers: a buffer that a block updates is staged through another one."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.analysis.dataflow import (
    is_output,
    require_leaf,
    require_not_read_outside,
    writers_of,
    writes,
)
from tilewright.schedule.analysis.density import fills
from tilewright.schedule.analysis.domains import Interval
from tilewright.schedule.analysis.iteration import beyond_domain, branches_of_its_own
from tilewright.schedule.analysis.legality import check_annotated_loops
from tilewright.schedule.analysis.ordering import place_in
from tilewright.schedule.analysis.parts import body_reads, loops_within, parts_written, precedes
from tilewright.schedule.analysis.required import Place, touched
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.cache_place import apart, insert
from tilewright.schedule.primitives.caching import boxes_used, cache_name, chosen, copy_box, redirect
from tilewright.schedule.primitives.storage import require_scope
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import legal, require
from tilewright.tir.buffer import Buffer
from tilewright.tir.stmt import BlockRealize, seq


@primitive
def cache_inplace(sch: Schedule, block: BlockRV, read_buffer_index: int | str, storage_scope: str) -> list[BlockRV]:
    """Let a block that reads and writes a buffer update a copy in storage_scope, made before and stored afterwards.

        for i, k in grid(n, m): C[i] = C[i] + A[i, k]
    ->
        for i in range(n): C_local[i] = C[i]
        for i, k in grid(n, m): C_local[i] = C_local[i] + A[i, k]
        for i in range(n): C[i] = C_local[i]

    read_buffer_index: the position among the buffers that block reads, or a name. The copies stand in the innermost
    place where no other block that uses the buffer is between them, and cover the box that the block uses there. The
    block may also use the buffer by its address. Returns the copying blocks, the one before the block first, named like
    the new buffer: the old one's name, `_`, scope.

    Legal when the block writes the buffer, every element of the box has been written by then (the elements of an
    argument are), and no iteration of a parallel, vectorized or thread loop outside shares elements of the box.
    """
    realize = sch.realize(block)
    require_leaf(sch, realize)
    require_scope(storage_scope, realize)
    source = chosen(realize, realize.block.reads, read_buffer_index, "reads").buffer
    require(writes(realize.block, source), f"block {realize.block.name} reads {source.name} and does not write it",
            realize, hint="cache_read makes a copy")
    require_not_read_outside(sch, realize, [source])
    require(not source.strides, f"{source.name} has strides of its own", realize)
    loops, children, at = apart(sch, realize, source)
    place = place_in(sch, loops)
    box = touched(sch.index, [*body_reads(realize), *parts_written(realize)], place)[source]
    legal(is_output(sch, source) or _is_written(sch, realize, source, box, place),
          f"the copy would read elements of {source.name} that may not be written by then", realize)
    names = [sch.fresh_block(cache_name(source, storage_scope))]
    names.append(sch.fresh_block(f"{names[0]}_back"))
    copy = Buffer(names[0], source.shape, source.dtype, scope=storage_scope)
    used = boxes_used(sch, [realize], source, writes_too=True)
    before = copy_box(names[0], source, copy, box, used, place)
    after = copy_box(names[1], copy, source, box, used, place_in(sch, loops))
    insert(sch, loops, [*children[:at], *children[at + 1:]], at, seq([before, children[at], after]))
    redirect(sch, realize, {source: copy})
    sch.add_alloc(copy)
    check_annotated_loops(sch, [loop.loop_var for loop in loops])
    return [sch.block_rv(name) for name in names]


def _is_written(sch: Schedule, realize: BlockRealize, buffer: Buffer, box: Sequence[Interval], place: Place) -> bool:
    """True when one block before it writes all of the box."""
    for writer in writers_of(sch, buffer):
        if writer is realize or not precedes(sch.index, writer, realize) or beyond_domain(writer, place.analyzer) \
                or branches_of_its_own(sch.index, writer, realize):
            continue
        inner = loops_within(sch.index, writer, place.loop_vars)
        for region in writer.block.writes:
            if region.buffer is buffer and fills(writer, region, inner, place, box):
                return True
    return False
