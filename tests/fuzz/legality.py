"""What the legality checks of primitives catch, and what they refuse without need: `python -m tests.fuzz.legality`.

Each random call is made twice on copies of one schedule: as it is, and with the checks of `errors.legal` switched off.
Where the forced rewrite changes what the interpreter computes (another value, a race, memory that nothing wrote, an
index out of bounds), the checked call must have refused. Where it does not, a refusal was without need: harmless.
A rewrite after which a block runs on values that are not ready, and again when they are, changes what it computes too,
though the last run hides that from the outputs.
"""
from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

import click

from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError, TilewrightError, unchecked
from tilewright.tir.verify import verify

from . import generate
from .check import interpret
from .programs import Program
from .schedules import Action, Chooser, perform
from .symbolic import steady

SAME, CHANGED, UNBUILT = "same", "changed", "not built"
MOVING = ("compute_at", "reverse_compute_at")
STEPS = 12
DRAWING = ("sample_compute_location",)                 # tries what the checks accept: without them it draws otherwise
SECONDS = 20                                           # for one forced rewrite under the interpreter


class TooSlow(Exception):
    """The interpreter took too long over a forced rewrite."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def forced(program: Program, sch: Schedule, action: Action) -> str:
    """What the action does when no legality check stops it: SAME, CHANGED, or UNBUILT where it cannot be built."""
    copy = sch.copy()
    try:
        with unchecked():
            perform(copy, action)
        verify(copy.func)
    except Exception:                                  # without the checks a rewrite may fail in any way
        return UNBUILT
    try:
        with time_limit(SECONDS):
            fine = not interpret(program, copy.func) and not (action[0] in MOVING and _unsettles(program, sch, copy))
        return SAME if fine else CHANGED
    except TilewrightError:
        return CHANGED
    except TooSlow:
        return UNBUILT


def _unsettles(program: Program, before: Schedule, after: Schedule) -> bool:
    """True where a block has come to run on values that are not ready, and again when they are."""
    sizes = program.bindings[0]
    return steady(before.func, sizes) and not steady(after.func, sizes)


def examine(seed: int) -> tuple[Counter[tuple[str, str, bool]], list[str]]:
    """(counts of (primitive, outcome when forced, accepted), descriptions of wrong rewrites that were accepted)."""
    program, rng = generate.program(seed), random.Random(seed)
    sch, counts, wrong = Schedule(program.function()), Counter[tuple[str, str, bool]](), []
    chooser = Chooser(rng, threads=rng.random() < 0.25)
    for step in range(STEPS):
        chooser.late = step > STEPS * 0.7
        action = chooser.action(sch)
        if action is None:
            continue
        checked = sch.copy()
        try:
            perform(checked, action)
            accepted = True
        except ScheduleError:
            accepted = False
        if action[0] in DRAWING:
            outcome = SAME if accepted else UNBUILT
        else:
            outcome = forced(program, sch, action)
        counts[action[0], outcome, accepted] += 1
        if accepted and outcome == CHANGED:
            wrong.append(f"seed {seed}, step {step}: {action} was accepted")
            break
        if accepted:
            sch = checked
    return counts, wrong


def run_programs(seeds: Iterable[int], jobs: int) -> tuple[Counter[tuple[str, str, bool]], list[str]]:
    """The sums of `examine` over the seeds."""
    total, wrong = Counter[tuple[str, str, bool]](), []
    with ProcessPoolExecutor(jobs) as pool:
        for counts, found in pool.map(examine, seeds, chunksize=4):
            total += counts
            wrong += found
    return total, wrong


def table(counts: Counter[tuple[str, str, bool]]) -> str:
    """One line per primitive."""
    lines = ["primitive                 harmless  of these refused       harmful  of these accepted  not built"]
    for name in sorted({key[0] for key in counts}):
        same, changed = ([counts[name, what, a] for a in (True, False)] for what in (SAME, CHANGED))
        share = same[1] / max(1, sum(same))
        built = sum(counts[name, UNBUILT, a] for a in (True, False))
        lines.append(f"{name:26}{sum(same):8}{same[1]:9} {share:7.1%}{sum(changed):14}{changed[0]:19}{built:11}")
    return "\n".join(lines)


@click.command()
@click.option("--programs", default=2000, show_default=True, help="Number of programs.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first; the others follow.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
def main(programs: int, seed: int, jobs: int) -> None:
    """Count what the legality checks catch; exit status 1 when a wrong rewrite was accepted."""
    start = time.time()
    total, wrong = run_programs(range(seed, seed + programs), jobs)
    print(table(total))
    print(f"{programs} programs from seed {seed}, {sum(total.values())} calls, {len(wrong)} wrong rewrites accepted, "
          f"{time.time() - start:.0f} s")
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
