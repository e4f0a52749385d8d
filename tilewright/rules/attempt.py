"""Trying a rule: what the primitives refuse leaves no trace."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError


def attempt(sch: Schedule, rule: Callable[[], object]) -> bool:
    """Run rule; when a primitive in it is not legal, sch is as it was before. True when the rule was applied."""
    saved = sch.snapshot()
    try:
        rule()
    except ScheduleError:
        sch.restore(saved)
        return False
    return True
