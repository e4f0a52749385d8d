"""The least with which a program still fails: `python -m tests.fuzz.minimise [KIND:]SEED`.

Of tensor programs under schedules (the kind "schedules", and of a seed alone) the fewest actions; of other kinds a
smaller program, each attempt in a process of its own.
"""
from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from tests.fuzz.moves import Action
from tilewright.schedule import Schedule

from . import check, generate, schedules
from .kinds.shrink import shrink
from .kinds.table import MODULES
from .programs import Program


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
    for text in sys.argv[1:]:
        kind, _, number = text.rpartition(":")
        if kind in MODULES:
            seed, module = int(number), MODULES[kind]
            small, outcome = shrink(module, module.program(seed), check.target_of(seed))
            print(f"{text}: {outcome or 'no failure'}\n{module.describe(small) if outcome else ''}")
        else:
            minimise_schedule(int(number))


def minimise_schedule(seed: int) -> None:
    """Print the fewest actions with which a tensor program still fails."""
    program = generate.program(seed)
    target = check.target_of(seed)
    actions = actions_of(seed)
    kind = failure(program, actions, target)
    print(f"seed {seed}: {kind or 'no failure'}")
    if not kind:
        return
    few = minimise(actions, lambda some: failure(program, some, target) == kind)
    sch = check.run_actions(program, few)
    print(program.function(), *few, sch, sep="\n")
    try:
        check.check_schedule(program, sch, check.Report(seed, threads=schedules.uses_threads(sch)), target)
    except check.Failure as why:
        print(why)


if __name__ == "__main__":
    main()
