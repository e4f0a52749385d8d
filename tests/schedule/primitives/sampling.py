"""The primitives that choose at random: their examples, what they refuse, and how random schedules use them."""
from __future__ import annotations

import tilewright as tw
from tests.fuzz.moves import Action, Chooser, find_block, find_loop, move
from tests.schedule.case import Case
from tests.schedule.compute_support import chain
from tests.schedule.core_support import scale
from tests.wrong_uses.schedule_programs import chain_nest
from tests.wrong_uses.wrong_use import watch
from tilewright import te
from tilewright.schedule import Schedule
from tilewright.tir.expr import IntImm

SAMPLE_CATEGORICAL = Case("sample_categorical")
SAMPLE_PERFECT_TILE = Case("sample_perfect_tile")
SAMPLE_PARTITIONED_TILE = Case("sample_partitioned_tile")
SAMPLE_COMPUTE_LOCATION = Case("sample_compute_location")


@SAMPLE_CATEGORICAL.example
def example_of_sample_categorical():
    """
    v0 = sch.sample_categorical(candidates=[1, 2, 5], probs=[0.2, 0.5, 0.3], decision=2)
    """
    sch = Schedule(scale())
    sch.sample_categorical([1, 2, 5], [0.2, 0.5, 0.3], decision=2)
    return sch


@SAMPLE_PERFECT_TILE.example
def example_of_sample_perfect_tile():
    """
    v1, v2 = sch.sample_perfect_tile(loop=l0, n=2, decision=[8, 8])
    """
    sch = Schedule(scale(64))
    sch.sample_perfect_tile(sch.get_loops("B")[0], 2, decision=[8, 8])
    return sch


@SAMPLE_PARTITIONED_TILE.example
def example_of_sample_partitioned_tile():
    """
    v1, v2, v3 = sch.sample_partitioned_tile(loop=l0, n=3, partition_pos=1, innerpart_factor=4, decision=[8, 2, 4])
    """
    sch = Schedule(scale(64))
    sch.sample_partitioned_tile(sch.get_loops("B")[0], 3, 1, 4, decision=[8, 2, 4])
    return sch


@SAMPLE_COMPUTE_LOCATION.example
def example_of_sample_compute_location():
    """
    l0 = sch.sample_compute_location(block='B', decision=0)
    """
    sch = Schedule(chain())
    sch.sample_compute_location("B", decision=0)
    return sch


@SAMPLE_CATEGORICAL.wrong("`sample_categorical(4, ..)`", r"candidates is 4, not a list of integers")
def categories_number():
    chain_nest()[0].sample_categorical(4, [1.0])


@SAMPLE_CATEGORICAL.wrong("`sample_categorical([1, 2], [1.0])`", r"2 candidates, 1 probabilities")
def categories_short():
    chain_nest()[0].sample_categorical([1, 2], [1.0])


@SAMPLE_CATEGORICAL.wrong("`sample_categorical([1, 2], [0, 0])`", r"probs is \[0, 0\], not a list of weights")
def categories_impossible():
    chain_nest()[0].sample_categorical([1, 2], [0, 0])


@SAMPLE_CATEGORICAL.wrong(
    "`sample_categorical(.., decision=2)` of two candidates",
    r"decision is 2, not a position among 2 candidates")
def categories_decision():
    chain_nest()[0].sample_categorical([1, 2], [0.5, 0.5], decision=2)


@SAMPLE_PERFECT_TILE.wrong("`sample_perfect_tile(loop, n=0)`", r"n is 0, not a positive integer")
def tile_none():
    sch, _, i, _ = chain_nest()
    sch.sample_perfect_tile(i, 0)


@SAMPLE_PERFECT_TILE.wrong("`sample_perfect_tile(loop, n=1)` of a loop longer than the bound",
                           r"one factor is 16, more than max_innermost_factor=8")
def tile_too_long():
    sch, _, i, _ = chain_nest()
    sch.sample_perfect_tile(i, 1, 8)


@SAMPLE_PERFECT_TILE.wrong(
    "`sample_perfect_tile(.., max_innermost_factor=0)`",
    r"max_innermost_factor is 0, not a positive integer or -1")
