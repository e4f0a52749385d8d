"""What the tests know of a primitive, beside the moves of random schedules: its example and what it refuses."""
from __future__ import annotations

import inspect
from collections.abc import Callable

from tests.wrong_uses.wrong_use import Section
from tilewright.schedule import Schedule

CASES: dict[str, Case] = {}                            # filled by the modules of tests/schedule/primitives


class Case(Section):
    """A primitive. The example is a schedule whose last step is the primitive; its docstring is what that prints."""
    example_function: Callable[[], Schedule]

    def __init__(self, primitive: str) -> None:
        super().__init__(primitive)
        CASES[primitive] = self

    def example(self, fn: Callable[[], Schedule]) -> Callable[[], Schedule]:
        """Decorator: fn is the example."""
        self.example_function = fn
        return fn

    @property
    def golden(self) -> str:
        """What the example prints."""
        return inspect.cleandoc(self.example_function.__doc__ or "")
