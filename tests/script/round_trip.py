"""Printed text parses back to an equal function, and prints again as the same text.

`python -m tests.script.round_trip --programs 5000 --seed 0` checks random programs: as they are made, after random
primitives, and after each way of lowering.
"""
from __future__ import annotations

import random
import sys
import time
from collections import Counter

import click

from tests.fuzz import generate, schedules
from tilewright.lowering import PASSES, SIMPLE_PASSES
from tilewright.schedule import Schedule
from tilewright.script import from_source
from tilewright.support.errors import TilewrightError
from tilewright.tir import IRModule, PrimFunc, assert_structural_equal


def assert_round_trip(func: PrimFunc | IRModule, check_well_formed: bool = True) -> None:
    """Raises AssertionError, with the text, unless func survives print and parse."""
    text = str(func)
    try:
        again = from_source(text, check_well_formed=check_well_formed)
        assert_structural_equal(again, func)
    except TilewrightError as why:
        raise AssertionError(f"{why}\n\n---- the text\n{text}") from None
    second = str(again)
    assert second == text, f"the text is no fixed point\n{text}\n---- again\n{second}"


def check_seed(seed: int, passes: bool) -> Counter[str]:
    """Round trips of one random program; how many there were of each kind."""
    counts: Counter[str] = Counter()
    func = generate.program(seed).function()
    assert_round_trip(func)
    sch = Schedule(func)
    schedules.random_actions(random.Random(seed), sch, counts, Counter())
    counts = Counter(primitives=counts.total(), programs=1, scheduled=1)
    assert_round_trip(sch.func)
    for kind, steps in (("lowered", PASSES), ("simple", SIMPLE_PASSES)):
        flat = sch.func
        for p in steps:
            flat = p.run(flat)
            if passes and flat is not sch.func:
                assert_round_trip(flat)
                counts["passes"] += 1
        assert_round_trip(flat)
        counts[kind] += 1
    return counts


@click.command()
@click.option("--programs", default=5000, show_default=True, help="Number of programs.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first; the others follow.")
@click.option("--passes/--no-passes", default=False, help="Also after every single pass.")
def main(programs: int, seed: int, passes: bool) -> None:
    """Print and parse random programs; exit status 1 when one is not the same afterwards."""
    start, counts, failures = time.time(), Counter(), []
    for k in range(seed, seed + programs):
        try:
            counts += check_seed(k, passes)
        except AssertionError as why:
            failures.append(k)
            print(f"seed {k}: {why}\n", flush=True)
        except Exception as why:                        # of the generator or a primitive: not ours to judge
            counts["crashes elsewhere"] += 1
            print(f"seed {k}: {type(why).__name__}: {str(why).splitlines()[0][:200]}", flush=True)
    print(f"{programs} programs, {len(failures)} failures {failures[:20] or ''}")
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    print(f"{time.time() - start:.0f} s")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
