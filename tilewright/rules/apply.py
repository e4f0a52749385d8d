"""Rules at work on a function: each in turn takes some of the blocks and schedules them with public primitives."""
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.rules.attempt import refusal
from tilewright.rules.facts import CONSTANT, BlockFacts, facts_of, is_unscheduled, kernel_blocks
from tilewright.rules.table import Match, Phase, Rule, matches
from tilewright.schedule import Entry, Schedule
from tilewright.support.errors import ArgumentError
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


def apply_rules(func: PrimFunc, target: Target, constant: Collection[int] = ()) -> Schedule:
    """A schedule of func (in block form, not scheduled yet) that is good on the target without tuning.

    constant: positions of parameters that are the same in every call, so that blocks that depend on these alone are
    taken to cost nothing (`lowering/hoist_constants.py` has them computed before).
    Of the rules that match a block, with those behind it, the first takes it in which no primitive refuses. Rules that
    rewrite functions come before: the schedule is then one of the function rewritten.
    Raises ArgumentError when loops of func have been scheduled already.
    """
    return Scheduling(func, target, constant).finish().schedule


class Scheduling:
    """A function that is being scheduled: rewritten and prepared to begin with, then taken by rules, from its first
    block to its last. `finish` takes the first rule that is legal; a search may choose others:

        work = Scheduling(func, target)
        while work.left:
            if not any(work.take(rule, match) for rule, match in reversed([*work.matches()])):
                work.leave()

    - func: as it was before any primitive; schedule: so far; left: facts of the blocks that no rule took yet.
    - rewrites: the decisions by which func is not the one given; decisions: those that made the schedule.
    """

    def __init__(self, func: PrimFunc, target: Target, constant: Collection[int] = ()) -> None:
        func = func.with_attr(CONSTANT, tuple(constant)) if constant else func
        self.func, self.target, self.schedule = func, target, Schedule(func)
        self.left: list[BlockFacts] = []
        self.decisions: list[Decision] = []
        self._refused: list[tuple[str, str]] = []
        blocks = kernel_blocks(self.schedule)
        for b in blocks:
            if not is_unscheduled(self.schedule, b.rv):
                raise ArgumentError(f"{func.name}: the loops of block {b.rv.name} have been scheduled already",
                                    "build(...) takes a schedule as it is; compile(...) makes one")
        self._visit(blocks, "rewrite")
        self.rewrites, self.decisions = self.decisions, []
        self._visit((facts_of(self.schedule, b.rv) for b in kernel_blocks(self.schedule)), "prepare")
        self.left = kernel_blocks(self.schedule)

    def matches(self) -> Iterator[tuple[Rule, Match]]:
        """Every rule that matches what comes next, in the order in which `finish` tries them."""
        return matches(self.schedule, self.target, self.left)

    def take(self, rule: Rule, match: Match) -> bool:
        """Apply a rule to what it matched; False, and nothing has changed, where a primitive refuses."""
        sch, start = self.schedule, len(self.schedule.trace)
        made: list[Any] = []
        why = refusal(sch, lambda: made.append(rule.apply(sch, match, self.target)))
        if why is not None:
            self._refused.append((rule.name, str(why).partition("\n")[0]))
            return False
        self._note(rule.name, rule.doc, match.blocks, start)
        if rule.phase == "rewrite":
            self.func, self.schedule = made[0], Schedule(made[0])
        return True

    def leave(self) -> None:
        """Let the next block run as it is."""
        first = self.left[0]
        why = "it has loops of its own, or several results" if first.is_opaque else "no rule is legal"
        self._note("", why, [first], len(self.schedule.trace))

    def finish(self) -> Scheduling:
        """Give what is left to the first rules that are legal."""
        while self.left:
            if not any(self.take(*found) for found in self.matches()):
                self.leave()
        return self

    def _visit(self, blocks: Iterable[BlockFacts], phase: Phase) -> None:
        """Give each block to the first rule of a phase that is legal, if there is one."""
        for b in blocks:
            any(self.take(*found) for found in matches(self.schedule, self.target, [b], phase))
        self._refused.clear()

    def _note(self, rule: str, doc: str, blocks: Sequence[BlockFacts], start: int) -> None:
        names, entries = tuple(b.rv.name for b in blocks), tuple(self.schedule.trace.entries[start:])
        self.decisions.append(Decision(rule, doc, names, entries, tuple(self._refused)))
        self._refused.clear()
        self.left = self.left[len(blocks):]
