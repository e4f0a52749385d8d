"""Instruments: the verifier and the dump, which settings switch on, and a record of what each pass did."""
from __future__ import annotations

import itertools
from typing import NamedTuple

from tilewright.lowering.options import Instrument, Pass
from tilewright.support import config
from tilewright.tir.equal import structural_equal
from tilewright.tir.stmt import BlockRealize, IRModule, PrimFunc
from tilewright.tir.verify import verify


class Verify(Instrument):
    """Raises StructuralError when the result of a pass has not the form that the pass promises.

    A function that a pass gives back as it was is not looked at again in the same form.
    """

    def __init__(self) -> None:
        self.verified: tuple[PrimFunc | None, str] = None, ""

    def after(self, p: Pass, func: PrimFunc | IRModule, seconds: float) -> None:
        if isinstance(func, IRModule):
            for f in func.functions.values():
                verify(f, stage="flat")
            return
        has_blocks = isinstance(func.body, BlockRealize)          # a function of plain loops has none from the start
        stage = "loop" if p.stage == "block" and not has_blocks else p.stage
        if self.verified[0] is not func or self.verified[1] != stage:
            verify(func, stage)
            self.verified = func, stage


class Dump(Instrument):
    """Writes the result of each pass into the folder of TILEWRIGHT_DUMP. The functions of a process are numbered."""
    numbers = itertools.count()

    def __init__(self) -> None:
        self.number, self.step = next(self.numbers), -1

    def before(self, p: Pass, func: PrimFunc | IRModule) -> None:
        self.step += 1

    def after(self, p: Pass, func: PrimFunc | IRModule, seconds: float) -> None:
        name = next(iter(func.functions)) if isinstance(func, IRModule) else func.name
        config.dump(f"{self.number:03d}_{name}_{self.step:02d}_{p.name}.py", f"{func}\n")


def of_settings() -> list[Instrument]:
    """Those of TILEWRIGHT_VERIFY and TILEWRIGHT_DUMP."""
    return [kind() for name, kind in (("VERIFY", Verify), ("DUMP", Dump)) if config.get(name)]


class Step(NamedTuple):
    """A pass that ran, the function before and after it, and how long it took."""
    name: str
    before: PrimFunc | IRModule
    after: PrimFunc | IRModule
    seconds: float

    @property
    def changed(self) -> bool:
        """Whether the pass did anything."""
        return self.after is not self.before and not structural_equal(self.before, self.after)


class PassRecord(Instrument):
    """What each pass did, as `steps`. `str(record)` is a table of passes with their time and whether they changed
    anything.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def before(self, p: Pass, func: PrimFunc | IRModule) -> None:
        self._given = func

    def after(self, p: Pass, func: PrimFunc | IRModule, seconds: float) -> None:
        self.steps.append(Step(p.name, self._given, func, seconds))

    def __str__(self) -> str:
        return "\n".join(f"{s.seconds * 1e3:8.2f} ms  {'*' if s.changed else ' '} {s.name}" for s in self.steps)
