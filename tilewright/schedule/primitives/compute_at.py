"""Where blocks are computed: a computation moves into a loop."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.analysis import dataflow
from tilewright.schedule.analysis.box_run import box_run
from tilewright.schedule.analysis.iteration import (
    branches_of_its_own,
    narrowed,
    never_runs,
    require_whole_iteration,
)
from tilewright.schedule.analysis.moving import (
    goes_on,
    moved_runs_all,
    require_partition,
    require_reads_result,
    require_same_under_branch,
    require_steps_once,
)
from tilewright.schedule.analysis.ordering import BEFORE, order, require_no_race, require_same_order
from tilewright.schedule.analysis.parts import parts_read, parts_written, precedes
from tilewright.schedule.analysis.required import Place, solve, touched
from tilewright.schedule.outside import outside_of
from tilewright.schedule.primitive import primitive
from tilewright.schedule.primitives.nest import nest
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.scoped import in_scope
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import legal, require
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.buffer import Buffer
from tilewright.tir.shared_work import is_shared
from tilewright.tir.stmt import BlockRealize, For, is_thread_axis, seq


@primitive
@in_scope
def compute_at(sch: Schedule, block: BlockRV, loop: LoopRV, preserve_unit_loops: bool = False, index: int = -1) -> None:
    """Compute, in each iteration of loop, the part of a producer that this iteration needs.

        for i in range(n): B[i] = f(i)
        for io in range(n // 4):
            for ii in range(4): C[io*4 + ii] = B[io*4 + ii]
    ->
        for io in range(n // 4):
            for i in range(4): B[io*4 + i] = f(io*4 + i)
            for ii in range(4): C[io*4 + ii] = B[io*4 + ii]

    The block gets new loops, one for each iter var, over the box of what is needed, and a predicate where that reaches
    beyond its domain. preserve_unit_loops: also make the loops of one iteration. index: the place in the body of loop,
    -1 as late as possible, -2 as early as possible, n >= 0 before statement n. Where sample_compute_location gave a
    place that is no loop, the block stays, or is inlined. In "shared" memory the block computes what all threads of a
    block need, and they do it together: one of them, or each a part where its new loops are bound to their axes.

    A block whose domain is empty may go anywhere.

    Legal when
    - the block computes each element from its inputs alone, for a box of its domain; its reductions are whole, begin
      with the step that starts them, and run each step once, unless all start again;
    - all its producers come before the place;
    - its consumers read what it has written by then, and are below loop, or come after all of what the iterations of
      loop need and that is the whole domain of the block;
    - it goes on to compute all of an output;
    - no block that it would pass writes what it reads or writes;
    - it stays under the conditions that it is under;
    - each iteration of a loop whose iterations run at once writes what it reads of a buffer that is used nowhere else
      then; buffers that it had to itself stay so, or its iterations touch no element that another one writes.
    """
    if _is_no_loop(loop):
        if loop.place == "inlined":
            sch.compute_inline(block)
        return
    target, realize = _movable(sch, block, loop)
    name = realize.block.name
    buffers = [r.buffer for r in realize.block.writes]
    consumers = _consumers(sch, realize)
    outputs = [b.name for b in buffers if dataflow.is_output(sch, b)]
    unread = f"block {name} writes {outputs[0]}, an output of the function, and " if outputs else ""
    require(bool(consumers), f"{unread}nothing reads what block {name} computes", realize,
            hint="reverse_compute_at moves an output to its producers")
    below = [c for c in consumers if dataflow.is_below(sch.index, c, target)]
    outside = [c for c in consumers if not any(c is b for b in below)]
    require(bool(below), f"no consumer of block {name} is below loop {target.loop_var.name}", realize, target,
            hint="choose a loop around a consumer")
    for consumer in below:
        require_reads_result(sch, realize, consumer)
    for consumer in below:
        _require_read_inside(sch, consumer, buffers, target)
    # A producer that comes after the block gives values to later iterations only; require_same_order sees to those.
    earlier = [p for p in _producers(sch, realize) if precedes(sch.index, p, realize)]
    at = _place(earlier, below, index, name, target)
    before, more = sch.index, branches_of_its_own(sch.index, target, realize)
    _move(sch, realize, target, at, below, "writes", preserve_unit_loops)
    if never_runs(sch, realize.block):
        return
    require_same_under_branch(sch, before, realize, sch.realize(name))
    if goes_on(realize):
        require_partition(sch, sch.realize(name), realize, target, more)
    for consumer in outside:
        now = sch.realize(consumer.block.name)
        moved = sch.realize(name)
        apart = branches_of_its_own(sch.index, moved, now) if more else ()
        legal(moved_runs_all(sch, moved, apart) and order(sch, sch.index, moved, now) <= {BEFORE},
              f"block {consumer.block.name} reads {name}'s result and is not below loop {target.loop_var.name}",
              consumer, target, hint="choose a loop around all consumers")
    legal(not outputs or moved_runs_all(sch, sch.realize(name), more),
          f"block {name} would not be shown to compute all of {', '.join(outputs)}, an output of the function", realize,
          hint="reverse_compute_at moves an output to its producers")
    others = [p for p in dataflow.blocks_of(before) if p is not realize]
    writers = {w.block.name for b in buffers for w in dataflow.writers_of(sch, b)}
    require_same_order(sch, before, name, [p for p in others if p.block.name not in writers],
                       ignore=[] if goes_on(realize) else buffers)
    require_same_order(sch, before, name, [p for p in others if p.block.name in writers])
    require_no_race(sch, name)


@primitive
@in_scope
def reverse_compute_at(sch: Schedule, block: BlockRV, loop: LoopRV, preserve_unit_loops: bool = False,
                       index: int = -1) -> None:
    """Run, in each iteration of loop, the part of a consumer whose inputs this iteration has produced.

        for io in range(n // 4):
            for ii in range(4): B[io*4 + ii] = f(io*4 + ii)
        for i in range(n): C[i] = B[i]
    ->
        for io in range(n // 4):
            for ii in range(4): B[io*4 + ii] = f(io*4 + ii)
            for i in range(4): C[io*4 + i] = B[io*4 + i]

    The new loops, preserve_unit_loops, index and places that are no loop are as in compute_at.

    A block whose domain is empty may go anywhere.

    Legal when
    - the block runs for a box of its domain, and its reductions as in compute_at;
    - every producer is below loop or finished before it, and has written what the block reads of it;
    - what the block reads of those below is complete at the place, each time that the block runs there;
    - the parts of the block make up its domain, with steps of a reduction once each, or all again from the first;
    - no block that it would pass touches what it writes or writes what it reads;
    - it stays under the conditions that it is under;
    - each iteration of a loop whose iterations run at once writes what it reads of a buffer that is used nowhere else
      then; buffers that it had to itself stay so, or its iterations touch no element that another one writes.
    """
    if _is_no_loop(loop):
        if loop.place == "inlined":
            sch.reverse_compute_inline(block)
        return
    target, realize = _movable(sch, block, loop)
    name = realize.block.name
    below = [p for p in _producers(sch, realize) if dataflow.is_below(sch.index, p, target)]
    require(bool(below), f"no producer of block {name} is below loop {target.loop_var.name}", realize, target,
            hint="choose a loop around a producer")
    for producer in below:
        require_reads_result(sch, producer, realize)
    at = _place(below, _consumers(sch, realize), index, name, target)
    before, more = sch.index, branches_of_its_own(sch.index, target, realize)
    _move(sch, realize, target, at, below, "reads", preserve_unit_loops)
    if never_runs(sch, realize.block):
        return
    moved = sch.realize(name)
    require_same_under_branch(sch, before, realize, moved)
    require_partition(sch, moved, realize, target, more)
    for producer in below:
        legal(order(sch, sch.index, sch.realize(producer.block.name), moved) <= {BEFORE},
              f"what block {name} reads of block {producer.block.name} is not all computed in one iteration of loop "
              f"{target.loop_var.name}", producer, target, hint="choose an outer loop")
    apart = {id(r) for r in (realize, *below)}
    require_same_order(sch, before, name, [p for p in dataflow.blocks_of(before) if id(p) not in apart])
    require_no_race(sch, name)


def _consumers(sch: Schedule, realize: BlockRealize) -> list[BlockRealize]:
    """The other blocks that read what the block writes."""
    found = {id(r): r for w in realize.block.writes for r in dataflow.readers_of(sch, w.buffer)}
    return [r for r in found.values() if r is not realize]


def _producers(sch: Schedule, realize: BlockRealize) -> list[BlockRealize]:
    """The blocks that write what the block reads."""
    return list({id(r): r for b in dataflow.inputs_of(sch, realize) for r in dataflow.writers_of(sch, b)}.values())


def _is_no_loop(loop: LoopRV) -> bool:
    """True for what sample_compute_location gives where the block is to stay or to be inlined."""
    return isinstance(loop, LoopRV) and bool(loop.place)


def _movable(sch: Schedule, block: BlockRV | str, loop: LoopRV) -> tuple[For, BlockRealize]:
    """The loop and the block, which may be moved as a whole and is not below the loop."""
    target, realize = sch.loop(loop), sch.realize(block)
    require(isinstance(block, str) or block.func == loop.func, f"{block} and {loop} are in different functions")
    name = realize.block.name
    dataflow.require_no_root(sch, realize)
    empty = never_runs(sch, realize.block)
    if not empty:
        dataflow.require_stage(sch, realize, alone=False, starts=False, leaf=False)
    require(not dataflow.is_below(sch.index, realize, target), f"block {name} is below loop {target.loop_var.name} "
            "already", realize, target)
    if not empty:
        require_whole_iteration(sch, realize, target)
        require_steps_once(sch, realize)
        _require_box(sch, realize, target)
    return target, realize


def _require_box(sch: Schedule, realize: BlockRealize, target: For) -> None:
    """The block runs for a box of its domain, which the loops around it but not around target cannot make empty."""
    name, run = realize.block.name, box_run(sch, realize)
    legal(run is not None, f"the loops around block {name} are not shown to run all of its domain, and moved it might "
          "run more", realize)
    if run is None or not run.idle:
        return
    known = sch.analyzer_at(target.body)
    above = [*sch.index.loops_above(target), target]
    known.assume(all_of(*[binary("gt", loop.extent, 0) for loop in above]))
    idle = [v for v, extent in run.idle.items() if not known.prove(binary("gt", extent, 0))]
    legal(not idle, f"block {name} would run where loop {idle[0] if idle else ''} has no iterations", realize)


def _require_read_inside(sch: Schedule, consumer: BlockRealize, buffers: Sequence[Buffer], target: For) -> None:
    """What is read of the buffers on the way to the consumer is read in the body of target."""
    for read in outside_of(sch.index).of(consumer):
        buffer, name = read.region.buffer, target.loop_var.name
        legal(not any(buffer is b for b in buffers) or dataflow.is_below(sch.index, read.place, target),
              f"{buffer.name} is read on the way to block {consumer.block.name}, outside of the body of loop {name}",
              read.place, target, hint="choose an outer loop")


def _place(producers: Sequence[BlockRealize], consumers: Sequence[BlockRealize], index: int, name: str,
           target: For) -> int:
    """The position in the body of target: after all producers and before all consumers that are in it."""
    children = dataflow.children_of(target)
    low = max(dataflow.positions(children, producers), default=-1) + 1
    high = min(dataflow.positions(children, consumers), default=len(children))
    require(low <= high, f"a producer of block {name} comes after one of its consumers in loop {target.loop_var.name}",
            target)
    require(isinstance(index, int) and index >= -2, f"index is {index!r}, not -1 (late), -2 (early) or a position")
    if index < 0:
        return high if index == -1 else low
    require(low <= index <= high, f"position {index} in loop {target.loop_var.name} is not between the block's "
            f"producers and consumers ({low} to {high})", target)
    return index


def _scope(sch: Schedule, target: For, of_all_threads: bool) -> Place:
    """What is known inside target; of_all_threads: whichever thread of a block it is, as if the loops over them were
    inside."""
    above = [*sch.index.loops_above(target), target]
    if of_all_threads:
        above = [loop for loop in above if not is_thread_axis(loop.thread_tag)]
    return Place(sch.analyzer_at(target.body), frozenset(loop.loop_var for loop in above), outside_of(sch.index).lets)


def _move(sch: Schedule, realize: BlockRealize, target: For, at: int, below: Sequence[BlockRealize], kind: str,
          preserve_unit_loops: bool) -> None:
    """Take realize out of its place and put the part of it that goes with the blocks below into the body of target.

    kind "writes": the part that writes what these read; "reads": the part that reads no more than these write.
    """
    filled = kind == "writes" and all(is_shared(r.buffer) for r in realize.block.writes)
    place = _scope(sch, target, of_all_threads=filled)
    parts = [p for r in below for p in (parts_read(sch.index, r) if kind == "writes" else parts_written(r))]
    boxes = touched(sch.index, parts, place)
    block = narrowed(sch, realize, to_move=not never_runs(sch, realize.block))
    domains = solve(block, getattr(block, kind), boxes, place, within=kind == "reads")
    new = nest(block, domains, place.analyzer, preserve_unit_loops)
    sch.remove_stmt(realize)
    now = sch.index.loops[target.loop_var]
    children = dataflow.children_of(now)
    sch.replace(now, now.replace(body=seq([*children[:at], new, *children[at:]])))
