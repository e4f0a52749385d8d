"""tensorize of the stage façade: which intrinsic computes a stage, or the start and the steps of its reduction."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.schedule.schedule import Schedule
from tilewright.schedule.stages.records import Call
from tilewright.schedule.state import BlockRV, LoopRV
from tilewright.support.errors import described
from tilewright.te.intrin.declaration import TensorIntrin
from tilewright.tir.iter_var import COMM_REDUCE, DATA_PARALLEL, IterVar
from tilewright.tir.tensor_intrin import TensorIntrin as Intrinsic


@dataclass(frozen=True, eq=False)
class Tensorization:
    """All below a loop of a stage is to be computed by an intrinsic."""
    axis: IterVar
    intrin: TensorIntrin | Intrinsic
    call: Call

    @property
    def text(self) -> str:
        """What the intrinsic says, for fingerprints."""
        return self.intrin.text if isinstance(self.intrin, TensorIntrin) else f"{self.intrin.desc}\n{self.intrin.impl}"


def tensorization(call: Call, axis: IterVar, intrin: Any) -> Tensorization:
    """The record of a call. Refuses what is no tensor intrinsic."""
    if isinstance(intrin, str):
        found = Intrinsic.get(intrin, allow_missing=True)
        if found is None:
            call.refuse(f"no tensor intrinsic {intrin!r} is registered",
                        f"registered: {', '.join(Intrinsic.list()) or 'none'}")
        intrin = found
    if not isinstance(intrin, (TensorIntrin, Intrinsic)):
        call.refuse(f"{described(intrin)} is no tensor intrinsic", "te.decl_tensor_intrin makes one")
    return Tensorization(axis, intrin, call)


def is_whole(leaves: tuple[IterVar, ...], axis: IterVar) -> bool:
    """True when no reduction loop is outside of axis."""
    for iv in leaves:
        if iv is axis:
            return True
        if iv.iter_type == COMM_REDUCE:
            return False
    return True


def run(sch: Schedule, record: Tensorization, leaves: tuple[IterVar, ...], block: BlockRV, loop: LoopRV,
        start: BlockRV | None) -> None:
    """Replay a tensorization. start: the block that starts the reduction, where it was decomposed."""
    intrin = record.intrin
    if isinstance(intrin, Intrinsic):
        sch.tensorize(loop, intrin)
        return
    if start is None:
        sch.tensorize(loop, intrin.compute)
        return
    if intrin.update is None:
        record.call.refuse(f"loops outside of {record.axis.var.name} run steps of the reduction, and {intrin.name} has "
                           "no update", "let fcompute return (compute, reset, update), or tensorize an outer loop")
    sch.tensorize(loop, intrin.update)
    if intrin.reset is not None:
        place = next(n for n, iv in enumerate(leaves) if iv is record.axis)
        inside = [iv for iv in leaves[place:] if iv.iter_type == DATA_PARALLEL]
        loops = sch.get_loops(start)
        sch.tensorize(loops[len(loops) - len(inside)] if inside else start, intrin.reset)
