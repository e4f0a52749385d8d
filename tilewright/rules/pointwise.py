"""Convolutions by windows of one element, which are products of matrices: filters times pixels.

    y[n, o, i, j] = sum over c of w[o, c, 0, 0] * x[n, c, i * s, j * s]
->
    p[n, c, i * width + j] = x[n, c, i * s, j * s]               # a copy where s > 1, else another name for x
    y[n, o, p] = sum over c of w[o, c] * p[n, c, p]              # p = i * width + j

Pixels are the lanes of vectors, and x the operand that is packed. Where the filters are constant, it costs nothing to
have those of a vector side by side, and they may be the lanes: x is read as it lies then, and results are transposed.
That is better for few pixels, most of whose lanes would stay empty, and where so much is added up and so many filters
share a pixel that the transposition takes little of the time.
"""
from __future__ import annotations

from tilewright.arith.linear import linear
from tilewright.rules.contraction import schedule_contraction
from tilewright.rules.convolution import every_roles, roles_of_planes, schedule_convolution
from tilewright.rules.elementwise import parallelize, vectorize_last
from tilewright.rules.facts import BlockFacts, facts_of, is_constant
from tilewright.rules.table import CPU, Match, Work, rule
from tilewright.schedule import BlockRV, Schedule
from tilewright.support.target import Target
from tilewright.tir import Load, is_const

FEWEST_PIXELS = 49
FEWEST_FILTERS = 4
FEW_PIXELS = 256                 # up to which constant filters are the lanes of vectors
MANY_CHANNELS = 64               # of the image and of the result, from which on they are so for more pixels, too


def image_of(facts: BlockFacts) -> Load | None:
    """The image of a convolution by single elements of planes, in steps of one or more; None for anything else."""
    parts = roles_of_planes(facts)
    if parts is None or parts.image.buffer.strides or facts.reduced[1:] != (1, 1):
        return None
    (_, _, i, j), (_, r, q) = facts.spatial_axes, facts.reduced_axes
    forms = [linear(index) for index in parts.image.indices[2:]]
    steps = [{a: k for a, k in atoms.items() if a not in (r, q)} for atoms, _ in forms]
    plain = all([*step] == [axis] and k > 0 and not first
                for step, axis, (_, first) in zip(steps, (i, j), forms) for k in step.values())
    pixels = (facts.spatial[2] or 0) * (facts.spatial[3] or 0)
    return parts.image if plain and pixels >= FEWEST_PIXELS and (facts.spatial[1] or 0) >= FEWEST_FILTERS else None


def _matches(work: Work) -> Match | None:
    image = image_of(work.first) if work.kind == "reduction" else None
    return None if image is None else work.match(plan=image)


@rule("pointwise", priority=27, with_epilogue=67, targets=CPU, matches=_matches)
def schedule_pointwise(sch: Schedule, match: Match, target: Target) -> None:
    """Multiply filters and pixels as matrices; then compute the elementwise block that reads the product (a copy is
    made when there is none)."""
    conv, epilogue, image = match.first.rv, match.epilogue, match.plan
    filters, height, width = (e or 0 for e in match.first.spatial[1:])
    matrix = pixels_as_matrix(sch, conv, image, width)
    if epilogue is None:
        epilogue = sch.cache_write(conv, 0, "global")
    sch.transform_layout(conv, ("write", 0), lambda n, o, i, j: (n, o, i * width + j))
    sch.transform_block_layout(conv, lambda n, o, i, j, c, r, q: (n, o, i * width + j, c))
    sch.transform_block_layout(epilogue, lambda n, o, i, j: (n, o, i * width + j))
    product, reader = facts_of(sch, conv), facts_of(sch, epilogue)
    parts = next((p for p in every_roles(product) if is_constant(sch, p.weights.buffer)), None)
    few = height * width <= FEW_PIXELS and 2 * filters >= product.lanes(target)
    many = min(filters, product.reduced[0] or 0) >= MANY_CHANNELS
    if (few or many) and parts is not None:
        schedule_convolution(sch, Match((product, reader), parts), target)
    else:
        schedule_contraction(sch, Match((product, reader)), target)
    if all(is_const(d, e) for d, e in zip(image.buffer.shape[2:], (height, width))):
        sch.compute_inline(matrix)           # the same elements in the same order
    else:
        schedule_copy(sch, matrix, target)


def pixels_as_matrix(sch: Schedule, conv: BlockRV, image: Load, width: int) -> BlockRV:
    """A copy of the pixels that the convolution reads, those of a plane in a row."""
    return sch.reindex_cache_read(conv, image.buffer.name, "global", lambda n, o, i, j, c, r, q: (n, c, i * width + j))


def schedule_copy(sch: Schedule, matrix: BlockRV, target: Target) -> None:
    """Copy pixels of larger images, on all threads."""
    facts = facts_of(sch, matrix)
    images, row, column, *others = sch.get_loops(matrix)
    sch.reorder(images, *others, row, column)
    last = vectorize_last(sch, column, facts.lanes(target))
    parallelize(sch, [images, *others, row, *last][:2], facts.points, target)
