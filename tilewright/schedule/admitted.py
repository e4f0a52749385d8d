"""Which functions a schedule takes: in block form, and of no block axis that certainly leaves its domain."""
from __future__ import annotations

from tilewright.arith.axis_domains import departures
from tilewright.schedule.state import block_root
from tilewright.support.errors import ScheduleError, with_hint
from tilewright.tir.printer import show
from tilewright.tir.stmt import PrimFunc


def admit(func: PrimFunc) -> None:
    """Raises ScheduleError, with the block marked, for a function of which primitives could change the meaning.

    They take the domain of an axis for all that its block computes.
    """
    block_root(func)
    for left in departures(func):
        raise ScheduleError(with_hint(f"{func.name}: {left}\n\n{show(func, [left.realize.block])}", left.hint))
