"""The rule for a kernel: looks at its blocks and schedules them with public primitives."""
from __future__ import annotations

from tilewright.rules.contraction import schedule_contraction
from tilewright.rules.elementwise import schedule_elementwise
from tilewright.rules.kinds import BlockFacts, facts_of, kernel_blocks
from tilewright.rules.reduction import schedule_reduction, schedule_rows
from tilewright.schedule import Schedule
from tilewright.support.target import Target
from tilewright.tir import PrimFunc


def apply_rules(func: PrimFunc, target: Target) -> Schedule:
    """A schedule of func (in block form) that is good on the target without tuning.

    Elementwise blocks are inlined into their readers; one contraction or reduction with an elementwise reader is
    tiled with it; a chain over common rows is computed row by row; anything else runs block after block.
    """
    sch = Schedule(func)
    inline_elementwise(sch)
    blocks = kernel_blocks(sch)
    reductions = [b for b in blocks if b.is_reduction]
    if len(reductions) == 1 and len(blocks) <= 2 and blocks[0] is reductions[0]:
        anchor, epilogue = blocks[0], blocks[1].rv if len(blocks) == 2 else None
        if epilogue is None or blocks[1].spatial == anchor.spatial:
            plain = None not in (*anchor.spatial, *anchor.reduced) and 0 not in (*anchor.spatial, *anchor.reduced)
            if anchor.is_contraction and len(anchor.spatial) == 2 and len(anchor.reduced) == 1 and plain:
                schedule_contraction(sch, anchor, epilogue, target)
            else:
                schedule_reduction(sch, anchor, epilogue, target)
            return sch
    if len(blocks) > 1 and _share_rows(blocks):
        schedule_rows(sch, blocks, target)
        return sch
    for b in blocks:
        if b.is_reduction:
            schedule_reduction(sch, b, None, target)
        else:
            schedule_elementwise(sch, b, target)
    return sch


def inline_elementwise(sch: Schedule) -> None:
    """Inline every block without a reduction that is not an output and is cheap to compute again, or read once."""
    outputs = {b.name for b in sch.func.buffers}
    for rv in [b.rv for b in kernel_blocks(sch)]:
        facts = facts_of(sch, rv)
        written = facts.block.writes[0].buffer
        if facts.is_reduction or written.name in outputs:
            continue
        readers = [facts_of(sch, c) for c in sch.get_consumers(rv)]
        if all(not r.is_reduction or (r.points <= facts.points and not r.is_contraction) for r in readers) and (
                len(readers) == 1 or _cheap(facts)):
            sch.compute_inline(rv)


def _cheap(facts: BlockFacts) -> bool:
    return len(facts.loads) <= 1 and "T.exp" not in str(facts.block.body)


def _share_rows(blocks: list[BlockFacts]) -> bool:
    """True when all blocks have the last block's first axis as their own first axis, and more than one axis does."""
    rows = blocks[-1].spatial[:1]
    return len(blocks[-1].spatial) == 2 and all(b.spatial[:1] == rows for b in blocks)
