"""The rules for a function: looks at its blocks and schedules them with public primitives."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.rules.attempt import refusal
from tilewright.rules.contraction import is_matrix_product, schedule_contraction
from tilewright.rules.dot_product import choose_dot, dot_product, schedule_dot_product
from tilewright.rules.elementwise import schedule_elementwise
from tilewright.rules.kinds import BlockFacts, facts_of, is_step, is_unscheduled, kernel_blocks
from tilewright.rules.reduction import schedule_plain_reduction, schedule_reduction
from tilewright.rules.rows import schedule_rows, shares_rows
from tilewright.rules.scan import schedule_step
from tilewright.rules.signed_product import shift_signed_operands
from tilewright.rules.total import is_total, schedule_total
from tilewright.schedule import BlockRV, Entry, Schedule
from tilewright.support.errors import ArgumentError, with_hint
from tilewright.support.target import Target
from tilewright.tir import PrimFunc


@dataclass(frozen=True)
class Decision:
    """A rule that took some blocks: `entries` of the trace are its work; `refused`: (rule, why) of those tried before.

    rule: its name; "" where no rule takes the block, which then runs as it is.
    """
    rule: str
    doc: str
    blocks: tuple[str, ...]
    entries: tuple[Entry, ...]
    refused: tuple[tuple[str, str], ...] = ()


def apply_rules(func: PrimFunc, target: Target) -> Schedule:
    """A schedule of func (in block form, not scheduled yet) that is good on the target without tuning.

    Elementwise blocks are inlined into their readers; a contraction or reduction is tiled together with the
    elementwise block that reads it; a chain over common rows is computed a few rows at a time; anything else, and what
    the steps of a scan compute, runs block after block. The primitives decide what is legal: where one refuses, a
    simpler rule takes the block. A product of signed bytes may be rewritten as one of unsigned bytes first; the
    schedule is then one of the function rewritten so.
    Raises ArgumentError when loops of func have been scheduled already.
    """
    return Rules(func, target).schedule


class Rules:
    """The rules at work on one function: `func` as it is scheduled, its `schedule`, the `decisions` taken, in order."""

    def __init__(self, func: PrimFunc, target: Target) -> None:
        self.target = target
        self.decisions: list[Decision] = []
        self._refused: list[tuple[str, str]] = []
        given = Schedule(func)
        for b in kernel_blocks(given):
            if not is_unscheduled(given, b.rv):
                raise ArgumentError(with_hint(
                    f"{func.name}: the loops of block {b.rv.name} have been scheduled already",
                    "build(...) takes a schedule as it is; compile(...) makes one"))
        self.func = shift_signed_operands(func, target)
        self.schedule = given if self.func is func else Schedule(self.func)
        self._inline_elementwise()
        blocks = kernel_blocks(self.schedule)
        while blocks:
            count = self._schedule_first(blocks)
            blocks = blocks[count:]

    def _apply(self, rule: Callable[..., object], blocks: Sequence[str], *arguments: Any) -> bool:
        """Try rule(schedule, *arguments), which takes the blocks; True when it was legal."""
        sch, name, start = self.schedule, rule.__name__.removeprefix("schedule_"), len(self.schedule.trace)
        why = refusal(sch, lambda: rule(sch, *arguments))
        if why is not None:
            self._refused.append((name, str(why).partition("\n")[0]))
            return False
        doc = " ".join((rule.__doc__ or "").split("\n\n")[0].split())
        self._note(name, doc, blocks, start)
        return True

    def _note(self, rule: str, doc: str, blocks: Sequence[str], start: int) -> None:
        entries = tuple(self.schedule.trace.entries[start:])
        self.decisions.append(Decision(rule, doc, tuple(blocks), entries, tuple(self._refused)))
        self._refused.clear()

    def _schedule_first(self, blocks: list[BlockFacts]) -> int:
        """Schedule the first block with as many of those behind it as belong to it; how many they were."""
        sch, target, first = self.schedule, self.target, blocks[0]
        name = first.rv.name
        if first.is_opaque:
            self._note("", "it has loops of its own, or several results", [name], len(sch.trace))
            return 1
        if is_step(sch, first.rv):
            self._apply_last(schedule_step, first)
            return 1
        blocks = list(itertools.takewhile(lambda b: not is_step(sch, b.rv), blocks))
        if first.is_reduction and is_total(first) and shares_rows(sch, blocks) < 2:
            if self._apply(schedule_total, [name], first, target):
                return 1
        if first.is_reduction and len(blocks) > 1 and _is_epilogue(sch, first, blocks[1]):
            if self._schedule_reduced(first, blocks[1].rv):
                return 2
        chain = shares_rows(sch, blocks)
        if chain > 1 and self._apply(schedule_rows, [b.rv.name for b in blocks[:chain]], blocks[:chain], target):
            return chain
        if not first.is_reduction:
            self._apply_last(schedule_elementwise, first)
        elif not self._schedule_reduced(first, None):
            self._apply_last(schedule_plain_reduction, first)
        return 1

    def _apply_last(self, rule: Callable[..., object], block: BlockFacts) -> None:
        """Try the simplest rule there is for the block; without it the block stays as it is."""
        name = block.rv.name
        if not self._apply(rule, [name], block, self.target):
            self._note("", "no rule is legal", [name], len(self.schedule.trace))

    def _schedule_reduced(self, reduction: BlockFacts, epilogue: BlockRV | None) -> bool:
        """Schedule a reduction with the block that reads it; False when no rule for both is legal."""
        taken = [reduction.rv.name] + ([] if epilogue is None else [epilogue.name])
        both = reduction, epilogue, self.target
        product = dot_product(reduction)
        row = None if product is None else choose_dot(product, self.target)
        if row is not None and self._apply(schedule_dot_product, taken, product, row, epilogue, self.target):
            return True
        return (is_matrix_product(reduction) and self._apply(schedule_contraction, taken, *both)
                or self._apply(schedule_reduction, taken, *both))

    def _inline_elementwise(self) -> None:
        """Inline every block without a reduction that is not an output and is cheap to compute again, or read once."""
        sch = self.schedule
        for b in kernel_blocks(sch):
            facts = facts_of(sch, b.rv)
            if facts.is_reduction or facts.is_opaque or not _is_local(sch, facts):
                continue
            readers = [facts_of(sch, c) for c in sch.get_consumers(b.rv)]
            if _worth_inlining(facts, readers):
                self._apply(inline, [b.rv.name], b.rv)
        self._refused.clear()


def inline(sch: Schedule, block: BlockRV) -> None:
    """Compute the elements where they are read."""
    sch.compute_inline(block)


def _is_epilogue(sch: Schedule, reduction: BlockFacts, reader: BlockFacts) -> bool:
    """True when reader is elementwise on the reduction's result, which nothing else reads."""
    return (not reader.is_reduction and not reader.is_opaque and reader.spatial == reduction.spatial
            and _is_local(sch, reduction) and [c.name for c in sch.get_consumers(reduction.rv)] == [reader.rv.name])


def _is_local(sch: Schedule, facts: BlockFacts) -> bool:
    return not any(facts.written is b for b in sch.func.buffers)


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
