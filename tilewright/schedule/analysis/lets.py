"""Uses of what a let binds around blocks stay below it."""
from __future__ import annotations

from collections.abc import Iterable

from tilewright.schedule.outside import outside_of
from tilewright.schedule.schedule import Schedule
from tilewright.support.errors import legal
from tilewright.tir.expr import Var
from tilewright.tir.symbols import free_vars


def bound_outside(sch: Schedule) -> list[Var]:
    """The variables that lets around blocks bind."""
    return list(outside_of(sch.index).lets) if sch.index.has_lets else []


def require_bound(sch: Schedule, variables: Iterable[Var]) -> None:
    """Refuse where one of variables, of lets, is used where no let binds it any more."""
    left = set(variables)
    lost = next((v for v in free_vars(sch.func.body) if v in left), None) if left else None
    legal(lost is None, f"{'' if lost is None else lost.name} would be used outside of the statement that binds it",
          hint="write out its value where it is used")
