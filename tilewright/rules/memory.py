"""Asking for memory before it is needed, by rules whose operands are larger than the caches."""
from __future__ import annotations

import math

from tilewright.rules.facts import facts_of
from tilewright.schedule import BlockRV, LoopRV, Schedule
from tilewright.tir import IntImm, dtype

MANY_WEIGHTS = 128 * 1024        # bytes from which on other layers of a model push them out of the caches


def prefetch_weights(sch: Schedule, product: BlockRV, pack: BlockRV, step: LoopRV, nbytes: int, ahead: int) -> None:
    """Ask for packed weights before they are multiplied, where there are many: the first tile of those that they are
    for reads them from memory, at the rate at which they are asked for.

    nbytes: of the weights that an iteration of `step` reads; ahead: bytes between what is asked for and what is read.
    """
    packed = facts_of(sch, pack).written
    extents = [e.value if isinstance(e, IntImm) else 1 for e in packed.shape]
    if math.prod(extents) * dtype.bytes_of(packed.dtype) >= MANY_WEIGHTS:
        sch.prefetch(product, packed.name, step, max(1, ahead // nbytes))