def tile_bound():
    sch, _, i, _ = chain_nest()
    sch.sample_perfect_tile(i, 2, 0)


@SAMPLE_PERFECT_TILE.wrong("`sample_perfect_tile(.., decision=[3, 4])` of 16 iterations",
                           r"the factors \[3, 4\] cover 12 iterations, loop i has 16")
def tile_decision():
    sch, _, i, _ = chain_nest()
    sch.sample_perfect_tile(i, 2, decision=[3, 4])


@SAMPLE_PERFECT_TILE.wrong(
    "`sample_perfect_tile(.., n=2, decision=[16])`",
    r"decision is \[16\], not a list of 2 positive integers")
def tile_decision_short():
    sch, _, i, _ = chain_nest()
    sch.sample_perfect_tile(i, 2, decision=[16])


@SAMPLE_PERFECT_TILE.wrong(
    "`sample_perfect_tile` of a loop of symbolic extent",
    r"the extent n of loop i is no positive constant")
def tile_symbolic():
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    sch = watch(tw.Schedule(te.create_prim_func([a, b])))
    sch.sample_perfect_tile(sch.get_loops("B")[0], 2)


@SAMPLE_PARTITIONED_TILE.wrong(
    "`sample_partitioned_tile(.., partition_pos=3)` of 3 factors",
    r"partition_pos is 3, not a position among 3")
def partitioned_position():
    sch, _, i, _ = chain_nest()
    sch.sample_partitioned_tile(i, 3, 3, 4)


@SAMPLE_PARTITIONED_TILE.wrong("`sample_partitioned_tile(.., innerpart_factor=5)` of 16 iterations",
                               r"innerpart_factor is 5, which does not divide 16")
def partitioned_factor():
    sch, _, i, _ = chain_nest()
    sch.sample_partitioned_tile(i, 3, 1, 5)


@SAMPLE_PARTITIONED_TILE.wrong("`sample_partitioned_tile(loop, n=0)`", r"n is 0, not a positive integer")
def partitioned_none():
    sch, _, i, _ = chain_nest()
    sch.sample_partitioned_tile(i, 0)


@SAMPLE_PARTITIONED_TILE.wrong("`sample_partitioned_tile(.., decision=..)` whose inner part does not fit",
                               r"the inner part of \[8, 2, 1\] is 2, no multiple of 4")
def partitioned_decision():
    sch, _, i, _ = chain_nest()
    sch.sample_partitioned_tile(i, 3, 1, 4, decision=[8, 2, 1])


@SAMPLE_COMPUTE_LOCATION.wrong(
    "`sample_compute_location(.., decision=9)`",
    r"decision is 9; block B has the places -2, -1 and 0 to 1")
def location_decision():
    sch, block, _, _ = chain_nest()
    sch.sample_compute_location(block, decision=9)


def run_perfect(sch: Schedule, where: tuple[str, int], n: int, most: int, seed: int) -> None:
    sch.seed(seed)
    loop = find_loop(sch, where)
    sch.split(loop, sch.sample_perfect_tile(loop, n, most))


@move("sample_perfect_tile", 1.2, 0.5, run_perfect)
def draw_perfect(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, found = chooser.rng, chooser.loop(sch, names)
    if found is None or not isinstance(found[1].extent, IntImm):
        return None
    return ("sample_perfect_tile", found[0], rng.choice([2, 2, 3]), rng.choice([-1, 4, 16]), rng.getrandbits(20))


def run_partitioned(sch: Schedule, where: tuple[str, int], n: int, position: int, inner: int, seed: int) -> None:
    sch.seed(seed)
    loop = find_loop(sch, where)
    sch.split(loop, sch.sample_partitioned_tile(loop, n, position, inner))


@move("sample_partitioned_tile", 1.2, 0.5, run_partitioned)
def draw_partitioned(chooser: Chooser, sch: Schedule, names: list[str]) -> Action | None:
    rng, found = chooser.rng, chooser.loop(sch, names)
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
    rng, found = chooser.rng, chooser.loop(sch, names)
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
