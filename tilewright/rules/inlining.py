"""Inlining of elementwise blocks into their readers."""
from __future__ import annotations

from tilewright.rules.facts import OWNER, BlockFacts, facts_of, is_local
from tilewright.rules.table import Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target


def _matches(work: Work) -> Match | None:
    """A block without a reduction that is not an output and is cheap to compute again, or read once."""
    sch, facts = work.schedule, work.first
    if facts.is_reduction or facts.is_opaque or not is_local(sch, facts) or OWNER in facts.block.annotations:
        return None
    readers = [facts_of(sch, c) for c in sch.get_consumers(facts.rv)]
    return work.match() if _worth_inlining(facts, readers) else None


@rule("inline", phase="prepare", priority=10, matches=_matches)
def inline(sch: Schedule, match: Match, target: Target) -> None:
    """Compute the elements where they are read."""
    sch.compute_inline(match.first.rv)


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
