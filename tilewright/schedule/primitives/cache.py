"""Copies of buffers: a buffer is staged through another one."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.analyzer import Analyzer
from tilewright.schedule.analysis import dataflow
from tilewright.schedule.analysis.iteration import require_whole_iteration
from tilewright.schedule.analysis.legality import check_annotated_loops
from tilewright.schedule.analysis.ordering import feeds, place_in
from tilewright.schedule.analysis.parts import body_reads, loops_within, parts_written, precedes
from tilewright.schedule.analysis.required import touched
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives import caching
from tilewright.schedule.primitives.cache_place import after_writer, apart, before_consumers, insert
from tilewright.schedule.primitives.storage import allocate, require_scope
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.scoped import in_scope
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import legal, require
from tilewright.tir.buffer import Buffer
from tilewright.tir.stmt import seq


@primitive
@in_scope
def cache_read(sch: Schedule, block: BlockRV, read_buffer_index: int | str, storage_scope: str,
               consumer_blocks: Sequence[BlockRV] | None = None) -> BlockRV:
    """Copy what consumers read of a buffer into a new buffer in storage_scope, and let them read that.

        for i in range(n): C[i] = A[i] + 1
    ->
        for i in range(n): A_shared[i] = A[i]
        for i in range(n): C[i] = A_shared[i] + 1

    read_buffer_index: the position among the buffers that block reads, or a name. consumer_blocks: the readers that
    use the copy; all that do not write the buffer, if None. The copy stands before the first of them, and covers the
    box that they read. Returns the copying block, named like the new buffer: the old one's name, `_`, scope.

    Legal when no consumer writes the buffer, every element that the copy reads has been written by then (the elements
    of an argument are), no writer comes between the copy and a consumer, and the iterations of a loop around that run
    at once share no element of the box that one of them writes.
    """
    realize = sch.realize(block)
    dataflow.require_no_root(sch, realize)
    require_scope(storage_scope, realize)
    region = caching.chosen(realize, realize.block.reads, read_buffer_index, "reads")
    source = region.buffer
    consumers = [r for r in dataflow.body_readers_of(sch, source)
                 if r is realize or not dataflow.writes(r.block, source)]
    if consumer_blocks is not None:
        named = caching.same_scope(sch, realize, consumer_blocks)
        for c in named:
            require(any(c is r for r in consumers), f"block {c.block.name} does not read {source.name}", c)
        consumers = [r for r in consumers if any(c is r for c in named)] or [realize]
    for c in consumers:
        legal(not dataflow.writes(c.block, source),
              f"block {c.block.name} writes {source.name} as well as reading it", c)
        caching.require_visible(c, source)
    loops, children, at = before_consumers(sch, source, consumers)
    place = place_in(sch, loops)
    box = touched(sch.index, [part for c in consumers for part in body_reads(c)], place)[source]
    caching.require_written(sch, source, box, consumers, place, children[at])
    name = sch.fresh_block(caching.cache_name(source, storage_scope))
    copy = Buffer(name, source.shape, source.dtype, scope=storage_scope)
    old = sch.index
    new = caching.copy_box(name, source, copy, box, caching.boxes_used(sch, consumers, source), place)
    insert(sch, loops, children, at, new)
    for c in consumers:
        caching.redirect(sch, c, {source: copy})
    allocate(sch, copy)
    caching.require_fresh(sch, old, name, source, consumers)
    writing = {x.loop_var for w in dataflow.writers_of(sch, source) for x in sch.index.loops_above(w)}
    check_annotated_loops(sch, [x.loop_var for x in loops if x.loop_var in writing])      # more is copied than is read
    return sch.block_rv(name)


@primitive
@in_scope
def cache_write(sch: Schedule, block: BlockRV, write_buffer_index: int | str | list[int | str],
                storage_scope: str, consumer_blocks: Sequence[BlockRV] | None = None) -> BlockRV:
    """Let a block, with its reduction, write a new buffer in storage_scope, and copy that to the old one afterwards.

        for i, k in grid(n, m): C[i] = C[i] + A[i, k]
    ->
        for i, k in grid(n, m): C_local[i] = C_local[i] + A[i, k]
        for i in range(n): C[i] = C_local[i]

    write_buffer_index: the position among the buffers that block writes, or a name; or a list of these, of buffers of
    one shape that block stores to at the same indices: one block copies all. `block` goes on to name the computation;
    the copy is returned, named like the first new buffer: the old one's name, `_`, scope. consumer_blocks: readers of
    the buffers that read the new ones instead.

    Legal when
    - the block stores to the buffer at one place, in every iteration, and reads it only as its own partial sum, after
      the step that starts it;
    - no block that writes the buffer comes between two steps of a reduction;
    - a reduction that may have no elements ends before the copy's place;
    - the iterations of a loop inside of the copy's place that run at once share no element of the new buffers;
    - the block has written all that the consumer_blocks read of its buffers by then, for each iteration of the loops
      around both.
    """
    realize = sch.realize(block)
    dataflow.require_stage(sch, realize, alone=False)
    require_scope(storage_scope, realize)
    given = write_buffer_index if isinstance(write_buffer_index, (list, tuple)) else [write_buffer_index]
    require(bool(given), "no buffer is given", realize)
    written = (caching.chosen(realize, realize.block.writes, which, "writes").buffer for which in given)
    sources = list(dict.fromkeys(written))
    source = sources[0]
    point = caching.single_store(realize, source)
    loops, children, at = after_writer(sch, realize, source)
    for other in sources[1:]:
        alike = len(other.shape) == len(source.shape) and all(map(Analyzer().equal, other.shape, source.shape))
        require(alike and dataflow.same_indices(caching.single_store(realize, other), point) and after_writer(
            sch, realize, other)[0] == loops, f"{source.name} and {other.name} are not written and used alike", realize,
            hint="make a copy of each")
    place = place_in(sch, loops)
    require_whole_iteration(sch, realize)
    consumers = caching.same_scope(sch, realize, consumer_blocks)
    for c in consumers:
        read = [b for b in sources if dataflow.reads(c.block, b)]
        require(bool(read), f"block {c.block.name} does not read {source.name}", c)
        for b in read:
            caching.require_visible(c, b)
        legal(precedes(sch.index, realize, c) and feeds(sch, sch.index, realize, c),
              f"block {c.block.name} may read elements of {read[0].name} that block {realize.block.name} has not "
              "written by then", c, realize)
    names = [sch.fresh_block(caching.cache_name(b, storage_scope)) for b in sources]
    copies = [Buffer(name, b.shape, b.dtype, scope=storage_scope) for name, b in zip(names, sources, strict=True)]
    axes = caching.axes_in(realize, point, dataflow.spatial(realize.block))
    new = caching.copy_points(sch, names[0], realize, axes, (copies[0], point), (source, point), place)
    insert(sch, loops, children, at, caching.also_copied(new, list(zip(copies[1:], sources[1:], strict=True))))
    for user in (realize, *consumers):
        caching.redirect(sch, user, dict(zip(sources, copies, strict=True)))
    allocate(sch, *copies)
    check_annotated_loops(sch, loops_within(sch.index, sch.realize(realize.block.name), place.loop_vars))
    return sch.block_rv(names[0])


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
    dataflow.require_leaf(sch, realize)
    require_scope(storage_scope, realize)
    source = caching.chosen(realize, realize.block.reads, read_buffer_index, "reads").buffer
    require(dataflow.writes(realize.block, source), f"block {realize.block.name} reads {source.name} and does not "
            "write it", realize, hint="cache_read makes a copy")
    dataflow.require_not_read_outside(sch, realize, [source])
    require(not source.strides, f"{source.name} has strides of its own", realize)
    loops, children, at = apart(sch, realize, source)
    place = place_in(sch, loops)
    parts = [p for p in (*body_reads(realize), *parts_written(realize)) if p.region.buffer is source]
    box = touched(sch.index, parts, place)[source]
    legal(dataflow.is_output(sch, source) or caching.is_written(sch, source, box, [realize], place, children[at]),
          f"the copy would read elements of {source.name} that may not be written by then", realize)
    names = [sch.fresh_block(caching.cache_name(source, storage_scope))]
    names.append(sch.fresh_block(f"{names[0]}_back"))
    copy = Buffer(names[0], source.shape, source.dtype, scope=storage_scope)
    used = caching.boxes_used(sch, [realize], source, writes_too=True)
    before = caching.copy_box(names[0], source, copy, box, used, place)
    after = caching.copy_box(names[1], copy, source, box, used, place_in(sch, loops))
    insert(sch, loops, [*children[:at], *children[at + 1:]], at, seq([before, children[at], after]))
    caching.redirect(sch, realize, {source: copy})
    sch.add_alloc(copy)
    check_annotated_loops(sch, [loop.loop_var for loop in loops])
    return [sch.block_rv(name) for name in names]
