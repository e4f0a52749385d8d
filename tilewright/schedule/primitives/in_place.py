"""Where blocks are computed: in the memory of what they read."""
from __future__ import annotations

from tilewright.schedule.analysis.dataflow import (
    blocks_of,
    is_allocated,
    loads_of,
    reads,
    require_not_read_outside,
    same_indices,
    writes,
)
from tilewright.schedule.analysis.density import fills
from tilewright.schedule.analysis.iteration import require_whole_iteration, runs_once
from tilewright.schedule.analysis.legality import check_annotated_loops
from tilewright.schedule.analysis.ordering import BEFORE, order, place_in
from tilewright.schedule.analysis.parts import loops_within
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.caching import chosen
from tilewright.schedule.primitives.dissolving import only_store, require_plain_loads
from tilewright.schedule.primitives.storage import hides
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import BlockRV
from tilewright.support.errors import legal, require
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import const, is_const
from tilewright.tir.equal import structural_equal
from tilewright.tir.node import walk
from tilewright.tir.symbols import replace_buffers


@primitive
def compute_in_place(sch: Schedule, block: BlockRV | str, read_buffer_index: int | str) -> None:
    """Keep a buffer that a block reads element by element where the block writes its results, over it.

        for i in range(n): B[i] = A[i] * 2             for i in range(n): C[i] = A[i] * 2
        for i in range(n): C[i] = B[i] + 1      ->     for i in range(n): C[i] = C[i] + 1

    read_buffer_index: the position among the buffers that block reads, or a name. That buffer vanishes.

    Legal when
    - the function allocates the buffer, of the shape, the dtype and the scope of what the block writes, and neither has
      a layout of its own;
    - the block computes each element of its result once, no reduction, and reads only that element of the buffer;
    - no other block touches the result, and all others have done with an element of the buffer before it is computed.
    """
    realize = sch.realize(block)
    name, store = realize.block.name, only_store(sch, realize)
    new, old = store.buffer, chosen(realize, realize.block.reads, read_buffer_index, "reads").buffer
    require(is_allocated(sch, old), f"{old.name} is no memory of the function's own", realize,
            hint="name a buffer that the function allocates, as an intermediate result is")
    require(_alike(old, new), f"{old.name} and {new.name} are not of one shape, dtype, scope and layout", realize,
            hint="set_scope and unsafe_set_dtype change what a buffer is")
    require(not any(hides(n, b) for n in walk(sch.func.body) for b in (old, new)),
            f"the function uses {old.name} or {new.name} other than by its elements", realize)
    require_plain_loads(realize, old)
    legal(all(same_indices(x.indices, store.indices) for x in loads_of([store.value], old)),
          f"block {name} reads other elements of {old.name} than that of {new.name} which it writes", realize,
          hint="what stands in the place of a result is read there alone")
    others = [r for r in blocks_of(sch.index) if r is not realize and r is not sch.root]
    legal(not any(reads(r.block, new) or writes(r.block, new) for r in others),
          f"{new.name} is used by other blocks than {name}", realize,
          hint="cache_write gives the block a result that is its own")
    loops = sch.index.loops_above(realize)
    require_whole_iteration(sch, realize)
    driving = {n for v in realize.iter_values for n in walk(v)}
    once = all(loop.loop_var in driving or is_const(loop.extent, 1) for loop in loops)
    legal(once and runs_once(realize.bound, loops, realize.predicate, sch.analyzer_at(None)),
          f"the loops around block {name} are not shown to compute each element exactly once", realize)
    whole = [(const(0, d.dtype), d) for d in new.shape]
    legal(fills(realize, realize.block.writes[0], loops_within(sch.index, realize, ()), place_in(sch, []), whole),
          f"block {name} is not shown to write all of {new.name}", realize)
    users = [r for r in others if reads(r.block, old) or writes(r.block, old)]
    for r in (*users, realize):
        require_not_read_outside(sch, r, [old])
    sch.remove_alloc(old)
    sch.set_body(replace_buffers(sch.func.body, {old: new}))
    here = sch.realize(name)
    for r in users:
        there = sch.realize(r.block.name)
        legal(order(sch, sch.index, there, here) <= {BEFORE},
              f"block {r.block.name} may use an element of {old.name} after block {name} has written over it", r,
              realize, hint="compute_at and reorder put it before")
    check_annotated_loops(sch)


def _alike(a: Buffer, b: Buffer) -> bool:
    """True for buffers of which each holds the elements of the other."""
    plain = not any(x.strides or x.axis_separators or x.elem_offset is not None for x in (a, b))
    return plain and a.dtype == b.dtype and a.scope == b.scope and len(a.shape) == len(b.shape) and all(
        map(structural_equal, a.shape, b.shape))
