"""What a reduction needs to start is there where it starts, which is ahead of its loops where it has no elements."""
from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.analysis.dataflow import writes
from tilewright.schedule.analysis.iteration import beyond_domain, is_plain, runs_once
from tilewright.schedule.outside import outside_of
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import legal
from tilewright.tir.accesses import uses_below
from tilewright.tir.arithmetic import binary
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import IntImm
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import statements, walk
from tilewright.tir.stmt import BlockRealize, For


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
    of its domain, unless loops over outputs or a condition on them leave some out."""
    merged = {loop.loop_var for loop in nest if not is_const(loop.extent, 1)}
    for realize in statements(nest[-1].body):
        if not isinstance(realize, BlockRealize) or realize.block.init is None or not realize.reduces_over(*merged):
            continue
        outputs = [(iv, value) for iv, value in realize.bound if iv.iter_type != COMM_REDUCE
                   and any(n in merged for n in walk(value))]
        if not outputs or not _may_be_empty(sch, realize):
            continue
        left_out = [c for c in beyond_domain(realize, sch.analyzer_at(realize)) if any(n in merged for n in walk(c))]
        loops = sch.index.loops_above(realize)
        whole = all(is_plain(iv, value, loops) for iv, value in outputs) or runs_once(
            outputs, loops, realize.predicate, sch.analyzer_at(None))
        legal(whole and not left_out, f"the fused loop would not tell which elements block {realize.block.name} "
              "starts where its reduction has no steps", nest[0], realize, hint="decompose_reduction first")


def _may_be_empty(sch: Schedule, realize: BlockRealize) -> bool:
    extents = [iv.domain.extent for iv in realize.block.iter_vars if iv.iter_type == COMM_REDUCE]
    unknown = [e for e in extents if not isinstance(e, IntImm) or e.value <= 0]
    return bool(unknown) and not all(map(sch.analyzer_at(None).prove, [binary("gt", e, 0) for e in unknown]))
