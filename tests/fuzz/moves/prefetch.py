"""Random prefetches."""
from __future__ import annotations

from typing import Any

from tilewright.schedule import Schedule

from ..schedules import Action, Chooser, find_block, find_loop, move


def run(sch: Schedule, block: str, index: int, where: tuple[str, int], offset: int) -> None:
    sch.prefetch(find_block(sch, block), index, find_loop(sch, where), offset)


@move("prefetch", 0.3, 1.2, run)
def draw(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    name = chooser.rng.choice(names)
    loops: list[Any] = sch.loops_above(name)
    reads = sch.realize(name).block.reads
    if not loops or not reads:
        return None
    where = (name, chooser.rng.randrange(len(loops)))
    return ("prefetch", name, chooser.rng.randrange(len(reads)), where, chooser.rng.choice([1, 1, 2, 5]))
