"""A wrong use as data: a title, a function that does it, and a pattern of the message that must come."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.schedule import Schedule
from tilewright.schedule.stages.facade import StageSchedule


class Exit(Exception):
    """A command ended with a status other than 0 and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message.strip())
        self.status = status


@dataclass(frozen=True)
class WrongUse:
    """`do` must raise a TilewrightError (or Exit) whose text matches `pattern`, and change nothing that it watches."""
    title: str
    pattern: str
    do: Callable[[], Any]

    @property
    def name(self) -> str:
        return self.do.__name__


@dataclass
class Section:
    """One heading of the table. `wrong` adds a row."""
    title: str
    rows: list[WrongUse] = field(default_factory=list)

    def wrong(self, title: str, pattern: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
        """Decorator: the function is the wrong use that the title tells in words."""
        def keep(do: Callable[[], Any]) -> Callable[[], Any]:
            self.rows.append(WrongUse(title, pattern, do))
            return do
        return keep


_watched: list[tuple[Any, Any]] = []


def watch(thing: Any) -> Any:
    """thing (an array, tensor or schedule), which the wrong use must leave as it is from here on."""
    _watched[:] = [(other, state) for other, state in _watched if other is not thing] + [(thing, _state(thing))]
    return thing


def changed() -> list[Any]:
    """The watched things that are not as they were; forgets all of them."""
    out = [thing for thing, before in _watched if _state(thing) != before]
    _watched.clear()
    return out


def _state(thing: Any) -> Any:
    if isinstance(thing, Schedule):
        return str(thing), sum(not e.primitive.startswith("get_") for e in thing.trace)
    if isinstance(thing, StageSchedule):
        return [(stage.op, [iv.var for iv in stage.leaf_iter_vars], len(stage.relations), len(stage.marks),
                 len(stage.pragmas), stage.attachment, stage.scope) for stage in thing.stages]
    values = thing if isinstance(thing, np.ndarray) else thing.numpy()
    return values.tobytes(), values.shape
