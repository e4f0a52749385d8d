"""What a schedule keeps beside its functions: random state, the function it works on, handles given up."""
from __future__ import annotations

import random
from collections.abc import Iterable
from types import TracebackType
from typing import Any

from tilewright.schedule.handles import RV
from tilewright.schedule.state import ExprRV
from tilewright.support.errors import ArgumentError, ScheduleError, described, require


class Entered:
    """What `enter` returns: used in a `with` statement it calls `exit` at the end."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, why: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._session.exit()


def _integer(seed: int) -> int:
    if not isinstance(seed, int):
        raise ArgumentError(f"seed is {described(seed)}, not an integer")
    return seed


class Session:
    """The part of Schedule that does not concern the loops."""
    focus: str                                               # the function that helpers act on

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(_integer(seed))
        self.depth = 0                                       # of primitives called by primitives
        self.amended: dict[str, Any] = {}                    # arguments to record instead of those given
        self._working: list[str | None] = [None]
        self._removed: list[RV] = []
        self._origin: object = None                          # of the handles that it gives
        self._origins: set[object] = {None}                  # of the handles that it takes

    def scheduled_functions(self) -> list[str]:
        """Names of the module's kernels."""
        raise NotImplementedError

    def snapshot(self) -> Any:
        """Everything that a primitive may change."""
        raise NotImplementedError

    def restore(self, saved: Any) -> None:
        """Go back to a snapshot."""
        raise NotImplementedError

    def take_session(self, other: Session) -> None:
        """Continue from the state of another schedule: the same random numbers come next."""
        self.rng.setstate(other.rng.getstate())
        self._working, self._removed = list(other._working), list(other._removed)
        self._origins = set(other._origins)
        other._origin = None                                 # what either gives from here on is not the other's

    def give(self, handles: Iterable[RV]) -> None:
        """Note that handles, so far of no schedule, are of this one."""
        for rv in handles:
            if rv.origin is None:
                if self._origin is None:
                    self._origin = object()
                    self._origins.add(self._origin)
                rv.origin = self._origin

    def require_valid(self, rv: RV) -> None:
        """Refuse a handle that was given up, or that another schedule gave. Those that a schedule had given before it
        was copied are valid for the copy too."""
        require(not self.is_removed(rv), f"{rv} was removed by remove_rv")
        here = isinstance(rv, ExprRV) or rv.func in self.scheduled_functions()
        require(here and rv.origin in self._origins, f"{rv} belongs to another schedule",
                hint="ask this schedule for it: get_block, get_loops")

    def seed(self, seed: int) -> None:
        """Start the random state anew."""
        self.rng.seed(_integer(seed))

    def fork_seed(self) -> int:
        """A seed for another schedule, drawn from the random state of this one."""
        return self.rng.getrandbits(31)

    def remove_rv(self, rv: RV) -> None:
        """Make a handle unusable; what it stands for stays. An equal handle that another call gave stays usable."""
        if not isinstance(rv, RV):
            raise ArgumentError(f"remove_rv takes a handle, not {described(rv)}")
        self._removed.append(rv)

    def is_removed(self, rv: RV) -> bool:
        """True when this handle was given to remove_rv."""
        return any(rv is removed for removed in self._removed)

    @property
    def working_on(self) -> str | None:
        """The function that work_on or enter chose."""
        return self._working[-1]

    @property
    def func_working_on(self) -> str | None:
        """`working_on`, by TVM's name."""
        return self.working_on

    def work_on(self, func_name: str) -> None:
        """From now on names of blocks mean those of this function, and get_block looks there only.

        Raises ScheduleError where the module has no such kernel.
        """
        kernels = self.scheduled_functions()
        if not isinstance(func_name, str) or func_name not in kernels:
            raise ScheduleError(f"the module has no kernel {func_name!r}", f"its kernels are {', '.join(kernels)}")
        self._working[-1] = self.focus = func_name

    def enter(self, func_name: str) -> Entered:
        """work_on until `exit`, or until the end of `with sch.enter("f"):`; then what was before holds again."""
        self._working.append(self.working_on)
        try:
            self.work_on(func_name)
        except ScheduleError:
            self._working.pop()
            raise
        return Entered(self)

    def exit(self) -> None:
        """Undo the last `enter`. Raises ScheduleError where there is none."""
        if len(self._working) == 1:
            raise ScheduleError("exit without enter")
        self._working.pop()
        if self.working_on is not None:
            self.focus = self.working_on

    def amend(self, **arguments: Any) -> None:
        """Record these arguments for the running primitive instead of those that it was called with: a decision that
        it took, or an index map as text. Only the primitive that the user called is recorded."""
        if self.depth == 1:
            self.amended.update(arguments)
