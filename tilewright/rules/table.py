"""The table of rules: what a rule is, how one gets into the table, and which of them match what is left to schedule."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import Any, Literal, TypeVar, get_args

from tilewright.rules.facts import BlockFacts, is_local, is_step, kernel_blocks
from tilewright.schedule import BlockRV, Schedule
from tilewright.support.errors import ArgumentError, described
from tilewright.support.target import Target
from tilewright.tir import For, PrimFunc, is_const, walk

Phase = Literal["rewrite", "prepare", "schedule"]
Kind = Literal["opaque", "step", "reduction", "elementwise"]
Apply = TypeVar("Apply", bound=Callable[[Schedule, Any, Target], "PrimFunc | None"])

CPU = ("cpu", "llvm", "c")       # the targets of rules for processors


@dataclass(frozen=True)
class Match:
    """What a rule would take: `blocks` of those that are left, from the first one on; `plan`, what it needs beside."""
    blocks: tuple[BlockFacts, ...]
    plan: Any = None

    @property
    def first(self) -> BlockFacts:
        return self.blocks[0]

    @property
    def epilogue(self) -> BlockRV | None:
        """The second block, where the rule takes one: it alone reads the result of the first, element by element."""
        return self.blocks[1].rv if len(self.blocks) > 1 else None


@dataclass(frozen=True)
class Work:
    """What is left to schedule: `blocks`, in program order, of which a rule takes the first and as many as it wants."""
    schedule: Schedule
    target: Target
    blocks: Sequence[BlockFacts]

    @property
    def first(self) -> BlockFacts:
        return self.blocks[0]

    @cached_property
    def kind(self) -> Kind:
        """What the first block is: opaque (with loops of its own, or several results), a step of a scan, a reduction,
        or, being none of these, elementwise."""
        if self.first.is_opaque:
            return "opaque"
        if is_step(self.schedule, self.first.rv):
            return "step"
        return "reduction" if self.first.is_reduction else "elementwise"

    @cached_property
    def reduces_tuples(self) -> bool:
        """Where the first block is a reduction with several results, such as the places and the values of the largest
        elements, and no step of a scan."""
        several = self.first.is_reduction and len(self.first.block.writes) > 1
        has_loops = any(isinstance(n, For) for n in walk(self.first.block.body))
        return several and not has_loops and not is_step(self.schedule, self.first.rv)

    @cached_property
    def may_be_replaced(self) -> bool:
        """Where the first block is no step of a scan and its axes begin at 0: a rule that rewrites the function may put
        nests over axes of its own in the place of its loops."""
        begins = all(is_const(v.domain.min, 0) for v in self.first.block.iter_vars)
        return begins and not is_step(self.schedule, self.first.rv)

    @cached_property
    def outside_steps(self) -> tuple[BlockFacts, ...]:
        """The blocks before the next one that is computed in the steps of a scan."""
        return tuple(takewhile(lambda b: not is_step(self.schedule, b.rv), self.blocks))

    @cached_property
    def epilogue(self) -> BlockFacts | None:
        """The second block, where the first is a reduction whose result it alone reads, element by element."""
        return self.reader if self.kind == "reduction" else None

    @cached_property
    def reader(self) -> BlockFacts | None:
        """The second block, where it alone reads the result of the first, element by element."""
        if len(self.outside_steps) < 2:
            return None
        sch, first, reader = self.schedule, *self.outside_steps[:2]
        fits = (not reader.is_reduction and not reader.is_opaque and reader.spatial == first.spatial
                and is_local(sch, first) and [c.name for c in sch.get_consumers(first.rv)] == [reader.rv.name])
        return reader if fits else None

    def match(self, count: int = 1, plan: Any = None) -> Match:
        """The match of a rule that takes the first `count` blocks."""
        return Match(tuple(self.blocks[:count]), plan)


@dataclass(frozen=True)
class Rule:
    """A way to schedule what comes next.

    - matches: what it would take of the work that is left; None where it does not fit.
    - apply: does it, by public primitives. Where one refuses, the schedule is put back, and the next rule tried.
    - phase: rules that "rewrite" give another function, in which all other blocks are the same; those that "prepare"
      go over each block once; those that "schedule" take all blocks.
    - priority: the highest is tried first.
    - with_epilogue: the priority of taking `Work.epilogue` too, beside the first block; None: it takes none.
    - targets: kinds or keys of targets, any of which will do; () for all targets.
    """
    name: str
    matches: Callable[[Work], Match | None]
    apply: Callable[[Schedule, Match, Target], PrimFunc | None]
    phase: Phase
    priority: int
    with_epilogue: int | None
    targets: tuple[str, ...]

    @property
    def doc(self) -> str:
        """What it does, as `explain` says it: the first paragraph of the docstring of `apply`."""
        return " ".join((self.apply.__doc__ or "").split("\n\n")[0].split())

    def found(self, work: Work, epilogue: BlockFacts | None) -> Match | None:
        """What it takes of the work, and the epilogue if there is one."""
        match = self.matches(work)
        if match is None:
            return None
        if not isinstance(match, Match) or not match.blocks or match.first is not work.first:
            raise ArgumentError(f"rule {self.name}: matches(work) gave {described(match)}",
                                "it gives work.match(count, plan) or None")
        return match if epilogue is None else Match((work.first, epilogue), match.plan)


RULES: dict[str, Rule] = {}


def rule(name: str, *, matches: Callable[[Work], Match | None], priority: int, with_epilogue: int | None = None,
         targets: tuple[str, ...] = (), phase: Phase = "schedule") -> Callable[[Apply], Apply]:
    """Put the decorated `apply` and its docstring in the table; the parameters are those of Rule.

    Raises ArgumentError where one of them is not what Rule says, or the name is taken.
    """
    def put(apply: Apply) -> Apply:
        new = Rule(name, matches, apply, phase, priority, with_epilogue, targets)
        _check(new)
        RULES[name] = new
        return apply
    return put


def remove(name: str) -> None:
    """Take a rule out of the table. Raises ArgumentError where there is none of the name."""
    if name not in [*RULES]:
        raise ArgumentError(f"there is no rule {described(name)}", f"the rules are {', '.join(RULES)}")
    del RULES[name]


def every(kind: Kind) -> Callable[[Work], Match | None]:
    """A `matches` for every block of a kind."""
    return lambda work: work.match() if work.kind == kind else None


def matches(schedule: Schedule, target: Target, blocks: Sequence[BlockFacts] | None = None,
            phase: Phase = "schedule") -> Iterator[tuple[Rule, Match]]:
    """Every rule that matches what comes next, with what it would take, in the order in which they are tried.

    blocks: those that are left, in program order; all blocks of the schedule without it.
    """
    work = Work(schedule, target, kernel_blocks(schedule) if blocks is None else blocks)
    words = {str(target.kind), *target.keys}
    chosen = [r for r in RULES.values() if r.phase == phase and (not r.targets or words & {*r.targets})]
    rows = [(r.priority, False, r) for r in chosen]
    rows += [(r.with_epilogue, True, r) for r in chosen if r.with_epilogue is not None]
    for _, with_epilogue, r in sorted(rows, key=lambda row: -row[0]) if work.blocks else ():
        if not with_epilogue or work.epilogue is not None:
            match = r.found(work, work.epilogue if with_epilogue else None)
            if match is not None:
                yield r, match


def _check(new: Rule) -> None:
    """Raise ArgumentError unless the rule can stand in the table."""
    def takes(f: object, *names: str) -> bool:
        try:
            return callable(f) and bool(inspect.signature(f).bind(*names))
        except (TypeError, ValueError):
            return False

    checks = {
        "its name is no identifier": isinstance(new.name, str) and new.name.isidentifier(),
        "there is a rule of this name, which rules.remove(name) takes out": new.name not in [*RULES],
        "matches is no function of (work)": takes(new.matches, "work"),
        "it decorates a function of (schedule, match, target)": takes(new.apply, "schedule", "match", "target"),
        "it has no docstring, whose first paragraph explain(...) shows": bool(new.doc),
        f"phase is one of {', '.join(get_args(Phase))}": new.phase in get_args(Phase),
        "priorities are integers": isinstance(new.priority, int) and isinstance(new.with_epilogue, int | None),
        'targets is a tuple of kinds or keys, such as ("llvm",) or ("cpu",)':
            isinstance(new.targets, tuple) and all(isinstance(t, str) for t in new.targets)}
    for message, holds in checks.items():
        if not holds:
            raise ArgumentError(f"rule({described(new.name)}): {message}")
