"""What holds of a block that moves to another loop: it runs the same iterations, and its readers see its results."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import dropwhile

from tilewright.schedule.analysis.dataflow import inputs_of, is_output, is_reduction, writers_of
from tilewright.schedule.analysis.domains import domains_of
from tilewright.schedule.analysis.iteration import runs_once
from tilewright.schedule.analysis.mixed_radix import coefficients_of
from tilewright.schedule.analysis.ordering import BEFORE, order
from tilewright.schedule.analysis.region import Region
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.state import Index
from tilewright.support.errors import legal
from tilewright.tir.arithmetic import all_of, binary
from tilewright.tir.conversion import is_const
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import substitute, walk
from tilewright.tir.stmt import SERIAL, UNROLLED, BlockRealize, For, IfThenElse, Stmt, While


def require_reads_result(sch: Schedule, writer: BlockRealize, reader: BlockRealize) -> None:
    """What the reader reads of a buffer the writer has written by then, where another block or the caller may have
    given the buffer other values."""
    result = [b.buffer for b in writer.block.writes]
    sole = [b for b in result if not is_output(sch, b) and len(writers_of(sch, b)) == 1]
    other = [*inputs_of(sch, writer), *(r.buffer for r in reader.block.writes)]
    ignored = [b for b in other if not any(b is x for x in result)]
    legal(order(sch, sch.index, writer, reader, [*sole, *ignored]) <= {BEFORE},
          f"block {reader.block.name} may read an element of {', '.join(b.name for b in result)} before block "
          f"{writer.block.name} writes it", writer, reader)


def require_same_under_branch(sch: Schedule, old: Index, was: BlockRealize, moved: BlockRealize) -> None:
    """Each iteration of the loops outside of an `if` or `while` runs the part of the block that it ran before: in
    another one the condition may give something else."""
    path = old.path_to(was)
    branch = max((k for k, s in enumerate(path) if isinstance(s, (IfThenElse, While))), default=0)
    outside = {s.loop_var for s in path[:branch] if isinstance(s, For)}
    analyzer = sch.analyzer_at(moved)
    for iv, before, now in zip(was.block.iter_vars, was.iter_values, moved.iter_values, strict=True):
        legal(not any(n in outside for e in (before, now) for n in walk(e)) or analyzer.equal(before, now),
              f"block {was.block.name} stands below a condition, and {iv.var.name} would be {now} there instead of "
              f"{before}: an iteration for which the condition holds would run what another one is to run",
              was, path[branch])


def require_steps_once(sch: Schedule, realize: BlockRealize) -> None:
    """Each step of a reduction runs once: of one that starts, once after each start, which what repeats all of its
    loops brings about."""
    block, loops = realize.block, sch.index.loops_above(realize)
    if not is_reduction(block):
        return
    if block.init is not None:
        loops = list(dropwhile(lambda loop: not realize.reduces_over(loop.loop_var), loops))
    numbers = coefficients_of(realize.iter_values, domains_of(loops))
    if not loops or numbers is not None and all(
            is_const(loop.extent, 1) or any(loop.loop_var in n for n in numbers) for loop in loops):
        return                                             # most reductions: nothing is to be proved
    region = Region(sch, loops)
    legal(region.runs_once(next(i for i in region.instances if i.realize is realize)),
          f"the loops from {loops[0].loop_var.name} inwards may run a step of block {block.name}'s reduction twice",
          realize, loops[0])


def goes_on(realize: BlockRealize) -> bool:
    """True for a reduction that another block began."""
    return is_reduction(realize.block) and realize.block.init is None


def moved_runs_all(sch: Schedule, moved: BlockRealize, more: Sequence[Stmt] = ()) -> bool:
    """True when the loops around the moved block run all of its domain, under no condition, of those of `more` that
    have come around it."""
    pairs = moved.bound
    return not more and _idle(sch, moved) is None and runs_once(pairs, sch.index.loops_above(moved), moved.predicate,
                                                   sch.analyzer_at(None))


def _idle(sch: Schedule, moved: BlockRealize) -> For | None:
    """A loop around the moved block that drives none of its axes and may have no iterations though there are outputs.

    A reduction over nothing still has a result, its start.
    """
    analyzer = sch.analyzer_at(None)
    used = {n for value in moved.iter_values for n in walk(value)}
    sizes = [iv.domain.extent for iv in moved.block.iter_vars if iv.iter_type != COMM_REDUCE]
    with analyzer.constraint(all_of(*[binary("gt", size, 0) for size in sizes])):
        return next((loop for loop in sch.index.loops_above(moved) if loop.loop_var not in used
                     and not analyzer.prove(binary("gt", loop.extent, 0))), None)


def require_partition(sch: Schedule, moved: BlockRealize, old: BlockRealize, target: For,
                      more: Sequence[Stmt] = ()) -> None:
    """The iterations of the moved block are those of its domain, under no condition, of those of `more` that have come
    around it; reductions run in one thread, each step once or the whole of them again from the start."""
    legal(not more, f"block {moved.block.name} would run only where a condition holds", *more, old,
          hint="choose a loop outside of the condition")
    name, analyzer, loops = moved.block.name, sch.analyzer_at(None), sch.loops_above(moved)
    used = {n for value in moved.iter_values for n in walk(value)}
    idle = _idle(sch, moved)
    legal(idle is None, f"block {name} would not run where loop {idle.loop_var.name if idle else ''} has no iterations",
          target, old, hint="choose a loop that is known to run")
    pairs = moved.bound
    reductions = [(iv, value) for iv, value in pairs if iv.iter_type == COMM_REDUCE]
    steps = {n for _, value in reductions for n in walk(value)}
    again = not goes_on(moved)                      # running it again changes nothing
    for loop in loops:
        again = again and loop.loop_var not in steps
        unit = analyzer.prove(loop.extent.equal(1)) or again and loop.kind in (SERIAL, UNROLLED)
        legal(unit or loop.loop_var in used,
              f"every iteration of loop {loop.loop_var.name} would run the same part of block {name}", loop, old,
              hint=f"choose a loop outside {loop.loop_var.name}")
    legal(runs_once(pairs, loops, moved.predicate, analyzer),
          f"the parts of block {name} that the iterations of loop {target.loop_var.name} would run overlap or leave "
          "something out", old, target, hint="choose an outer loop")
    for iv, value in reductions:
        begins = moved.block.init is None or analyzer.equal(
            substitute(value, {loop.loop_var: loop.min for loop in loops}), iv.domain.min)
        legal(begins, f"the reduction over {iv.var.name} would not begin at its first step {iv.domain.min}, where "
              f"block {name} initialises", old, target)
    for loop in loops:
        reduces = any(n is loop.loop_var for _, value in reductions for n in walk(value))
        legal(not reduces or loop.kind in (SERIAL, UNROLLED),
              f"the {loop.kind} loop {loop.loop_var.name} would run a reduction of block {name}", loop, old)
