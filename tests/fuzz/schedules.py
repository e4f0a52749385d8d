"""Random schedules: calls of primitives, drawn and run as their files in tests/schedule/primitives say."""
from __future__ import annotations

import random
from collections import Counter

from tests.fuzz.moves import BASIC, MOVES, Action, Chooser, in_order
from tests.schedule import primitives  # noqa: F401
from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError
from tilewright.tir.stmt import THREAD_BINDING

LENGTHS = (4, 16)


def perform(sch: Schedule, action: Action) -> None:
    """Run an action. Raises ScheduleError where it is refused, Unresolved where it names what is not there."""
    name, *arguments = action
    MOVES[name].run(sch, *arguments)


def random_actions(rng: random.Random, sch: Schedule, accepted: Counter[str], refused: Counter[str],
                   lengths: tuple[int, int] = LENGTHS) -> list[Action]:
    """Schedule with random primitives; the accepted actions. lengths: the fewest and the most that are wanted."""
    chooser = Chooser(rng, threads=rng.random() < 0.25)
    wanted = rng.randint(*lengths)
    done: list[Action] = []
    turn = int(wanted * rng.choice([0.4, 0.6, 0.7, 1.0]))
    for _ in range(6 * wanted):
        chooser.late = len(done) >= turn
        action = chooser.action(sch)
        if action is not None and _accepted(sch, action, accepted, refused):
            done.append(action)
            if len(done) >= wanted:
                break
    names = [b for b in sch.index.realizes if b != "root"]
    for name in in_order()[len(BASIC):]:
        if names and rng.random() < MOVES[name].last:
            action = MOVES[name].draw(chooser, sch, names)
            if action is not None and _accepted(sch, action, accepted, refused):
                done.append(action)
    return done


def _accepted(sch: Schedule, action: Action, accepted: Counter[str], refused: Counter[str]) -> bool:
    try:
        perform(sch, action)
    except ScheduleError:
        refused[action[0]] += 1
        return False
    accepted[action[0]] += 1
    return True


def uses_threads(sch: Schedule) -> bool:
    return any(loop.kind == THREAD_BINDING for loop in sch.index.loops.values())
