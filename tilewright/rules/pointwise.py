"""Convolutions by windows of one element, which are products of matrices: filters times pixels.

    y[n, o, i, j] = sum over c of w[o, c, 0, 0] * x[n, c, i, j]
->
    y[n, o, p] = sum over c of w[o, c] * x[n, c, p]              # p = i * width + j: pixels follow each other in memory
"""
from __future__ import annotations

from tilewright.arith.linear import linear
from tilewright.rules.contraction import schedule_contraction
from tilewright.rules.convolution import roles_of_planes
from tilewright.rules.facts import BlockFacts, facts_of
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import Schedule
from tilewright.support.target import Target
from tilewright.tir import is_const

FEWEST_PIXELS = 49
FEWEST_FILTERS = 4


def is_pointwise(facts: BlockFacts) -> bool:
    """True for a convolution of planes that are read as they lie, pixel by pixel."""
    parts = roles_of_planes(facts)
    if parts is None or parts.image.buffer.strides:
        return False
    (_, _, i, j), (_, r, q), x = facts.spatial_axes, facts.reduced_axes, parts.image
    ahead = all({a: k for a, k in linear(index)[0].items() if a not in (r, q)} == {axis: 1} and linear(index)[1] == 0
                for index, axis in zip(x.indices[2:], (i, j)))
    whole = ahead and all(is_const(d, e) for d, e in zip(x.buffer.shape[2:], facts.spatial[2:]))
    pixels = (facts.spatial[2] or 0) * (facts.spatial[3] or 0)
    return (whole and facts.reduced[1:] == (1, 1) and pixels >= FEWEST_PIXELS
            and (facts.spatial[1] or 0) >= FEWEST_FILTERS)


def _matches(work: Work) -> Match | None:
    return work.match() if work.kind == "reduction" and is_pointwise(work.first) else None


@rule("pointwise", priority=27, with_epilogue=67, targets=CPU, matches=_matches)
def schedule_pointwise(sch: Schedule, match: Match, target: Target) -> None:
    """Multiply filters and pixels as matrices; then compute the elementwise block that reads the product (a copy is
    made when there is none)."""
    conv, epilogue = match.first.rv, match.epilogue
    width = match.first.spatial[-1]
    if epilogue is None:
        epilogue = sch.cache_write(conv, 0, "global")
    sch.transform_layout(conv, ("write", 0), lambda n, o, i, j: (n, o, i * width + j))
    sch.transform_block_layout(conv, lambda n, o, i, j, c, r, q: (n, o, i * width + j, c))
    sch.transform_block_layout(epilogue, lambda n, o, i, j: (n, o, i * width + j))
    schedule_contraction(sch, Match((facts_of(sch, conv), facts_of(sch, epilogue))), target)
