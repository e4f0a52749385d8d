"""What the legality checks of primitives catch, and what they refuse without need: `python -m tests.fuzz.legality`.

Each random call is made twice on copies of one schedule: as it is, and with the checks of `errors.legal` switched off.
The forced rewrite is harmful, and the checked call must have refused, where for some size of the program's symbols

- the interpreter computes another value, or finds a race, memory that nothing wrote, an index out of bounds; or
- the function no longer is in block form: an instance of a block (its name and the values of its axes) that alone
  writes its buffers runs more than once and does not store the same values each time.

Where it is not harmful, it is harmless, and a refusal was without need. The second rule is what every primitive takes
for granted of the blocks that it finds: an element that one block alone writes has one value, whichever run of the
block stored it last. A consumer that runs on the parts of a sum, and at last on the sum, gives the right result, until
a primitive puts a reader of it beside it, which is legal and wrong (`test_steadiness.py` has such a program).
"""
from __future__ import annotations

import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import click

from tests.fuzz.moves import Action, Chooser
from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError, TilewrightError, unchecked
from tilewright.tir.stmt import PrimFunc
from tilewright.tir.verify import verify

from . import generate
from .check import interpret
from .programs import Program
from .schedules import perform
from .steadiness import is_steady
from .values import Reject

SAME, CHANGED, UNBUILT = "same", "changed", "not built"
STEPS = 12
DRAWING = ("sample_compute_location",)                 # tries what the checks accept: without them it draws otherwise
SECONDS = 20                                           # for one forced rewrite under the interpreter
SIZES = 2                                              # drawn for the symbols beside those that the program has


Call = tuple[str, str, bool]                           # primitive, outcome when forced, accepted
Refusal = tuple[str, str, str]                         # primitive, outcome when forced, message
_NAMES = re.compile(r"\b(?=\w*[\d_A-Z])\w+\b|\b\w\b|\b[ijk][oi]\b|\([^()]*\)")


@dataclass
class Found:
    """The sums over calls, the refusals that no harm explains, and the wrong rewrites that were accepted."""
    counts: Counter[Call] = field(default_factory=Counter)
    reasons: Counter[Refusal] = field(default_factory=Counter)
    examples: dict[Refusal, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


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


def at_other_sizes(program: Program) -> Program:
    """The program with more values of its symbols, as far as it computes something there that can be checked."""
    rng = random.Random(program.seed)
    for _ in range(SIZES if program.symbols else 0):
        more = replace(program, bindings=[*program.bindings, {s: rng.randint(1, 9) for s in program.symbols}])
        try:
            with time_limit(SECONDS):
                wrong = interpret(more, more.function())
        except (TilewrightError, Reject, TooSlow, ValueError, IndexError):     # it is about other sizes
            continue
        program = program if wrong else more
    return program


def is_harmful(program: Program, func: PrimFunc) -> bool:
    """True where func computes something else than program, or one of its elements has several values."""
    return bool(interpret(program, func)) or not is_steady(program, func)


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
            return CHANGED if is_harmful(program, copy.func) else SAME
    except TilewrightError:
        return CHANGED
    except TooSlow:
        return UNBUILT


def examine(seed: int) -> Found:
    """What the calls of one program gave, up to the first wrong rewrite that was accepted."""
    program, rng = at_other_sizes(generate.program(seed)), random.Random(seed)
    sch, found = Schedule(program.function()), Found()
    chooser = Chooser(rng, threads=rng.random() < 0.25)
    for step in range(STEPS):
        chooser.late = step > STEPS * 0.7
        action = chooser.action(sch)
        if action is None:
            continue
        checked, refusal = sch.copy(), ""
        try:
            perform(checked, action)
        except ScheduleError as error:
            refusal = reason(error)
        accepted = not refusal
        if action[0] in DRAWING:
            outcome = SAME if accepted else UNBUILT
        else:
            outcome = forced(program, sch, action)
        found.counts[action[0], outcome, accepted] += 1
        if refusal and outcome != CHANGED:
            found.reasons[action[0], outcome, refusal] += 1
            found.examples.setdefault((action[0], outcome, refusal), f"seed {seed}, step {step}")
        if accepted and outcome == CHANGED:
            found.wrong.append(f"seed {seed}, step {step}: {action} was accepted")
            break
        if accepted:
            sch = checked
    return found


def reason(error: ScheduleError) -> str:
    """The first line of the error's message without the names and numbers of the program."""
    return _NAMES.sub("_", str(error).splitlines()[0])


def run_programs(seeds: Iterable[int], jobs: int) -> Found:
    """The sums of `examine` over the seeds."""
    total = Found()
    with ProcessPoolExecutor(jobs) as pool:
        for found in pool.map(examine, seeds, chunksize=4):
            total.counts += found.counts
            total.reasons += found.reasons
            total.examples = found.examples | total.examples
            total.wrong += found.wrong
    return total


def table(counts: Counter[Call]) -> str:
    """One line per primitive."""
    lines = ["primitive                 harmless  of these refused       harmful  of these accepted  not built"]
    for name in sorted({key[0] for key in counts}):
        same, changed = ([counts[name, what, a] for a in (True, False)] for what in (SAME, CHANGED))
        share = same[1] / max(1, sum(same))
        built = sum(counts[name, UNBUILT, a] for a in (True, False))
        lines.append(f"{name:26}{sum(same):8}{same[1]:9} {share:7.1%}{sum(changed):14}{changed[0]:19}{built:11}")
    return "\n".join(lines)


def reasons(found: Found) -> str:
    """One line per message of a refusal without need, or of one that stands in for a rewrite that cannot be built."""
    ordered = sorted(found.reasons.items(), key=lambda item: (item[0][:2], -item[1]))
    return "\n".join(f"{n:5}  {name} ({what}): {message}  [{found.examples[name, what, message]}]"
                     for (name, what, message), n in ordered)


@click.command()
@click.option("--programs", default=2000, show_default=True, help="Number of programs.")
@click.option("--seed", default=0, show_default=True, help="Seed of the first; the others follow.")
@click.option("--jobs", default=2, show_default=True, help="Processes.")
@click.option("--reasons", "shown", is_flag=True, help="Tally the messages of refusals without need.")
def main(programs: int, seed: int, jobs: int, shown: bool) -> None:
    """Count what the legality checks catch; exit status 1 when a wrong rewrite was accepted."""
    start = time.time()
    found = run_programs(range(seed, seed + programs), jobs)
    print(table(found.counts))
    if shown:
        print(reasons(found))
    print(f"{programs} programs from seed {seed}, {sum(found.counts.values())} calls, {len(found.wrong)} wrong "
          f"rewrites accepted, {time.time() - start:.0f} s")
    print("\n".join(found.wrong))
    sys.exit(bool(found.wrong))


if __name__ == "__main__":
    main()
