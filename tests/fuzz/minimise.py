"""The fewest actions with which a seed still fails: `python -m tests.fuzz.minimise SEED`."""
from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from tilewright.schedule import Schedule

from . import check, generate, schedules
from .programs import Program
from .schedules import Action


def actions_of(seed: int) -> list[Action]:
    """The accepted actions of a seed, also of one in which the schedule raises (the action that raises is last)."""
    program = generate.program(seed)
    sch = Schedule(program.function())
    tried: list[Action] = []
    plain = schedules.perform

    def noted(s: Schedule, action: Action) -> None:
        tried.append(action)
        plain(s, action)
    schedules.perform = noted
    try:
        return schedules.random_actions(random.Random(seed), sch, Counter(), Counter())
    except Exception:
        return tried
    finally:
        schedules.perform = plain


def failure(program: Program, actions: Sequence[Action], target: str) -> str:
    """The kind of failure, "" when there is none."""
    try:
        sch = check.run_actions(program, actions)
        report = check.Report(program.seed, threads=schedules.uses_threads(sch))
        check.check_schedule(program, sch, report, target)
        check.replay(sch, program.function())
    except check.Failure as why:
        return why.kind
    except Exception as why:
        return f"crash {type(why).__name__}"
    return ""


def minimise(actions: Sequence[Action], fails: Callable[[Sequence[Action]], bool]) -> list[Action]:
    """A subsequence that still fails and none of whose actions can be left out (delta debugging)."""
    current, size = list(actions), max(len(actions) // 2, 1)
    while True:
        for start in range(0, len(current), size):
            shorter = current[:start] + current[start + size:]
            if fails(shorter):
                current = shorter
                break
        else:
            if size == 1:
                return current
            size = max(size // 2, 1)


def main() -> None:
    for seed in map(int, sys.argv[1:]):
        program = generate.program(seed)
        target = check.TARGETS[seed % len(check.TARGETS)]
        actions = actions_of(seed)
        kind = failure(program, actions, target)
        print(f"seed {seed}: {kind or 'no failure'}")
        if not kind:
            continue
        few = minimise(actions, lambda some: failure(program, some, target) == kind)  # noqa: B023
        sch = check.run_actions(program, few)
        print(program.function(), *few, sch, sep="\n")
        try:
            check.check_schedule(program, sch, check.Report(seed, threads=schedules.uses_threads(sch)), target)
        except check.Failure as why:
            print(why)


if __name__ == "__main__":
    main()
