"""What rules take for granted of the sizes of their tensors: noted while they run, for those who learn the sizes."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.tir.expr import Expr, Var
from tilewright.tir.interp.execute import evaluate

_state = threading.local()


@dataclass(frozen=True)
class Condition:
    """holds: of the size variables; text: what is wrong where it does not."""
    holds: Expr
    text: str

    def fails(self, sizes: Mapping[Var, int]) -> bool:
        """True where the condition does not hold for values of the sizes."""
        return not evaluate(self.holds, sizes)


@contextlib.contextmanager
def noted() -> Iterator[list[Condition]]:
    """The conditions that rules state inside of the `with`, each once."""
    outer, _state.found = getattr(_state, "found", None), {}
    try:
        found: list[Condition] = []
        yield found
        found += _state.found.values()
    finally:
        _state.found = outer


def state(holds: Expr, text: str) -> None:
    """A rule means what it says only where `holds`, a condition on sizes, is true; text: what is wrong elsewhere."""
    found = getattr(_state, "found", None)
    if found is not None:
        found.setdefault(str(holds), Condition(holds, text))
