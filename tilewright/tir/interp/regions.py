"""Whether a block touches more than it declares: the check of its accesses against its regions, in the interpreter."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.tir.buffer import Buffer, BufferRegion, Load
from tilewright.tir.expr import Expr
from tilewright.tir.interp.scalars import V, scalar_binary
from tilewright.tir.node import walk
from tilewright.tir.stmt import Block, BlockRealize


@dataclass(frozen=True)
class Declared:
    """The regions of a block that holds no other block; what a block writes it may read as well."""
    block: str
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]

    def of(self, buffer: Buffer, writes: bool) -> Sequence[BufferRegion]:
        """The regions of buffer that an access must be in one of; none where nothing can be said.

        A region that depends on data is not evaluated.
        """
        regions = self.writes if writes else (*self.reads, *self.writes)
        mine = [r for r in regions if r.buffer is buffer]
        return [] if any(isinstance(n, Load) for r in mine for axis in r.region for n in walk(axis)) else mine


def declared(block: Block) -> Declared | None:
    """The regions that the statements of block itself keep to, or None for one that holds other blocks."""
    inside = (n for part in (block.init, block.body) if part is not None for n in walk(part))
    if not (block.reads or block.writes) or any(isinstance(n, BlockRealize) for n in inside):
        return None
    return Declared(block.name, block.reads, block.writes)


def outside_of(regions: Sequence[BufferRegion], at: Sequence[V], emit: Callable[[Expr], V]) -> str:
    """The condition, as Python, under which the element `at` is in none of regions; "" where it surely is in one."""
    choices = []
    for r in regions:
        conditions = []
        for i, axis in zip(at, r.region, strict=True):
            low, extent = emit(axis.min), emit(axis.extent)
            end = scalar_binary("add", low, extent, "int64")
            same = i.text == low.text and extent.low > 0
            if not same and (i.low < low.high or i.high >= end.low):
                conditions.append(f"{low.text} <= {i.text} < {end.text}")
        if not conditions:
            return ""
        choices.append(" and ".join(conditions))
    return f"not ({' or '.join(choices)})" if choices else ""
