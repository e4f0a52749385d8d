"""Random samples: the split, place or annotation that they decide follows in one action."""
from __future__ import annotations

from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm

from ..schedules import Action, Chooser, find_block, find_loop, move


def run_perfect(sch: Schedule, where: tuple[str, int], n: int, most: int, seed: int) -> None:
    sch.seed(seed)
    loop = find_loop(sch, where)
    sch.split(loop, sch.sample_perfect_tile(loop, n, most))


@move("sample_perfect_tile", 1.2, 0.5, run_perfect)
def draw_perfect(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, found = chooser.rng, chooser._loop(sch, names)
    if found is None or not isinstance(found[1].extent, IntImm):
        return None
    return ("sample_perfect_tile", found[0], rng.choice([2, 2, 3]), rng.choice([-1, 4, 16]), rng.getrandbits(20))


def run_partitioned(sch: Schedule, where: tuple[str, int], n: int, position: int, inner: int, seed: int) -> None:
    sch.seed(seed)
    loop = find_loop(sch, where)
    sch.split(loop, sch.sample_partitioned_tile(loop, n, position, inner))


@move("sample_partitioned_tile", 1.2, 0.5, run_partitioned)
def draw_partitioned(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, found = chooser.rng, chooser._loop(sch, names)
    if found is None or not isinstance(found[1].extent, IntImm):
        return None
    n, extent = rng.choice([2, 2, 3]), found[1].extent.value
    inner = rng.choice([d for d in (1, 2, 3, 4, 8) if extent % d == 0 or rng.random() < 0.02])
    return ("sample_partitioned_tile", found[0], n, rng.randrange(n), inner, rng.getrandbits(20))


def run_categorical(sch: Schedule, where: tuple[str, int], candidates: list[int], probs: list[float],
                    seed: int) -> None:
    sch.seed(seed)
    sch.split(find_loop(sch, where), [None, sch.sample_categorical(candidates, probs)])


@move("sample_categorical", 1, 0.5, run_categorical)
def draw_categorical(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, found = chooser.rng, chooser._loop(sch, names)
    candidates = rng.sample([1, 2, 3, 4, 7, 8], 3)
    return found and ("sample_categorical", found[0], candidates, [0.2, 0.3, 0.5], rng.getrandbits(20))


def run_location(sch: Schedule, name: str, seed: int) -> None:
    sch.seed(seed)
    block = find_block(sch, name)
    sch.compute_at(block, sch.sample_compute_location(block))


@move("sample_compute_location", 1.2, 0.3, run_location)
def draw_location(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    fitting = [n for n in names if sch.consumers(n)]
    return ("sample_compute_location", chooser.rng.choice(fitting), chooser.rng.getrandbits(20)) if fitting else None
