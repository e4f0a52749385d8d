"""Whether the instances of a block write elements of their own."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.dependence import Access, direction_vectors
from tilewright.schedule.analysis.domains import axis_domains
from tilewright.tir.arithmetic import binary
from tilewright.tir.buffer import Buffer, BufferRegion
from tilewright.tir.conversion import is_const
from tilewright.tir.expr import Expr, IntImm, Var
from tilewright.tir.iter_var import COMM_REDUCE
from tilewright.tir.node import substitute
from tilewright.tir.stmt import Block


def shared_element(block: Block, analyzer: Callable[[], Analyzer]) -> Buffer | None:
    """A buffer of which two instances of block, not steps of one reduction, may write one element, or None.

    analyzer gives one that knows the shapes; it is asked where the regions alone do not tell.
    """
    own = [iv for iv in block.iter_vars if iv.iter_type != COMM_REDUCE and not is_const(iv.domain.extent, 1)]
    for region in block.writes:
        plain = [r.min for r in region.region]
        if all(any(iv.var is e for e in plain) for iv in own) and all(is_const(r.extent, 1) for r in region.region):
            continue
        free = axis_domains(iv for iv in block.iter_vars if iv.iter_type == COMM_REDUCE)
        access, variables = Access(any_element(region, {}, free), None, free), [iv.var for iv in own]
        still = (0,) * len(own)
        if not direction_vectors(access, access, variables, axis_domains(own), analyzer()) <= {still}:
            return region.buffer
    return None


def any_element(region: BufferRegion, values: Mapping[Var, Expr], free: dict[Var, tuple[Expr, Expr]]) -> tuple[
        Expr, ...]:
    """The indices of any element of the region under values; free gets a variable for each extent that is not 1."""
    indices: list[Expr] = []
    for r in region.region:
        low = substitute(r.min, values)
        if not is_const(r.extent, 1):
            within = Var("w", low.dtype)
            free[within] = (IntImm(0, low.dtype), substitute(r.extent, values))
            low = binary("add", low, within)
        indices.append(low)
    return tuple(indices)
