"""Trying a rule: what the primitives refuse leaves no trace."""
from __future__ import annotations

from collections.abc import Callable

from tilewright.schedule import Schedule
from tilewright.support.errors import ScheduleError


def refusal(sch: Schedule, rule: Callable[[], object]) -> ScheduleError | None:
    """Run rule. When a primitive in it is not legal, sch is as it was before, and the result is what it said."""
    saved = sch.snapshot()
    try:
        rule()
    except ScheduleError as why:
        sch.restore(saved)
        return why
    return None


def attempt(sch: Schedule, rule: Callable[[], object]) -> bool:
    """True when the rule was applied; otherwise sch is as it was before."""
    return refusal(sch, rule) is None
