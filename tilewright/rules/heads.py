"""Attention: two products with a chain along rows between them, head by head.

    s[h, i, j] = sum over d of q[h, i, d] * k[h, j, d];  p[h, i, j] from the row s[h, i, :];
    y[h, i, e] = sum over j of p[h, i, j] * v[h, j, e]

Each of the three is scheduled as it would be alone. Then their loops over heads become one, so that the scores of a
head are read from the cache in which they were written: those of all heads may fit into none.
"""
from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.rules.contraction import is_matrix_product, rows_outside, schedule_contraction
from tilewright.rules.elementwise import parallelize
from tilewright.rules.facts import BlockFacts, is_local
from tilewright.rules.reduction import match_rows, schedule_rows
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target

HEADS_PER_THREAD = 4             # from which on it does not matter that threads get different numbers of them


@dataclass(frozen=True)
class Attention:
    """heads: how many axes come first that all have; scores, chain, values: what the rules for these take."""
    heads: int
    scores: Match
    chain: Match
    values: Match


def _matches(work: Work) -> Match | None:
    scores = _product(work)
    if scores is None:
        return None
    rest = _behind(work, scores)
    chain = match_rows(rest) if rest.blocks and rest.kind in ("reduction", "elementwise") else None
    if chain is None or not _reads(chain.first, scores.blocks[-1]):
        return None
    last = _behind(rest, chain)
    values = _product(last) if last.blocks else None
    if values is None or not _reads(values.first, chain.blocks[-1]):
        return None
    blocks = (*scores.blocks, *chain.blocks, *values.blocks)
    heads = min(rows_outside(p).index(True) if any(rows_outside(p)) else len(p.spatial) - 2
                for p in (scores.first, values.first))
    alike = all(b.spatial[:heads] == scores.first.spatial[:heads] for b in blocks) and chain.plan > heads
    inside = all(is_local(work.schedule, b) for b in blocks[:-len(values.blocks)])
    if not alike or not inside or not _share_threads(scores.first.spatial[:heads], work.target):
        return None
    return work.match(len(blocks), Attention(heads, scores, chain, values))


def _product(work: Work) -> Match | None:
    """A product of matrices, one for each head, with the block that reads it element by element."""
    if work.kind != "reduction" or not is_matrix_product(work.first) or len(work.first.spatial) < 3:
        return None
    return work.match(1 if work.epilogue is None else 2)


def _behind(work: Work, match: Match) -> Work:
    return Work(work.schedule, work.target, work.outside_steps[len(match.blocks):])


def _reads(reader: BlockFacts, writer: BlockFacts) -> bool:
    return any(x.buffer is writer.written for x in reader.operands)


def _share_threads(heads: tuple[int | None, ...], target: Target) -> bool:
    count = math.prod(e or 0 for e in heads)
    return heads != () and count > 1 and (count % target.num_cores == 0 or count >= HEADS_PER_THREAD * target.num_cores)


@rule("heads", priority=95, targets=CPU, matches=_matches)
def schedule_heads(sch: Schedule, match: Match, target: Target) -> None:
    """Compute two products and the chain along rows between them for one head after the other; heads on all threads."""
    plan: Attention = match.plan
    alone = Target({**target.export(), "num-cores": 1})
    schedule_contraction(sch, plan.scores, alone)
    schedule_rows(sch, plan.chain, alone)
    schedule_contraction(sch, plan.values, alone)
    nests = [sch.get_loops(b.rv)[:plan.heads] for b in (plan.scores.first, plan.chain.blocks[-1], plan.values.first)]
    sch.merge(*(nest[-1] for nest in nests))
    parallelize(sch, sch.get_loops(plan.scores.first.rv)[:plan.heads], sum(b.points for b in match.blocks), target)
