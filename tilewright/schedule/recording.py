"""Arguments that a trace can keep: functions among them become text before the call is recorded."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from tilewright.schedule.primitive import PRIMITIVES
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import Illegal


def recorded_as_text(rewrite: Callable[[dict[str, Any]], None]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator of a primitive: it is called with arguments that rewrite has put into a form that prints and stores.

    rewrite changes the dict of arguments; where it refuses them the primitive gets them as they are, and says what is
    wrong, with the program.
    """
    def decorate(recorded: Callable[..., Any]) -> Callable[..., Any]:
        name, signature = recorded.__name__, inspect.signature(recorded)

        @functools.wraps(recorded)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                bound = signature.bind(*args, **kwargs)
                rewrite(bound.arguments)
            except (TypeError, Illegal):
                return recorded(*args, **kwargs)
            return recorded(*bound.args, **bound.kwargs)

        PRIMITIVES[name] = call
        setattr(Schedule, name, call)
        return call
    return decorate
