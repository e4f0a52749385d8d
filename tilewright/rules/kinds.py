"""What the blocks of a kernel are: the facts by which a rule is chosen."""
from __future__ import annotations

import math
from dataclasses import dataclass

from tilewright.schedule import BlockRV, Schedule
from tilewright.tir import COMM_REDUCE, Block, IntImm, Load, Var, walk


@dataclass(frozen=True)
class BlockFacts:
    """spatial, reduced: extents of the block's iteration (None: symbolic); loads: how often it reads memory."""
    rv: BlockRV
    block: Block
    spatial: tuple[int | None, ...]
    reduced: tuple[int | None, ...]
    loads: tuple[Load, ...]

    @property
    def is_reduction(self) -> bool:
        return bool(self.reduced)

    @property
    def points(self) -> int:
        """Iterations of the block; symbolic extents count as 1024."""
        return math.prod(1024 if e is None else e for e in (*self.spatial, *self.reduced))

    @property
    def is_contraction(self) -> bool:
        """A sum of products whose factors each miss one of the spatial axes, so that every element is read often."""
        factors = [x for x in self.loads if x.buffer is not self.block.writes[0].buffer]
        spatial = [v.var for v in self.block.iter_vars if v.iter_type != COMM_REDUCE]
        missing = [[v for v in spatial if not _uses(x, v)] for x in factors]
        return self.is_reduction and len(factors) == 2 and all(missing)


def _uses(x: Load, v: Var) -> bool:
    return any(n is v for i in x.indices for n in walk(i))


def facts_of(sch: Schedule, rv: BlockRV) -> BlockFacts:
    """The facts of a block."""
    block = sch.get(rv)
    extents: dict[bool, list[int | None]] = {False: [], True: []}
    for v in block.iter_vars:
        extent = v.dom.extent
        extents[v.iter_type == COMM_REDUCE].append(extent.value if isinstance(extent, IntImm) else None)
    loads = tuple(n for n in walk(block.body) if isinstance(n, Load))
    return BlockFacts(rv, block, tuple(extents[False]), tuple(extents[True]), loads)


def kernel_blocks(sch: Schedule) -> list[BlockFacts]:
    """Facts of all blocks but the root, in program order."""
    return [facts_of(sch, rv) for rv in sch.get_blocks() if rv.name != "root"]
