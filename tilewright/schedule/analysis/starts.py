"""What a reduction starts from is there where it starts, which is ahead of its loops where it has no elements."""
from __future__ import annotations

from tilewright.schedule.analysis.dataflow import is_below, writers_of
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import legal
from tilewright.tir.accesses import uses_below
from tilewright.tir.arithmetic import binary
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.stmt import BlockRealize


def require_starts(sch: Schedule) -> None:
    """Refuse where a reduction that may have no elements starts from what is written inside of its loops."""
    for realize in sch.index.realizes.values():
        init = realize.block.init
        read = [] if init is None else [u.buffer for u in uses_below(init) if u.reads and u.buffer is not None]
        if not read or not _may_be_empty(sch, realize):
            continue
        for steps in [loop for loop in sch.index.loops_above(realize) if realize.reduces_over(loop.loop_var)][:1]:
            for buffer in dict.fromkeys(read):
                inside = [w for w in writers_of(sch, buffer) if w is not realize and is_below(sch.index, w, steps)]
                legal(not inside, f"block {realize.block.name} starts its reduction with {buffer.name}, also where "
                      f"loop {steps.loop_var.name} has no iterations, and it is written inside of that", realize,
                      *inside, hint="choose a loop around the reduction")


def _may_be_empty(sch: Schedule, realize: BlockRealize) -> bool:
    prove = sch.analyzer_at(None).prove
    return not all(prove(binary("gt", iv.domain.extent, 0)) for iv in realize.block.iter_vars
                   if iv.iter_type == COMM_REDUCE)
