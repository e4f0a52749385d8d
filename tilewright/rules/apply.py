"""The rules for a function: looks at its blocks and schedules them with public primitives."""
from __future__ import annotations

import itertools

from tilewright.rules.attempt import attempt
from tilewright.rules.contraction import is_matrix_product, schedule_contraction
from tilewright.rules.dot_product import choose_dot, dot_product, schedule_dot_product
from tilewright.rules.elementwise import schedule_elementwise
from tilewright.rules.kinds import BlockFacts, facts_of, is_step, is_unscheduled, kernel_blocks
from tilewright.rules.reduction import schedule_plain_reduction, schedule_reduction
from tilewright.rules.rows import schedule_rows, shares_rows
from tilewright.rules.scan import schedule_step
from tilewright.rules.signed_product import shift_signed_operands
from tilewright.rules.total import is_total, schedule_total
from tilewright.schedule import BlockRV, Schedule
from tilewright.support.errors import ArgumentError, with_hint
from tilewright.support.target import Target
from tilewright.tir import PrimFunc


def apply_rules(func: PrimFunc, target: Target) -> Schedule:
    """A schedule of func (in block form, not scheduled yet) that is good on the target without tuning.

    Elementwise blocks are inlined into their readers; a contraction or reduction is tiled together with the
    elementwise block that reads it; a chain over common rows is computed a few rows at a time; anything else, and what
    the steps of a scan compute, runs block after block. The primitives decide what is legal: where one refuses, a
    simpler rule takes the block. A product of signed bytes may be rewritten as one of unsigned bytes first; the
    schedule is then one of the function rewritten so.
    Raises ArgumentError when loops of func have been scheduled already.
    """
    sch = Schedule(func)
    for b in kernel_blocks(sch):
        if not is_unscheduled(sch, b.rv):
            raise ArgumentError(with_hint(f"{func.name}: the loops of block {b.rv.name} have been scheduled already",
                                          "build(...) takes a schedule as it is; compile(...) makes one"))
    shifted = shift_signed_operands(func, target)
    if shifted is not func:
        sch = Schedule(shifted)
    inline_elementwise(sch)
    blocks = kernel_blocks(sch)
    while blocks:
        count = _schedule_first(sch, blocks, target)
        blocks = blocks[count:]
    return sch


def _schedule_first(sch: Schedule, blocks: list[BlockFacts], target: Target) -> int:
    """Schedule the first block with as many of those behind it as belong to it; how many they were."""
    first = blocks[0]
    if first.is_opaque:
        return 1
    if is_step(sch, first.rv):
        attempt(sch, lambda: schedule_step(sch, first, target))
        return 1
    blocks = list(itertools.takewhile(lambda b: not is_step(sch, b.rv), blocks))
    if first.is_reduction and is_total(first) and shares_rows(sch, blocks) < 2 and attempt(
            sch, lambda: schedule_total(sch, first, target)):
        return 1
    if first.is_reduction and len(blocks) > 1 and _is_epilogue(sch, first, blocks[1]):
        if _schedule_reduced(sch, first, blocks[1].rv, target):
            return 2
    chain = shares_rows(sch, blocks)
    if chain > 1 and attempt(sch, lambda: schedule_rows(sch, blocks[:chain], target)):
        return chain
    if not first.is_reduction:
        attempt(sch, lambda: schedule_elementwise(sch, first, target))
    elif not _schedule_reduced(sch, first, None, target):
        attempt(sch, lambda: schedule_plain_reduction(sch, first, target))
    return 1


def _schedule_reduced(sch: Schedule, reduction: BlockFacts, epilogue: BlockRV | None, target: Target) -> bool:
    """Schedule a reduction with the block that reads it; False when no rule for both is legal."""
    product = dot_product(reduction)
    row = None if product is None else choose_dot(product, target)
    if product is not None and row is not None:
        if attempt(sch, lambda: schedule_dot_product(sch, product, row, epilogue, target)):
            return True
    return (is_matrix_product(reduction) and attempt(
                sch, lambda: schedule_contraction(sch, reduction, epilogue, target))
            or attempt(sch, lambda: schedule_reduction(sch, reduction, epilogue, target)))


def _is_epilogue(sch: Schedule, reduction: BlockFacts, reader: BlockFacts) -> bool:
    """True when reader is elementwise on the reduction's result, which nothing else reads."""
    return (not reader.is_reduction and not reader.is_opaque and reader.spatial == reduction.spatial
            and _is_local(sch, reduction) and [c.name for c in sch.get_consumers(reduction.rv)] == [reader.rv.name])


def _is_local(sch: Schedule, facts: BlockFacts) -> bool:
    return not any(facts.written is b for b in sch.func.buffers)


def inline_elementwise(sch: Schedule) -> None:
    """Inline every block without a reduction that is not an output and is cheap to compute again, or read once."""
    for b in kernel_blocks(sch):
        facts = facts_of(sch, b.rv)
        if facts.is_reduction or facts.is_opaque or not _is_local(sch, facts):
            continue
        readers = [facts_of(sch, c) for c in sch.get_consumers(b.rv)]
        if _worth_inlining(facts, readers):
            attempt(sch, lambda rv=b.rv: sch.compute_inline(rv))  # type: ignore[misc]


def _worth_inlining(facts: BlockFacts, readers: list[BlockFacts]) -> bool:
    """False where inlining would compute elements again and again, or a costly function without vectors."""
    reads = sum(x.buffer is facts.written for r in readers for x in r.loads)
    if reads > 1 and (facts.is_costly or len(facts.loads) > 1):
        return False
    for r in readers:
        if r.is_reduction and (r.is_contraction or r.points > facts.points
                               or facts.is_costly and not r.runs_along_last_axis):
            return False
    return True
