"""What a reduction needs to start is there where it starts, which is ahead of its loops where it has no elements."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.analysis.dataflow import writes
from tilewright.schedule.analysis.iteration import beyond_domain, is_plain, runs_once
from tilewright.schedule.outside import outside_of
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import legal
from tilewright.tir.accesses import uses_below
from tilewright.tir.arithmetic import binary, conjuncts
from tilewright.tir.buffer import Buffer
from tilewright.tir.conversion import is_const
from tilewright.tir.empty_reductions import left_by_start, speaks_of
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import statements, walk
from tilewright.tir.stmt import BlockRealize, For, IfThenElse


def require_starts(sch: Schedule) -> None:
    """Refuse where a reduction that may have no elements starts from what is written inside of its loops, or where that
    decides which elements it starts."""
    for realize in sch.index.realizes.values():
        init = realize.block.init
        if init is None or not _may_be_empty(sch, realize):
            continue
        read = [u.buffer for u in uses_below(init) if u.reads and u.buffer is not None]
        read += [r.region.buffer for r in outside_of(sch.index).of(realize)]
        for steps in [loop for loop in sch.index.loops_above(realize) if realize.reduces_over(loop.loop_var)][:1]:
            for buffer in dict.fromkeys(read):
                inside = [s for s in statements(steps) if isinstance(s, BlockRealize) and s is not realize
                          and writes(s.block, buffer)]
                legal(not inside, f"block {realize.block.name} starts its reduction with {buffer.name}, also where "
                      f"loop {steps.loop_var.name} has no iterations, and it is written inside of that", realize,
                      *inside, hint="choose a loop around the reduction")


def require_known_starts(sch: Schedule, nest: Sequence[For]) -> None:
    """Refuse where the loops of nest, made one, no longer tell which elements a reduction over nothing starts: those
    of its domain, unless loops that do not reduce, or a condition on them, leave some out."""
    merged = {loop.loop_var for loop in nest if not is_const(loop.extent, 1)}
    for realize in statements(nest[-1].body):
        if isinstance(realize, BlockRealize) and realize.block.init is not None and _may_be_empty(sch, realize):
            loops = sch.index.loops_above(realize)
            before = left_by_start(realize, loops)
            if merged & before and not merged <= before:
                _require_known_start(sch, realize, nest[0], before, left_by_start(realize, loops, merged))


def _require_known_start(sch: Schedule, realize: BlockRealize, top: For, before: set[Var], after: set[Var]) -> None:
    """The start of a reduction, which leaves the loops `after` from now on, not only `before`, is for the same."""
    def lost(e: Expr) -> bool:
        return speaks_of(after, e) and not speaks_of(before, e)
    name, analyzer, loops = realize.block.name, sch.analyzer_at(None), sch.index.loops_above(realize)
    outputs = [(iv, value) for iv, value in realize.bound if iv.iter_type != COMM_REDUCE and lost(value)]
    driving = {n for _, value in outputs for n in walk(value)}
    whole = all(is_plain(iv, value, loops) for iv, value in outputs) and len(driving) == len(outputs) or runs_once(
        outputs, loops, realize.predicate, analyzer)
    alone = all(loop.loop_var in after or is_const(loop.extent, 1) for loop in loops if loop.loop_var in driving)
    branches = [c for s in sch.index.path_to(realize) if isinstance(s, IfThenElse) for c in conjuncts(s.condition)]
    left_out = any(map(lost, (*beyond_domain(realize, sch.analyzer_at(realize)), *branches)))
    legal(whole and alone and not left_out, f"the fused loop would not tell which elements block {name} starts where "
          "its reduction has no steps", top, realize, hint="decompose_reduction first")
    idle = [loop for loop in loops if loop.loop_var in after - before and loop.loop_var not in driving
            and not analyzer.prove(binary("gt", loop.extent, 0))]
    legal(not idle, f"loop {idle[0].loop_var.name if idle else ''} may have no iterations, and then block {name} does "
          "not start its reduction: the fused loop would not tell", top, realize, hint="decompose_reduction first")


def require_start_copied(sch: Schedule, realize: BlockRealize, buffer: Buffer, loops: Sequence[For]) -> None:
    """Refuse where a copy below loops, of what the block wrote, misses the start of a reduction that has no elements:
    that stands before the loops that reduce."""
    if realize.block.init is None or not _may_be_empty(sch, realize):
        return
    left = left_by_start(realize, sch.index.loops_above(realize))
    missed = [loop for loop in loops if loop.loop_var in left]
    names = ", ".join(loop.loop_var.name for loop in missed)
    legal(not missed, f"{buffer.name} would not be copied where loop {names} has no iterations and block "
          f"{realize.block.name} starts its reduction", realize, *missed,
          hint="decompose_reduction first, or move what uses the buffer out of the loop")


def _may_be_empty(sch: Schedule, realize: BlockRealize) -> bool:
    extents = [iv.domain.extent for iv in realize.block.iter_vars if iv.iter_type == COMM_REDUCE]
    unknown = [e for e in extents if not isinstance(e, IntImm) or e.value <= 0]
    return bool(unknown) and not all(map(sch.analyzer_at(None).prove, [binary("gt", e, 0) for e in unknown]))
